//! One login among all that the server does meanwhile: the processes of one connection, its command, when it began and when the
//! first octet of the command's output went out.

use thiserror::Error;

use crate::recording::Probe;
use crate::segments::State;
use crate::tree::{Process, ProcessId, ThreadId, Tree};

/// Of PAM's modules: runs when a session is over.
const CLOSING: &str = "pam_sm_close_session";

/// What is known of the login that is looked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The ports of its connection, the server's and the client's, as the server tells in SSH_CONNECTION.
    pub ports: Option<(u16, u16)>,
    /// When the client had its first output, by the host's clock: what is born later is not its command.
    pub until: Option<u64>,
}

/// One login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Login {
    /// The process that the server made for the connection.
    pub root: ProcessId,
    /// When.
    pub begin: u64,
    /// When the first octet of output had gone out.
    pub end: u64,
    /// Whose time that is.
    pub last: ThreadId,
    /// What ran the command.
    pub command: ProcessId,
    /// Whether it was told from others by its ports; otherwise it was the only one.
    pub is_matched: bool,
}

/// Why a login cannot be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum LoginError {
    /// Nobody logged in.
    #[error("the server has made no process for a connection while it was traced")]
    None,
    /// More than one did.
    #[error(
        "{0} connections were made while the server was traced, and which one is ours cannot be told"
    )]
    Several(usize),
    /// No command was run.
    #[error("no command was run in the login that was traced")]
    NoCommand,
}

impl Login {
    /// The login that is wanted, or the only one there is. `probes` are those of the recording.
    ///
    /// # Errors
    ///
    /// It cannot be told.
    pub fn find(tree: &Tree, probes: &[Probe], wanted: Wanted) -> Result<Login, LoginError> {
        let (root, is_matched) = root(tree, wanted.ports)?;
        let closing = closing(tree, probes, root);
        let until = closing.into_iter().chain(wanted.until).min();
        let until = until.unwrap_or(u64::MAX);
        let command = command(tree, root, until).ok_or(LoginError::NoCommand)?;
        let (end, last) = first_output(tree, root, command).ok_or(LoginError::NoCommand)?;
        Ok(Login {
            root,
            begin: tree.process(root).born,
            end,
            last,
            command,
            is_matched,
        })
    }

    /// How long it took, in nanoseconds.
    pub fn wall(&self) -> u64 {
        self.end.saturating_sub(self.begin)
    }
}

/// The child of the followed process from which the connection's processes come.
fn root(tree: &Tree, ports: Option<(u16, u16)>) -> Result<(ProcessId, bool), LoginError> {
    let is_of = |process: &Process| ports.is_some_and(|ports| process.ports.contains(&ports));
    let matched = tree.processes().find(|(_, process)| is_of(process));
    if let Some(root) = matched.and_then(|(id, _)| top(tree, id)) {
        return Ok((root, true));
    }
    let first = tree.processes();
    let first = first.filter(|(_, process)| process.parent == Some(ProcessId(0)));
    let made: Vec<ProcessId> = first.map(|(id, _)| id).collect();
    let serves = |id: &&ProcessId| command(tree, **id, u64::MAX).is_some();
    let serving: Vec<&ProcessId> = made.iter().filter(serves).collect();
    match serving[..] {
        [] if made.is_empty() => Err(LoginError::None),
        [] => Err(LoginError::NoCommand),
        [only] => Ok((*only, false)),
        _ => Err(LoginError::Several(serving.len())),
    }
}

/// The one of its ancestors, or itself, that the followed process made.
fn top(tree: &Tree, id: ProcessId) -> Option<ProcessId> {
    let mut at = id;
    while let Some(parent) = tree.process(at).parent {
        if parent == ProcessId(0) {
            return Some(at);
        }
        at = parent;
    }
    None
}

/// Whether a process is the server's: it has run no other program.
pub(crate) fn is_server(tree: &Tree, id: ProcessId) -> bool {
    let is_server = |name: &str| name.starts_with("sshd") || name.starts_with("dropbear");
    let mut next = Some(id);
    while let Some(at) = next {
        let process = tree.process(at);
        if let Some(program) = process.programs.last() {
            return is_server(program.title());
        }
        next = process.parent;
    }
    // Nobody has run anything: they are what the followed process is.
    true
}

/// What the user's shell or command became: the last program that the server itself runs until then. PAM's modules run theirs
/// before, and when the connection is closed.
fn command(tree: &Tree, root: ProcessId, until: u64) -> Option<ProcessId> {
    let runs = |id: ProcessId, process: &Process| {
        let made_by_server = process.parent.is_some_and(|parent| is_server(tree, parent));
        made_by_server && !process.is_fork() && !is_server(tree, id)
    };
    let below = tree.processes().skip(root.0).filter(|(id, process)| {
        process.born < until && runs(*id, process) && tree.is_below(*id, root)
    });
    below.map(|(id, _)| id).last()
}

/// When PAM began to close the session, if that is known.
fn closing(tree: &Tree, probes: &[Probe], root: ProcessId) -> Option<u64> {
    let closes = |probe: usize| probes.get(probe).is_some_and(|it| it.function == CLOSING);
    let of_login = |thread: ThreadId| tree.is_below(tree.thread(thread).process, root);
    let mut probed = tree.probed.iter();
    let first =
        probed.find(|(thread, probe, _, begins)| *begins && closes(*probe) && of_login(*thread));
    first.map(|(_, _, at, _)| *at)
}

/// When the server had passed on what the command first said: the end of that stretch of its running; and whose.
fn first_output(tree: &Tree, root: ProcessId, command: ProcessId) -> Option<(u64, ThreadId)> {
    let begun = tree.process(command).programs.first()?.since;
    let mut wakes: Vec<(u64, ThreadId)> = Vec::new();
    for thread in &tree.threads {
        if !tree.is_below(thread.process, command) {
            continue;
        }
        let woken = thread.wakes.iter().filter(|(at, woken)| {
            let process = tree.thread(*woken).process;
            *at >= begun && is_server(tree, process) && tree.is_below(process, root)
        });
        wakes.extend(woken);
    }
    wakes.sort_unstable();
    let (at, woken) = *wakes.first()?;
    let segments = &tree.thread(woken).segments;
    let mut runs = segments
        .iter()
        .filter(|segment| segment.to > at && segment.state == State::Running);
    let passed_on = runs.next().map(|segment| segment.to);
    Some((passed_on.unwrap_or(at), woken))
}

#[cfg(test)]
#[path = "login_tests.rs"]
mod tests;
