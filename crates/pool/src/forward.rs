//! Forwards of a host (`-L`, `-R`, `-D`): who listens for which, and what a passenger is told. As in OpenSSH they are the
//! host's and not the passenger's: they last until they are cancelled or the host's connections end.
//!
//! ```text
//!   -L, -D   listen.rs accepts, socks.rs asks where to, the server connects     ---.
//!   -R       the server accepts, arrival.rs finds the forward, and we connect   ---+--> stream.rs passes octets
//! ```

mod arrival;
mod listen;
mod place;
mod socks;
mod stream;

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use sshoal_mux::{AskedGlobally, Forward, ForwardKind, Place, allocated_port};
use tokio::sync::{Notify, oneshot};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::dock::Dock;
use crate::host::Host;
use crate::seat::Seat;
use crate::socket_file::SocketFile;

pub(crate) use arrival::{Arrival, arrived};

/// Most forwards of one host.
pub const MAX_FORWARDS: usize = 256;
/// Most connections through the forwards of one host; others wait to be accepted, and those of servers are refused.
pub const MAX_FORWARDED: usize = 512;
/// How long a server may take to say whether it listens.
const SERVER_PATIENCE: Duration = Duration::from_secs(60);

/// What came of a forward that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opened {
    Done,
    /// The server listens at this port, which it has chosen.
    At(u16),
}

/// The forwards of a host.
#[derive(Default)]
pub(crate) struct Forwards {
    here: RefCell<Vec<Here>>,
    there: RefCell<Vec<There>>,
    /// Places at which servers are asked to listen for passengers in proxy mode, and have not answered.
    asked: Cell<usize>,
    connections: Cell<usize>,
    /// A connection has ended.
    left: Notify,
}

/// One for which this side listens.
struct Here {
    forward: Forward,
    accepting: Vec<AbortHandle>,
    socket: Option<SocketFile>,
}

/// One for which the server listens.
struct There {
    forward: Option<Forward>,
    /// Where, in the words that it was asked in; with the port that it has chosen, once it has.
    listens: Place,
    to: To,
}

/// Where a connection that the server has accepted goes.
#[derive(Clone)]
pub(crate) enum To {
    /// This side connects to there.
    Place(Place),
    /// The same, and SOCKS says where to each time (`-R` with a port alone).
    Socks,
    /// A passenger in proxy mode answers for it.
    Passenger(Rc<Seat>),
}

impl There {
    /// Whether it is of this passenger in proxy mode.
    fn is_for(&self, passenger: &Rc<Seat>) -> bool {
        matches!(&self.to, To::Passenger(seat) if Rc::ptr_eq(seat, passenger))
    }
}

impl Here {
    fn end(&self) {
        for accepting in &self.accepting {
            accepting.abort();
        }
        if let Some(socket) = &self.socket {
            socket.remove();
        }
    }
}

/// A place among the forwards, until the server has said whether it listens.
pub(crate) struct Asked(Rc<Host>);

impl Asked {
    /// `None` if there are too many.
    pub(crate) fn begin(host: &Rc<Host>) -> Option<Asked> {
        let forwards = &host.forwards;
        let has_room = !forwards.are_too_many();
        has_room.then(|| {
            forwards.asked.set(forwards.asked.get() + 1);
            Asked(host.clone())
        })
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        let asked = &self.0.forwards.asked;
        asked.set(asked.get() - 1);
    }
}

/// A connection through a forward, for as long as it is held.
pub(crate) struct Connection(Rc<Host>);

impl Connection {
    /// `None` if there are too many.
    fn begin(host: &Rc<Host>) -> Option<Connection> {
        let forwards = &host.forwards;
        let open = forwards.connections.get();
        if open >= MAX_FORWARDED {
            return None;
        }
        forwards.connections.set(open + 1);
        host.entry.counts.begin_forwarded();
        host.note_use();
        Some(Connection(host.clone()))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let forwards = &self.0.forwards;
        forwards.connections.set(forwards.connections.get() - 1);
        forwards.left.notify_one();
        self.0.entry.counts.end_forwarded();
        self.0.note_use();
        self.0.end_if_left();
    }
}

impl Forwards {
    /// Whether connections are open.
    pub(crate) fn are_in_use(&self) -> bool {
        self.connections.get() > 0
    }

    /// Waits until another connection may begin.
    async fn room(&self) {
        while self.connections.get() >= MAX_FORWARDED {
            self.left.notified().await;
        }
    }

    /// Nobody listens any more; what is open stays for as long as its connection.
    pub(crate) fn end(&self) {
        for here in self.here.take() {
            here.end();
        }
        self.there.take();
    }

    /// The connection at whose end servers listened has ended.
    pub(crate) fn forget_servers(&self) {
        self.there.take();
    }

    /// Where a connection goes that the server has accepted there; `None` if it was not asked to.
    fn destination(&self, at: &Place) -> Option<To> {
        let there = self.there.borrow();
        let found = there.iter().find(|there| there.listens == *at);
        found.map(|there| there.to.clone())
    }

    /// What is known of a forward that was opened before.
    fn existing(&self, forward: &Forward) -> Option<Opened> {
        if self.here.borrow().iter().any(|it| it.forward == *forward) {
            return Some(Opened::Done);
        }
        let there = self.there.borrow();
        let found = there
            .iter()
            .find(|it| it.forward.as_ref() == Some(forward))?;
        Some(match (&forward.listen, &found.listens) {
            (Place::Tcp { port: 0, .. }, Place::Tcp { port, .. }) => Opened::At(*port),
            _ => Opened::Done,
        })
    }

    fn are_too_many(&self) -> bool {
        let known = self.here.borrow().len() + self.there.borrow().len();
        known + self.asked.get() >= MAX_FORWARDS
    }

    /// The server listens for a passenger in proxy mode, which had [`Asked`].
    pub(crate) fn expect(&self, listens: Place, passenger: &Rc<Seat>) {
        self.there.borrow_mut().push(There {
            forward: None,
            listens,
            to: To::Passenger(passenger.clone()),
        });
    }

    /// The server is not to listen there for the passenger any more; returns whether it did.
    pub(crate) fn forget(&self, passenger: &Rc<Seat>, listens: &Place) -> bool {
        let mut there = self.there.borrow_mut();
        let before = there.len();
        there.retain(|it| !(it.is_for(passenger) && it.listens == *listens));
        there.len() < before
    }

    /// Whether the server listens for the passenger.
    pub(crate) fn has_of(&self, passenger: &Rc<Seat>) -> bool {
        self.there.borrow().iter().any(|it| it.is_for(passenger))
    }

    /// Where the server listens for a passenger that is gone, and that it is forgotten.
    pub(crate) fn take_of(&self, passenger: &Rc<Seat>) -> Vec<Place> {
        let mut taken = Vec::new();
        self.there.borrow_mut().retain(|there| {
            let is_meant = there.is_for(passenger);
            taken.extend(is_meant.then(|| there.listens.clone()));
            !is_meant
        });
        taken
    }
}

/// Opens a forward; the error is what the passenger is told.
pub(crate) async fn open(host: Rc<Host>, forward: Forward) -> Result<Opened, String> {
    check(&forward)?;
    let forwards = &host.forwards;
    match forwards.existing(&forward) {
        Some(Opened::At(0)) => return Err("it is being opened".to_owned()),
        Some(opened) => return Ok(opened),
        None => {}
    }
    if forwards.are_too_many() {
        return Err(format!("a host has {MAX_FORWARDS} forwards at most"));
    }
    match forward.kind {
        ForwardKind::Local | ForwardKind::Dynamic => open_here(&host, forward).await,
        ForwardKind::Remote => open_there(&host, forward).await,
    }
}

/// As mux.c, `mux_master_process_open_fwd`.
fn check(forward: &Forward) -> Result<(), &'static str> {
    let is_valid = match (forward.kind, &forward.listen, &forward.connect) {
        (ForwardKind::Dynamic, Place::Unix(_), _) => false,
        (ForwardKind::Dynamic, Place::Tcp { .. }, _) => true,
        (_, _, None) => false,
        (_, _, Some(Place::Unix(_))) => true,
        (kind, _, Some(Place::Tcp { host, port })) => {
            !host.is_empty() && (kind == ForwardKind::Remote || *port != 0)
        }
    };
    match is_valid {
        true => Ok(()),
        false => Err("Invalid forwarding request"),
    }
}

async fn open_here(host: &Rc<Host>, forward: Forward) -> Result<Opened, String> {
    let bound = listen::bind(&forward.listen, &host.entry.member.listening).await;
    let (listeners, socket) = bound.map_err(|why| format!("Port forwarding failed: {why}"))?;
    if host.is_ending() {
        return Err("the connection to the host has ended".to_owned());
    }
    let accepting = listeners
        .into_iter()
        .map(|listener| listen::begin(host, listener, forward.connect.clone()))
        .collect();
    host.forwards.here.borrow_mut().push(Here {
        forward,
        accepting,
        socket,
    });
    Ok(Opened::Done)
}

async fn open_there(host: &Rc<Host>, forward: Forward) -> Result<Opened, String> {
    let lost = || "the connection to the host has ended".to_owned();
    let not_up = || "the host is not logged in to; any command on it changes that".to_owned();
    let dock = host.first_dock().ok_or_else(not_up)?;
    let listens = forward.listen.for_server();
    let to = match &forward.connect {
        Some(Place::Tcp { port: 0, .. }) | None => To::Socks,
        Some(place) => To::Place(place.clone()),
    };
    host.forwards.there.borrow_mut().push(There {
        forward: Some(forward.clone()),
        listens: listens.clone(),
        to,
    });
    let (tell, told) = oneshot::channel();
    let (of, asked) = (host.clone(), forward.clone());
    // At once: somebody may connect there with what comes next.
    dock.ask(AskedGlobally::listen(&listens), move |reply| {
        // The passenger may be gone; the forward stays.
        let _ = tell.send(of.forwards.settle(&asked, reply));
    });
    match timeout(SERVER_PATIENCE, told).await {
        Ok(Ok(settled)) => settled,
        Ok(Err(_)) => Err(lost()),
        Err(_) => Err("the server does not say whether it listens".to_owned()),
    }
}

impl Forwards {
    /// The server has said whether it listens.
    fn settle(&self, forward: &Forward, reply: Option<&[u8]>) -> Result<Opened, String> {
        let mut all = self.there.borrow_mut();
        let is_it = |there: &There| there.forward.as_ref() == Some(forward);
        let Some(at) = all.iter().position(is_it) else {
            return Err("it was cancelled".to_owned());
        };
        let chosen = match (&forward.listen, reply) {
            (Place::Tcp { port: 0, .. }, Some(reply)) => allocated_port(reply).ok(),
            (_, Some(_)) => return Ok(Opened::Done),
            (_, None) => None,
        };
        let Some(port) = chosen else {
            all.swap_remove(at);
            let place = match &forward.listen {
                Place::Tcp { port, .. } => format!("listen port {port}"),
                Place::Unix(path) => format!("listen path {}", String::from_utf8_lossy(path)),
            };
            return Err(format!("remote port forwarding failed for {place}"));
        };
        all[at].listens = all[at].listens.clone().with_port(port);
        Ok(Opened::At(port))
    }
}

/// Ends a forward; the error is what the passenger is told, in the words of mux.c.
pub(crate) fn close(host: &Rc<Host>, forward: &Forward) -> Result<(), &'static str> {
    let forwards = &host.forwards;
    let mut here = forwards.here.borrow_mut();
    if let Some(at) = here.iter().position(|it| it.forward == *forward) {
        here.swap_remove(at).end();
        return Ok(());
    }
    let mut there = forwards.there.borrow_mut();
    let is_it = |it: &There| it.forward.as_ref() == Some(forward);
    let at = there.iter().position(is_it).ok_or("port not forwarded")?;
    let ended = there.swap_remove(at);
    if let Some(dock) = host.first_dock() {
        cancel(&dock, &ended.listens);
    }
    Ok(())
}

/// The server is to listen there no longer. Whether it did is of no consequence.
pub(crate) fn cancel(dock: &Dock, listens: &Place) {
    dock.ask(AskedGlobally::cancel(listens), |_| {});
}

/// A unix socket's path.
fn path(octets: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(octets))
}
