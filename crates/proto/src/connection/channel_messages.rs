//! What the server says about channels: RFC 4254 sections 4 to 6.

use std::ops::Range;

use sshoal_wire::{
    ChannelClose, ChannelOpenConfirmation, ChannelOpenFailure, ChannelRequest, Decoder, Pong,
    RequestFailure, reason,
};

use super::Connection;
use crate::channels::{Channel, Far, Flow, LocalChannel, RemoteChannel, Stream};
use crate::error::{ConnectionError, Misbehaviour, printable};
use crate::event::Event;
use crate::session::Progress;

impl Connection {
    /// Global requests (keepalive@openssh.com, hostkeys-00@openssh.com): none is served, all are answered.
    pub(super) fn handle_global_request(
        &mut self,
        want_reply: bool,
    ) -> Result<(), ConnectionError> {
        match want_reply {
            true => self.send(|out| RequestFailure.encode(out)),
            false => Ok(()),
        }
    }

    pub(super) fn handle_ping(&mut self, data: &[u8]) -> Result<(), ConnectionError> {
        self.send(|out| Pong { data }.encode(out))
    }

    /// No channel from the server is wanted: forwards are not offered.
    pub(super) fn handle_channel_open(
        &mut self,
        sender_channel: u32,
    ) -> Result<(), ConnectionError> {
        let refusal = ChannelOpenFailure {
            recipient_channel: sender_channel,
            reason_code: reason::OPEN_ADMINISTRATIVELY_PROHIBITED,
            description: b"no forwarding was asked for",
            language_tag: b"",
        };
        self.send(|out| refusal.encode(out))
    }

    pub(super) fn handle_open_confirmation(
        &mut self,
        confirmation: &ChannelOpenConfirmation<'_>,
    ) -> Result<(), ConnectionError> {
        let message = "CHANNEL_OPEN_CONFIRMATION";
        let (number, channel) = self.channel(confirmation.recipient_channel, message)?;
        if !channel.asked || channel.far.is_some() {
            return Err(Misbehaviour::UnaskedReply { message }.into());
        }
        let far = RemoteChannel(confirmation.sender_channel);
        channel.far = Some(Far {
            number: far,
            window: confirmation.initial_window_size,
            max_data: confirmation.maximum_packet_size,
        });
        let ahead = matches!(channel.session, Some(Progress::InFlight { .. }));
        if ahead && far != RemoteChannel(0) {
            return Err(Misbehaviour::UnguessedChannel {
                number: far.number(),
            }
            .into());
        }
        let starts_now = matches!(channel.session, Some(Progress::Waiting { .. }));
        self.tell(Event::ChannelOpened(number));
        match starts_now {
            true => self.send_start(number, far),
            false => Ok(()),
        }
    }

    pub(super) fn handle_open_failure(
        &mut self,
        failure: &ChannelOpenFailure<'_>,
    ) -> Result<(), ConnectionError> {
        let message = "CHANNEL_OPEN_FAILURE";
        let (number, channel) = self.channel(failure.recipient_channel, message)?;
        if !channel.asked || channel.far.is_some() {
            return Err(Misbehaviour::UnaskedReply { message }.into());
        }
        if let Some(progress) = &mut channel.session {
            *progress = Progress::Refused;
        }
        (channel.sending, channel.receiving) = (Flow::Closed, Flow::Closed);
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
        let (_, channel) = self.channel(number, "CHANNEL_WINDOW_ADJUST")?;
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
        if channel.receiving != Flow::Open {
            return Err(Misbehaviour::AfterEnd {
                message,
                channel: number,
            }
            .into());
        }
        channel.window.take(local, len)?;
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
        if channel.receiving != Flow::Open {
            return Err(Misbehaviour::AfterEnd {
                message: "CHANNEL_EOF",
                channel: number,
            }
            .into());
        }
        channel.receiving = Flow::Eof;
        self.tell(Event::Eof(local));
        Ok(())
    }

    pub(super) fn handle_channel_close(&mut self, number: u32) -> Result<(), ConnectionError> {
        let (local, channel) = self.open_channel(number, "CHANNEL_CLOSE")?;
        if channel.receiving == Flow::Closed {
            return Err(Misbehaviour::AfterEnd {
                message: "CHANNEL_CLOSE",
                channel: number,
            }
            .into());
        }
        channel.receiving = Flow::Closed;
        // RFC 4254 section 5.3: "a party MUST send back" its own CLOSE.
        if channel.sending != Flow::Closed {
            channel.sending = Flow::Closed;
            let recipient_channel = channel.far.map_or(number, |far| far.number.number());
            self.send(|out| ChannelClose { recipient_channel }.encode(out))?;
        }
        self.tell(Event::Closed(local));
        Ok(())
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
            true => self.send(|out| {
                sshoal_wire::ChannelFailure {
                    recipient_channel: far,
                }
                .encode(out)
            }),
            false => Ok(()),
        }
    }

    /// Answers come in the order of the requests: first to the pseudo-terminal, then to the command.
    pub(super) fn handle_channel_success(&mut self, number: u32) -> Result<(), ConnectionError> {
        let message = "CHANNEL_SUCCESS";
        let (local, channel) = self.open_channel(number, message)?;
        if std::mem::take(&mut channel.pty_unanswered) {
            return Ok(());
        }
        match channel.session {
            // Output may have come before the answer.
            Some(Progress::InFlight { .. } | Progress::Started) => {
                self.confirm_started(local);
                Ok(())
            }
            _ => Err(Misbehaviour::UnaskedReply { message }.into()),
        }
    }

    pub(super) fn handle_channel_failure(&mut self, number: u32) -> Result<(), ConnectionError> {
        let message = "CHANNEL_FAILURE";
        let (local, channel) = self.open_channel(number, message)?;
        if std::mem::take(&mut channel.pty_unanswered) {
            self.tell(Event::PtyRefused(local));
            return Ok(());
        }
        match &mut channel.session {
            Some(progress @ Progress::InFlight { .. }) => {
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

    /// CHANNEL_SUCCESS, output or an exit status proves that the command started.
    fn confirm_started(&mut self, local: LocalChannel) {
        let progress = self
            .channels
            .find(local)
            .and_then(|channel| channel.session.as_mut());
        if let Some(progress @ Progress::InFlight { .. }) = progress {
            *progress = Progress::Started;
            self.tell(Event::Started(local));
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

    /// As [`channel`](Self::channel), for messages that only a confirmed channel may get.
    fn open_channel(
        &mut self,
        number: u32,
        message: &'static str,
    ) -> Result<(LocalChannel, &mut Channel), ConnectionError> {
        let (local, channel) = self.channel(number, message)?;
        match channel.far {
            Some(_) => Ok((local, channel)),
            None => Err(Misbehaviour::NoSuchChannel { message, number }.into()),
        }
    }
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
