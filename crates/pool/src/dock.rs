//! One connection: the sessions on it, and what each of them wants done.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use sshoal_net::Serve;
use sshoal_proto::{Connection, ConnectionError, Event, LocalChannel};
use tokio::time::{Sleep, sleep};

use crate::host::{HAS_ENDED, Host};
use crate::limits::Place;
use crate::seat::{Seat, Served};

/// How long a further connection is kept without a session.
const FURTHER_IDLE: Duration = Duration::from_secs(10);

/// What passengers see of a connection.
pub(crate) struct Dock {
    host: Rc<Host>,
    is_first: bool,
    /// Who wants something done.
    due: RefCell<VecDeque<Rc<Seat>>>,
    waker: RefCell<Option<Waker>>,
    /// Sessions that are open, asked for, or about to be.
    taken: Cell<usize>,
    is_ending: Cell<bool>,
    /// Whether the server is to be asked for a sign of life.
    is_doubted: Cell<bool>,
    /// Among all the pool's connections, if the host does not hold it.
    _place: Option<Place>,
}

impl Dock {
    /// The server is asked for a sign of life at once: so its round trip is known.
    pub(crate) fn new(host: Rc<Host>, is_first: bool, place: Option<Place>) -> Self {
        Dock {
            host,
            is_first,
            due: RefCell::default(),
            waker: RefCell::default(),
            taken: Cell::new(0),
            is_ending: Cell::new(false),
            is_doubted: Cell::new(is_first),
            _place: place,
        }
    }

    /// The connection is to end.
    pub(crate) fn end(&self) {
        self.is_ending.set(true);
        self.wake();
    }

    /// The server may be gone.
    pub(crate) fn doubt(&self) {
        self.is_doubted.set(true);
        self.wake();
    }

    pub(crate) fn host(&self) -> Rc<Host> {
        self.host.clone()
    }

    pub(crate) fn is_first(&self) -> bool {
        self.is_first
    }

    pub(crate) fn taken(&self) -> usize {
        self.taken.get()
    }

    /// A passenger gets its session here.
    pub(crate) fn take(self: &Rc<Self>, seat: &Rc<Seat>) {
        let is_alone = self.taken.get() == 0;
        self.taken.set(self.taken.get() + 1);
        seat.board(self.clone(), is_alone);
        self.serve_soon(seat.clone());
    }

    /// The seat wants something done.
    pub(crate) fn serve_soon(&self, seat: Rc<Seat>) {
        if seat.becomes_due() {
            self.due.borrow_mut().push_back(seat);
            self.wake();
        }
    }

    pub(crate) fn wake(&self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// Serves a connection.
pub(crate) struct Berth {
    dock: Rc<Dock>,
    seats: HashMap<LocalChannel, Rc<Seat>>,
    /// Sessions that the server has opened.
    opened: usize,
    /// Channels that are over.
    over: Vec<LocalChannel>,
    /// Until a further connection that nobody uses is closed.
    idle: Option<Pin<Box<Sleep>>>,
    is_idle: bool,
    round_trip: Option<Duration>,
}

impl Berth {
    pub(crate) fn new(dock: Rc<Dock>) -> Self {
        Berth {
            dock,
            seats: HashMap::new(),
            opened: 0,
            over: Vec::new(),
            idle: None,
            is_idle: false,
            round_trip: None,
        }
    }

    /// Passes on how long the server last took to answer. The first answer is none to measure by: sshd gives it when it has
    /// seen to all that follows a login.
    fn note_round_trip(&mut self, connection: &Connection) {
        let round_trip = connection.round_trip().filter(|_| self.dock.is_first);
        if round_trip == self.round_trip {
            return;
        }
        match (self.round_trip, round_trip) {
            (None, _) => self.dock.is_doubted.set(true),
            (Some(_), Some(time)) => self.dock.host.entry.note_round_trip(time),
            (Some(_), None) => {}
        }
        self.round_trip = round_trip;
    }

    /// What happens to an open channel.
    fn with(&self, channel: LocalChannel, act: impl FnOnce(&Seat)) {
        if let Some(seat) = self.seats.get(&channel) {
            act(seat);
        }
    }

    /// The same, after which the seat has something to do.
    fn serve_soon(&self, channel: LocalChannel) {
        if let Some(seat) = self.seats.get(&channel) {
            self.dock.serve_soon(seat.clone());
        }
    }

    /// A channel is over, and its place free.
    fn free(&mut self, channel: LocalChannel) -> Option<Rc<Seat>> {
        self.over.push(channel);
        let seat = self.seats.remove(&channel)?;
        self.dock.taken.set(self.dock.taken.get() - 1);
        Some(seat)
    }

    fn refused(&mut self, channel: LocalChannel, why: &str) {
        if let Some(seat) = self.free(channel) {
            self.send_elsewhere(seat, why);
        }
    }

    /// A session that was the only one will be refused everywhere else as well.
    fn send_elsewhere(&self, seat: Rc<Seat>, why: &str) {
        match seat.leave_dock() {
            true => seat.lose(why),
            false => self.dock.host.admit_elsewhere(seat, self.opened),
        }
    }
}

impl Serve for Berth {
    fn handle(&mut self, event: Event, input: &[u8]) {
        match event {
            Event::ChannelOpened(channel) => {
                self.opened += 1;
                self.with(channel, Seat::handle_opened);
                self.serve_soon(channel);
            }
            Event::ChannelRefused {
                channel,
                description,
                ..
            } => {
                let why = format!("the server opened no session: {description}");
                self.refused(channel, &why);
            }
            Event::PtyRefused(channel) => self.with(channel, Seat::handle_pty_refused),
            Event::StartRefused(channel) => {
                self.with(channel, Seat::handle_start_refused);
                self.serve_soon(channel);
            }
            Event::Data {
                channel,
                stream,
                range,
            } => self.with(channel, |seat| seat.handle_data(stream, &input[range])),
            Event::Eof(channel) => self.with(channel, Seat::handle_eof),
            Event::ExitStatus { channel, status } => {
                self.with(channel, |seat| seat.handle_exit(status));
            }
            Event::Writable(channel) => self.serve_soon(channel),
            Event::Closed(channel) => {
                if let Some(seat) = self.free(channel) {
                    // One that was closed before the server had opened it was never open.
                    self.opened -= usize::from(seat.was_opened());
                    seat.handle_closed();
                }
                self.dock.host.assign();
            }
            // Logging in is over; of a signal that ended a command ssh's master tells nothing either.
            _ => {}
        }
    }

    fn advance(&mut self, connection: &mut Connection) -> Result<(), ConnectionError> {
        for channel in self.over.drain(..) {
            connection.forget(channel);
        }
        self.note_round_trip(connection);
        if self.dock.is_doubted.take() {
            connection.doubt_server(Instant::now())?;
        }
        // Each once: who has more to do comes behind the others.
        let due = self.dock.due.borrow().len();
        for _ in 0..due {
            let Some(seat) = self.dock.due.borrow_mut().pop_front() else {
                break;
            };
            match seat.serve(connection)? {
                Served::Asked(LocalChannel::REFUSED) => {
                    self.dock.taken.set(self.dock.taken.get() - 1);
                    self.send_elsewhere(seat, "there is no room for another channel");
                }
                Served::Asked(channel) => drop(self.seats.insert(channel, seat)),
                Served::Idle => {}
                Served::Dropped => {
                    self.dock.taken.set(self.dock.taken.get() - 1);
                    self.dock.host.assign();
                }
            }
        }
        Ok(())
    }

    fn has_work(&self) -> bool {
        !self.dock.due.borrow().is_empty() || !self.over.is_empty() || self.dock.is_doubted.get()
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.has_work() || self.is_over() {
            return Poll::Ready(());
        }
        self.dock.waker.replace(Some(context.waker().clone()));
        if self.dock.is_first || self.dock.taken() > 0 {
            self.idle = None;
            return Poll::Pending;
        }
        let idle = || Box::pin(sleep(FURTHER_IDLE));
        let left = self.idle.get_or_insert_with(idle).as_mut().poll(context);
        self.is_idle = left.is_ready();
        left
    }

    fn is_over(&self) -> bool {
        self.dock.is_ending.get() || (self.is_idle && self.dock.taken() == 0)
    }
}

impl Drop for Berth {
    fn drop(&mut self) {
        self.dock.host.lose(&self.dock);
        let due = self.dock.due.take();
        for seat in self.seats.values().chain(due.iter()) {
            seat.lose(HAS_ENDED);
        }
    }
}
