//! The stream under a host's SSH: counts bytes and, where the host is faulty, ends or slows them.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep_until};

use super::behaviour::Behaviour;
use super::fault::{Action, Position};
use super::meter::Meter;

mod latency;
mod packets;
#[cfg(test)]
mod tests;

use latency::Delayed;
use packets::Gate;

/// What russh's server reads and writes.
///
/// A cut in the output acts as soon as its last byte has passed, not when the next one would. A cut
/// in the input acts when the host wants to read on: its answers to what came before have gone out.
#[derive(Debug)]
pub(super) struct HostStream {
    transport: Transport,
    meter: Arc<Meter>,
    output_cut: Option<(Action, Gate)>,
    input_cut: Option<(Action, Gate)>,
    pace: Option<Pace>,
    writes: Flow,
    reads: Flow,
}

#[derive(Debug)]
enum Transport {
    Direct(TcpStream),
    Delayed(Delayed),
}

/// What becomes of the bytes of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    Open,
    /// Lost, while russh believes that they went, or none came.
    Lost,
    /// The connection is reset.
    Reset,
}

impl HostStream {
    pub(super) fn new(tcp: TcpStream, behaviour: &Behaviour, meter: Arc<Meter>) -> HostStream {
        let transport = if behaviour.latency.is_zero() {
            Transport::Direct(tcp)
        } else {
            Transport::Delayed(Delayed::new(tcp, behaviour.latency))
        };
        let gate = |(action, at): (Action, Position)| (action, Gate::new(at));
        HostStream {
            transport,
            meter,
            output_cut: behaviour.output_cut.map(gate),
            input_cut: behaviour.input_cut.map(gate),
            pace: behaviour.output_rate.map(Pace::new),
            writes: Flow::Open,
            reads: Flow::Open,
        }
    }

    fn act_on_output_cut(&mut self, cx: &mut Context<'_>) {
        let (passed, login) = (self.meter.output(), self.meter.output_at_login());
        let reached = |(_, gate): &mut (Action, Gate)| gate.is_reached(passed, login);
        if let Some((action, _)) = self.output_cut.take_if(reached) {
            self.end(action, cx);
            if action == Action::Silence {
                self.writes = Flow::Lost;
            }
        }
    }

    fn act_on_input_cut(&mut self, cx: &mut Context<'_>) {
        let (passed, login) = (self.meter.input(), self.meter.input_at_login());
        let reached = |(_, gate): &mut (Action, Gate)| gate.is_reached(passed, login);
        if let Some((action, _)) = self.input_cut.take_if(reached) {
            self.end(action, cx);
            if action == Action::Silence {
                self.reads = Flow::Lost;
            }
        }
    }

    fn end(&mut self, action: Action, cx: &mut Context<'_>) {
        match action {
            Action::Reset => {
                self.transport.reset();
                self.writes = Flow::Reset;
                self.reads = Flow::Reset;
            }
            Action::Close => {
                // shutdown(2) does not block; an error means that the client has gone already.
                let _ = self.transport.poll_shutdown(cx);
                self.writes = Flow::Lost;
                self.reads = Flow::Lost;
            }
            Action::Silence => {}
        }
    }

    fn write_open(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut admitted = bytes.len();
        if let Some((_, gate)) = &self.output_cut {
            admitted = gate.admits(bytes, self.meter.output(), self.meter.output_at_login());
        }
        if let Some(pace) = &mut self.pace
            && self.meter.output_at_login().is_some()
        {
            admitted = admitted.min(ready!(pace.poll_allowance(cx)));
        }
        let written = ready!(self.transport.poll_write(cx, &bytes[..admitted]))?;
        self.meter.add_output(written);
        if let Some((_, gate)) = &mut self.output_cut {
            gate.pass(&bytes[..written]);
        }
        if let Some(pace) = &mut self.pace {
            pace.spent(written);
        }
        Poll::Ready(Ok(written))
    }

    /// Reads, hands on what the cut admits, and loses the rest.
    fn read_open(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(self.transport.poll_read(cx, buf))?;
        let fresh = &buf.filled()[before..];
        let mut admitted = fresh.len();
        if let Some((_, gate)) = &mut self.input_cut {
            admitted = gate.admits(fresh, self.meter.input(), self.meter.input_at_login());
            gate.pass(&fresh[..admitted]);
        }
        self.meter.add_input(admitted);
        buf.set_filled(before + admitted);
        Poll::Ready(Ok(()))
    }

    /// Reads and loses everything. Ready at the end of the stream.
    fn read_lost(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut space = [0; 4096];
        loop {
            let mut lost = ReadBuf::new(&mut space);
            ready!(self.transport.poll_read(cx, &mut lost))?;
            if lost.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl AsyncRead for HostStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.act_on_input_cut(cx);
        match this.reads {
            Flow::Open => this.read_open(cx, buf),
            Flow::Lost => this.read_lost(cx),
            Flow::Reset => Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
        }
    }
}

impl AsyncWrite for HostStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.act_on_output_cut(cx);
        match this.writes {
            Flow::Open => {
                let written = ready!(this.write_open(cx, bytes));
                this.act_on_output_cut(cx);
                Poll::Ready(written)
            }
            Flow::Lost => Poll::Ready(Ok(bytes.len())),
            Flow::Reset => Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.writes {
            Flow::Reset => Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
            Flow::Open | Flow::Lost => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        match this.writes {
            Flow::Open => this.transport.poll_shutdown(cx),
            Flow::Lost | Flow::Reset => Poll::Ready(Ok(())),
        }
    }
}

impl Transport {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self {
            Transport::Direct(tcp) => Pin::new(tcp).poll_read(cx, buf),
            Transport::Delayed(delayed) => delayed.poll_read(cx, buf),
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            Transport::Direct(tcp) => Pin::new(tcp).poll_write(cx, bytes),
            Transport::Delayed(delayed) => delayed.poll_write(cx, bytes),
        }
    }

    fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Transport::Direct(tcp) => Pin::new(tcp).poll_shutdown(cx),
            Transport::Delayed(delayed) => {
                delayed.close();
                Poll::Ready(Ok(()))
            }
        }
    }

    /// Makes the close that follows (russh drops the stream at the next error) an RST.
    fn reset(&mut self) {
        match self {
            // Fails only on a socket that is closed already.
            Transport::Direct(tcp) => drop(tcp.set_zero_linger()),
            Transport::Delayed(delayed) => delayed.reset(),
        }
    }
}

/// So many bytes a second, in small steps.
#[derive(Debug)]
struct Pace {
    bytes_per_second: u64,
    next: Pin<Box<Sleep>>,
}

/// Steps a second, where the rate is high enough for it.
const STEPS: u64 = 20;

impl Pace {
    fn new(bytes_per_second: u64) -> Pace {
        Pace {
            bytes_per_second,
            next: Box::pin(sleep_until(Instant::now())),
        }
    }

    fn poll_allowance(&mut self, cx: &mut Context<'_>) -> Poll<usize> {
        ready!(self.next.as_mut().poll(cx));
        let step = (self.bytes_per_second / STEPS).max(1);
        Poll::Ready(usize::try_from(step).unwrap_or(usize::MAX))
    }

    fn spent(&mut self, bytes: usize) {
        let took = Duration::from_secs_f64(bytes as f64 / self.bytes_per_second as f64);
        self.next.as_mut().reset(Instant::now() + took);
    }
}
