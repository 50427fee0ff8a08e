//! What a thread does from one time to the next: it runs, would run, or waits.

use crate::record::{Left, Waking};
use crate::tree::ThreadId;

/// A stretch of a thread's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Nanoseconds of the host's monotonic clock.
    pub from: u64,
    /// The same; the next one begins there.
    pub to: u64,
    /// What it does.
    pub state: State,
}

/// What a thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It is on a processor.
    Running,
    /// It has what it needs but a processor.
    Runnable,
    /// It waits.
    Blocked {
        /// Whether nothing but what it waits for can wake it: a disk, a lock of the kernel's.
        deeply: bool,
        /// Who ended that, if that is known.
        waker: Option<Waker>,
    },
}

/// Who has woken a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waker {
    /// The number of the thread that was on the processor.
    pub number: u32,
    /// Which that is, if it belongs to those that are followed.
    pub thread: Option<ThreadId>,
    /// Whether it was that thread at all.
    pub by: Waking,
}

/// The segments of one thread as they come about.
#[derive(Debug, Default)]
pub(crate) struct Segments {
    pub(crate) done: Vec<Segment>,
    /// Since when it is in its present state; `None` where that is not known.
    now: Option<(u64, State)>,
    /// Who woke it while it still ran: it may be on its way to sleep.
    early: Option<Waker>,
}

impl Segments {
    /// A thread is born, ready to run.
    pub(crate) fn born(at: u64) -> Segments {
        Segments {
            now: Some((at, State::Runnable)),
            ..Segments::default()
        }
    }

    fn change(&mut self, at: u64, state: Option<State>) {
        if let Some((from, state)) = self.now.take().filter(|(from, _)| *from < at) {
            self.done.push(Segment {
                from,
                to: at,
                state,
            });
        }
        self.now = state.map(|state| (at, state));
    }

    /// It gets a processor.
    pub(crate) fn comes(&mut self, at: u64) {
        if let Some((_, State::Blocked { waker, .. })) = &mut self.now
            && waker.is_none()
        {
            *waker = self.early;
        }
        self.early = None;
        self.change(at, Some(State::Running));
    }

    /// It is on a processor. Linux does not always tell that a thread came to one: of those that it moves to an idle one while they run a
    /// program it leaves that out (seen with 6.18). What such a thread does first is hardly later.
    pub(crate) fn seen(&mut self, at: u64) {
        if let Some((_, State::Runnable | State::Blocked { .. })) = self.now {
            self.comes(at);
        }
    }

    /// It leaves its processor.
    pub(crate) fn leaves(&mut self, at: u64, left: Left) {
        let blocked = |deeply| {
            Some(State::Blocked {
                deeply,
                waker: None,
            })
        };
        let next = match left {
            Left::Ended => None,
            Left::Runnable => Some(State::Runnable),
            Left::Asleep | Left::Stopped => blocked(false),
            Left::DeeplyAsleep => blocked(true),
        };
        if left == Left::Runnable {
            self.early = None;
        }
        self.change(at, next);
    }

    /// It is woken.
    pub(crate) fn woken(&mut self, at: u64, by: Waker) {
        match &mut self.now {
            Some((_, State::Blocked { waker, .. })) => {
                *waker = Some(by);
                self.change(at, Some(State::Runnable));
            }
            Some((_, State::Running)) => self.early = Some(by),
            Some((_, State::Runnable)) => {}
            // What it did before is not known.
            None => self.now = Some((at, State::Runnable)),
        }
    }

    /// The trace ends.
    pub(crate) fn close(&mut self, at: u64) {
        self.change(at, None);
    }
}
