//! One connection: the sessions on it, and what each of them wants done.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use sshoal_mux::AskedGlobally;
use sshoal_net::Serve;
use sshoal_proto::{Connection, ConnectionError, Event, LocalChannel};
use tokio::time::{Sleep, sleep};

use crate::forward::{Arrival, arrived};
use crate::host::{HAS_ENDED, Host};
use crate::limits::Place;
use crate::proxy::{self, Brought};
use crate::seat::{Seat, Served, Signalled, Spare};

/// How long a further connection is kept without a session.
const FURTHER_IDLE: Duration = Duration::from_secs(10);

/// Who hears the answer to a global request: its data, or that there is none.
type Answered = Box<dyn FnOnce(Option<&[u8]>)>;

/// What passengers see of a connection.
pub(crate) struct Dock {
    host: Rc<Host>,
    is_first: bool,
    /// Who wants something done.
    due: RefCell<VecDeque<Rc<Seat>>>,
    /// What the server is to be asked for the whole connection.
    asked: RefCell<VecDeque<(AskedGlobally, Answered)>>,
    /// How much of that has no answer.
    unanswered: Cell<usize>,
    waker: RefCell<Option<Waker>>,
    /// Sessions that are open, asked for, or about to be.
    taken: Cell<usize>,
    /// Whether a session is kept open that nobody has yet: the server may count it for a while after it was given up.
    has_spare: Cell<bool>,
    /// The server has opened no session, and none has ended since.
    is_full: Cell<bool>,
    /// Nobody serves it any more.
    is_over: Cell<bool>,
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
            asked: RefCell::default(),
            unanswered: Cell::new(0),
            waker: RefCell::default(),
            taken: Cell::new(0),
            has_spare: Cell::new(false),
            is_full: Cell::new(false),
            is_over: Cell::new(false),
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

    /// Whether another session may be tried, where there is room for so many.
    pub(crate) fn has_room(&self, limit: usize) -> bool {
        self.taken.get() < limit && !self.is_full.get()
    }

    /// A session has ended, or was never opened.
    fn leave(&self) {
        self.taken.set(self.taken.get() - 1);
        self.is_full.set(false);
    }

    /// Asks the server for something that concerns the whole connection. Where that ends first there is no answer.
    pub(crate) fn ask(&self, what: AskedGlobally, answered: impl FnOnce(Option<&[u8]>) + 'static) {
        if !self.is_over.get() {
            let asked = (what, Box::new(answered) as Answered);
            self.unanswered.set(self.unanswered.get() + 1);
            self.asked.borrow_mut().push_back(asked);
            self.wake();
        }
    }

    /// How much the server has been asked, or is to be, that has no answer.
    pub(crate) fn unanswered(&self) -> usize {
        self.unanswered.get()
    }

    /// A passenger gets its session here, or whoever is forwarded his channel.
    pub(crate) fn take(self: &Rc<Self>, seat: &Rc<Seat>) {
        let is_alone = self.taken.get() == 0 && !self.has_spare.get();
        if seat.takes_a_place() {
            self.taken.set(self.taken.get() + 1);
        }
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
    /// A session for the next one who wants one.
    spare: Option<Spare>,
    /// Whether there is to be one: guests' commands come again and again, and the server may say no, once and for all.
    wants_spare: Option<bool>,
    /// Whether the next one is opened beside a command that has taken the last one: not where the server allows one session.
    renews_spare: bool,
    /// Whether one was refused while the server may have counted others that were over.
    was_spare_refused: bool,
    /// Sessions that the server has opened and not closed, and the most of them at a time. sshd counts one until it has read all that
    /// came with our part of its end: where it refuses another while there are fewer than once before, it has counted such.
    opened: usize,
    most_opened: usize,
    /// Channels that are over, and who sat there.
    over: Vec<(LocalChannel, Option<Rc<Seat>>)>,
    /// Passengers in proxy mode, and those for whom there is no room just now.
    proxied: Vec<Rc<Seat>>,
    stalled: Vec<Rc<Seat>>,
    /// Channels that the server wants to open, and whether a passenger in proxy mode is asked.
    offered: Vec<(LocalChannel, bool)>,
    /// What the server cannot be asked yet: as much is unanswered as may be.
    unasked: VecDeque<(AskedGlobally, Answered)>,
    /// Who hears the server's next answers.
    answered: VecDeque<Answered>,
    /// Until a further connection that nobody uses is closed.
    idle: Option<Pin<Box<Sleep>>>,
    is_idle: bool,
    round_trip: Option<Duration>,
    /// Why there will be nothing more of the connection, for those who are on it then.
    why: String,
}

impl Berth {
    pub(crate) fn new(dock: Rc<Dock>) -> Self {
        Berth {
            dock,
            seats: HashMap::new(),
            spare: None,
            wants_spare: None,
            renews_spare: true,
            was_spare_refused: false,
            opened: 0,
            most_opened: 0,
            over: Vec::new(),
            proxied: Vec::new(),
            stalled: Vec::new(),
            offered: Vec::new(),
            unasked: VecDeque::new(),
            answered: VecDeque::new(),
            idle: None,
            is_idle: false,
            round_trip: None,
            why: HAS_ENDED.to_owned(),
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
        let seat = self.seats.remove(&channel);
        self.over.push((channel, seat.clone()));
        let seat = seat?;
        if seat.takes_a_place() {
            self.dock.leave();
        }
        Some(seat)
    }

    /// What becomes of the spare session, if it is that; returns whether it is.
    fn handle_spare(&mut self, channel: LocalChannel, event: &Event) -> bool {
        let Some(spare) = self.spare.as_mut().filter(|it| it.channel == channel) else {
            return false;
        };
        match event {
            Event::ChannelOpened(_) => {
                spare.is_open = true;
                self.was_spare_refused = false;
                self.note_opened(1);
            }
            // The server wants none: it allows few sessions, or ends those that nobody uses (ChannelTimeout).
            Event::ChannelRefused { .. } | Event::Closed(_) => {
                self.opened -= usize::from(spare.is_open);
                let was_refused = !spare.is_open;
                self.spare = None;
                if was_refused && self.renews_spare && self.dock.taken() > 0 {
                    // One at a time may do.
                    self.renews_spare = false;
                } else if was_refused && self.may_be_counted() && !self.was_spare_refused {
                    self.was_spare_refused = true;
                } else {
                    self.wants_spare = Some(false);
                }
                self.over.push((channel, None));
            }
            _ => {}
        }
        true
    }

    /// Opens a spare session: in one flight with the command that takes the last one, or else with the end of a session. Beside
    /// it there are so many at most.
    fn keep_spare(
        &mut self,
        connection: &mut Connection,
        others: usize,
    ) -> Result<(), ConnectionError> {
        let has_room = self.dock.taken() <= others;
        let is_alone = has_room && self.spare.is_none() && self.proxied.is_empty();
        if !is_alone || self.wants_spare != Some(true) || self.dock.is_ending.get() {
            return Ok(());
        }
        let channel = connection.open_spare_session()?;
        let is_open = false;
        self.spare = (channel != LocalChannel::REFUSED).then_some(Spare { channel, is_open });
        Ok(())
    }

    /// Gives the spare session up: whoever speaks the protocol himself cannot use it, and the server counts it among those that he
    /// asks for. The server reads of its end first.
    fn close_spare(&mut self, connection: &mut Connection) -> Result<(), ConnectionError> {
        if let Some(spare) = self.spare.take() {
            self.opened -= usize::from(spare.is_open);
            connection.close(spare.channel)?;
        }
        Ok(())
    }

    fn refused(&mut self, channel: LocalChannel, why: &str) {
        let Some(seat) = self.free(channel) else {
            return;
        };
        if !self.send_elsewhere(seat, why)
            && let Some((_, seat)) = self.over.last_mut()
        {
            // Another connection will know what becomes of it.
            *seat = None;
        }
    }

    fn note_opened(&mut self, sessions: usize) {
        self.opened += sessions;
        self.most_opened = self.most_opened.max(self.opened);
    }

    /// Whether the server may count sessions that are over.
    fn may_be_counted(&self) -> bool {
        self.opened < self.most_opened
    }

    /// A session that was the only one will be refused everywhere else as well, and no other connection gets further to
    /// where somebody is forwarded: whether it is over with it. A session that may have been refused for others that are over is
    /// first asked for once more, here.
    fn send_elsewhere(&self, seat: Rc<Seat>, why: &str) -> bool {
        if seat.takes_a_place() && self.may_be_counted() && seat.may_ask_again() {
            seat.leave_dock();
            self.dock.take(&seat);
            return false;
        }
        let is_over = seat.leave_dock() || !seat.takes_a_place();
        match is_over {
            true => seat.lose(why),
            false => {
                // With nobody on it, it has room for one.
                self.dock.is_full.set(self.dock.taken() > 0);
                self.dock.host.admit_elsewhere(seat, self.most_opened);
            }
        }
        is_over
    }

    /// The server wants to open a channel.
    fn handle_arrival(&mut self, channel: LocalChannel, open: &[u8]) {
        let seat = match arrived(&self.dock, channel, open) {
            Arrival::Ours(seat) => seat,
            Arrival::Passenger(seat) => {
                let proxied = seat.proxied();
                let is_asked = proxied.is_some_and(|proxied| proxied.offer(&seat, channel, open));
                self.offered.push((channel, is_asked));
                if !is_asked {
                    return;
                }
                seat
            }
        };
        self.seats.insert(channel, seat);
    }

    /// The server says something to a passenger in proxy mode.
    fn handle_packet(&mut self, channel: LocalChannel, payload: &[u8]) {
        let Some(seat) = self.seats.get(&channel).cloned() else {
            return;
        };
        let Some(proxied) = seat.proxied() else {
            return;
        };
        match proxied.handle_packet(&seat, channel, payload) {
            Brought::Nothing => {}
            Brought::Session => self.note_opened(1),
            Brought::Over => {
                self.seats.remove(&channel);
                self.over.push((channel, None));
            }
            Brought::Elsewhere => {
                self.seats.remove(&channel);
                self.over.push((channel, None));
                self.opened -= usize::from(proxied.forget_session());
                self.put_off(&seat);
                self.dock.leave();
                self.send_elsewhere(seat, "the server opened no session");
            }
        }
    }

    /// Does what a passenger in proxy mode wants done.
    fn serve_proxied(
        &mut self,
        seat: &Rc<Seat>,
        connection: &mut Connection,
    ) -> Result<(), ConnectionError> {
        let Some(proxied) = seat.proxied() else {
            return Ok(());
        };
        self.close_spare(connection)?;
        let served = proxy::serve(seat, proxied, &self.dock, connection)?;
        for channel in served.over {
            self.seats.remove(&channel);
        }
        let opened = served.opened.into_iter();
        self.seats
            .extend(opened.map(|channel| (channel, seat.clone())));
        if served.is_stalled {
            self.stalled.push(seat.clone());
        }
        let is_here = self.proxied.iter().any(|other| Rc::ptr_eq(other, seat));
        match served.left {
            None if is_here => {}
            None => self.proxied.push(seat.clone()),
            Some(had_session) => {
                self.opened -= usize::from(had_session);
                self.put_off(seat);
                self.dock.leave();
                self.dock.host.assign();
            }
        }
        Ok(())
    }

    /// A passenger in proxy mode is here no longer.
    fn put_off(&mut self, seat: &Rc<Seat>) {
        self.proxied.retain(|other| !Rc::ptr_eq(other, seat));
        self.stalled.retain(|other| !Rc::ptr_eq(other, seat));
    }

    /// Says what concerns the whole connection, and who answers for channels that the server wants to open.
    fn advance_connection(&mut self, connection: &mut Connection) -> Result<(), ConnectionError> {
        for (channel, seat) in self.over.drain(..) {
            if let Some(seat) = seat {
                if seat.is_guest() && seat.was_opened() {
                    self.wants_spare.get_or_insert(true);
                }
                seat.note_fate(connection.exec_fate(channel));
            }
            connection.forget(channel);
            connection.release_proxied(channel);
        }
        for (channel, is_asked) in self.offered.drain(..) {
            match is_asked {
                true => connection.proxy_forwarded(channel),
                false => connection.refuse_forwarded(channel, "Connection refused")?,
            }
        }
        self.unasked.append(&mut self.dock.asked.borrow_mut());
        while let Some((what, answered)) = self.unasked.pop_front() {
            connection.admit_forwarded();
            if !connection.send_global_request(what.name, &what.data)? {
                // The next answer makes room.
                self.unasked.push_front((what, answered));
                break;
            }
            self.answered.push_back(answered);
        }
        if connection.takes_packets() {
            for seat in self.stalled.drain(..) {
                self.dock.serve_soon(seat);
            }
        }
        Ok(())
    }
}

impl Serve for Berth {
    fn handle(&mut self, event: Event, input: &[u8]) {
        if let Event::ChannelRefused { channel, .. } = event
            && channel == LocalChannel::REFUSED
        {
            // Whoever asked knows it.
            return;
        }
        if let Event::ChannelOpened(channel)
        | Event::ChannelRefused { channel, .. }
        | Event::Closed(channel) = event
            && self.handle_spare(channel, &event)
        {
            return;
        }
        match event {
            Event::ChannelOpened(channel) => {
                let seat = self.seats.get(&channel);
                self.note_opened(usize::from(seat.is_some_and(|seat| seat.takes_a_place())));
                self.with(channel, Seat::handle_opened);
                self.serve_soon(channel);
            }
            Event::ForwardedChannel { channel, open } => self.handle_arrival(channel, &input[open]),
            Event::Packet { channel, payload } => self.handle_packet(channel, &input[payload]),
            Event::GlobalReply(reply) => {
                if let Some(answered) = self.answered.pop_front() {
                    let unanswered = &self.dock.unanswered;
                    unanswered.set(unanswered.get() - 1);
                    answered(reply.as_deref());
                }
            }
            Event::ChannelRefused {
                channel,
                description,
                ..
            } => {
                let why = format!("the server opened no session: {description}");
                self.refused(channel, &why);
            }
            Event::Started(channel) => self.with(channel, Seat::handle_started),
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
            Event::ExitSignal {
                channel,
                name,
                core_dumped,
                message,
            } => self.with(channel, |seat| {
                seat.handle_exit_signal(Signalled {
                    name,
                    core_dumped,
                    message,
                });
            }),
            Event::Writable(channel) => self.serve_soon(channel),
            Event::Closed(channel) => {
                if let Some(seat) = self.free(channel) {
                    // One that was closed before the server had opened it was never open.
                    self.opened -= usize::from(seat.was_opened() && seat.takes_a_place());
                    seat.handle_closed();
                }
                self.dock.host.assign();
            }
            // Logging in is over.
            _ => {}
        }
    }

    fn advance(&mut self, connection: &mut Connection) -> Result<(), ConnectionError> {
        let has_room = !self.over.is_empty();
        self.advance_connection(connection)?;
        self.note_round_trip(connection);
        if self.dock.is_doubted.take() {
            connection.doubt_server(Instant::now())?;
        }
        let had_spare = self.spare.is_some();
        // Each once: who has more to do comes behind the others.
        let due = self.dock.due.borrow().len();
        for _ in 0..due {
            let Some(seat) = self.dock.due.borrow_mut().pop_front() else {
                break;
            };
            if !seat.begin_service(&self.dock) {
                continue;
            }
            if seat.proxied().is_some() {
                self.serve_proxied(&seat, connection)?;
                continue;
            }
            let places = usize::from(seat.takes_a_place());
            match seat.serve(connection, &mut self.spare)? {
                Served::Asked(LocalChannel::REFUSED) => {
                    self.dock.taken.set(self.dock.taken.get() - places);
                    self.send_elsewhere(seat, "there is no room for another channel");
                }
                Served::Asked(channel) => drop(self.seats.insert(channel, seat)),
                Served::Idle => {}
                Served::Dropped => {
                    if let Some(channel) = seat.arrived_on() {
                        self.seats.remove(&channel);
                    }
                    if seat.takes_a_place() {
                        self.dock.leave();
                        self.dock.host.assign();
                    }
                }
            }
        }
        if had_spare && self.spare.is_none() && self.renews_spare {
            self.keep_spare(connection, 1)?;
        } else if has_room {
            self.keep_spare(connection, 0)?;
        }
        if self.spare.is_none() {
            // What is asked for next may be refused for what the server still counts.
            connection.settle_end()?;
        }
        self.dock.has_spare.set(self.spare.is_some());
        Ok(())
    }

    fn has_work(&self) -> bool {
        let dock = &self.dock;
        !(dock.due.borrow().is_empty()
            && dock.asked.borrow().is_empty()
            && self.over.is_empty()
            && self.offered.is_empty())
            || dock.is_doubted.get()
    }

    fn waits_for_room(&self) -> bool {
        !self.stalled.is_empty()
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

    fn handle_end(&mut self, connection: &Connection) {
        if let Some(error) = connection.error() {
            self.why = format!("{HAS_ENDED}: {error}");
        }
        for (channel, seat) in &self.seats {
            seat.note_fate(connection.exec_fate(*channel));
        }
    }
}

impl Drop for Berth {
    fn drop(&mut self) {
        self.dock.is_over.set(true);
        self.dock.asked.take();
        self.dock.host.lose(&self.dock);
        let due = self.dock.due.take();
        for seat in self.seats.values().chain(due.iter()).chain(&self.proxied) {
            seat.lose(&self.why);
        }
    }
}
