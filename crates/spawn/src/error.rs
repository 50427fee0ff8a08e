//! What can go wrong, step by step.

use std::ffi::CStr;
use std::fmt;
use std::io;

use rustix::io::Errno;

/// The steps of a start, in the order in which they are taken.
///
/// Those up to [`Step::Clone`] happen in the caller, the others in the child.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(i32)]
pub enum Step {
    /// A program's name, an argument, a directory or a variable has a NUL byte in it, a variable's name is empty or has
    /// an `=` in it, or a user or group is 2^32 - 1.
    Arguments = 1,
    /// Opening the file or making the pipe for the standard input: open(2), pipe2(2).
    Stdin,
    /// The same for the standard output.
    Stdout,
    /// The same for the standard error.
    Stderr,
    /// Moving a descriptor out of the way of another: fcntl(2), F_DUPFD_CLOEXEC.
    Park,
    /// The child's stack: mmap(2), mprotect(2).
    Stack,
    /// The page by which a forked child reports: mmap(2).
    ReportPage,
    /// Blocking signals while memory is shared: rt_sigprocmask(2).
    BlockSignals,
    /// Making the process: clone3(2) or clone(2).
    Clone,
    /// posix_spawn(3), which does not tell which of its steps failed.
    PosixSpawn,
    /// Something was asked for that posix_spawn(3) cannot do, and neither clone3(2) nor clone(2) is possible here.
    NotPossible,
    /// Dispositions of signals: rt_sigaction(2).
    Signals,
    /// A new session: setsid(2).
    Session,
    /// The process group: setpgid(2).
    ProcessGroup,
    /// Keeping other descriptors from the program: close_range(2), or /proc/self/fd and fcntl(2); fcntl(2) for single ones.
    CloseOthers,
    /// Putting a descriptor in its place: dup3(2), fcntl(2).
    Descriptors,
    /// A resource limit: prlimit64(2).
    Limit,
    /// The mask for new files: umask(2).
    Umask,
    /// The supplementary groups: setgroups(2).
    Groups,
    /// The group: setresgid(2).
    Group,
    /// The user: setresuid(2).
    User,
    /// The working directory: chdir(2).
    Directory,
    /// The program's signal mask: rt_sigprocmask(2).
    SignalMask,
    /// The program itself: execve(2).
    Exec,
    /// Giving the caller its signal mask back: rt_sigprocmask(2). The new process has been killed.
    RestoreSignals,
}

impl Step {
    /// All steps, by their number.
    const ALL: [Step; 25] = [
        Step::Arguments,
        Step::Stdin,
        Step::Stdout,
        Step::Stderr,
        Step::Park,
        Step::Stack,
        Step::ReportPage,
        Step::BlockSignals,
        Step::Clone,
        Step::PosixSpawn,
        Step::NotPossible,
        Step::Signals,
        Step::Session,
        Step::ProcessGroup,
        Step::CloseOthers,
        Step::Descriptors,
        Step::Limit,
        Step::Umask,
        Step::Groups,
        Step::Group,
        Step::User,
        Step::Directory,
        Step::SignalMask,
        Step::Exec,
        Step::RestoreSignals,
    ];

    /// The step of a number as the child reports it.
    pub(crate) fn from_number(number: i32) -> Option<Step> {
        Step::ALL.into_iter().find(|step| *step as i32 == number)
    }

    /// What was being done, for C: `Display` gives the same words.
    pub fn words(self) -> &'static CStr {
        match self {
            Step::Arguments => {
                c"reading its arguments, variables and user (no NUL byte, no = in a name)"
            }
            Step::Stdin => c"opening its standard input",
            Step::Stdout => c"opening its standard output",
            Step::Stderr => c"opening its standard error",
            Step::Park => c"moving a descriptor out of the way",
            Step::Stack => c"making a stack for the new process",
            Step::ReportPage => c"making a page for the new process to report by",
            Step::BlockSignals => c"blocking signals",
            Step::Clone => c"making a new process",
            Step::PosixSpawn => c"posix_spawn",
            Step::NotPossible => {
                c"only posix_spawn is possible here, which cannot do all that was asked for"
            }
            Step::Signals => c"setting signals to their defaults",
            Step::Session => c"making a new session",
            Step::ProcessGroup => c"entering its process group",
            Step::CloseOthers => c"closing other descriptors",
            Step::Descriptors => c"putting a descriptor in its place",
            Step::Limit => c"setting a resource limit",
            Step::Umask => c"setting the umask",
            Step::Groups => c"setting the supplementary groups",
            Step::Group => c"setting the group",
            Step::User => c"setting the user",
            Step::Directory => c"changing to its directory",
            Step::SignalMask => c"setting its signal mask",
            Step::Exec => c"executing it",
            Step::RestoreSignals => c"unblocking signals again (it was killed)",
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words().to_string_lossy())
    }
}

/// Why a program was not started: the step that failed, and the kernel's answer to it.
///
/// When this is returned nothing is left of the attempt: no process, no zombie, no descriptor.
#[derive(Debug, thiserror::Error)]
#[error("cannot start {program}: {step}: {source}")]
pub struct SpawnError {
    program: String,
    step: Step,
    source: io::Error,
}

impl SpawnError {
    pub(crate) fn new(program: &std::ffi::OsStr, failure: Failure) -> SpawnError {
        SpawnError {
            program: program.to_string_lossy().into_owned(),
            step: failure.step,
            source: failure.errno.into(),
        }
    }

    /// The step that failed.
    pub fn step(&self) -> Step {
        self.step
    }

    /// The error number of that step, as in errno(3).
    pub fn errno(&self) -> i32 {
        self.source.raw_os_error().unwrap_or(libc::EIO)
    }
}

impl From<SpawnError> for io::Error {
    fn from(error: SpawnError) -> io::Error {
        io::Error::new(error.source.kind(), error)
    }
}

/// A step that failed and its error number: what fits through shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) step: Step,
    pub(crate) errno: Errno,
}

/// Names the step of a system call's error.
pub(crate) trait AtStep<T> {
    fn at(self, step: Step) -> Result<T, Failure>;
}

impl<T> AtStep<T> for Result<T, Errno> {
    fn at(self, step: Step) -> Result<T, Failure> {
        self.map_err(|errno| Failure { step, errno })
    }
}

impl<T> AtStep<T> for io::Result<T> {
    fn at(self, step: Step) -> Result<T, Failure> {
        self.map_err(|error| Failure {
            step,
            errno: Errno::from_io_error(&error).unwrap_or(Errno::IO),
        })
    }
}
