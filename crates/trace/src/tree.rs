//! Processes and threads: who has made whom, what each has run, and what each did when. Forks without exec are there as any others.

use std::collections::HashMap;

use crate::record::{Left, Peer, Record, Waking, What};
use crate::segments::{Segment, Segments, Waker};

/// Most threads of a trace: a login has some hundred at most, but others may log in meanwhile.
const MAX_THREADS: usize = 16_384;
/// Most programs that a process runs, and connections that it makes, that are kept.
const MAX_OF_ONE: usize = 64;
/// Most files that all open, whose paths are kept.
const MAX_FILES: usize = 50_000;
/// Most calls of probed functions that are kept, beginnings and ends.
const MAX_PROBED: usize = 100_000;

/// A thread, by its place among those of its tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadId(pub(crate) usize);

/// A process, by its place in [`Tree::processes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessId(pub(crate) usize);

/// All processes that come of one, in the order of their birth.
#[derive(Debug, Default)]
pub struct Tree {
    pub(crate) processes: Vec<Process>,
    pub(crate) threads: Vec<Thread>,
    /// Probed functions as they began and returned.
    pub(crate) probed: Vec<Probed>,
    /// Whether it is told who runs and who waits for what; otherwise merely who lives.
    pub(crate) tells_time: bool,
    /// When the last record was made.
    pub(crate) end: u64,
    /// Threads beyond those that are kept.
    pub(crate) left_out: u64,
}

/// A probed function begins or returns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Probed {
    pub(crate) thread: ThreadId,
    pub(crate) probe: usize,
    pub(crate) at: u64,
    /// It begins; otherwise it returns.
    pub(crate) begins: bool,
    /// What it is asked for.
    pub(crate) about: Option<String>,
}

/// A process.
#[derive(Debug, Clone, PartialEq)]
pub struct Process {
    /// The kernel's number.
    pub pid: u32,
    /// Who made it; `None` of the one that is followed.
    pub parent: Option<ProcessId>,
    /// By which of its threads.
    pub(crate) maker: Option<ThreadId>,
    /// When it was born, in nanoseconds of the host's monotonic clock.
    pub born: u64,
    /// When its last thread ended, if it has.
    pub ended: Option<u64>,
    /// Its name when it was born: its parent's.
    pub name: String,
    /// What it has run since.
    pub programs: Vec<Program>,
    /// Files that it has opened, or tried to.
    pub opened: u64,
    /// Those of them whose paths are known, in the order of time.
    pub files: Vec<OpenedFile>,
    /// Octets that it has asked of disks itself.
    pub block_octets: u64,
    /// TCP connections that it has begun.
    pub connections: Vec<Peer>,
    /// TCP connections whose state it has changed.
    pub(crate) peers: Vec<Peer>,
    pub(crate) living: usize,
}

/// A program that a process runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Since when.
    pub since: u64,
    /// Its path; of a script the script's, not its interpreter's.
    pub file: String,
    /// The first of its arguments, its own name among them; nothing if they are not known.
    pub arguments: Vec<String>,
}

/// A file that was opened, or was to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenedFile {
    /// As the program has it: it may be relative.
    pub path: String,
    /// When; nanoseconds of the host's monotonic clock.
    pub from: u64,
    /// When that was over, if it is known.
    pub to: Option<u64>,
    /// Whether there is none, or it may not be opened.
    pub failed: bool,
}

/// A thread.
#[derive(Debug, Clone, PartialEq)]
pub struct Thread {
    /// The kernel's number.
    pub number: u32,
    /// Whose.
    pub process: ProcessId,
    /// Who made it.
    pub(crate) maker: Option<ThreadId>,
    /// When.
    pub(crate) born: u64,
    /// What it did, one after the other.
    pub segments: Vec<Segment>,
    /// Whom it has woken itself, and when.
    pub(crate) wakes: Vec<(u64, ThreadId)>,
}

impl Process {
    /// What it is called at a time: the last word of its program's path.
    pub fn title_at(&self, at: u64) -> &str {
        let known = self.programs.iter().rev().find(|it| it.since <= at);
        known.map_or(self.name.as_str(), |program| program.title())
    }

    /// What it is called at its end.
    pub fn title(&self) -> &str {
        self.title_at(u64::MAX)
    }

    /// Whether it has never run a program of its own.
    pub fn is_fork(&self) -> bool {
        self.programs.is_empty()
    }
}

impl Program {
    /// The last word of its path.
    pub fn title(&self) -> &str {
        self.file.rsplit('/').next().unwrap_or_default()
    }
}

impl Tree {
    /// What the records tell of the process `followed` and all that came of it.
    pub fn of(followed: u32, records: &[Record]) -> Tree {
        let mut building = Building::default();
        let tells_time =
            |record: &Record| matches!(record.what, What::Switch { .. } | What::Waking { .. });
        building.tree.tells_time = records.iter().any(tells_time);
        building.tree.end = records.last().map_or(0, |record| record.at);
        let begin = records.first().map_or(0, |record| record.at);
        building.process(followed, None, begin, Segments::default(), String::new());
        for record in records {
            building.take(record);
        }
        building.finish()
    }

    /// All processes, in the order of their birth; the first is the one that is followed.
    pub fn processes(&self) -> impl Iterator<Item = (ProcessId, &Process)> {
        let each = self.processes.iter().enumerate();
        each.map(|(at, process)| (ProcessId(at), process))
    }

    /// One of them.
    pub fn process(&self, id: ProcessId) -> &Process {
        &self.processes[id.0]
    }

    /// One of the threads.
    pub fn thread(&self, id: ThreadId) -> &Thread {
        &self.threads[id.0]
    }

    /// A process's threads, in the order of their birth.
    pub fn threads_of(&self, process: ProcessId) -> impl Iterator<Item = ThreadId> {
        let each = self.threads.iter().enumerate();
        each.filter(move |(_, thread)| thread.process == process)
            .map(|(at, _)| ThreadId(at))
    }

    /// Of each process whether it is `above` or comes of it.
    pub(crate) fn all_below(&self, above: ProcessId) -> Vec<bool> {
        let mut below: Vec<bool> = Vec::with_capacity(self.processes.len());
        for (id, process) in self.processes() {
            // Parents are older.
            let comes_of_it = process.parent.is_some_and(|parent| below[parent.0]);
            below.push(id == above || comes_of_it);
        }
        below
    }

    /// The program that a process runs at a time, its own or what it was born with.
    pub(crate) fn program_at(&self, process: ProcessId, at: u64) -> Option<&Program> {
        let mut at = at;
        let mut next = Some(process);
        while let Some(id) = next {
            let process = self.process(id);
            if let Some(own) = process.programs.iter().rev().find(|it| it.since <= at) {
                return Some(own);
            }
            (at, next) = (process.born, process.parent);
        }
        None
    }
}

#[derive(Default)]
struct Building {
    tree: Tree,
    /// Each thread's segments so far.
    segments: Vec<Segments>,
    /// Who has a number now.
    numbers: HashMap<u32, ThreadId>,
    /// What is told of a thread before its birth.
    tasks: HashMap<u32, (bool, String)>,
    /// What the C library was told by a thread, until the kernel is.
    paths: HashMap<ThreadId, String>,
    arguments: HashMap<ThreadId, Vec<String>>,
    /// The file that a thread is opening: its process's last but so many.
    opening: HashMap<ThreadId, usize>,
    /// How many files are kept.
    files: usize,
}

impl Building {
    fn process(
        &mut self,
        pid: u32,
        maker: Option<ThreadId>,
        at: u64,
        segments: Segments,
        name: String,
    ) {
        let parent = maker.map(|maker| self.tree.thread(maker).process);
        let id = ProcessId(self.tree.processes.len());
        self.tree.processes.push(Process {
            pid,
            parent,
            maker,
            born: at,
            ended: None,
            name,
            programs: Vec::new(),
            opened: 0,
            files: Vec::new(),
            block_octets: 0,
            connections: Vec::new(),
            peers: Vec::new(),
            living: 0,
        });
        self.thread(pid, id, maker, at, segments);
    }

    fn thread(
        &mut self,
        number: u32,
        process: ProcessId,
        maker: Option<ThreadId>,
        at: u64,
        segments: Segments,
    ) {
        let id = ThreadId(self.tree.threads.len());
        self.tree.threads.push(Thread {
            number,
            process,
            maker,
            born: at,
            segments: Vec::new(),
            wakes: Vec::new(),
        });
        self.segments.push(segments);
        self.numbers.insert(number, id);
        self.tree.processes[process.0].living += 1;
    }

    fn take(&mut self, record: &Record) {
        let at = record.at;
        let current = self.numbers.get(&record.thread).copied();
        if let Some(current) = current {
            self.segments[current.0].seen(at);
        }
        let own = current.filter(|_| record.by == Waking::Thread);
        let own_process = own.map(|own| self.tree.thread(own).process);
        let process = own_process.map(|id| &mut self.tree.processes[id.0]);
        match &record.what {
            What::Task {
                thread,
                is_thread,
                name,
            } => {
                if own.is_some() && self.tasks.len() < MAX_THREADS {
                    self.tasks.insert(*thread, (*is_thread, name.clone()));
                }
            }
            What::Fork { parent, child } => self.fork(at, *parent, *child),
            What::Exec { file, before } => {
                if *before != record.thread {
                    self.renumber(*before, record.thread);
                }
                let Some(thread) = self.numbers.get(&record.thread) else {
                    return;
                };
                let arguments = self.arguments.remove(thread).unwrap_or_default();
                let process = self.tree.thread(*thread).process;
                let programs = &mut self.tree.processes[process.0].programs;
                if programs.len() < MAX_OF_ONE {
                    programs.push(Program {
                        since: at,
                        file: file.clone(),
                        arguments,
                    });
                }
            }
            What::Exit => self.exit(at, record.thread),
            What::Switch {
                from, state, to, ..
            } => {
                if let Some(from) = self.numbers.get(from) {
                    self.segments[from.0].leaves(at, *state);
                }
                if matches!(state, Left::Ended) {
                    self.numbers.remove(from);
                }
                if let Some(to) = self.numbers.get(to) {
                    self.segments[to.0].comes(at);
                }
            }
            What::Waking { woken } => {
                let Some(woken) = self.numbers.get(woken).copied() else {
                    return;
                };
                let waker = Waker {
                    number: record.thread,
                    thread: current,
                    by: record.by,
                };
                self.segments[woken.0].woken(at, waker);
                if let Some(own) = own {
                    self.tree.threads[own.0].wakes.push((at, woken));
                }
            }
            What::Socket(peer) => {
                let Some(process) = process else { return };
                if process.peers.len() < MAX_OF_ONE && !process.peers.contains(peer) {
                    process.peers.push(*peer);
                }
                if peer.is_connecting && process.connections.len() < MAX_OF_ONE {
                    process.connections.push(*peer);
                }
            }
            What::BlockIo { octets } => {
                if let Some(process) = process {
                    process.block_octets = process.block_octets.saturating_add(*octets);
                }
            }
            What::Open => self.open(at, own),
            What::Opened { failed } => self.opened(at, own, *failed),
            What::Path { path } => {
                if let Some(own) = own {
                    self.paths.insert(own, path.clone());
                }
            }
            What::Arguments { words } => {
                if let Some(own) = own {
                    self.arguments.insert(own, words.clone());
                }
            }
            What::Enter { probe, about } => self.probed(at, own, *probe, true, about.clone()),
            What::Leave(probe) => self.probed(at, own, *probe, false, None),
        }
    }

    fn open(&mut self, at: u64, thread: Option<ThreadId>) {
        let Some(thread) = thread else { return };
        let process = &mut self.tree.processes[self.tree.threads[thread.0].process.0];
        process.opened += 1;
        let Some(path) = self.paths.remove(&thread) else {
            return;
        };
        if self.files < MAX_FILES {
            self.files += 1;
            self.opening.insert(thread, process.files.len());
            process.files.push(OpenedFile {
                path,
                from: at,
                to: None,
                failed: false,
            });
        }
    }

    fn opened(&mut self, at: u64, thread: Option<ThreadId>, failed: bool) {
        let Some(thread) = thread else { return };
        let process = &mut self.tree.processes[self.tree.threads[thread.0].process.0];
        let place = self.opening.remove(&thread);
        if let Some(file) = place.and_then(|place| process.files.get_mut(place)) {
            (file.to, file.failed) = (Some(at), failed);
        }
    }

    fn probed(
        &mut self,
        at: u64,
        thread: Option<ThreadId>,
        probe: usize,
        begins: bool,
        about: Option<String>,
    ) {
        let has_room = self.tree.probed.len() < MAX_PROBED;
        if let Some(thread) = thread.filter(|_| has_room) {
            self.tree.probed.push(Probed {
                thread,
                probe,
                at,
                begins,
                about,
            });
        }
    }

    fn fork(&mut self, at: u64, parent: u32, child: u32) {
        let (is_thread, name) = self.tasks.remove(&child).unwrap_or_default();
        let Some(maker) = self.numbers.get(&parent).copied() else {
            return;
        };
        if self.tree.threads.len() >= MAX_THREADS {
            self.tree.left_out += 1;
            return;
        }
        let segments = match self.tree.tells_time {
            true => Segments::born(at),
            false => Segments::default(),
        };
        match is_thread {
            true => {
                let process = self.tree.thread(maker).process;
                self.thread(child, process, Some(maker), at, segments);
            }
            false => self.process(child, Some(maker), at, segments, name),
        }
    }

    /// A thread that runs a program becomes the only one of its process, and takes its number (execve(2)).
    fn renumber(&mut self, before: u32, now: u32) {
        if let Some(thread) = self.numbers.remove(&before) {
            self.tree.threads[thread.0].number = now;
            self.numbers.insert(now, thread);
        }
    }

    fn exit(&mut self, at: u64, number: u32) {
        // It still runs for a while: its parent is yet to be told.
        let Some(thread) = self.numbers.get(&number).copied() else {
            return;
        };
        let process = &mut self.tree.processes[self.tree.threads[thread.0].process.0];
        process.living = process.living.saturating_sub(1);
        if process.living == 0 {
            process.ended = Some(at);
        }
    }

    fn finish(mut self) -> Tree {
        let end = self.tree.end;
        for (thread, mut segments) in self.tree.threads.iter_mut().zip(self.segments) {
            segments.close(end);
            thread.segments = segments.done;
        }
        self.tree
    }
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
