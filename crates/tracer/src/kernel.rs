//! The system calls that std does not have. Unsafe, because it declares the C library's functions itself: the program is
//! compiled by a bare rustc, without any crate (`build.rs`).

#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_long, c_ulong, c_void};
use std::fs::File;
use std::io;
use std::os::fd::FromRawFd;
use std::ptr;
use std::time::Duration;

const SIGHUP: c_int = 1;
const SIGINT: c_int = 2;
const SIGTERM: c_int = 15;
/// The handler that is none.
const SIG_IGN: usize = 1;
const CLONE_NEWNS: c_int = 0x0002_0000;
const MS_REC: c_ulong = 0x4000;
const MS_SLAVE: c_ulong = 1 << 19;
const CLOCK_MONOTONIC: c_int = 1;
const CLOCK_BOOTTIME: c_int = 7;
const PRIO_PROCESS: c_int = 0;
const HIGHEST: c_int = -20;
const AF_NETLINK: c_int = 16;
const SOCK_DGRAM: c_int = 2;
const SOCK_CLOEXEC: c_int = 0o2_000_000;
const NETLINK_CONNECTOR: c_int = 11;
/// The group of the proc connector, as a bit (CN_IDX_PROC).
const PROC_GROUP: u32 = 1;
const SOL_SOCKET: c_int = 1;
const SO_RCVTIMEO: c_int = 20;
const SO_RCVBUFFORCE: c_int = 33;
/// What is kept of the proc connector's messages until they are read, octets: some ten thousand.
const CONNECTOR_ROOM: c_int = 8 * 1024 * 1024;

/// `struct timespec` of 64-bit Linux.
#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: c_long,
}

/// `struct sockaddr_nl`.
#[repr(C)]
struct NetlinkAddress {
    family: u16,
    pad: u16,
    port: u32,
    groups: u32,
}

/// `struct timeval` of 64-bit Linux.
#[repr(C)]
struct Timeval {
    seconds: i64,
    microseconds: c_long,
}

unsafe extern "C" {
    fn geteuid() -> u32;
    fn signal(number: c_int, handler: usize) -> usize;
    fn setsid() -> c_int;
    fn unshare(flags: c_int) -> c_int;
    fn mount(
        source: *const c_char,
        target: *const c_char,
        kind: *const c_char,
        flags: c_ulong,
        data: *const c_void,
    ) -> c_int;
    fn clock_gettime(clock: c_int, time: *mut Timespec) -> c_int;
    fn setpriority(which: c_int, who: u32, priority: c_int) -> c_int;
    fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int;
    fn bind(socket: c_int, address: *const NetlinkAddress, length: u32) -> c_int;
    fn setsockopt(
        socket: c_int,
        level: c_int,
        option: c_int,
        value: *const c_void,
        length: u32,
    ) -> c_int;
}

/// Whether this process is root's.
pub(crate) fn is_root() -> bool {
    // SAFETY: it has no arguments and cannot fail.
    unsafe { geteuid() == 0 }
}

/// Makes this process one that goes on when its session ends: nothing that ends others kindly ends it.
pub(crate) fn outlive_session() {
    for number in [SIGHUP, SIGINT, SIGTERM] {
        // SAFETY: no memory is involved, and no handler of ours.
        unsafe { signal(number, SIG_IGN) };
    }
    // SAFETY: no memory is involved. Only who leads a group already cannot.
    unsafe { setsid() };
}

/// Nanoseconds of CLOCK_MONOTONIC, the clock of the trace.
pub(crate) fn monotonic() -> u64 {
    clock(CLOCK_MONOTONIC)
}

/// Nanoseconds since the system's start, those that it slept among them: the clock of /proc/PID/stat.
pub(crate) fn since_boot() -> u64 {
    clock(CLOCK_BOOTTIME)
}

fn clock(clock: c_int) -> u64 {
    let mut time = Timespec {
        seconds: 0,
        nanoseconds: 0,
    };
    // SAFETY: the pointer is to a timespec of our own; the clocks exist on every Linux.
    unsafe { clock_gettime(clock, &mut time) };
    time.seconds as u64 * 1_000_000_000 + time.nanoseconds as u64
}

/// Puts the calling thread before others: for one that sleeps nearly always, and has to look before a process has gone.
pub(crate) fn go_first() {
    // SAFETY: no memory is involved. Who may not goes on as before.
    unsafe { setpriority(PRIO_PROCESS, 0, HIGHEST) };
}

/// A mount namespace of our own, from which nothing gets out (unshare(2)).
///
/// # Errors
///
/// What the system says.
pub(crate) fn own_mounts() -> io::Result<()> {
    // SAFETY: no memory is involved.
    check(unsafe { unshare(CLONE_NEWNS) })?;
    // SAFETY: both strings are static and end in NUL; the others are not looked at (mount(2)).
    check(unsafe {
        mount(
            ptr::null(),
            c"/".as_ptr(),
            ptr::null(),
            MS_REC | MS_SLAVE,
            ptr::null(),
        )
    })
}

/// Mounts tracefs on a folder that exists.
///
/// # Errors
///
/// What the system says.
pub(crate) fn mount_tracefs(folder: &CStr) -> io::Result<()> {
    let name = c"tracefs".as_ptr();
    // SAFETY: all strings end in NUL and outlive the call.
    check(unsafe { mount(name, folder.as_ptr(), name, 0, ptr::null()) })
}

/// A socket of the proc connector's group. A read waits for so long at most; a write goes to the kernel.
///
/// # Errors
///
/// What the system says.
pub(crate) fn proc_connector(patience: Duration) -> io::Result<File> {
    // SAFETY: no memory is involved.
    let socket = unsafe { socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_CONNECTOR) };
    if socket < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given us this number, and nobody else has it.
    let file = unsafe { File::from_raw_fd(socket) };
    let address = NetlinkAddress {
        family: AF_NETLINK as u16,
        pad: 0,
        port: 0,
        groups: PROC_GROUP,
    };
    // SAFETY: the address is ours, and of that length.
    check(unsafe { bind(socket, &address, size_of::<NetlinkAddress>() as u32) })?;
    let time = Timeval {
        seconds: patience.as_secs() as i64,
        microseconds: patience.subsec_micros().into(),
    };
    set(socket, SO_RCVTIMEO, &time)?;
    // A smaller one would do for most hosts.
    let _ = set(socket, SO_RCVBUFFORCE, &CONNECTOR_ROOM);
    Ok(file)
}

fn set<T>(socket: c_int, option: c_int, value: &T) -> io::Result<()> {
    let length = size_of::<T>() as u32;
    // SAFETY: the value outlives the call and has that length.
    check(unsafe {
        setsockopt(
            socket,
            SOL_SOCKET,
            option,
            ptr::from_ref(value).cast(),
            length,
        )
    })
}

fn check(result: c_int) -> io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
