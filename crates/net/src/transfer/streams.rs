//! The sessions that unpack archives of small files on a host, beside the SFTP channels.

use std::time::{Duration, Instant};

use sshoal_proto::{
    Command, Connection, ConnectionError, Event, LocalChannel, SessionRequest, Stream,
};
use sshoal_transfer::Upload;

use super::PACKET;
use super::rate::{Rate, granted};

/// How long a host may take to begin a command: start-up files of shells are slow at times. Some hosts never do, and
/// do not say so.
const PATIENCE: Duration = Duration::from_secs(10);

/// A host's streams, in the order of the upload's.
#[derive(Default)]
pub(super) struct Streams {
    each: Vec<Session>,
    /// When those that have not begun are given up.
    give_up: Option<Instant>,
}

struct Session {
    number: LocalChannel,
    started: bool,
    /// Octets that have come and that the server has not been told of.
    owed: usize,
    eof_sent: bool,
}

impl Streams {
    /// Takes what is about a stream; returns whether it is.
    pub(super) fn handle(&mut self, upload: &mut Upload, event: &Event, input: &[u8]) -> bool {
        let (Event::Data { channel, .. }
        | Event::Started(channel)
        | Event::ChannelRefused { channel, .. }
        | Event::StartRefused(channel)
        | Event::Eof(channel)
        | Event::Closed(channel)
        | Event::ExitStatus { channel, .. }
        | Event::ExitSignal { channel, .. }) = event
        else {
            return false;
        };
        let mut sessions = self.each.iter();
        let Some(at) = sessions.position(|session| session.number == *channel) else {
            return false;
        };
        match event {
            Event::Data { stream, range, .. } => {
                self.each[at].owed += range.len();
                // What tar says of a file is found out over SFTP, too, and there it has a name.
                if *stream == Stream::Stdout {
                    upload.handle_stream_input(at, &input[range.clone()]);
                }
            }
            Event::Started(_) => self.each[at].started = true,
            Event::ExitStatus { .. } | Event::ExitSignal { .. } => {}
            _ => {
                self.each[at].eof_sent = true;
                upload.end_stream(at);
            }
        }
        true
    }

    /// Opens streams that are wanted, and gives those up that do not begin.
    pub(super) fn attend(
        &mut self,
        upload: &mut Upload,
        connection: &mut Connection,
        wake: &mut Option<Instant>,
    ) -> Result<(), ConnectionError> {
        let now = Instant::now();
        while upload.wants_stream() {
            let number = connection.open_session(request(upload.stream_command()))?;
            upload.add_stream();
            self.each.push(Session {
                number,
                started: false,
                owed: 0,
                eof_sent: false,
            });
            self.give_up = Some(now + PATIENCE);
        }
        if !upload.awaits_stream() {
            self.give_up = None;
        } else if self.give_up.is_some_and(|by| by <= now) {
            self.give_up = None;
            upload.give_up_streams();
        }
        *wake = wake.iter().copied().chain(self.give_up).min();
        for session in &mut self.each {
            let owed = std::mem::take(&mut session.owed);
            if owed > 0 {
                connection.consumed(session.number, owed)?;
            }
        }
        Ok(())
    }

    /// Gives all of them what there is; returns how many octets.
    pub(super) fn send(
        &mut self,
        upload: &mut Upload,
        connection: &mut Connection,
        rate: Option<&Rate>,
        wake: &mut Option<Instant>,
    ) -> Result<usize, ConnectionError> {
        let mut fed = 0;
        for (at, session) in self.each.iter_mut().enumerate() {
            if session.started && !session.eof_sent {
                fed += session.send(at, upload, connection, rate, wake)?;
            }
        }
        Ok(fed)
    }
}

impl Session {
    /// Sends what fills packets, and at the end the rest.
    fn send(
        &mut self,
        at: usize,
        upload: &mut Upload,
        connection: &mut Connection,
        rate: Option<&Rate>,
        wake: &mut Option<Instant>,
    ) -> Result<usize, ConnectionError> {
        let octets = upload.stream_transmit(at);
        let waiting = match upload.stream_is_about_to_send(at) {
            true => octets.len() / PACKET * PACKET,
            false => octets.len(),
        };
        let mut taken = 0;
        if waiting > 0 {
            let len = granted(rate, waiting, wake);
            taken = connection.send_data(self.number, &octets[..len])?;
            if let Some(rate) = rate {
                rate.give_back(len - taken);
            }
            if taken > 0 {
                upload.stream_transmitted(at, taken);
            }
        }
        if upload.stream_is_complete(at) && upload.stream_transmit(at).is_empty() {
            self.eof_sent = true;
            connection.send_eof(self.number)?;
        }
        Ok(taken)
    }
}

fn request(command: String) -> SessionRequest {
    SessionRequest {
        environment: Vec::new(),
        pty: None,
        command: Command::Exec(command.into_bytes()),
        forward_agent: false,
        standard_input: true,
    }
}
