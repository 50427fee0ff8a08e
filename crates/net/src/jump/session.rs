//! One connection to a jump host: its login, then the tunnels of the hosts behind it.

use std::collections::HashMap;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use sshoal_fleet::{Failure, FailureKind, JumpId};
use sshoal_proto::{Connection, ConnectionError, Event, ExecFate, LocalChannel};
use tokio::sync::OwnedSemaphorePermit;

use super::tunnel::{Desk, Ends, Refusal, Served};
use crate::drive::{Answer, Broken, Drive, sleep_until};
use crate::failures;
use crate::guess;
use crate::host_key_update::HostKeyUpdate;
use crate::link::{Link, LinkError};
use crate::login::{Login, Wish};
use crate::plan::{Endpoint, RunPlan};
use crate::shortcuts::Shortcuts;
use crate::trust::UnknownKey;
use crate::worker::{Report, Worker};

/// Octets gathered from several hosts before they are written.
const BATCH: usize = 128 * 1024;

/// A connection to a jump host.
pub(super) struct JumpSession<'a> {
    drive: Drive,
    state: State<'a>,
    /// The login's place among the signatures.
    place: Place,
    /// The login's place among the logins, until it is over.
    turn: Option<OwnedSemaphorePermit>,
}

/// All but the octets on their way.
struct State<'a> {
    worker: &'a Rc<Worker>,
    endpoint: &'a Endpoint,
    /// The server's address, where this side knows it.
    peer: Option<SocketAddr>,
    login: Login<'a>,
    shortcuts: Shortcuts,
    host_keys: Option<HostKeyUpdate<'a>>,
    logged_in: bool,
    failure: Option<Failure>,
    desk: Rc<Desk>,
    tunnels: HashMap<LocalChannel, Rc<Ends>>,
}

/// A place among the signatures that an agent is asked for at a time.
enum Place {
    Unwanted,
    Wanted,
    Held { _permit: OwnedSemaphorePermit },
}

impl<'a> JumpSession<'a> {
    pub(super) fn begin(
        worker: &'a Rc<Worker>,
        jump: JumpId,
        link: Link,
        round_trip: Duration,
        turn: Option<OwnedSemaphorePermit>,
        host_key_algorithms: Vec<&'static str>,
    ) -> Result<Self, Failure> {
        let plan = &worker.plan;
        let endpoint = plan.jump(jump);
        let opened = guess::opening(
            endpoint,
            worker,
            round_trip,
            window(plan, jump).min(endpoint.settings.window),
            host_key_algorithms,
        );
        let connection = Connection::new(opened.settings, opened.opening, Instant::now())
            .map_err(|error| Failure::new(FailureKind::NoCommonAlgorithm, error.to_string()))?;
        let peer = endpoint.trust.peer(&link);
        Ok(JumpSession {
            drive: Drive::new(connection, link),
            state: State {
                worker,
                endpoint,
                peer,
                login: Login::new(endpoint, plan),
                shortcuts: opened.shortcuts,
                host_keys: None,
                logged_in: false,
                failure: None,
                desk: Rc::new(Desk::new()),
                tunnels: HashMap::new(),
            },
            place: Place::Unwanted,
            turn,
        })
    }

    /// Where tunnels through this connection are asked for.
    pub(super) fn desk(&self) -> Rc<Desk> {
        self.state.desk.clone()
    }

    /// Until the user is logged in. A failure names the jump host.
    pub(super) async fn log_in(&mut self) -> Result<(), Failure> {
        let result = self.try_to_log_in().await;
        self.turn = None;
        match result {
            Ok(()) => Ok(()),
            Err(failure) => {
                self.state.login.show_last_banners(self.state.worker, None);
                Err(self.part_from_proxy(failure).await)
            }
        }
    }

    /// Ends the ProxyCommand, if there is one; if the connection has ended by it, it knows best why.
    pub(super) async fn part_from_proxy(&mut self, failure: Failure) -> Failure {
        let heard = self.drive.connection.server_profile().is_some();
        let label = &self.state.endpoint.label;
        match self.drive.proxy() {
            None => failure,
            Some(proxy) => {
                let named = |failure: &Failure| failures::of_jump(label, failure);
                let failure = proxy.explained(failure, heard, named).await;
                proxy.end().await;
                failure
            }
        }
    }

    async fn try_to_log_in(&mut self) -> Result<(), Failure> {
        while !self.state.logged_in {
            let result = self.advance().await;
            result.map_err(|broken| self.not_logged_in(broken))?;
            if let Some(failure) = self.state.failure.take() {
                self.drive.hang_up();
                return Err(failures::of_jump(&self.state.endpoint.label, &failure));
            }
        }
        Ok(())
    }

    /// The key that the user is to be asked about, because of which the login has failed.
    pub(super) fn take_unknown_key(&mut self) -> Option<Box<UnknownKey>> {
        self.state.login.take_unknown_key()
    }

    /// Serves tunnels until the connection ends; returns why it has.
    pub(super) async fn serve(&mut self) -> Failure {
        loop {
            match self.advance().await {
                Ok(()) => {}
                Err(broken) => return self.lost(broken),
            }
        }
    }

    /// Tells all tunnels that the connection has ended.
    pub(super) fn lose(&mut self, failure: &Failure) {
        let open = self.state.tunnels.drain().map(|(_, ends)| ends);
        for ends in open.chain(self.state.desk.unserved()) {
            ends.lose(failure);
        }
    }

    /// Does what there is to do, then waits for more.
    async fn advance(&mut self) -> Result<(), Broken> {
        self.drive.answer_events(&mut self.state);
        self.grant_wishes();
        self.serve_desk()?;
        let JumpSession {
            drive,
            state,
            place,
            ..
        } = self;
        let timeout = drive.connection.poll_timeout();
        let desk = state.desk.clone();
        let signatures = state.worker.jump_limits.signatures.clone();
        tokio::select! {
            biased;
            result = poll_fn(|context| poll_progress(drive, state, context)) => result,
            () = desk.work() => Ok(()),
            () = sleep_until(timeout), if timeout.is_some() => {
                Ok(drive.connection.handle_timeout(Instant::now())?)
            }
            permit = signatures.acquire_owned(), if matches!(place, Place::Wanted) => {
                // The semaphore is never closed.
                *place = permit.map_or(Place::Unwanted, |_permit| Place::Held { _permit });
                state.login.handle_admitted(&mut drive.connection);
                Ok(())
            }
        }
    }

    /// Gives the tunnels their turns for as long as the link takes what they send.
    fn serve_desk(&mut self) -> Result<(), ConnectionError> {
        let JumpSession { drive, state, .. } = self;
        loop {
            while drive.queued() < BATCH
                && let Some(ends) = state.desk.next_due()
            {
                match ends.serve(&mut drive.connection)? {
                    Served::Asked(channel) => drop(state.tunnels.insert(channel, ends)),
                    Served::More => state.desk.add(&ends),
                    Served::Idle => {}
                    Served::Dropped => state.desk.forget(),
                }
            }
            drive.flush();
            if drive.queued() > 0 || state.desk.is_idle() {
                return Ok(());
            }
        }
    }

    /// Does what the login wants done.
    fn grant_wishes(&mut self) {
        while let Some(wish) = self.state.login.poll_wish() {
            let worker = self.state.worker;
            match wish {
                Wish::ReachGate => self.place = Place::Wanted,
                Wish::LeaveGate => self.place = Place::Unwanted,
                Wish::Demand(text) => worker.report(Report::Demand(text)),
                Wish::Show(banner) => worker.report(Report::Banner(None, banner)),
                Wish::Unlock(key) => worker.report(Report::Unlock(key)),
                Wish::AddKey(addition) => worker.report(Report::AddKey(addition)),
            }
        }
    }

    fn not_logged_in(&self, broken: Broken) -> Failure {
        let connection = &self.drive.connection;
        let (failure, error) = match broken {
            Broken::Connection(error) => (
                failures::connection(&error, ExecFate::NotSent, connection),
                Some(error),
            ),
            Broken::Link(LinkError::Io(error)) => (
                failures::stream(&error, ExecFate::NotSent, connection),
                None,
            ),
            // It names the jump host before.
            Broken::Link(LinkError::Jump(failure)) => return failure,
        };
        let failure = self.without_shortcuts(failure, error.as_ref());
        let failure = self.state.login.explained(failure, connection.phase());
        failures::of_jump(&self.state.endpoint.label, &failure)
    }

    /// A failure that a shortcut may be to blame for is of a kind that is tried once more.
    fn without_shortcuts(&self, failure: Failure, error: Option<&ConnectionError>) -> Failure {
        let State {
            worker,
            endpoint,
            shortcuts,
            ..
        } = &self.state;
        let connection = &self.drive.connection;
        let are_to_blame = failure.kind != FailureKind::AuthDenied
            && shortcuts.are_to_blame(worker, endpoint, connection, error, ExecFate::NotSent);
        match are_to_blame {
            true => Failure::new(FailureKind::Closed, failure.detail),
            false => failure,
        }
    }

    fn lost(&self, broken: Broken) -> Failure {
        let why = match broken {
            Broken::Connection(error) => error.to_string(),
            Broken::Link(LinkError::Io(error)) => error.to_string(),
            // It names the jump host before.
            Broken::Link(LinkError::Jump(failure)) => return failure,
        };
        failures::jump_lost(&self.state.endpoint.label, &why)
    }
}

/// Ready when the login has come further, or the link.
fn poll_progress(
    drive: &mut Drive,
    state: &mut State<'_>,
    context: &mut Context<'_>,
) -> Poll<Result<(), Broken>> {
    let news = &state.worker.new_keys;
    match state.login.poll_work(context, &mut drive.connection, news) {
        Poll::Ready(result) => {
            state.fail(result);
            Poll::Ready(Ok(()))
        }
        Poll::Pending => drive.poll(context, &state.worker.buffer, state),
    }
}

/// The window of each tunnel: the budget's share, so that hosts whose output nobody reads stay within it.
fn window(plan: &RunPlan, jump: JumpId) -> u32 {
    let behind = plan
        .endpoints()
        .filter(|endpoint| endpoint.via == Some(jump))
        .count();
    plan.window_of(behind)
}

impl Answer for State<'_> {
    fn answer(&mut self, connection: &mut Connection, event: Event, input: &[u8]) {
        if event == Event::Authenticated {
            self.logged_in = true;
            self.host_keys = self.login.take_host_key_update();
            self.shortcuts.learn(self.worker, connection, true);
        }
        let new_keys = &self.worker.new_keys;
        match self.login.answer(self.peer, new_keys, connection, event) {
            Ok(None) => {}
            Ok(Some(event)) => self.take(connection, event, input),
            Err(failure) => self.fail(Err(failure)),
        }
    }

    fn is_settled(&self) -> bool {
        self.failure.is_some()
    }
}

impl State<'_> {
    /// What happens to a channel.
    fn take(&mut self, connection: &mut Connection, event: Event, input: &[u8]) {
        match event {
            Event::HostKeysOffered(_) | Event::HostKeysProven(_) => {
                if let Some(update) = &mut self.host_keys {
                    update.handle(connection, &event, &self.worker.new_keys);
                }
            }
            Event::ChannelOpened(channel) => self.with(channel, |desk, ends| {
                ends.handle_opened();
                // It may have been abandoned meanwhile.
                desk.add(ends);
            }),
            Event::ChannelRefused {
                channel,
                reason_code,
                description,
            } => {
                self.with(channel, |_, ends| {
                    ends.handle_refused(Refusal {
                        reason_code,
                        description,
                    });
                });
                self.forget(connection, channel);
            }
            Event::Data { channel, range, .. } => {
                self.with(channel, |_, ends| ends.handle_data(&input[range]));
            }
            Event::Eof(channel) => self.with(channel, |_, ends| ends.handle_eof()),
            Event::Writable(channel) => self.with(channel, |desk, ends| desk.add(ends)),
            Event::Closed(channel) => {
                self.with(channel, |_, ends| ends.handle_closed());
                self.forget(connection, channel);
            }
            // Logging in is over, and there are no sessions.
            _ => {}
        }
    }

    fn with(&self, channel: LocalChannel, act: impl FnOnce(&Desk, &Rc<Ends>)) {
        if let Some(ends) = self.tunnels.get(&channel) {
            act(&self.desk, ends);
        }
    }

    fn forget(&mut self, connection: &mut Connection, channel: LocalChannel) {
        connection.forget(channel);
        if self.tunnels.remove(&channel).is_some() {
            self.desk.forget();
        }
    }

    /// Makes a failure the jump host's, unless it has one.
    fn fail(&mut self, result: Result<(), Failure>) {
        self.failure = self.failure.take().or(result.err());
    }
}
