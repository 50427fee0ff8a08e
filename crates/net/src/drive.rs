//! Moves octets between a connection and the link below it.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use sshoal_fleet::Failure;
use sshoal_proto::{Connection, ConnectionError, Event};
use tokio::io::ReadBuf;
use tokio::time::{Sleep, sleep};

use crate::link::{Link, LinkError};
use crate::proxy::Proxy;
use crate::runs::Intent;

/// Least room for a read behind an incomplete packet, octets: a whole packet of data.
const LEAST_READ: usize = 64 * 1024;

/// How long less than what is expected may lie unread: twice as long each time, as long as it is far less.
const LEAST_PATIENCE: Duration = Duration::from_millis(1);
/// At most: little beside what may be under way meanwhile.
const MOST_PATIENCE: Duration = Duration::from_millis(16);

/// A connection and the link below it.
pub(crate) struct Drive {
    pub(crate) connection: Connection,
    link: Link,
    /// Why writing works no more.
    write_error: Option<io::Error>,
    /// An incomplete packet that the next read completes; or what waits until the connection takes input again.
    rest: Vec<u8>,
    /// The fewest unread octets for which the link wakes us.
    low_water: usize,
    /// Whether the connection took no more when that was left.
    held_back: bool,
    /// Octets that are expected to come soon, all together; 0 if nothing is known.
    expected: usize,
    /// Until it is time to look whether fewer have come.
    look: Option<Pin<Box<Sleep>>>,
    /// How long until then.
    patience: Duration,
    /// Nothing at all had come when that was looked at last.
    is_quiet: bool,
    /// What is to be on record before a command leaves; `None` if nothing is, or it is.
    intent: Option<Intent>,
}

/// Why no more octets move.
#[derive(Debug)]
pub(crate) enum Broken {
    /// The connection has ended.
    Connection(ConnectionError),
    /// The link failed below it.
    Link(LinkError),
}

impl From<ConnectionError> for Broken {
    fn from(error: ConnectionError) -> Self {
        Broken::Connection(error)
    }
}

/// Who answers a connection's events.
pub(crate) trait Answer {
    /// `input` is what the range of [`Event::Data`] is a range of.
    fn answer(&mut self, connection: &mut Connection, event: Event, input: &[u8]);

    /// Whether it is settled what becomes of the connection: what else comes does not matter, errors included.
    fn is_settled(&self) -> bool;
}

impl Drive {
    pub(crate) fn new(connection: Connection, link: Link) -> Self {
        Drive {
            connection,
            link,
            write_error: None,
            rest: Vec::new(),
            low_water: 1,
            held_back: false,
            expected: 0,
            look: None,
            patience: LEAST_PATIENCE,
            is_quiet: false,
            intent: None,
        }
    }

    /// This is to be on record before the command leaves.
    pub(crate) fn records(&mut self, intent: Option<Intent>) {
        self.intent = intent;
    }

    /// Whether what is to be on record can be.
    pub(crate) fn is_recordable(&self) -> Result<(), Failure> {
        self.intent.as_ref().map_or(Ok(()), Intent::failed)
    }

    /// So many octets are about to come: fewer may wait for some milliseconds, because waking up for each of the server's
    /// writes costs more than what is in it. 0 is as it was.
    pub(crate) fn expect(&mut self, octets: usize) {
        self.expected = octets;
    }

    /// Writes what there is room for.
    pub(crate) fn flush(&mut self) {
        self.write(Link::write);
    }

    fn write(&mut self, write: impl Fn(&Link, &[u8]) -> io::Result<Option<usize>>) {
        while self.write_error.is_none()
            && self.connection.poll_transmit().is_some()
            && self.may_leave()
            && let Some(octets) = self.connection.poll_transmit()
        {
            match write(&self.link, octets) {
                Ok(Some(written)) => self.connection.transmitted(written),
                Ok(None) => return,
                // The server's last words may still be readable: reading tells how it ended.
                Err(error) => self.write_error = Some(error),
            }
        }
    }

    /// Whether what is queued may be written: a command only once it is on record.
    fn may_leave(&mut self) -> bool {
        match &mut self.intent {
            Some(intent) if self.connection.has_queued_command() => {
                let is_recorded = intent.record();
                if is_recorded {
                    self.intent = None;
                }
                is_recorded
            }
            _ => true,
        }
    }

    /// Octets that wait to be written.
    pub(crate) fn queued(&self) -> usize {
        self.connection.poll_transmit().map_or(0, <[u8]>::len)
    }

    /// What was read is acknowledged now and not with our next octets.
    pub(crate) fn acknowledge_at_once(&self) {
        self.link.acknowledge_at_once();
    }

    /// Answers events that did not come with input.
    pub(crate) fn answer_events(&mut self, who: &mut impl Answer) {
        while let Some(event) = self.connection.poll_event() {
            who.answer(&mut self.connection, event, &[]);
        }
    }

    /// Ready when there is room for pending output, or when input was handled. Reads into `buffer`, which idle
    /// connections share.
    pub(crate) fn poll(
        &mut self,
        context: &mut Context<'_>,
        buffer: &RefCell<Vec<u8>>,
        who: &mut impl Answer,
    ) -> Poll<Result<(), Broken>> {
        let pending = self.write_error.is_none() && self.connection.poll_transmit().is_some();
        if pending && !self.may_leave() {
            let intent = self.intent.as_mut();
            if intent.is_some_and(|intent| intent.poll(context).is_ready()) {
                return Poll::Ready(Ok(()));
            }
        } else if pending && self.link.poll_write_ready(context).is_ready() {
            return Poll::Ready(Ok(()));
        }
        if self.held_back && self.connection.wants_input() {
            return Poll::Ready(self.take_up_rest(who).map_err(Broken::from));
        }
        if self.connection.wants_input() {
            return self.poll_input(context, &mut buffer.borrow_mut(), who);
        }
        // It wants none until more is written, which will never be.
        match self.write_error.take() {
            Some(error) => Poll::Ready(Err(Broken::Link(LinkError::Io(error)))),
            None => Poll::Pending,
        }
    }

    /// Reads behind what was left of the last read, and handles it.
    fn poll_input(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut Vec<u8>,
        who: &mut impl Answer,
    ) -> Poll<Result<(), Broken>> {
        let kept = self.rest.len();
        if buffer.len() < kept + LEAST_READ {
            buffer.resize(kept + LEAST_READ, 0);
        }
        buffer[..kept].copy_from_slice(&self.rest);
        let mut unfilled = ReadBuf::new(&mut buffer[kept..]);
        let read = match self.link.poll_read(context, &mut unfilled) {
            Poll::Ready(Ok(())) => unfilled.filled().len(),
            Poll::Ready(Err(error)) => return Poll::Ready(Err(Broken::Link(error))),
            Poll::Pending => match self.look(context, &mut unfilled) {
                Ok(Some(octets)) => octets,
                Ok(None) => {
                    self.set_low_water();
                    self.look_later(context);
                    return Poll::Pending;
                }
                Err(error) => return Poll::Ready(Err(Broken::Link(LinkError::Io(error)))),
            },
        };
        (self.look, self.is_quiet) = (None, false);
        if read >= self.expected / 4 {
            self.patience = LEAST_PATIENCE;
        }
        if read == 0 {
            return Poll::Ready(Err(self.connection.handle_eof().into()));
        }
        let filled = kept + read;
        let taken = self.handle(&mut buffer[..filled], who)?;
        self.rest.clear();
        self.rest.extend_from_slice(&buffer[taken..filled]);
        if self.rest.is_empty() {
            self.rest = Vec::new();
        }
        self.held_back = !self.rest.is_empty() && !self.connection.wants_input();
        Poll::Ready(Ok(()))
    }

    /// Reads what is there of less than was expected, if it is time to.
    fn look(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> io::Result<Option<usize>> {
        let look = self.look.as_mut();
        if look.is_none_or(|look| look.as_mut().poll(context).is_pending()) {
            return Ok(None);
        }
        self.look = None;
        let read = self.link.read_at_once(buffer.initialize_unfilled())?;
        self.is_quiet = read.is_none();
        self.patience = (2 * self.patience).min(MOST_PATIENCE);
        Ok(read)
    }

    /// Whether less than what is expected is left unread.
    fn is_patient(&self) -> bool {
        self.expected > 0 && !self.is_quiet
    }

    /// Has us polled again when it is time to look.
    fn look_later(&mut self, context: &mut Context<'_>) {
        if self.look.is_none() && self.is_patient() {
            let mut look = Box::pin(sleep(self.patience));
            if look.as_mut().poll(context).is_ready() {
                context.waker().wake_by_ref();
            }
            self.look = Some(look);
        }
    }

    /// Has us woken for no less than what can change anything. The mark stays where it is if it is low enough: most
    /// logins move it twice.
    fn set_low_water(&mut self) {
        let needed = match self.rest.is_empty() {
            _ if self.is_patient() => self.expected,
            true => self.connection.least_input(),
            false => 1,
        };
        if needed < self.low_water || self.low_water == 1 && needed > 1 {
            self.link.wake_for(needed);
            self.low_water = needed;
        }
    }

    /// Handles what came before the connection was ready for it: the server may have nothing more to say until then.
    fn take_up_rest(&mut self, who: &mut impl Answer) -> Result<(), ConnectionError> {
        let mut rest = std::mem::take(&mut self.rest);
        let taken = self.handle(&mut rest, who)?;
        rest.drain(..taken);
        self.held_back = !rest.is_empty() && !self.connection.wants_input();
        self.rest = rest;
        Ok(())
    }

    /// Gives input to the connection and has its events answered; returns how many octets were taken.
    fn handle(
        &mut self,
        input: &mut [u8],
        who: &mut impl Answer,
    ) -> Result<usize, ConnectionError> {
        let now = Instant::now();
        let mut taken = 0;
        loop {
            let result = self.connection.handle_input(now, &mut input[taken..]);
            let from = taken;
            let mut answered = false;
            while let Some(event) = self.connection.poll_event() {
                answered = true;
                who.answer(&mut self.connection, event, &input[from..]);
            }
            match result {
                Ok(octets) => taken += octets,
                // What came before the error may have settled everything already.
                Err(_) if who.is_settled() => return Ok(input.len()),
                Err(error) => return Err(error),
            }
            if taken == input.len() || (taken == from && !answered) || who.is_settled() {
                return Ok(taken);
            }
        }
    }

    /// Our end of the connection, if it is one of TCP's.
    pub(crate) fn local_address(&self) -> Option<SocketAddr> {
        self.link.local_address()
    }

    /// The server's end, if it is one of TCP's and not behind a jump host.
    pub(crate) fn peer_address(&self) -> Option<SocketAddr> {
        self.link.peer_address()
    }

    /// The ProxyCommand that the connection goes by.
    pub(crate) fn proxy(&mut self) -> Option<&mut Proxy> {
        match &mut self.link {
            Link::Proxy(proxy) => Some(proxy),
            Link::Tcp(_) | Link::Tunnel(_) | Link::Shared(_) => None,
        }
    }

    /// Says goodbye, as far as the link takes it at once. The link is closed next.
    pub(crate) fn hang_up(&mut self) {
        self.connection.disconnect();
        self.write(Link::write_last);
    }
}

/// A timer whose time is put off again and again, as that of a keepalive is by all that comes: only a sooner one costs anything.
#[derive(Default)]
pub(crate) struct Alarm {
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Alarm {
    /// Ready when `due` is over; never without one.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>, due: Option<Instant>) -> Poll<()> {
        let Some(due) = due.map(tokio::time::Instant::from) else {
            return Poll::Pending;
        };
        let sleep = self
            .sleep
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(due)));
        if sleep.deadline() > due {
            sleep.as_mut().reset(due);
        }
        while sleep.as_mut().poll(context).is_ready() {
            if sleep.deadline() >= due {
                self.sleep = None;
                return Poll::Ready(());
            }
            sleep.as_mut().reset(due);
        }
        Poll::Pending
    }
}

/// Sleeps until a timer is due; for ever without one.
pub(crate) async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}
