//! What all hosts of a user's pool share, and the thread that answers questions.

use std::collections::{HashMap, HashSet};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;
use tokio::sync::{mpsc, watch};

use crate::alarm;
use crate::control::{Alarm, Ask, SHARING_VERSION, Shared, State, Status, heard, write_line};
use crate::conversation::{Conversation, Tell};
use crate::deck::Boarder;
use crate::entry::{Entry, Member, Seating, Terms};
use crate::folder::{Folder, Lock};
use crate::limits::{Limits, Room, resident};
use crate::metrics::{MetricsError, MetricsFile, prometheus};
use crate::metrics_socket::{self, Bound, MAX_READERS, MetricsSocket};

/// Most connections to one host.
pub const MAX_CONNECTIONS: usize = 128;
/// Most passengers of one host; others wait to be accepted.
pub const MAX_PASSENGERS: usize = 2048;
/// Most who ask at a time; others wait.
const MAX_ASKERS: usize = 256;
/// How long a pool that nobody has asked for anything yet waits for that.
const FIRST_PATIENCE: Duration = Duration::from_secs(10);

/// The connections of a user that are kept. Copies are of the same pool.
#[derive(Clone)]
pub struct Pool(Arc<Common>);

struct Common {
    folder: Folder,
    _lock: Lock,
    entries: Mutex<Vec<Arc<Entry>>>,
    room: Arc<Room>,
    /// How often all connections were doubted, and why the last time.
    alarms: watch::Sender<(u64, Option<Alarm>)>,
    metrics: MetricsFile,
    metrics_socket: MetricsSocket,
    /// Who reads the metrics there at the moment.
    readers: AtomicUsize,
    holds: Mutex<Holds>,
    /// Written to when there is one less.
    freed: OwnedFd,
    /// Where the threads that have hosts take their guests and sharers.
    decks: Mutex<Vec<mpsc::UnboundedSender<Boarder>>>,
}

/// What keeps the pool from ending.
#[derive(Default)]
struct Holds {
    runs: usize,
    askers: usize,
    /// Whether there was ever a run.
    has_begun: bool,
}

/// Keeps the pool from ending.
pub struct Hold {
    pool: Pool,
    is_run: bool,
}

/// What is asked of whoever logs in to hosts, in a thread of its own.
pub trait Performer: Send + Sync + 'static {
    /// Keeps more hosts, as the request says, and tells the visitor how it went ([`Visitor::end`]). What
    /// goes on after that takes a [`Hold`] of its own.
    fn up(&self, pool: &Pool, request: String, visitor: &Visitor);
}

/// Who began an `up`.
pub struct Visitor {
    /// How it is told, and asked.
    pub conversation: Conversation,
    /// Called if it leaves before the end.
    leaving: Arc<Leaving>,
}

#[derive(Default)]
struct Leaving {
    has_left: AtomicBool,
    act: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Visitor {
    /// What is to be done if the caller leaves before it is told the end.
    pub fn if_it_leaves(&self, act: impl FnOnce() + Send + 'static) {
        *locked(&self.leaving.act) = Some(Box::new(act));
        if self.leaving.has_left.load(Ordering::SeqCst) {
            self.leaving.leave();
        }
    }

    /// Tells it the end; if it leaves after that, nothing is done.
    pub fn end(&self, with: &Tell) {
        locked(&self.leaving.act).take();
        self.conversation.end(with);
    }
}

impl Leaving {
    fn leave(&self) {
        self.has_left.store(true, Ordering::SeqCst);
        let act = locked(&self.act).take();
        if let Some(act) = act {
            act();
        }
    }
}

impl Pool {
    /// A pool without hosts; it watches for what makes its connections doubtful.
    ///
    /// # Errors
    ///
    /// The operating system gives no thread or descriptor for it.
    pub fn new(folder: Folder, lock: Lock) -> io::Result<Pool> {
        let pool = Pool(Arc::new(Common {
            folder,
            _lock: lock,
            entries: Mutex::default(),
            room: Arc::default(),
            alarms: watch::Sender::new((0, None)),
            metrics: MetricsFile::default(),
            metrics_socket: MetricsSocket::default(),
            readers: AtomicUsize::new(0),
            holds: Mutex::default(),
            freed: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            decks: Mutex::default(),
        }));
        alarm::watch(pool.clone())?;
        Ok(pool)
    }

    /// Where questions are asked, from now on.
    ///
    /// # Errors
    ///
    /// The socket cannot be made.
    pub fn listen(&self) -> io::Result<UnixListener> {
        let path = self.0.folder.control();
        Folder::clear(&path)?;
        let listener = UnixListener::bind(path)?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    }

    /// Answers questions until nothing holds the pool any more.
    ///
    /// # Errors
    ///
    /// No questions can be heard.
    pub fn serve(&self, listener: UnixListener, performer: Arc<dyn Performer>) -> io::Result<()> {
        let begun = Instant::now();
        loop {
            let Holds {
                runs,
                askers,
                has_begun,
            } = *locked(&self.0.holds);
            let may_end = has_begun || begun.elapsed() >= FIRST_PATIENCE;
            if runs + askers == 0 && may_end {
                break;
            }
            let metrics = self.0.metrics.write_if_due(|| self.status());
            let first = (!may_end).then(|| FIRST_PATIENCE.saturating_sub(begun.elapsed()));
            let timeout = metrics.into_iter().chain(first).min();
            let timeout = timeout.and_then(|time| Timespec::try_from(time).ok());
            let listens = match askers < MAX_ASKERS {
                true => PollFlags::IN,
                false => PollFlags::empty(),
            };
            let has_room = self.0.readers.load(Ordering::SeqCst) < MAX_READERS;
            let scraped = self.0.metrics_socket.listener().filter(|_| has_room);
            let mut waiting = vec![
                PollFd::new(&listener, listens),
                PollFd::new(&self.0.freed, PollFlags::IN),
            ];
            if let Some(scraped) = &scraped {
                waiting.push(PollFd::new(&**scraped, PollFlags::IN));
            }
            match poll(&mut waiting, timeout.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            // How often does not matter.
            let _ = rustix::io::read(&self.0.freed, &mut [0; 8]);
            if let Ok((stream, _)) = listener.accept() {
                self.hear(stream, &performer);
            }
            if let Some(scraped) = &scraped
                && let Ok((stream, _)) = scraped.accept()
            {
                self.show_metrics(stream);
            }
        }
        drop(listener);
        self.0.metrics.write_last(|| self.status());
        Ok(())
    }

    fn hear(&self, stream: UnixStream, performer: &Arc<dyn Performer>) {
        let (hold, performer) = (self.held(false), performer.clone());
        let answering = thread::Builder::new().name("control".to_owned());
        let begun = answering.spawn(move || {
            if let Err(error) = hold.pool.reply(stream, &*performer) {
                tracing::debug!(%error, "a question was not answered");
            }
        });
        if let Err(error) = begun {
            tracing::warn!(%error, "a question was not heard");
        }
    }

    /// Answers whoever reads the metrics. The socket's mode says who may.
    fn show_metrics(&self, stream: UnixStream) {
        self.0.readers.fetch_add(1, Ordering::SeqCst);
        let reader = Reader(self.clone());
        let answering = thread::Builder::new().name("metrics".to_owned());
        let begun = answering.spawn(move || {
            let metrics = || prometheus(&reader.0.status());
            if let Err(error) = metrics_socket::answer(&stream, metrics) {
                tracing::debug!(%error, "the metrics were not read");
            }
        });
        if let Err(error) = begun {
            tracing::warn!(%error, "the metrics were not shown");
        }
    }

    fn reply(&self, mut stream: UnixStream, performer: &dyn Performer) -> io::Result<()> {
        if !is_welcome(&stream) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        stream.set_nonblocking(false)?;
        let question = heard(&stream)?;
        match question {
            Ask::Status => write_line(&mut stream, &self.status()),
            Ask::Down { hosts } => {
                let status = self.status();
                self.end(&hosts);
                write_line(&mut stream, &status)
            }
            Ask::Find { identities } => write_line(&mut stream, &self.find(&identities)),
            Ask::Board { version, deck } => {
                let is_known = version == sshoal_warm::VERSION && self.has_deck(deck);
                match is_known {
                    true => self.take_boarder(deck, Boarder::Guest(stream)),
                    false => write_line(&mut stream, &false)?,
                }
                Ok(())
            }
            Ask::Share {
                version,
                seating,
                identity,
            } => {
                let is_known = version == SHARING_VERSION && self.has_deck(seating.deck);
                match is_known {
                    true => self.take_boarder(
                        seating.deck,
                        Boarder::Sharer {
                            socket: stream,
                            host: seating.host,
                            identity,
                        },
                    ),
                    false => write_line(&mut stream, &None::<Shared>)?,
                }
                Ok(())
            }
            Ask::Up { request } => {
                locked(&self.0.holds).has_begun = true;
                let leaving = Arc::new(Leaving::default());
                let left = leaving.clone();
                let conversation = Conversation::begin(stream, move || left.leave())?;
                let visitor = Visitor {
                    conversation,
                    leaving,
                };
                performer.up(self, request, &visitor);
                Ok(())
            }
        }
    }

    /// The pool does not end while a run goes on.
    pub fn hold(&self) -> Hold {
        self.held(true)
    }

    fn held(&self, is_run: bool) -> Hold {
        let pool = self.clone();
        let hold = Hold { pool, is_run };
        let mut holds = locked(&self.0.holds);
        holds.has_begun |= is_run;
        *hold.of(&mut holds) += 1;
        drop(holds);
        hold
    }

    /// Changes its limits.
    pub fn limit(&self, to: Limits) {
        self.0.room.limit(to);
    }

    /// From now on writes the metrics into `file` every 15 s, and answers with them whoever connects to `socket`
    /// (docs/warm.md). What is `None` stays as it is.
    ///
    /// # Errors
    ///
    /// One of them cannot be had; the other is left as it was.
    pub fn publish(&self, file: Option<&Path>, socket: Option<&Path>) -> Result<(), MetricsError> {
        let socket = socket.filter(|path| !self.0.metrics_socket.is_at(path));
        let bound = socket.map(Bound::at).transpose()?;
        if let Some(path) = file {
            self.0.metrics.write_to(path, &self.status())?;
        }
        if let Some(bound) = bound {
            self.0.metrics_socket.replace(bound);
        }
        self.wake();
        Ok(())
    }

    /// Takes in hosts that are not kept yet. Of those whose socket another host has already it returns what they are called,
    /// and that other one is.
    pub(crate) fn take_in(
        &self,
        members: &[Member],
        terms: Terms,
    ) -> Vec<Result<Arc<Entry>, String>> {
        let mut entries = locked(&self.0.entries);
        let mut taken = Vec::with_capacity(members.len());
        let by_socket = entries
            .iter()
            .enumerate()
            .map(|(place, entry)| (entry.member.socket.clone(), place));
        let mut places: HashMap<_, _> = by_socket.collect();
        for member in members {
            let place = places.get(&member.socket).copied();
            let is_kept = |place: usize| {
                let entry = &entries[place];
                entry.state() != State::Down && !entry.is_finished()
            };
            if let Some(place) = place.filter(|place| is_kept(*place)) {
                taken.push(Err(entries[place].member.label.clone()));
                continue;
            }
            let entry = Arc::new(Entry::new(member.clone(), terms));
            match place {
                Some(place) => entries[place] = entry.clone(),
                None => {
                    places.insert(member.socket.clone(), entries.len());
                    entries.push(entry.clone());
                }
            }
            taken.push(Ok(entry));
        }
        taken
    }

    /// Hosts that were taken in, and come to nothing, are not listed.
    pub(crate) fn forget(&self, those: &[Arc<Entry>]) {
        let is_meant = |entry: &Arc<Entry>| those.iter().any(|that| Arc::ptr_eq(entry, that));
        locked(&self.0.entries).retain(|entry| !is_meant(entry));
    }

    /// Takes all sockets away that are left, when all is over.
    pub fn clear(&self) {
        self.0.metrics_socket.close();
        let entries = locked(&self.0.entries);
        let sockets = entries.iter().map(|entry| entry.member.socket.clone());
        for socket in sockets.chain([self.0.folder.control()]) {
            // If it cannot be removed, the next pool does it.
            let _ = Folder::clear(&socket);
        }
    }

    /// How all hosts are.
    pub fn status(&self) -> Status {
        let (alarms, last_alarm) = *self.0.alarms.borrow();
        let entries = locked(&self.0.entries);
        Status {
            pid: std::process::id(),
            connections: self.0.room.connections(),
            memory_octets: resident(),
            limits: self.0.room.limits(),
            refused: self.0.room.refused(),
            alarms,
            last_alarm,
            hosts: entries.iter().map(|entry| entry.status()).collect(),
        }
    }

    /// Ends these hosts' connections; all if none is named.
    fn end(&self, hosts: &[String]) {
        let named: HashSet<&String> = hosts.iter().collect();
        let entries = locked(&self.0.entries).clone();
        for entry in entries {
            if hosts.is_empty() || named.contains(&entry.member.label) {
                entry.finish();
            }
        }
    }

    /// Where these hosts are kept, if they are, in the same way and now.
    pub(crate) fn find(&self, identities: &[String]) -> Vec<Option<Seating>> {
        let entries = locked(&self.0.entries).clone();
        let kept = entries.iter().filter_map(|entry| {
            let seating = entry.seating()?;
            Some((entry.member.identity.to_string(), seating))
        });
        let kept: HashMap<String, Seating> = kept.collect();
        let found = identities.iter();
        found.map(|wanted| kept.get(wanted).copied()).collect()
    }

    /// A thread takes guests and sharers; returns its number.
    pub(crate) fn add_deck(&self, boarders: mpsc::UnboundedSender<Boarder>) -> u32 {
        let mut decks = locked(&self.0.decks);
        decks.push(boarders);
        decks.len() as u32 - 1
    }

    /// Whether there is a thread of that number, which takes them.
    pub(crate) fn has_deck(&self, deck: u32) -> bool {
        let decks = locked(&self.0.decks);
        decks
            .get(deck as usize)
            .is_some_and(|deck| !deck.is_closed())
    }

    /// Gives one to a thread. If that has just gone, so does he.
    pub(crate) fn take_boarder(&self, deck: u32, boarder: Boarder) {
        if let Some(deck) = locked(&self.0.decks).get(deck as usize) {
            let _ = deck.send(boarder);
        }
    }

    /// How many hosts are kept, or may be.
    pub(crate) fn hosts(&self) -> usize {
        let entries = locked(&self.0.entries);
        let kept = entries.iter().filter(|entry| entry.state() != State::Down);
        kept.count()
    }

    pub(crate) fn room(&self) -> &Arc<Room> {
        &self.0.room
    }

    /// All connections are doubtful.
    pub(crate) fn raise(&self, alarm: Alarm) {
        tracing::info!(?alarm, "all connections are asked for a sign of life");
        let alarms = &self.0.alarms;
        alarms.send_modify(|(count, last)| (*count, *last) = (*count + 1, Some(alarm)));
    }

    pub(crate) fn alarms(&self) -> watch::Receiver<(u64, Option<Alarm>)> {
        self.0.alarms.subscribe()
    }

    fn wake(&self) {
        // It is full of reasons to wake up already.
        let _ = rustix::io::write(&self.0.freed, &1_u64.to_ne_bytes());
    }
}

/// One who reads the metrics, for as long as it is held.
struct Reader(Pool);

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.0.readers.fetch_sub(1, Ordering::SeqCst);
        // Somebody may wait to be accepted.
        self.0.wake();
    }
}

impl Hold {
    fn of<'a>(&self, holds: &'a mut Holds) -> &'a mut usize {
        match self.is_run {
            true => &mut holds.runs,
            false => &mut holds.askers,
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        *self.of(&mut locked(&self.pool.0.holds)) -= 1;
        self.pool.wake();
    }
}

/// Whether the program at the other end of a socket is the user's, or root's: as mux.c's check.
pub(crate) fn is_welcome(socket: &impl AsFd) -> bool {
    socket_peercred(socket).is_ok_and(|peer| peer.uid.is_root() || peer.uid == geteuid())
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
