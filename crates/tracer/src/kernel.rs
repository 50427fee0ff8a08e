//! The system calls that std does not have. Unsafe, because it declares the C library's functions itself: the program is
//! compiled by a bare rustc, without any crate (`build.rs`).

#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_long, c_ulong, c_void};
use std::io;
use std::ptr;

const CLONE_NEWNS: c_int = 0x0002_0000;
const MS_REC: c_ulong = 0x4000;
const MS_SLAVE: c_ulong = 1 << 19;
const CLOCK_MONOTONIC: c_int = 1;

/// `struct timespec` of 64-bit Linux.
#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: c_long,
}

unsafe extern "C" {
    fn geteuid() -> u32;
    fn unshare(flags: c_int) -> c_int;
    fn mount(
        source: *const c_char,
        target: *const c_char,
        kind: *const c_char,
        flags: c_ulong,
        data: *const c_void,
    ) -> c_int;
    fn clock_gettime(clock: c_int, time: *mut Timespec) -> c_int;
}

/// Whether this process is root's.
pub(crate) fn is_root() -> bool {
    // SAFETY: it has no arguments and cannot fail.
    unsafe { geteuid() == 0 }
}

/// Nanoseconds of CLOCK_MONOTONIC, the clock of the trace.
pub(crate) fn monotonic() -> u64 {
    let mut time = Timespec {
        seconds: 0,
        nanoseconds: 0,
    };
    // SAFETY: the pointer is to a timespec of our own; the clock exists on every Linux.
    unsafe { clock_gettime(CLOCK_MONOTONIC, &mut time) };
    time.seconds as u64 * 1_000_000_000 + time.nanoseconds as u64
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

fn check(result: c_int) -> io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
