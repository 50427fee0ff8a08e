//! The critical path of a login: what the first octet of output was waiting for at each moment, found by walking back from it.
//!
//! A thread that runs is work of its program; one that could run waits for a processor; one that is blocked waits for who wakes
//! it, and what that one did meanwhile is what counts, as far back as the wait began. A wait that an interrupt ends is a leaf: a
//! timer, a disk, a packet. (The idea is that of Trace Compass' critical flow view.) The pieces lie one behind the other, without
//! a gap: they add up to the wall time, and what nothing is known of is a piece like the others.

use std::collections::BTreeMap;

use crate::login::Login;
use crate::record::Waking;
use crate::segments::{State, Waker};
use crate::tree::{ProcessId, ThreadId, Tree};

/// How deep a wait for who waits for who waits is followed.
const MAX_DEPTH: u32 = 256;
/// Most stretches that are looked at.
const MAX_STRETCHES: usize = 200_000;
/// Threads of the kernel's that finish what a disk or a remote file system was asked for.
const DISK_WORKERS: [&str; 8] = [
    "kworker", "jbd2", "xfs", "loop", "dm", "md", "nfs", "rpciod",
];
/// Threads of the kernel's that pass packets on.
const PACKET_WORKERS: [&str; 2] = ["ksoftirqd", "napi"];

/// What the login waited for, for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Nanoseconds of the host's monotonic clock.
    pub from: u64,
    /// The same.
    pub to: u64,
    /// Who was at it, or waited.
    pub process: ProcessId,
    /// For what.
    pub kind: Kind,
}

/// What takes time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A program works.
    Cpu,
    /// It could, but has no processor: others have them, or its control group has used its quota up.
    Contention,
    /// A disk, or a file system behind the network.
    Storage,
    /// A time that the program has set itself: sleep, a time-out.
    Timer,
    /// A packet: of the client's, of a name server's.
    Peer,
    /// Another program that is none of the login's, by its number.
    Outside(u32),
    /// Nothing is known of it.
    Unexplained,
}

impl Kind {
    /// Its name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Cpu => "cpu",
            Kind::Contention => "contention",
            Kind::Storage => "storage",
            Kind::Timer => "timer",
            Kind::Peer => "network",
            Kind::Outside(_) => "program",
            Kind::Unexplained => "unexplained",
        }
    }
}

impl Piece {
    /// How long, in nanoseconds.
    pub fn time(&self) -> u64 {
        self.to - self.from
    }
}

/// A thread's time between two moments that is to be explained.
struct Stretch {
    thread: ThreadId,
    from: u64,
    to: u64,
    depth: u32,
}

struct Walk<'t> {
    tree: &'t Tree,
    names: &'t BTreeMap<u32, String>,
    waiting: Vec<Stretch>,
    pieces: Vec<Piece>,
}

/// The path of a login, in the order of time. `names` are those of processes that are none of its own.
pub fn path(tree: &Tree, names: &BTreeMap<u32, String>, login: &Login) -> Vec<Piece> {
    let mut walk = Walk {
        tree,
        names,
        waiting: Vec::new(),
        pieces: Vec::new(),
    };
    walk.wait(login.last, login.begin, login.end, 0);
    let mut stretches = 0;
    while let Some(stretch) = walk.waiting.pop() {
        stretches += 1;
        match stretches > MAX_STRETCHES || stretch.depth > MAX_DEPTH {
            true => walk.piece(stretch.thread, stretch.from, stretch.to, Kind::Unexplained),
            false => walk.explain(&stretch),
        }
    }
    walk.pieces.sort_by_key(|piece| piece.from);
    joined(walk.pieces)
}

impl Walk<'_> {
    fn wait(&mut self, thread: ThreadId, from: u64, to: u64, depth: u32) {
        if from < to {
            self.waiting.push(Stretch {
                thread,
                from,
                to,
                depth,
            });
        }
    }

    fn piece(&mut self, thread: ThreadId, from: u64, to: u64, kind: Kind) {
        if from < to {
            let process = self.tree.thread(thread).process;
            self.pieces.push(Piece {
                from,
                to,
                process,
                kind,
            });
        }
    }

    /// Explains a stretch: each moment of it once, by a piece or by a stretch of another thread's.
    fn explain(&mut self, stretch: &Stretch) {
        let tree = self.tree;
        let (id, depth) = (stretch.thread, stretch.depth + 1);
        let thread = tree.thread(id);
        let mut from = stretch.from;
        if from < thread.born {
            // Before there was a thread there was who made it.
            let until = thread.born.min(stretch.to);
            match thread.maker {
                Some(maker) => self.wait(maker, from, until, depth),
                None => self.piece(id, from, until, Kind::Unexplained),
            }
            from = until;
        }
        let first = thread
            .segments
            .partition_point(|segment| segment.to <= from);
        for segment in &thread.segments[first..] {
            let (begin, end) = (segment.from.max(from), segment.to.min(stretch.to));
            if segment.from >= stretch.to {
                break;
            }
            self.piece(id, from, begin, Kind::Unexplained);
            match segment.state {
                State::Running => self.piece(id, begin, end, Kind::Cpu),
                State::Runnable => self.piece(id, begin, end, Kind::Contention),
                State::Blocked { deeply, waker } => {
                    // Who ends a wait later than it is looked at has nothing to do with it.
                    let waker = waker.filter(|_| segment.to <= stretch.to);
                    match waker.and_then(|waker| self.follow(waker, id)) {
                        Some(waker) => self.wait(waker, begin, end, depth),
                        None => {
                            let kind = waker.map_or(Kind::Unexplained, |it| self.leaf(it, deeply));
                            self.piece(id, begin, end, kind);
                        }
                    }
                }
            }
            from = end;
        }
        self.piece(id, from, stretch.to, Kind::Unexplained);
    }

    /// The thread of the login's that ended a wait.
    fn follow(&self, waker: Waker, woken: ThreadId) -> Option<ThreadId> {
        let thread = waker.thread.filter(|_| waker.by == Waking::Thread)?;
        // What the server does for others is not looked into.
        let process = self.tree.thread(thread).process;
        (thread != woken && process != ProcessId(0)).then_some(thread)
    }

    /// What a wait was for that no thread of the login's has ended.
    fn leaf(&self, waker: Waker, deeply: bool) -> Kind {
        let name = self.names.get(&waker.number).map_or("", String::as_str);
        let is_one_of = |workers: &[&str]| workers.iter().any(|worker| name.starts_with(worker));
        match (waker.by, deeply) {
            (Waking::Interrupt | Waking::SoftInterrupt, true) => Kind::Storage,
            (Waking::Interrupt, false) => Kind::Timer,
            (Waking::SoftInterrupt, false) => Kind::Peer,
            (Waking::Thread, _) if waker.number == 0 => Kind::Unexplained,
            (Waking::Thread, true) if is_one_of(&DISK_WORKERS) => Kind::Storage,
            (Waking::Thread, false) if is_one_of(&PACKET_WORKERS) => Kind::Peer,
            (Waking::Thread, _) => Kind::Outside(waker.number),
        }
    }
}

/// Neighbours of one kind and process are one piece.
fn joined(pieces: Vec<Piece>) -> Vec<Piece> {
    let mut joined: Vec<Piece> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        match joined.last_mut() {
            Some(last)
                if last.kind == piece.kind
                    && last.process == piece.process
                    && last.to == piece.from =>
            {
                last.to = piece.to;
            }
            _ => joined.push(piece),
        }
    }
    joined
}

#[cfg(test)]
#[path = "path_tests.rs"]
mod tests;
