//! One host, in its thread: its socket, its connections, and who waits for a session.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use sshoal_fleet::{Failure, FailureKind};
use sshoal_net::{Kept, LoggedIn, MetServer, More, Serve};
use tokio::net::UnixListener;
use tokio::sync::Notify;
use tokio::task::{AbortHandle, spawn_local};
use tokio::time::sleep;

use crate::back_off::{BackOff, may_pass};
use crate::control::{Shared, State};
use crate::deck::Deck;
use crate::dock::{Berth, Dock};
use crate::entry::Entry;
use crate::folder::Folder;
use crate::forward::Forwards;
use crate::limits::Place;
use crate::passenger;
use crate::pool::{MAX_CONNECTIONS, MAX_PASSENGERS, is_welcome};
use crate::round::{Round, no_socket};
use crate::seat::Seat;

/// What who wanted a session hears when there is no connection any more.
pub(crate) const HAS_ENDED: &str = "the connection to the host has ended";

/// How long nobody is let in when there is no descriptor left.
const OUT_OF_DESCRIPTORS: Duration = Duration::from_millis(200);

/// How far a host is, in its thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Course {
    /// The fleet leaves it alone until somebody needs it, or until it comes back.
    Parked,
    /// It is logged in to, or waits for its turn.
    Coming,
    Up,
    Over,
}

/// A host that is kept.
pub(crate) struct Host {
    round: Round,
    pub(crate) entry: Arc<Entry>,
    pub(crate) forwards: Forwards,
    more: More,
    course: Cell<Course>,
    /// When it came up the last time.
    up_since: Cell<Option<Instant>>,
    back_off: Cell<BackOff>,
    /// When a session last ended.
    last_used: Cell<Instant>,
    /// The first connection's place, from when it is asked for.
    place: RefCell<Option<Place>>,
    /// A further one's, until it is there.
    further_place: RefCell<Option<Place>>,
    /// Its connections, the first one first.
    docks: RefCell<Vec<Rc<Dock>>>,
    /// Who wants a session and fits nowhere yet, first come, first served.
    waiting: RefCell<VecDeque<Rc<Seat>>>,
    /// Most sessions of a connection, as the server has shown (MaxSessions); unknown before it has.
    limit: Cell<Option<usize>>,
    /// Whether a further connection is being made.
    is_connecting: Cell<bool>,
    /// Whether nobody is let in any more.
    has_stopped: Cell<bool>,
    passengers: Cell<usize>,
    /// A passenger has left.
    left: Notify,
    /// Who lets passengers in, once somebody does.
    accepting: RefCell<Option<AbortHandle>>,
    /// The socket's.
    inode: Cell<Option<u64>>,
    tasks: RefCell<Vec<AbortHandle>>,
    /// Until it comes back.
    absence: RefCell<Option<AbortHandle>>,
    /// What its first connection came to.
    met: RefCell<Option<Met>>,
}

/// A server that was logged in to.
struct Met {
    /// Its identification string.
    server: String,
    address: Option<SocketAddr>,
    algorithm: &'static str,
    host_key: Vec<u8>,
    /// How long connecting took.
    connecting: Duration,
}

impl Host {
    /// Its turn has come. A lazy one lets passengers in from now on.
    pub(crate) fn attend(round: Round, entry: Arc<Entry>, more: More) -> io::Result<Rc<Host>> {
        let host = Rc::new(Host {
            round,
            entry,
            forwards: Forwards::default(),
            more,
            course: Cell::new(Course::Coming),
            up_since: Cell::default(),
            back_off: Cell::default(),
            last_used: Cell::new(Instant::now()),
            place: RefCell::default(),
            further_place: RefCell::default(),
            docks: RefCell::default(),
            waiting: RefCell::default(),
            limit: Cell::new(None),
            is_connecting: Cell::new(false),
            has_stopped: Cell::new(false),
            passengers: Cell::new(0),
            left: Notify::new(),
            accepting: RefCell::default(),
            inode: Cell::default(),
            tasks: RefCell::default(),
            absence: RefCell::default(),
            met: RefCell::default(),
        });
        let place = Deck::of_thread(host.round.pool()).add(&host);
        host.entry.is_at(place);
        if host.entry.terms.is_lazy {
            host.listen()?;
        }
        let heeding = spawn_local(host.clone().heed());
        host.tasks.borrow_mut().push(heeding.abort_handle());
        if let Some(idle) = host.entry.terms.idle {
            let idling = spawn_local(host.clone().idle(idle));
            host.tasks.borrow_mut().push(idling.abort_handle());
        }
        Ok(host)
    }

    fn listen(self: &Rc<Self>) -> io::Result<()> {
        if self.accepting.borrow().is_none() {
            Folder::clear(&self.entry.member.socket)?;
            let listener = UnixListener::bind(&self.entry.member.socket)?;
            self.inode.set(inode(&self.entry.member.socket));
            let accepting = spawn_local(self.clone().accept(listener));
            self.accepting.replace(Some(accepting.abort_handle()));
        }
        Ok(())
    }

    /// Lets passengers in.
    async fn accept(self: Rc<Self>, listener: UnixListener) {
        loop {
            while self.passengers.get() >= MAX_PASSENGERS {
                self.left.notified().await;
            }
            match listener.accept().await {
                Ok((socket, _)) if is_welcome(&socket) => {
                    self.passengers.set(self.passengers.get() + 1);
                    let host = self.clone();
                    spawn_local(async move {
                        passenger::serve(&host, socket).await;
                        host.note_left();
                    });
                }
                Ok(_) => {}
                // Out of descriptors, as a rule: somebody has to leave first.
                Err(error) => {
                    tracing::warn!(%error, "no passenger can be let in");
                    sleep(OUT_OF_DESCRIPTORS).await;
                }
            }
        }
    }

    /// Whether somebody else is let in.
    pub(crate) fn lets_in(&self) -> bool {
        !self.has_stopped.get() && self.passengers.get() < MAX_PASSENGERS
    }

    /// What a sharer has to know of the connection; `None` while there is none.
    pub(crate) fn shared(&self) -> Option<Shared> {
        let is_up = self.course.get() == Course::Up && !self.entry.is_finished();
        let met = self.met.borrow();
        let Met {
            server,
            address,
            algorithm,
            host_key,
            connecting,
        } = met.as_ref().filter(|_| is_up)?;
        Some(Shared {
            server: server.clone(),
            address: *address,
            // Neither was shorter than a round trip.
            round_trip: self
                .entry
                .round_trip()
                .unwrap_or(*connecting)
                .min(*connecting),
            host_key: ((*algorithm).to_owned(), host_key.clone()),
        })
    }

    /// Somebody is in who did not come by the host's socket.
    pub(crate) fn note_come(&self) {
        self.passengers.set(self.passengers.get() + 1);
    }

    pub(crate) fn note_left(self: &Rc<Self>) {
        self.passengers.set(self.passengers.get() - 1);
        self.left.notify_one();
        self.end_if_left();
    }

    /// Ends as a master of ssh's that was told to stop, when nobody is left.
    pub(crate) fn end_if_left(&self) {
        let is_used = self.passengers.get() > 0 || self.forwards.are_in_use();
        if self.has_stopped.get() && !is_used {
            self.end();
        }
    }

    /// Heeds what concerns all hosts, or comes from other threads.
    async fn heed(self: Rc<Self>) {
        let mut alarms = self.round.pool().alarms();
        loop {
            tokio::select! {
                () = self.entry.told_to_end() => return self.end(),
                Ok(()) = alarms.changed() => self.doubt(),
            }
        }
    }

    /// Hangs up after so long without a session.
    async fn idle(self: Rc<Self>, idle: Duration) {
        loop {
            let is_used = self.entry.counts.are_in_use();
            if is_used || self.course.get() != Course::Up {
                self.note_use();
            }
            let left = idle.saturating_sub(self.last_used.get().elapsed());
            if !left.is_zero() {
                sleep(left).await;
                continue;
            }
            match self.entry.terms.is_lazy {
                true => self.hang_up(),
                false => return self.end(),
            }
            self.note_use();
        }
    }

    /// A session has begun or ended.
    pub(crate) fn note_use(&self) {
        self.last_used.set(Instant::now());
    }

    /// The connection may be dead, or a host that was lost may be back.
    fn doubt(&self) {
        match self.course.get() {
            Course::Up => {
                for dock in self.docks.borrow().iter() {
                    dock.doubt();
                }
            }
            Course::Parked if self.absence.borrow().is_some() => {
                let mut back_off = self.back_off.get();
                back_off.forget();
                self.back_off.set(back_off);
                self.come();
            }
            Course::Parked | Course::Coming | Course::Over => {}
        }
    }

    /// The host is logged in to as soon as its turn comes.
    fn come(&self) {
        if let Some(absence) = self.absence.take() {
            absence.abort();
        }
        if self.course.get() == Course::Parked {
            self.course.set(Course::Coming);
            self.entry.change(State::Connecting, None);
            self.more.resume();
        }
    }

    /// The connections are to end, and not to come back (`-O exit`, `sshoal down`).
    pub(crate) fn end(&self) {
        self.entry.finish();
        self.stop_listening();
        self.forwards.end();
        self.hang_up();
        if self.course.get() == Course::Parked {
            self.more.dismiss();
            self.retire();
        }
    }

    /// The connections end.
    fn hang_up(&self) {
        for dock in self.docks.borrow().iter() {
            dock.end();
        }
    }

    /// Nobody keeps the host any more.
    fn retire(&self) {
        self.course.set(Course::Over);
        self.stop_listening();
        self.forwards.end();
        let absence = self.absence.take();
        for task in self.tasks.take().into_iter().chain(absence) {
            task.abort();
        }
    }

    /// Nobody else is let in; who is in stays (`-O stop`).
    pub(crate) fn stop_listening(&self) {
        self.has_stopped.set(true);
        if let Some(accepting) = self.accepting.take() {
            accepting.abort();
            // It may have got another one meanwhile, by an `up` that names it anew.
            if inode(&self.entry.member.socket) == self.inode.get() {
                // If it cannot be removed, whoever connects to it is refused.
                let _ = Folder::clear(&self.entry.member.socket);
            }
        }
    }

    /// Somebody wants a session.
    pub(crate) fn admit(&self, seat: Rc<Seat>) {
        if self.entry.is_finished() {
            return seat.lose(HAS_ENDED);
        }
        self.waiting.borrow_mut().push_back(seat);
        match self.course.get() {
            Course::Parked => self.come(),
            _ => self.assign(),
        }
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.entry.is_finished()
    }

    /// Somebody is forwarded: by the first connection, for no session is taken. A host that is not logged in to is then.
    pub(crate) fn admit_stream(&self, seat: &Rc<Seat>) {
        match self.first_dock() {
            Some(dock) => dock.take(seat),
            None => self.admit(seat.clone()),
        }
    }

    /// The connection that lives as long as the host.
    pub(crate) fn first_dock(&self) -> Option<Rc<Dock>> {
        let docks = self.docks.borrow();
        let first = docks.iter().find(|dock| dock.is_first());
        first.filter(|_| !self.is_ending()).cloned()
    }

    /// The server opened no session, but others of the same connection were open, `opened` of them: it will elsewhere, or later.
    pub(crate) fn admit_elsewhere(&self, seat: Rc<Seat>, opened: usize) {
        let known = self.limit.get().unwrap_or(1);
        self.limit.set(Some(opened.max(known)));
        self.waiting.borrow_mut().push_front(seat);
        self.assign();
    }

    /// Gives those who wait to connections with room, and has another one made if there is none.
    pub(crate) fn assign(&self) {
        let limit = self.limit.get().unwrap_or(usize::MAX);
        let mut waiting = self.waiting.borrow_mut();
        waiting.retain(|seat| !seat.is_left());
        let docks = self.docks.borrow();
        while !waiting.is_empty() {
            let Some(dock) = docks.iter().find(|dock| dock.has_room(limit)) else {
                break;
            };
            if let Some(seat) = waiting.pop_front() {
                dock.take(&seat);
            }
        }
        let is_full = !waiting.is_empty() && !docks.is_empty();
        let may_connect = docks.len() < MAX_CONNECTIONS && !self.entry.is_finished();
        if is_full && may_connect && !self.is_connecting.get() {
            let host = docks.first().map(|dock| dock.host());
            drop((docks, waiting));
            self.wish_for_more(host);
        }
    }

    fn wish_for_more(&self, host: Option<Rc<Host>>) {
        let Some(host) = host else { return };
        match self.round.pool().room().take() {
            Ok(place) => {
                self.is_connecting.set(true);
                self.further_place.replace(Some(place));
                self.more.connect(host);
            }
            Err(failure) => self.not_connected(&failure),
        }
    }

    /// A connection has ended; with the first one all do.
    pub(crate) fn lose(&self, lost: &Rc<Dock>) {
        let mut docks = self.docks.borrow_mut();
        docks.retain(|dock| !Rc::ptr_eq(dock, lost));
        self.count_connections(docks.len());
        drop(docks);
        match lost.is_first() {
            true => {
                self.forwards.forget_servers();
                self.hang_up();
            }
            false => self.assign(),
        }
    }

    /// Those who wait for a session hear why there is none.
    fn send_away(&self, why: &str) {
        for seat in self.waiting.take() {
            seat.lose(why);
        }
    }

    /// The host was lost: it comes back after a while, or when somebody needs it.
    fn await_return(self: &Rc<Self>, stood: Option<Duration>) {
        let mut back_off = self.back_off.get();
        let delay = back_off.next(stood);
        self.back_off.set(back_off);
        let host = self.clone();
        let absence = spawn_local(async move {
            sleep(delay).await;
            // This is what would be aborted.
            host.absence.take();
            host.come();
        });
        self.absence.replace(Some(absence.abort_handle()));
    }

    fn count_connections(&self, number: usize) {
        let connections = &self.entry.counts.connections;
        connections.store(number as u64, Ordering::Relaxed);
    }
}

impl Kept for Host {
    fn is_wanted(&self) -> Result<bool, Failure> {
        if self.entry.is_finished() {
            return Err(Failure::new(FailureKind::Lost, HAS_ENDED));
        }
        let is_waiting = |seat: &Rc<Seat>| !seat.is_left();
        let nobody_waits = !self.waiting.borrow().iter().any(is_waiting);
        if self.entry.terms.is_lazy && nobody_waits {
            self.course.set(Course::Parked);
            self.entry.change(State::Lazy, None);
            self.round.settle(&self.entry);
            return Ok(false);
        }
        // It may have one from when the user was asked.
        self.place.take();
        let place = self.round.pool().room().take()?;
        self.place.replace(Some(place));
        Ok(true)
    }

    fn may_ask(&self) -> bool {
        !self.round.is_settled()
    }

    fn begin(self: Rc<Self>, met: &LoggedIn<'_>) -> Result<(), Failure> {
        self.listen()
            .map_err(|error| no_socket(&self.entry, &error))?;
        self.course.set(Course::Up);
        self.met.replace(Met::of(met));
        self.up_since.set(Some(Instant::now()));
        self.note_use();
        self.entry.note_login(met.connecting);
        self.round.settle(&self.entry);
        Ok(())
    }

    fn serve(self: Rc<Self>, is_first: bool) -> Box<dyn Serve> {
        let further_place = match is_first {
            true => None,
            false => {
                self.is_connecting.set(false);
                self.further_place.take()
            }
        };
        let dock = Rc::new(Dock::new(self.clone(), is_first, further_place));
        if self.course.get() != Course::Up || self.entry.is_finished() {
            // The first one, or the host, has ended meanwhile.
            dock.end();
        }
        let mut docks = self.docks.borrow_mut();
        docks.push(dock.clone());
        self.count_connections(docks.len());
        drop(docks);
        self.assign();
        Box::new(Berth::new(dock))
    }

    fn met(&self) -> Option<MetServer> {
        let met = self.met.borrow();
        met.as_ref().map(|met| MetServer {
            address: met.address,
            algorithm: met.algorithm,
            host_key: met.host_key.clone(),
        })
    }

    /// Those who wait go on waiting where others may leave; where nobody can, they hear why.
    fn not_connected(&self, failure: &Failure) {
        tracing::warn!(kind = %failure.kind, detail = failure.detail, "no further connection");
        self.is_connecting.set(false);
        self.further_place.take();
        let are_others = self.docks.borrow().iter().any(|dock| dock.taken() > 0);
        if !are_others {
            self.send_away(&failure.detail);
        }
    }

    fn parks(self: Rc<Self>, failure: Option<&Failure>) -> bool {
        self.more.hang_up();
        drop((self.place.take(), self.further_place.take()));
        self.is_connecting.set(false);
        let detail = failure.map(|failure| failure.detail.clone());
        self.send_away(detail.as_deref().unwrap_or(HAS_ENDED));
        let stood = self.up_since.take().map(|since| since.elapsed());
        let was_up = self.entry.counts.logins.load(Ordering::Relaxed) > 0;
        let terms = self.entry.terms;
        let comes_back = failure.is_some_and(|failure| may_pass(failure.kind));
        let is_over = self.entry.is_finished() || self.has_stopped.get();
        let state = match () {
            () if is_over => None,
            () if terms.is_lazy => Some(State::Lazy),
            () if was_up && terms.reconnects && comes_back => Some(State::Lost),
            () => None,
        };
        let Some(state) = state else {
            self.retire();
            if was_up && failure.is_some() && !is_over {
                // The fleet may try it once more, and says so if it does not.
                self.entry.change(State::Connecting, None);
            }
            return false;
        };
        self.course.set(Course::Parked);
        self.entry.change(state, detail);
        if state == State::Lost {
            self.await_return(stood);
        }
        true
    }
}

impl Met {
    fn of(met: &LoggedIn<'_>) -> Option<Met> {
        let (host_key, _) = met.connection.host_key_proof()?;
        let algorithm = met.connection.host_key_algorithm()?;
        Some(Met {
            server: met.connection.server()?.as_str().to_owned(),
            address: met.address,
            algorithm,
            host_key: host_key.to_vec(),
            connecting: met.connecting,
        })
    }
}

fn inode(path: &Path) -> Option<u64> {
    fs::symlink_metadata(path).map(|found| found.ino()).ok()
}
