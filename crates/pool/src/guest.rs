//! A guest: a run that has the commands of all its hosts in this thread performed over one socket.
//!
//! What its commands have to tell is gathered and written together: the connections that have news come first, then the guest
//! has its turn, and with it one write. A guest that does not read is told nothing more; what its commands write waits in their
//! seats then, at most a channel's window of each.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::atomic::Ordering;

use sshoal_proto::{Command, ExecFate, SessionRequest};
use sshoal_warm::{End, Fate, FrameError, Frames, INPUT_WINDOW, News, Order, Start};
use tokio::io::Interest;
use tokio::sync::Notify;
use tokio::task::yield_now;

use crate::deck::Deck;
use crate::host::Host;
use crate::seat::{Down, Seat};

/// Most commands of a guest at a time.
const MAX_COMMANDS: usize = 64 * 1024;
/// Octets of news that wait to be read, about: more is not made meanwhile.
const MAX_OUTPUT: usize = 1024 * 1024;
/// Octets of output in one frame.
const PIECE: usize = 32 * 1024;
/// Octets read at a time.
const READ: usize = 64 * 1024;

/// Why a guest is not served any more.
#[derive(Debug, thiserror::Error)]
enum Gone {
    #[error(transparent)]
    Socket(#[from] io::Error),
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error("it has left")]
    Left,
    #[error("command {0} was started twice")]
    Twice(u32),
    #[error("it has more than {MAX_COMMANDS} commands")]
    TooMany,
    #[error("command {0} was given more input than may be under way")]
    Flood(u32),
    #[error("command {0} was given more signals than may wait")]
    Signals(u32),
}

/// A guest, as its commands know it.
#[derive(Default)]
pub(crate) struct Guest {
    errands: RefCell<HashMap<u32, Errand>>,
    /// Commands that have something to tell.
    due: RefCell<VecDeque<u32>>,
    news: Notify,
}

/// One of its commands.
struct Errand {
    host: Rc<Host>,
    seat: Rc<Seat>,
    is_due: Cell<bool>,
    has_told_start: bool,
    /// Octets of output that were told of and not consumed yet.
    unconsumed: usize,
}

impl Guest {
    /// A command has something to tell.
    pub(crate) fn is_due(&self, number: u32) {
        let errands = self.errands.borrow();
        let errand = errands.get(&number);
        if errand.is_some_and(|errand| !errand.is_due.replace(true)) {
            self.due.borrow_mut().push_back(number);
            self.news.notify_one();
        }
    }
}

/// Serves a guest to its end. What is wrong with it is its own affair.
pub(crate) async fn serve(deck: &Deck, socket: UnixStream) {
    let socket = socket
        .set_nonblocking(true)
        .and_then(|()| tokio::net::UnixStream::from_std(socket));
    let served = match socket {
        Ok(socket) => {
            let mut served = Served {
                deck,
                socket,
                guest: Rc::default(),
                input: Vec::new(),
                output: Vec::new(),
            };
            served.run().await
        }
        Err(error) => Err(error.into()),
    };
    if let Err(gone) = served {
        tracing::debug!(%gone, "a run is not served any more");
    }
}

struct Served<'a> {
    deck: &'a Deck,
    socket: tokio::net::UnixStream,
    guest: Rc<Guest>,
    /// The beginning of a frame.
    input: Vec<u8>,
    /// News that wait to be written.
    output: Vec<u8>,
}

impl Served<'_> {
    async fn run(&mut self) -> Result<(), Gone> {
        loop {
            self.gather();
            self.write()?;
            self.wait().await?;
        }
    }

    /// Has commands tell what they have to, as long as somebody reads it.
    fn gather(&mut self) {
        while self.output.len() < MAX_OUTPUT {
            let Some(number) = self.guest.due.borrow_mut().pop_front() else {
                break;
            };
            let mut errands = self.guest.errands.borrow_mut();
            let Some(errand) = errands.get_mut(&number) else {
                continue;
            };
            errand.is_due.set(false);
            if errand.tell(number, &mut self.output) {
                let over = errands.remove(&number);
                drop(errands);
                drop(over);
            }
        }
    }

    fn write(&mut self) -> io::Result<()> {
        let mut written = 0;
        while written < self.output.len() {
            match self.socket.try_write(&self.output[written..]) {
                Ok(octets) => written += octets,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        self.output.drain(..written);
        Ok(())
    }

    /// Waits for news, for orders, or for room.
    async fn wait(&mut self) -> Result<(), Gone> {
        let has_room = self.output.len() < MAX_OUTPUT;
        if has_room && !self.guest.due.borrow().is_empty() {
            // More was due than could be written: nobody says so once more. Others have their turn before.
            yield_now().await;
            return Ok(());
        }
        let interest = match self.output.is_empty() {
            true => Interest::READABLE,
            // Orders make news, too.
            false if !has_room => Interest::WRITABLE,
            false => Interest::READABLE | Interest::WRITABLE,
        };
        tokio::select! {
            biased;
            ready = self.socket.ready(interest) => drop(ready?),
            () = self.guest.news.notified(), if has_room => return Ok(()),
        }
        if !has_room {
            return Ok(());
        }
        let kept = self.input.len();
        self.input.resize(kept + READ, 0);
        let read = self.socket.try_read(&mut self.input[kept..]);
        self.input.truncate(kept + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(0) => Err(Gone::Left),
            Ok(_) => self.take_orders(),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn take_orders(&mut self) -> Result<(), Gone> {
        let input = std::mem::take(&mut self.input);
        let mut frames = Frames::of(&input);
        while let Some(frame) = frames.next()? {
            self.take(Order::decode(frame)?)?;
        }
        self.input = input[frames.taken()..].to_vec();
        Ok(())
    }

    fn take(&mut self, order: Order<'_>) -> Result<(), Gone> {
        match order {
            Order::Start { id, start } => return self.start(id, &start),
            Order::Input { id, octets } if !octets.is_empty() => {
                let seat = self.seat(id);
                let Some(seat) = seat else { return Ok(()) };
                if seat.waiting_input() + octets.len() > INPUT_WINDOW {
                    return Err(Gone::Flood(id));
                }
                seat.feed(octets);
            }
            Order::Input { .. } => {}
            Order::InputEnd { id } => {
                if let Some(seat) = self.seat(id) {
                    seat.feed(&[]);
                }
            }
            Order::Consumed { id, octets } => self.consumed(id, octets as usize),
            Order::Signal { id, name } => {
                if self.seat(id).is_some_and(|seat| !seat.signal(name)) {
                    return Err(Gone::Signals(id));
                }
            }
            Order::Leave { id } => self.leave(id),
        }
        Ok(())
    }

    /// The seat of a command; none if it has ended, which the guest may not know yet.
    fn seat(&self, id: u32) -> Option<Rc<Seat>> {
        let errands = self.guest.errands.borrow();
        errands.get(&id).map(|errand| errand.seat.clone())
    }

    fn start(&mut self, id: u32, start: &Start<'_>) -> Result<(), Gone> {
        let errands = self.guest.errands.borrow();
        if errands.contains_key(&id) {
            return Err(Gone::Twice(id));
        }
        if errands.len() >= MAX_COMMANDS {
            return Err(Gone::TooMany);
        }
        drop(errands);
        let host = self.deck.host(start.host);
        let is_meant = |host: &Rc<Host>| *host.entry.member.identity.octets() == start.identity;
        let Some(host) = host.filter(|host| is_meant(host) && host.lets_in()) else {
            let end = End::Lost("the connection to the host has ended");
            let fate = Fate::NotSent;
            News::Ended { id, end, fate }.encode(&mut self.output);
            return Ok(());
        };
        let request = SessionRequest {
            environment: start.environment.to_vec(),
            pty: None,
            command: Command::Exec(start.command.to_vec()),
            forward_agent: false,
            standard_input: start.standard_input,
        };
        let seat = Seat::of_guest(&self.guest, id, request);
        let errand = Errand::begin(host.clone(), seat.clone());
        self.guest.errands.borrow_mut().insert(id, errand);
        host.admit(seat);
        Ok(())
    }

    fn consumed(&self, id: u32, octets: usize) {
        let mut errands = self.guest.errands.borrow_mut();
        let Some(errand) = errands.get_mut(&id) else {
            return;
        };
        // No more than there was.
        let octets = octets.min(errand.unconsumed);
        errand.unconsumed -= octets;
        let seat = errand.seat.clone();
        drop(errands);
        seat.delivered(octets);
    }

    /// A command that no connection has yet is over with that.
    fn leave(&mut self, id: u32) {
        let Some(seat) = self.seat(id) else { return };
        seat.leave();
        if !seat.is_aboard() {
            seat.down().has_left = true;
            self.guest.is_due(id);
        }
    }
}

impl Errand {
    fn begin(host: Rc<Host>, seat: Rc<Seat>) -> Errand {
        let counts = &host.entry.counts;
        counts.sessions.fetch_add(1, Ordering::Relaxed);
        counts.sessions_in_all.fetch_add(1, Ordering::Relaxed);
        host.note_use();
        host.note_come();
        Errand {
            host,
            seat,
            is_due: Cell::new(false),
            has_told_start: false,
            unconsumed: 0,
        }
    }

    /// Tells what there is; returns whether that was the last.
    fn tell(&mut self, id: u32, out: &mut Vec<u8>) -> bool {
        let mut down = self.seat.down();
        let is_over = is_over(&down);
        if down.is_started && !self.has_told_start && !is_over {
            News::Started { id }.encode(out);
        }
        self.has_told_start |= down.is_started;
        let before = down.output.len() + down.error.len();
        tell_output(id, false, &mut down.output, out);
        tell_output(id, true, &mut down.error, out);
        drop(down);
        self.unconsumed += before;
        let received = &self.host.entry.counts.received;
        received.fetch_add(before as u64, Ordering::Relaxed);
        let taken = self.seat.taken();
        if taken > 0 && !is_over {
            let octets = u32::try_from(taken).unwrap_or(u32::MAX);
            News::Taken { id, octets }.encode(out);
        }
        let sent = &self.host.entry.counts.sent;
        sent.fetch_add(taken as u64, Ordering::Relaxed);
        if is_over {
            let down = self.seat.down();
            let (end, fate) = (end(&down), fate(&down));
            News::Ended { id, end, fate }.encode(out);
        }
        is_over
    }
}

impl Drop for Errand {
    fn drop(&mut self) {
        self.seat.leave();
        let sessions = &self.host.entry.counts.sessions;
        sessions.fetch_sub(1, Ordering::Relaxed);
        self.host.note_use();
        self.host.note_left();
    }
}

/// Whether nothing more of a command is to come; some servers never close the channel.
fn is_over(down: &Down) -> bool {
    let has_status = down.status.is_some() || down.signalled.is_some();
    down.is_closed || down.has_left || (down.has_ended && has_status)
}

fn tell_output(id: u32, is_error: bool, queue: &mut VecDeque<u8>, out: &mut Vec<u8>) {
    for slice in <[&[u8]; 2]>::from(queue.as_slices()) {
        for octets in slice.chunks(PIECE) {
            News::Output {
                id,
                is_error,
                octets,
            }
            .encode(out);
        }
    }
    queue.clear();
}

fn end(down: &Down) -> End<'_> {
    match (down.status, &down.signalled, &down.lost) {
        // There may have been more output.
        (_, _, Some(why)) if !down.has_ended => End::Lost(why),
        (Some(status), ..) => End::Exit(status),
        (None, Some(signalled), _) => End::Signal {
            name: &signalled.name,
            core_dumped: signalled.core_dumped,
            message: &signalled.message,
        },
        (None, None, Some(why)) => End::Lost(why),
        (None, None, None) if down.has_left => End::Left,
        (None, None, None) => End::NoStatus,
    }
}

/// What the connection knows, or has known; of a command that never got to one nothing was sent.
fn fate(down: &Down) -> Fate {
    match down.fate {
        _ if down.is_started => Fate::Ran,
        Some(ExecFate::Ran) => Fate::Ran,
        Some(ExecFate::MayHaveRun) => Fate::MayHaveRun,
        Some(ExecFate::ProvenDiscarded) => Fate::ProvenDiscarded,
        Some(ExecFate::NotSent) => Fate::NotSent,
        None if down.is_opened => Fate::MayHaveRun,
        None => Fate::NotSent,
    }
}
