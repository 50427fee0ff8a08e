//! One host, in its thread: its socket, its connections, and who waits for a session.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use sshoal_fleet::Failure;
use sshoal_net::{Kept, More, Serve};
use tokio::net::UnixListener;
use tokio::sync::Notify;
use tokio::task::{AbortHandle, spawn_local};
use tokio::time::sleep;

use crate::control::State;
use crate::dock::{Berth, Dock};
use crate::folder::Folder;
use crate::passenger;
use crate::pool::{Entry, MAX_CONNECTIONS, MAX_PASSENGERS, Pool, is_welcome};
use crate::seat::Seat;

/// How long nobody is let in when there is no descriptor left.
const OUT_OF_DESCRIPTORS: Duration = Duration::from_millis(200);

/// A host that is kept.
pub(crate) struct Host {
    pub(crate) pool: Pool,
    pub(crate) entry: Arc<Entry>,
    more: More,
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
    is_ending: Cell<bool>,
    passengers: Cell<usize>,
    /// A passenger has left.
    left: Notify,
    tasks: RefCell<Vec<AbortHandle>>,
}

impl Host {
    pub(crate) fn begin(pool: Pool, entry: Arc<Entry>, more: More) -> io::Result<Rc<Host>> {
        Folder::clear(&entry.member.socket)?;
        let listener = UnixListener::bind(&entry.member.socket)?;
        let host = Rc::new(Host {
            pool,
            entry,
            more,
            docks: RefCell::default(),
            waiting: RefCell::default(),
            limit: Cell::new(None),
            is_connecting: Cell::new(false),
            has_stopped: Cell::new(false),
            is_ending: Cell::new(false),
            passengers: Cell::new(0),
            left: Notify::new(),
            tasks: RefCell::default(),
        });
        let accepting = spawn_local(host.clone().accept(listener));
        let ending = spawn_local(host.clone().wait_for_end());
        let tasks = [accepting.abort_handle(), ending.abort_handle()];
        host.tasks.borrow_mut().extend(tasks);
        Ok(host)
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

    fn note_left(&self) {
        self.passengers.set(self.passengers.get() - 1);
        self.left.notify_one();
        // As a master of ssh's that was told to stop.
        if self.has_stopped.get() && self.passengers.get() == 0 {
            self.end();
        }
    }

    async fn wait_for_end(self: Rc<Self>) {
        let mut ending = self.entry.ending();
        // The entry outlives us, and its sender with it.
        let _ = ending.wait_for(|is_over| *is_over).await;
        self.end();
    }

    /// The connections are to end (`-O exit`, `sshoal down`).
    pub(crate) fn end(&self) {
        self.is_ending.set(true);
        self.stop_listening();
        for dock in self.docks.borrow().iter() {
            dock.wake();
        }
    }

    /// Nobody else is let in; who is in stays (`-O stop`).
    pub(crate) fn stop_listening(&self) {
        if !self.has_stopped.replace(true) {
            if let Some(accepting) = self.tasks.borrow().first() {
                accepting.abort();
            }
            // If it cannot be removed, whoever connects to it is refused.
            let _ = Folder::clear(&self.entry.member.socket);
        }
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.is_ending.get()
    }

    /// Somebody wants a session.
    pub(crate) fn admit(&self, seat: Rc<Seat>) {
        if self.is_ending.get() {
            return seat.lose("the connection to the host has ended");
        }
        self.waiting.borrow_mut().push_back(seat);
        self.assign();
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
            let Some(dock) = docks.iter().find(|dock| dock.taken() < limit) else {
                break;
            };
            if let Some(seat) = waiting.pop_front() {
                dock.take(&seat);
            }
        }
        let is_full = !waiting.is_empty() && !docks.is_empty();
        let may_connect = docks.len() < MAX_CONNECTIONS && !self.is_ending.get();
        if is_full && may_connect && !self.is_connecting.replace(true) {
            self.wish_for_more();
        }
    }

    fn wish_for_more(&self) {
        let first = self.docks.borrow().first().map(|dock| dock.host());
        if let Some(host) = first {
            self.more.connect(host);
        }
    }

    /// A connection has ended; with the first one all do.
    pub(crate) fn lose(&self, lost: &Rc<Dock>) {
        let mut docks = self.docks.borrow_mut();
        docks.retain(|dock| !Rc::ptr_eq(dock, lost));
        self.count_connections(docks.len());
        drop(docks);
        if lost.is_first() {
            self.end();
            for seat in self.waiting.take() {
                seat.lose("the connection to the host has ended");
            }
            for task in self.tasks.borrow().iter() {
                task.abort();
            }
            let is_wanted = *self.entry.ending().borrow();
            match is_wanted {
                true => self.entry.change(State::Down, None),
                // The fleet may try it once more, and says so if it does not.
                false => self.entry.change(State::Connecting, None),
            }
        } else {
            self.assign();
        }
    }

    fn count_connections(&self, number: usize) {
        let connections = &self.entry.counts.connections;
        connections.store(number as u64, Ordering::Relaxed);
    }
}

impl Kept for Host {
    fn serve(self: Rc<Self>) -> Box<dyn Serve> {
        let mut docks = self.docks.borrow_mut();
        let dock = Rc::new(Dock::new(self.clone(), docks.is_empty()));
        docks.push(dock.clone());
        self.count_connections(docks.len());
        drop(docks);
        self.is_connecting.set(false);
        self.assign();
        Box::new(Berth::new(dock))
    }

    /// Those who wait go on waiting where others may leave; where nobody can, they hear why.
    fn not_connected(&self, failure: &Failure) {
        tracing::warn!(kind = %failure.kind, detail = failure.detail, "no further connection");
        self.is_connecting.set(false);
        let are_others = self.docks.borrow().iter().any(|dock| dock.taken() > 0);
        if !are_others {
            for seat in self.waiting.take() {
                seat.lose(&failure.detail);
            }
        }
    }
}
