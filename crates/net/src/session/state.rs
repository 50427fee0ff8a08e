//! What a session makes of the events of its connection, and what it reports.

use std::future::poll_fn;
use std::rc::Rc;
use std::time::Instant;

use sshoal_fleet::{Event as FleetEvent, Failure, FailureKind, Gate, Outcome, Phase};
use sshoal_proto::{Connection, Event, ExecFate, Stream};

use super::{PROOF_PATIENCE, State};
use crate::drive::{Answer, Drive};
use crate::host::Orders;
use crate::host_key_update::HostKeyUpdate;
use crate::login::Wish;
use crate::transfer::{First, LaneId, Lanes};
use crate::warm::logs_in_unasked;
use crate::worker::{Control, Report};

impl Answer for State<'_> {
    fn answer(&mut self, connection: &mut Connection, event: Event, input: &[u8]) {
        let is_login = event == Event::Authenticated;
        match &event {
            Event::HostKey(shown) if self.transfer.is_some() => {
                self.host_key = Some(Rc::new(shown.clone()));
            }
            Event::AuthenticationNeeded(last) => {
                self.report(FleetEvent::KeysExchanged);
                if let (Some(timing), Some(last)) = (&self.timing, last) {
                    timing.methods(&last.methods);
                }
            }
            // Only now have merged flights worked.
            Event::Started(_) if self.keeping.is_none() => {
                self.learn(connection, !self.login.took_several());
            }
            Event::Authenticated => {
                self.host_keys = self.login.take_host_key_update();
                self.report(FleetEvent::Entered(Phase::Session));
            }
            _ => {}
        }
        let new_keys = &self.worker.new_keys;
        match self.login.answer(self.peer, new_keys, connection, event) {
            Ok(None) if is_login => self.begin_keeping(connection),
            Ok(None) => {}
            Ok(Some(event @ (Event::HostKeysOffered(_) | Event::HostKeysProven(_)))) => {
                if let Some(update) = &mut self.host_keys {
                    update.handle(connection, &event, &self.worker.new_keys);
                }
            }
            Ok(Some(event)) => {
                if let Some(keeping) = &mut self.keeping {
                    return keeping.handle(event, input);
                }
                let event = match &mut self.forwarding {
                    Some(forwarding) => forwarding.handle(connection, event, input),
                    None => Some(event),
                };
                let event = match (event, &mut self.killing) {
                    (Some(event), Some(killing)) => killing.handle(event, input),
                    (event, _) => event,
                };
                let event = match (event, &mut self.transfer) {
                    (Some(event), Some(transfer)) => transfer.handle(LaneId::FIRST, event, input),
                    (event, _) => Ok(event),
                };
                let event = match (event, &mut self.trial) {
                    (Ok(Some(event)), Some(trial)) => trial.handle(connection, event, input),
                    (event, _) => event,
                };
                let event = match (event, &mut self.errands) {
                    (Ok(Some(event)), Some(errands)) => {
                        Ok(errands.handle(self.channel, event, input))
                    }
                    (event, _) => event,
                };
                match event {
                    Ok(Some(event)) => self.take(event, input),
                    Ok(None) => {}
                    Err(failure) => self.fail(Err(failure)),
                }
            }
            Err(failure) => self.fail(Err(failure)),
        }
    }

    fn is_settled(&self) -> bool {
        (self.is_over() && !self.awaits_proof() && !self.is_killing()) || self.failure.is_some()
    }
}

impl State<'_> {
    /// Whether nothing more of the session is to come. CHANNEL_CLOSE need not be waited for: some servers never send
    /// it. Without EOF there may be more output although the command has ended, of what it has started; ssh waits for
    /// it, too.
    pub(super) fn is_over(&self) -> bool {
        self.closed || (self.ended && self.outcome.is_some())
    }

    /// Whether the server still owes a proof of host keys that are new, and may yet give it.
    pub(super) fn awaits_proof(&self) -> bool {
        !self.torn_down
            && self
                .host_keys
                .as_ref()
                .is_some_and(HostKeyUpdate::is_waiting)
    }

    /// Whether there is a command to end whose end can be looked after.
    pub(super) fn may_kill(&self, fate: ExecFate) -> bool {
        self.worker.plan.kill.is_some() && fate == ExecFate::Ran
    }

    /// Whether a command is being ended, and it is not known yet whether it is gone.
    pub(super) fn is_killing(&self) -> bool {
        let killing = self.killing.as_ref();
        killing.is_some_and(|killing| !killing.is_over())
    }

    /// Whether a command that was told to end is not waited for any more.
    pub(super) fn has_left(&self) -> bool {
        let killing = self.killing.as_ref();
        killing.is_some_and(|killing| killing.has_left())
    }

    /// Reports what is known of a command that had to end.
    pub(super) fn tell_of_killing(&mut self) {
        if let Some(killing) = self.killing.take() {
            self.worker
                .report(Report::Killed(self.host, killing.verdict()));
        }
    }

    /// A command that has ended is not kept long from being a result.
    pub(super) fn limit_proof(&mut self) {
        if self.is_over() && self.proof_by.is_none() {
            self.proof_by = Some(Instant::now() + PROOF_PATIENCE);
        }
    }

    pub(super) fn give_up_proof(&mut self) {
        if let Some(update) = &mut self.host_keys {
            update.give_up();
        }
    }

    /// What happens to the session.
    fn take(&mut self, event: Event, input: &[u8]) {
        match event {
            Event::Started(_) => {
                self.started = true;
                if self.plan.lends_terminal && !self.pty_refused {
                    self.worker.report(Report::TerminalLent);
                }
                self.report(FleetEvent::Entered(Phase::Command));
            }
            Event::PtyRefused(_) => {
                self.pty_refused = true;
                let label = &self.plan.endpoint.label;
                self.worker.report(Report::Notice(format!(
                    "{label}: the server gave no terminal (PermitTTY in its sshd_config); the command runs without one"
                )));
            }
            Event::ChannelRefused {
                description,
                reason_code,
                ..
            } => {
                let detail =
                    format!("the server opened no session: {description} (reason {reason_code})");
                self.fail(Err(Failure::new(FailureKind::ChannelRefused, detail)));
            }
            Event::StartRefused(_) => {
                let detail = "the server refused to run the command";
                self.fail(Err(Failure::new(FailureKind::ChannelRefused, detail)));
            }
            Event::Data { stream, range, .. } => {
                self.take_output(stream, &input[range]);
            }
            // What is said on another channel, an agent's, is not about the command.
            Event::ExitStatus { channel, .. } | Event::ExitSignal { channel, .. }
                if channel != self.channel => {}
            Event::ExitStatus { status, .. } => self.outcome = Some(Outcome::Exit(status)),
            Event::ExitSignal {
                name,
                core_dumped,
                message,
                ..
            } => {
                self.outcome = Some(Outcome::Signal {
                    name,
                    core_dumped,
                    message,
                });
            }
            Event::Eof(_) => self.ended = true,
            Event::Closed(_) => self.closed = true,
            // Logging in is over, and the rest needs no answer.
            _ => {}
        }
    }

    /// Only what the command itself has written counts, and not what was said before.
    fn take_output(&mut self, stream: Stream, octets: &[u8]) {
        let Some(announcement) = &mut self.announcement else {
            return self.outbox.push(stream, octets);
        };
        let told = announcement.take(stream, octets);
        self.delivered += told.dropped;
        for octets in [Some(&told.before), told.behind.as_ref()] {
            if let Some(octets) = octets.filter(|octets| !octets.is_empty()) {
                self.outbox.push(stream, octets);
            }
        }
        if let Some(octets) = told.behind.filter(|_| self.plan.resumes_at.is_some()) {
            self.worker.has_come(self.host, stream, octets.len());
        }
    }

    /// Whether something else has answered in place of what was sent.
    pub(super) fn misses_announcement(&mut self) -> bool {
        let Some(announcement) = &mut self.announcement else {
            return false;
        };
        announcement.was_missed = !announcement.has_come();
        announcement.was_missed
    }

    /// What was taken for the beginning of an announcement is output.
    pub(super) fn show_held(&mut self) {
        let Some(announcement) = &mut self.announcement else {
            return;
        };
        for stream in [Stream::Stdout, Stream::Stderr] {
            let held = announcement.rest(stream);
            if !held.is_empty() {
                self.outbox.push(stream, &held);
            }
        }
    }

    /// Makes a failure the host's, unless it has one.
    pub(super) fn fail(&mut self, result: Result<(), Failure>) {
        self.failure = self.failure.take().or(result.err());
    }

    /// Hands over what came before the end, as there is room; at once if the host is torn down meanwhile.
    pub(super) async fn deliver_rest(&mut self, orders: &mut Orders) {
        let State { worker, host, .. } = *self;
        while !self.outbox.is_empty() {
            if self.torn_down {
                return self.outbox.deliver_regardless(worker, host);
            }
            tokio::select! {
                biased;
                order = orders.recv() => {
                    self.torn_down = matches!(order, Some(Control::Abort | Control::Terminate) | None);
                }
                _ = poll_fn(|context| self.outbox.poll_deliver(worker, host, context)) => {}
            }
        }
    }

    /// Passes on what a transfer has to say, and ends with it.
    pub(super) fn advance_transfer(&mut self) {
        let is_closed = self.is_over();
        let Some(transfer) = &mut self.transfer else {
            return;
        };
        for (stream, octets) in transfer.take_output() {
            self.outbox.push(stream, &octets);
        }
        let Some(outcome) = transfer.outcome(is_closed) else {
            return;
        };
        for (stream, octets) in transfer.take_output() {
            self.outbox.push(stream, &octets);
        }
        if let Some(mut lanes) = self.lanes.take() {
            lanes.hang_up();
        }
        // What is lost may be gone on with: `leave_transfer` tells how far it is.
        if let Err(failure) = &outcome
            && failure.kind == FailureKind::Lost
        {
            return self.fail(outcome.map(|_| ()));
        }
        let report = Report::Transferred(self.host, transfer.tally());
        self.transfer = None;
        self.worker.report(report);
        match outcome {
            Ok(outcome) => {
                self.outcome = Some(outcome);
                self.closed = true;
            }
            Err(failure) => self.fail(Err(failure)),
        }
    }

    /// Has further connections do what they can; returns whether that may have made work for the first one.
    pub(super) fn advance_lanes(&mut self, first: &Drive) -> bool {
        let Some(transfer) = &self.transfer else {
            return false;
        };
        let may_grow = self.lanes.is_none() && transfer.may_grow();
        if may_grow
            && self.may_log_in_again()
            && let Some(host_key) = self.host_key.take()
        {
            let first = First {
                is_shared: self.is_shared,
                address: match self.is_shared {
                    true => self.peer,
                    false => first.peer_address(),
                },
                round_trip: self.round_trip,
                host_key,
            };
            self.lanes = Lanes::begin(self.worker, self.plan, first);
        }
        match (&mut self.lanes, &mut self.transfer) {
            (Some(lanes), Some(transfer)) => lanes.advance(transfer),
            _ => false,
        }
    }

    /// Whether another login would ask nobody for anything.
    pub(super) fn may_log_in_again(&self) -> bool {
        match self.is_shared {
            true => logs_in_unasked(&self.worker.plan, &self.plan.endpoint),
            false => self.login.is_repeatable(),
        }
    }

    /// Whether the session is over and only what follows its login goes on.
    pub(super) fn runs_errands(&self) -> bool {
        let errands = self.errands.as_ref();
        errands.is_some_and(|errands| errands.have_begun())
    }

    pub(super) fn give_up_errands(&mut self) {
        if let Some(errands) = &mut self.errands {
            errands.give_up();
        }
    }

    /// The session counts as closed when all that follows its login is done.
    pub(super) fn end_with_errands(&mut self) {
        let errands = self.errands.as_ref();
        if errands.is_some_and(|errands| errands.are_over()) {
            self.errands = None;
            self.closed = true;
        }
    }

    /// The connection goes to whoever it is kept for.
    fn begin_keeping(&mut self, connection: &mut Connection) {
        let Some(keeping) = &mut self.keeping else {
            return;
        };
        // The next command brings the end of the last one with it.
        connection.defer_ends();
        let begun = keeping.begin(self.worker, self.host, self.round_trip, connection);
        self.fail(begun);
        (self.started, self.last_moment) = (true, None);
        self.learn(connection, !self.login.took_several());
        self.report(FleetEvent::Entered(Phase::Command));
    }

    /// The session counts as closed when nobody needs the connection any more.
    pub(super) fn end_with_keeping(&mut self) {
        let keeping = self.keeping.as_mut();
        if keeping.is_some_and(|keeping| keeping.ends()) {
            self.outcome = Some(Outcome::Exit(0));
            self.closed = true;
        }
    }

    pub(super) fn interrupt_transfer(&mut self) {
        if let Some(transfer) = &mut self.transfer {
            transfer.interrupt();
        }
    }

    /// Passes on what the login wants done.
    pub(super) fn grant_wishes(&mut self) {
        while let Some(wish) = self.login.poll_wish() {
            let worker = self.worker;
            let further = self.keeping.as_mut().filter(|it| it.counts_for_nothing());
            match (wish, further) {
                (Wish::ReachGate, Some(further)) => further.reach_gate(worker),
                (Wish::LeaveGate, Some(further)) => further.leave_gate(),
                // The first login has shown it.
                (Wish::Show(_) | Wish::AddKey(_), Some(_)) => {}
                (Wish::ReachGate, None) => self.report(FleetEvent::Reached(Gate::Signature)),
                (Wish::LeaveGate, None) => self.report(FleetEvent::Left(Gate::Signature)),
                (Wish::Demand(text), _) => worker.report(Report::Demand(text)),
                (Wish::Show(banner), None) => {
                    worker.report(Report::Banner(Some(self.host), banner));
                }
                (Wish::Unlock(key), _) => worker.report(Report::Unlock(key)),
                (Wish::AddKey(addition), None) => worker.report(Report::AddKey(addition)),
            }
        }
    }

    fn report(&self, event: FleetEvent) {
        let keeping = self.keeping.as_ref();
        if keeping.is_some_and(|keeping| keeping.counts_for_nothing()) {
            return;
        }
        self.worker.report(Report::Host(self.host, event));
    }

    pub(super) fn learn(&self, connection: &Connection, pipelining: bool) {
        self.shortcuts.learn(self.worker, connection, pipelining);
    }
}
