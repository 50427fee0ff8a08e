//! Connections that are kept for others in place of a command of their own (docs/warm.md).
//!
//! A run with a [`Keeper`] logs its hosts in as any other does, and then hands each connection to somebody who
//! [serves](Serve) it: opens channels, takes their events, sends their octets. When one connection is full the server's
//! [`More`] makes a further one, which is logged in again and counts for nothing in the fleet's books. A host that is not
//! needed yet, or was lost, is parked: the fleet leaves it alone until [`More::resume`].
//!
//! ```text
//!   a host's first turn -> Keeper::attend -> Kept::is_wanted -- no: parked --------- More::resume -> its next turn
//!                                              | yes                    |
//!   Authenticated -> Kept::begin -> Kept::serve -> Serve: handle, advance, poll ... is_over -> Kept::parks -> its end
//!                                      ^
//!   More::connect -> further connection +--- or Kept::not_connected
//! ```

use std::cell::RefCell;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use sshoal_crypto::HostCertificate;
use sshoal_fleet::{Failure, FailureKind, HostId};
use sshoal_proto::{Connection, ConnectionError, Event};
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use crate::crash::caught;
use crate::failures::Ended;
use crate::host::Orders;
use crate::link::Link;
use crate::login::Login;
use crate::plan::NativePlan;
use crate::session::HostSession;
use crate::worker::{Control, Report, Worker};
use crate::{dial, jump, proxy};

/// Who keeps the connections of a run's hosts.
pub trait Keeper: Send + Sync {
    /// The run has begun: from here on signals end it in order.
    fn started(&self, run: RunHandle);

    /// A signal wants the run to end: all its hosts end, and have not failed by that. Called in the coordinator's thread.
    fn interrupted(&self);

    /// A host's turn has come, and nobody keeps its connections yet. Called in the thread, and the tokio runtime, that
    /// performs the host.
    ///
    /// # Errors
    ///
    /// Its connections cannot be kept, and the host fails with that.
    fn attend(&self, host: HostId, more: More) -> Result<Rc<dyn Kept>, Failure>;
}

/// The connections of one host, in its thread.
pub trait Kept {
    /// Whether the host is to be logged in to now; if not it is parked.
    ///
    /// # Errors
    ///
    /// It cannot be, and fails with that.
    fn is_wanted(&self) -> Result<bool, Failure>;

    /// The host is logged in to.
    ///
    /// # Errors
    ///
    /// The connection cannot be kept, and the host fails with that.
    fn begin(self: Rc<Self>, met: &LoggedIn<'_>) -> Result<(), Failure>;

    /// One more connection is logged in, the first one included: who serves it. With the first one all end.
    fn serve(self: Rc<Self>, is_first: bool) -> Box<dyn Serve>;

    /// The server that the host's connection has come to; `None` while there is none. Further ones come to no other.
    fn met(&self) -> Option<MetServer>;

    /// A further connection that was asked for is not to be had.
    fn not_connected(&self, failure: &Failure);

    /// Whether there may be somebody to ask about the host's key. If not it fails, or is parked.
    fn may_ask(&self) -> bool;

    /// The host's connection has ended, in order if there is no failure; or there was none to be had. Returns whether the
    /// host is parked, to come back by [`More::resume`]. If not, it is not kept any more.
    fn parks(self: Rc<Self>, failure: Option<&Failure>) -> bool;
}

/// A server that was logged in to.
pub struct LoggedIn<'a> {
    /// How long connecting took: at least a round trip.
    pub connecting: Duration,
    /// Its address; `None` behind a jump host or a ProxyCommand.
    pub address: Option<SocketAddr>,
    /// The connection.
    pub connection: &'a Connection,
}

/// A server that a host's connection has come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetServer {
    /// Its address; `None` behind a jump host or a ProxyCommand.
    pub address: Option<SocketAddr>,
    /// The algorithm of its host key.
    pub algorithm: &'static str,
    /// That key, which was verified.
    pub host_key: Vec<u8>,
}

/// Speaks to a run from any thread, while it goes on and after.
#[derive(Clone)]
pub struct RunHandle(mpsc::UnboundedSender<Report>);

impl RunHandle {
    pub(crate) fn new(reports: mpsc::UnboundedSender<Report>) -> Self {
        RunHandle(reports)
    }

    /// All hosts end.
    pub fn abandon(&self) {
        self.report(Report::Abandoned);
    }

    /// New host keys that were accepted so far are recorded now, and not when the run is over.
    pub fn record_host_keys(&self) {
        self.report(Report::HostKeysDue);
    }

    fn report(&self, report: Report) {
        // A run that is over needs nothing.
        let _ = self.0.send(report);
    }
}

/// Serves one connection that is logged in. When it is dropped the connection is over.
pub trait Serve {
    /// What happens to a channel. The range of [`Event::Data`] is one of `input`.
    fn handle(&mut self, event: Event, input: &[u8]);

    /// Does with the connection what there is to do.
    ///
    /// # Errors
    ///
    /// The connection's own, which ends it.
    fn advance(&mut self, connection: &mut Connection) -> Result<(), ConnectionError>;

    /// Whether [`advance`](Self::advance) would do something.
    fn has_work(&self) -> bool;

    /// Whether [`advance`](Self::advance) would do something once the connection takes packets again.
    fn waits_for_room(&self) -> bool;

    /// Ready when [`advance`](Self::advance) would do something, or when [`is_over`](Self::is_over) may have changed.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()>;

    /// Whether the connection is to be ended.
    fn is_over(&self) -> bool;

    /// Nothing more of the connection is sent: what is known of its commands now is all that will be.
    fn handle_end(&mut self, connection: &Connection);
}

/// Has one host logged in to: makes further connections, which end with it, and gives a host that is parked its next turn.
pub struct More {
    worker: Rc<Worker>,
    host: HostId,
    /// Where the further connections get their orders: only their end.
    orders: RefCell<Vec<mpsc::UnboundedSender<Control>>>,
}

impl More {
    pub(crate) fn new(worker: &Rc<Worker>, host: HostId) -> Self {
        More {
            worker: worker.clone(),
            host,
            orders: RefCell::default(),
        }
    }

    /// The host is parked no longer: it is logged in to when its turn comes.
    pub fn resume(&self) {
        self.worker.report(Report::Resumed(self.host));
    }

    /// The host, which is parked, ends.
    pub fn dismiss(&self) {
        self.worker.let_go(self.host);
        self.worker.report(Report::Dismissed(self.host));
    }

    /// The further connections end.
    pub fn hang_up(&self) {
        self.orders.take();
    }

    /// Makes a further connection and logs it in. [`Kept::serve`] or [`Kept::not_connected`] tells how that went.
    pub fn connect(&self, kept: Rc<dyn Kept>) {
        let (sender, mut orders) = mpsc::unbounded_channel();
        let mut senders = self.orders.borrow_mut();
        senders.retain(|sender| !sender.is_closed());
        senders.push(sender);
        let (worker, host) = (self.worker.clone(), self.host);
        tokio::task::spawn_local(async move {
            // It has ended, or its server has said why not: nobody waits for more.
            let end = caught(further(&worker, host, &kept, &mut orders)).await;
            if let Err(failure) | Ok(Err(failure)) = end {
                kept.not_connected(&failure);
            }
        });
    }
}

/// A further connection, from its beginning to its end. A failure is one before it was logged in.
async fn further(
    worker: &Rc<Worker>,
    host: HostId,
    kept: &Rc<dyn Kept>,
    orders: &mut Orders,
) -> Result<(), Failure> {
    let plan = worker.plan.clone();
    let Some(native) = plan.native(host) else {
        let detail = "the host goes by ssh, which keeps its connections itself";
        return Err(Failure::new(FailureKind::Protocol, detail));
    };
    let place = worker.lane_limits.login().await;
    let met = kept.met();
    let address = met.as_ref().and_then(|met| met.address);
    let (link, round_trip) = connected(worker, native, address).await?;
    let algorithms = match met {
        Some(met) => vec![met.algorithm],
        None => native.endpoint.trust.ordered_algorithms().await?,
    };
    let begun = HostSession::begin(worker, host, native, link, round_trip, algorithms, None);
    let mut session = Box::new(begun.map_err(|ended| ended.failure)?);
    session.is_further(kept.clone(), place);
    let end = session.run(orders).await;
    match (end, session.was_kept()) {
        (Err(Ended { failure, .. }), false) => Err(failure),
        _ => Ok(()),
    }
}

/// Connects as the first connection did, and to the same address: a name may have several, of servers that have not the same files.
async fn connected(
    worker: &Rc<Worker>,
    native: &NativePlan,
    address: Option<SocketAddr>,
) -> Result<(Link, Duration), Failure> {
    let endpoint = &native.endpoint;
    let connecting = Instant::now();
    let connect = async {
        if let Some(command) = &endpoint.proxy_command {
            let proxy = proxy::connect(worker, endpoint, command).await?;
            return Ok(Link::Proxy(Box::new(proxy)));
        }
        if let Some(jump) = endpoint.via {
            let tunnel = jump::tunnel(worker, jump, endpoint).await;
            return tunnel.map(Link::Tunnel).map_err(|ended| ended.failure);
        }
        let addresses = match address {
            Some(address) => vec![address],
            None => dial::addresses(endpoint).await?,
        };
        dial::connect(&addresses, &endpoint.tcp).await
    };
    let limit = worker.plan.deadlines.connect;
    let link = dial::within_connect_timeout(limit, connect).await?;
    Ok((link, connecting.elapsed()))
}

/// The key in a certificate, or the key itself.
fn public_key(blob: &[u8]) -> Vec<u8> {
    match HostCertificate::read(blob) {
        Ok(certificate) => certificate.public_key().to_vec(),
        Err(_) => blob.to_vec(),
    }
}

/// A place among the signatures that agents are asked for at a time.
type Place = Pin<Box<dyn Future<Output = Option<OwnedSemaphorePermit>>>>;

/// What a session's connection is kept for.
#[derive(Default)]
pub(crate) struct Keeping {
    /// The server's address, if it is known.
    address: Option<SocketAddr>,
    serve: Option<Box<dyn Serve>>,
    /// Who has served it, from when it is to end.
    served: Option<Box<dyn Serve>>,
    further: Option<Further>,
    was_kept: bool,
}

/// What only a further connection has.
struct Further {
    kept: Rc<dyn Kept>,
    /// The login's place among the logins, until it is over.
    login: Option<OwnedSemaphorePermit>,
    /// The place at the agent that is waited for, and that is held.
    place: Option<Place>,
    held: Option<OwnedSemaphorePermit>,
}

impl Keeping {
    /// Of a connection to a server at this address.
    pub(crate) fn of(address: Option<SocketAddr>) -> Keeping {
        Keeping {
            address,
            ..Keeping::default()
        }
    }

    /// The connection is one more of a host that is kept already.
    pub(crate) fn is_further(&mut self, kept: Rc<dyn Kept>, login: Option<OwnedSemaphorePermit>) {
        self.further = Some(Further {
            kept,
            login,
            place: None,
            held: None,
        });
    }

    /// Whether the fleet has nothing to do with it.
    pub(crate) fn counts_for_nothing(&self) -> bool {
        self.further.is_some()
    }

    /// Whether it has ever been logged in.
    pub(crate) fn was_kept(&self) -> bool {
        self.was_kept
    }

    /// Whether somebody serves it.
    pub(crate) fn is_serving(&self) -> bool {
        self.serve.is_some()
    }

    /// The user is logged in.
    pub(crate) fn begin(
        &mut self,
        worker: &Rc<Worker>,
        host: HostId,
        connecting: Duration,
        connection: &Connection,
    ) -> Result<(), Failure> {
        let kept = match &mut self.further {
            Some(further) => {
                (further.login, further.held) = (None, None);
                let met = further.kept.met();
                let shown = connection.host_key_proof().map(|(key, _)| key);
                // A certificate may be a newer one of the same key.
                let known = met.as_ref().map(|met| public_key(&met.host_key));
                if known != shown.map(public_key) {
                    let detail = "a further connection came to a server with another host key";
                    return Err(Failure::new(FailureKind::Lost, detail));
                }
                further.kept.clone()
            }
            None => {
                let Some(kept) = worker.kept(host) else {
                    return Ok(());
                };
                kept.clone().begin(&LoggedIn {
                    connecting,
                    address: self.address,
                    connection,
                })?;
                kept
            }
        };
        self.serve = Some(kept.serve(self.further.is_none()));
        self.was_kept = true;
        Ok(())
    }

    /// A further login waits for the agent as lanes do, and not at the fleet's gate.
    pub(crate) fn reach_gate(&mut self, worker: &Worker) {
        if let Some(further) = &mut self.further {
            let limits = worker.lane_limits.clone();
            further.place = Some(Box::pin(async move { limits.signature().await }));
        }
    }

    pub(crate) fn leave_gate(&mut self) {
        if let Some(further) = &mut self.further {
            further.held = None;
        }
    }

    pub(crate) fn handle(&mut self, event: Event, input: &[u8]) {
        if let Some(serve) = &mut self.serve {
            serve.handle(event, input);
        }
    }

    pub(crate) fn advance(&mut self, connection: &mut Connection) -> Result<(), ConnectionError> {
        match &mut self.serve {
            Some(serve) => serve.advance(connection),
            None => Ok(()),
        }
    }

    /// Whether there is something to do with a connection that takes packets now, or not.
    pub(crate) fn has_work(&self, takes_packets: bool) -> bool {
        let has_work =
            |serve: &dyn Serve| serve.has_work() || (takes_packets && serve.waits_for_room());
        self.serve.as_deref().is_some_and(has_work)
    }

    /// Whether the connection is to end now; nobody serves it any more.
    pub(crate) fn ends(&mut self) -> bool {
        self.served = self.serve.take_if(|serve| serve.is_over());
        self.served.is_some()
    }

    /// The connection has ended, and with it whoever serves it.
    pub(crate) fn handle_end(&mut self, connection: &Connection) {
        for mut serve in self.serve.take().into_iter().chain(self.served.take()) {
            serve.handle_end(connection);
        }
    }

    /// Ready when there is something to do.
    pub(crate) fn poll(
        &mut self,
        context: &mut Context<'_>,
        login: &mut Login<'_>,
        connection: &mut Connection,
    ) -> Poll<()> {
        if let Some(further) = &mut self.further
            && let Some(place) = &mut further.place
            && let Poll::Ready(held) = place.as_mut().poll(context)
        {
            (further.place, further.held) = (None, held);
            login.handle_admitted(connection);
            return Poll::Ready(());
        }
        match &mut self.serve {
            Some(serve) => serve.poll(context),
            None => Poll::Pending,
        }
    }
}
