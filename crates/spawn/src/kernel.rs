//! All unsafe code of this crate: raw system calls, the child's stack, the child's birth, posix_spawn. Longer than other
//! files, so that it is one.
//!
//! Why there must be any: Rust cannot express a process that runs in its parent's memory. The reasons why it is sound,
//! in one place; each block below says which of them it rests on.
//!
//! 1. **The caller sleeps.** With `CLONE_VFORK` the thread that called does not return from the system call until the
//!    child has executed a program or ended. All that the child reads (a [`Plan`], strings) is borrowed by that thread,
//!    so it lives that long. All that the child writes is [`Report`], made of atomics, and its own stack.
//! 2. **The child has its own stack**, so it cannot disturb the frames of the caller. Below it lies a guard that no one
//!    may touch: a child that used too much would die, not overwrite.
//! 3. **The child never returns** and never unwinds: [`enter_child`] ends in execve or exit_group, and the functions it
//!    calls neither panic nor allocate. The shadow stack that it shares with the caller under CET is only pushed to, and
//!    the caller's position in it is its own. No indirect branch leads into the child: it is reached by a direct call.
//! 4. **Nothing of libc runs in the child**, neither its wrappers (they would write the caller's `errno`) nor its
//!    handlers: all signals are blocked from before the clone until the child has no handlers left. Nor may a signal's
//!    default come first: before Linux 5.16 a process that dumps core takes all with it that share its memory.
//! 5. **Other threads go on**, and that harms nobody: they cannot reach the Plan, and the child takes no lock.
//! 6. **No identity is changed while memory is shared.** setresuid in such a child would make its parent undumpable and
//!    change who may signal it, so that path copies memory (`Memory::Copied`).

#![allow(unsafe_code)]

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_long};
use std::mem;
#[cfg(feature = "tokio")]
use std::os::fd::BorrowedFd;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions};

use crate::error::{AtStep, Failure, Step};
use crate::signals::SignalSet;
use crate::steps::{self, Plan};
use crate::strings::Pointers;
use crate::wiring::Move;

/// A process that has executed its program.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) pid: Pid,
    /// Only where the plan asks for it, and not before Linux 5.2.
    pub(crate) pidfd: Option<OwnedFd>,
}

/// Whether the child borrows the caller's memory until it executes its program, or gets a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Memory {
    Shared,
    Copied,
}

/// The variables of the program: the caller's as they are, or others.
#[derive(Debug)]
pub(crate) enum Environment<'a> {
    Callers,
    Own(Pointers<'a>),
}

unsafe extern "C" {
    /// environ(7).
    static environ: *const *const c_char;
}

impl Environment<'_> {
    fn as_ptr(&self) -> *const *const c_char {
        match self {
            // SAFETY: the pointer is read, not what it points to: that is for the kernel, which answers EFAULT where
            // there is no memory. Changing variables while other threads run is the one who changes them's to answer
            // for (`std::env::set_var`).
            Environment::Callers => unsafe { environ },
            Environment::Own(pointers) => pointers.as_ptr(),
        }
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// Raw system calls

#[cfg(all(target_arch = "x86_64", target_pointer_width = "64"))]
mod machine {
    use super::*;
    use std::arch::asm;

    /// A system call. The answer is the kernel's: a negative error number, or a value.
    ///
    /// # Safety
    /// What the call does with its arguments must be sound.
    #[inline]
    pub(super) unsafe fn call(number: c_long, arguments: [usize; 6]) -> isize {
        let [first, second, third, fourth, fifth, sixth] = arguments;
        let answer: isize;
        // SAFETY: the x86-64 convention of system calls: rcx and r11 are lost, everything else is kept.
        unsafe {
            asm!(
                "syscall",
                inlateout("rax") number as isize => answer,
                in("rdi") first,
                in("rsi") second,
                in("rdx") third,
                in("r10") fourth,
                in("r8") fifth,
                in("r9") sixth,
                lateout("rcx") _,
                lateout("r11") _,
                options(nostack),
            );
        }
        answer
    }

    /// clone3(2) or clone(2), whose child calls [`enter_child`] with `birth` on the stack that the arguments name.
    ///
    /// # Safety
    /// The arguments must be of `number`'s form and give the child a stack of its own.
    pub(super) unsafe fn clone(
        number: c_long,
        arguments: [usize; 3],
        birth: *const Birth,
    ) -> isize {
        let [first, second, third] = arguments;
        let answer: isize;
        // SAFETY: as in `call` for the caller. The child has the same registers but for rax and rsp: it marks the end
        // of the frames, keeps the stack aligned to 16 bytes as it got it, and never comes back.
        unsafe {
            asm!(
                "syscall",
                "test rax, rax",
                "jnz 2f",
                "xor ebp, ebp",
                "mov rdi, r8",
                "call {enter_child}",
                "ud2",
                "2:",
                enter_child = sym enter_child,
                inlateout("rax") number as isize => answer,
                in("rdi") first,
                in("rsi") second,
                in("rdx") third,
                in("r8") birth,
                lateout("rcx") _,
                lateout("r11") _,
            );
        }
        answer
    }

    /// An instruction that ends the process.
    pub(super) fn trap() -> ! {
        // SAFETY: it does nothing else.
        unsafe { asm!("ud2", options(noreturn, nomem, nostack)) }
    }
}

#[cfg(target_arch = "aarch64")]
mod machine {
    use super::*;
    use std::arch::asm;

    /// A system call. The answer is the kernel's: a negative error number, or a value.
    ///
    /// # Safety
    /// What the call does with its arguments must be sound.
    #[inline]
    pub(super) unsafe fn call(number: c_long, arguments: [usize; 6]) -> isize {
        let [first, second, third, fourth, fifth, sixth] = arguments;
        let answer: isize;
        // SAFETY: the arm64 convention of system calls: only x0 is lost.
        unsafe {
            asm!(
                "svc 0",
                in("x8") number,
                inlateout("x0") first as isize => answer,
                in("x1") second,
                in("x2") third,
                in("x3") fourth,
                in("x4") fifth,
                in("x5") sixth,
                options(nostack),
            );
        }
        answer
    }

    /// clone3(2) or clone(2), whose child calls [`enter_child`] with `birth` on the stack that the arguments name.
    ///
    /// # Safety
    /// The arguments must be of `number`'s form and give the child a stack of its own.
    pub(super) unsafe fn clone(
        number: c_long,
        arguments: [usize; 3],
        birth: *const Birth,
    ) -> isize {
        let [first, second, third] = arguments;
        let answer: isize;
        // SAFETY: as in `call` for the caller. The child has the same registers but for x0 and sp: it marks the end of
        // the frames and never comes back.
        unsafe {
            asm!(
                "svc 0",
                "cbnz x0, 2f",
                "mov x29, xzr",
                "mov x30, xzr",
                "mov x0, x5",
                "bl {enter_child}",
                "brk #1",
                "2:",
                enter_child = sym enter_child,
                in("x8") number,
                inlateout("x0") first as isize => answer,
                in("x1") second,
                in("x2") third,
                in("x5") birth,
            );
        }
        answer
    }

    /// An instruction that ends the process.
    pub(super) fn trap() -> ! {
        // SAFETY: it does nothing else.
        unsafe { asm!("brk #1", options(noreturn, nomem, nostack)) }
    }
}

/// Elsewhere there is no clone of ours, and so no child that could make raw calls: posix_spawn(3) starts everything.
#[cfg(not(any(
    all(target_arch = "x86_64", target_pointer_width = "64"),
    target_arch = "aarch64"
)))]
mod machine {
    use super::*;

    /// A system call by libc. The answer is in the kernel's form.
    ///
    /// # Safety
    /// What the call does with its arguments must be sound.
    pub(super) unsafe fn call(number: c_long, [a, b, c, d, e, f]: [usize; 6]) -> isize {
        // SAFETY: the caller's promise.
        match unsafe { libc::syscall(number, a, b, c, d, e, f) } {
            -1 => {
                -(std::io::Error::last_os_error()
                    .raw_os_error()
                    .unwrap_or(libc::EIO) as isize)
            }
            value => value as isize,
        }
    }

    /// Says that it cannot.
    ///
    /// # Safety
    /// None is needed.
    pub(super) unsafe fn clone(_: c_long, _: [usize; 3], birth: *const Birth) -> isize {
        let _ = (birth, enter_child as extern "C" fn(*const Birth) -> !);
        -(libc::ENOSYS as isize)
    }

    /// Ends the process.
    pub(super) fn trap() -> ! {
        std::process::abort()
    }
}

/// The largest error number that a system call answers, negated.
const MAX_ERRNO: isize = 4095;

fn checked(answer: isize) -> Result<usize, Errno> {
    if (-MAX_ERRNO..0).contains(&answer) {
        Err(Errno::from_raw_os_error(answer.wrapping_neg() as i32))
    } else {
        Ok(answer as usize)
    }
}

/// A system call; arguments that are not given are zero.
///
/// # Safety
/// What the call does with its arguments must be sound.
#[inline]
unsafe fn system_call<const N: usize>(
    number: c_long,
    arguments: [usize; N],
) -> Result<usize, Errno> {
    let mut all = [0; 6];
    for (place, argument) in all.iter_mut().zip(arguments) {
        *place = argument;
    }
    // SAFETY: the caller's promise.
    checked(unsafe { machine::call(number, all) })
}

/// A system call whose arguments are numbers only. None of those used below can harm memory: they concern descriptors,
/// identities and limits of the process.
fn plain_call(number: c_long, arguments: [c_int; 3]) -> Result<usize, Errno> {
    // SAFETY: no argument is a pointer.
    unsafe { system_call(number, arguments.map(|argument| argument as usize)) }
}

// ---------------------------------------------------------------------------------------------------------------------
// The calls of the child, safe for `steps` to use

/// What a signal does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Disposition {
    Default,
    Ignore,
    Handler,
}

/// Of the kernel's sigaction, the handler comes first on every architecture; flags, restorer and mask are nothing here.
type KernelSigaction = [usize; 4];
const SIGNAL_SET_BYTES: usize = mem::size_of::<u64>();

pub(crate) fn disposition(signal: i32) -> Result<Disposition, Errno> {
    let mut action: KernelSigaction = [0; 4];
    let arguments = [
        signal as usize,
        0,
        (&raw mut action) as usize,
        SIGNAL_SET_BYTES,
    ];
    // SAFETY: the kernel writes at most four words into `action`.
    unsafe { system_call(libc::SYS_rt_sigaction, arguments) }?;
    let [handler, ..] = action;
    Ok(match handler {
        libc::SIG_DFL => Disposition::Default,
        libc::SIG_IGN => Disposition::Ignore,
        _ => Disposition::Handler,
    })
}

pub(crate) fn set_default(signal: i32) -> Result<(), Errno> {
    set_disposition(signal, libc::SIG_DFL)
}

pub(crate) fn ignore(signal: i32) -> Result<(), Errno> {
    set_disposition(signal, libc::SIG_IGN)
}

fn set_disposition(signal: i32, handler: usize) -> Result<(), Errno> {
    let action: KernelSigaction = [handler, 0, 0, 0];
    let arguments = [
        signal as usize,
        (&raw const action) as usize,
        0,
        SIGNAL_SET_BYTES,
    ];
    // SAFETY: the kernel reads at most four words of `action`. No handler is installed. Only the child calls this, whose
    // table of dispositions is its own (no CLONE_SIGHAND).
    unsafe { system_call(libc::SYS_rt_sigaction, arguments) }.map(drop)
}

pub(crate) fn set_signal_mask(mask: SignalSet) -> Result<(), Errno> {
    change_signal_mask(libc::SIG_SETMASK, mask).map(drop)
}

/// Returns what the mask was.
fn change_signal_mask(how: c_int, set: SignalSet) -> Result<SignalSet, Errno> {
    let (new, mut old) = (set.bits(), 0u64);
    let arguments = [
        how as usize,
        (&raw const new) as usize,
        (&raw mut old) as usize,
        SIGNAL_SET_BYTES,
    ];
    // SAFETY: the kernel reads one u64 and writes one. A mask concerns only the calling thread.
    unsafe { system_call(libc::SYS_rt_sigprocmask, arguments) }?;
    Ok(SignalSet::from_bits(old))
}

pub(crate) fn new_session() -> Result<(), Errno> {
    plain_call(libc::SYS_setsid, [0; 3]).map(drop)
}

/// `group` 0: a new one, with the child's own number.
pub(crate) fn enter_group(group: i32) -> Result<(), Errno> {
    plain_call(libc::SYS_setpgid, [0, group, 0]).map(drop)
}

/// Makes all descriptors from `first` on close-on-exec: Linux 5.11.
pub(crate) fn close_on_exec_from(first: RawFd) -> Result<(), Errno> {
    plain_call(
        libc::SYS_close_range,
        [first, c_int::MAX, libc::CLOSE_RANGE_CLOEXEC as c_int],
    )
    .map(drop)
}

pub(crate) fn set_descriptor_flags(descriptor: RawFd, flags: c_int) -> Result<(), Errno> {
    plain_call(libc::SYS_fcntl, [descriptor, libc::F_SETFD, flags]).map(drop)
}

/// dup3(2): `target` is not close-on-exec. The two must differ.
pub(crate) fn duplicate_onto(source: RawFd, target: RawFd) -> Result<(), Errno> {
    plain_call(libc::SYS_dup3, [source, target, 0]).map(drop)
}

/// A folder, opened to be listed; close-on-exec.
pub(crate) fn open_folder(path: &CStr) -> Result<RawFd, Errno> {
    let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
    let arguments = [
        libc::AT_FDCWD as usize,
        path.as_ptr() as usize,
        flags as usize,
    ];
    // SAFETY: the kernel reads a string that ends with a NUL.
    unsafe { system_call(libc::SYS_openat, arguments) }.map(|descriptor| descriptor as RawFd)
}

/// getdents64(2): how many bytes of entries are in `buffer`, 0 at the end.
pub(crate) fn read_folder(descriptor: RawFd, buffer: &mut [u8]) -> Result<usize, Errno> {
    let arguments = [
        descriptor as usize,
        buffer.as_mut_ptr() as usize,
        buffer.len(),
    ];
    // SAFETY: the kernel writes at most the buffer's length.
    unsafe { system_call(libc::SYS_getdents64, arguments) }
}

/// `values`: soft, hard.
pub(crate) fn set_limit(resource: u32, values: &[u64; 2]) -> Result<(), Errno> {
    let arguments = [0, resource as usize, values.as_ptr() as usize, 0, 0, 0];
    // SAFETY: the kernel reads two u64, of the calling process alone.
    unsafe { system_call(libc::SYS_prlimit64, arguments) }.map(drop)
}

pub(crate) fn set_umask(mask: u32) -> Result<(), Errno> {
    plain_call(libc::SYS_umask, [mask as c_int, 0, 0]).map(drop)
}

pub(crate) fn set_groups(groups: &[u32]) -> Result<(), Errno> {
    let arguments = [groups.len(), groups.as_ptr() as usize, 0, 0, 0, 0];
    // SAFETY: the kernel reads as many u32.
    unsafe { system_call(libc::SYS_setgroups, arguments) }.map(drop)
}

/// Real, effective and saved.
pub(crate) fn set_group(group: u32) -> Result<(), Errno> {
    plain_call(libc::SYS_setresgid, [group as c_int; 3]).map(drop)
}

/// Real, effective and saved.
pub(crate) fn set_user(user: u32) -> Result<(), Errno> {
    plain_call(libc::SYS_setresuid, [user as c_int; 3]).map(drop)
}

pub(crate) fn change_directory(path: &CStr) -> Result<(), Errno> {
    // SAFETY: the kernel reads a string that ends with a NUL.
    unsafe { system_call(libc::SYS_chdir, [path.as_ptr() as usize]) }.map(drop)
}

/// Returns only if it failed.
pub(crate) fn execute(path: &CStr, arguments: &Pointers, environment: &Environment) -> Errno {
    let arguments = [
        path.as_ptr() as usize,
        arguments.as_ptr() as usize,
        environment.as_ptr() as usize,
    ];
    // SAFETY: a string and two arrays that end with a null, which the kernel reads. On success nothing is left of the
    // code that called.
    match unsafe { system_call(libc::SYS_execve, arguments) } {
        Ok(_) => Errno::IO,
        Err(errno) => errno,
    }
}

/// Ends the process without running anything that was registered for its end. If a filter forbids both calls, an
/// illegal instruction ends it: its parent must not sleep for ever.
fn exit_now(status: c_int) -> ! {
    let _ = plain_call(libc::SYS_exit_group, [status, 0, 0]);
    let _ = plain_call(libc::SYS_exit, [status, 0, 0]);
    machine::trap()
}

/// A close-on-exec copy of a descriptor, numbered `least` or above. For the caller, not for the child.
pub(crate) fn duplicate_above(source: RawFd, least: RawFd) -> Result<OwnedFd, Errno> {
    let copy = plain_call(libc::SYS_fcntl, [source, libc::F_DUPFD_CLOEXEC, least])?;
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(copy as RawFd) })
}

// ---------------------------------------------------------------------------------------------------------------------
// The child's stack

/// What the child runs on. Its deepest need is the listing of /proc/self/fd, about 3 KiB.
const STACK_BYTES: usize = 64 * 1024;
/// Nobody may touch this much below it: a multiple of every page size there is.
const GUARD_BYTES: usize = 64 * 1024;

struct Stack {
    base: *mut libc::c_void,
}

thread_local! {
    /// The stack of the thread's last start, for the next one: making one costs as much as several system calls.
    static SPARE: Cell<Option<Stack>> = const { Cell::new(None) };
}

impl Stack {
    /// The spare one, or a new one.
    fn take() -> Result<Stack, Errno> {
        match SPARE.try_with(Cell::take) {
            Ok(Some(stack)) => Ok(stack),
            _ => Stack::map(),
        }
    }

    /// Keeps it for the thread's next start; where the thread is ending it goes at once.
    fn put_back(self) {
        let _ = SPARE.try_with(|spare| spare.set(Some(self)));
    }

    fn map() -> Result<Stack, Errno> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK;
        // SAFETY: a new mapping at an address of the kernel's choice harms nobody.
        let base = unsafe {
            libc::mmap(
                ptr::null_mut(),
                GUARD_BYTES + STACK_BYTES,
                libc::PROT_NONE,
                flags,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(last_errno());
        }
        let stack = Stack { base };
        // SAFETY: the upper part of the mapping that was just made and that nobody uses yet.
        let opened = unsafe {
            libc::mprotect(
                base.byte_add(GUARD_BYTES),
                STACK_BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
            )
        };
        if opened == 0 {
            Ok(stack)
        } else {
            Err(last_errno())
        }
    }

    /// The lowest address that the child may touch.
    fn bottom(&self) -> usize {
        self.base.addr() + GUARD_BYTES
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours alone, and no child runs on it: the one that did has executed or ended (reason 1).
        unsafe { libc::munmap(self.base, GUARD_BYTES + STACK_BYTES) };
    }
}

fn last_errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

// ---------------------------------------------------------------------------------------------------------------------
// The birth

/// What the child says before it ends: the step that failed and its error number. Zeros: nothing failed.
#[derive(Default)]
struct Report {
    step: AtomicI32,
    errno: AtomicI32,
}

impl Report {
    fn failure(&self) -> Option<Failure> {
        // Ordering: the kernel's switch from the child to the sleeping caller orders everything.
        let step = Step::from_number(self.step.load(Ordering::Relaxed))?;
        let errno = Errno::from_raw_os_error(self.errno.load(Ordering::Relaxed));
        Some(Failure { step, errno })
    }
}

/// All that the child is given.
pub(crate) struct Birth<'a> {
    plan: &'a Plan<'a>,
    /// The caller's handlers are still there, because this kernel could not clear them.
    handlers_remain: bool,
    report: &'a Report,
}

/// The first and last function of the child.
extern "C" fn enter_child(birth: *const Birth) -> ! {
    // SAFETY: `Place` gives a Birth that lives while the caller sleeps (reason 1), or a copy of it.
    let birth = unsafe { &*birth };
    let failure = steps::take(birth.plan, birth.handlers_remain);
    birth
        .report
        .errno
        .store(failure.errno.raw_os_error(), Ordering::Relaxed);
    birth
        .report
        .step
        .store(failure.step as i32, Ordering::Relaxed);
    exit_now(127)
}

/// Makes a process that follows the plan. Returns when it has executed its program, or failed and is gone.
pub(crate) fn start(plan: &Plan, memory: Memory) -> Result<Started, Failure> {
    match memory {
        Memory::Shared => start_with(plan, memory, &Report::default()),
        Memory::Copied => {
            let page = SharedPage::map().at(Step::ReportPage)?;
            start_with(plan, memory, page.report())
        }
    }
}

fn start_with(plan: &Plan, memory: Memory, report: &Report) -> Result<Started, Failure> {
    let stack = Stack::take().at(Step::Stack)?;
    let place = Place {
        plan,
        memory,
        stack: &stack,
        report,
    };
    let outcome = place.with_signals_blocked(|place| match place.by_clone3() {
        Err(errno) if is_missing(errno) => place.by_clone(),
        made => made,
    });
    stack.put_back();
    outcome
}

/// What a kernel or a filter answers that does not have a call, or this form of it.
fn is_missing(errno: Errno) -> bool {
    matches!(errno, Errno::NOSYS | Errno::PERM | Errno::INVAL)
}

/// A child that is ending leaves no zombie. Someone else in this program may have waited for it: then it is gone, too.
fn reap(started: &Started) {
    let _ = rustix::io::retry_on_intr(|| {
        rustix::process::waitid(WaitId::Pid(started.pid), WaitIdOptions::EXITED)
    });
}

/// The first form of clone3's argument: Linux 5.3.
#[repr(C)]
#[derive(Default)]
struct CloneArguments {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
}

/// Resets all handlers in the child: Linux 5.5.
const CLONE_CLEAR_SIGHAND: u64 = 0x1_0000_0000;

/// Where a child is born, and what it is given.
#[derive(Clone, Copy)]
struct Place<'a> {
    plan: &'a Plan<'a>,
    memory: Memory,
    stack: &'a Stack,
    report: &'a Report,
}

impl Place<'_> {
    /// Makes the child while this thread takes no signal, and the child none before its last step but one.
    fn with_signals_blocked(
        &self,
        make: impl FnOnce(&Self) -> Result<Started, Errno>,
    ) -> Result<Started, Failure> {
        let before = change_signal_mask(libc::SIG_BLOCK, SignalSet::ALL).at(Step::BlockSignals)?;
        let programs_mask = self.plan.mask.unwrap_or(before);
        self.plan.mask_before_exec.set(programs_mask);
        let outcome = self.judge(make(self));
        // Unblocking what was not blocked before is the same as giving the old mask back.
        let restored =
            change_signal_mask(libc::SIG_UNBLOCK, before.complement()).at(Step::RestoreSignals);
        match (outcome, restored) {
            (Ok(started), Err(failure)) => {
                let _ = rustix::process::kill_process(started.pid, rustix::process::Signal::KILL);
                reap(&started);
                Err(failure)
            }
            (outcome, _) => outcome,
        }
    }

    /// Asks a child that was made how far it came.
    fn judge(&self, made: Result<Started, Errno>) -> Result<Started, Failure> {
        let started = made.at(Step::Clone)?;
        match self.report.failure() {
            None => Ok(started),
            Some(failure) => {
                reap(&started);
                Err(failure)
            }
        }
    }

    fn flags(&self) -> u64 {
        let shared = match self.memory {
            Memory::Shared => libc::CLONE_VM,
            Memory::Copied => 0,
        };
        let described = if self.plan.pidfd {
            libc::CLONE_PIDFD
        } else {
            0
        };
        (libc::CLONE_VFORK | described | shared) as u64
    }

    /// A child without handlers.
    fn by_clone3(&self) -> Result<Started, Errno> {
        let mut pidfd: c_int = -1;
        let birth = self.birth(false);
        let arguments = CloneArguments {
            flags: self.flags() | CLONE_CLEAR_SIGHAND,
            pidfd: (&raw mut pidfd) as u64,
            exit_signal: libc::SIGCHLD as u64,
            stack: self.stack.bottom() as u64,
            stack_size: STACK_BYTES as u64,
            ..CloneArguments::default()
        };
        let words = [
            (&raw const arguments) as usize,
            mem::size_of::<CloneArguments>(),
            0,
        ];
        // SAFETY: reasons 1 to 5. The stack is this thread's alone and 16-byte aligned at its top.
        let answer = checked(unsafe { machine::clone(libc::SYS_clone3, words, &birth) });
        started(answer?, pidfd)
    }

    /// The child has its caller's handlers. They cannot run, because signals are blocked until `steps` has reset them.
    fn by_clone(&self) -> Result<Started, Errno> {
        let mut pidfd: c_int = -1;
        let birth = self.birth(true);
        let words = [
            self.flags() as usize | libc::SIGCHLD as usize,
            self.stack.bottom() + STACK_BYTES,
            (&raw mut pidfd) as usize,
        ];
        // SAFETY: reasons 1 to 5, as above; only `with_signals_blocked` calls this.
        let answer = checked(unsafe { machine::clone(libc::SYS_clone, words, &birth) });
        started(answer?, pidfd)
    }

    fn birth(&self, handlers_remain: bool) -> Birth<'_> {
        Birth {
            plan: self.plan,
            handlers_remain,
            report: self.report,
        }
    }
}

/// What clone has made. The descriptor is the kernel's answer in the place that it was shown: -1 if it gave none.
fn started(pid: usize, pidfd: RawFd) -> Result<Started, Errno> {
    let pid = Pid::from_raw(pid as i32).ok_or(Errno::IO)?;
    // SAFETY: the kernel has just made this descriptor for us, and nobody else knows of it.
    let pidfd = (pidfd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(pidfd) });
    Ok(Started { pid, pidfd })
}

/// A page that a forked child shares with its parent, for its report.
struct SharedPage {
    report: *mut Report,
}

impl SharedPage {
    fn map() -> Result<SharedPage, Errno> {
        let (access, flags) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS,
        );
        // SAFETY: a new mapping at an address of the kernel's choice harms nobody. It begins as zeros.
        let page = unsafe {
            libc::mmap(
                ptr::null_mut(),
                mem::size_of::<Report>(),
                access,
                flags,
                -1,
                0,
            )
        };
        if page == libc::MAP_FAILED {
            return Err(last_errno());
        }
        Ok(SharedPage {
            report: page.cast(),
        })
    }

    fn report(&self) -> &Report {
        // SAFETY: mapped, aligned to a page, and zeros are a Report. It is made of atomics: the child may write to it.
        unsafe { &*self.report }
    }
}

impl Drop for SharedPage {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no reference to it outlives this value.
        unsafe { libc::munmap(self.report.cast(), mem::size_of::<Report>()) };
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// tokio

/// Puts a descriptor under the watch of tokio's reactor, to learn when it becomes readable.
#[cfg(feature = "tokio")]
pub(crate) fn watch(
    descriptor: BorrowedFd<'_>,
) -> std::io::Result<tokio::io::unix::AsyncFd<BorrowedFd<'_>>> {
    // SAFETY: the descriptor is borrowed for as long as it is watched, so it stays open and the same.
    let watched = unsafe {
        tokio::io::unix::AsyncFd::register_with_interest(descriptor, tokio::io::Interest::READABLE)
    };
    Ok(watched?)
}

// ---------------------------------------------------------------------------------------------------------------------
// posix_spawn

/// What posix_spawn(3) can be told.
pub(crate) struct Portable<'a> {
    pub(crate) arguments: &'a Pointers<'a>,
    pub(crate) environment: &'a Environment<'a>,
    pub(crate) moves: &'a [Move],
    pub(crate) close: &'a [RawFd],
    pub(crate) session: bool,
    pub(crate) group: Option<i32>,
    pub(crate) mask: Option<SignalSet>,
    pub(crate) defaults: SignalSet,
}

/// Starts the program of that path, by libc.
pub(crate) fn posix_spawn(path: &CStr, wanted: &Portable) -> Result<Pid, Errno> {
    let mut flags = libc::POSIX_SPAWN_SETSIGDEF;
    if wanted.session {
        flags |= c_int::from(libc::POSIX_SPAWN_SETSID);
    }
    if wanted.group.is_some() {
        flags |= libc::POSIX_SPAWN_SETPGROUP;
    }
    if wanted.mask.is_some() {
        flags |= libc::POSIX_SPAWN_SETSIGMASK;
    }
    let (defaults, mask) = (
        libc_set(wanted.defaults),
        libc_set(wanted.mask.unwrap_or_default()),
    );

    // SAFETY: both objects are initialised before they are used, used by this thread alone, and destroyed once on each
    // way out. Strings and arrays live until posix_spawn returns, which is after the child has executed them.
    unsafe {
        let mut attributes = mem::zeroed::<libc::posix_spawnattr_t>();
        let mut actions = mem::zeroed::<libc::posix_spawn_file_actions_t>();
        done(libc::posix_spawnattr_init(&mut attributes))?;
        if let Err(errno) = done(libc::posix_spawn_file_actions_init(&mut actions)) {
            libc::posix_spawnattr_destroy(&mut attributes);
            return Err(errno);
        }
        let started = (|| {
            done(libc::posix_spawnattr_setflags(
                &mut attributes,
                flags as libc::c_short,
            ))?;
            done(libc::posix_spawnattr_setsigdefault(
                &mut attributes,
                &defaults,
            ))?;
            done(libc::posix_spawnattr_setsigmask(&mut attributes, &mask))?;
            done(libc::posix_spawnattr_setpgroup(
                &mut attributes,
                wanted.group.unwrap_or(0),
            ))?;
            for Move { source, target } in wanted.moves {
                done(libc::posix_spawn_file_actions_adddup2(
                    &mut actions,
                    *source,
                    *target,
                ))?;
            }
            for descriptor in wanted.close {
                done(libc::posix_spawn_file_actions_addclose(
                    &mut actions,
                    *descriptor,
                ))?;
            }
            let mut pid = 0;
            let arguments = wanted.arguments.as_ptr().cast::<*mut c_char>();
            let variables = wanted.environment.as_ptr().cast::<*mut c_char>();
            done(libc::posix_spawn(
                &mut pid,
                path.as_ptr(),
                &actions,
                &attributes,
                arguments,
                variables,
            ))?;
            Pid::from_raw(pid).ok_or(Errno::IO)
        })();
        libc::posix_spawn_file_actions_destroy(&mut actions);
        libc::posix_spawnattr_destroy(&mut attributes);
        started
    }
}

/// posix_spawn's functions return the error number.
fn done(answer: c_int) -> Result<(), Errno> {
    if answer == 0 {
        Ok(())
    } else {
        Err(Errno::from_raw_os_error(answer))
    }
}

/// libc's form of a set. It leaves out the signals that libc keeps for itself.
fn libc_set(set: SignalSet) -> libc::sigset_t {
    // SAFETY: sigemptyset makes a valid set of any memory, sigaddset refuses numbers that it does not know.
    unsafe {
        let mut filled = mem::zeroed::<libc::sigset_t>();
        libc::sigemptyset(&mut filled);
        for number in set.numbers() {
            libc::sigaddset(&mut filled, number);
        }
        filled
    }
}
