//! The boundary: popen, pclose, fclose and system as C knows them. All unsafe code of this crate, and nothing else.
//!
//! The functions stand before libc's, by LD_PRELOAD, so each call of the program's and of its libraries' arrives here. Each
//! trusts its caller as far as the C standard and POSIX say: strings end with a NUL, streams are open. No panic leaves
//! them: one in an `extern "C"` function, or in `streams::inside`, ends the program.
//!
//! **Cancellation.** popen and pclose are none of the points where a thread is cancelled: it is disabled in them. system
//! must be one. It is cancelled in waitpid(2), and unwound from there: so `system` and what it calls around that have
//! nothing to drop, are `extern "C-unwind"`, and what is to be undone is told to libc's own list of such things.

#![allow(unsafe_code)]

use std::cell::{Cell, UnsafeCell};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::io;
use std::mem::{self, MaybeUninit};
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::ptr;
use std::sync::{Mutex, MutexGuard, Once, OnceLock, PoisonError};
use std::thread;

use libc::{FILE, pid_t, sigaction, sigset_t};
use spawn::{Child, Signal, SignalSet, SpawnError, Step};

use crate::start::{self, Direction, Setting};
use crate::streams::{self, Stream};
use crate::surroundings::{self, Surroundings};

/// `W_EXITCODE(127, 0)`: what a shell that could not be executed would have ended with.
const NO_SHELL: c_int = 127 << 8;

/// pthread_cleanup_push(3) as libc has it: in glibc `struct _pthread_cleanup_buffer`.
#[repr(C)]
struct Cleanup {
    routine: unsafe extern "C" fn(*mut c_void),
    argument: *mut c_void,
    kind: c_int,
    previous: *mut c_void,
}

unsafe extern "C" {
    /// environ(7).
    static environ: *const *const c_char;
    fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
    fn _pthread_cleanup_push(
        buffer: *mut Cleanup,
        routine: unsafe extern "C" fn(*mut c_void),
        argument: *mut c_void,
    );
    fn _pthread_cleanup_pop(buffer: *mut Cleanup, execute: c_int);
}

unsafe extern "C-unwind" {
    /// The same function, declared as one that a cancelled thread is unwound from.
    #[link_name = "waitpid"]
    fn cancellable_waitpid(pid: pid_t, status: *mut c_int, options: c_int) -> pid_t;
}

const CANCEL_DISABLE: c_int = 1;

/// Sets whether this thread may be cancelled. Returns what it was.
fn set_cancellation(state: c_int) -> c_int {
    let mut old = 0;
    // SAFETY: a state of this thread's, and a place for the old one.
    unsafe { pthread_setcancelstate(state, &mut old) };
    old
}

fn set_errno(number: c_int) {
    // SAFETY: libc gives each thread its own.
    unsafe { *libc::__errno_location() = number };
}

fn failed(number: c_int) -> c_int {
    set_errno(number);
    -1
}

fn errno() -> c_int {
    // SAFETY: libc gives each thread its own.
    unsafe { *libc::__errno_location() }
}

fn none<T>(number: c_int) -> *mut T {
    set_errno(number);
    ptr::null_mut()
}

fn errno_of(error: &io::Error) -> c_int {
    error.raw_os_error().unwrap_or(libc::EIO)
}

// ---------------------------------------------------------------------------------------------------------------------
// The environment, and libc's own functions

/// Reads the environment, as far as it matters.
///
/// # Safety
/// No other thread may change it meanwhile: so it is for popen(3) and system(3), which hand it on.
unsafe fn surroundings<'a>() -> Option<Surroundings<'a>> {
    // SAFETY: the caller's promise: an array of strings that ends with a null pointer, or none at all.
    let variables = (0..).map_while(|at| unsafe {
        let entry = if environ.is_null() {
            ptr::null()
        } else {
            *environ.add(at)
        };
        (!entry.is_null()).then(|| CStr::from_ptr(entry).to_bytes())
    });
    surroundings::read(variables)
}

type Close = unsafe extern "C" fn(*mut FILE) -> c_int;

/// The function of that name behind ours.
fn behind(name: &CStr) -> Option<Close> {
    // SAFETY: both functions that are asked for have this form; NULL is None.
    unsafe {
        mem::transmute::<*mut c_void, Option<Close>>(libc::dlsym(libc::RTLD_NEXT, name.as_ptr()))
    }
}

/// Closes a stream by libc.
///
/// # Safety
/// It must be open, and is not afterwards.
unsafe fn close_by(function: &OnceLock<Option<Close>>, name: &CStr, stream: *mut FILE) -> c_int {
    match function.get_or_init(|| behind(name)) {
        // SAFETY: the caller's promise.
        Some(close) => unsafe { close(stream) },
        None => failed(libc::ENOSYS),
    }
}

static FCLOSE: OnceLock<Option<Close>> = OnceLock::new();
static PCLOSE: OnceLock<Option<Close>> = OnceLock::new();

/// Once: what is locked here is free in a child that another thread forks.
fn prepare_for_forks() {
    extern "C" fn before() {
        // Were this a signal handler's fork, within one of our functions, it would wait for itself.
        if !streams::is_inside() {
            streams::hold();
            let _ = HELD.try_with(|held| held.set(Some(ignoring())));
        }
    }
    extern "C" fn in_parent() {
        let _ = HELD.try_with(Cell::take);
        streams::release();
    }
    extern "C" fn in_child() {
        // The threads that waited are not here.
        let held = HELD.try_with(Cell::take);
        if let Ok(Some(mut ignoring)) = held {
            ignoring.waiting = 0;
        }
        streams::release();
    }
    static ONCE: Once = Once::new();
    // SAFETY: the handlers are functions of this library, which is never unloaded. Without memory for them popen is what
    // it would be without them.
    ONCE.call_once(|| unsafe {
        libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child));
    });
}

// ---------------------------------------------------------------------------------------------------------------------
// popen, pclose, fclose

/// popen(3)'s `type`: which way, and whether the stream is close-on-exec. Read as glibc reads it.
fn mode(kind: &[u8]) -> Option<(Direction, bool)> {
    if kind.iter().any(|byte| !b"rwe".contains(byte)) {
        return None;
    }
    let direction = match (kind.contains(&b'r'), kind.contains(&b'w')) {
        (true, false) => Direction::Read,
        (false, true) => Direction::Write,
        _ => return None,
    };
    Some((direction, kind.contains(&b'e')))
}

/// popen(3).
///
/// # Safety
/// Two strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn popen(line: *const c_char, kind: *const c_char) -> *mut FILE {
    // SAFETY: the caller's promise.
    let (line, kind) = unsafe { (CStr::from_ptr(line), CStr::from_ptr(kind)) };
    let Some((direction, close_on_exec)) = mode(kind.to_bytes()) else {
        return none(libc::EINVAL);
    };
    let (number, cancellation) = (errno(), set_cancellation(CANCEL_DISABLE));
    prepare_for_forks();
    let stream = streams::inside(|| open(line.to_bytes(), direction, !close_on_exec));
    set_cancellation(cancellation);
    if !stream.is_null() {
        set_errno(number);
    }
    stream
}

fn open(line: &[u8], direction: Direction, inheritable: bool) -> *mut FILE {
    let setting = Setting {
        stream: Some(direction),
        mask: signal_mask(),
        default_signals: SignalSet::EMPTY,
        withheld: Some(&streams::WITHHELD),
    };
    // SAFETY: as POSIX has it for popen.
    let started = start::start(line, unsafe { surroundings() }, &setting);
    let mut started = match started {
        Ok(started) => started,
        Err(error) => return none(errno_of_popen(&error)),
    };
    let (end, mode) = match direction {
        Direction::Read => (started.child.stdout.take().map(OwnedFd::from), c"r"),
        Direction::Write => (started.child.stdin.take().map(OwnedFd::from), c"w"),
    };
    let Some(end) = end else {
        return none(libc::EBADF);
    };
    // SAFETY: an open descriptor and a mode. The stream owns the descriptor only if there is one.
    let stream = unsafe { libc::fdopen(end.as_raw_fd(), mode.as_ptr()) };
    if stream.is_null() {
        give_up(started.child);
        return stream;
    }
    let descriptor = end.into_raw_fd();
    let remembered = Stream {
        started,
        descriptor,
        inheritable,
    };
    streams::insert(stream.addr(), remembered, |descriptor| {
        set_close_on_exec(descriptor, false)
    });
    if direction == Direction::Read {
        // The caller would sleep until the program has written. If that waits for this very processor it goes first,
        // which spares both the sleep and the waking.
        thread::yield_now();
    }
    stream
}

/// glibc says ENOMEM of whatever keeps it from starting a process (iopopen.c); of the pipe it says what was wrong.
fn errno_of_popen(error: &SpawnError) -> c_int {
    match error.step() {
        Step::Stdin | Step::Stdout => error.errno(),
        _ => libc::ENOMEM,
    }
}

/// This thread's.
fn signal_mask() -> SignalSet {
    // SAFETY: a set of zeros, which pthread_sigmask fills in.
    let mask = unsafe {
        let mut mask = mem::zeroed::<sigset_t>();
        libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), &mut mask);
        mask
    };
    in_kernel_form(&mask)
}

fn in_kernel_form(mask: &sigset_t) -> SignalSet {
    // SAFETY: a set that pthread_sigmask filled in; a number that libc does not know is answered with -1.
    let is_in = |number: &c_int| unsafe { libc::sigismember(mask, *number) } == 1;
    let bits = (1..=64).filter(is_in);
    SignalSet::from_bits(bits.fold(0, |bits, number| bits | 1 << (number - 1)))
}

fn set_close_on_exec(descriptor: RawFd, set: bool) {
    let flags = if set { libc::FD_CLOEXEC } else { 0 };
    // SAFETY: a flag of a descriptor that belongs to one of our streams.
    unsafe { libc::fcntl(descriptor, libc::F_SETFD, flags) };
}

/// Leaves no process behind that nobody could wait for. errno stays.
fn give_up(mut child: Child) {
    let number = errno();
    let _ = child.kill();
    let _ = child.wait();
    set_errno(number);
}

/// pclose(3).
///
/// # Safety
/// An open stream.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pclose(stream: *mut FILE) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { close(stream).unwrap_or_else(|| close_by(&PCLOSE, c"pclose", stream)) }
}

/// fclose(3): with libc's popen it waits for the process as pclose does, so with ours.
///
/// # Safety
/// An open stream.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fclose(stream: *mut FILE) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { close(stream).unwrap_or_else(|| close_by(&FCLOSE, c"fclose", stream)) }
}

/// Closes one of our streams; none if it is not.
///
/// # Safety
/// An open stream.
unsafe fn close(stream: *mut FILE) -> Option<c_int> {
    let close_up = |descriptor| set_close_on_exec(descriptor, true);
    let mut ours = streams::inside(|| streams::remove(stream.addr(), close_up))?;
    let (number, cancellation) = (errno(), set_cancellation(CANCEL_DISABLE));
    // SAFETY: the caller's promise.
    let closed = unsafe { close_by(&FCLOSE, c"fclose", stream) };
    let number = if closed == 0 { number } else { errno() };
    let ended = ours.started.child.wait();
    let skipped = ours.started.skipped;
    let answer = match ended {
        // As glibc has it: the status, and if that is 0, whether everything could be written.
        Ok(ended) if ended.success() => closed,
        Ok(ended) if skipped => start::as_behind_a_shell(ended),
        Ok(ended) => ended.into_raw(),
        Err(error) => {
            set_cancellation(cancellation);
            return Some(failed(errno_of(&error)));
        }
    };
    set_cancellation(cancellation);
    set_errno(number);
    Some(answer)
}

// ---------------------------------------------------------------------------------------------------------------------
// system

/// The signals that a program ignores while it waits in system(3), with what they did before.
struct Ignoring {
    /// How many threads wait. The first one begins to ignore, the last one ends it.
    waiting: usize,
    before: [MaybeUninit<sigaction>; 2],
}

const IGNORED: [(c_int, Signal); 2] = [(libc::SIGINT, Signal::INT), (libc::SIGQUIT, Signal::QUIT)];

static IGNORING: Mutex<Ignoring> = Mutex::new(Ignoring {
    waiting: 0,
    before: [MaybeUninit::uninit(); 2],
});

thread_local! {
    /// Held by a thread that forks.
    static HELD: Cell<Option<MutexGuard<'static, Ignoring>>> = const { Cell::new(None) };
}

fn ignoring() -> MutexGuard<'static, Ignoring> {
    IGNORING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Begins to ignore SIGINT and SIGQUIT, or joins in. Returns those of them that the program did not ignore before: its
/// children are not to ignore them either.
fn begin_to_ignore() -> SignalSet {
    let mut ignoring = ignoring();
    let mut noticed = SignalSet::EMPTY;
    let joins = ignoring.waiting > 0;
    ignoring.waiting += 1;
    for ((number, signal), before) in IGNORED.into_iter().zip(&mut ignoring.before) {
        if !joins {
            // SAFETY: zeros are a sigaction that does nothing but what its first field says; the old one has a place.
            unsafe {
                let mut ignore = mem::zeroed::<sigaction>();
                ignore.sa_sigaction = libc::SIG_IGN;
                libc::sigaction(number, &ignore, before.as_mut_ptr());
            }
        }
        // SAFETY: the first who waits filled it in.
        if unsafe { before.assume_init_ref() }.sa_sigaction != libc::SIG_IGN {
            noticed = noticed.with(signal);
        }
    }
    noticed
}

fn end_to_ignore() {
    let mut ignoring = ignoring();
    // None wait where a signal handler has forked and its child came back here.
    let Some(left) = ignoring.waiting.checked_sub(1) else {
        return;
    };
    ignoring.waiting = left;
    if left == 0 {
        for ((number, _), before) in IGNORED.into_iter().zip(&ignoring.before) {
            // SAFETY: what sigaction gave when ignoring began.
            unsafe { libc::sigaction(number, before.as_ptr(), ptr::null_mut()) };
        }
    }
}

/// A command that system(3) waits for. Nothing in it needs to be dropped.
#[derive(Clone, Copy)]
struct Running {
    pid: pid_t,
    /// There is no shell between it and us.
    skipped: bool,
    /// The thread's signal mask before.
    mask: sigset_t,
}

/// Starts the command of a line, with signals as they are to be while it runs. Err: what system(3) is to answer.
fn begin(line: &[u8]) -> Result<Running, c_int> {
    prepare_for_forks();
    let noticed = begin_to_ignore();
    let mask = block_child_signal();
    let setting = Setting {
        stream: None,
        mask: in_kernel_form(&mask),
        default_signals: noticed,
        withheld: None,
    };
    // SAFETY: as POSIX has it for system.
    match start::start(line, unsafe { surroundings() }, &setting) {
        Ok(started) => Ok(Running {
            pid: started.child.id() as pid_t,
            skipped: started.skipped,
            mask,
        }),
        Err(error) => {
            end(&mask);
            set_errno(error.errno());
            Err(if start::is_about_the_program(&error) {
                NO_SHELL
            } else {
                -1
            })
        }
    }
}

/// Gives the program its signals back.
fn end(mask: &sigset_t) {
    end_to_ignore();
    // SAFETY: a mask that was this thread's before.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, ptr::null_mut()) };
}

/// Blocks SIGCHLD in this thread. Returns the mask before.
fn block_child_signal() -> sigset_t {
    // SAFETY: sets that sigemptyset has made, filled in by sigaddset and by pthread_sigmask.
    unsafe {
        let mut child = mem::zeroed::<sigset_t>();
        let mut before = mem::zeroed::<sigset_t>();
        libc::sigemptyset(&mut child);
        libc::sigaddset(&mut child, libc::SIGCHLD);
        libc::pthread_sigmask(libc::SIG_BLOCK, &child, &mut before);
        before
    }
}

/// A cancelled thread leaves no command behind, and no signal ignored.
unsafe extern "C" fn abandon(running: *mut c_void) {
    // SAFETY: `wait_for` gave it, whose frame is still there: it is being unwound.
    let Running { pid, mask, .. } = unsafe { *running.cast::<Running>() };
    let mut status = 0;
    // SAFETY: a child that nobody has waited for; a place for its status.
    unsafe {
        libc::kill(pid, libc::SIGKILL);
        while libc::waitpid(pid, &mut status, 0) < 0 && errno() == libc::EINTR {}
    }
    streams::inside(|| end(&mask));
}

/// Waits for the command's end, as a point where this thread may be cancelled. There is nothing to drop in it.
extern "C-unwind" fn wait_for(running: &UnsafeCell<Running>, cancellation: c_int) -> c_int {
    let mut cleanup = MaybeUninit::<Cleanup>::uninit();
    let mut status: c_int = -1;
    // SAFETY: the list of what is to be undone is libc's, and this frame is there until it is off the list. If the thread
    // is cancelled in waitpid, `abandon` is called and this frame is unwound, which has nothing to drop.
    unsafe {
        let pid = (*running.get()).pid;
        _pthread_cleanup_push(cleanup.as_mut_ptr(), abandon, running.get().cast());
        pthread_setcancelstate(cancellation, ptr::null_mut());
        while cancellable_waitpid(pid, &mut status, 0) < 0 {
            if errno() != libc::EINTR {
                status = -1;
                break;
            }
        }
        pthread_setcancelstate(CANCEL_DISABLE, ptr::null_mut());
        _pthread_cleanup_pop(cleanup.as_mut_ptr(), 0);
    }
    status
}

/// system(3).
///
/// # Safety
/// A string, or NULL to ask whether there is a shell.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn system(line: *const c_char) -> c_int {
    let asks = line.is_null();
    let text = if asks { c"exit 0".as_ptr() } else { line };
    let (number, cancellation) = (errno(), set_cancellation(CANCEL_DISABLE));
    // SAFETY: the caller's promise.
    let begun = streams::inside(|| begin(unsafe { CStr::from_ptr(text) }.to_bytes()));
    let status = match begun {
        Ok(running) => {
            let place = UnsafeCell::new(running);
            let status = wait_for(&place, cancellation);
            let number = if status == -1 { errno() } else { number };
            let status = if running.skipped && status != -1 {
                streams::inside(|| start::as_behind_a_shell(ExitStatus::from_raw(status)))
            } else {
                status
            };
            streams::inside(|| end(&running.mask));
            // Lua takes an errno for a failure.
            set_errno(number);
            status
        }
        Err(answer) => answer,
    };
    set_cancellation(cancellation);
    if asks {
        c_int::from(status == 0)
    } else {
        status
    }
}
