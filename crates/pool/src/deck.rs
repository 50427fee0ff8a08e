//! The hosts of one thread, and the guests that it serves.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::os::unix::net::UnixStream;
use std::rc::{Rc, Weak};

use tokio::sync::mpsc;
use tokio::task::spawn_local;

use crate::entry::Seating;
use crate::guest;
use crate::host::Host;
use crate::pool::Pool;

/// Most guests of a thread at a time; whoever comes then is sent away.
const MAX_GUESTS: usize = 256;

thread_local! {
    /// A process has one pool, and a thread of it one deck.
    static DECK: RefCell<Option<Rc<Deck>>> = const { RefCell::new(None) };
}

/// What guests of a thread can reach.
pub(crate) struct Deck {
    number: u32,
    hosts: RefCell<HashMap<u32, Weak<Host>>>,
    /// The next host's number.
    next: Cell<u32>,
    guests: Cell<usize>,
}

impl Deck {
    /// That of this thread, which takes guests from now on.
    pub(crate) fn of_thread(pool: &Pool) -> Rc<Deck> {
        DECK.with_borrow_mut(|deck| {
            let begun = deck.get_or_insert_with(|| Deck::begin(pool));
            begun.clone()
        })
    }

    fn begin(pool: &Pool) -> Rc<Deck> {
        let (sender, mut guests) = mpsc::unbounded_channel();
        let deck = Rc::new(Deck {
            number: pool.add_deck(sender),
            hosts: RefCell::default(),
            next: Cell::new(0),
            guests: Cell::new(0),
        });
        let taking = deck.clone();
        spawn_local(async move {
            while let Some(guest) = guests.recv().await {
                taking.clone().serve(guest);
            }
        });
        deck
    }

    /// A guest has come.
    fn serve(self: Rc<Self>, guest: UnixStream) {
        if self.guests.get() >= MAX_GUESTS {
            tracing::warn!("a run was sent away: {MAX_GUESTS} are served already");
            return;
        }
        self.guests.set(self.guests.get() + 1);
        spawn_local(async move {
            guest::serve(&self, guest).await;
            self.guests.set(self.guests.get() - 1);
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
