//! A passenger in proxy mode (`ssh -O proxy`, PROTOCOL.mux section 9): it speaks the connection protocol itself, and its packets
//! travel on a connection that others share. It takes the place of one session there.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::atomic::Ordering;

use sshoal_mux::{
    AskedGlobally, LeftChannel, Passenger, PassengerError, Place, ProxiedRequest, ProxyChannels,
    ProxyError, allocated_port, opened_by,
};
use sshoal_proto::{Connection, ConnectionError, LocalChannel, Unspoken};

use crate::dock::Dock;
use crate::forward;
use crate::seat::Seat;

/// Octets of packets that wait for the connection, about: more is not read meanwhile.
const MAX_WAITING: usize = 256 * 1024;
/// Most octets of packets that wait for the passenger. What a server may send is limited by the windows that the passenger
/// gives; who gives more than this and does not read is left.
const MAX_UNREAD: usize = 32 * 1024 * 1024;
/// Global requests on a connection without an answer: more of a passenger's are not kept.
const MAX_UNANSWERED: usize = 4096;
/// Octets that are handed to the passenger's socket at a time, about.
const HANDED_ON: usize = 256 * 1024;

/// Numbers of messages that are looked at here (RFC 4250 section 4.1.2).
const GLOBAL_REQUEST: u8 = 80;
const REQUEST_SUCCESS: u8 = 81;
const REQUEST_FAILURE: u8 = 82;
const CHANNEL_OPEN: u8 = 90;
const CHANNEL_OPEN_CONFIRMATION: u8 = 91;
const CHANNEL_OPEN_FAILURE: u8 = 92;

/// What a passenger in proxy mode and its connection leave for one another.
#[derive(Default)]
pub(crate) struct Proxied {
    channels: RefCell<ProxyChannels>,
    /// Our channels that are its own.
    ours: RefCell<Vec<LocalChannel>>,
    /// To the server.
    up: RefCell<Packets>,
    /// To the passenger.
    down: RefCell<Packets>,
    /// The CHANNEL_OPEN of a session that is all the passenger has: it can be sent again, elsewhere.
    opening: RefCell<Option<Vec<u8>>>,
    /// Whether it has had a session.
    has_session: Cell<bool>,
    /// Why it is served no longer.
    fault: RefCell<Option<String>>,
}

/// Payloads in their order.
#[derive(Default)]
struct Packets {
    queue: VecDeque<Vec<u8>>,
    octets: usize,
}

impl Packets {
    fn push(&mut self, payload: Vec<u8>) {
        self.octets += payload.len();
        self.queue.push_back(payload);
    }

    fn pop(&mut self) -> Option<Vec<u8>> {
        let payload = self.queue.pop_front()?;
        self.octets -= payload.len();
        Some(payload)
    }
}

/// What came of serving a passenger.
#[derive(Default)]
pub(crate) struct Served {
    /// Channels that are its own from now on.
    pub(crate) opened: Vec<LocalChannel>,
    /// Channels that are over.
    pub(crate) over: Vec<LocalChannel>,
    /// The connection takes no more for now.
    pub(crate) is_stalled: bool,
    /// The passenger is gone, and had a session if so.
    pub(crate) left: Option<bool>,
}

/// What a packet of the server's has brought.
pub(crate) enum Brought {
    Nothing,
    /// The passenger has its first session.
    Session,
    /// The channel is over.
    Over,
    /// The server opens no session here, but may elsewhere.
    Elsewhere,
}

// For the passenger.
impl Proxied {
    /// Whether more packets are to be read.
    pub(crate) fn has_room(&self) -> bool {
        self.up.borrow().octets < MAX_WAITING
    }

    pub(crate) fn feed(&self, payload: Vec<u8>) {
        self.up.borrow_mut().push(payload);
    }

    /// Whether packets wait for the passenger.
    pub(crate) fn has_more(&self) -> bool {
        !self.down.borrow().queue.is_empty()
    }

    /// Why it is served no longer.
    pub(crate) fn fault(&self) -> Option<String> {
        self.fault.borrow().clone()
    }

    /// Hands on what the server has sent; returns how many octets.
    pub(crate) fn deliver<D>(&self, passenger: &mut Passenger<D>) -> Result<usize, PassengerError> {
        let mut octets = 0;
        let mut down = self.down.borrow_mut();
        while passenger.poll_transmit().map_or(0, <[u8]>::len) < HANDED_ON {
            let Some(payload) = down.pop() else {
                break;
            };
            octets += payload.len();
            passenger.send_packet(&payload)?;
        }
        Ok(octets)
    }
}

// For the connection.
impl Proxied {
    /// What the server has said to one of its channels.
    pub(crate) fn handle_packet(&self, seat: &Seat, ours: LocalChannel, payload: &[u8]) -> Brought {
        let mut payload = payload.to_vec();
        let number = payload.first().copied();
        let mut channels = self.channels.borrow_mut();
        if let Err(error) = channels.to_passenger(&mut payload) {
            drop(channels);
            self.lose(seat, &error.to_string());
            return Brought::Nothing;
        }
        let is_over = !channels.has(ours.number());
        drop(channels);
        if is_over {
            self.ours.borrow_mut().retain(|own| *own != ours);
        }
        let opening = match number {
            Some(CHANNEL_OPEN_CONFIRMATION | CHANNEL_OPEN_FAILURE) => {
                self.opening.borrow_mut().take()
            }
            _ => None,
        };
        if number == Some(CHANNEL_OPEN_FAILURE)
            && !seat.was_alone()
            && let Some(open) = &opening
        {
            let open = open.clone();
            let mut up = self.up.borrow_mut();
            up.octets += open.len();
            up.queue.push_front(open);
            return Brought::Elsewhere;
        }
        self.push_down(seat, payload);
        match opening {
            _ if is_over => Brought::Over,
            Some(_) if !self.has_session.replace(true) => Brought::Session,
            _ => Brought::Nothing,
        }
    }

    /// It goes on elsewhere; returns whether it had a session here.
    pub(crate) fn forget_session(&self) -> bool {
        self.has_session.take()
    }

    /// The server wants to open a channel by `open` for a place that it listens at for this passenger; returns whether the
    /// passenger is asked.
    pub(crate) fn offer(&self, seat: &Seat, ours: LocalChannel, open: &[u8]) -> bool {
        let offered = self.channels.borrow_mut().offered(open, ours.number());
        if offered.is_ok() {
            self.ours.borrow_mut().push(ours);
            self.opening.take();
            self.push_down(seat, open.to_vec());
        }
        offered.is_ok()
    }

    fn push_down(&self, seat: &Seat, payload: Vec<u8>) {
        let mut down = self.down.borrow_mut();
        if down.octets + payload.len() > MAX_UNREAD {
            drop(down);
            return self.lose(seat, "it does not read what it asked for");
        }
        down.push(payload);
        seat.news.notify_one();
    }

    fn lose(&self, seat: &Seat, why: &str) {
        self.fault.borrow_mut().get_or_insert(why.to_owned());
        seat.news.notify_one();
    }
}

/// Does what a passenger wants done, as far as the connection takes it.
pub(crate) fn serve(
    seat: &Rc<Seat>,
    proxied: &Proxied,
    dock: &Rc<Dock>,
    connection: &mut Connection,
) -> Result<Served, ConnectionError> {
    let mut served = Served::default();
    if seat.is_left() {
        served.over = proxied.ours.take();
        served.left = Some(proxied.has_session.get());
        abandon(seat, proxied, dock, connection, &served.over)?;
        return Ok(served);
    }
    while proxied.fault.borrow().is_none() {
        if !connection.takes_packets() {
            served.is_stalled = true;
            break;
        }
        let Some(payload) = proxied.up.borrow_mut().pop() else {
            break;
        };
        let sent = &dock.host().entry.counts.sent;
        sent.fetch_add(payload.len() as u64, Ordering::Relaxed);
        if let Err(error) = proxied.pass(seat, dock, connection, payload, &mut served) {
            match error {
                Trouble::Passenger(error) => proxied.lose(seat, &error.to_string()),
                Trouble::Connection(error) => return Err(error),
            }
        }
    }
    // There may be room for more.
    seat.news.notify_one();
    Ok(served)
}

/// Whose fault it is.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error(transparent)]
    Passenger(#[from] ProxyError),
    #[error(transparent)]
    Connection(#[from] ConnectionError),
}

impl Proxied {
    /// A packet of the passenger's goes to the server, if it may.
    fn pass(
        &self,
        seat: &Rc<Seat>,
        dock: &Rc<Dock>,
        connection: &mut Connection,
        mut payload: Vec<u8>,
        served: &mut Served,
    ) -> Result<(), Trouble> {
        match payload.first() {
            Some(&GLOBAL_REQUEST) => return Ok(self.ask(seat, dock, &payload)?),
            // Nothing was asked of it.
            Some(&number @ (REQUEST_SUCCESS | REQUEST_FAILURE)) => {
                return Err(ProxyError::NotOfConnection { number }.into());
            }
            Some(&CHANNEL_OPEN) => {
                let is_first = self.ours.borrow().is_empty();
                let is_session = opened_by(&payload)
                    .map_err(ProxyError::from)?
                    .0
                    .eq(b"session");
                let may_move = is_first && is_session && !dock.host().forwards.has_of(seat);
                let open = may_move.then(|| payload.clone());
                self.opening.replace(open);
            }
            _ => {}
        }
        let mut channels = self.channels.borrow_mut();
        let mut allotted = None;
        channels.from_passenger(&mut payload, || {
            allotted = connection.open_proxied();
            allotted.map(LocalChannel::number)
        })?;
        if let Some(channel) = allotted {
            self.ours.borrow_mut().push(channel);
            served.opened.push(channel);
        }
        connection.send_packet(&payload)?;
        let is_over = |channel: &LocalChannel| !channels.has(channel.number());
        let mut ours = self.ours.borrow_mut();
        for channel in ours.extract_if(.., |channel| is_over(channel)) {
            connection.release_proxied(channel);
            served.over.push(channel);
        }
        Ok(())
    }

    /// A global request: the answers come in the order in which the passenger has asked.
    fn ask(&self, seat: &Rc<Seat>, dock: &Rc<Dock>, payload: &[u8]) -> Result<(), ProxyError> {
        let (request, want_reply) = ProxiedRequest::decode(payload)?;
        if dock.unanswered() >= MAX_UNANSWERED {
            return Err(ProxyError::Unanswered {
                limit: MAX_UNANSWERED,
            });
        }
        let passenger = seat.clone();
        let answer = move |reply: Option<&[u8]>| {
            if want_reply && let Some(proxied) = passenger.proxied() {
                proxied.push_down(&passenger, reply_payload(reply));
            }
        };
        let host = dock.host();
        let room = match &request {
            ProxiedRequest::Listen(_) => forward::Asked::begin(&host),
            _ => None,
        };
        match (request, room) {
            (ProxiedRequest::Listen(place), Some(room)) => {
                // Where its channels come from it cannot be moved.
                self.opening.take();
                let (dock, passenger) = (dock.clone(), seat.clone());
                let asked = AskedGlobally::listen(&place);
                dock.clone().ask(asked, move |reply| {
                    if let Some(listens) = reply.and_then(|reply| listens(place, reply)) {
                        match passenger.is_left() {
                            true => forward::cancel(&dock, &listens),
                            false => host.forwards.expect(listens, &passenger),
                        }
                    }
                    drop(room);
                    answer(reply);
                });
            }
            (ProxiedRequest::Cancel(place), _) if host.forwards.forget(seat, &place) => {
                dock.ask(AskedGlobally::cancel(&place), answer);
            }
            // In its turn, as from a server that does not know the request, or does not grant it.
            _ => dock.ask(AskedGlobally::keepalive(), move |_| answer(None)),
        }
        Ok(())
    }
}

/// Where a server listens that was asked to do so there, and has answered this.
fn listens(place: Place, reply: &[u8]) -> Option<Place> {
    match place {
        Place::Tcp { port: 0, .. } => {
            let port = allocated_port(reply).ok()?;
            Some(place.with_port(port))
        }
        place => Some(place),
    }
}

/// The shortest payload that OpenSSH's client takes: what is shorter ends it (packet.c, `ssh_packet_read_poll2_mux`), and of a
/// reply it does not read what it does not expect.
const SHORTEST: usize = 4;

fn reply_payload(reply: Option<&[u8]>) -> Vec<u8> {
    let mut payload = match reply {
        Some(data) => [&[REQUEST_SUCCESS], data].concat(),
        None => vec![REQUEST_FAILURE],
    };
    payload.resize(payload.len().max(SHORTEST), 0);
    payload
}

/// A passenger is gone: its channels are closed and nobody listens for it any more, as channels.c, `channel_free`.
fn abandon(
    seat: &Rc<Seat>,
    proxied: &Proxied,
    dock: &Rc<Dock>,
    connection: &mut Connection,
    ours: &[LocalChannel],
) -> Result<(), ConnectionError> {
    for listens in dock.host().forwards.take_of(seat) {
        forward::cancel(dock, &listens);
    }
    let channels = proxied.channels.take();
    let left: Vec<LeftChannel> = channels.left().collect();
    for channel in ours {
        let found = left.iter().find(|it| it.ours == channel.number());
        if let Some(left) = found {
            let unspoken = Unspoken {
                server_number: left.servers,
                is_offered: left.is_offered,
                closed_here: left.closed_here,
                closed_there: left.closed_there,
            };
            connection.abandon_proxied(*channel, unspoken)?;
        }
    }
    Ok(())
}
