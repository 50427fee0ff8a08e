//! One stream to a keeper: orders are gathered and written together, news are read into mailboxes.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use sshoal_fleet::HostId;
use sshoal_proto::{ExecFate, Stream as OutputStream};
use sshoal_warm::{End, Fate, Frames, News, Order};
use tokio::io::Interest;
use tokio::sync::Notify;

use crate::outbox::Outbox;

/// Octets read at a time.
const READ: usize = 256 * 1024;
/// Octets of orders that wait to be written, about: no host begins meanwhile.
const MAX_ORDERS: usize = 1024 * 1024;

/// A keeper, or one of its threads.
pub(crate) struct Stream {
    orders: RefCell<Vec<u8>>,
    /// Octets of orders so far, and how many of them have left.
    ordered: Cell<u64>,
    written: Cell<u64>,
    has_orders: Notify,
    has_room: Notify,
    mailboxes: RefCell<HashMap<u32, Rc<Mailbox>>>,
    is_open: Cell<bool>,
}

/// What the keeper has told of a host's command.
#[derive(Default)]
pub(crate) struct Mailbox {
    pub(crate) letters: RefCell<Letters>,
    waker: Cell<Option<Waker>>,
    has_news: Cell<bool>,
}

/// The same, as far as it was not looked at.
#[derive(Default)]
pub(crate) struct Letters {
    pub(crate) is_started: bool,
    pub(crate) outbox: Outbox,
    /// Octets of input that were taken.
    pub(crate) taken: usize,
    pub(crate) ended: Option<Ended>,
}

/// How a command ended, as [`End`] says it.
pub(crate) struct Ended {
    pub(crate) end: OwnedEnd,
    pub(crate) fate: ExecFate,
}

/// [`End`], kept.
pub(crate) enum OwnedEnd {
    Exit(u32),
    Signal {
        name: String,
        core_dumped: bool,
        message: String,
    },
    NoStatus,
    Lost(String),
    Left,
    /// The keeper itself is gone.
    KeeperGone,
}

impl Mailbox {
    /// Ready when something has come since the last time.
    pub(crate) fn poll_news(&self, context: &Context<'_>) -> Poll<()> {
        if self.has_news.take() {
            return Poll::Ready(());
        }
        self.waker.set(Some(context.waker().clone()));
        Poll::Pending
    }

    fn tell(&self, read: impl FnOnce(&mut Letters)) {
        read(&mut self.letters.borrow_mut());
        self.has_news.set(true);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

impl Stream {
    /// Begins to talk to the keeper, in a task of its own.
    pub(crate) fn begin(socket: UnixStream) -> io::Result<Rc<Stream>> {
        socket.set_nonblocking(true)?;
        let socket = tokio::net::UnixStream::from_std(socket)?;
        let stream = Rc::new(Stream {
            orders: RefCell::default(),
            ordered: Cell::new(0),
            written: Cell::new(0),
            has_orders: Notify::new(),
            has_room: Notify::new(),
            mailboxes: RefCell::default(),
            is_open: Cell::new(true),
        });
        tokio::task::spawn_local(stream.clone().serve(socket));
        Ok(stream)
    }

    /// Whether the keeper is there.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open.get()
    }

    /// Waits until orders are taken.
    pub(crate) async fn room(&self) {
        while self.is_open() && self.orders.borrow().len() >= MAX_ORDERS {
            self.has_room.notified().await;
        }
    }

    /// Gives an order; returns how many octets of orders there are up to and with it.
    pub(crate) fn order(&self, order: &Order<'_>) -> u64 {
        let mut orders = self.orders.borrow_mut();
        let before = orders.len();
        order.encode(&mut orders);
        if before == 0 {
            self.has_orders.notify_one();
        }
        let ordered = self.ordered.get() + (orders.len() - before) as u64;
        self.ordered.set(ordered);
        ordered
    }

    /// Whether so many octets of orders have left, all of them.
    pub(crate) fn has_left(&self, octets: u64) -> bool {
        self.written.get() >= octets
    }

    /// What is told of this host comes there from now on.
    pub(crate) fn subscribe(&self, host: HostId) -> Rc<Mailbox> {
        let mailbox = Rc::<Mailbox>::default();
        let mut mailboxes = self.mailboxes.borrow_mut();
        mailboxes.insert(host.0, mailbox.clone());
        mailbox
    }

    /// Nobody listens to what is told of this host any more.
    pub(crate) fn unsubscribe(&self, host: HostId) {
        self.mailboxes.borrow_mut().remove(&host.0);
    }

    async fn serve(self: Rc<Self>, socket: tokio::net::UnixStream) {
        let mut buffer = vec![0; READ];
        let mut kept = 0;
        let error = loop {
            if let Err(error) = self.write(&socket) {
                break error;
            }
            match self.read(&socket, &mut buffer, &mut kept).await {
                Ok(()) => {}
                Err(error) => break error,
            }
        };
        tracing::warn!(%error, "the process that keeps connections is gone");
        self.is_open.set(false);
        self.has_room.notify_waiters();
        for mailbox in self.mailboxes.borrow().values() {
            mailbox.tell(|letters| {
                letters.ended.get_or_insert(Ended {
                    end: OwnedEnd::KeeperGone,
                    // Who has sent the order knows whether it has left.
                    fate: ExecFate::MayHaveRun,
                });
            });
        }
    }

    fn write(&self, socket: &tokio::net::UnixStream) -> io::Result<()> {
        let mut orders = self.orders.borrow_mut();
        let mut written = 0;
        while written < orders.len() {
            match socket.try_write(&orders[written..]) {
                Ok(octets) => written += octets,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        let was_full = orders.len() >= MAX_ORDERS;
        orders.drain(..written);
        self.written.set(self.written.get() + written as u64);
        if was_full && orders.len() < MAX_ORDERS {
            self.has_room.notify_waiters();
        }
        Ok(())
    }

    /// Waits for news, for orders, or for room to write; reads news.
    async fn read(
        &self,
        socket: &tokio::net::UnixStream,
        buffer: &mut Vec<u8>,
        kept: &mut usize,
    ) -> io::Result<()> {
        let interest = match self.orders.borrow().is_empty() {
            true => Interest::READABLE,
            false => Interest::READABLE | Interest::WRITABLE,
        };
        tokio::select! {
            biased;
            ready = socket.ready(interest) => drop(ready?),
            () = self.has_orders.notified() => return Ok(()),
        }
        if buffer.len() < *kept + READ {
            buffer.resize(*kept + READ, 0);
        }
        match socket.try_read(&mut buffer[*kept..]) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(octets) => {
                let filled = *kept + octets;
                let taken = self.hear(&buffer[..filled]).map_err(io::Error::other)?;
                buffer.copy_within(taken..filled, 0);
                *kept = filled - taken;
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Puts news into mailboxes; returns how many octets they had.
    fn hear(&self, octets: &[u8]) -> Result<usize, sshoal_warm::FrameError> {
        let mut frames = Frames::of(octets);
        let mailboxes = self.mailboxes.borrow();
        while let Some(frame) = frames.next()? {
            let news = News::decode(frame)?;
            let (News::Started { id }
            | News::Output { id, .. }
            | News::Taken { id, .. }
            | News::Ended { id, .. }) = &news;
            // Of a host that is given up news may still be on their way.
            if let Some(mailbox) = mailboxes.get(id) {
                mailbox.tell(|letters| letters.take(news));
            }
        }
        Ok(frames.taken())
    }
}

impl Letters {
    fn take(&mut self, news: News<'_>) {
        match news {
            News::Started { .. } => self.is_started = true,
            News::Output {
                is_error, octets, ..
            } => {
                let stream = match is_error {
                    false => OutputStream::Stdout,
                    true => OutputStream::Stderr,
                };
                self.outbox.push(stream, octets);
            }
            News::Taken { octets, .. } => self.taken += octets as usize,
            News::Ended { end, fate, .. } => {
                let fate = match fate {
                    Fate::NotSent => ExecFate::NotSent,
                    Fate::ProvenDiscarded => ExecFate::ProvenDiscarded,
                    Fate::MayHaveRun => ExecFate::MayHaveRun,
                    Fate::Ran => ExecFate::Ran,
                };
                self.is_started |= fate == ExecFate::Ran;
                let end = OwnedEnd::of(end);
                self.ended = Some(Ended { end, fate });
            }
        }
    }
}

impl OwnedEnd {
    fn of(end: End<'_>) -> OwnedEnd {
        match end {
            End::Exit(status) => OwnedEnd::Exit(status),
            End::Signal {
                name,
                core_dumped,
                message,
            } => OwnedEnd::Signal {
                name: name.to_owned(),
                core_dumped,
                message: message.to_owned(),
            },
            End::NoStatus => OwnedEnd::NoStatus,
            End::Lost(why) => OwnedEnd::Lost(why.to_owned()),
            End::Left => OwnedEnd::Left,
        }
    }
}
