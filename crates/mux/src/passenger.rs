//! One passenger: from its hello to its end.
//!
//! A request passes through here in the order of the functions: [`Passenger::handle_input`] reads it,
//! [`poll_event`](Passenger::poll_event) hands it out, [`reply`](Passenger::reply) answers it,
//! [`poll_transmit`](Passenger::poll_transmit) and [`transmitted`](Passenger::transmitted) bring that to the passenger.

use std::collections::VecDeque;

use sshoal_wire::reason::DISCONNECT_PROTOCOL_ERROR;
use sshoal_wire::{Decoder, Disconnect, Put};

use crate::VERSION;
use crate::error::PassengerError;
use crate::proxy::{MAX_PACKET_LEN, packet_in};
use crate::reply::{self, Reply};
use crate::request::{Announced, HELLO, NewSession, Request, StdioForward};

/// Longest message of a passenger, octets behind its length: as OpenSSH's CHANNEL_MUX_MAX_PACKET (channels.c).
pub const MAX_MESSAGE_LEN: usize = 256 * 1024;
/// Most requests that wait for their answers. OpenSSH's client sends the next one after the answer.
pub const MAX_UNANSWERED: usize = 64;
/// Most octets of answers that wait to be read.
pub const MAX_OUTPUT: usize = 1024 * 1024;

/// Octets of the length that comes before every message.
const LENGTH_LEN: usize = 4;

/// Which request an answer is for, as the passenger numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RequestId(u32);

/// Something that a passenger wants.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<D> {
    /// A request, to be answered by [`Passenger::reply`].
    Asked {
        /// What the answer is to name.
        id: RequestId,
        /// What is asked for.
        request: Request<D>,
    },
    /// In proxy mode: the payload of an SSH packet for the server, its channel numbers still the passenger's
    /// ([`ProxyChannels::from_passenger`](crate::ProxyChannels::from_passenger)).
    Packet(Vec<u8>),
}

/// A passenger, without its socket. `D` is a descriptor.
#[derive(Debug)]
pub struct Passenger<D> {
    state: State,
    /// The beginning of a message.
    input: Vec<u8>,
    /// Descriptors that came and whose request is not whole yet.
    descriptors: VecDeque<D>,
    events: VecDeque<Event<D>>,
    output: Vec<u8>,
    /// Requests that were handed out, or are about to be, and have no answer yet.
    unanswered: usize,
    /// The request for the one session or stdio forward that a passenger may have.
    occupied: Option<RequestId>,
    failed: Option<PassengerError>,
}

/// What comes next.
#[derive(Debug)]
enum State {
    ExpectHello,
    ExpectRequest,
    /// As many octets as the request has descriptors, each with one of them.
    ExpectDescriptors(RequestId, Awaited),
    /// The passenger asked for proxy mode: what it sends waits for the answer.
    ExpectVerdict(RequestId),
    Proxied,
}

/// A request whose descriptors are still to come.
#[derive(Debug)]
enum Awaited {
    NewSession(Box<NewSession>),
    StdioForward(StdioForward),
}

impl Awaited {
    /// How many descriptors it has.
    fn descriptors(&self) -> usize {
        match self {
            Awaited::NewSession(_) => 3,
            Awaited::StdioForward(_) => 2,
        }
    }
}

impl<D> Default for Passenger<D> {
    fn default() -> Self {
        Self::new()
    }
}

impl<D> Passenger<D> {
    /// A passenger that has just connected. Our hello waits in [`poll_transmit`](Self::poll_transmit).
    #[must_use]
    pub fn new() -> Self {
        let mut output = Vec::new();
        reply::hello(&mut output);
        Passenger::with(State::ExpectHello, output)
    }

    /// One that was given proxy mode before its first octet: nothing but packets comes and goes.
    #[must_use]
    pub fn proxied() -> Self {
        Passenger::with(State::Proxied, Vec::new())
    }

    fn with(state: State, output: Vec<u8>) -> Self {
        Passenger {
            state,
            input: Vec::new(),
            descriptors: VecDeque::new(),
            events: VecDeque::new(),
            output,
            unanswered: 0,
            occupied: None,
            failed: None,
        }
    }

    /// Takes all octets of one read from the passenger's socket, and the descriptors that came with them, in order.
    ///
    /// # Errors
    /// The passenger does not follow the protocol. It is over with it; descriptors that are left are dropped with it.
    pub fn handle_input(
        &mut self,
        octets: &[u8],
        descriptors: impl IntoIterator<Item = D>,
    ) -> Result<(), PassengerError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        self.descriptors.extend(descriptors);
        self.input.extend_from_slice(octets);
        let result = self.read_input();
        result.map_err(|error| self.fail(error))
    }

    /// The next thing that it wants, oldest first.
    pub fn poll_event(&mut self) -> Option<Event<D>> {
        self.events.pop_front()
    }

    /// Answers a request.
    ///
    /// # Errors
    /// The passenger has failed, also with this answer: it leaves too many unread, or what it sent behind a request
    /// for proxy mode is no packet.
    pub fn reply(&mut self, id: RequestId, reply: Reply<'_>) -> Result<(), PassengerError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        self.unanswered = self.unanswered.saturating_sub(1);
        if reply.is_refusal() && self.occupied == Some(id) {
            self.occupied = None;
        }
        let result = self.answer(id, reply).and_then(|()| match &self.state {
            State::ExpectVerdict(asked) if *asked == id => {
                self.state = match reply {
                    Reply::Proxy => State::Proxied,
                    _ => State::ExpectRequest,
                };
                self.read_input()
            }
            _ => Ok(()),
        });
        result.map_err(|error| self.fail(error))
    }

    /// A session's command has ended with this status. Close the passenger's socket once that is transmitted.
    pub fn exit(&mut self, session: u32, status: u32) {
        reply::exit_message(session, status, &mut self.output);
    }

    /// The server gave a session no terminal: the passenger takes its own out of raw mode.
    pub fn tty_refused(&mut self, session: u32) {
        reply::tty_alloc_fail(session, &mut self.output);
    }

    /// In proxy mode: the payload of an SSH packet for the passenger, with its own channel numbers.
    ///
    /// # Errors
    /// The passenger has failed: it leaves too much unread.
    pub fn send_packet(&mut self, payload: &[u8]) -> Result<(), PassengerError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        if self.output.len() + payload.len() > MAX_OUTPUT + MAX_PACKET_LEN {
            return Err(self.fail(PassengerError::Unread));
        }
        self.output.put_u32(payload.len() as u32 + 1);
        self.output.put_u8(0);
        self.output.put_bytes(payload);
        Ok(())
    }

    /// In proxy mode: sends a last packet, which says why there is nothing more (DISCONNECT, RFC 4253 section 11.1).
    ///
    /// # Errors
    /// As [`send_packet`](Self::send_packet).
    pub fn dismiss(&mut self, why: &str) -> Result<(), PassengerError> {
        let mut payload = Vec::new();
        Disconnect {
            reason_code: DISCONNECT_PROTOCOL_ERROR,
            description: why.as_bytes(),
            language_tag: b"",
        }
        .encode(&mut payload);
        self.send_packet(&payload)
    }

    /// Octets to write to the passenger's socket, if any; say [`transmitted`](Self::transmitted) how many went.
    #[must_use]
    pub fn poll_transmit(&self) -> Option<&[u8]> {
        (!self.output.is_empty()).then_some(&self.output)
    }

    /// So many octets at the front of [`poll_transmit`](Self::poll_transmit) were written.
    pub fn transmitted(&mut self, octets: usize) {
        self.output.drain(..octets.min(self.output.len()));
    }

    /// Whether the passenger has got what it asked for: SSH packets.
    #[must_use]
    pub fn is_proxied(&self) -> bool {
        matches!(self.state, State::Proxied)
    }

    /// Reads all that is whole.
    fn read_input(&mut self) -> Result<(), PassengerError> {
        let input = std::mem::take(&mut self.input);
        let mut unread = input.as_slice();
        let mut result = Ok(true);
        while let Ok(true) = result {
            result = self.read_one(&mut unread);
        }
        self.input = unread.to_vec();
        result?;
        let most = match &self.state {
            State::ExpectDescriptors(_, awaited) => awaited.descriptors(),
            _ => 0,
        };
        match self.descriptors.len() > most {
            true => Err(PassengerError::UnaskedDescriptors),
            false => Ok(()),
        }
    }

    /// Reads one message, one packet or the octets of one request's descriptors; returns whether there may be more.
    fn read_one(&mut self, unread: &mut &[u8]) -> Result<bool, PassengerError> {
        match &self.state {
            State::ExpectHello | State::ExpectRequest => {
                let Some(message) = message_in(unread)? else {
                    return Ok(false);
                };
                self.read_message(message)?;
                Ok(true)
            }
            State::ExpectDescriptors(_, awaited) => {
                let (wanted, came) = (awaited.descriptors(), self.descriptors.len());
                let octets = wanted.min(unread.len());
                if came < octets {
                    return Err(PassengerError::NoDescriptors);
                }
                if octets < wanted {
                    return Ok(false);
                }
                *unread = &unread[wanted..];
                self.complete();
                Ok(true)
            }
            // It is to wait, and is not read beyond what a single packet has.
            State::ExpectVerdict(_) if unread.len() > MAX_PACKET_LEN + LENGTH_LEN => {
                Err(PassengerError::Flood)
            }
            State::ExpectVerdict(_) => Ok(false),
            State::Proxied => {
                let Some(payload) = packet_in(unread)? else {
                    return Ok(false);
                };
                self.events.push_back(Event::Packet(payload.to_vec()));
                Ok(true)
            }
        }
    }

    fn read_message(&mut self, message: &[u8]) -> Result<(), PassengerError> {
        let mut fields = Decoder::named("multiplexing message", message);
        let number = fields.field("packet type").u32()?;
        match (&self.state, number) {
            (State::ExpectHello, HELLO) => {
                read_hello(&mut fields)?;
                self.state = State::ExpectRequest;
                return Ok(());
            }
            (State::ExpectHello, number) => return Err(PassengerError::NoHello { number }),
            (_, HELLO) => return Err(PassengerError::SecondHello),
            _ => {}
        }
        let id = RequestId(fields.field("request id").u32()?);
        let announced = Announced::decode(number, &mut fields)?;
        fields.finish()?;
        self.unanswered += 1;
        if self.unanswered > MAX_UNANSWERED {
            return Err(PassengerError::Flood);
        }
        self.take(id, announced)
    }

    fn take(&mut self, id: RequestId, announced: Announced) -> Result<(), PassengerError> {
        let awaited = match announced {
            Announced::NewSession(session) => Awaited::NewSession(session),
            Announced::StdioForward(forward) => Awaited::StdioForward(forward),
            Announced::Unknown => {
                self.unanswered -= 1;
                return self.answer(id, Reply::Failure("unsupported request"));
            }
            Announced::Whole(request) => {
                let request = match request {
                    Request::AliveCheck => Request::AliveCheck,
                    Request::Terminate => Request::Terminate,
                    Request::StopListening => Request::StopListening,
                    Request::Proxy => {
                        self.state = State::ExpectVerdict(id);
                        Request::Proxy
                    }
                    Request::OpenForward(forward) => Request::OpenForward(forward),
                    Request::CloseForward(forward) => Request::CloseForward(forward),
                    Request::NewSession(_, [never, ..]) => match never {},
                    Request::StdioForward(_, [never, _]) => match never {},
                };
                self.events.push_back(Event::Asked { id, request });
                return Ok(());
            }
        };
        self.state = State::ExpectDescriptors(id, awaited);
        Ok(())
    }

    /// All descriptors of a request are there.
    fn complete(&mut self) {
        let State::ExpectDescriptors(id, awaited) =
            std::mem::replace(&mut self.state, State::ExpectRequest)
        else {
            return;
        };
        let mut came = self.descriptors.drain(..awaited.descriptors());
        let mut next = || came.next();
        let request = match awaited {
            Awaited::NewSession(session) => {
                let all = (next(), next(), next());
                let (Some(input), Some(output), Some(error)) = all else {
                    return;
                };
                Request::NewSession(session, [input, output, error])
            }
            Awaited::StdioForward(forward) => {
                let (Some(input), Some(output)) = (next(), next()) else {
                    return;
                };
                Request::StdioForward(forward, [input, output])
            }
        };
        drop(came);
        if self.occupied.is_some() {
            self.unanswered -= 1;
            // One more answer than a request: what is unread was counted before.
            Reply::Failure("a passenger has one session").encode(id.0, &mut self.output);
            return;
        }
        self.occupied = Some(id);
        self.events.push_back(Event::Asked { id, request });
    }

    fn answer(&mut self, id: RequestId, reply: Reply<'_>) -> Result<(), PassengerError> {
        if self.output.len() > MAX_OUTPUT {
            return Err(PassengerError::Unread);
        }
        reply.encode(id.0, &mut self.output);
        Ok(())
    }

    /// Ends the passenger: nothing that it sent and nobody has heard of counts any more.
    fn fail(&mut self, error: PassengerError) -> PassengerError {
        self.input = Vec::new();
        self.descriptors.clear();
        self.events.clear();
        self.failed = Some(error.clone());
        error
    }
}

/// The message at the front, if it is whole.
fn message_in<'a>(unread: &mut &'a [u8]) -> Result<Option<&'a [u8]>, PassengerError> {
    let Some((length, rest)) = unread.split_first_chunk::<LENGTH_LEN>() else {
        return Ok(None);
    };
    let claimed = u32::from_be_bytes(*length);
    let len = match usize::try_from(claimed) {
        Ok(len @ 4..=MAX_MESSAGE_LEN) => len,
        _ => return Err(PassengerError::Length { len: claimed }),
    };
    Ok(rest.split_at_checked(len).map(|(message, beyond)| {
        *unread = beyond;
        message
    }))
}

/// The version must be ours; extensions are names and values, of which none is known.
fn read_hello(fields: &mut Decoder<'_>) -> Result<(), PassengerError> {
    let version = fields.field("protocol version").u32()?;
    if version != VERSION {
        return Err(PassengerError::Version { version });
    }
    while !fields.unread().is_empty() {
        fields.field("extension name").string()?;
        fields.field("extension value").string()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
