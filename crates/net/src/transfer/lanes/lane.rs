//! One further connection of a transfer: made and logged in as the first one was, then channels for SFTP.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use sshoal_fleet::{Failure, FailureKind};
use sshoal_proto::{Connection, Event, ExecFate, HostKeyQuestion, LocalChannel, SessionRequest};
use tokio::sync::OwnedSemaphorePermit;

use super::super::channels::{LaneId, Transfer};
use crate::drive::{Answer, Broken, Drive};
use crate::failures;
use crate::guess;
use crate::link::{Link, LinkError};
use crate::login::{Login, Wish};
use crate::plan::NativePlan;
use crate::shortcuts::Shortcuts;
use crate::worker::{Report, Worker};
use crate::{dial, jump};

/// What all further connections of a host are made from.
#[derive(Clone, Copy)]
pub(super) struct Origin<'a> {
    pub(super) worker: &'a Rc<Worker>,
    pub(super) plan: &'a NativePlan,
    /// Whether the first connection is somebody else's: then no login has asked anybody yet, and none is to.
    pub(super) is_shared: bool,
    /// Where the first connection goes; unknown behind a jump host.
    pub(super) address: Option<SocketAddr>,
}

/// A byte stream to the server, and how long it took to make; with the login's place among those of all hosts.
pub(super) type Made = (Link, Duration, Option<OwnedSemaphorePermit>);
/// The making of it.
pub(super) type Making<'a> = Pin<Box<dyn Future<Output = Result<Made, Failure>> + 'a>>;
/// A place among the signatures that agents are asked for at a time.
type Place = Pin<Box<dyn Future<Output = Option<OwnedSemaphorePermit>>>>;

impl<'a> Origin<'a> {
    /// Connects as the first one did: directly or through the jump hosts.
    pub(super) async fn connect(self) -> Result<Made, Failure> {
        let Origin { worker, plan, .. } = self;
        let endpoint = &plan.endpoint;
        let turn = worker.lane_limits.login().await;
        let connecting = Instant::now();
        let connect = async {
            match (endpoint.via, self.address) {
                (Some(jump), _) => {
                    if self.is_shared {
                        // The fleet has not had it connected.
                        jump::up(worker, jump).await?;
                    }
                    let tunnel = jump::tunnel(worker, jump, endpoint).await;
                    tunnel.map(Link::Tunnel).map_err(|ended| ended.failure)
                }
                (None, Some(address)) => dial::connect(&[address], &endpoint.tcp).await,
                (None, None) => {
                    let addresses = dial::addresses(endpoint).await?;
                    dial::connect(&addresses, &endpoint.tcp).await
                }
            }
        };
        let limit = worker.plan.deadlines.connect;
        let link = dial::within_connect_timeout(limit, connect).await?;
        Ok((link, connecting.elapsed(), turn))
    }
}

/// A further connection.
pub(super) struct Connected<'a> {
    drive: Drive,
    state: State<'a>,
    /// The login's place among the logins, until it is over.
    turn: Option<OwnedSemaphorePermit>,
    /// The place at the agent that is waited for, and that is held.
    place: Option<Place>,
    _held: Option<OwnedSemaphorePermit>,
    /// Until when the login may take.
    deadline: Option<Instant>,
}

/// All but the octets on their way.
struct State<'a> {
    worker: &'a Rc<Worker>,
    id: LaneId,
    /// Whether nobody is to be asked for anything.
    is_silent: bool,
    peer: Option<SocketAddr>,
    login: Login<'a>,
    shortcuts: Shortcuts,
    /// The key that the first connection's server has shown.
    host_key: Rc<HostKeyQuestion>,
    channels: Vec<LocalChannel>,
    is_up: bool,
    failure: Option<Failure>,
}

/// Who answers the connection's events.
struct Answers<'t, 'a> {
    state: &'t mut State<'a>,
    transfer: &'t mut Transfer,
}

impl<'a> Connected<'a> {
    pub(super) fn begin(
        id: LaneId,
        (channels, request): (usize, SessionRequest),
        origin: Origin<'a>,
        host_key: Rc<HostKeyQuestion>,
        (link, round_trip, turn): Made,
    ) -> Result<Self, Failure> {
        let Origin {
            worker,
            plan,
            is_shared,
            ..
        } = origin;
        let endpoint = &plan.endpoint;
        if let Some(transfer) = &worker.plan.transfer {
            transfer.control_congestion(&link, round_trip);
        }
        let algorithms = vec![host_key.algorithm];
        let window = worker.window(endpoint, round_trip);
        let opened = guess::opening(endpoint, worker, round_trip, window, algorithms);
        let unusable = |why: String| Failure::new(FailureKind::NoCommonAlgorithm, why);
        let mut connection = Connection::new(opened.settings, opened.opening, Instant::now())
            .map_err(|error| unusable(error.to_string()))?;
        let opened_all = (0..channels)
            .map(|_| connection.open_session(request.clone()))
            .collect::<Result<Vec<_>, _>>();
        let channels = opened_all.map_err(|error| unusable(error.to_string()))?;
        let login = worker.plan.deadlines.login;
        Ok(Connected {
            state: State {
                worker,
                id,
                is_silent: is_shared,
                peer: endpoint.trust.peer(&link),
                login: Login::of_session(endpoint, &worker.plan),
                shortcuts: opened.shortcuts,
                host_key,
                channels,
                is_up: false,
                failure: None,
            },
            drive: Drive::new(connection, link),
            turn,
            place: None,
            _held: None,
            deadline: login.map(|limit| Instant::now() + limit),
        })
    }

    /// Whether it transfers.
    pub(super) fn is_up(&self) -> bool {
        self.state.is_up
    }

    /// Does what there is to do; returns how many octets were given to the connection.
    pub(super) fn advance(
        &mut self,
        transfer: &mut Transfer,
        now: Instant,
    ) -> Result<usize, Failure> {
        let (state, drive) = (&mut self.state, &mut self.drive);
        drive.answer_events(&mut Answers { state, transfer });
        if drive
            .connection
            .poll_timeout()
            .is_some_and(|due| due <= now)
        {
            let kept = drive.connection.handle_timeout(now);
            kept.map_err(|error| self.broken(Broken::Connection(error)))?;
        }
        self.grant_wishes();
        if let Some(failure) = self.state.failure.take() {
            return Err(failure);
        }
        if self.state.is_up {
            (self.turn, self._held, self.deadline) = (None, None, None);
        }
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            let detail = "a further connection was not logged in in time";
            return Err(Failure::new(FailureKind::LoginTimeout, detail));
        }
        if transfer.is_hung(self.state.id) {
            let detail = "the SFTP program of a further connection does not answer";
            return Err(Failure::new(FailureKind::Lost, detail));
        }
        let fed = transfer.pump(self.state.id, &mut self.drive);
        fed.map_err(|error| self.broken(Broken::Connection(error)))
    }

    /// When to come back if nothing happens before.
    pub(super) fn wake(&self) -> Option<Instant> {
        let timeout = self.drive.connection.poll_timeout();
        timeout.into_iter().chain(self.deadline).min()
    }

    /// Ready when something has happened.
    pub(super) fn poll(
        &mut self,
        context: &mut Context<'_>,
        transfer: &mut Transfer,
    ) -> Poll<Result<(), Failure>> {
        let (state, drive) = (&mut self.state, &mut self.drive);
        if let Some(place) = &mut self.place
            && let Poll::Ready(held) = place.as_mut().poll(context)
        {
            (self.place, self._held) = (None, held);
            state.login.handle_admitted(&mut drive.connection);
            return Poll::Ready(Ok(()));
        }
        let news = &state.worker.new_keys;
        if let Poll::Ready(result) = state.login.poll_work(context, &mut drive.connection, news) {
            return Poll::Ready(result);
        }
        let buffer = &state.worker.buffer;
        match drive.poll(context, buffer, &mut Answers { state, transfer }) {
            Poll::Ready(Err(broken)) => Poll::Ready(Err(self.broken(broken))),
            Poll::Ready(Ok(())) => Poll::Ready(Ok(())),
            Poll::Pending => Poll::Pending,
        }
    }

    /// What the first login has told the user is not told again.
    fn grant_wishes(&mut self) {
        while let Some(wish) = self.state.login.poll_wish() {
            let worker = self.state.worker;
            match wish {
                Wish::ReachGate => {
                    let limits = worker.lane_limits.clone();
                    self.place = Some(Box::pin(async move { limits.signature().await }));
                }
                Wish::LeaveGate => self._held = None,
                Wish::Demand(_) | Wish::Unlock(_) if self.state.is_silent => {
                    let detail = "a further connection would have asked somebody for something";
                    let failure = Failure::new(FailureKind::AuthDenied, detail);
                    self.state.failure.get_or_insert(failure);
                }
                Wish::Demand(text) => worker.report(Report::Demand(text)),
                Wish::Unlock(key) => worker.report(Report::Unlock(key)),
                Wish::Show(_) | Wish::AddKey(_) => {}
            }
        }
    }

    fn broken(&self, broken: Broken) -> Failure {
        let connection = &self.drive.connection;
        let fate = match self.state.is_up {
            true => ExecFate::Ran,
            false => ExecFate::NotSent,
        };
        match broken {
            Broken::Connection(error) => failures::connection(&error, fate, connection),
            Broken::Link(LinkError::Io(error)) => failures::stream(&error, fate, connection),
            Broken::Link(LinkError::Jump(failure)) => failure,
        }
    }

    /// Says goodbye.
    pub(super) fn hang_up(&mut self) {
        self.drive.hang_up();
    }
}

impl Answer for Answers<'_, '_> {
    fn answer(&mut self, connection: &mut Connection, event: Event, input: &[u8]) {
        if let Event::HostKey(shown) = &event
            && shown.blob != self.state.host_key.blob
        {
            connection.refuse_host_key();
            let detail = "a further connection came to a server with another host key";
            return self.fail(Failure::new(FailureKind::Lost, detail));
        }
        let State {
            worker,
            peer,
            login,
            ..
        } = &mut *self.state;
        match login.answer(*peer, &worker.new_keys, connection, event) {
            Ok(None) => {}
            Ok(Some(event)) => self.take(connection, event, input),
            Err(failure) => self.fail(failure),
        }
    }

    fn is_settled(&self) -> bool {
        self.state.failure.is_some()
    }
}

impl Answers<'_, '_> {
    fn take(&mut self, connection: &mut Connection, event: Event, input: &[u8]) {
        let State { id, channels, .. } = &mut *self.state;
        match event {
            Event::Started(channel) if channels.contains(&channel) => {
                self.transfer.join(*id, channel);
                self.state.is_up = true;
                let state = &self.state;
                state.shortcuts.learn(state.worker, connection, true);
            }
            Event::ChannelRefused { channel, .. } | Event::StartRefused(channel) => {
                channels.retain(|open| *open != channel);
                if channels.is_empty() {
                    let detail = "a further connection got no session";
                    self.fail(Failure::new(FailureKind::ChannelRefused, detail));
                }
            }
            event => match self.transfer.handle(*id, event, input) {
                // The rest is about the session's own channel.
                Ok(_) => {}
                Err(failure) => self.fail(failure),
            },
        }
    }

    fn fail(&mut self, failure: Failure) {
        self.state.failure.get_or_insert(failure);
    }
}
