//! How a session ends before its channel does, and what is known of the command then.

use std::io;
use std::time::{Duration, Instant};

use sshoal_fleet::{Failure, FailureKind, KillVerdict, Outcome};
use sshoal_proto::{Command, ConnectionError, ExecFate};

use super::{HostSession, State};
use crate::drive::Broken;
use crate::failures::{self, Ended};
use crate::host::{Orders, aborted, interrupted};
use crate::kill::{KillOrder, KillPlan, Killing};
use crate::link::LinkError;
use crate::warm::{KEEPER_GONE, KEPT, goes_cold};
use crate::worker::Report;

/// From SIGTERM to the end of the connection. The fleet waits 5 s for the answer to an abort.
const GRACE: Duration = Duration::from_secs(2);

impl HostSession<'_> {
    pub(super) fn fate(&self) -> ExecFate {
        let transfer = self.state.transfer.as_ref();
        let channel = transfer.map_or(self.state.channel, |it| it.session_channel());
        self.drive.connection.exec_fate(channel)
    }

    /// The end that was decided here.
    pub(super) fn failed(&mut self, failure: Failure) -> Ended {
        if self.state.is_shared && failure.kind == FailureKind::ChannelRefused {
            return self.end_of_shared(failure);
        }
        Ended {
            asks: self.state.login.take_unknown_key(),
            ..Ended::new(failure, self.fate())
        }
    }

    pub(super) fn ended(&self, error: &ConnectionError) -> Ended {
        let fate = self.fate();
        let connection = &self.drive.connection;
        self.doubt_merging(fate);
        if let (Some(trial), ConnectionError::NoCommonAlgorithm { .. }) = (&self.state.trial, error)
        {
            trial.note_server(connection);
        }
        let failure = failures::connection(error, fate, connection);
        match failure.kind {
            _ if self.state.is_shared => {
                let why = match error {
                    ConnectionError::Closed { .. } => KEEPER_GONE.to_owned(),
                    ConnectionError::Disconnected { description, .. } => {
                        format!("{KEPT}: {description}")
                    }
                    error => format!("{KEPT}: {error}"),
                };
                self.end_of_shared(Failure::new(FailureKind::Lost, why))
            }
            // It is the credentials that were refused, not the flight.
            FailureKind::AuthDenied => Ended::new(self.explained(failure), fate),
            _ => self.end(failure, Some(error)),
        }
    }

    /// The end of a connection that is somebody else's: what was not begun by it is begun anew with a login.
    fn end_of_shared(&self, failure: Failure) -> Ended {
        let (state, fate) = (&self.state, self.fate());
        match fate.safe_to_resend() {
            true => goes_cold(state.worker, state.host, failure.detail),
            false => Ended::new(self.explained(failure), fate),
        }
    }

    /// A command that may have run before anybody said that it has started was merged into a flight that this server may
    /// not bear.
    fn doubt_merging(&self, fate: ExecFate) {
        if fate == ExecFate::MayHaveRun && !self.state.started {
            self.state.learn(&self.drive.connection, false);
        }
    }

    fn end(&self, failure: Failure, error: Option<&ConnectionError>) -> Ended {
        let fate = self.fate();
        let state = &self.state;
        let connection = &self.drive.connection;
        let (worker, endpoint) = (state.worker, &state.plan.endpoint);
        let shortcuts = &state.shortcuts;
        match shortcuts.are_to_blame(worker, endpoint, connection, error, fate) {
            true => Ended::misled(failure, fate),
            false => Ended::new(self.explained(failure), fate),
        }
    }

    /// Ends the ProxyCommand, if there is one; if the connection has ended by it, it knows best why.
    pub(super) async fn part_from_proxy(
        &mut self,
        end: Result<Outcome, Ended>,
    ) -> Result<Outcome, Ended> {
        let heard = self.drive.connection.server_profile().is_some();
        let Some(proxy) = self.drive.proxy() else {
            return end;
        };
        let end = match end {
            Err(mut ended) if !self.state.torn_down => {
                ended.failure = proxy.explained(ended.failure, heard, Failure::clone).await;
                Err(ended)
            }
            end => end,
        };
        proxy.end().await;
        end
    }

    /// A command that outlives its connection is gone on with, unless it is to end. It must have said that it is what the host
    /// runs: a forced command would be run again.
    pub(super) fn outlived(&self, ended: Ended, is_ending: bool) -> Ended {
        let State {
            worker,
            host,
            plan,
            started,
            ..
        } = self.state;
        let announcement = self.state.announcement.as_ref();
        let is_ours = worker.is_announced(host) && !announcement.is_some_and(|it| it.was_missed);
        let outlives = plan.resumes_at.is_some() && started && is_ours;
        let is_wanted = !is_ending && !self.state.torn_down;
        Ended {
            is_cut: outlives && is_wanted && ended.failure.kind == FailureKind::Lost,
            ..ended
        }
    }

    /// A transfer that has not come to its end: what it has moved is told, and whether it may be begun anew.
    pub(super) async fn leave_transfer(
        &mut self,
        end: Result<Outcome, Ended>,
        orders: &mut Orders,
    ) -> Result<Outcome, Ended> {
        let State {
            worker,
            host,
            torn_down,
            ..
        } = self.state;
        // Nobody is asked twice for what he has typed.
        let may_log_in = !torn_down && self.state.may_log_in_again();
        let Some(transfer) = &mut self.state.transfer else {
            return end;
        };
        let may_begin_anew = may_log_in && transfer.may_begin_anew();
        let mut end = end.map_err(|ended| Ended {
            is_cut: may_begin_anew && ended.failure.kind == FailureKind::Lost,
            ..ended
        });
        if let Err(ended) = &mut end
            && ended.is_cut
        {
            // What else writes to a part that is to be gone on with must have ended.
            ended.is_cut = tokio::select! {
                biased;
                _ = orders.recv() => false,
                is_over = transfer.wind_up() => is_over,
            };
        }
        if transfer.has_begun() {
            worker.report(Report::Transferred(host, transfer.tally()));
        }
        end
    }

    /// The answer to an interruption before there is anything that it could reach.
    pub(super) fn interrupted(&self, fate: ExecFate) -> Ended {
        match self.state.transfer {
            Some(_) => {
                let detail = "interrupted before the first file was begun";
                Ended::new(Failure::new(FailureKind::Lost, detail), fate)
            }
            None => interrupted(fate),
        }
    }

    /// With what this session knows beyond its connection.
    fn explained(&self, mut failure: Failure) -> Failure {
        let runs_command = self.state.worker.plan.transfer.is_none();
        match self.state.outcome.as_ref().filter(|_| runs_command) {
            Some(Outcome::Exit(status)) => failure.detail.push_str(&format!(
                "; the command had ended with status {status}, but there may have been more output"
            )),
            Some(_) => failure
                .detail
                .push_str("; a signal had ended the command, but there may have been more output"),
            None => {}
        }
        let transfer = self.state.transfer.as_ref();
        if let Some(device) = transfer.and_then(|transfer| transfer.half_written()) {
            failure.detail.push_str(&format!("; {device}"));
        }
        let during = self.drive.connection.phase();
        self.state.login.explained(failure, during)
    }

    /// The fleet wants no more of the session. If the command has ended, that is its result all the same: it is only
    /// for output that the session was kept, which something that the command started may still write.
    pub(super) fn give_up(&mut self) -> Result<(), Ended> {
        let state = &mut self.state;
        state.torn_down = true;
        if let Some(killing) = &mut state.killing {
            killing.give_up("it was not waited for any longer");
        }
        if state.is_over() {
            return Ok(());
        }
        // Of a transfer the server's program says no more by its end than that it has ended.
        if state.outcome.is_none() || state.transfer.is_some() {
            return Err(aborted(self.fate()));
        }
        state.ended = true;
        let label = &state.plan.endpoint.label;
        state.worker.report(Report::Notice(format!(
            "{label}: the command has ended, but something that it started keeps its output open; no longer waited for"
        )));
        Ok(())
    }

    /// The command's time is over. sshd passes SIGTERM on to its process group (session.c, session_signal_req); what it
    /// writes then is still read, for a reader that is gone would end it by SIGPIPE before its last words.
    pub(super) fn terminate(&mut self) -> Result<(), Ended> {
        if self.state.outcome.is_some() || self.fate() != ExecFate::Ran {
            return self.give_up();
        }
        if self.state.may_kill(ExecFate::Ran) {
            let plan = self.state.worker.plan.kill.as_ref();
            let longest = plan.map_or(GRACE, KillPlan::longest);
            self.state.last_moment = Some(Instant::now() + longest);
            return self.begin_killing(KillOrder::Terminate);
        }
        self.state.last_moment = Some(Instant::now() + GRACE);
        if self.state.transfer.is_some() {
            self.state.interrupt_transfer();
            return Ok(());
        }
        let connection = &mut self.drive.connection;
        connection
            .signal(self.state.channel, "TERM")
            .map_err(|error| self.ended(&error))
    }

    /// Begins to end the command, and to look whether it is gone. An end that is on its way goes on.
    pub(super) fn begin_killing(&mut self, order: KillOrder) -> Result<(), Ended> {
        if self.state.killing.is_some() {
            return Ok(());
        }
        let begun = Killing::begin(order, &mut self.drive.connection, self.state.channel);
        let killing = begun.map_err(|error| self.ended(&error))?;
        self.state.killing = Some(Box::new(killing));
        Ok(())
    }

    pub(super) fn advance_killing(&mut self) -> Result<(), Ended> {
        let has_ended = self.state.is_over();
        let State {
            killing, worker, ..
        } = &mut self.state;
        let (Some(killing), Some(plan)) = (killing, &worker.plan.kill) else {
            return Ok(());
        };
        let advanced = killing.advance(plan, &mut self.drive.connection, has_ended);
        advanced.map_err(|error| self.ended(&error))
    }

    /// A session that is not waited for any longer: its command was told to end.
    pub(super) fn leave(&mut self) -> Result<(), Ended> {
        let killing = self.state.killing.as_ref();
        let interrupted = killing.filter(|killing| killing.order() == KillOrder::Interrupt);
        match interrupted {
            Some(_) if self.state.outcome.is_some() => self.give_up(),
            Some(killing) => Err(self.left_behind(killing)),
            None => Err(aborted(self.fate())),
        }
    }

    /// The end of an interrupted command that has not told how it ended.
    fn left_behind(&self, killing: &Killing) -> Ended {
        let detail = match killing.verdict() {
            KillVerdict::NotConfirmed(why) => {
                format!("interrupted; its end was not confirmed: {why}")
            }
            _ => "interrupted; the command is gone, and has told no status".to_owned(),
        };
        Ended::new(Failure::new(FailureKind::Lost, detail), self.fate())
    }

    pub(super) fn broken(&self, broken: Broken) -> Ended {
        let fate = self.fate();
        match broken {
            Broken::Connection(error) => self.ended(&error),
            Broken::Link(LinkError::Io(_)) if self.state.is_shared => {
                self.end_of_shared(Failure::new(FailureKind::Lost, KEEPER_GONE))
            }
            Broken::Link(LinkError::Io(error)) => {
                self.doubt_merging(fate);
                self.end(failures::stream(&error, fate, &self.drive.connection), None)
            }
            Broken::Link(LinkError::Jump(failure)) => Ended::stranded(failure, fate),
        }
    }

    pub(super) fn no_input(&self, error: &io::Error) -> Ended {
        let detail = format!("reading standard input: {error}");
        Ended::new(Failure::new(FailureKind::Lost, detail), self.fate())
    }

    /// The end of a session in which a command that outlives its connection has not said a word.
    pub(super) fn answered_by_another(&self) -> Ended {
        let how = match &self.state.outcome {
            Some(Outcome::Exit(status)) => format!(" and ended with status {status}"),
            _ => String::new(),
        };
        let detail = format!(
            "the host ran something else than what was sent{how}: a forced command (ForceCommand in its sshd_config, command= in \
             authorized_keys) or a login shell of its own; nothing is sent to it again"
        );
        Ended::new(Failure::new(FailureKind::Lost, detail), self.fate())
    }

    pub(super) fn no_status(&self) -> Ended {
        let what = match self.state.plan.request.command {
            Command::Exec(_) => "the command",
            Command::Shell | Command::Subsystem(_) => "the session",
        };
        let detail = format!("{what} ended without an exit status");
        Ended::new(Failure::new(FailureKind::Lost, detail), self.fate())
    }
}
