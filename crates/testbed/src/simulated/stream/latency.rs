//! A TCP stream whose two directions are late by a fixed time.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, Sleep, sleep_until};

/// Bytes under way in one direction, beyond which that direction waits: 4 MiB at 100 ms is 40 MB/s.
const UNDER_WAY_MAX: usize = 4 << 20;
/// Bytes read from the socket at once.
const READ_SIZE: usize = 16 << 10;

/// Delays what it reads itself, and what it writes by a task that outlives it, so that the last bytes
/// before a close arrive, late, too.
#[derive(Debug)]
pub(super) struct Delayed {
    latency: Duration,
    socket: OwnedReadHalf,
    arrived: VecDeque<(Instant, Bytes)>,
    arrived_bytes: usize,
    /// When the end of the stream is due, and the error that ended it, until it has been told.
    ended: Option<(Instant, Option<io::Error>)>,
    timer: Pin<Box<Sleep>>,
    outgoing: UnboundedSender<(Instant, Departure)>,
    under_way: Arc<UnderWay>,
}

#[derive(Debug)]
enum Departure {
    Bytes(Bytes),
    Close,
    Reset,
}

impl Delayed {
    pub(super) fn new(tcp: TcpStream, latency: Duration) -> Delayed {
        let (socket, writer) = tcp.into_split();
        let (outgoing, departures) = unbounded_channel();
        let under_way = Arc::new(UnderWay::default());
        tokio::spawn(depart(writer, departures, Arc::clone(&under_way)));
        Delayed {
            latency,
            socket,
            arrived: VecDeque::new(),
            arrived_bytes: 0,
            ended: None,
            timer: Box::pin(sleep_until(Instant::now())),
            outgoing,
            under_way,
        }
    }

    pub(super) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.take_in(cx);
        let end = self.ended.as_ref().map(|(due, _)| *due);
        let Some(due) = self.arrived.front().map(|(due, _)| *due).or(end) else {
            return Poll::Pending;
        };
        if due > Instant::now() {
            self.timer.as_mut().reset(due);
            ready!(self.timer.as_mut().poll(cx));
        }
        let Some((_, bytes)) = self.arrived.front_mut() else {
            let error = self.ended.as_mut().and_then(|(_, error)| error.take());
            return Poll::Ready(error.map_or(Ok(()), Err));
        };
        let taken = bytes.len().min(buf.remaining());
        buf.put_slice(&bytes[..taken]);
        bytes.advance(taken);
        if bytes.is_empty() {
            self.arrived.pop_front();
        }
        self.arrived_bytes -= taken;
        Poll::Ready(Ok(()))
    }

    /// Reads what has come to the socket and notes when it is due.
    fn take_in(&mut self, cx: &mut Context<'_>) {
        while self.ended.is_none() && self.arrived_bytes < UNDER_WAY_MAX {
            let mut space = [0; READ_SIZE];
            let mut fresh = ReadBuf::new(&mut space);
            match Pin::new(&mut self.socket).poll_read(cx, &mut fresh) {
                Poll::Pending => return,
                Poll::Ready(Err(error)) => self.ended = Some((Instant::now(), Some(error))),
                Poll::Ready(Ok(())) if fresh.filled().is_empty() => {
                    self.ended = Some((Instant::now() + self.latency, None));
                }
                Poll::Ready(Ok(())) => {
                    let bytes = Bytes::copy_from_slice(fresh.filled());
                    self.arrived_bytes += bytes.len();
                    self.arrived
                        .push_back((Instant::now() + self.latency, bytes));
                }
            }
        }
    }

    pub(super) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.under_way.poll_room(cx));
        let taken = bytes.len().min(UNDER_WAY_MAX);
        self.under_way.add(taken);
        self.send(Departure::Bytes(Bytes::copy_from_slice(&bytes[..taken])))?;
        Poll::Ready(Ok(taken))
    }

    pub(super) fn close(&mut self) {
        // Refused only if the socket has failed, and then it is closed.
        let _ = self.send(Departure::Close);
    }

    pub(super) fn reset(&mut self) {
        let _ = self.send(Departure::Reset);
    }

    fn send(&self, departure: Departure) -> io::Result<()> {
        self.outgoing
            .send((Instant::now() + self.latency, departure))
            .map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

/// Writes each departure when it is due. Ends with the socket or when [`Delayed`] is gone and all
/// that it sent has left.
async fn depart(
    mut socket: OwnedWriteHalf,
    mut departures: UnboundedReceiver<(Instant, Departure)>,
    under_way: Arc<UnderWay>,
) {
    while let Some((due, departure)) = departures.recv().await {
        sleep_until(due).await;
        match departure {
            Departure::Bytes(bytes) => {
                if socket.write_all(&bytes).await.is_err() {
                    break;
                }
                under_way.subtract(bytes.len());
            }
            Departure::Close => {
                // A socket that cannot be shut down is closed.
                let _ = socket.shutdown().await;
            }
            Departure::Reset => {
                // With the other half gone, dropping this one closes the socket, by RST.
                let _ = socket.as_ref().set_zero_linger();
                socket.forget();
                break;
            }
        }
    }
    under_way.clear();
}

/// How much is on its way out.
#[derive(Debug, Default)]
struct UnderWay(Mutex<(usize, Option<Waker>)>);

impl UnderWay {
    fn poll_room(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.0 < UNDER_WAY_MAX {
            return Poll::Ready(());
        }
        state.1 = Some(cx.waker().clone());
        Poll::Pending
    }

    fn add(&self, bytes: usize) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0 += bytes;
    }

    fn subtract(&self, bytes: usize) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.0 -= bytes;
        state.1.take().map(Waker::wake).unwrap_or_default();
    }

    /// Nothing leaves any more: lets a waiting writer find out.
    fn clear(&self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.0 = 0;
        state.1.take().map(Waker::wake).unwrap_or_default();
    }
}
