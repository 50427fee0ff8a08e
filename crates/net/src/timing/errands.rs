//! What follows a login that is measured, on the same connection: round trips, then sessions, one after the other.
//!
//! A session begins when the one before is closed, and only after a sign of life of the server's has come: sshd counts a
//! session until it is through with its close (MaxSessions; session.c, session_close), which is before it answers what came
//! behind it.

use std::time::{Duration, Instant};

use sshoal_proto::{Connection, ConnectionError, Event, LocalChannel, SessionRequest};

use super::marks::Timing;

/// Round trips that are measured before the first of the further sessions.
const ROUND_TRIPS: u32 = 6;
/// How long one session may take: what a host's name service or its home's server holds up is a finding then.
const PATIENCE: Duration = Duration::from_secs(30);
/// Most octets of a session's output that are kept.
const MAX_OUTPUT: usize = 256 * 1024;
/// Most pieces in which it may come.
const MAX_PIECES: usize = 4096;

/// A session that is to follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Errand {
    /// The line for the user's shell.
    pub command: Vec<u8>,
    /// What the command reads.
    pub input: Vec<u8>,
}

/// What came of one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ErrandDone {
    /// From the request for a channel to its confirmation.
    pub opened: Option<Duration>,
    /// Standard output and errors, each piece with the time since the command was sent: up to 256 KiB.
    pub output: Vec<(Duration, Vec<u8>)>,
    /// From when the command was sent to the end of all that came.
    pub took: Duration,
    /// How it ended.
    pub end: ErrandEnd,
}

/// How a session ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ErrandEnd {
    /// The connection broke.
    #[default]
    Broken,
    /// The server opened no channel, or did not start the command, and said why.
    Refused(String),
    /// The command had this status; `None` if a signal ended it.
    Exit(Option<u32>),
    /// It took longer than it may.
    Late,
}

/// What follows one login.
pub(crate) struct Errands {
    timing: Timing,
    /// What is to come, the next one last.
    waiting: Vec<Errand>,
    stage: Stage,
}

enum Stage {
    /// The login's own session goes on; until when its close is waited for, once its command has ended.
    FirstSession(Option<Instant>),
    /// The server owes a sign of life that was asked for then; so many more are wanted.
    SignOfLife(Instant, u32),
    Session(Session),
    Over,
}

/// A further session.
struct Session {
    channel: LocalChannel,
    input: Vec<u8>,
    /// How much of the input has gone, and whether its end has.
    sent: usize,
    has_ended: bool,
    started: bool,
    asked: Instant,
    /// When the channel was open, and the command sent.
    commanded: Option<Instant>,
    /// Octets that have come and that the server has not been told of.
    owed: usize,
    kept: usize,
    is_closed: bool,
    done: ErrandDone,
}

impl Errands {
    pub(super) fn new(timing: Timing, mut list: Vec<Errand>) -> Errands {
        list.reverse();
        Errands {
            timing,
            waiting: list,
            stage: Stage::FirstSession(None),
        }
    }

    /// Whether the login's own session is over.
    pub(crate) fn have_begun(&self) -> bool {
        !matches!(self.stage, Stage::FirstSession(_))
    }

    pub(crate) fn are_over(&self) -> bool {
        matches!(self.stage, Stage::Over)
    }

    /// Nothing more is to be done.
    pub(crate) fn give_up(&mut self) {
        self.leave(None);
    }

    /// When to be looked after at the latest.
    pub(crate) fn wake(&self) -> Option<Instant> {
        match &self.stage {
            Stage::FirstSession(due) => *due,
            Stage::SignOfLife(asked, _) => Some(*asked + PATIENCE),
            Stage::Session(session) => Some(session.asked + PATIENCE),
            Stage::Over => None,
        }
    }

    /// Takes the events of the sessions; of the login's own its end, which is held back until all is done.
    pub(crate) fn handle(
        &mut self,
        channel: LocalChannel,
        event: Event,
        input: &[u8],
    ) -> Option<Event> {
        match &mut self.stage {
            Stage::FirstSession(due) => match event {
                Event::ExitStatus { channel: of, .. } | Event::ExitSignal { channel: of, .. }
                    if of == channel =>
                {
                    *due = Some(Instant::now() + PATIENCE);
                    Some(event)
                }
                Event::Eof(of) if of == channel => None,
                Event::Closed(of) if of == channel => {
                    *due = Some(Instant::now());
                    None
                }
                other => Some(other),
            },
            Stage::Session(session) => session.handle(event, input),
            Stage::SignOfLife(..) | Stage::Over => Some(event),
        }
    }

    /// Does what there is to do.
    ///
    /// # Errors
    ///
    /// The error that ended the connection: nothing more can be done.
    pub(crate) fn advance(&mut self, connection: &mut Connection) -> Result<(), ConnectionError> {
        let now = Instant::now();
        match &mut self.stage {
            Stage::FirstSession(Some(due)) if now >= *due => {
                self.ask_for_sign_of_life(connection, ROUND_TRIPS)
            }
            Stage::FirstSession(_) | Stage::Over => Ok(()),
            Stage::SignOfLife(asked, left) => {
                if connection.awaits_sign_of_life() {
                    if now >= *asked + PATIENCE {
                        self.stage = Stage::Over;
                    }
                    return Ok(());
                }
                let (took, left) = (now.saturating_duration_since(*asked), *left - 1);
                self.timing.learn(|login| login.round_trips.push(took));
                match left {
                    0 => self.begin_next(connection),
                    left => self.ask_for_sign_of_life(connection, left),
                }
            }
            Stage::Session(session) => {
                session.advance(connection)?;
                match session.is_closed {
                    true => {
                        self.leave(None);
                        self.ask_for_sign_of_life(connection, 1)
                    }
                    false if now >= session.asked + PATIENCE => {
                        self.leave(Some(ErrandEnd::Late));
                        Ok(())
                    }
                    false => Ok(()),
                }
            }
        }
    }

    fn ask_for_sign_of_life(
        &mut self,
        connection: &mut Connection,
        wanted: u32,
    ) -> Result<(), ConnectionError> {
        connection.ask_for_sign_of_life()?;
        self.stage = Stage::SignOfLife(Instant::now(), wanted);
        Ok(())
    }

    fn begin_next(&mut self, connection: &mut Connection) -> Result<(), ConnectionError> {
        let Some(Errand { command, input }) = self.waiting.pop() else {
            self.stage = Stage::Over;
            return Ok(());
        };
        let channel = connection.open_session(SessionRequest {
            standard_input: !input.is_empty(),
            ..SessionRequest::exec(command)
        })?;
        self.stage = Stage::Session(Session {
            channel,
            has_ended: input.is_empty(),
            input,
            sent: 0,
            started: false,
            asked: Instant::now(),
            commanded: None,
            owed: 0,
            kept: 0,
            is_closed: false,
            done: ErrandDone::default(),
        });
        Ok(())
    }

    /// Leaves what a session has come to, if there is one, in the run's timings.
    fn leave(&mut self, end: Option<ErrandEnd>) {
        if let Stage::Session(session) = std::mem::replace(&mut self.stage, Stage::Over) {
            let mut done = session.done;
            done.took = session.commanded.map_or(Duration::ZERO, |at| at.elapsed());
            if let Some(end) = end {
                done.end = end;
            }
            if matches!(done.end, ErrandEnd::Refused(_)) {
                // The others would fare no better.
                self.waiting.clear();
            }
            self.timing.learn(|login| login.errands.push(done));
        }
    }
}

impl Session {
    fn handle(&mut self, event: Event, input: &[u8]) -> Option<Event> {
        let ours = self.channel;
        match event {
            Event::ChannelOpened(channel) if channel == ours => {
                let now = Instant::now();
                self.done.opened = Some(now.saturating_duration_since(self.asked));
                self.commanded = Some(now);
            }
            Event::Started(channel) if channel == ours => self.started = true,
            Event::Data { channel, range, .. } if channel == ours => {
                self.owed += range.len();
                self.keep(&input[range]);
            }
            Event::ExitStatus { channel, status } if channel == ours => {
                self.done.end = ErrandEnd::Exit(Some(status));
            }
            Event::ExitSignal { channel, .. } if channel == ours => {
                self.done.end = ErrandEnd::Exit(None);
            }
            Event::ChannelRefused {
                channel,
                description,
                ..
            } if channel == ours => {
                self.done.end = ErrandEnd::Refused(description);
                self.is_closed = true;
            }
            Event::StartRefused(channel) if channel == ours => {
                self.done.end = ErrandEnd::Refused("it does not run the command".to_owned());
                self.is_closed = true;
            }
            Event::Eof(channel) | Event::Writable(channel) if channel == ours => {}
            Event::Closed(channel) if channel == ours => self.is_closed = true,
            other => return Some(other),
        }
        None
    }

    fn keep(&mut self, octets: &[u8]) {
        let room = (MAX_OUTPUT - self.kept).min(octets.len());
        let since = self.commanded.map_or(Duration::ZERO, |at| at.elapsed());
        if room > 0 && self.done.output.len() < MAX_PIECES {
            self.kept += room;
            self.done.output.push((since, octets[..room].to_vec()));
        }
    }

    /// Gives the server the room for more, and the command its input.
    fn advance(&mut self, connection: &mut Connection) -> Result<(), ConnectionError> {
        let owed = std::mem::take(&mut self.owed);
        if self.is_closed {
            return Ok(());
        }
        if owed > 0 {
            connection.consumed(self.channel, owed)?;
        }
        if self.started && !self.has_ended {
            self.sent += connection.send_data(self.channel, &self.input[self.sent..])?;
            if self.sent == self.input.len() {
                self.has_ended = true;
                connection.send_eof(self.channel)?;
            }
        }
        Ok(())
    }
}
