//! One login among all that the server does meanwhile: the processes of one connection, its command, when it began and when the
//! first octet of the command's output went out.

use std::collections::BTreeSet;
use std::net::IpAddr;

use thiserror::Error;

use crate::record::Peer;
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
    /// The client's address, as that tells it, too: others may have the same ports.
    pub client: Option<IpAddr>,
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
        let servers = servers(tree);
        let (root, is_matched) = root(tree, &servers, wanted)?;
        let own = tree.all_below(root);
        let closing = closing(tree, probes, &own);
        let until = closing.into_iter().chain(wanted.until).min();
        let until = until.unwrap_or(u64::MAX);
        let command = command(tree, &servers, &own, until).ok_or(LoginError::NoCommand)?;
        let output = match tree.tells_time {
            true => first_output(tree, &servers, &own, command),
            false => heard_of(tree, command, wanted.until),
        };
        let (end, last) = output.ok_or(LoginError::NoCommand)?;
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
fn root(tree: &Tree, servers: &[bool], wanted: Wanted) -> Result<(ProcessId, bool), LoginError> {
    let tops = tops(tree);
    let is_ours = |peer: &Peer| {
        let is_client = |client: IpAddr| client.to_canonical() == peer.address.to_canonical();
        Some((peer.local_port, peer.port)) == wanted.ports && wanted.client.is_none_or(is_client)
    };
    let is_of = |process: &Process| process.peers.iter().any(is_ours);
    let matched = tree.processes().find(|(_, process)| is_of(process));
    if let Some(root) = matched.and_then(|(id, _)| tops[id.0]) {
        return Ok((root, true));
    }
    let commands = tree.processes().filter(|(id, _)| runs(tree, servers, *id));
    let serving: BTreeSet<ProcessId> = commands.filter_map(|(id, _)| tops[id.0]).collect();
    let mut each = serving.iter();
    match (each.next(), each.next()) {
        (Some(only), None) => Ok((*only, false)),
        (Some(_), Some(_)) => Err(LoginError::Several(serving.len())),
        (None, _) if tops.iter().any(Option::is_some) => Err(LoginError::NoCommand),
        (None, _) => Err(LoginError::None),
    }
}

/// Of each process the one of its ancestors, or itself, that the followed process made.
fn tops(tree: &Tree) -> Vec<Option<ProcessId>> {
    let mut tops: Vec<Option<ProcessId>> = Vec::with_capacity(tree.processes.len());
    for (id, process) in tree.processes() {
        tops.push(match process.parent {
            None => None,
            Some(ProcessId(0)) => Some(id),
            // Parents are older.
            Some(parent) => tops[parent.0],
        });
    }
    tops
}

/// Which processes are the server's: they have run no other program.
pub(crate) fn servers(tree: &Tree) -> Vec<bool> {
    let is_server = |name: &str| name.starts_with("sshd") || name.starts_with("dropbear");
    let mut servers: Vec<bool> = Vec::with_capacity(tree.processes.len());
    for (_, process) in tree.processes() {
        servers.push(match (process.programs.last(), process.parent) {
            (Some(program), _) => is_server(program.title()),
            (None, Some(parent)) => servers[parent.0],
            // Nobody has run anything: they are what the followed process is.
            (None, None) => true,
        });
    }
    servers
}

/// Whether a process is one that the server has made to run a program.
pub(crate) fn runs(tree: &Tree, servers: &[bool], id: ProcessId) -> bool {
    let process = tree.process(id);
    let made_by_server = process.parent.is_some_and(|parent| servers[parent.0]);
    made_by_server && !process.is_fork() && !servers[id.0]
}

/// What the user's shell or command became: the last program that the server itself runs until then. PAM's modules run theirs
/// before, and when the connection is closed.
fn command(tree: &Tree, servers: &[bool], own: &[bool], until: u64) -> Option<ProcessId> {
    let found = tree
        .processes()
        .filter(|(id, process)| process.born < until && own[id.0] && runs(tree, servers, *id));
    found.map(|(id, _)| id).last()
}

/// When PAM began to close the session, if that is known.
fn closing(tree: &Tree, probes: &[Probe], own: &[bool]) -> Option<u64> {
    let closes = |probe: usize| probes.get(probe).is_some_and(|it| it.function == CLOSING);
    let of_login = |thread: ThreadId| own[tree.thread(thread).process.0];
    let mut probed = tree.probed.iter();
    let first = probed.find(|it| it.begins && closes(it.probe) && of_login(it.thread));
    first.map(|first| first.at)
}

/// When the server had passed on what the command first said: the end of that stretch of its running; and whose.
fn first_output(
    tree: &Tree,
    servers: &[bool],
    own: &[bool],
    command: ProcessId,
) -> Option<(u64, ThreadId)> {
    let begun = tree.process(command).programs.first()?.since;
    let commands = tree.all_below(command);
    let of_command = tree
        .threads
        .iter()
        .filter(|thread| commands[thread.process.0]);
    let wakes = of_command.flat_map(|thread| &thread.wakes).copied();
    let passed_on = wakes.filter(|(at, woken)| {
        let process = tree.thread(*woken).process.0;
        *at >= begun && servers[process] && own[process]
    });
    // A server that has no processor meanwhile is woken by nobody: it hears of the output when it goes on.
    let process = tree.process(command);
    let (at, woken) = passed_on.min().or(process.ended.zip(process.maker))?;
    let segments = &tree.thread(woken).segments;
    let mut runs = segments
        .iter()
        .filter(|segment| segment.to > at && segment.state == State::Running);
    let passed_on = runs.next().map(|segment| segment.to);
    Some((passed_on.unwrap_or(at), woken))
}

/// Where nobody's waits are told: when the command had ended, or the client had heard of it if that was earlier; and whose time that is.
fn heard_of(tree: &Tree, command: ProcessId, until: Option<u64>) -> Option<(u64, ThreadId)> {
    let command = tree.process(command);
    let end = command.ended.into_iter().chain(until).min()?;
    Some((end.max(command.born), command.maker?))
}

#[cfg(test)]
#[path = "login_tests.rs"]
mod tests;
