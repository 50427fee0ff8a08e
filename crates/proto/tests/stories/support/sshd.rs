//! A server as a whole: what it hears goes to key exchange, login or channels, and is answered as
//! OpenSSH would answer, unless the story does so itself.

use std::collections::{BTreeMap, VecDeque};

use sshoal_crypto::verify;
use sshoal_wire::{
    AuthMethod, Dialect, KexDialect, Message, NameList, ServiceAccept, Unimplemented,
    UserauthDialect, UserauthFailure, UserauthPkOk, UserauthRequest, UserauthSuccess,
};

use super::kex::KeyExchange;
use super::packets::Packets;
use super::policy::Policy;
use super::sessions::Channel;

/// A server in memory.
pub struct Server {
    pub policy: Policy,
    pub packets: Packets,
    pub kex: KeyExchange,
    identified: bool,
    service_accepted: bool,
    pub authenticated: bool,
    accepted_credentials: usize,
    pub channels: BTreeMap<u32, Channel>,
    /// Commands that were run, in order.
    pub executions: Vec<Vec<u8>>,
    /// What was heard and not yet looked at, by name.
    pub heard: Vec<String>,
    /// Payloads that the story answers itself.
    pub unanswered: VecDeque<Vec<u8>>,
    /// What must wait until our NEWKEYS is said.
    held: Vec<Vec<u8>>,
    /// Why the connection is over, by the client's or our DISCONNECT.
    pub over: Option<String>,
}

impl Server {
    pub fn new(policy: Policy) -> Self {
        let mut packets = Packets::new();
        packets.outbox.extend(policy.identification.as_bytes());
        packets.outbox.extend(b"\r\n");
        let mut server = Server {
            packets,
            kex: KeyExchange::default(),
            identified: false,
            service_accepted: false,
            authenticated: false,
            accepted_credentials: 0,
            channels: BTreeMap::new(),
            executions: Vec::new(),
            heard: Vec::new(),
            unanswered: VecDeque::new(),
            held: Vec::new(),
            over: None,
            policy,
        };
        if server.policy.answers_kex {
            server.rekey();
        }
        server
    }

    /// Starts a key exchange.
    pub fn rekey(&mut self) {
        self.kex.start(&self.policy, &mut self.packets);
    }

    /// Says a message now, or after a key exchange that goes on.
    pub fn say<'a>(&mut self, message: impl Into<Message<'a>>) {
        let mut payload = Vec::new();
        message.into().encode(&mut payload);
        match self.kex.holds_messages() {
            true => self.held.push(payload),
            false => self.packets.say(&payload),
        }
    }

    /// Octets from the client.
    pub fn feed(&mut self, octets: &[u8]) {
        self.packets.feed(octets);
        if !self.identified {
            let Some(line) = self.packets.hear_line() else {
                return;
            };
            self.heard.push(line.clone());
            self.kex.client_identification = line;
            self.identified = true;
        }
        while self.over.is_none() {
            let Some((sequence, payload)) = self.packets.hear() else {
                break;
            };
            self.handle(sequence, &payload);
        }
        self.pump();
    }

    fn handle(&mut self, sequence: u32, payload: &[u8]) {
        self.heard.push(name_of(payload, self.kex.dialect));
        match payload[0] {
            1 => self.over = Some("the client disconnected".to_owned()),
            20..=49 if !self.policy.answers_kex => self.unanswered.push_back(payload.to_vec()),
            20..=49 => {
                self.kex.handle(&self.policy, &mut self.packets, payload);
                if !self.kex.holds_messages() {
                    for held in std::mem::take(&mut self.held) {
                        self.packets.say(&held);
                    }
                }
            }
            number => {
                // RFC 4253 section 7.1; OpenSSH from 10.4 on disconnects.
                assert!(
                    !self.kex.awaits_client() || number < 5,
                    "{} during a key exchange",
                    name_of(payload, KexDialect::Ecdh)
                );
                self.handle_service(sequence, payload);
            }
        }
    }

    fn handle_service(&mut self, sequence: u32, payload: &[u8]) {
        let (policy, answered) = (&self.policy, payload[0] < 80);
        let answered = match answered {
            true => policy.answers_login,
            false => policy.answers_channels,
        };
        if !answered {
            self.unanswered.push_back(payload.to_vec());
            return;
        }
        let message = Message::decode(payload, Dialect::default()).expect("a sound message");
        match message {
            Message::Ignore(_) | Message::Debug(_) | Message::Unimplemented(_) => {}
            Message::ServiceRequest(request) => {
                self.service_accepted = true;
                self.say(ServiceAccept {
                    service_name: request.service_name,
                });
            }
            Message::UserauthRequest(request) if self.service_accepted && !self.authenticated => {
                self.handle_userauth(&request);
            }
            // OpenSSH arms the connection protocol's dispatcher after the login only.
            _ if !self.authenticated => self.say(Unimplemented {
                sequence_number: sequence,
            }),
            message => self.handle_connection(&message),
        }
    }

    fn handle_userauth(&mut self, request: &UserauthRequest<'_>) {
        assert_eq!(request.user_name, b"user");
        assert_eq!(request.service_name, b"ssh-connection");
        let accepted = match request.method {
            AuthMethod::PublicKey {
                algorithm,
                key,
                signature: None,
            } if self.knows(key) => return self.say(UserauthPkOk { algorithm, key }),
            AuthMethod::PublicKey {
                algorithm,
                key,
                signature: Some(signature),
            }
            | AuthMethod::HostboundPublicKey {
                algorithm,
                key,
                signature: Some(signature),
                ..
            } => {
                let mut data = Vec::new();
                request.put_signed_data(&self.kex.session_id, &mut data);
                let algorithm = std::str::from_utf8(algorithm).expect("ASCII");
                self.knows(key) && verify(algorithm, key, signature, &data).is_ok()
            }
            AuthMethod::Password { password, .. } => password == self.policy.password.as_bytes(),
            _ => false,
        };
        self.judge(accepted);
    }

    fn knows(&self, key: &[u8]) -> bool {
        self.policy.accepted_keys.iter().any(|known| known == key)
    }

    /// The verdict on one credential.
    pub fn judge(&mut self, accepted: bool) {
        self.accepted_credentials += usize::from(accepted);
        if accepted && self.accepted_credentials >= self.policy.credentials_needed {
            self.authenticated = true;
            return self.say(UserauthSuccess);
        }
        self.say(UserauthFailure {
            authentications_that_can_continue: NameList::new(self.policy.methods),
            partial_success: accepted,
        });
    }
}

/// A message by name, a request by its type too.
fn name_of(payload: &[u8], kex: KexDialect) -> String {
    let dialect = Dialect {
        kex,
        userauth: UserauthDialect::KeyboardInteractive,
    };
    let message = Message::decode(payload, dialect).expect("the client's messages are sound");
    let detail = match message {
        Message::ChannelRequest(request) => request.request_type,
        Message::UserauthRequest(request) => request.method.name().as_bytes(),
        _ => return message.name().to_owned(),
    };
    format!("{}({})", message.name(), String::from_utf8_lossy(detail))
}
