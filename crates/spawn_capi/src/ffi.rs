//! The boundary: C's pointers in, Rust's values on. All unsafe code of this crate, and nothing else.
//!
//! Each function trusts its caller as far as `include/sshoal_spawn.h` and `include/popen_noshell.h` say: pointers are
//! valid, strings end with a NUL, arrays with a null pointer, an object is used by one thread at a time and not after it
//! was freed. What each unsafe block does beyond relying on that is said at the block. No function unwinds into C: a
//! panic in an `extern "C"` function ends the program.

#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use libc::FILE;
use spawn::{Child, Command, Method, Resource, Rlimit, Signal, SignalSet, SpawnError, Stdio};

use crate::noshell::{self, Direction, Outcome};
use crate::split;

// ---------------------------------------------------------------------------------------------------------------------
// errno, strings, arrays, sets

fn set_errno(number: c_int) {
    // SAFETY: libc gives each thread its own.
    unsafe { *libc::__errno_location() = number };
}

fn errno_of(error: &io::Error) -> c_int {
    error.raw_os_error().unwrap_or(libc::EIO)
}

/// -1 with errno.
fn failed(number: c_int) -> c_int {
    set_errno(number);
    -1
}

/// NULL with errno.
fn none<T>(number: c_int) -> *mut T {
    set_errno(number);
    ptr::null_mut()
}

fn answer(result: io::Result<()>) -> c_int {
    result.map_or_else(|error| failed(errno_of(&error)), |()| 0)
}

/// A string of the caller's; none for NULL.
///
/// # Safety
/// It must end with a NUL, and live as long as the answer is used.
unsafe fn text<'a>(string: *const c_char) -> Option<&'a OsStr> {
    // SAFETY: the caller's promise.
    (!string.is_null()).then(|| OsStr::from_bytes(unsafe { CStr::from_ptr(string) }.to_bytes()))
}

/// The strings of an array; none where the array is NULL.
///
/// # Safety
/// It must end with a null pointer, and its strings with NULs, and live as long as the answer is used.
unsafe fn texts<'a>(array: *const *const c_char) -> Option<Vec<&'a OsStr>> {
    if array.is_null() {
        return None;
    }
    let mut found = Vec::new();
    // SAFETY: nothing behind the null pointer is read.
    while let Some(string) = unsafe { text(*array.add(found.len())) } {
        found.push(string);
    }
    Some(found)
}

/// libc's set in the kernel's form; empty for NULL.
///
/// # Safety
/// A set that is not NULL must have been initialised.
unsafe fn signals(set: *const libc::sigset_t) -> SignalSet {
    let is_in = |number: &c_int| {
        // SAFETY: the caller's promise; a number that libc does not know is answered with -1.
        !set.is_null() && unsafe { libc::sigismember(set, *number) } == 1
    };
    SignalSet::from_bits(
        (1..=64)
            .filter(is_in)
            .fold(0, |bits, number| bits | 1 << (number - 1)),
    )
}

// ---------------------------------------------------------------------------------------------------------------------
// sshoal_spawn

/// A program to start.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sshoal_spawn_new(
    file: *const c_char,
    argv: *const *const c_char,
) -> *mut Command {
    // SAFETY: the header's promises.
    let (Some(file), Some(argv)) = (unsafe { (text(file), texts(argv)) }) else {
        return none(libc::EINVAL);
    };
    let mut command = Command::new(file);
    if let Some((name, rest)) = argv.split_first() {
        command.arg0(name).args(rest);
    }
    Box::into_raw(Box::new(command))
}

/// Ends what `sshoal_spawn_new` gave.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sshoal_spawn_free(spawn: *mut Command) {
    if !spawn.is_null() {
        // SAFETY: it came from `sshoal_spawn_new`, and is not used again.
        drop(unsafe { Box::from_raw(spawn) });
    }
}

/// Connects a standard stream; the values are those of `enum sshoal_stream`.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sshoal_spawn_stream(
    spawn: *mut Command,
    number: c_int,
    stream: c_int,
) -> c_int {
    // SAFETY: the header's promises.
    let command = unsafe { &mut *spawn };
    let stdio = match stream {
        0 => Stdio::inherit(),
        1 => Stdio::null(),
        2 => Stdio::pipe(),
        3 if number == 2 => {
            command.stderr_into_stdout();
            return 0;
        }
        _ => return failed(libc::EINVAL),
    };
    connect(command, number, stdio)
}

fn connect(command: &mut Command, number: c_int, stdio: Stdio) -> c_int {
    match number {
        0 => command.stdin(stdio),
        1 => command.stdout(stdio),
        2 => command.stderr(stdio),
        _ => return failed(libc::EINVAL),
    };
    0
}

/// Connects a standard stream with a file; the ways are those of `enum sshoal_file`.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sshoal_spawn_stream_file(
    spawn: *mut Command,
    number: c_int,
    path: *const c_char,
    how: c_int,
) -> c_int {
    // SAFETY: the header's promises.
    let (command, path) = unsafe { (&mut *spawn, text(path)) };
    let stdio = match (path, how) {
        (Some(path), 0) => Stdio::read_file(path),
        (Some(path), 1) => Stdio::create_file(path),
        (Some(path), 2) => Stdio::append_file(path),
        _ => return failed(libc::EINVAL),
    };
    connect(command, number, stdio)
}

/// Gives the program a copy of a descriptor.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sshoal_spawn_descriptor(
    spawn: *mut Command,
    number: c_int,
    fd: c_int,
) -> c_int {
    if fd < 0 || number < 0 {
        return failed(libc::EBADF);
    }
    // SAFETY: the header's promises; a descriptor that is not open is answered with EBADF by the kernel.
    let (command, given) = unsafe { (&mut *spawn, BorrowedFd::borrow_raw(fd)) };
    match given.try_clone_to_owned() {
        Ok(copy) => {
            command.descriptor(number, copy);
            0
        }
        Err(error) => failed(errno_of(&error)),
    }
}

/// Whether the program has what is not close-on-exec.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sshoal_spawn_inherit_descriptors(spawn: *mut Command, inherit: c_int) {
    // SAFETY: the header's promises.
    unsafe { &mut *spawn }.inherit_descriptors(inherit != 0);
}

/// Takes all variables from the program.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sshoal_spawn_clearenv(spawn: *mut Command) {
    // SAFETY: the header's promises.
    unsafe { &mut *spawn }.env_clear();
}

/// Sets a variable of the program's.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sshoal_spawn_setenv(
    spawn: *mut Command,
    name: *const c_char,
    value: *const c_char,
) -> c_int {
    // SAFETY: the header's promises.
    match unsafe { (text(name), text(value)) } {
        (Some(name), Some(value)) if is_name(name) => {
            // SAFETY: the header's promises.
            unsafe { &mut *spawn }.env(name, value);
            0
        }
        _ => failed(libc::EINVAL),
    }
}

/// Takes a variable from the program.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sshoal_spawn_unsetenv(spawn: *mut Command, name: *const c_char) -> c_int {
    // SAFETY: the header's promises.
    match unsafe { text(name) } {
        Some(name) if is_name(name) => {
            // SAFETY: the header's promises.
            unsafe { &mut *spawn }.env_remove(name);
            0
        }
        _ => failed(libc::EINVAL),
    }
}

/// As setenv(3) has it.
fn is_name(name: &OsStr) -> bool {
    !name.is_empty() && !name.as_bytes().contains(&b'=')
}

/// The working directory.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sshoal_spawn_directory(spawn: *mut Command, path: *const c_char) -> c_int {
    // SAFETY: the header's promises.
    let Some(path) = (unsafe { text(path) }) else {
        return failed(libc::EINVAL);
    };
    // SAFETY: the header's promises.
    unsafe { &mut *spawn }.current_dir(path);
    0
}

/// A session of its own.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sshoal_spawn_new_session(spawn: *mut Command) {
    // SAFETY: the header's promises.
    unsafe { &mut *spawn }.new_session();
}

/// The process group.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sshoal_spawn_process_group(
    spawn: *mut Command,
    group: libc::pid_t,
) -> c_int {
    let Ok(group) = u32::try_from(group) else {
        return failed(libc::EINVAL);
    };
    // SAFETY: the header's promises.
    unsafe { &mut *spawn }.process_group(group);
    0
}

/// The mask for new files.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sshoal_spawn_umask(spawn: *mut Command, mask: libc::mode_t) {
    // SAFETY: the header's promises.
    unsafe { &mut *spawn }.umask(mask);
}

/// Every limit that Linux has.
const RESOURCES: [Resource; 16] = [
    Resource::Cpu,
    Resource::Fsize,
    Resource::Data,
    Resource::Stack,
    Resource::Core,
    Resource::Rss,
    Resource::Nproc,
    Resource::Nofile,
    Resource::Memlock,
    Resource::As,
    Resource::Locks,
    Resource::Sigpending,
    Resource::Msgqueue,
    Resource::Nice,
    Resource::Rtprio,
    Resource::Rttime,
];

/// A limit.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sshoal_spawn_limit(
    spawn: *mut Command,
    resource: c_int,
    limit: *const libc::rlimit,
) -> c_int {
    let known = RESOURCES
        .into_iter()
        .find(|known| *known as i64 == i64::from(resource));
    // SAFETY: the header's promises.
    let (Some(resource), Some(limit)) = (known, unsafe { limit.as_ref() }) else {
        return failed(libc::EINVAL);
    };
    let value = |value| (value != libc::RLIM_INFINITY).then_some(value);
    let limit = Rlimit {
        current: value(limit.rlim_cur),
        maximum: value(limit.rlim_max),
    };
    // SAFETY: the header's promises.
    unsafe { &mut *spawn }.limit(resource, limit);
    0
}

/// The signal mask.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sshoal_spawn_signal_mask(
    spawn: *mut Command,
    mask: *const libc::sigset_t,
) {
    // SAFETY: the header's promises.
    let mask = (!mask.is_null()).then(|| unsafe { signals(mask) });
    // SAFETY: the header's promises.
    unsafe { &mut *spawn }.signal_mask(mask);
}

/// Signals with their default disposition.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sshoal_spawn_default_signals(
    spawn: *mut Command,
    set: *const libc::sigset_t,
) {
    // SAFETY: the header's promises.
    unsafe { (*spawn).default_signals(signals(set)) };
}

/// Signals that are ignored.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sshoal_spawn_ignore_signals(
    spawn: *mut Command,
    set: *const libc::sigset_t,
) {
    // SAFETY: the header's promises.
    unsafe { (*spawn).ignore_signals(signals(set)) };
}

/// The user.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sshoal_spawn_user(spawn: *mut Command, user: libc::uid_t) {
    // SAFETY: the header's promises.
    unsafe { &mut *spawn }.user(user);
}

/// The group.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sshoal_spawn_group(spawn: *mut Command, group: libc::gid_t) {
    // SAFETY: the header's promises.
    unsafe { &mut *spawn }.group(group);
}

/// The supplementary groups.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sshoal_spawn_groups(
    spawn: *mut Command,
    count: usize,
    groups: *const libc::gid_t,
) {
    let groups = match count {
        0 => Vec::new(),
        // SAFETY: the header's promises: as many as `count` says.
        _ => unsafe { std::slice::from_raw_parts(groups, count) }.to_vec(),
    };
    // SAFETY: the header's promises.
    unsafe { &mut *spawn }.groups(groups);
}

/// Makes the process's descriptor with the process.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sshoal_spawn_with_pidfd(spawn: *mut Command) {
    // SAFETY: the header's promises.
    unsafe { &mut *spawn }.with_pidfd();
}

/// How the process is made; the values are those of `enum sshoal_method`.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sshoal_spawn_method(spawn: *mut Command, method: c_int) -> c_int {
    let method = match method {
        0 => Method::Automatic,
        1 => Method::Clone,
        2 => Method::Fork,
        3 => Method::PosixSpawn,
        _ => return failed(libc::EINVAL),
    };
    // SAFETY: the header's promises.
    unsafe { &mut *spawn }.method(method);
    0
}

/// Starts the program.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sshoal_spawn_start(
    spawn: *const Command,
    step: *mut *const c_char,
) -> *mut Child {
    // SAFETY: the header's promises.
    match unsafe { &*spawn }.spawn() {
        Ok(child) => Box::into_raw(Box::new(child)),
        Err(error) => {
            // SAFETY: the header's promises: NULL, or a place for a pointer.
            if let Some(step) = unsafe { step.as_mut() } {
                *step = error.step().words().as_ptr();
            }
            none(error.errno())
        }
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// sshoal_process

/// Its number.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sshoal_process_pid(process: *const Child) -> libc::pid_t {
    // SAFETY: the header's promises.
    unsafe { &*process }.id() as libc::pid_t
}

/// The descriptor that stands for it, or -1.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sshoal_process_pidfd(process: *const Child) -> c_int {
    // SAFETY: the header's promises.
    match unsafe { &*process }.pidfd() {
        Ok(pidfd) => pidfd.as_raw_fd(),
        Err(error) => failed(errno_of(&error)),
    }
}

/// Our end of a pipe.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sshoal_process_take(process: *mut Child, number: c_int) -> c_int {
    // SAFETY: the header's promises.
    let child = unsafe { &mut *process };
    let end: Option<OwnedFd> = match number {
        0 => child.stdin.take().map(OwnedFd::from),
        1 => child.stdout.take().map(OwnedFd::from),
        2 => child.stderr.take().map(OwnedFd::from),
        _ => None,
    };
    end.map_or_else(|| failed(libc::EBADF), IntoRawFd::into_raw_fd)
}

/// Waits for its end.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sshoal_process_wait(process: *mut Child, status: *mut c_int) -> c_int {
    // SAFETY: the header's promises.
    let ended = unsafe { &mut *process }.wait();
    // SAFETY: the header's promises.
    answer(ended.map(|ended| unsafe { tell(status, ended) }))
}

/// Sees whether it has ended.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sshoal_process_try_wait(process: *mut Child, status: *mut c_int) -> c_int {
    // SAFETY: the header's promises.
    match unsafe { &mut *process }.try_wait() {
        Ok(Some(ended)) => {
            // SAFETY: the header's promises.
            unsafe { tell(status, ended) };
            1
        }
        Ok(None) => 0,
        Err(error) => failed(errno_of(&error)),
    }
}

/// # Safety
/// `place` is NULL or may be written to.
unsafe fn tell(place: *mut c_int, ended: ExitStatus) {
    // SAFETY: the caller's promise.
    if let Some(place) = unsafe { place.as_mut() } {
        *place = ended.into_raw();
    }
}

/// Sends it a signal.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sshoal_process_signal(process: *const Child, signal: c_int) -> c_int {
    if !(1..=64).contains(&signal) {
        return failed(libc::EINVAL);
    }
    // SAFETY: the number is one of Linux's signals. Those that libc keeps for itself are sent as kill(2) would.
    let signal = unsafe { Signal::from_raw_unchecked(signal) };
    // SAFETY: the header's promises.
    answer(unsafe { &*process }.signal(signal))
}

/// Ends what `sshoal_spawn_start` gave.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sshoal_process_free(process: *mut Child) {
    if !process.is_null() {
        // SAFETY: it came from `sshoal_spawn_start`, and is not used again.
        drop(unsafe { Box::from_raw(process) });
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// popen and pclose

/// The children of open streams, by the stream's address.
static STREAMS: Mutex<BTreeMap<usize, Child>> = Mutex::new(BTreeMap::new());

fn streams() -> MutexGuard<'static, BTreeMap<usize, Child>> {
    STREAMS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// popen(3) with arguments.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sshoal_popen(
    file: *const c_char,
    argv: *const *const c_char,
    kind: *const c_char,
) -> *mut FILE {
    // SAFETY: the header's promises.
    let (file, argv, kind) = unsafe { (text(file), texts(argv), text(kind)) };
    let direction = kind.and_then(|kind| Direction::parse(kind.as_bytes()));
    let (Some(file), Some(argv), Some(direction)) = (file, argv, direction) else {
        return none(libc::EINVAL);
    };
    let mut command = noshell::like_popen(file, &argv);
    match direction {
        Direction::Read => command.stdout(Stdio::pipe()),
        Direction::Write => command.stdin(Stdio::pipe()),
    };
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return none(SpawnError::errno(&error)),
    };
    let stream = stream(end_of(&mut child, direction), direction);
    if stream.is_null() {
        give_up(child);
    } else {
        streams().insert(stream.addr(), child);
    }
    stream
}

/// pclose(3).
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sshoal_pclose(stream: *mut FILE) -> c_int {
    let child = streams().remove(&stream.addr());
    let Some(mut child) = child else {
        return failed(libc::ECHILD);
    };
    // SAFETY: `sshoal_popen` made it, and it was not closed: it was in the table.
    unsafe { libc::fclose(stream) };
    match child.wait() {
        Ok(ended) => ended.into_raw(),
        Err(error) => failed(errno_of(&error)),
    }
}

fn end_of(child: &mut Child, direction: Direction) -> Option<OwnedFd> {
    match direction {
        Direction::Read => child.stdout.take().map(OwnedFd::from),
        Direction::Write => child.stdin.take().map(OwnedFd::from),
    }
}

/// A stream of a descriptor; NULL with errno, and the descriptor closed, where there is no memory for it.
fn stream(end: Option<OwnedFd>, direction: Direction) -> *mut FILE {
    let Some(end) = end else {
        return none(libc::EBADF);
    };
    let mode = match direction {
        Direction::Read => c"r",
        Direction::Write => c"w",
    };
    // SAFETY: an open descriptor and a mode. The stream owns the descriptor only if there is one.
    let stream = unsafe { libc::fdopen(end.as_raw_fd(), mode.as_ptr()) };
    if !stream.is_null() {
        mem::forget(end);
        let_write(direction);
    }
    stream
}

/// Who is about to read would sleep until the program has written. If that waits for this very processor it goes first,
/// which spares both the sleep and the waking.
fn let_write(direction: Direction) {
    if direction == Direction::Read {
        thread::yield_now();
    }
}

/// Leaves no process behind that nobody could wait for. errno stays.
fn give_up(mut child: Child) {
    // SAFETY: libc gives each thread its own.
    let number = unsafe { *libc::__errno_location() };
    let _ = child.kill();
    let _ = child.wait();
    set_errno(number);
}

// ---------------------------------------------------------------------------------------------------------------------
// popen_noshell

/// `struct popen_noshell_pass_to_pclose`.
#[repr(C)]
pub struct PassToPclose {
    fp: *mut FILE,
    pid: libc::pid_t,
    /// NULL where there is no program, but a process that stands for it.
    process: *mut Child,
    reserved: *mut c_void,
}

/// popen_noshell.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn popen_noshell(
    file: *const c_char,
    argv: *const *const c_char,
    kind: *const c_char,
    pass: *mut PassToPclose,
    stderr_mode: c_int,
) -> *mut FILE {
    // SAFETY: the header's promises.
    let (Some(file), Some(argv), Some(kind)) = (unsafe { (text(file), texts(argv), text(kind)) })
    else {
        return none(libc::EINVAL);
    };
    // SAFETY: the header's promises.
    open(file, &argv, kind, unsafe { &mut *pass }, stderr_mode)
}

/// popen_noshell_compat.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn popen_noshell_compat(
    command: *const c_char,
    kind: *const c_char,
    pass: *mut PassToPclose,
) -> *mut FILE {
    // SAFETY: the header's promises.
    let (Some(command), Some(kind)) = (unsafe { (text(command), text(kind)) }) else {
        return none(libc::EINVAL);
    };
    let Some(words) = split::words(command.as_bytes()) else {
        return none(libc::EINVAL);
    };
    let words: Vec<&OsStr> = words.iter().map(|word| OsStr::from_bytes(word)).collect();
    // SAFETY: the header's promises.
    open(words[0], &words, kind, unsafe { &mut *pass }, 0)
}

fn open(
    file: &OsStr,
    argv: &[&OsStr],
    kind: &OsStr,
    pass: &mut PassToPclose,
    stderr_mode: c_int,
) -> *mut FILE {
    let Some(direction) = Direction::parse(kind.as_bytes()) else {
        return none(libc::EINVAL);
    };
    let (end, child, exit_status) = match noshell::open(file, argv, direction, stderr_mode) {
        Ok(Outcome::Started(mut child)) => (end_of(&mut child, direction), Some(child), 0),
        Ok(Outcome::Ended(end, exit_status)) => (Some(end), None, exit_status),
        Err(error) => return none(errno_of(&error)),
    };
    let stream = stream(end, direction);
    if stream.is_null() {
        child.into_iter().for_each(give_up);
        return stream;
    }
    let (pid, process) = match child {
        Some(child) => (child.id() as libc::pid_t, Box::into_raw(Box::new(child))),
        None => match ended_process(exit_status) {
            Ok(pid) => (pid, ptr::null_mut()),
            Err(error) => {
                // SAFETY: just opened, and nobody has it yet.
                unsafe { libc::fclose(stream) };
                return none(errno_of(&error));
            }
        },
    };
    *pass = PassToPclose {
        fp: stream,
        pid,
        process,
        reserved: ptr::null_mut(),
    };
    stream
}

/// What is left of a child that could not execute its program: a process that has ended, to be waited for or signalled by
/// its number, as callers of the original may do.
fn ended_process(exit_status: c_int) -> io::Result<libc::pid_t> {
    extern "C" fn end(exit_status: *mut c_void) -> c_int {
        exit_status.addr() as c_int
    }
    // 16 KiB, aligned to 16 bytes.
    let mut stack = mem::MaybeUninit::<[u128; 1024]>::uninit();
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: the child has a stack of its own in this frame, which stays, because the caller sleeps until the child has
    // ended (CLONE_VFORK). It returns a number and runs no handler: signals are blocked. The sets are initialised by libc.
    unsafe {
        let (mut all, mut before) = (mem::zeroed(), mem::zeroed());
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let top = stack.as_mut_ptr().add(1).cast();
        let argument = ptr::without_provenance_mut(exit_status as usize);
        let pid = libc::clone(end, top, flags, argument);
        let error = io::Error::last_os_error();
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, ptr::null_mut());
        if pid < 0 { Err(error) } else { Ok(pid) }
    }
}

/// waitpid(2), whatever signals come.
fn wait_for(pid: libc::pid_t) -> io::Result<c_int> {
    let mut status = 0;
    loop {
        // SAFETY: the kernel writes one number.
        if unsafe { libc::waitpid(pid, &mut status, 0) } == pid {
            return Ok(status);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// pclose_noshell.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pclose_noshell(pass: *mut PassToPclose) -> c_int {
    // SAFETY: the header's promises: what `popen_noshell` filled in, once.
    let pass = unsafe { &mut *pass };
    // SAFETY: `popen_noshell` made the stream.
    let closed = unsafe { libc::fclose(pass.fp) };
    let close_error = io::Error::last_os_error();
    let status = match pass.process.is_null() {
        true => wait_for(pass.pid),
        // SAFETY: `open` made it from a Box.
        false => unsafe { Box::from_raw(mem::replace(&mut pass.process, ptr::null_mut())) }
            .wait()
            .map(ExitStatusExt::into_raw),
    };
    match status {
        Ok(status) if closed == 0 => status,
        Ok(_) => failed(errno_of(&close_error)),
        Err(error) => failed(errno_of(&error)),
    }
}

/// `POPEN_NOSHELL_STACK_SIZE`.
const VMFORK_STACK_BYTES: usize = 8 * 1024 * 1024;

/// popen_noshell_vmfork: the caller's function, in the caller's memory, on a stack that the caller frees.
///
/// # Safety
/// See the header: the function must do no more than a child of vfork(2) may.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn popen_noshell_vmfork(
    function: extern "C" fn(*mut c_void) -> c_int,
    argument: *mut c_void,
    memory: *mut *mut c_void,
) -> libc::pid_t {
    // SAFETY: malloc's memory, because the caller is to free it. The stack begins at its end, aligned down to 16 bytes.
    // The caller sleeps until the child has executed or ended (CLONE_VFORK), so neither is freed too early.
    unsafe {
        let stack = libc::malloc(VMFORK_STACK_BYTES);
        if stack.is_null() {
            return -1;
        }
        *memory = stack;
        let top = stack.byte_add(VMFORK_STACK_BYTES);
        let top = top.byte_sub(top.addr() % 16);
        libc::clone(function, top, libc::CLONE_VM | libc::CLONE_VFORK, argument)
    }
}

/// popen_noshell_set_fork_mode.
#[unsafe(no_mangle)]
pub extern "C" fn popen_noshell_set_fork_mode(mode: c_int) {
    noshell::set_fork_mode(mode);
}

/// popen_noshell_get_fork_mode.
#[unsafe(no_mangle)]
pub extern "C" fn popen_noshell_get_fork_mode() -> c_int {
    noshell::fork_mode()
}
