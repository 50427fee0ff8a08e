//! What the caller does with channels: open, send, acknowledge, signal, close. RFC 4254 sections 5 to 7.

use sshoal_wire::{ChannelClose, ChannelData, ChannelEof, ChannelOpen, ChannelWindowAdjust, Put};
use zeroize::Zeroizing;

use super::{Connection, Held, Login};
use crate::channels::{Channel, Flow, LocalChannel, MAX_DATA, RemoteChannel};
use crate::error::ConnectionError;
use crate::event::Event;
use crate::fate::ExecFate;
use crate::session::{Position, Progress, SessionRequest, request};

/// The number that OpenSSH gives its first channel: the lowest free slot (channels.c, channel_new).
const FIRST_REMOTE_CHANNEL: RemoteChannel = RemoteChannel(0);
/// Octets of a data message beside its data: number, channel, length, header, padding and tag.
const DATA_OVERHEAD: usize = 128;
/// Most octets queued for the server before [`Connection::send_data`] takes no more.
const MAX_QUEUED: usize = 256 * 1024;
/// RFC 4254 section 5.1: no channel could be given a number.
const RESOURCE_SHORTAGE: u32 = 4;

/// What a channel is opened for, as CHANNEL_OPEN names it.
struct Kind<'a> {
    name: &'a [u8],
    data: &'a [u8],
}

const SESSION: Kind<'static> = Kind {
    name: b"session",
    data: b"",
};

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
        self.check()?;
        let progress = Progress::Waiting {
            request: Box::new(request),
            discarded: false,
        };
        let channel = self.add_channel(Channel::new(self.settings.window, Some(progress)));
        if matches!(self.login, Login::Authenticated) {
            let result = self.send_open(channel, SESSION);
            result.map_err(|error| self.fail(error))?;
        }
        Ok(channel)
    }

    /// Opens a TCP connection from the server to `host:port` (direct-tcpip, RFC 4254 section 7.2).
    /// Only once logged in.
    ///
    /// # Errors
    ///
    /// The error that ended the connection.
    pub fn open_direct_tcpip(
        &mut self,
        host: &str,
        port: u16,
    ) -> Result<LocalChannel, ConnectionError> {
        self.check()?;
        let channel = self.add_channel(Channel::new(self.settings.window, None));
        let mut data = Vec::new();
        data.put_string(host.as_bytes());
        data.put_u32(port.into());
        // Where the connection comes from: servers only log it.
        data.put_string(b"127.0.0.1");
        data.put_u32(0);
        let result = self.send_open(
            channel,
            Kind {
                name: b"direct-tcpip",
                data: &data,
            },
        );
        result.map_err(|error| self.fail(error))?;
        Ok(channel)
    }

    /// What is known about the command of `channel`; `NotSent` for a channel that never was.
    pub fn exec_fate(&self, channel: LocalChannel) -> ExecFate {
        let progress = self
            .channels
            .look(channel)
            .and_then(|channel| channel.session.as_ref());
        progress.map_or(ExecFate::NotSent, |progress| {
            progress.fate(self.outgoing.total_left())
        })
    }

    /// Sends data on a channel; returns how many octets were taken. If not all were, an
    /// [`Event::Writable`] follows when there is room again.
    ///
    /// # Errors
    ///
    /// The error that ended the connection.
    pub fn send_data(
        &mut self,
        channel: LocalChannel,
        data: &[u8],
    ) -> Result<usize, ConnectionError> {
        self.check()?;
        let mut taken = 0;
        while taken < data.len() {
            let room = self.room(channel);
            let Some(open) = self.channels.find(channel) else {
                break;
            };
            if room == 0 {
                open.waits_for_room = true;
                break;
            }
            let Some(far) = &mut open.far else { break };
            let octets = room.min(data.len() - taken);
            far.window -= octets as u32;
            let recipient_channel = far.number.number();
            let data = &data[taken..taken + octets];
            self.outgoing.reserve(octets + DATA_OVERHEAD);
            let sealed = self.outgoing.seal(|out| {
                ChannelData {
                    recipient_channel,
                    data,
                }
                .encode(out)
            });
            sealed.map_err(|error| self.fail(error.into()))?;
            taken += octets;
        }
        Ok(taken)
    }

    /// Octets that [`send_data`](Self::send_data) would take in one message now.
    fn room(&self, channel: LocalChannel) -> usize {
        let Some(Channel {
            far: Some(far),
            sending: Flow::Open,
            ..
        }) = self.channels.look(channel)
        else {
            return 0;
        };
        if self.exchange.holds_messages() || self.outgoing.pending().len() >= MAX_QUEUED {
            return 0;
        }
        far.window.min(far.max_data).min(MAX_DATA) as usize
    }

    /// Tells waiting callers that they may send again.
    pub(super) fn offer_room(&mut self) {
        let mut offered = Vec::new();
        for (number, channel) in self.channels.iter_mut() {
            let room = channel.far.is_some_and(|far| far.window > 0);
            if channel.waits_for_room && room {
                channel.waits_for_room = false;
                offered.push(number);
            }
        }
        self.events.extend(offered.into_iter().map(Event::Writable));
    }

    /// No more data will be sent on this channel (CHANNEL_EOF).
    ///
    /// # Errors
    ///
    /// The error that ended the connection.
    pub fn send_eof(&mut self, channel: LocalChannel) -> Result<(), ConnectionError> {
        self.check()?;
        let Some(open) = self.channels.find(channel) else {
            return Ok(());
        };
        let (Some(far), Flow::Open) = (open.far, open.sending) else {
            return Ok(());
        };
        open.sending = Flow::Eof;
        let recipient_channel = far.number.number();
        self.send(|out| ChannelEof { recipient_channel }.encode(out))
            .map_err(|error| self.fail(error))
    }

    /// The caller is done with `octets` of received data: the server may send more.
    ///
    /// # Errors
    ///
    /// The error that ended the connection.
    pub fn consumed(
        &mut self,
        channel: LocalChannel,
        octets: usize,
    ) -> Result<(), ConnectionError> {
        self.check()?;
        let Some(open) = self.channels.find(channel) else {
            return Ok(());
        };
        let Some(bytes_to_add) = open.window.consumed(octets) else {
            return Ok(());
        };
        let (Some(far), Flow::Open) = (open.far, open.receiving) else {
            return Ok(());
        };
        let recipient_channel = far.number.number();
        let message = ChannelWindowAdjust {
            recipient_channel,
            bytes_to_add,
        };
        self.send(|out| message.encode(out))
            .map_err(|error| self.fail(error))
    }

    /// Asks the server to signal the command (RFC 4254 section 6.9). OpenSSH does not answer, and ignores
    /// it for forced commands and before 7.9.
    ///
    /// # Errors
    ///
    /// The error that ended the connection.
    pub fn signal(&mut self, channel: LocalChannel, name: &str) -> Result<(), ConnectionError> {
        let mut data = Vec::new();
        data.put_string(name.as_bytes());
        self.channel_request(channel, "signal", &data)
    }

    /// The terminal has another size (RFC 4254 section 6.7).
    ///
    /// # Errors
    ///
    /// The error that ended the connection.
    pub fn change_window(
        &mut self,
        channel: LocalChannel,
        columns: u32,
        rows: u32,
    ) -> Result<(), ConnectionError> {
        let mut data = Vec::new();
        for number in [columns, rows, 0, 0] {
            data.put_u32(number);
        }
        self.channel_request(channel, "window-change", &data)
    }

    fn channel_request(
        &mut self,
        channel: LocalChannel,
        name: &str,
        data: &[u8],
    ) -> Result<(), ConnectionError> {
        self.check()?;
        let Some(Channel { far: Some(far), .. }) = self.channels.look(channel) else {
            return Ok(());
        };
        let message = request(far.number, name, false, data);
        self.send(|out| out.put_bytes(&message))
            .map_err(|error| self.fail(error))
    }

    /// Closes a channel (CHANNEL_CLOSE). [`Event::Closed`] follows when the server has closed it too.
    ///
    /// # Errors
    ///
    /// The error that ended the connection.
    pub fn close(&mut self, channel: LocalChannel) -> Result<(), ConnectionError> {
        self.check()?;
        let Some(open) = self.channels.find(channel) else {
            return Ok(());
        };
        if open.sending == Flow::Closed {
            return Ok(());
        }
        let Some(far) = open.far else { return Ok(()) };
        open.sending = Flow::Closed;
        let recipient_channel = far.number.number();
        self.send(|out| ChannelClose { recipient_channel }.encode(out))
            .map_err(|error| self.fail(error))
    }
}

// Opening, and the commands that travel ahead.
impl Connection {
    fn add_channel(&mut self, channel: Channel) -> LocalChannel {
        self.channels.insert(channel).unwrap_or_else(|| {
            let refused = LocalChannel(u32::MAX);
            self.tell(Event::ChannelRefused {
                channel: refused,
                reason_code: RESOURCE_SHORTAGE,
                description: "too many channels on one connection".to_owned(),
            });
            refused
        })
    }

    fn send_open(&mut self, channel: LocalChannel, kind: Kind<'_>) -> Result<(), ConnectionError> {
        let Some(open) = self.channels.find(channel) else {
            return Ok(());
        };
        open.asked = true;
        let message = ChannelOpen {
            channel_type: kind.name,
            sender_channel: channel.number(),
            initial_window_size: self.settings.window,
            maximum_packet_size: MAX_DATA,
            data: kind.data,
        };
        self.send(|out| message.encode(out))
    }

    /// Sends the first waiting session's CHANNEL_OPEN and command behind the authentication request.
    pub(super) fn open_session_ahead(&mut self) -> Result<(), ConnectionError> {
        let first = LocalChannel(FIRST_REMOTE_CHANNEL.number());
        let waiting = |channel: &Channel| {
            matches!(channel.session, Some(Progress::Waiting { .. })) && !channel.asked
        };
        if !self.channels.look(first).is_some_and(waiting) {
            return Ok(());
        }
        self.send_open(first, SESSION)?;
        self.send_start(first, FIRST_REMOTE_CHANNEL)
    }

    /// Opens what waited for the login.
    pub(super) fn open_waiting_channels(&mut self) -> Result<(), ConnectionError> {
        let waiting: Vec<LocalChannel> = self
            .channels
            .iter_mut()
            .filter(|(_, channel)| !channel.asked)
            .map(|(number, _)| number)
            .collect();
        for channel in waiting {
            self.send_open(channel, SESSION)?;
        }
        Ok(())
    }

    /// Sends a session's requests and its command.
    pub(super) fn send_start(
        &mut self,
        channel: LocalChannel,
        to: RemoteChannel,
    ) -> Result<(), ConnectionError> {
        let Some(open) = self.channels.find(channel) else {
            return Ok(());
        };
        let Some(Progress::Waiting { request, .. }) = open.session.take() else {
            return Ok(());
        };
        open.pty_unanswered = request.pty.is_some();
        if !request.standard_input {
            open.sending = Flow::Eof;
        }
        let (preparations, start, afterwards) = (
            request.preparations(to),
            request.start(to),
            request.afterwards(to),
        );
        let size = request.size();
        open.session = Some(Progress::InFlight {
            request,
            sent: None,
        });
        self.outgoing.reserve(size);
        for message in preparations {
            self.send(|out| out.put_bytes(&message))?;
        }
        match self.exchange.holds_messages() {
            true => self.hold(Held {
                message: Zeroizing::new(start),
                starts: Some(channel),
            })?,
            false => {
                let sequence = self.outgoing.seal(|out| out.put_bytes(&start))?;
                self.note_start(channel, sequence);
            }
        }
        match afterwards {
            Some(message) => self.send(|out| out.put_bytes(&message)),
            None => Ok(()),
        }
    }

    /// The message that starts the command of `channel` was sealed just now.
    pub(super) fn note_start(&mut self, channel: LocalChannel, sequence: u32) {
        let end = self.outgoing.end();
        if let Some(Channel {
            session: Some(Progress::InFlight { sent, .. }),
            ..
        }) = self.channels.find(channel)
        {
            *sent = Some(Position { sequence, end });
        }
    }

    /// The session whose command went ahead of the login, and its packet sequence number.
    pub(super) fn command_in_flight(&mut self) -> Option<(LocalChannel, u32)> {
        self.channels
            .iter_mut()
            .find_map(|(number, channel)| match &channel.session {
                Some(Progress::InFlight {
                    sent: Some(position),
                    ..
                }) => Some((number, position.sequence)),
                _ => None,
            })
    }

    /// The command of `channel` was proven to be thrown away: it waits again, its channel unasked for.
    pub(super) fn take_back(&mut self, channel: LocalChannel) {
        let Some(open) = self.channels.find(channel) else {
            return;
        };
        if let Some(Progress::InFlight { request, .. }) = open.session.take() {
            *open = Channel::new(
                self.settings.window,
                Some(Progress::Waiting {
                    request,
                    discarded: true,
                }),
            );
        }
    }
}
