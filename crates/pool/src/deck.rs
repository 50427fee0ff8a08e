//! The hosts of one thread, and who is served there: guests, and sharers of a host's connection.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::os::unix::net::UnixStream;
use std::rc::{Rc, Weak};

use tokio::sync::mpsc;
use tokio::task::spawn_local;

use crate::control::write_line;
use crate::entry::Seating;
use crate::guest;
use crate::host::Host;
use crate::passenger;
use crate::pool::Pool;

/// Most guests of a thread at a time; whoever comes then is sent away.
const MAX_GUESTS: usize = 256;

thread_local! {
    /// A process has one pool, and a thread of it one deck.
    static DECK: RefCell<Option<Rc<Deck>>> = const { RefCell::new(None) };
}

/// Who comes to a thread.
pub(crate) enum Boarder {
    Guest(UnixStream),
    /// Shares the connection of the host of this number, if it is what he takes it for.
    Sharer {
        socket: UnixStream,
        host: u32,
        identity: String,
    },
}

/// What they can reach.
pub(crate) struct Deck {
    number: u32,
    hosts: RefCell<HashMap<u32, Weak<Host>>>,
    /// The next host's number.
    next: Cell<u32>,
    guests: Cell<usize>,
}

impl Deck {
    /// That of this thread, which takes guests and sharers from now on.
    pub(crate) fn of_thread(pool: &Pool) -> Rc<Deck> {
        DECK.with_borrow_mut(|deck| {
            let begun = deck.get_or_insert_with(|| Deck::begin(pool));
            begun.clone()
        })
    }

    fn begin(pool: &Pool) -> Rc<Deck> {
        let (sender, mut boarders) = mpsc::unbounded_channel();
        let deck = Rc::new(Deck {
            number: pool.add_deck(sender),
            hosts: RefCell::default(),
            next: Cell::new(0),
            guests: Cell::new(0),
        });
        let taking = deck.clone();
        spawn_local(async move {
            while let Some(boarder) = boarders.recv().await {
                match boarder {
                    Boarder::Guest(guest) => taking.clone().serve(guest),
                    Boarder::Sharer {
                        socket,
                        host,
                        identity,
                    } => taking.share(socket, host, &identity),
                }
            }
        });
        deck
    }

    /// A guest has come. He hears whether he is served.
    fn serve(self: Rc<Self>, mut guest: UnixStream) {
        let has_room = self.guests.get() < MAX_GUESTS;
        // It is new, and has room for a line.
        let told = write_line(&mut guest, &has_room);
        if !has_room {
            tracing::warn!("a run was sent away: {MAX_GUESTS} are served already");
        }
        if !has_room || told.is_err() {
            return;
        }
        self.guests.set(self.guests.get() + 1);
        spawn_local(async move {
            guest::serve(&self, guest).await;
            self.guests.set(self.guests.get() - 1);
        });
    }

    /// A sharer has come. He hears what the connection is, or that the host is not kept here.
    fn share(&self, mut socket: UnixStream, host: u32, identity: &str) {
        let host = self.host(host);
        let is_meant = |host: &Rc<Host>| host.entry.member.identity.to_string() == identity;
        let host = host.filter(|host| is_meant(host) && host.lets_in());
        let shared = host.as_ref().and_then(|host| host.shared());
        // It is new, and has room for a line.
        let told = write_line(&mut socket, &shared).and_then(|()| socket.set_nonblocking(true));
        let (Some(host), Some(_)) = (host, shared) else {
            return;
        };
        let socket = told.and_then(|()| tokio::net::UnixStream::from_std(socket));
        let Ok(socket) = socket else {
            return;
        };
        host.note_come();
        spawn_local(async move {
            passenger::serve_sharer(&host, socket).await;
            host.note_left();
        });
    }

    /// A host is kept here.
    pub(crate) fn add(&self, host: &Rc<Host>) -> Seating {
        let number = self.next.get();
        self.next.set(number.wrapping_add(1));
        let mut hosts = self.hosts.borrow_mut();
        if number.is_power_of_two() {
            // Rarely, so that ten thousand hosts are not looked at ten thousand times.
            hosts.retain(|_, host| host.strong_count() > 0);
        }
        hosts.insert(number, Rc::downgrade(host));
        Seating {
            deck: self.number,
            host: number,
        }
    }

    /// The host of that number, if it is still kept.
    pub(crate) fn host(&self, number: u32) -> Option<Rc<Host>> {
        self.hosts.borrow().get(&number)?.upgrade()
    }
}
