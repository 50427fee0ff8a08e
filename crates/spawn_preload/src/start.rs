//! Starts what a command line says: the program at once where that is certain, else /bin/sh.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::OnceLock;

use rustix::process::{getegid, geteuid, getgid, getuid};
use spawn::{Child, Command, DescriptorSet, SignalSet, SpawnError, Stdio, Step};

use crate::shells::Shell;
use crate::surroundings::Surroundings;
use crate::{line, lookup};

const SHELL: &str = "/bin/sh";

/// Which way a stream of popen's goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// The caller reads what the program writes.
    Read,
    /// The caller writes what the program reads.
    Write,
}

/// What the new process is to have, beside what it has from its caller.
#[derive(Debug)]
pub(crate) struct Setting {
    /// The stream to the caller, if it has one.
    pub(crate) stream: Option<Direction>,
    /// What a shell is given.
    pub(crate) mask: SignalSet,
    pub(crate) default_signals: SignalSet,
    /// The caller's ends of other streams, where they are not to be inherited.
    pub(crate) withheld: Option<&'static DescriptorSet>,
}

impl Setting {
    fn apply(&self, command: &mut Command) {
        match self.stream {
            None => {}
            Some(Direction::Read) => drop(command.stdout(Stdio::pipe())),
            Some(Direction::Write) => drop(command.stdin(Stdio::pipe())),
        }
        if let Some(withheld) = self.withheld {
            command.withhold(withheld);
        }
        command
            .inherit_descriptors(true)
            .signal_mask(Some(self.mask))
            .default_signals(self.default_signals);
    }
}

/// A command line that runs.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) child: Child,
    /// There is no shell between it and us.
    pub(crate) skipped: bool,
}

/// Starts a command line. `surroundings`: None where only the shell can say what the line means.
pub(crate) fn start(
    line: &[u8],
    surroundings: Option<Surroundings>,
    setting: &Setting,
) -> Result<Started, SpawnError> {
    let direct = surroundings.and_then(|surroundings| without_shell(line, &surroundings, setting));
    let (child, skipped) = match direct {
        None => (by_shell(line, setting), false),
        Some(Err(error)) if is_about_the_program(&error) => (by_shell(line, setting), false),
        Some(outcome) => (outcome, true),
    };
    child.map(|child| Started { child, skipped })
}

/// None: the line is the shell's.
fn without_shell(
    line: &[u8],
    surroundings: &Surroundings,
    setting: &Setting,
) -> Option<Result<Child, SpawnError>> {
    let words = line::words(line).ok()?;
    let shell = known_shell().filter(|_| !is_somebody_else())?;
    let (name, arguments) = words.split_first()?;
    let program = lookup::program(name, surroundings)?;
    let mut command = Command::new(OsStr::from_bytes(&program));
    command
        .arg0(OsStr::from_bytes(name))
        .args(arguments.iter().map(|word| OsStr::from_bytes(word)));
    setting.apply(&mut command);
    command.signal_mask(Some(shell.mask(setting.mask)));
    command.default_signals(union(setting.default_signals, shell.noticed()));
    Some(command.spawn())
}

fn union(one: SignalSet, other: SignalSet) -> SignalSet {
    SignalSet::from_bits(one.bits() | other.bits())
}

fn by_shell(line: &[u8], setting: &Setting) -> Result<Child, SpawnError> {
    let mut command = Command::new(SHELL);
    // POSIX.1-2024 has the two dashes, so that a line may begin with one.
    command
        .arg0("sh")
        .args(["-c", "--"])
        .arg(OsStr::from_bytes(line));
    setting.apply(&mut command);
    command.spawn()
}

/// Whether it was the program that could not be executed, and not a process that could not be made.
pub(crate) fn is_about_the_program(error: &SpawnError) -> bool {
    matches!(error.step(), Step::Exec | Step::PosixSpawn)
}

/// What a shell would have made of this end of its command, in wait(2)'s form: it says so on the standard error, and ends
/// with 128 and the signal's number, if it has stayed; if it has executed the command the end is its own.
///
/// SIGINT and SIGQUIT come from the keyboard, to the shell as well, which then ends by them, too.
pub(crate) fn as_behind_a_shell(status: ExitStatus) -> i32 {
    const BASE: i32 = 128;
    match status.signal() {
        Some(signal) if ![libc::SIGINT, libc::SIGQUIT].contains(&signal) && shell_stays() => {
            let shell = known_shell();
            if let Some(words) =
                shell.and_then(|shell| shell.obituary(signal, status.core_dumped()))
            {
                let _ = rustix::io::write(rustix::stdio::stderr(), words.as_bytes());
            }
            (BASE + signal) << 8
        }
        _ => status.into_raw(),
    }
}

/// Whether /bin/sh waits for a command that is the last of its line, or executes it. Tried out once, when a command has
/// been ended by a signal: some versions of dash do the one, some the other.
fn shell_stays() -> bool {
    static STAYS: OnceLock<bool> = OnceLock::new();
    *STAYS.get_or_init(|| {
        let mut command = Command::new(SHELL);
        command.args(["-c", "/bin/sh -c 'kill -KILL $$'"]);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let ended = command.spawn().map(|mut child| child.wait());
        ended.is_ok_and(|ended| ended.is_ok_and(|ended| ended.code().is_some()))
    })
}

/// What /bin/sh is, seen once.
fn known_shell() -> Option<Shell> {
    static KNOWN: OnceLock<Option<Shell>> = OnceLock::new();
    *KNOWN.get_or_init(|| Shell::of(&fs::canonicalize(Path::new(SHELL)).ok()?))
}

/// A shell whose user or group is not its real one changes back to that.
fn is_somebody_else() -> bool {
    getuid() != geteuid() || getgid() != getegid()
}
