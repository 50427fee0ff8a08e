//! New keys in the middle of a transfer both ways: asked for by the client, by the server, by both.
//!
//! OpenSSH asks far more often than its RekeyLimit says if that is small: it takes the octets of the packet to be sent
//! for blocks (packet.c, `ssh_packet_need_rekeying`), so that each large packet is followed by new keys.

use sshoal_crypto::KexAlgorithm;
use sshoal_interop::{KeyType, Options, Server, Software};

use crate::axes::{Axes, Protection};
use crate::driver::{Login, Task};
use crate::keys::UserKeys;
use crate::report::say;
use crate::trust::Trust;

/// How much is sent and echoed, and after how much one side asks for new keys. In octets.
#[derive(Clone, Copy)]
struct Load {
    length: usize,
    limit: u64,
}

/// To meet every cipher.
const MUCH: Load = Load {
    length: 6 << 20,
    limit: 512 << 10,
};
/// To meet every key exchange, of which those in 8192-bit groups take their time.
const LITTLE: Load = Load {
    length: 5 << 19,
    limit: 1 << 20,
};
/// What may travel under the old keys after a side has asked for new ones: a window of 2 MiB, and what is queued. Less
/// than any load, so that keys are always asked for before the input's end.
const UNDER_WAY: u64 = 9 << 18;

impl Load {
    /// The least number of exchanges, whatever the timing.
    fn least(self) -> u32 {
        let exchanges = self.length as u64 / (self.limit + UNDER_WAY);
        exchanges.max(1) as u32
    }
}

/// Who asks for new keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asks {
    Client,
    Server,
    Both,
}

struct Host {
    server: Server,
    trust: Trust,
    keys: UserKeys,
    axes: Axes,
    asks: Asks,
}

impl Host {
    fn start(software: Software, asks: Asks, plain_kex: bool) -> Host {
        let keys = UserKeys::generate();
        let options = Options {
            host_keys: vec![KeyType::Ed25519],
            authorized_keys: keys.authorized_keys(),
            rekey_bytes: (asks != Asks::Client).then_some(MUCH.limit),
            plain_kex,
            ..Options::default()
        };
        let server = Server::start(software, &options).unwrap_or_else(|error| panic!("{error}"));
        Host {
            trust: Trust::of_keys(server.known_hosts()),
            axes: Axes::shared(&[server.offers()]),
            server,
            keys,
            asks,
        }
    }

    /// Sends the load through `cat` and back; returns how often keys were exchanged anew.
    fn echo(&self, kex: &'static KexAlgorithm, protection: Protection, load: Load) -> u32 {
        let mut settings = protection.settings(kex);
        settings.rekey.bytes = (self.asks != Asks::Server).then_some(load.limit);
        let login = Login {
            address: self.server.address(),
            user: self.server.user(),
            trust: &self.trust,
            settings,
            host_key_algorithms: vec!["ssh-ed25519"],
            guess_key_exchange: false,
            credential: self.keys.credential("ssh-ed25519"),
        };
        let sent = pattern(load.length);
        let mut heard: Vec<u8> = Vec::with_capacity(load.length);
        let result = login.run(Task {
            command: "cat",
            input: Some(&mut sent.as_slice()),
            output: &mut |data| heard.extend(data),
        });
        let names = format!("{} {}", kex.name, protection.label());
        let outcome = result.unwrap_or_else(|trouble| {
            panic!(
                "{names}: {trouble} after {} octets; {}",
                heard.len(),
                self.server.log()
            )
        });
        assert_eq!(outcome.status, Some(0), "{names}: {outcome:?}");
        assert!(heard == sent, "{names}: {} octets came back", heard.len());
        let rekeyings = outcome.rekeyings;
        assert!(rekeyings >= load.least(), "{names}: {rekeyings} times");
        rekeyings
    }
}

/// Octets that repeat only after 2^32 of them, so that a lost, doubled or exchanged packet shows.
fn pattern(length: usize) -> Vec<u8> {
    (0_u32..).flat_map(u32::to_be_bytes).take(length).collect()
}

fn on_every_cipher(host: &Host) {
    let kex = KexAlgorithm::by_name("curve25519-sha256").unwrap();
    let mut counts = Vec::new();
    for protection in host.axes.one_protection_a_cipher() {
        let rekeyings = host.echo(kex, protection, MUCH);
        counts.push(format!("{} {rekeyings}", protection.cipher.name()));
    }
    say(&format!(
        "\n{}, new keys asked for by {:?}: {}\n",
        host.server.offers().identification,
        host.asks,
        counts.join(", ")
    ));
}

fn client_asks(software: Software) {
    on_every_cipher(&Host::start(software, Asks::Client, false));
}

fn server_asks(software: Software) {
    on_every_cipher(&Host::start(software, Asks::Server, false));
}

fn both_ask(software: Software) {
    on_every_cipher(&Host::start(software, Asks::Both, false));
}

fn every_key_exchange_is_repeated(software: Software) {
    let host = Host::start(software, Asks::Client, false);
    let protections = host.axes.protections.iter().cycle();
    for (kex, protection) in host.axes.kex.iter().zip(protections) {
        host.echo(kex, *protection, LITTLE);
    }
}

/// Packets are numbered on from one exchange of keys to the next, as before strict key exchange.
fn both_ask_without_strict_key_exchange(software: Software) {
    let host = Host::start(software, Asks::Both, true);
    assert!(!host.server.offers().strict_kex);
    on_every_cipher(&host);
}

// Dropbear cannot be told when to ask: it does so after 1 GiB or 8 hours.
for_each_software! {
    openssh OpenSsh: client_asks server_asks both_ask every_key_exchange_is_repeated;
    dropbear Dropbear: client_asks every_key_exchange_is_repeated;
    asyncssh Asyncssh: client_asks server_asks both_ask every_key_exchange_is_repeated;
    go Go: client_asks server_asks both_ask every_key_exchange_is_repeated;
    russh Russh: client_asks server_asks both_ask both_ask_without_strict_key_exchange every_key_exchange_is_repeated;
}
