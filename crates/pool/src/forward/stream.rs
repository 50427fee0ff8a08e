//! What passes between a connection on this side and its channel. Neither is read further than the other takes: the server has
//! its window, this side stops reading.

use std::io;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::timeout;

use super::place::Connected;
use crate::host::Host;
use crate::seat::Seat;

/// How long a server may take to open a channel: longer than its kernel takes to give up a destination that says nothing.
const OPEN_PATIENCE: Duration = Duration::from_secs(180);
/// Octets read at a time.
const READ: usize = 64 * 1024;

/// A seat that is left when its connection is over, however that comes.
pub(super) struct Boarded(pub(super) Rc<Seat>);

impl Drop for Boarded {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// A connection while octets pass.
struct Passing<'a> {
    host: &'a Host,
    seat: &'a Rc<Seat>,
    socket: Connected,
    /// Nobody reads what is written, or nothing more comes.
    is_written: bool,
    /// Nothing more is read.
    is_read: bool,
}

/// Waits until the server has opened the channel; returns whether it has.
pub(super) async fn is_opened(seat: &Seat) -> bool {
    timeout(OPEN_PATIENCE, seat.settled()).await == Ok(true)
}

/// Passes octets both ways until both are at their end, or the channel is gone.
pub(super) async fn pass(host: &Host, seat: &Rc<Seat>, socket: Connected) {
    let mut passing = Passing {
        host,
        seat,
        socket,
        is_written: false,
        is_read: false,
    };
    let mut buffer = vec![0; READ];
    loop {
        passing.deliver();
        let is_closed = {
            let down = seat.down();
            down.is_closed && down.output.is_empty()
        };
        if is_closed || (passing.is_written && passing.is_read && seat.has_sent_all()) {
            return;
        }
        passing.wait(&mut buffer).await;
    }
}

impl Passing<'_> {
    /// Writes what there is room for.
    fn deliver(&mut self) {
        let mut down = self.seat.down();
        let before = down.output.len();
        while let (front @ [_, ..], _) = down.output.as_slices() {
            match self.is_written {
                // Nobody reads it, and the server is not to wait for that.
                true => down.output.clear(),
                false => match self.socket.write(front) {
                    Ok(Some(written)) => drop(down.output.drain(..written)),
                    Ok(None) => break,
                    Err(_) => self.is_written = true,
                },
            }
        }
        let octets = before - down.output.len();
        let ends = down.has_ended && down.output.is_empty();
        drop(down);
        if ends && !self.is_written {
            self.socket.end_of_write();
            self.is_written = true;
        }
        if octets > 0 {
            self.seat.delivered(octets);
            let received = &self.host.entry.counts.received;
            received.fetch_add(octets as u64, Ordering::Relaxed);
        }
    }

    /// Waits until something may have changed, and takes what there is to read.
    async fn wait(&mut self, buffer: &mut [u8]) {
        let has_output = !self.seat.down().output.is_empty();
        let wants_input = !self.is_read && self.seat.wants_input();
        tokio::select! {
            () = self.seat.news.notified() => {}
            ready = self.socket.writable(), if has_output => self.note(&ready),
            ready = self.socket.readable(), if wants_input => {
                self.note(&ready);
                // What cannot be read has ended.
                let read = self.socket.read(buffer).unwrap_or(Some(0));
                if let Some(octets) = read {
                    self.is_read = octets == 0;
                    self.seat.feed(&buffer[..octets]);
                    let sent = &self.host.entry.counts.sent;
                    sent.fetch_add(octets as u64, Ordering::Relaxed);
                }
            }
        }
    }

    /// A socket that cannot be waited for is at its end.
    fn note(&mut self, ready: &io::Result<()>) {
        if ready.is_err() {
            self.is_written = true;
        }
    }
}
