//! Agent forwarding: channels that a server opens, by which processes on the host talk to the user's agent
//! (PROTOCOL.agent; clientloop.c, client_request_agent).
//!
//! ```text
//!   channel --data--> serve: whole requests, one at a time --> Agent::pass_on: a connection, bound, a request
//!      ^                                                            |
//!      +------------------ answers, as the window lets them <-------+
//! ```
//!
//! What a host may ask is to list keys, to sign, and to bind its connection to a further session. It can neither add nor
//! remove keys nor lock the agent, which ssh would let it: over a fleet any host could take the agent from all.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use sshoal_agent::MAX_MESSAGE_LEN;
use sshoal_proto::{Connection, ConnectionError, Event, LocalChannel};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::AbortHandle;

use super::{Agent, Asker, FORWARDED_OF_A_HOST, Session};

/// Message numbers (RFC 9987).
const FAILURE: u8 = 5;
const REQUEST_IDENTITIES: u8 = 11;
const SIGN_REQUEST: u8 = 13;
const EXTENSION: u8 = 27;
/// The request that fails, with its length.
const REFUSAL: [u8; 5] = [0, 0, 0, 1, FAILURE];
/// The extension that binds a connection to a session, as a string with its length.
const SESSION_BIND: &[u8] = b"\0\0\0\x18session-bind@openssh.com";
/// Sessions that one connection may be bound to, as in ssh-agent (ssh-agent.c, AGENT_MAX_SESSION_IDS).
const MAX_BINDS: usize = 16;
/// Octets of answers that wait because the host does not read them; it is then not served any more.
const MAX_UNSENT: usize = 2 * MAX_MESSAGE_LEN;

/// The channels of one connection to an agent.
pub(crate) struct AgentForwarding {
    agent: Arc<Agent>,
    /// Set with the first channel.
    asker: Option<Rc<Asker>>,
    channels: HashMap<LocalChannel, Served>,
    teller: mpsc::UnboundedSender<(LocalChannel, Told)>,
    told: mpsc::UnboundedReceiver<(LocalChannel, Told)>,
}

/// One channel.
struct Served {
    /// What comes from the host; `None` once nothing more does.
    input: Option<mpsc::UnboundedSender<Vec<u8>>>,
    unsent: Vec<u8>,
    /// Nothing more is answered.
    over: bool,
    task: AbortHandle,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What a channel's task has done.
enum Told {
    /// So many octets of the host's are out of the way.
    Taken(usize),
    Answer(Vec<u8>),
    /// It has ended.
    Over,
}

impl AgentForwarding {
    pub(crate) fn new(agent: Arc<Agent>) -> Self {
        let (teller, told) = mpsc::unbounded_channel();
        AgentForwarding {
            agent,
            asker: None,
            channels: HashMap::new(),
            teller,
            told,
        }
    }

    /// Takes what is about the agent's channels, and gives other events back. `input` is what the range of
    /// [`Event::Data`] is a range of.
    pub(crate) fn handle(
        &mut self,
        connection: &mut Connection,
        event: Event,
        input: &[u8],
    ) -> Option<Event> {
        match event {
            Event::AgentChannel(channel) => self.open(connection, channel),
            Event::Data { channel, range, .. } if self.channels.contains_key(&channel) => {
                if let Some(sender) = self
                    .channels
                    .get(&channel)
                    .and_then(|served| served.input.as_ref())
                {
                    // A task that has ended says so itself.
                    let _ = sender.send(input[range].to_vec());
                }
            }
            Event::Eof(channel) if self.channels.contains_key(&channel) => {
                if let Some(served) = self.channels.get_mut(&channel) {
                    served.input = None;
                }
            }
            // An error stays the connection's answer and comes back from its next call.
            Event::Writable(channel) if self.channels.contains_key(&channel) => {
                drop(self.send(connection, channel));
            }
            Event::Closed(channel) if self.channels.remove(&channel).is_some() => {
                connection.forget(channel);
            }
            other => return Some(other),
        }
        None
    }

    fn open(&mut self, connection: &mut Connection, channel: LocalChannel) {
        let (Some((host_key, proof)), Some(session_id)) =
            (connection.host_key_proof(), connection.session_id())
        else {
            // No channel is opened before there is a session.
            return;
        };
        let asker = self.asker.get_or_insert_with(|| {
            Rc::new(Asker {
                session: Session {
                    host_key: host_key.to_vec(),
                    session_id: session_id.to_vec(),
                    proof: proof.to_vec(),
                },
                turns: Semaphore::new(FORWARDED_OF_A_HOST),
            })
        });
        let (input, requests) = mpsc::unbounded_channel();
        let serving = serve(
            self.agent.clone(),
            asker.clone(),
            channel,
            requests,
            self.teller.clone(),
        );
        let served = Served {
            input: Some(input),
            unsent: Vec::new(),
            over: false,
            task: tokio::task::spawn_local(serving).abort_handle(),
        };
        self.channels.insert(channel, served);
    }

    /// Ready when something has been done about a channel.
    pub(crate) fn poll(
        &mut self,
        context: &mut Context<'_>,
        connection: &mut Connection,
    ) -> Poll<Result<(), ConnectionError>> {
        // There is always a sender: our own.
        let Some((channel, told)) = ready!(self.told.poll_recv(context)) else {
            return Poll::Pending;
        };
        Poll::Ready(self.take(connection, channel, told))
    }

    fn take(
        &mut self,
        connection: &mut Connection,
        channel: LocalChannel,
        told: Told,
    ) -> Result<(), ConnectionError> {
        let Some(served) = self.channels.get_mut(&channel) else {
            return Ok(());
        };
        match told {
            Told::Taken(octets) => return connection.consumed(channel, octets),
            Told::Answer(answer) => served.unsent.extend_from_slice(&answer),
            Told::Over => served.over = true,
        }
        if served.unsent.len() > MAX_UNSENT {
            served.task.abort();
            return connection.close(channel);
        }
        self.send(connection, channel)
    }

    /// Sends what the server has room for; after the last answer the channel is closed.
    fn send(
        &mut self,
        connection: &mut Connection,
        channel: LocalChannel,
    ) -> Result<(), ConnectionError> {
        let Some(served) = self.channels.get_mut(&channel) else {
            return Ok(());
        };
        let taken = connection.send_data(channel, &served.unsent)?;
        served.unsent.drain(..taken);
        match served.over && served.unsent.is_empty() {
            true => connection.close(channel),
            false => Ok(()),
        }
    }
}

/// Answers one request after the other, until the host sends no more or something that is no request.
async fn serve(
    agent: Arc<Agent>,
    asker: Rc<Asker>,
    channel: LocalChannel,
    mut input: mpsc::UnboundedReceiver<Vec<u8>>,
    teller: mpsc::UnboundedSender<(LocalChannel, Told)>,
) {
    let tell = |told| {
        // Nobody hears any more once the connection has ended; this task is ended with it.
        let _ = teller.send((channel, told));
    };
    let mut unread = Vec::new();
    let mut binds = Vec::new();
    'served: while let Some(octets) = input.recv().await {
        unread.extend_from_slice(&octets);
        loop {
            let Ok(length) = request_length(&unread) else {
                break 'served;
            };
            let Some(length) = length else { break };
            let request: Vec<u8> = unread.drain(..length).collect();
            tell(Told::Answer(
                answer(&agent, &asker, &mut binds, request).await,
            ));
        }
        tell(Told::Taken(octets.len()));
    }
    tell(Told::Over);
}

async fn answer(
    agent: &Agent,
    asker: &Asker,
    binds: &mut Vec<Vec<u8>>,
    request: Vec<u8>,
) -> Vec<u8> {
    let binds_session = match request.get(4) {
        Some(&(REQUEST_IDENTITIES | SIGN_REQUEST)) => false,
        Some(&EXTENSION) if request[5..].starts_with(SESSION_BIND) => true,
        _ => return REFUSAL.to_vec(),
    };
    if binds_session && binds.len() == MAX_BINDS {
        return REFUSAL.to_vec();
    }
    let answer = agent.pass_on(asker, binds, &request).await;
    if binds_session {
        binds.push(request);
    }
    answer.unwrap_or_else(|| REFUSAL.to_vec())
}

/// Octets of the first request with its length, if it is there as a whole.
fn request_length(unread: &[u8]) -> Result<Option<usize>, ()> {
    let Some(length) = unread.first_chunk::<4>() else {
        return Ok(None);
    };
    let length = u32::from_be_bytes(*length) as usize;
    match length {
        0 => Err(()),
        _ if length > MAX_MESSAGE_LEN => Err(()),
        _ => Ok((unread.len() >= 4 + length).then_some(4 + length)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_cut_by_their_length_and_absurd_ones_are_none() {
        assert_eq!(request_length(&[0, 0, 0]), Ok(None));
        assert_eq!(request_length(&[0, 0, 0, 2, 11]), Ok(None));
        assert_eq!(request_length(&[0, 0, 0, 1, 11, 0]), Ok(Some(5)));
        assert_eq!(request_length(&[0, 0, 0, 0]), Err(()));
        assert_eq!(request_length(&[0, 4, 0, 1]), Err(()));
        assert_eq!(request_length(&[255; 4]), Err(()));
    }
}
