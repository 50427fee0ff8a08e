//! What a login's path comes to: by kind, by process with all that came of it, by function that was probed.

use std::collections::{BTreeMap, HashMap};

use thiserror::Error;

use crate::login::{Login, LoginError, Wanted, runs, servers};
use crate::means::Means;
use crate::path::{Kind, Piece, path};
use crate::recording::{Probe, Recording, RecordingError, Sample};
use crate::tree::{Probed, Process, ProcessId, ThreadId, Tree};

/// Where pam_motd's scripts are (update-motd(5)).
const MOTD_SCRIPTS: &str = "/etc/update-motd.d/";
/// What the wall time consists of, as in JSON.
const SHARES: [&str; 8] = [
    "cpu",
    "contention",
    "storage",
    "timer",
    "client",
    "network",
    "program",
    "unexplained",
];
/// What others can have a program wait for.
const WAITS: [Kind; 2] = [Kind::Contention, Kind::Storage];
/// Functions of the C library that ask for names of hosts and addresses.
const LOOKUPS: [&str; 4] = [
    "getaddrinfo",
    "getnameinfo",
    "gethostbyname_r",
    "gethostbyaddr_r",
];
/// And for users and their groups.
const USERS: [&str; 3] = ["getpwnam_r", "getgrouplist", "initgroups"];
/// What the functions of PAM's modules are called, all of them (pam(3)).
const MODULES: &str = "pam_sm_";
/// Most calls of probed functions that are kept.
const MAX_CALLS: usize = 4096;
/// Most calls that are within one another.
const MAX_NESTED: usize = 64;

/// One login, followed.
#[derive(Debug)]
pub struct Traced {
    /// Its processes, and those of others at the same time.
    pub tree: Tree,
    /// Which of them are its own.
    pub login: Login,
    /// Its critical path, in the order of time.
    pub pieces: Vec<Piece>,
    /// Calls of probed functions, in the order in which they began.
    pub calls: Vec<Call>,
    /// Names of processes that are none of the login's.
    pub names: BTreeMap<u32, String>,
    /// What the host's counters grew by.
    pub samples: Sample,
    /// Records that were lost: what they tell is unexplained.
    pub lost: u64,
    /// By what it was traced, and what that does not tell.
    pub means: Means,
    /// Each process's part of the path with all that came of it, in nanoseconds.
    with_children: Vec<u64>,
    /// What of that is waiting for a processor that others have, and for disks.
    waited: [Vec<u64>; 2],
    /// The same of the path's pieces, from its beginning to each one's.
    waited_before: Vec<[u64; 2]>,
    /// Of the waits for disks the part that is others' doing.
    of_others: f64,
    /// Which processes are the login's own.
    own: Vec<bool>,
    /// And which the server's.
    servers: Vec<bool>,
    shares: Vec<Share>,
    /// Of the calls those that asked for names of hosts or for their addresses; of those within one another the outer one.
    pub lookups: Vec<Call>,
    /// The same of those that asked for users and their groups.
    users: Vec<Call>,
}

/// A call of a probed function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Which function.
    pub probe: Probe,
    /// By which process.
    pub process: ProcessId,
    /// The name that it was asked for: a host's, a user's.
    pub about: Option<String>,
    /// From when to when, as far as it belongs to the login; nanoseconds of the host's monotonic clock.
    pub from: u64,
    /// The same.
    pub to: u64,
}

/// A file, by its path, and what opening it took.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileUse {
    /// As the programs have it.
    pub path: String,
    /// How often it was opened, or was to be.
    pub times: u64,
    /// How often there was none, or it was not allowed.
    pub failed: u64,
    /// All together, in nanoseconds.
    pub time: u64,
    /// The slowest of them.
    pub slowest: u64,
}

/// A part of the wall time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// What took it, as in JSON.
    pub name: &'static str,
    /// In nanoseconds.
    pub time: u64,
}

/// Why nothing can be said.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TracedError {
    /// There is no trace.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// The login is not in it.
    #[error(transparent)]
    Login(#[from] LoginError),
}

impl Traced {
    /// What a recording tells of a login.
    ///
    /// # Errors
    ///
    /// There is none, or the login is not in it.
    pub fn of(mut recording: Recording, wanted: Wanted) -> Result<Traced, TracedError> {
        let (followed, records) = recording.records()?;
        let means = recording.armed().map(Means::of).unwrap_or_default();
        let tree = Tree::of(followed, &records);
        let found = Login::find(&tree, &recording.probes, wanted);
        if let Some(error) = recording.may_lack_the_end() {
            // What the client has seen after the last record was not recorded.
            let is_whole = wanted.until.is_some_and(|until| until <= tree.end);
            if found.is_err() || !is_whole {
                return Err(error.into());
            }
        }
        let login = found?;
        let pieces = path(&tree, &recording.names, &login);
        let mut traced = Traced {
            calls: calls(&tree, &recording.probes, &login),
            with_children: match tree.tells_time {
                true => with_children(&tree, pieces.iter()),
                false => Vec::new(),
            },
            waited: WAITS.map(|kind| {
                let waits = pieces.iter().filter(|piece| piece.kind == kind);
                with_children(&tree, waits)
            }),
            waited_before: waited_before(&pieces),
            of_others: 0.0,
            own: tree.all_below(login.root),
            servers: servers(&tree),
            shares: Vec::new(),
            lookups: Vec::new(),
            users: Vec::new(),
            lost: recording.lost.saturating_add(tree.left_out),
            names: recording.names,
            samples: recording.samples,
            means,
            login,
            pieces,
            tree,
        };
        traced.calls.sort_by_key(|call| call.from);
        traced.lookups = traced.outer(&LOOKUPS).cloned().collect();
        traced.users = traced.outer(&USERS).cloned().collect();
        traced.shares = traced.sum();
        Ok(traced)
    }

    /// The login's processes, in the order of their birth.
    pub fn processes(&self) -> impl Iterator<Item = (ProcessId, &Process)> {
        self.tree.processes().filter(|(id, _)| self.own[id.0])
    }

    /// Those that had been born when the first output was out: later ones nobody waits for.
    pub fn processes_until_output(&self) -> usize {
        let end = self.login.end;
        self.processes().filter(|(_, it)| it.born <= end).count()
    }

    /// How much of the path is a process's, and that of all that came of it; nanoseconds. 0 where no waits are told.
    pub fn with_children(&self, process: ProcessId) -> u64 {
        self.with_children.get(process.0).copied().unwrap_or(0)
    }

    /// Whether it is told who worked and who waited for what; otherwise merely who lived when.
    pub fn tells_time(&self) -> bool {
        self.tree.tells_time
    }

    /// How long a process lived until the first output.
    fn lived(&self, process: ProcessId) -> u64 {
        let (born, end) = (self.tree.process(process).born, self.login.end);
        let ended = self.tree.process(process).ended.unwrap_or(end).min(end);
        ended.saturating_sub(born)
    }

    /// The files that were opened until the first output, as far as their paths are known: those that took the longest first.
    pub fn files(&self) -> Vec<FileUse> {
        let mut uses: BTreeMap<&str, FileUse> = BTreeMap::new();
        let all = self.processes().flat_map(|(_, process)| &process.files);
        for file in all.filter(|file| file.from < self.login.end) {
            let known = uses.entry(&file.path).or_insert_with(|| FileUse {
                path: file.path.clone(),
                ..FileUse::default()
            });
            let to = file.to.unwrap_or(file.from).min(self.login.end);
            let time = to.saturating_sub(file.from);
            known.times += 1;
            known.failed += u64::from(file.failed);
            known.time = known.time.saturating_add(time);
            known.slowest = known.slowest.max(time);
        }
        let mut uses: Vec<FileUse> = uses.into_values().collect();
        uses.sort_by(|one, other| {
            let longest = other.time.cmp(&one.time);
            longest.then_with(|| one.path.cmp(&other.path))
        });
        uses
    }

    /// Others have kept the disks busy for this part of the time: as much of what a program waited for them is not its own.
    pub fn shares_disks(&mut self, of_others: f64) {
        self.of_others = of_others.clamp(0.0, 1.0);
    }

    /// The same without what it waited for others meanwhile: for a processor that they had, and their part of its waits for disks. Where
    /// no waits are told, how long it lived.
    pub fn own(&self, process: ProcessId) -> u64 {
        if !self.tells_time() {
            return self.lived(process);
        }
        let waited = self.waited.each_ref();
        let waited = waited.map(|times| times.get(process.0).copied().unwrap_or(0));
        self.with_children(process)
            .saturating_sub(self.for_others(waited))
    }

    /// How long a call takes by itself, what it waits for others aside; nanoseconds.
    pub fn own_of(&self, call: &Call) -> u64 {
        let (from, to) = (self.waited_until(call.from), self.waited_until(call.to));
        let waited = [0, 1].map(|kind| to[kind].saturating_sub(from[kind]));
        (call.to - call.from).saturating_sub(self.for_others(waited))
    }

    /// What of waits for processors and for disks is others' doing.
    fn for_others(&self, [contended, stored]: [u64; 2]) -> u64 {
        contended.saturating_add((stored as f64 * self.of_others) as u64)
    }

    /// What the path has waited for processors and for disks until then.
    fn waited_until(&self, at: u64) -> [u64; 2] {
        let next = self.pieces.partition_point(|piece| piece.from < at);
        let Some(last) = next.checked_sub(1) else {
            return [0; 2];
        };
        let (mut waited, piece) = (self.waited_before[last], &self.pieces[last]);
        add_wait(&mut waited, piece.kind, piece.to.min(at) - piece.from);
        waited
    }

    /// For how long the login waits for a processor meanwhile.
    pub fn contended(&self, [from, to]: [u64; 2]) -> u64 {
        self.waited_until(to)[0].saturating_sub(self.waited_until(from)[0])
    }

    /// How long a module of PAM takes by itself: what it asks for users meanwhile is the name service's, too.
    pub fn own_of_module(&self, call: &Call) -> u64 {
        let asked = self.users.iter();
        let inside = asked.filter(|asked| asked.process == call.process);
        let inside = inside.filter(|asked| overlap((asked.from, asked.to), call) > 0);
        let inside: u64 = inside.map(|asked| self.own_of(asked)).sum();
        self.own_of(call).saturating_sub(inside)
    }

    /// Calls that ask for users and their groups, and what they take by themselves.
    pub fn users(&self) -> (usize, u64) {
        let calls = self.users.iter();
        (self.users.len(), calls.map(|call| self.own_of(call)).sum())
    }

    /// Calls of these functions; of those within one another the outer one.
    fn outer(&self, functions: &[&str]) -> impl Iterator<Item = &Call> {
        let mut until: BTreeMap<ProcessId, u64> = BTreeMap::new();
        self.calls.iter().filter(move |call| {
            let until = until.entry(call.process).or_default();
            let is_one = functions.contains(&call.probe.function.as_str()) && call.from >= *until;
            if is_one {
                *until = call.to;
            }
            is_one
        })
    }

    /// When the server had made the process that talks with the client: libwrap has judged the connection before.
    fn talks(&self) -> u64 {
        let is_one = |(id, process): &(ProcessId, &Process)| {
            process.parent == Some(self.login.root) && self.servers[id.0]
        };
        let first = self.processes().find(is_one);
        let command = self.tree.process(self.login.command).born;
        first.map_or(command, |(_, process)| process.born)
    }

    /// What the server ran before it talked with the client (libwrap's commands), by itself.
    pub fn spawned(&self) -> u64 {
        let until = self.talks();
        let is_one = |(id, process): &(ProcessId, &Process)| {
            let is_early = process.parent == Some(self.login.root) && process.born < until;
            is_early && runs(&self.tree, &self.servers, *id)
        };
        let found = self.processes().filter(is_one);
        found.map(|(id, _)| self.own(id)).sum()
    }

    /// Names of hosts that the server itself asked for since it talked with the client, PAM's modules aside: how long that took.
    pub fn server_lookups(&self) -> u64 {
        let since = self.talks();
        let is_one = |call: &&Call| {
            let is_server = self.servers[call.process.0] && call.from >= since;
            is_server && !self.is_in_module(call.process, call.from)
        };
        let found = self.lookups.iter().filter(is_one);
        found.map(|call| self.own_of(call)).sum()
    }

    /// How often the server ran a program between its first word and the command, PAM's modules aside, and what that took by itself: it
    /// asks programs for keys alone (AuthorizedKeysCommand).
    pub fn asked_for_keys(&self) -> (usize, u64) {
        let (since, command) = (self.talks(), self.login.command);
        let until = self.tree.process(command).born;
        let is_one = |(id, process): &(ProcessId, &Process)| {
            let is_between = *id != command && (since..=until).contains(&process.born);
            let maker = process.parent.unwrap_or(self.login.root);
            is_between
                && runs(&self.tree, &self.servers, *id)
                && !self.is_in_module(maker, process.born)
        };
        let found = self.processes().filter(is_one);
        found.fold((0, 0), |(count, time), (id, _)| {
            (count + 1, time + self.own(id))
        })
    }

    /// Whether a process is in a function of a module of PAM at that time.
    fn is_in_module(&self, process: ProcessId, at: u64) -> bool {
        self.calls.iter().any(|call| {
            let is_module = call.probe.function.starts_with(MODULES);
            is_module && call.process == process && (call.from..call.to).contains(&at)
        })
    }

    /// What the command takes of the path by itself, the user's shell or what stands in for it included.
    pub fn command_time(&self) -> u64 {
        self.own(self.login.command)
            .saturating_sub(self.before_command())
    }

    /// What the server's process runs before it becomes the command, as the user: sshrc, xauth.
    pub fn before_command(&self) -> u64 {
        let command = self.tree.process(self.login.command);
        let since = command.programs.first().map_or(0, |program| program.since);
        let is_one = |(_, process): &(ProcessId, &Process)| {
            process.parent == Some(self.login.command) && process.born < since
        };
        let found = self.processes().filter(is_one);
        found.map(|(id, _)| self.own(id)).sum()
    }

    /// How often a program was run before the output, and what its runs took by themselves.
    pub fn runs_of(&self, program: &str) -> (usize, u64) {
        let runs = |(_, process): &(ProcessId, &Process)| {
            process
                .programs
                .first()
                .is_some_and(|it| it.file == program)
        };
        let found = self.processes().filter(runs);
        found.fold((0, 0), |(count, time), (id, _)| {
            (count + 1, time + self.own(id))
        })
    }

    /// The wall time in parts, which add up to it.
    pub fn shares(&self) -> &[Share] {
        &self.shares
    }

    fn sum(&self) -> Vec<Share> {
        let mut shares = SHARES.map(|name| Share { name, time: 0 });
        for piece in &self.pieces {
            let name = self.name(piece);
            if let Some(share) = shares.iter_mut().find(|share| share.name == name) {
                share.time += piece.time();
            }
        }
        shares.into()
    }

    /// What a piece is counted as: what the server itself waits for from the network is the client, unless it asks for a name.
    pub fn name(&self, piece: &Piece) -> &'static str {
        match piece.kind {
            // The time after which an answer is no longer waited for, too.
            Kind::Peer | Kind::Timer if self.asks_for_a_name(piece) => Kind::Peer.name(),
            Kind::Peer if self.servers[piece.process.0] => "client",
            kind => kind.name(),
        }
    }

    fn asks_for_a_name(&self, piece: &Piece) -> bool {
        let mut lookups = self.lookups.iter();
        lookups
            .any(|call| call.process == piece.process && (call.from..call.to).contains(&piece.from))
    }

    /// One of the shares, by name; nanoseconds.
    pub fn share(&self, name: &str) -> u64 {
        let found = self.shares.iter().find(|share| share.name == name);
        found.map_or(0, |share| share.time)
    }

    /// The path by program, the longest first: what each one's processes did themselves or waited for.
    pub fn by_program(&self) -> Vec<(String, u64)> {
        let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
        for piece in &self.pieces {
            // It may begin to run another program in the middle.
            let programs = &self.tree.process(piece.process).programs;
            let changes = programs.iter().map(|program| program.since);
            let inside = changes.filter(|at| (piece.from + 1..piece.to).contains(at));
            let mut from = piece.from;
            for until in inside.chain([piece.to]) {
                let program = self.tree.program_at(piece.process, from);
                let title = program.map_or("sshd", |program| program.file.as_str());
                *sums.entry(title).or_default() += until - from;
                from = until;
            }
        }
        let sums = sums
            .into_iter()
            .map(|(title, time)| (title.to_owned(), time));
        let mut sums: Vec<_> = sums.collect();
        sums.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        sums
    }

    /// Programs outside of the login that it waited for, the longest wait first; and how long.
    pub fn outside(&self) -> Vec<(String, u64)> {
        let mut sums: BTreeMap<u32, u64> = BTreeMap::new();
        for piece in &self.pieces {
            if let Kind::Outside(number) = piece.kind {
                *sums.entry(number).or_default() += piece.time();
            }
        }
        let named = |(number, time)| {
            let name = self.names.get(&number).cloned();
            (name.unwrap_or_else(|| number.to_string()), time)
        };
        let mut sums: Vec<_> = sums.into_iter().map(named).collect();
        sums.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
        sums
    }

    /// Scripts of update-motd.d that ran before the output, the longest first: their paths, and how much of the path is their own.
    pub fn motd_scripts(&self) -> Vec<(String, u64)> {
        let mut found = Vec::new();
        for (id, process) in self.processes() {
            let script = process
                .programs
                .iter()
                .find(|it| it.file.starts_with(MOTD_SCRIPTS));
            if let Some(script) = script {
                found.push((script.file.clone(), self.own(id)));
            }
        }
        found.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
        found
    }

    /// What all of update-motd.d takes of the path by itself, with what runs it.
    pub fn motd_time(&self) -> Option<u64> {
        let runs_one = |(_, process): &(ProcessId, &Process)| {
            let mut programs = process.programs.iter();
            programs.any(|it| it.file.starts_with(MOTD_SCRIPTS))
        };
        let mut makers: Vec<ProcessId> = self
            .processes()
            .filter(runs_one)
            .filter_map(|(_, process)| process.parent)
            .collect();
        makers.sort_unstable();
        makers.dedup();
        let times = makers.iter().map(|maker| self.own(*maker));
        (!makers.is_empty()).then(|| times.fold(0, u64::saturating_add))
    }

    /// How long a PAM module's functions of that name took, those of all modules together and the slowest module of them.
    pub fn pam(&self, function: &str) -> Option<(u64, String, u64)> {
        let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
        let of_it = self
            .calls
            .iter()
            .filter(|call| call.probe.function == function);
        for call in of_it {
            *sums.entry(&call.probe.module).or_default() += call.to - call.from;
        }
        let whole = sums.values().sum();
        let (module, time) = sums.into_iter().max_by_key(|(_, time)| *time)?;
        Some((whole, module.to_owned(), time))
    }
}

/// For how long a stretch of time and a call are both under way.
fn overlap((from, to): (u64, u64), call: &Call) -> u64 {
    to.min(call.to).saturating_sub(from.max(call.from))
}

/// Adds a wait to those of its kind; what is none of these does not count.
fn add_wait(waited: &mut [u64; 2], kind: Kind, time: u64) {
    for (sum, _) in waited
        .iter_mut()
        .zip(WAITS)
        .filter(|(_, wait)| *wait == kind)
    {
        *sum += time;
    }
}

/// What a path has waited before each of its pieces.
fn waited_before(pieces: &[Piece]) -> Vec<[u64; 2]> {
    let mut waited = [0; 2];
    let before = pieces.iter().map(|piece| {
        let before = waited;
        add_wait(&mut waited, piece.kind, piece.time());
        before
    });
    before.collect()
}

fn with_children<'p>(tree: &Tree, pieces: impl Iterator<Item = &'p Piece>) -> Vec<u64> {
    let mut times = vec![0; tree.processes.len()];
    for piece in pieces {
        times[piece.process.0] += piece.time();
    }
    // Children are younger than their parents.
    for at in (0..times.len()).rev() {
        if let Some(parent) = tree.processes[at].parent {
            times[parent.0] += times[at];
        }
    }
    times
}

/// Where functions begin and return, put together by thread.
fn calls(tree: &Tree, probes: &[Probe], login: &Login) -> Vec<Call> {
    let own = tree.all_below(login.root);
    let mut open: HashMap<ThreadId, Vec<&Probed>> = HashMap::new();
    let mut calls = Vec::new();
    for probed in &tree.probed {
        let process = tree.thread(probed.thread).process;
        let Some(named) = probes.get(probed.probe) else {
            continue;
        };
        if !own[process.0] || calls.len() >= MAX_CALLS {
            continue;
        }
        let stack = open.entry(probed.thread).or_default();
        if probed.begins {
            if stack.len() < MAX_NESTED {
                stack.push(probed);
            }
            continue;
        }
        // One that has not returned was left by other means.
        let Some(place) = stack.iter().rposition(|begun| begun.probe == probed.probe) else {
            continue;
        };
        let begun = stack[place];
        stack.truncate(place);
        let to = probed.at.min(login.end);
        if begun.at < to {
            calls.push(Call {
                probe: named.clone(),
                process,
                about: begun.about.clone(),
                from: begun.at,
                to,
            });
        }
    }
    calls
}

#[cfg(test)]
#[path = "sums_tests.rs"]
mod tests;
