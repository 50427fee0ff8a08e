//! A client and a server joined in memory, under a clock that only the story turns.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sshoal_crypto::{Cipher, KexAlgorithm, Mac};
use sshoal_proto::{
    Connection, ConnectionError, Credential, Event, LocalChannel, Opening, PublicKeyCredential,
    SessionRequest, Settings, Stream,
};

use super::keys::key;
use super::policy::Policy;
use super::sshd::Server;

/// The two ends, what lies between them, and the client's caller.
pub struct Pair {
    pub client: Connection,
    pub server: Server,
    pub now: Instant,
    /// Given to the client, one each time it asks.
    pub credentials: VecDeque<Credential>,
    /// All events but data, in order.
    pub events: Vec<Event>,
    /// Output by channel and stream.
    pub output: BTreeMap<(u32, bool), Vec<u8>>,
    /// What the server heard, one entry for each time that the client's octets crossed.
    pub flights: Vec<String>,
    /// Whether the caller takes data out of the way as it comes.
    pub reads: bool,
    /// Whether the caller trusts host keys by itself.
    pub trusts: bool,
    /// Octets that the client has not taken yet.
    pub input: Vec<u8>,
    /// How many of the server's octets cross at a time; all, if not set.
    pub trickle: Option<usize>,
    /// Whether the caller wakes only for what the client calls the least that can change anything.
    pub sleeps: bool,
    pub error: Option<ConnectionError>,
}

/// curve25519, ed25519, AES-128-GCM first; everything that the test server can speak.
pub fn settings() -> Settings {
    let mut settings = Settings::recommended();
    settings.software = "sshoal_test".to_owned();
    settings.kex = [
        "curve25519-sha256",
        "ecdh-sha2-nistp256",
        "diffie-hellman-group14-sha256",
        "diffie-hellman-group-exchange-sha256",
    ]
    .map(|name| KexAlgorithm::by_name(name).expect("known"))
    .to_vec();
    settings.ciphers = Cipher::ALL.to_vec();
    settings.macs = Mac::ALL.to_vec();
    settings
}

pub fn opening() -> Opening {
    Opening {
        user: "user".to_owned(),
        host_key_algorithms: vec!["ssh-ed25519", "rsa-sha2-512"],
        guess_key_exchange: false,
    }
}

/// A pair whose client runs nothing yet but is logged in.
pub fn logged_in(settings: Settings, policy: Policy) -> Pair {
    let mut pair = Pair::new(settings, opening(), policy);
    pair.run();
    assert!(pair.server.authenticated, "{:?}", pair.error);
    pair.flights.clear();
    pair.events.clear();
    pair
}

impl Pair {
    /// Nothing has crossed yet. The caller holds the key that the server accepts.
    pub fn new(settings: Settings, opening: Opening, policy: Policy) -> Self {
        let now = Instant::now();
        let client = Connection::new(Arc::new(settings), opening, now).expect("usable settings");
        Pair {
            client,
            server: Server::new(policy),
            now,
            credentials: VecDeque::from([held(2)]),
            events: Vec::new(),
            output: BTreeMap::new(),
            flights: Vec::new(),
            reads: true,
            trusts: true,
            input: Vec::new(),
            trickle: None,
            sleeps: false,
            error: None,
        }
    }

    /// A pair whose client has one command to run from the start.
    pub fn with_command(settings: Settings, policy: Policy, command: &str) -> (Self, LocalChannel) {
        let mut pair = Pair::new(settings, opening(), policy);
        let request = SessionRequest::exec(command);
        let channel = pair.client.open_session(request).expect("alive");
        (pair, channel)
    }

    /// Lets octets cross until neither side has more to say.
    pub fn run(&mut self) {
        while self.flight() | self.answer() {}
    }

    /// Lets octets cross until the client is told of `event`.
    pub fn run_until(&mut self, event: impl Fn(&Event) -> bool) {
        let seen = self.events.len();
        while !self.events[seen..].iter().any(&event) {
            let moved = self.flight() | self.answer();
            assert!(moved, "it never came; {:?} {:?}", self.events, self.error);
        }
    }

    /// One flight of the client's. False if it has nothing to say.
    pub fn flight(&mut self) -> bool {
        let Some(octets) = self.client.poll_transmit().map(<[u8]>::to_vec) else {
            return false;
        };
        self.client.transmitted(octets.len());
        self.note_events(&[]);
        self.server.feed(&octets);
        self.flights.push(self.server.heard.join(" "));
        self.server.heard.clear();
        true
    }

    /// What the server has said, or as much as crosses at a time. False if it has said nothing.
    pub fn answer(&mut self) -> bool {
        let outbox = &mut self.server.packets.outbox;
        let len = self.trickle.unwrap_or(outbox.len()).min(outbox.len());
        if len == 0 {
            return false;
        }
        if self.sleeps {
            let least = self.client.least_input();
            assert!(
                len >= least,
                "{len} octets wake nobody who waits for {least}"
            );
        }
        let octets: Vec<u8> = outbox.drain(..len).collect();
        self.feed(&octets);
        true
    }

    /// Gives the client octets as if from the server, and answers what it asks.
    pub fn feed(&mut self, octets: &[u8]) {
        self.input.extend(octets);
        while self.error.is_none() {
            let mut input = std::mem::take(&mut self.input);
            let result = self.client.handle_input(self.now, &mut input);
            let answered = self.note_events(&input);
            match result {
                Ok(taken) => {
                    self.input = input.split_off(taken);
                    if self.input.is_empty() || (taken == 0 && !answered) {
                        return;
                    }
                }
                Err(error) => self.error = Some(error),
            }
        }
    }

    fn note_events(&mut self, input: &[u8]) -> bool {
        let mut any = false;
        while let Some(event) = self.client.poll_event() {
            any = true;
            self.note(event, input);
        }
        any
    }

    fn note(&mut self, event: Event, input: &[u8]) {
        match &event {
            Event::HostKey(_) if self.trusts => {
                let _ = self.client.accept_host_key();
            }
            Event::AuthenticationNeeded(_) => {
                if let Some(credential) = self.credentials.pop_front() {
                    let _ = self.client.authenticate(credential);
                }
            }
            Event::Data {
                channel,
                stream,
                range,
            } => {
                let place = (channel.number(), *stream == Stream::Stderr);
                let data = &input[range.clone()];
                self.output.entry(place).or_default().extend(data);
                if self.reads {
                    let _ = self.client.consumed(*channel, data.len());
                }
                return;
            }
            _ => {}
        }
        self.events.push(event);
    }

    /// Turns the clock forward, waking the client whenever it asked for it, and lets octets cross.
    pub fn advance(&mut self, time: Duration) {
        let end = self.now + time;
        let mut wakings = 0;
        while let Some(due) = self.client.poll_timeout().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            if let Err(error) = self.client.handle_timeout(self.now) {
                self.error = Some(error);
            }
            self.run();
            wakings += 1;
            assert!(wakings < 1000, "the client asks to be woken without end");
        }
        self.now = end;
    }

    pub fn stdout(&self, channel: LocalChannel) -> &[u8] {
        self.output
            .get(&(channel.number(), false))
            .map_or(&[], Vec::as_slice)
    }

    pub fn stderr(&self, channel: LocalChannel) -> &[u8] {
        self.output
            .get(&(channel.number(), true))
            .map_or(&[], Vec::as_slice)
    }

    /// The events' names with what identifies them, for stories that compare whole sequences.
    pub fn told(&self) -> Vec<&'static str> {
        self.events.iter().map(name_of).collect()
    }

    pub fn open(&mut self, request: SessionRequest) -> LocalChannel {
        self.client.open_session(request).expect("alive")
    }
}

/// The key of this seed, held in memory.
pub fn held(seed: u8) -> Credential {
    Credential::PublicKey(PublicKeyCredential::held(key(seed)))
}

fn name_of(event: &Event) -> &'static str {
    match event {
        Event::HostKey(_) => "HostKey",
        Event::AuthenticationNeeded(_) => "AuthenticationNeeded",
        Event::SignatureNeeded(_) => "SignatureNeeded",
        Event::PromptsToAnswer { .. } => "PromptsToAnswer",
        Event::PasswordExpired { .. } => "PasswordExpired",
        Event::Banner(_) => "Banner",
        Event::Authenticated => "Authenticated",
        Event::HostKeysOffered(_) => "HostKeysOffered",
        Event::HostKeysProven(_) => "HostKeysProven",
        Event::ChannelOpened(_) => "ChannelOpened",
        Event::ChannelRefused { .. } => "ChannelRefused",
        Event::Started(_) => "Started",
        Event::StartRefused(_) => "StartRefused",
        Event::PtyRefused(_) => "PtyRefused",
        Event::Data { .. } => "Data",
        Event::Eof(_) => "Eof",
        Event::ExitStatus { .. } => "ExitStatus",
        Event::ExitSignal { .. } => "ExitSignal",
        Event::Closed(_) => "Closed",
        Event::Writable(_) => "Writable",
        Event::AgentChannel(_) => "AgentChannel",
        Event::SignalAnswered { .. } => "SignalAnswered",
        Event::GlobalReply(_) => "GlobalReply",
        Event::ForwardedChannel { .. } => "ForwardedChannel",
        Event::Packet { .. } => "Packet",
    }
}
