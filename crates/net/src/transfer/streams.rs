//! The sessions that unpack archives of small files on a host, or make them, beside the SFTP channels.

use std::time::Instant;

use sshoal_proto::{Connection, ConnectionError, Event, LocalChannel, Stream};

use super::PACKET;
use super::batches::Batches;
use super::beside::{self, PATIENCE};
use super::rate::{Rate, granted};

/// A host's streams, in the order of the transfer's.
#[derive(Default)]
pub(super) struct Streams {
    each: Vec<Session>,
    /// Channels whose numbers may be had again.
    closed: Vec<LocalChannel>,
    /// When those that have not begun are given up.
    give_up: Option<Instant>,
}

struct Session {
    /// None once it is closed.
    number: Option<LocalChannel>,
    started: bool,
    /// Octets that have come and that the server has not been told of.
    owed: usize,
    eof_sent: bool,
}

impl Streams {
    /// Takes what is about a stream; returns whether it is.
    pub(super) fn handle(
        &mut self,
        batches: &mut dyn Batches,
        event: &Event,
        input: &[u8],
    ) -> bool {
        let Some(channel) = beside::channel(event) else {
            return false;
        };
        let mut sessions = self.each.iter();
        let Some(at) = sessions.position(|session| session.number == Some(channel)) else {
            return false;
        };
        match event {
            Event::Data { stream, range, .. } => {
                self.each[at].owed += range.len();
                // What tar says of a file is found out over SFTP, too, and there it has a name.
                if *stream == Stream::Stdout {
                    batches.handle_stream_input(at, &input[range.clone()]);
                }
            }
            Event::Started(_) => self.each[at].started = true,
            Event::ExitStatus { status, .. } => batches.stream_exited(at, Some(*status)),
            Event::ExitSignal { .. } => batches.stream_exited(at, None),
            Event::Eof(_) => {
                self.each[at].eof_sent = true;
                batches.end_stream_input(at);
            }
            _ => {
                self.each[at].eof_sent = true;
                if matches!(event, Event::Closed(_)) {
                    self.closed.extend(self.each[at].number.take());
                }
                batches.end_stream(at);
            }
        }
        true
    }

    /// Opens streams that are wanted, gives those up that do not begin, and tells the host what has been taken.
    pub(super) fn attend(
        &mut self,
        batches: &mut dyn Batches,
        connection: &mut Connection,
        rate: Option<&Rate>,
        wake: &mut Option<Instant>,
    ) -> Result<(), ConnectionError> {
        for channel in self.closed.drain(..) {
            connection.forget(channel);
        }
        let now = Instant::now();
        while batches.wants_stream() {
            let number = connection.open_session(beside::request(batches.stream_command()))?;
            batches.add_stream();
            self.each.push(Session {
                number: Some(number),
                started: false,
                owed: 0,
                eof_sent: false,
            });
            self.give_up = Some(now + PATIENCE);
        }
        if !batches.awaits_stream() {
            self.give_up = None;
        } else if self.give_up.is_some_and(|by| by <= now) {
            self.give_up = None;
            batches.give_up_streams();
        }
        *wake = wake.iter().copied().chain(self.give_up).min();
        for (at, session) in self.each.iter_mut().enumerate() {
            let waiting = session.owed.saturating_sub(batches.stream_holds(at));
            let Some(number) = session.number.filter(|_| waiting > 0) else {
                continue;
            };
            let octets = granted(rate, waiting, wake);
            if octets > 0 {
                session.owed -= octets;
                connection.consumed(number, octets)?;
            }
        }
        Ok(())
    }

    /// Gives all of them what there is; returns how many octets.
    pub(super) fn send(
        &mut self,
        batches: &mut dyn Batches,
        connection: &mut Connection,
        rate: Option<&Rate>,
        wake: &mut Option<Instant>,
    ) -> Result<usize, ConnectionError> {
        let mut fed = 0;
        for (at, session) in self.each.iter_mut().enumerate() {
            if let Some(number) = session
                .number
                .filter(|_| session.started && !session.eof_sent)
            {
                fed += session.send((at, number), batches, connection, rate, wake)?;
            }
        }
        Ok(fed)
    }
}

impl Session {
    /// Sends what fills packets, and at the end the rest.
    fn send(
        &mut self,
        (at, number): (usize, LocalChannel),
        batches: &mut dyn Batches,
        connection: &mut Connection,
        rate: Option<&Rate>,
        wake: &mut Option<Instant>,
    ) -> Result<usize, ConnectionError> {
        let octets = batches.stream_transmit(at);
        let waiting = match batches.stream_is_about_to_send(at) {
            true => octets.len() / PACKET * PACKET,
            false => octets.len(),
        };
        let mut taken = 0;
        if waiting > 0 {
            let len = granted(rate, waiting, wake);
            taken = connection.send_data(number, &octets[..len])?;
            if let Some(rate) = rate {
                rate.give_back(len - taken);
            }
            if taken > 0 {
                batches.stream_transmitted(at, taken);
            }
        }
        if batches.stream_is_complete(at) && batches.stream_transmit(at).is_empty() {
            self.eof_sent = true;
            connection.send_eof(number)?;
        }
        Ok(taken)
    }
}
