//! A packet's way in: identification, opening, decoding, the phase table, dispatch.

use std::ops::Range;
use std::time::Instant;

use sshoal_wire::{self as wire, Dialect, Message, ServiceAccept, Unimplemented, message_name};

use super::{Arrival, Connection, Login, MAX_EVENTS, MAX_OUTPUT};
use crate::error::{ConnectionError, Misbehaviour, printable};
use crate::transport::Packet;

/// Most packets before the first NEWKEYS. An honest server sends a handful.
const MAX_UNKEYED_PACKETS: u32 = 256;
/// The shortest of what a server sends at once for the first keys: a KEXINIT with empty lists. Identification strings come
/// before it, and the answers to it have a key in them.
const LEAST_KEX_INIT: usize = 72;
/// The shortest SERVICE_ACCEPT and another message, both under chacha20-poly1305, which pads least.
const LEAST_SERVICE_AND_ANSWER: usize = 56;
/// SERVICE_ACCEPT as some servers send it, without a name, and as it is meant (sshconnect2.c,
/// input_userauth_service_accept).
const UNNAMED_SERVICE_ACCEPT: &[u8] = &[ServiceAccept::NUMBER];
const SERVICE_ACCEPT: &[u8] = b"\x06\0\0\0\x0cssh-userauth";

impl Connection {
    /// Takes octets from the server, decrypting them in place, and returns how many were taken.
    ///
    /// The rest is an incomplete packet, or waits for an answer to an event: call again with it, and with
    /// more behind it. [`Event::Data`](crate::Event::Data) names ranges of `input`: poll all events before
    /// reusing it.
    ///
    /// # Errors
    ///
    /// What ended the connection; events that were found before it are still there.
    pub fn handle_input(
        &mut self,
        now: Instant,
        input: &mut [u8],
    ) -> Result<usize, ConnectionError> {
        self.check()?;
        if !input.is_empty() {
            self.keepalive.handle_octets(now);
        }
        let mut taken = 0;
        let result = loop {
            if taken == input.len() || !self.wants_input() {
                break Ok(());
            }
            match self.handle_next(now, input, taken) {
                Ok(0) => break Ok(()),
                Ok(octets) => taken += octets,
                Err(error) => break Err(error),
            }
        };
        match result.and_then(|()| self.rekey_if_due(now)) {
            Ok(()) => Ok(taken),
            Err(error) => Err(self.fail(error)),
        }
    }

    /// Whether input may be taken: not while a host key is judged, nor while the caller or the server lag behind.
    pub fn wants_input(&self) -> bool {
        self.failed.is_none()
            && !self.exchange.awaits_verdict()
            && self.events.len() < MAX_EVENTS
            && self.outgoing.pending().len() < MAX_OUTPUT
    }

    /// The fewest octets that can bring this side any further, counted from what was taken last: a server that keeps
    /// to the protocol does not pause before it has sent them. A reader need not be woken for less.
    pub fn least_input(&self) -> usize {
        if self.settings.notes_arrivals {
            return 1;
        }
        let (much_to_come, least) = match (&self.server, &self.login) {
            (Err(reader), _) => (reader.is_unused(), LEAST_KEX_INIT),
            (Ok(_), Login::Unkeyed) => (self.exchange.awaits_long_message(), LEAST_KEX_INIT),
            (Ok(_), Login::Authenticating(authentication)) => (
                self.exchange.is_idle() && authentication.awaits_service_and_answer(),
                LEAST_SERVICE_AND_ANSWER,
            ),
            (Ok(_), Login::Authenticated) => (false, 1),
        };
        if much_to_come { least } else { 1 }
    }

    /// One line or one packet at `input[at..]`; 0 if it is not there whole.
    fn handle_next(
        &mut self,
        now: Instant,
        input: &mut [u8],
        at: usize,
    ) -> Result<usize, ConnectionError> {
        if let Err(reader) = &mut self.server {
            let (octets, found) = reader.handle(&input[at..])?;
            if let Some(identification) = found {
                tracing::debug!(server = identification.as_str(), "identified");
                self.server = Ok(identification);
                self.note_arrival(now, Arrival::IDENTIFICATION);
            }
            return Ok(octets);
        }
        let Some(Packet {
            taken,
            payload,
            sequence,
        }) = self.incoming.open(&mut input[at..])?
        else {
            return Ok(0);
        };
        self.keepalive.handle_packet();
        let payload = at + payload.start..at + payload.end;
        self.handle_packet(now, input, payload, sequence)?;
        Ok(taken)
    }

    fn handle_packet(
        &mut self,
        now: Instant,
        input: &[u8],
        payload: Range<usize>,
        sequence: u32,
    ) -> Result<(), ConnectionError> {
        // OpenSSH forbids that sequence numbers wrap before the first keys (packet.c): with as many ignored
        // messages as that, strict key exchange could be told that KEXINIT was the first packet.
        if matches!(self.login, Login::Unkeyed) && sequence >= MAX_UNKEYED_PACKETS {
            return Err(Misbehaviour::Flood {
                what: "packets before the first keys",
                limit: MAX_UNKEYED_PACKETS as usize,
            }
            .into());
        }
        let octets = match &input[payload.clone()] {
            UNNAMED_SERVICE_ACCEPT => SERVICE_ACCEPT,
            octets => octets,
        };
        if self.exchange.skips_wrong_guess(octets.first().copied()) {
            return Ok(());
        }
        let message = Message::decode(octets, self.dialect())?;
        tracing::debug!(message = message.name(), octets = octets.len(), "received");
        self.note_arrival(now, message.name());
        if let Message::Unknown { number } = message {
            return self.handle_unknown(number, sequence);
        }
        let number = message.number();
        if !wire::allowed(number, self.wire_phase()) || !self.may_share(number) {
            return Err(self.unexpected(&message));
        }
        self.dispatch(now, message, octets, payload, sequence)
    }

    /// One arm a message, in the order of their numbers.
    fn dispatch(
        &mut self,
        now: Instant,
        message: Message<'_>,
        octets: &[u8],
        payload: Range<usize>,
        sequence: u32,
    ) -> Result<(), ConnectionError> {
        if self.passes_on(octets, &payload) {
            return Ok(());
        }
        match message {
            Message::Disconnect(disconnect) => {
                self.handle_refused_login();
                Err(ConnectionError::Disconnected {
                    reason_code: disconnect.reason_code,
                    description: printable(disconnect.description),
                    during: self.phase(),
                })
            }
            Message::Ignore(_) | Message::Debug(_) => Ok(()),
            Message::Unimplemented(Unimplemented { sequence_number }) => {
                self.handle_unimplemented(sequence_number);
                Ok(())
            }
            Message::ServiceAccept(accept) => self.handle_service_accept(accept.service_name),
            Message::ExtInfo(info) => {
                self.handle_ext_info(&info);
                Ok(())
            }
            Message::KexInit(kex_init) => self.handle_kex_init(&kex_init, octets, sequence),
            Message::NewKeys(_) => self.handle_new_keys(now),
            Message::KexEcdhReply(reply) => self.handle_kex_reply(
                message.name(),
                reply.host_key,
                reply.public,
                reply.signature,
            ),
            Message::KexDhReply(reply) => {
                self.handle_kex_reply(message.name(), reply.host_key, reply.f, reply.signature)
            }
            Message::KexGexGroup(group) => self.handle_kex_group(group.p, group.g),
            Message::KexGexReply(reply) => {
                self.handle_kex_reply(message.name(), reply.host_key, reply.f, reply.signature)
            }
            Message::UserauthFailure(failure) => self.handle_userauth_failure(
                failure.authentications_that_can_continue,
                failure.partial_success,
            ),
            Message::UserauthSuccess(_) => self.handle_userauth_success(),
            Message::UserauthBanner(banner) => self.handle_banner(banner.message),
            Message::UserauthPkOk(ok) => self.handle_pk_ok(ok.key),
            Message::UserauthPasswdChangereq(request) => {
                self.handle_password_change(request.prompt)
            }
            Message::UserauthInfoRequest(request) => self.handle_info_request(&request),
            Message::GlobalRequest(request) => self.handle_global_request(&request),
            Message::RequestSuccess(success) => {
                self.handle_global_reply(message.name(), Some(success.data))
            }
            Message::RequestFailure(_) => self.handle_global_reply(message.name(), None),
            Message::Ping(ping) => self.handle_ping(ping.data),
            Message::ChannelOpen(open) => self.handle_channel_open(&open, payload),
            Message::ChannelOpenConfirmation(confirmation) => {
                self.handle_open_confirmation(&confirmation)
            }
            Message::ChannelOpenFailure(failure) => self.handle_open_failure(&failure),
            Message::ChannelWindowAdjust(adjust) => {
                self.handle_window_adjust(adjust.recipient_channel, adjust.bytes_to_add)
            }
            Message::ChannelData(data) => {
                self.handle_data(data.recipient_channel, None, data.data.len(), payload)
            }
            Message::ChannelExtendedData(data) => self.handle_data(
                data.recipient_channel,
                Some(data.data_type_code),
                data.data.len(),
                payload,
            ),
            Message::ChannelEof(eof) => self.handle_channel_eof(eof.recipient_channel),
            Message::ChannelClose(close) => self.handle_channel_close(close.recipient_channel),
            Message::ChannelRequest(request) => self.handle_channel_request(&request),
            Message::ChannelSuccess(success) => {
                self.handle_channel_success(success.recipient_channel)
            }
            Message::ChannelFailure(failure) => {
                self.handle_channel_failure(failure.recipient_channel)
            }
            // The phase table admits no other message to a client.
            other => Err(self.unexpected(&other)),
        }
    }

    /// RFC 4253 section 11.4: "An implementation MUST respond to all unrecognized messages with an SSH_MSG_UNIMPLEMENTED
    /// message in the order in which the messages were received", but section 7.1 allows none of them in a key exchange.
    fn handle_unknown(&mut self, number: u8, sequence_number: u32) -> Result<(), ConnectionError> {
        let phase = self.wire_phase();
        match phase {
            wire::Phase::KeyExchange {
                initial: true,
                strict: true,
            } => Err(Misbehaviour::UnknownDuringStrictKeyExchange { number }.into()),
            wire::Phase::Opening | wire::Phase::KeyExchange { .. } => {
                Err(Misbehaviour::Unexpected {
                    message: message_name(number),
                    during: self.phase(),
                }
                .into())
            }
            _ => self.reply(|out| Unimplemented { sequence_number }.encode(out)),
        }
    }

    pub(super) fn unexpected(&self, message: &Message<'_>) -> ConnectionError {
        Misbehaviour::Unexpected {
            message: message.name(),
            during: self.phase(),
        }
        .into()
    }

    fn dialect(&self) -> Dialect {
        let userauth = match &self.login {
            Login::Authenticating(authentication) => authentication.dialect(),
            _ => Default::default(),
        };
        Dialect {
            kex: self.exchange.dialect(),
            userauth,
        }
    }

    /// The phase as the table of messages knows it.
    pub(super) fn wire_phase(&self) -> wire::Phase {
        if self.server.is_err() {
            return wire::Phase::Version;
        }
        let initial = self.established.is_none() || matches!(self.login, Login::Unkeyed);
        if self.exchange.server_is_in() {
            return wire::Phase::KeyExchange {
                initial,
                strict: self.strict(),
            };
        }
        match &self.login {
            Login::Unkeyed => wire::Phase::Opening,
            Login::Authenticating(authentication) if authentication.awaits_service() => {
                wire::Phase::Service
            }
            Login::Authenticating(_) => wire::Phase::Userauth,
            Login::Authenticated => wire::Phase::Connection,
        }
    }
}
