//! Tunnels through a jump host: what the hosts behind it and the driver of its connection leave for each other.
//!
//! ```text
//!   host's task                                          driver's task
//!   Tunnel ----write---> outgoing ----> [Desk: due] ----> CHANNEL_DATA
//!          <--poll_read-- incoming <--------------------- CHANNEL_DATA
//!          ---consumed-----------> [Desk: due] ---------> CHANNEL_WINDOW_ADJUST
//! ```
//!
//! Both run in one thread. Neither waits for the other: each side has its own buffers, which the channel's
//! window and [`MAX_OUTGOING`] bound, and hosts that have something to send take turns at the desk. So a host
//! that does not read, or sends without end, holds up nobody but itself.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use sshoal_fleet::Failure;
use sshoal_proto::{Connection, ConnectionError, LocalChannel};
use tokio::io::ReadBuf;
use tokio::sync::Notify;

/// Octets of one host that wait for their turn on the way to the jump host: a few packets.
const MAX_OUTGOING: usize = 64 * 1024;
/// Octets that a host sends before it is the next one's turn: a packet (RFC 4253 section 6.1).
const TURN: usize = 32 * 1024;
/// Channels on one connection. A connection's sshd process needs a file descriptor for each, and systems give
/// it 1,024; once it has none left, it says no more than "open failed" (serverloop.c, server_input_channel_open).
const MAX_CHANNELS: usize = 900;

/// What the hosts behind one connection to a jump host share with its driver.
pub(super) struct Desk {
    board: RefCell<Board>,
    /// Wakes the driver.
    work: Notify,
}

struct Board {
    /// Tunnels that the driver has something to do for, each once, in turn.
    due: VecDeque<Rc<Ends>>,
    /// Tunnels whose channel is open, is being opened or not yet closed by both sides.
    tunnels: usize,
    /// How many there may be.
    capacity: usize,
}

/// One tunnel as both sides see it.
pub(super) struct Ends {
    target: Target,
    state: RefCell<State>,
}

/// Where a tunnel leads; the jump host looks the name up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) name: String,
    pub(super) port: u16,
}

#[derive(Default)]
struct State {
    channel: Option<LocalChannel>,
    stage: Stage,
    /// From the server behind the jump host.
    incoming: VecDeque<u8>,
    /// Taken out of `incoming`, the jump host not yet told.
    consumed: usize,
    /// To the server behind the jump host.
    outgoing: VecDeque<u8>,
    /// The host wants no more of it.
    abandoned: bool,
    /// Whether it is on the desk's list.
    is_due: bool,
    /// The host's task.
    host: Option<Waker>,
}

/// How far the channel is.
#[derive(Default)]
enum Stage {
    #[default]
    Opening,
    Open,
    /// The far side sends no more (CHANNEL_EOF).
    Ended,
    /// The far side wants no more either (CHANNEL_CLOSE).
    Closed,
    Refused(Refusal),
    /// The connection to the jump host is gone.
    Lost(Failure),
}

impl fmt::Display for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} port {}", self.name, self.port)
    }
}

/// CHANNEL_OPEN_FAILURE (RFC 4254 section 5.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) reason_code: u32,
    /// The jump host's words, made printable.
    pub(super) description: String,
}

/// Why a tunnel was not opened.
pub(super) enum NotOpened {
    Refused(Refusal),
    Lost(Failure),
}

impl Desk {
    pub(super) fn new() -> Self {
        Desk {
            board: RefCell::new(Board {
                due: VecDeque::new(),
                tunnels: 0,
                capacity: MAX_CHANNELS,
            }),
            work: Notify::new(),
        }
    }

    pub(super) fn has_room(&self) -> bool {
        let board = self.board.borrow();
        board.tunnels < board.capacity
    }

    /// The server has no resources for more channels than it has now. Returns whether it has any.
    pub(super) fn note_full(&self) -> bool {
        let mut board = self.board.borrow_mut();
        board.capacity = board.tunnels;
        board.capacity > 0
    }

    /// Asks for a tunnel; wait for it with [`Tunnel::opened`].
    pub(super) fn open(self: &Rc<Self>, target: Target) -> Tunnel {
        let ends = Rc::new(Ends {
            target,
            state: RefCell::default(),
        });
        self.board.borrow_mut().tunnels += 1;
        self.add(&ends);
        Tunnel {
            desk: self.clone(),
            ends,
        }
    }

    /// Waits until there is something to do.
    pub(super) async fn work(&self) {
        self.work.notified().await;
    }

    /// Whether no tunnel waits for its turn.
    pub(super) fn is_idle(&self) -> bool {
        self.board.borrow().due.is_empty()
    }

    /// The next tunnel to [`serve`](Ends::serve).
    pub(super) fn next_due(&self) -> Option<Rc<Ends>> {
        let ends = self.board.borrow_mut().due.pop_front()?;
        ends.state.borrow_mut().is_due = false;
        Some(ends)
    }

    /// Puts a tunnel on the list, unless it stands there.
    pub(super) fn add(&self, ends: &Rc<Ends>) {
        if !std::mem::replace(&mut ends.state.borrow_mut().is_due, true) {
            self.board.borrow_mut().due.push_back(ends.clone());
            self.work.notify_one();
        }
    }

    /// A channel's number is free again, or was never taken.
    pub(super) fn forget(&self) {
        self.board.borrow_mut().tunnels -= 1;
    }

    /// Tunnels that were asked for and not yet served, when there will be no more serving.
    pub(super) fn unserved(&self) -> VecDeque<Rc<Ends>> {
        std::mem::take(&mut self.board.borrow_mut().due)
    }
}

/// What a turn at the desk came to.
pub(super) enum Served {
    /// This channel was asked for.
    Asked(LocalChannel),
    /// There is more to send.
    More,
    /// All is done until somebody adds the tunnel again.
    Idle,
    /// Nobody wants the tunnel any more, and its channel was never asked for.
    Dropped,
}

// The driver's side.
impl Ends {
    /// Does what is due: opens, sends, gives back window, closes.
    pub(super) fn serve(&self, connection: &mut Connection) -> Result<Served, ConnectionError> {
        let mut state = self.state.borrow_mut();
        let Some(channel) = state.channel else {
            if state.abandoned {
                return Ok(Served::Dropped);
            }
            let channel = connection.open_direct_tcpip(&self.target.name, self.target.port)?;
            state.channel = Some(channel);
            return Ok(Served::Asked(channel));
        };
        // A channel that is over has given its number away.
        if !matches!(state.stage, Stage::Open | Stage::Ended) {
            return Ok(Served::Idle);
        }
        if state.consumed > 0 && !state.abandoned {
            connection.consumed(channel, std::mem::take(&mut state.consumed))?;
        }
        let sent = state.send(connection, channel)?;
        if sent > 0 && !state.outgoing.is_empty() {
            return Ok(Served::More);
        }
        if state.abandoned {
            connection.close(channel)?;
        }
        Ok(Served::Idle)
    }

    /// [`Event::ChannelOpened`](sshoal_proto::Event::ChannelOpened).
    pub(super) fn handle_opened(&self) {
        self.turn(Stage::Open);
    }

    /// [`Event::ChannelRefused`](sshoal_proto::Event::ChannelRefused).
    pub(super) fn handle_refused(&self, refusal: Refusal) {
        self.turn(Stage::Refused(refusal));
    }

    /// [`Event::Data`](sshoal_proto::Event::Data). A tunnel that nobody wants is about to be closed.
    pub(super) fn handle_data(&self, octets: &[u8]) {
        let mut state = self.state.borrow_mut();
        if !state.abandoned {
            state.incoming.extend(octets);
            state.wake();
        }
    }

    /// [`Event::Eof`](sshoal_proto::Event::Eof).
    pub(super) fn handle_eof(&self) {
        self.turn(Stage::Ended);
    }

    /// [`Event::Closed`](sshoal_proto::Event::Closed).
    pub(super) fn handle_closed(&self) {
        self.turn(Stage::Closed);
    }

    /// The connection to the jump host is gone.
    pub(super) fn lose(&self, failure: &Failure) {
        self.turn(Stage::Lost(failure.clone()));
    }

    fn turn(&self, stage: Stage) {
        let mut state = self.state.borrow_mut();
        state.stage = stage;
        state.wake();
    }
}

impl State {
    fn wake(&mut self) {
        if let Some(host) = self.host.take() {
            host.wake();
        }
    }

    /// Sends a turn's worth; returns how much the channel took.
    fn send(
        &mut self,
        connection: &mut Connection,
        channel: LocalChannel,
    ) -> Result<usize, ConnectionError> {
        let (front, _) = self.outgoing.as_slices();
        if front.is_empty() {
            return Ok(0);
        }
        let sent = connection.send_data(channel, &front[..front.len().min(TURN)])?;
        self.outgoing.drain(..sent);
        if sent > 0 {
            self.wake();
        }
        Ok(sent)
    }
}

/// A connection through a jump host: the host's end.
pub(crate) struct Tunnel {
    desk: Rc<Desk>,
    ends: Rc<Ends>,
}

impl Tunnel {
    /// Waits until the jump host has connected it.
    pub(super) async fn opened(&self) -> Result<(), NotOpened> {
        std::future::poll_fn(|context| {
            let mut state = self.ends.state.borrow_mut();
            Poll::Ready(match &state.stage {
                Stage::Opening => {
                    state.host = Some(context.waker().clone());
                    return Poll::Pending;
                }
                Stage::Open | Stage::Ended | Stage::Closed => Ok(()),
                Stage::Refused(refusal) => Err(NotOpened::Refused(refusal.clone())),
                Stage::Lost(failure) => Err(NotOpened::Lost(failure.clone())),
            })
        })
        .await
    }

    /// As [`Link::poll_read`](crate::link::Link::poll_read).
    pub(crate) fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<(), Failure>> {
        let mut state = self.ends.state.borrow_mut();
        let read = state.incoming.len().min(buffer.remaining());
        if read == 0 {
            return match &state.stage {
                Stage::Lost(failure) => Poll::Ready(Err(failure.clone())),
                Stage::Opening | Stage::Open => {
                    state.host = Some(context.waker().clone());
                    Poll::Pending
                }
                Stage::Ended | Stage::Closed | Stage::Refused(_) => Poll::Ready(Ok(())),
            };
        }
        let (front, back) = state.incoming.as_slices();
        let split = read.min(front.len());
        buffer.put_slice(&front[..split]);
        buffer.put_slice(&back[..read - split]);
        state.incoming.drain(..read);
        if state.incoming.is_empty() {
            // Idle tunnels own no memory.
            state.incoming = VecDeque::new();
        }
        state.consumed += read;
        drop(state);
        self.desk.add(&self.ends);
        Poll::Ready(Ok(()))
    }

    /// As [`Link::poll_write_ready`](crate::link::Link::poll_write_ready). A tunnel that is lost is ready: writing
    /// tells.
    pub(crate) fn poll_write_ready(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.ends.state.borrow_mut();
        if state.takes_data() && state.outgoing.len() >= MAX_OUTGOING {
            state.host = Some(context.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(())
    }

    /// As [`Link::write`](crate::link::Link::write).
    pub(crate) fn write(&self, octets: &[u8]) -> io::Result<Option<usize>> {
        let mut state = self.ends.state.borrow_mut();
        if !state.takes_data() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let room = MAX_OUTGOING - state.outgoing.len();
        if room == 0 {
            return Ok(None);
        }
        let written = room.min(octets.len());
        state.outgoing.extend(&octets[..written]);
        drop(state);
        self.desk.add(&self.ends);
        Ok(Some(written))
    }
}

impl State {
    /// Whether what is written may still arrive.
    fn takes_data(&self) -> bool {
        matches!(self.stage, Stage::Opening | Stage::Open | Stage::Ended)
    }
}

impl Drop for Tunnel {
    /// What was written is still sent, then the channel is closed.
    fn drop(&mut self) {
        let mut state = self.ends.state.borrow_mut();
        state.abandoned = true;
        state.incoming = VecDeque::new();
        state.host = None;
        drop(state);
        self.desk.add(&self.ends);
    }
}
