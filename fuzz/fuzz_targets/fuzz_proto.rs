//! A server that says what it likes to a client that is used as it likes: it ends with an error that stays, or
//! goes on; what it sends is sound; a command leaves once, unless the server said that it threw it away.
//!
//! Encryption is off (the feature `fuzzing` of sshoal-proto), so that any message reaches any state.

#![no_main]

use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use sshoal_crypto::{Cipher, KexAlgorithm};
use sshoal_proto::{
    Command, Connection, ConnectionError, Credential, Event, ExecFate, LocalChannel, Opening,
    PublicKeyCredential, Secret, SessionRequest, Settings, SignatureAlgorithm, Signer,
};
use sshoal_wire::{
    ChannelData, ChannelOpen, ChannelOpenConfirmation, ChannelSuccess, ChannelWindowAdjust,
    Dialect, KexEcdhReply, KexInit, Message, NameList, NewKeys, Put, ServiceAccept, Unimplemented,
    UserauthFailure, UserauthSuccess,
};

/// Octets that may be queued: the limit of a connection, and one answer to the longest packet.
const MOST_QUEUED: usize = 3 * 1024 * 1024;
/// Events that may wait: the limit of a connection, and one for each of the channels opened here.
const MOST_EVENTS: usize = 256 + 64;

#[derive(Arbitrary, Debug)]
enum Step<'a> {
    // The server.
    Raw(&'a [u8]),
    Say { number: u8, body: &'a [u8] },
    KexInit { guesses: bool, strict: bool },
    KexReply { public: [u8; 32] },
    NewKeys,
    ServiceAccept,
    Failure { partial: bool },
    Discard { sequence: u8 },
    Success,
    Confirm { channel: u8, number: u8 },
    Started { channel: u8 },
    AgentChannel { number: u8 },
    Window { channel: u8, octets: u32 },
    Data { channel: u8, len: u16 },
    Close,
    // The client's caller.
    Session { stdin: bool, agent: bool },
    Tunnel,
    Authenticate(Method),
    Sign(&'a [u8]),
    Answer(u8),
    Withhold,
    Send { channel: u8, len: u16 },
    Eof { channel: u8 },
    End { channel: u8 },
    Consume { channel: u8, len: u16 },
    Forget { channel: u8 },
    Signal { channel: u8 },
    Wait { seconds: u16 },
    Transmit { len: u16 },
    Disconnect,
}

#[derive(Arbitrary, Debug)]
enum Method {
    None,
    Key { probe: bool, pipeline: bool },
    Password,
    KeyboardInteractive,
}

/// How far an honest server comes before the story begins.
#[derive(Arbitrary, Debug, PartialEq, PartialOrd)]
enum Start {
    Greeted,
    Keyed,
    Serving,
    LoggedIn,
    InSession,
}

#[derive(Arbitrary, Debug)]
struct Story<'a> {
    openssh: bool,
    guess: bool,
    strict: bool,
    start: Start,
    steps: Vec<Step<'a>>,
}

static SETTINGS: LazyLock<Arc<Settings>> = LazyLock::new(|| {
    let mut settings = Settings::recommended();
    settings.kex = ["curve25519-sha256", "diffie-hellman-group-exchange-sha256"]
        .map(|name| KexAlgorithm::by_name(name).expect("known"))
        .to_vec();
    settings.ciphers = vec![Cipher::Aes128Gcm];
    settings.random = |octets| octets.fill(7);
    settings.keepalive = Some((Duration::from_secs(15), 3));
    settings.rekey.packets = 100;
    settings.rekey.interval = Some(Duration::from_secs(60));
    Arc::new(settings)
});

fuzz_target!(|story: Story<'_>| {
    let mut run = Run::begin(&story);
    for step in &story.steps {
        run.step(step);
        run.check();
    }
    run.end();
});

struct Run {
    client: Connection,
    now: Instant,
    /// What the client has not taken yet.
    input: Vec<u8>,
    /// What has left, as far as it is no whole packet yet.
    sent: Vec<u8>,
    identified: bool,
    commands_sent: usize,
    discards: usize,
    error: Option<ConnectionError>,
    channels: Vec<LocalChannel>,
}

impl Run {
    fn begin(story: &Story<'_>) -> Self {
        let opening = Opening {
            user: "user".to_owned(),
            host_key_algorithms: vec!["ssh-ed25519"],
            guess_key_exchange: story.guess,
        };
        let now = Instant::now();
        let client = Connection::new(SETTINGS.clone(), opening, now).expect("usable settings");
        let greeting: &[u8] = match story.openssh {
            true => b"SSH-2.0-OpenSSH_9.2\r\n",
            false => b"SSH-2.0-x\r\n",
        };
        let mut run = Run {
            client,
            now,
            input: Vec::new(),
            sent: Vec::new(),
            identified: false,
            commands_sent: 0,
            discards: 0,
            error: None,
            channels: Vec::new(),
        };
        run.feed(greeting);
        run.come_to(story);
        run
    }

    fn come_to(&mut self, story: &Story<'_>) {
        let strict = story.strict;
        let mut base_point = [0; 32];
        base_point[0] = 9;
        if story.start >= Start::Keyed {
            let guesses = false;
            self.step(&Step::KexInit { guesses, strict });
            self.step(&Step::KexReply { public: base_point });
            self.step(&Step::NewKeys);
        }
        if story.start >= Start::Serving {
            self.step(&Step::ServiceAccept);
        }
        if story.start >= Start::LoggedIn {
            self.step(&Step::Authenticate(Method::None));
            self.step(&Step::Success);
        }
        if story.start >= Start::InSession {
            self.step(&Step::Session {
                stdin: true,
                agent: true,
            });
            self.step(&Step::Confirm {
                channel: 0,
                number: 0,
            });
            self.step(&Step::Transmit { len: u16::MAX });
            self.step(&Step::Started { channel: 0 });
        }
    }

    fn step(&mut self, step: &Step<'_>) {
        match *step {
            Step::Raw(octets) => self.feed(octets),
            Step::Say { number, body } => self.say(&[&[number], body].concat()),
            Step::KexInit { guesses, strict } => self.say(&kex_init(guesses, strict)),
            Step::KexReply { public } => self.say_message(KexEcdhReply {
                host_key: b"\0\0\0\x0bssh-ed25519",
                public: &public,
                signature: b"",
            }),
            Step::NewKeys => self.say_message(NewKeys),
            Step::ServiceAccept => self.say_message(ServiceAccept {
                service_name: b"ssh-userauth",
            }),
            Step::Failure { partial } => self.say_message(UserauthFailure {
                authentications_that_can_continue: NameList::new("publickey,password"),
                partial_success: partial,
            }),
            Step::Discard { sequence } => {
                let sequence_number = sequence.into();
                self.say_message(Unimplemented { sequence_number });
            }
            Step::Success => self.say_message(UserauthSuccess),
            Step::Confirm { channel, number } => self.say_message(ChannelOpenConfirmation {
                recipient_channel: channel.into(),
                sender_channel: number.into(),
                initial_window_size: 1000,
                maximum_packet_size: 100,
                data: b"",
            }),
            Step::Started { channel } => self.say_message(ChannelSuccess {
                recipient_channel: channel.into(),
            }),
            Step::AgentChannel { number } => self.say_message(ChannelOpen {
                channel_type: b"auth-agent@openssh.com",
                sender_channel: number.into(),
                initial_window_size: 1000,
                maximum_packet_size: 100,
                data: b"",
            }),
            Step::Window { channel, octets } => self.say_message(ChannelWindowAdjust {
                recipient_channel: channel.into(),
                bytes_to_add: octets,
            }),
            Step::Data { channel, len } => self.say_message(ChannelData {
                recipient_channel: channel.into(),
                data: &vec![0; len.into()],
            }),
            Step::Close => {
                let error = self.client.handle_eof();
                self.fail(error);
            }
            ref command => self.command(command),
        }
    }

    /// What the caller does. An error of it is the connection's.
    fn command(&mut self, step: &Step<'_>) {
        let client = &mut self.client;
        let channel = |number: u8| self.channels.get(usize::from(number)).copied();
        let result = match *step {
            Step::Session { stdin, agent } if self.channels.len() < 64 => {
                let request = SessionRequest {
                    environment: Vec::new(),
                    pty: None,
                    command: Command::Exec(b"command".to_vec()),
                    forward_agent: agent,
                    standard_input: stdin,
                };
                client
                    .open_session(request)
                    .map(|opened| self.channels.push(opened))
            }
            Step::Tunnel if self.channels.len() < 64 => client
                .open_direct_tcpip("host", 22)
                .map(|opened| self.channels.push(opened)),
            Step::Authenticate(ref method) => client.authenticate(credential(method)),
            Step::Sign(signature) => client.provide_signature(signature),
            Step::Answer(count) => client.answer_prompts(&vec![Secret::new(vec![0]); count.into()]),
            Step::Withhold => {
                client.withhold_signature();
                client.withhold_answers();
                Ok(())
            }
            Step::Send {
                channel: number,
                len,
            } => channel(number).map_or(Ok(()), |channel| {
                client.send_data(channel, &vec![1; len.into()]).map(drop)
            }),
            Step::Eof { channel: number } => {
                channel(number).map_or(Ok(()), |channel| client.send_eof(channel))
            }
            Step::End { channel: number } => {
                channel(number).map_or(Ok(()), |channel| client.close(channel))
            }
            Step::Consume {
                channel: number,
                len,
            } => channel(number).map_or(Ok(()), |channel| client.consumed(channel, len.into())),
            Step::Forget { channel: number } => {
                channel(number)
                    .into_iter()
                    .for_each(|channel| client.forget(channel));
                Ok(())
            }
            Step::Signal { channel: number } => {
                channel(number).map_or(Ok(()), |channel| client.signal(channel, "TERM"))
            }
            Step::Wait { seconds } => {
                self.now += Duration::from_secs(seconds.into());
                client.handle_timeout(self.now)
            }
            Step::Transmit { len } => {
                self.transmit(len.into());
                Ok(())
            }
            Step::Disconnect => {
                client.disconnect();
                client.error().cloned().map_or(Ok(()), Err)
            }
            _ => Ok(()),
        };
        if let Err(error) = result {
            self.fail(error);
        }
    }

    fn say_message<'a>(&mut self, message: impl Into<Message<'a>>) {
        let mut payload = Vec::new();
        message.into().encode(&mut payload);
        self.say(&payload);
    }

    /// One packet with this payload.
    fn say(&mut self, payload: &[u8]) {
        self.discards += usize::from(payload.first() == Some(&Unimplemented::NUMBER));
        let padding = 4 + (8 - (payload.len() + 9) % 8) % 8;
        let mut packet = Vec::new();
        packet.put_u32((1 + payload.len() + padding) as u32);
        packet.put_u8(padding as u8);
        packet.put_bytes(payload);
        packet.resize(packet.len() + padding, 0);
        self.feed(&packet);
    }

    fn feed(&mut self, octets: &[u8]) {
        if self.error.is_some() {
            return;
        }
        self.input.extend_from_slice(octets);
        loop {
            let mut input = std::mem::take(&mut self.input);
            let result = self.client.handle_input(self.now, &mut input);
            let answered = self.answer_events(&input);
            match result {
                Ok(taken) => {
                    self.input = input.split_off(taken);
                    if self.input.is_empty() || (taken == 0 && !answered) {
                        return;
                    }
                }
                Err(error) => return self.fail(error),
            }
        }
    }

    fn answer_events(&mut self, input: &[u8]) -> bool {
        let mut count = 0;
        while let Some(event) = self.client.poll_event() {
            count += 1;
            match event {
                Event::HostKey(_) => drop(self.client.accept_host_key()),
                Event::AgentChannel(channel) => self.channels.push(channel),
                Event::Data { range, .. } => assert!(input.get(range).is_some()),
                _ => {}
            }
        }
        assert!(count <= MOST_EVENTS, "{count} events");
        count > 0
    }

    fn fail(&mut self, error: ConnectionError) {
        assert!(!error.to_string().is_empty());
        assert!(self.error.is_none() || self.error.as_ref() == Some(&error));
        self.error = Some(error);
    }

    /// The first octets of the queue leave.
    fn transmit(&mut self, len: usize) {
        let queued = self.client.poll_transmit().unwrap_or_default();
        let leaving = &queued[..len.min(queued.len())];
        self.sent.extend_from_slice(leaving);
        let len = leaving.len();
        self.client.transmitted(len);
        if !self.identified {
            let Some(end) = self.sent.iter().position(|octet| *octet == b'\n') else {
                return;
            };
            self.sent.drain(..=end);
            self.identified = true;
        }
        while let Some(length) = self.sent.first_chunk::<4>() {
            let len = 4 + u32::from_be_bytes(*length) as usize;
            if self.sent.len() < len {
                return;
            }
            let packet: Vec<u8> = self.sent.drain(..len).collect();
            let payload = &packet[5..packet.len() - usize::from(packet[4])];
            self.look_at(payload);
        }
    }

    /// A message that has left whole.
    fn look_at(&mut self, payload: &[u8]) {
        // Key exchange has methods in which the same numbers mean something else.
        if (30..50).contains(&payload[0]) {
            return;
        }
        let dialect = Dialect {
            userauth: sshoal_wire::UserauthDialect::KeyboardInteractive,
            ..Dialect::default()
        };
        match Message::decode(payload, dialect) {
            Ok(Message::ChannelRequest(request)) if request.request_type == b"exec" => {
                self.commands_sent += 1;
            }
            Ok(_) => {}
            Err(error) => panic!("the client sends what is not sound: {error}"),
        }
    }

    fn check(&mut self) {
        let queued = self.client.poll_transmit().map_or(0, <[u8]>::len);
        assert!(queued <= MOST_QUEUED, "{queued} octets queued");
        let sessions = self.channels.len();
        assert!(self.commands_sent <= sessions + self.discards);
        if self.error.is_some() {
            assert_eq!(self.client.error(), self.error.as_ref());
            assert_eq!(self.client.poll_timeout(), None);
        }
    }

    /// What is said of commands at the end is true of what left, and stays true if all leaves that can.
    fn end(&mut self) {
        self.client.disconnect();
        let fates = self.fates();
        self.transmit(usize::MAX);
        assert_eq!(self.fates(), fates);
        let sent_at_most = |fate: &&ExecFate| **fate != ExecFate::NotSent;
        let gone = fates.iter().filter(sent_at_most).count();
        assert!(self.commands_sent <= gone + self.discards + self.channels.len() - fates.len());
    }

    fn fates(&self) -> Vec<ExecFate> {
        let mut channels = self.channels.clone();
        channels.sort_unstable();
        channels.dedup();
        channels
            .into_iter()
            .map(|channel| self.client.exec_fate(channel))
            .collect()
    }
}

fn credential(method: &Method) -> Credential {
    match *method {
        Method::None => Credential::None,
        Method::Password => Credential::Password(Secret::new(b"secret".to_vec())),
        Method::KeyboardInteractive => Credential::KeyboardInteractive,
        Method::Key { probe, pipeline } => Credential::PublicKey(PublicKeyCredential {
            blob: b"key".to_vec(),
            algorithms: vec![SignatureAlgorithm {
                request: "ssh-ed25519".to_owned(),
                signature: "ssh-ed25519".to_owned(),
            }],
            signer: Signer::External,
            probe,
            pipeline,
        }),
    }
}

fn kex_init(first_kex_packet_follows: bool, strict: bool) -> Vec<u8> {
    let kex = match strict {
        true => "curve25519-sha256,kex-strict-s-v00@openssh.com",
        false => "curve25519-sha256,diffie-hellman-group-exchange-sha256",
    };
    let (cipher, none) = (
        NameList::new("aes128-gcm@openssh.com"),
        NameList::new("none"),
    );
    let mut payload = Vec::new();
    KexInit {
        cookie: [0; 16],
        kex_algorithms: NameList::new(kex),
        server_host_key_algorithms: NameList::new("ssh-ed25519"),
        encryption_algorithms_client_to_server: cipher,
        encryption_algorithms_server_to_client: cipher,
        mac_algorithms_client_to_server: none,
        mac_algorithms_server_to_client: none,
        compression_algorithms_client_to_server: none,
        compression_algorithms_server_to_client: none,
        languages_client_to_server: NameList::default(),
        languages_server_to_client: NameList::default(),
        first_kex_packet_follows,
        reserved: 0,
    }
    .encode(&mut payload);
    payload
}
