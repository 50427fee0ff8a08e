//! What popen_noshell's functions do, apart from the C of it.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::fs::{Access, access};
use spawn::{Child, Command, Method, SignalSet, SpawnError, Stdio, Step};

/// The modes of `popen_noshell_set_fork_mode`, as its header numbers them.
const MODE_FORK: i32 = 1;
const MODE_POSIX_SPAWN: i32 = 2;

/// What a child of popen_noshell's ends with when it could not execute its program, and when it does not know its
/// `stderr_mode`.
const STATUS_NOT_EXECUTED: i32 = 255;
const STATUS_UNKNOWN_MODE: i32 = 254;

/// For the whole program, as the original has it.
static FORK_MODE: AtomicI32 = AtomicI32::new(0);

pub(crate) fn set_fork_mode(mode: i32) {
    FORK_MODE.store(mode, Ordering::Relaxed);
}

pub(crate) fn fork_mode() -> i32 {
    FORK_MODE.load(Ordering::Relaxed)
}

/// Which way a stream goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// The caller reads what the program writes.
    Read,
    /// The caller writes what the program reads.
    Write,
}

impl Direction {
    /// popen(3)'s `type`. An `e` asks for close-on-exec, which our ends always are.
    pub(crate) fn parse(kind: &[u8]) -> Option<Direction> {
        match kind {
            b"r" | b"re" | b"er" => Some(Direction::Read),
            b"w" | b"we" | b"ew" => Some(Direction::Write),
            _ => None,
        }
    }
}

/// A program as popen(3) starts one: descriptors that are not close-on-exec, signal mask and ignored signals are its
/// caller's.
pub(crate) fn like_popen(program: &OsStr, arguments: &[&OsStr]) -> Command {
    let mut command = Command::new(program);
    let (name, rest) = arguments
        .split_first()
        .map_or((program, &[][..]), |(name, rest)| (*name, rest));
    command
        .arg0(name)
        .args(rest)
        .inherit_descriptors(true)
        .signal_mask(None)
        .default_signals(SignalSet::EMPTY);
    command
}

/// A child of popen_noshell's: a real one, or what is left of one that could not execute its program.
pub(crate) enum Outcome {
    Started(Child),
    /// No process: the caller's end of a pipe that holds what it would have written, and its exit status.
    Ended(OwnedFd, i32),
}

/// `popen_noshell`: the other standard stream is /dev/null; a child that cannot execute its program says so on its
/// standard error and ends with 255, one that does not know its `stderr_mode` with 254.
pub(crate) fn open(
    program: &OsStr,
    arguments: &[&OsStr],
    direction: Direction,
    stderr_mode: i32,
) -> io::Result<Outcome> {
    let mut command = like_popen(program, arguments);
    wire(&mut command, direction, stderr_mode);
    if !(0..=2).contains(&stderr_mode) {
        let text = format!("popen_noshell: unknown stderr_mode {stderr_mode}\n");
        return ended(direction, 0, &text, STATUS_UNKNOWN_MODE);
    }
    match command.spawn() {
        Ok(child) => Ok(Outcome::Started(child)),
        Err(error) if is_script(&error) => script(program, arguments, direction, stderr_mode),
        Err(error) if is_about_the_program(&error) => {
            let text = format!("{error}\n");
            ended(direction, stderr_mode, &text, STATUS_NOT_EXECUTED)
        }
        Err(error) => Err(io::Error::from_raw_os_error(error.errno())),
    }
}

fn wire(command: &mut Command, direction: Direction, stderr_mode: i32) {
    match direction {
        Direction::Read => command.stdin(Stdio::null()).stdout(Stdio::pipe()),
        Direction::Write => command.stdin(Stdio::pipe()).stdout(Stdio::null()),
    };
    match stderr_mode {
        1 => drop(command.stderr(Stdio::null())),
        2 => drop(command.stderr_into_stdout()),
        _ => {}
    }
    command.method(match fork_mode() {
        MODE_FORK => Method::Fork,
        MODE_POSIX_SPAWN => Method::PosixSpawn,
        _ => Method::Automatic,
    });
}

fn is_about_the_program(error: &SpawnError) -> bool {
    matches!(error.step(), Step::Exec | Step::PosixSpawn)
}

/// A file that may be executed, and is no program the kernel knows: execvp(3) gives it to the shell.
fn is_script(error: &SpawnError) -> bool {
    is_about_the_program(error) && error.errno() == libc::ENOEXEC
}

fn script(
    program: &OsStr,
    arguments: &[&OsStr],
    direction: Direction,
    stderr_mode: i32,
) -> io::Result<Outcome> {
    let path = found_in_path(program);
    let mut words: Vec<&OsStr> = vec![OsStr::new("sh"), path.as_os_str()];
    words.extend(arguments.iter().skip(1));
    let mut command = like_popen(OsStr::new("/bin/sh"), &words);
    wire(&mut command, direction, stderr_mode);
    let child = command.spawn();
    child
        .map(Outcome::Started)
        .map_err(|error| io::Error::from_raw_os_error(error.errno()))
}

/// The file that was tried last: the first of its name that may be executed.
fn found_in_path(program: &OsStr) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/bin:/usr/bin"));
    let name = PathBuf::from(program);
    if program.as_bytes().contains(&b'/') {
        return name;
    }
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|file| access(file, Access::EXEC_OK).is_ok())
        .unwrap_or(name)
}

/// What the caller of the original sees when the child ends at once: its words where they would have gone, the end of
/// its output, and its status.
fn ended(direction: Direction, stderr_mode: i32, text: &str, status: i32) -> io::Result<Outcome> {
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    match (stderr_mode, direction) {
        // Nobody may be left to hear it: the original does not care either.
        (0, _) => drop(rustix::io::write(rustix::stdio::stderr(), text.as_bytes())),
        (2, Direction::Read) => drop(rustix::io::write(&write, text.as_bytes())),
        _ => {}
    }
    let ours = match direction {
        Direction::Read => read,
        Direction::Write => write,
    };
    Ok(Outcome::Ended(ours, status))
}
