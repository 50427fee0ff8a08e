//! What the server says about channels: RFC 4254 sections 4 to 6.

use std::ops::Range;

use sshoal_wire::{
    ChannelFailure, ChannelOpen, ChannelOpenConfirmation, ChannelOpenFailure, ChannelRequest,
    Decoder, GlobalRequest, Pong, RequestFailure, reason,
};

use super::Connection;
use super::opening::FIRST_REMOTE_CHANNEL;
use crate::channels::{Channel, Far, Flow, LocalChannel, MAX_DATA, Purpose, RemoteChannel, Stream};
use crate::error::{ConnectionError, Misbehaviour, printable};
use crate::event::Event;
use crate::fate::ExecFate;
use crate::session::Progress;

/// Most channels to the agent that one server may have open.
const MAX_AGENT_CHANNELS: usize = 32;
/// The window of a channel to the agent, octets: more than any usual request.
const AGENT_WINDOW: u32 = 64 * 1024;

impl Connection {
    /// Global requests (keepalive@openssh.com, hostkeys-00@openssh.com): none is served, all are answered.
    pub(super) fn handle_global_request(
        &mut self,
        request: &GlobalRequest<'_>,
    ) -> Result<(), ConnectionError> {
        self.handle_offered_host_keys(request);
        match request.want_reply {
            true => self.reply(|out| RequestFailure.encode(out)),
            false => Ok(()),
        }
    }

    pub(super) fn handle_ping(&mut self, data: &[u8]) -> Result<(), ConnectionError> {
        self.reply(|out| Pong { data }.encode(out))
    }

    /// The only channels that a server may open are to an agent that was forwarded (PROTOCOL.agent; clientloop.c,
    /// client_request_agent), and for places that it was asked to listen at.
    pub(super) fn handle_channel_open(
        &mut self,
        open: &ChannelOpen<'_>,
        payload: Range<usize>,
    ) -> Result<(), ConnectionError> {
        if self.may_be_forwarded(open) {
            return self.handle_forwarded(open, payload);
        }
        match self.accept_agent_channel(open) {
            Ok(number) => {
                let confirmation = ChannelOpenConfirmation {
                    recipient_channel: open.sender_channel,
                    sender_channel: number.number(),
                    initial_window_size: AGENT_WINDOW,
                    maximum_packet_size: MAX_DATA,
                    data: b"",
                };
                self.reply(|out| confirmation.encode(out))?;
                self.tell(Event::AgentChannel(number));
                Ok(())
            }
            Err((reason_code, description)) => {
                let refusal = ChannelOpenFailure {
                    recipient_channel: open.sender_channel,
                    reason_code,
                    description,
                    language_tag: b"",
                };
                self.reply(|out| refusal.encode(out))
            }
        }
    }

    fn accept_agent_channel(
        &mut self,
        open: &ChannelOpen<'_>,
    ) -> Result<LocalChannel, (u32, &'static [u8])> {
        const PROHIBITED: u32 = reason::OPEN_ADMINISTRATIVELY_PROHIBITED;
        if open.channel_type != b"auth-agent@openssh.com" || !self.forwards_agent {
            return Err((PROHIBITED, b"no forwarding was asked for"));
        }
        let too_many = (
            reason::OPEN_RESOURCE_SHORTAGE,
            &b"too many connections to the agent"[..],
        );
        let is_agents = |channel: &Channel| matches!(channel.purpose, Purpose::AuthAgent);
        let channels = self.channels.iter_mut();
        if channels.filter(|(_, channel)| is_agents(channel)).count() >= MAX_AGENT_CHANNELS {
            return Err(too_many);
        }
        let mut channel = Channel::new(AGENT_WINDOW, Purpose::AuthAgent);
        channel.asked = true;
        channel.far = Some(Far {
            number: RemoteChannel(open.sender_channel),
            window: open.initial_window_size,
            max_data: open.maximum_packet_size,
        });
        self.channels.insert(channel).ok_or(too_many)
    }

    pub(super) fn handle_open_confirmation(
        &mut self,
        confirmation: &ChannelOpenConfirmation<'_>,
    ) -> Result<(), ConnectionError> {
        let message = "CHANNEL_OPEN_CONFIRMATION";
        let (number, channel) = self.channel(confirmation.recipient_channel, message)?;
        if !channel.awaits_open() {
            return Err(Misbehaviour::UnaskedReply { message }.into());
        }
        let far = RemoteChannel(confirmation.sender_channel);
        channel.far = Some(Far {
            number: far,
            window: confirmation.initial_window_size,
            max_data: confirmation.maximum_packet_size,
        });
        let starts_now = channel.wanted != Flow::Closed
            && matches!(channel.progress(), Some(Progress::Waiting { .. }));
        let ahead = matches!(channel.progress(), Some(Progress::InFlight { .. }));
        if ahead && far != FIRST_REMOTE_CHANNEL {
            return Err(Misbehaviour::UnguessedChannel {
                number: far.number(),
            }
            .into());
        }
        self.tell(Event::ChannelOpened(number));
        self.offer_room();
        match starts_now {
            true => self.send_start(number, far),
            false => self.send_end(number, far),
        }
    }

    pub(super) fn handle_open_failure(
        &mut self,
        failure: &ChannelOpenFailure<'_>,
    ) -> Result<(), ConnectionError> {
        let message = "CHANNEL_OPEN_FAILURE";
        let (number, channel) = self.channel(failure.recipient_channel, message)?;
        if !channel.awaits_open() {
            return Err(Misbehaviour::UnaskedReply { message }.into());
        }
        if let Purpose::Session(progress) = &mut channel.purpose {
            *progress = Progress::Refused;
        }
        channel.end();
        self.tell(Event::ChannelRefused {
            channel: number,
            reason_code: failure.reason_code,
            description: printable(failure.description),
        });
        Ok(())
    }

    pub(super) fn handle_window_adjust(
        &mut self,
        number: u32,
        bytes_to_add: u32,
    ) -> Result<(), ConnectionError> {
        let (_, channel) = self.open_channel(number, "CHANNEL_WINDOW_ADJUST")?;
        // RFC 4254 section 5.2: "The window MUST NOT be increased above 2^32 - 1 bytes."
        if let Some(far) = &mut channel.far {
            far.window = far
                .window
                .checked_add(bytes_to_add)
                .ok_or(Misbehaviour::WindowOverflow { channel: number })?;
        }
        self.offer_room();
        Ok(())
    }

    /// Data, or extended data of `data_type`. Its octets are the last `len` of the payload.
    pub(super) fn handle_data(
        &mut self,
        number: u32,
        data_type: Option<u32>,
        len: usize,
        payload: Range<usize>,
    ) -> Result<(), ConnectionError> {
        let message = if data_type.is_some() {
            "CHANNEL_EXTENDED_DATA"
        } else {
            "CHANNEL_DATA"
        };
        let (local, channel) = self.open_channel(number, message)?;
        let is_late = channel.receiving != Flow::Open;
        // RFC 4254 section 5.3: EOF is sent "when a party will no longer send more data to a channel". OpenSSH ends the
        // connection for such extended data, and drops other data (channels.c, channel_input_data).
        if is_late && data_type.is_some() {
            return Err(Misbehaviour::AfterEnd {
                message,
                channel: number,
            }
            .into());
        }
        channel.window.take(local, len)?;
        if is_late {
            return self.give_back(local, len, Flow::Eof);
        }
        self.confirm_started(local);
        let stream = match data_type {
            None => Stream::Stdout,
            Some(reason::EXTENDED_DATA_STDERR) => Stream::Stderr,
            // No other type is defined: counted against the window, and given back.
            Some(_) => return self.consumed(local, len),
        };
        if len > 0 {
            self.tell(Event::Data {
                channel: local,
                stream,
                range: payload.end - len..payload.end,
            });
        }
        Ok(())
    }

    pub(super) fn handle_channel_eof(&mut self, number: u32) -> Result<(), ConnectionError> {
        let (local, channel) = self.open_channel(number, "CHANNEL_EOF")?;
        // A second one says nothing new (nchan.c, chan_rcvd_ieof).
        if channel.receiving == Flow::Open {
            channel.receiving = Flow::Eof;
            self.tell(Event::Eof(local));
        }
        Ok(())
    }

    pub(super) fn handle_channel_close(&mut self, number: u32) -> Result<(), ConnectionError> {
        let (local, channel) = self.open_channel(number, "CHANNEL_CLOSE")?;
        channel.receiving = Flow::Closed;
        // RFC 4254 section 5.3: "Upon receiving this message, a party MUST send back an SSH_MSG_CHANNEL_CLOSE
        // unless it has already sent this message for the channel."
        channel.wanted = Flow::Closed;
        let far = channel.far.map(|far| far.number);
        self.tell(Event::Closed(local));
        match far {
            Some(far) if self.may_owe_end(local, far) => Ok(()),
            Some(far) => self.send_end(local, far),
            None => Ok(()),
        }
    }

    pub(super) fn handle_channel_request(
        &mut self,
        request: &ChannelRequest<'_>,
    ) -> Result<(), ConnectionError> {
        let number = request.recipient_channel;
        let (local, channel) = self.open_channel(number, "CHANNEL_REQUEST")?;
        let far = channel.far.map_or(number, |far| far.number.number());
        match request.request_type {
            b"exit-status" => {
                self.confirm_started(local);
                let status = Decoder::named("exit-status", request.data).u32()?;
                self.tell(Event::ExitStatus {
                    channel: local,
                    status,
                });
            }
            b"exit-signal" => {
                self.confirm_started(local);
                let event = exit_signal(local, request.data)?;
                self.tell(event);
            }
            _ => {}
        }
        match request.want_reply {
            true => self.reply(|out| {
                ChannelFailure {
                    recipient_channel: far,
                }
                .encode(out)
            }),
            false => Ok(()),
        }
    }

    /// Answers come in the order of the requests: first to the pseudo-terminal, then to the command, then to signals.
    pub(super) fn handle_channel_success(&mut self, number: u32) -> Result<(), ConnectionError> {
        let message = "CHANNEL_SUCCESS";
        let (local, channel) = self.open_channel(number, message)?;
        if std::mem::take(&mut channel.pty_unanswered) || channel.is_abandoned() {
            return Ok(());
        }
        if answers_signal(channel) {
            self.tell(Event::SignalAnswered {
                channel: local,
                delivered: true,
            });
            return Ok(());
        }
        // Output may have come before the answer.
        if !std::mem::take(&mut channel.start_unanswered)
            || !(self.confirm_started(local) || self.exec_fate(local) == ExecFate::Ran)
        {
            return Err(Misbehaviour::UnaskedReply { message }.into());
        }
        Ok(())
    }

    pub(super) fn handle_channel_failure(&mut self, number: u32) -> Result<(), ConnectionError> {
        let message = "CHANNEL_FAILURE";
        let left = self.outgoing.total_left();
        let (local, channel) = self.open_channel(number, message)?;
        if channel.is_abandoned() {
            return Ok(());
        }
        if std::mem::take(&mut channel.pty_unanswered) {
            self.tell(Event::PtyRefused(local));
            return Ok(());
        }
        if answers_signal(channel) {
            self.tell(Event::SignalAnswered {
                channel: local,
                delivered: false,
            });
            return Ok(());
        }
        channel.start_unanswered = false;
        match &mut channel.purpose {
            Purpose::Session(progress) if progress.fate(left) == ExecFate::MayHaveRun => {
                *progress = Progress::Refused;
                self.tell(Event::StartRefused(local));
                Ok(())
            }
            _ => Err(Misbehaviour::UnaskedReply { message }.into()),
        }
    }

    /// Frees a channel that both sides have closed; its fate is gone with it.
    pub fn forget(&mut self, channel: LocalChannel) {
        if self.channels.look(channel).is_some_and(Channel::is_over) {
            self.channels.remove(channel);
        }
    }

    /// CHANNEL_SUCCESS, output or an exit status proves that the command started; nothing does before all of it
    /// has left. True if it was not known before.
    fn confirm_started(&mut self, local: LocalChannel) -> bool {
        let left = self.outgoing.total_left();
        match self
            .channels
            .find(local)
            .map(|channel| &mut channel.purpose)
        {
            Some(Purpose::Session(progress)) if progress.fate(left) == ExecFate::MayHaveRun => {
                *progress = Progress::Started;
                self.tell(Event::Started(local));
                true
            }
            _ => false,
        }
    }

    fn channel(
        &mut self,
        number: u32,
        message: &'static str,
    ) -> Result<(LocalChannel, &mut Channel), ConnectionError> {
        let local = LocalChannel(number);
        match self.channels.find(local) {
            Some(channel) => Ok((local, channel)),
            None => Err(Misbehaviour::NoSuchChannel { message, number }.into()),
        }
    }

    /// As [`channel`](Self::channel), for messages that only a channel may get that is confirmed and that the
    /// server has not closed.
    fn open_channel(
        &mut self,
        number: u32,
        message: &'static str,
    ) -> Result<(LocalChannel, &mut Channel), ConnectionError> {
        let (local, channel) = self.channel(number, message)?;
        match channel.far {
            // The server has not heard of its number.
            Some(_) if channel.is_offered() => {
                Err(Misbehaviour::NoSuchChannel { message, number }.into())
            }
            None => Err(Misbehaviour::NoSuchChannel { message, number }.into()),
            // RFC 4254 section 5.3: a channel is closed "when it has both sent and received" CLOSE, and
            // nothing comes after it.
            Some(_) if channel.receiving == Flow::Closed => Err(Misbehaviour::AfterEnd {
                message,
                channel: number,
            }
            .into()),
            Some(_) => Ok((local, channel)),
        }
    }
}

/// Whether the next answer is one to a signal; it is taken off.
fn answers_signal(channel: &mut Channel) -> bool {
    if channel.start_unanswered || channel.signals_unanswered == 0 {
        return false;
    }
    channel.signals_unanswered -= 1;
    true
}

/// "exit-signal" (RFC 4254 section 6.10).
fn exit_signal(channel: LocalChannel, data: &[u8]) -> Result<Event, ConnectionError> {
    let mut fields = Decoder::named("exit-signal", data);
    let name = printable(fields.field("signal name").string()?);
    let core_dumped = fields.field("core dumped").boolean()?;
    let message = printable(fields.field("error message").string()?);
    Ok(Event::ExitSignal {
        channel,
        name,
        core_dumped,
        message,
    })
}
