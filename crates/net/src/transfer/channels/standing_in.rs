//! A host without SFTP: a shell stands in for it, in a session of its own.

use std::time::{Duration, Instant};

use sshoal_fleet::{Failure, FailureKind};
use sshoal_proto::{Connection, ConnectionError, Event, LocalChannel, SessionRequest};
use sshoal_transfer::{SHELL_COMMAND, ShellError, ShellServer};

use super::super::rate::granted;
use super::ending::NEEDS_NO_PROGRAM;
use super::{Channel, LaneId, Transfer, beside};

/// How long a channel that is of no use may take to close before another one is opened beside it; until it is closed it
/// counts for MaxSessions (sshd_config).
const CLOSING: Duration = Duration::from_secs(1);

/// What the host has not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    /// sshd knows no subsystem of that name.
    Subsystem,
    /// sshd knows one, and its program is not there.
    Program,
}

/// How far it is.
#[derive(Debug, Default)]
pub(super) struct StandingIn {
    missing: Option<Missing>,
    /// The connection's channels that were for SFTP, and how many of them are closed.
    replaced: Vec<LocalChannel>,
    closed: usize,
    /// Until when it may take to close; `None` once the shell's session is opened.
    until: Option<Instant>,
    /// Why it has come to nothing.
    failure: Option<Failure>,
}

impl StandingIn {
    /// Whether a session had begun before the shell's.
    pub(super) fn follows_program(&self) -> bool {
        self.missing == Some(Missing::Program)
    }

    pub(super) fn wake(&self) -> Option<Instant> {
        self.until
    }

    /// Why it has come to nothing, told once.
    pub(super) fn take_failure(&mut self) -> Option<Failure> {
        self.failure.take()
    }

    /// Why a shell does what an SFTP server would, for the user.
    pub(super) fn why(&self) -> Option<&'static str> {
        self.missing.map(|missing| match missing {
            Missing::Subsystem => "the server refused the subsystem sftp",
            Missing::Program => "the program of the server's subsystem sftp is not there",
        })
    }
}

impl Transfer {
    /// The session's channel: the one that it was begun with, or the shell's.
    pub(crate) fn session_channel(&self) -> LocalChannel {
        self.channels[0].number
    }

    /// What a further channel's session asks for.
    pub(crate) fn channel_request(&self) -> SessionRequest {
        match self.standing_in.missing {
            None => Transfer::request(),
            Some(_) => beside::request(SHELL_COMMAND.to_owned()),
        }
    }

    /// A channel that was opened by [`channel_request`](Self::channel_request).
    pub(super) fn channel(&self, lane: LaneId, number: LocalChannel) -> Channel {
        let shell = self.standing_in.missing;
        Channel {
            shell: shell.map(|_| Box::new(ShellServer::new(secret()))),
            ..Channel::new(lane, number)
        }
    }

    /// Whether a status with which a program has ended says that there was none (sh(1): 126 and 127): of what was there, nothing
    /// is run a second time.
    pub(super) fn misses_program(&self, status: u32) -> bool {
        matches!(status, 126 | 127) && self.standing_in.missing.is_none() && !self.has_begun()
    }

    /// The first channel is of no use: a shell is to take its place.
    pub(super) fn replace(&mut self, missing: Missing) -> Result<(), Failure> {
        if let Some(why) = self.standing_in.why() {
            let detail = format!(
                "the host has no SFTP: {why}; and it refused to run a shell that could stand in"
            );
            return Err(Failure::with_remedy(
                FailureKind::Transfer,
                detail,
                "add to its sshd_config: Subsystem sftp internal-sftp",
            ));
        }
        tracing::debug!(?missing, "no SFTP: a shell stands in");
        self.words.clear();
        let mut replaced = Vec::new();
        for it in &mut self.channels {
            if it.lane == LaneId::FIRST && it.is_of_use() {
                it.started = false;
                replaced.push(it.number);
            }
        }
        self.standing_in = StandingIn {
            missing: Some(missing),
            replaced,
            closed: 0,
            until: Some(Instant::now() + CLOSING),
            failure: None,
        };
        Ok(())
    }

    /// Takes what is about a channel that was replaced; returns whether it is.
    pub(super) fn is_about_replaced(&mut self, event: &Event) -> bool {
        let standing_in = &mut self.standing_in;
        let channel = beside::channel(event);
        let is_about = channel.is_some_and(|channel| standing_in.replaced.contains(&channel));
        let is_over = matches!(event, Event::Closed(_) | Event::ChannelRefused { .. });
        standing_in.closed += usize::from(is_about && is_over);
        is_about
    }

    /// Opens the shell's sessions as soon as they may be.
    pub(super) fn begin_standing_in(
        &mut self,
        connection: &mut Connection,
    ) -> Result<(), ConnectionError> {
        if self.has_begun() {
            self.do_without_those_that_ended();
        }
        let Some(until) = self.standing_in.until else {
            return Ok(());
        };
        for &replaced in &self.standing_in.replaced {
            connection.close(replaced)?;
        }
        let are_closed = self.standing_in.closed == self.standing_in.replaced.len();
        if are_closed || until <= Instant::now() {
            self.standing_in.until = None;
            for at in 0..self.channels.len() {
                if self
                    .standing_in
                    .replaced
                    .contains(&self.channels[at].number)
                    && self.channels[at].lane == LaneId::FIRST
                {
                    let number = connection.open_session(self.channel_request())?;
                    self.channels[at] = self.channel(LaneId::FIRST, number);
                }
            }
        }
        Ok(())
    }

    fn do_without_those_that_ended(&mut self) {
        for at in 1..self.channels.len() {
            if self.channels[at].ended && self.channels[at].is_of_use() {
                self.lose(at);
            }
        }
    }

    /// Passes on what is for an SFTP server, as the shell is to do it.
    pub(super) fn send_to_shell(
        &mut self,
        connection: &mut Connection,
        at: usize,
    ) -> Result<usize, ConnectionError> {
        self.give_shell(at);
        let plan = self.plan.clone();
        let rate = plan.transfer.as_ref().and_then(|plan| plan.rate.as_ref());
        let rate = rate.filter(|_| !self.hurries);
        let number = self.channels[at].number;
        let Some(shell) = &mut self.channels[at].shell else {
            return Ok(0);
        };
        let waiting = shell.transmit().len();
        let len = match waiting {
            0 => return Ok(0),
            waiting => granted(rate, waiting, &mut self.wake),
        };
        let taken = connection.send_data(number, &shell.transmit()[..len])?;
        shell.transmitted(taken);
        if let Some(rate) = rate {
            rate.give_back(len - taken);
        }
        self.silences.excuse(at, Instant::now());
        self.note();
        Ok(taken)
    }

    /// Gives the shell what the engine has for an SFTP server, as far as there is room; takes what is answered at once.
    fn give_shell(&mut self, at: usize) {
        while let Some(shell) = &mut self.channels[at].shell {
            let piece = self.engine.transmit(at).next().unwrap_or_default();
            let len = piece.len().min(shell.room());
            if len == 0 {
                return;
            }
            let given = shell.handle_requests(&piece[..len]);
            self.engine.transmitted(at, len);
            let given = given.map_err(|error| of_no_use(&error));
            let given = given.and_then(|()| self.give_engine(at, &[]));
            if let Err(failure) = given {
                self.standing_in.failure.get_or_insert(failure);
                return;
            }
        }
    }
}

/// Why a shell cannot stand in.
pub(super) fn of_no_use(error: &ShellError) -> Failure {
    let detail = format!("the host has no SFTP, and its shell cannot stand in for it: {error}");
    Failure::with_remedy(FailureKind::Transfer, detail, NEEDS_NO_PROGRAM)
}

/// What nobody else knows, for one session.
fn secret() -> [u8; 16] {
    let mut secret = [0; 16];
    sshoal_crypto::random(&mut secret);
    secret
}
