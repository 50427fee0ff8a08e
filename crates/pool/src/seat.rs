//! What a passenger and its connection leave for one another: neither waits for the other here.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};
use std::time::Duration;

use sshoal_proto::{
    Command, Connection, ConnectionError, ExecFate, LocalChannel, SessionRequest, Stream,
};
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::dock::Dock;
use crate::guest::Guest;
use crate::proxy::Proxied;

/// Octets of input that wait for the connection, about: more is not read meanwhile.
const MAX_INPUT: usize = 256 * 1024;
/// Most signals that wait for the connection: RFC 4254 section 6.10 has 13.
const MAX_SIGNALS: usize = 32;

/// What is asked of the server.
pub(crate) enum Wanted {
    Session(SessionRequest),
    /// A connection to there, for somebody who comes from an address and a port.
    Tcp {
        host: String,
        port: u16,
        originator: (String, u16),
    },
    /// A connection to a unix socket there.
    Unix(Vec<u8>),
    /// Nothing: the server wants to open this channel.
    Arrived(LocalChannel),
    /// What a passenger in proxy mode says.
    Proxy(Proxied),
}

/// A session, or a stdio forward, between its passenger and the connection that it is on.
pub(crate) struct Seat {
    what: Wanted,
    dock: RefCell<Option<Rc<Dock>>>,
    is_due: Cell<bool>,
    /// Whether a connection that refused it has been asked once more.
    has_asked_again: Cell<bool>,
    /// For the passenger: something has changed.
    pub(crate) news: Notify,
    /// Who is told so in place of a passenger, and by which number.
    guest: Option<(Weak<Guest>, u32)>,
    up: RefCell<Up>,
    down: RefCell<Down>,
}

/// From the passenger to the server.
#[derive(Default)]
struct Up {
    channel: Option<LocalChannel>,
    /// Whether no other session was on the connection when this one was asked for.
    was_alone: bool,
    input: VecDeque<u8>,
    input_has_ended: bool,
    /// The terminal's new size: columns and rows.
    size: Option<(u32, u32)>,
    /// Signals for the command, without `SIG`.
    signals: Vec<String>,
    /// Octets of input that the connection has taken and the guest has not been told of.
    taken: usize,
    /// Octets of output that are out of the way.
    delivered: usize,
    /// Nobody reads standard output any more, and whether the server knows it.
    output_is_broken: bool,
    has_said_so: bool,
    /// The passenger is gone.
    is_left: bool,
}

/// From the server to the passenger.
#[derive(Default)]
pub(crate) struct Down {
    pub(crate) is_opened: bool,
    pub(crate) output: VecDeque<u8>,
    pub(crate) error: VecDeque<u8>,
    pub(crate) pty_refused: bool,
    pub(crate) is_started: bool,
    pub(crate) status: Option<u32>,
    pub(crate) signalled: Option<Signalled>,
    pub(crate) has_ended: bool,
    /// Nothing more comes.
    pub(crate) is_closed: bool,
    /// Why it was never opened.
    pub(crate) refusal: Option<String>,
    /// Why there is no connection for it any more, or no command.
    pub(crate) lost: Option<String>,
    /// It was left, and the connection knows it.
    pub(crate) has_left: bool,
    /// What the connection knew of the command at the end.
    pub(crate) fate: Option<ExecFate>,
}

/// By what a command was ended (RFC 4254 section 6.10).
pub(crate) struct Signalled {
    pub(crate) name: String,
    pub(crate) core_dumped: bool,
    pub(crate) message: String,
}

/// A session that is open, or about to be, and that nobody has asked for yet.
pub(crate) struct Spare {
    pub(crate) channel: LocalChannel,
    pub(crate) is_open: bool,
}

/// What came of serving a seat.
pub(crate) enum Served {
    /// It has a channel from now on.
    Asked(LocalChannel),
    Idle,
    /// Its passenger has left before it had one.
    Dropped,
}

impl Seat {
    pub(crate) fn new(what: Wanted) -> Rc<Seat> {
        Seat::with(what, None)
    }

    /// One of a guest's commands, by that number.
    pub(crate) fn of_guest(guest: &Rc<Guest>, number: u32, request: SessionRequest) -> Rc<Seat> {
        Seat::with(
            Wanted::Session(request),
            Some((Rc::downgrade(guest), number)),
        )
    }

    fn with(what: Wanted, guest: Option<(Weak<Guest>, u32)>) -> Rc<Seat> {
        Rc::new(Seat {
            what,
            dock: RefCell::default(),
            is_due: Cell::new(false),
            has_asked_again: Cell::new(false),
            news: Notify::new(),
            guest,
            up: RefCell::default(),
            down: RefCell::default(),
        })
    }
}

// For the passenger.
impl Seat {
    pub(crate) fn down(&self) -> std::cell::RefMut<'_, Down> {
        self.down.borrow_mut()
    }

    /// Whether more input is to be read.
    pub(crate) fn wants_input(&self) -> bool {
        let up = self.up.borrow();
        self.down.borrow().is_opened && !up.input_has_ended && up.input.len() < MAX_INPUT
    }

    /// What was read; nothing is the end of the input.
    pub(crate) fn feed(self: &Rc<Self>, octets: &[u8]) {
        let mut up = self.up.borrow_mut();
        up.input.extend(octets);
        up.input_has_ended |= octets.is_empty();
        drop(up);
        self.serve_soon();
    }

    /// So many octets of output are out of the way.
    pub(crate) fn delivered(self: &Rc<Self>, octets: usize) {
        self.up.borrow_mut().delivered += octets;
        self.serve_soon();
    }

    /// Nobody reads standard output any more.
    pub(crate) fn break_output(self: &Rc<Self>) {
        self.up.borrow_mut().output_is_broken = true;
        self.serve_soon();
    }

    /// A signal for the command. One that waits already is not sent twice, as with a process; returns whether there was room.
    pub(crate) fn signal(self: &Rc<Self>, name: &str) -> bool {
        let mut up = self.up.borrow_mut();
        if !up.signals.iter().any(|waiting| waiting == name) {
            if up.signals.len() >= MAX_SIGNALS {
                return false;
            }
            up.signals.push(name.to_owned());
        }
        drop(up);
        self.serve_soon();
        true
    }

    /// Octets of input that wait here.
    pub(crate) fn waiting_input(&self) -> usize {
        self.up.borrow().input.len()
    }

    /// How many octets of input the connection has taken since this was last asked.
    pub(crate) fn taken(&self) -> usize {
        std::mem::take(&mut self.up.borrow_mut().taken)
    }

    /// Whether it is one of a guest's.
    pub(crate) fn is_guest(&self) -> bool {
        self.guest.is_some()
    }

    /// Whether a connection has it.
    pub(crate) fn is_aboard(&self) -> bool {
        self.dock.borrow().is_some()
    }

    pub(crate) fn resize(self: &Rc<Self>, size: (u32, u32)) {
        self.up.borrow_mut().size = Some(size);
        self.serve_soon();
    }

    /// The passenger is gone.
    pub(crate) fn leave(self: &Rc<Self>) {
        self.up.borrow_mut().is_left = true;
        self.serve_soon();
    }

    /// A channel that the server wants to open is to be opened.
    pub(crate) fn accept(self: &Rc<Self>) {
        self.serve_soon();
    }

    /// Waits until it is known whether there is a channel; returns whether there is.
    pub(crate) async fn settled(&self) -> bool {
        loop {
            {
                let down = self.down.borrow();
                if down.is_opened || down.is_closed {
                    return down.is_opened;
                }
            }
            self.news.notified().await;
        }
    }

    /// Whether all input has left for the server, or never will.
    pub(crate) fn has_sent_all(&self) -> bool {
        self.up.borrow().input.is_empty() || self.down.borrow().is_closed
    }

    /// No more input comes: waits until what there is has left.
    pub(crate) async fn finish(self: &Rc<Self>, patience: Duration) {
        self.feed(&[]);
        let sent = async {
            while !self.has_sent_all() {
                self.news.notified().await;
            }
        };
        // What the server does not take by then is lost with the channel.
        let _ = timeout(patience, sent).await;
    }

    pub(crate) fn serve_soon(self: &Rc<Self>) {
        let dock = self.dock.borrow().clone();
        if let Some(dock) = dock {
            dock.serve_soon(self.clone());
        }
    }

    /// Whoever sits here is to look.
    fn tell(&self) {
        match &self.guest {
            None => self.news.notify_one(),
            Some((guest, number)) => {
                if let Some(guest) = guest.upgrade() {
                    guest.is_due(*number);
                }
            }
        }
    }
}

// For the connection.
impl Seat {
    /// Whether it takes one of the places that MaxSessions limits.
    pub(crate) fn takes_a_place(&self) -> bool {
        matches!(self.what, Wanted::Session(_) | Wanted::Proxy(_))
    }

    /// What a passenger in proxy mode has; `None` for all others.
    pub(crate) fn proxied(&self) -> Option<&Proxied> {
        match &self.what {
            Wanted::Proxy(proxied) => Some(proxied),
            _ => None,
        }
    }

    /// The channel that the server wants to open, if this is one.
    pub(crate) fn arrived_on(&self) -> Option<LocalChannel> {
        match self.what {
            Wanted::Arrived(channel) => Some(channel),
            _ => None,
        }
    }

    /// Whether no other session was on the connection when this one came.
    pub(crate) fn was_alone(&self) -> bool {
        self.up.borrow().was_alone
    }

    pub(crate) fn is_left(&self) -> bool {
        self.up.borrow().is_left
    }

    /// It is to be opened on this connection.
    pub(crate) fn board(&self, dock: Rc<Dock>, is_alone: bool) {
        self.dock.replace(Some(dock));
        *self.up.borrow_mut() = Up {
            was_alone: is_alone,
            is_left: self.is_left(),
            ..Up::default()
        };
    }

    /// The connection has not taken it; returns whether it was the only session there.
    pub(crate) fn leave_dock(&self) -> bool {
        self.dock.replace(None);
        self.is_due.set(false);
        self.up.borrow().was_alone
    }

    /// Whether a connection that has refused it may be asked once more.
    pub(crate) fn may_ask_again(&self) -> bool {
        !self.has_asked_again.replace(true)
    }

    /// Whether it was not due before.
    pub(crate) fn becomes_due(&self) -> bool {
        !self.is_due.replace(true)
    }

    /// Does what the passenger wants done, as far as the connection takes it.
    /// A session gets the `spare` one, if there is one.
    pub(crate) fn serve(
        &self,
        connection: &mut Connection,
        spare: &mut Option<Spare>,
    ) -> Result<Served, ConnectionError> {
        let mut up = self.up.borrow_mut();
        let Some(channel) = up.channel else {
            if up.is_left {
                if let Some(channel) = self.arrived_on() {
                    connection.refuse_forwarded(channel, "Connection refused")?;
                }
                self.down.borrow_mut().has_left = true;
                self.tell();
                return Ok(Served::Dropped);
            }
            let channel = self.ask(connection, spare)?;
            if self.arrived_on().is_some() {
                self.handle_opened();
            }
            up.channel = Some(channel);
            return Ok(Served::Asked(channel));
        };
        if up.is_left {
            // What is queued of it still leaves: that is known of a channel that is closed.
            connection.close(channel)?;
            let mut down = self.down.borrow_mut();
            down.has_left = true;
            down.fate.get_or_insert(connection.exec_fate(channel));
            self.tell();
            return Ok(Served::Idle);
        }
        if !self.down.borrow().is_opened {
            return Ok(Served::Idle);
        }
        connection.consumed(channel, std::mem::take(&mut up.delivered))?;
        if let Some((columns, rows)) = up.size.take() {
            connection.change_window(channel, columns, rows)?;
        }
        for name in std::mem::take(&mut up.signals) {
            connection.signal(channel, &name)?;
        }
        if up.output_is_broken && !std::mem::replace(&mut up.has_said_so, true) {
            connection.end_of_write(channel)?;
        }
        if !up.input.is_empty() {
            let (front, back) = up.input.as_slices();
            let taken = connection.send_pieces(channel, [front, back], up.input.len())?;
            up.input.drain(..taken);
            up.taken += taken;
            self.tell();
        }
        if up.input.is_empty() && up.input_has_ended {
            connection.send_eof(channel)?;
        }
        Ok(Served::Idle)
    }

    /// Asks the server for what is wanted.
    fn ask(
        &self,
        connection: &mut Connection,
        spare: &mut Option<Spare>,
    ) -> Result<LocalChannel, ConnectionError> {
        match &self.what {
            Wanted::Session(request) => match spare.take() {
                None => connection.open_session(request.clone()),
                Some(Spare { channel, is_open }) => {
                    connection.start_session(channel, request.clone())?;
                    if is_open {
                        self.handle_opened();
                    }
                    Ok(channel)
                }
            },
            Wanted::Tcp {
                host,
                port,
                originator: (from, from_port),
            } => connection.open_direct_tcpip_for(host, *port, from, *from_port),
            Wanted::Unix(path) => connection.open_direct_streamlocal(path),
            Wanted::Arrived(channel) => {
                connection.confirm_forwarded(*channel)?;
                Ok(*channel)
            }
            // Its passenger asks.
            Wanted::Proxy(_) => Ok(LocalChannel::REFUSED),
        }
    }

    /// It is being served; returns whether it is on this connection, still.
    pub(crate) fn begin_service(&self, dock: &Rc<Dock>) -> bool {
        let on = self.dock.borrow();
        let is_here = on.as_ref().is_some_and(|on| Rc::ptr_eq(on, dock));
        if is_here {
            self.is_due.set(false);
        }
        is_here
    }

    pub(crate) fn was_opened(&self) -> bool {
        self.down.borrow().is_opened
    }

    pub(crate) fn handle_opened(&self) {
        self.down.borrow_mut().is_opened = true;
        // A guest is told once its command runs.
        if self.guest.is_none() {
            self.tell();
        }
    }

    pub(crate) fn handle_started(&self) {
        self.down.borrow_mut().is_started = true;
        if self.guest.is_some() {
            self.tell();
        }
    }

    pub(crate) fn handle_pty_refused(&self) {
        self.down.borrow_mut().pty_refused = true;
        self.tell();
    }

    /// The server does not run what was asked for: ssh's words, and the end.
    pub(crate) fn handle_start_refused(&self) {
        let what = match &self.what {
            Wanted::Session(SessionRequest {
                command: Command::Subsystem(_),
                ..
            }) => "subsystem",
            Wanted::Session(SessionRequest {
                command: Command::Shell,
                ..
            }) => "shell",
            _ => "exec",
        };
        let mut down = self.down.borrow_mut();
        down.lost = Some("the server refused to run the command".to_owned());
        if self.guest.is_none() {
            let words = format!("{what} request failed: the server refused it\r\n");
            down.error.extend(words.as_bytes());
        }
        // Nothing of it is the server's, and nothing is to be given back to it.
        self.up.borrow_mut().is_left = true;
        self.tell();
    }

    pub(crate) fn handle_data(&self, stream: Stream, octets: &[u8]) {
        let mut down = self.down.borrow_mut();
        match stream {
            Stream::Stdout => down.output.extend(octets),
            Stream::Stderr => down.error.extend(octets),
        }
        self.tell();
    }

    pub(crate) fn handle_exit(&self, status: u32) {
        self.down.borrow_mut().status = Some(status);
        // Where its output has ended that is all.
        if self.guest.is_some() {
            self.tell();
        }
    }

    pub(crate) fn handle_exit_signal(&self, signalled: Signalled) {
        self.down.borrow_mut().signalled = Some(signalled);
        if self.guest.is_some() {
            self.tell();
        }
    }

    pub(crate) fn handle_eof(&self) {
        self.down.borrow_mut().has_ended = true;
        self.tell();
    }

    pub(crate) fn handle_closed(&self) {
        self.dock.replace(None);
        self.down.borrow_mut().is_closed = true;
        self.tell();
    }

    /// What the connection knows of the command, before it forgets it.
    pub(crate) fn note_fate(&self, fate: ExecFate) {
        self.down.borrow_mut().fate.get_or_insert(fate);
    }

    /// There is no connection for it any more.
    pub(crate) fn lose(&self, why: &str) {
        self.dock.replace(None);
        let mut down = self.down.borrow_mut();
        if !down.is_opened {
            down.refusal = Some(why.to_owned());
        }
        down.lost.get_or_insert_with(|| why.to_owned());
        down.is_closed = true;
        self.tell();
    }
}
