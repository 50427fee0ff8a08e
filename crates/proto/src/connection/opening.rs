//! Opening channels, and the commands that travel ahead of the login: RFC 4254 sections 5.1, 6 and 7.2.

use sshoal_wire::{ChannelOpen, Put, reason};
use zeroize::Zeroizing;

use super::{Connection, Held, Login};
use crate::channels::{Channel, Flow, LocalChannel, MAX_DATA, Purpose, RemoteChannel};
use crate::error::ConnectionError;
use crate::event::Event;
use crate::session::{Position, Progress, SessionRequest};

/// The number that OpenSSH gives its first channel: the lowest free slot (channels.c, `channel_new`).
pub(super) const FIRST_REMOTE_CHANNEL: RemoteChannel = RemoteChannel(0);

// What the caller asks for.
impl Connection {
    /// Opens a session and runs `request` in it. May be called at any time: before login it waits, or
    /// travels with the authentication where that is safe.
    ///
    /// # Errors
    ///
    /// The error that ended the connection; too many channels come as [`Event::ChannelRefused`].
    pub fn open_session(
        &mut self,
        request: SessionRequest,
    ) -> Result<LocalChannel, ConnectionError> {
        self.open(Purpose::Session(Progress::Waiting {
            request: Box::new(request),
            discarded: false,
        }))
    }

    /// Opens a session whose command is not known yet, so that it need not wait for that later. For after the login; the
    /// server counts it among the sessions that it allows.
    ///
    /// # Errors
    ///
    /// The error that ended the connection; too many channels come as [`Event::ChannelRefused`].
    pub fn open_spare_session(&mut self) -> Result<LocalChannel, ConnectionError> {
        self.open(Purpose::Session(Progress::Spare))
    }

    /// Runs `request` in a spare session: at once, or as soon as the server has opened it.
    ///
    /// # Errors
    ///
    /// The error that ended the connection.
    pub fn start_session(
        &mut self,
        channel: LocalChannel,
        request: SessionRequest,
    ) -> Result<(), ConnectionError> {
        self.check()?;
        let Some(open) = self.channels.find(channel) else {
            return Ok(());
        };
        let Purpose::Session(progress @ Progress::Spare) = &mut open.purpose else {
            return Ok(());
        };
        *progress = Progress::Waiting {
            request: Box::new(request),
            discarded: false,
        };
        match open.far {
            Some(far) if open.wanted != Flow::Closed => {
                let result = self.send_start(channel, far.number);
                result.map_err(|error| self.fail(error))
            }
            _ => Ok(()),
        }
    }

    /// Opens a TCP connection from the server to `host:port` (direct-tcpip, RFC 4254 section 7.2). May be
    /// called at any time: before login it waits.
    ///
    /// # Errors
    ///
    /// The error that ended the connection; too many channels come as [`Event::ChannelRefused`].
    pub fn open_direct_tcpip(
        &mut self,
        host: &str,
        port: u16,
    ) -> Result<LocalChannel, ConnectionError> {
        // Where the connection comes from: servers only log it.
        self.open_direct_tcpip_for(host, port, "127.0.0.1", 0)
    }

    /// The same for a connection that comes from `originator`'s port, which servers log.
    ///
    /// # Errors
    ///
    /// The error that ended the connection; too many channels come as [`Event::ChannelRefused`].
    pub fn open_direct_tcpip_for(
        &mut self,
        host: &str,
        port: u16,
        originator: &str,
        originator_port: u16,
    ) -> Result<LocalChannel, ConnectionError> {
        let mut fields = Vec::new();
        fields.put_string(host.as_bytes());
        fields.put_u32(port.into());
        fields.put_string(originator.as_bytes());
        fields.put_u32(originator_port.into());
        self.open(Purpose::Direct(b"direct-tcpip", fields))
    }

    /// Opens a connection from the server to a unix socket there (direct-streamlocal@openssh.com, OpenSSH's PROTOCOL section
    /// 2.4).
    ///
    /// # Errors
    ///
    /// The error that ended the connection; too many channels come as [`Event::ChannelRefused`].
    pub fn open_direct_streamlocal(
        &mut self,
        path: &[u8],
    ) -> Result<LocalChannel, ConnectionError> {
        let mut fields = Vec::new();
        fields.put_string(path);
        fields.put_string(b"");
        fields.put_u32(0);
        self.open(Purpose::Direct(b"direct-streamlocal@openssh.com", fields))
    }

    /// Whether what [`poll_transmit`](Self::poll_transmit) has is, or ends, a command that has not left yet. Whoever keeps a
    /// record of what may have run writes it before those octets.
    pub fn has_queued_command(&self) -> bool {
        let left = self.outgoing.total_left();
        let mut sessions = self.channels.iter().filter_map(Channel::progress);
        sessions.any(|progress| progress.is_queued(left))
    }

    /// The agent is not forwarded after all, for the host is not the one that was meant: sessions that have not been
    /// started do not ask for it. To be said before the login.
    pub fn withhold_agent(&mut self) {
        for (_, channel) in self.channels.iter_mut() {
            if let Purpose::Session(Progress::Waiting { request, .. }) = &mut channel.purpose {
                request.forward_agent = false;
            }
        }
    }

    fn open(&mut self, purpose: Purpose) -> Result<LocalChannel, ConnectionError> {
        self.check()?;
        let channel = Channel::new(self.settings.window, purpose);
        let Some(channel) = self.channels.insert(channel) else {
            self.tell(Event::ChannelRefused {
                channel: LocalChannel::REFUSED,
                reason_code: reason::OPEN_RESOURCE_SHORTAGE,
                description: "too many channels on one connection".to_owned(),
            });
            return Ok(LocalChannel::REFUSED);
        };
        if matches!(self.login, Login::Authenticated) {
            let result = self.send_open(channel);
            result.map_err(|error| self.fail(error))?;
        }
        Ok(channel)
    }
}

// Sending.
impl Connection {
    fn send_open(&mut self, channel: LocalChannel) -> Result<(), ConnectionError> {
        let Some(open) = self.channels.find(channel) else {
            return Ok(());
        };
        open.asked = true;
        let (channel_type, data): (&[u8], _) = match &mut open.purpose {
            Purpose::Session(_) => (b"session", Vec::new()),
            Purpose::Direct(channel_type, fields) => (*channel_type, std::mem::take(fields)),
            // The server's own, and open, or others' to open.
            _ => return Ok(()),
        };
        let message = ChannelOpen {
            channel_type,
            sender_channel: channel.number(),
            initial_window_size: self.settings.window,
            maximum_packet_size: MAX_DATA,
            data: &data,
        };
        self.send(|out| message.encode(out))
    }

    /// Sends the first waiting session's CHANNEL_OPEN and command behind the authentication request.
    pub(super) fn open_session_ahead(&mut self) -> Result<(), ConnectionError> {
        let first = LocalChannel(FIRST_REMOTE_CHANNEL.number());
        let waits = |channel: &Channel| {
            matches!(channel.progress(), Some(Progress::Waiting { .. }))
                && !channel.asked
                && channel.wanted != Flow::Closed
        };
        if !self.channels.look(first).is_some_and(waits) {
            return Ok(());
        }
        self.send_open(first)?;
        self.send_start(first, FIRST_REMOTE_CHANNEL)
    }

    /// Opens what waited for the login.
    pub(super) fn open_waiting_channels(&mut self) -> Result<(), ConnectionError> {
        let waiting: Vec<LocalChannel> = self
            .channels
            .iter_mut()
            .filter(|(_, channel)| !channel.asked && !channel.is_over())
            .map(|(number, _)| number)
            .collect();
        for channel in waiting {
            self.send_open(channel)?;
        }
        Ok(())
    }

    /// Sends a session's requests and its command, and EOF where no standard input will come.
    pub(super) fn send_start(
        &mut self,
        channel: LocalChannel,
        to: RemoteChannel,
    ) -> Result<(), ConnectionError> {
        let Some(open) = self.channels.find(channel) else {
            return Ok(());
        };
        let Purpose::Session(progress) = &mut open.purpose else {
            return Ok(());
        };
        let Some((preparations, start)) = progress.take_off(to) else {
            return Ok(());
        };
        let Progress::InFlight { request, .. } = progress else {
            return Ok(());
        };
        let size = request.size();
        self.forwards_agent |= request.forward_agent;
        if !request.standard_input {
            open.wanted = open.wanted.max(Flow::Eof);
        }
        (open.pty_unanswered, open.start_unanswered) = (request.pty.is_some(), true);
        self.outgoing.reserve(size);
        for message in preparations {
            self.send(|out| out.put_bytes(&message))?;
        }
        self.send_owed_end()?;
        match self.exchange.holds_messages() {
            true => self.held.push(Held {
                message: Zeroizing::new(start),
                starts: Some(channel),
            }),
            false => {
                let sequence = self.outgoing.seal(|out| out.put_bytes(&start))?;
                self.note_start(channel, sequence);
            }
        }
        self.send_end(channel, to)
    }

    /// The message that starts the command of `channel` was sealed just now.
    pub(super) fn note_start(&mut self, channel: LocalChannel, sequence: u32) {
        let end = self.outgoing.end();
        let Some(open) = self.channels.find(channel) else {
            return;
        };
        if let Purpose::Session(Progress::InFlight { sent, .. }) = &mut open.purpose {
            *sent = Some(Position { sequence, end });
        }
    }

    /// The session whose command went ahead of the login, and its packet sequence number.
    pub(super) fn command_in_flight(&mut self) -> Option<(LocalChannel, u32)> {
        self.channels
            .iter_mut()
            .find_map(|(number, channel)| match channel.progress() {
                Some(Progress::InFlight {
                    sent: Some(position),
                    ..
                }) => Some((number, position.sequence)),
                _ => None,
            })
    }

    /// The command of `channel` was proven to be thrown away: it waits again, its channel unasked for.
    pub(super) fn take_back(&mut self, channel: LocalChannel) {
        let window = self.settings.window;
        let Some(open) = self.channels.find(channel) else {
            return;
        };
        let wanted = open.wanted;
        let purpose = std::mem::replace(&mut open.purpose, Purpose::Session(Progress::Refused));
        let purpose = match purpose {
            Purpose::Session(Progress::InFlight { request, .. }) => {
                Purpose::Session(Progress::Waiting {
                    request,
                    discarded: true,
                })
            }
            other => other,
        };
        *open = Channel::new(window, purpose);
        open.wanted = wanted;
        if wanted == Flow::Closed {
            open.end();
            self.tell(Event::Closed(channel));
        }
    }
}
