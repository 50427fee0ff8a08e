//! 100 MB each way through OpenSSH on every cipher, compared by their hash.

use std::process::{Command, Stdio};
use std::time::Instant;

use sshoal_crypto::{Digest, HashAlgorithm, KexAlgorithm};
use sshoal_interop::{KeyType, Options, Server, Software};

use crate::axes::{Axes, Protection};
use crate::driver::{Login, Task};
use crate::keys::UserKeys;
use crate::report::say;
use crate::trust::Trust;

/// Prints ten million lines of ten octets, no two alike.
const GENERATOR: &str = "seq 100000000 109999999";
/// What it prints, in MB.
const MEGABYTES: f64 = 100.0;

struct Host {
    server: Server,
    trust: Trust,
    keys: UserKeys,
}

impl Host {
    fn start() -> Host {
        let keys = UserKeys::generate();
        let options = Options {
            host_keys: vec![KeyType::Ed25519],
            authorized_keys: keys.authorized_keys(),
            ..Options::default()
        };
        let server =
            Server::start(Software::OpenSsh, &options).unwrap_or_else(|error| panic!("{error}"));
        Host {
            trust: Trust::of_keys(server.known_hosts()),
            server,
            keys,
        }
    }

    fn run(&self, protection: Protection, task: Task<'_>) {
        let login = Login {
            address: self.server.address(),
            user: self.server.user(),
            trust: &self.trust,
            settings: protection.settings(KexAlgorithm::by_name("curve25519-sha256").unwrap()),
            host_key_algorithms: vec!["ssh-ed25519"],
            guess_key_exchange: false,
            credential: self.keys.credential("ssh-ed25519"),
        };
        let name = protection.label();
        let outcome = login
            .run(task)
            .unwrap_or_else(|trouble| panic!("{name}: {trouble}; {}", self.server.log()));
        assert_eq!(outcome.status, Some(0), "{name}: {outcome:?}");
    }

    /// Lets `transfer` move the octets by each cipher, and says how fast that went.
    fn by_every_cipher(&self, direction: &str, transfer: impl Fn(Protection)) {
        let mut rates = Vec::new();
        for protection in Axes::shared(&[self.server.offers()]).one_protection_a_cipher() {
            let began = Instant::now();
            transfer(protection);
            let rate = MEGABYTES / began.elapsed().as_secs_f64();
            rates.push(format!("{} {rate:.0} MB/s", protection.label()));
        }
        say(&format!("\n100 MB {direction}: {}\n", rates.join(", ")));
    }
}

/// The generator's SHA-256 in hexadecimal, by coreutils.
fn true_hash() -> String {
    let output = Command::new("sh")
        .args(["-c", &format!("{GENERATOR} | sha256sum")])
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()[..64].to_owned()
}

#[test]
fn down() {
    let hash = true_hash();
    let host = Host::start();
    host.by_every_cipher("down", |protection| {
        let mut digest = Digest::new(HashAlgorithm::Sha256);
        let task = Task {
            command: GENERATOR,
            input: None,
            output: &mut |data| digest.update(data),
        };
        host.run(protection, task);
        let digest = digest.finish();
        let heard: String = digest
            .as_ref()
            .iter()
            .map(|octet| format!("{octet:02x}"))
            .collect();
        assert_eq!(heard, hash, "{}", protection.label());
    });
}

#[test]
fn up() {
    let hash = true_hash();
    let host = Host::start();
    host.by_every_cipher("up", |protection| {
        let mut generator = Command::new("sh")
            .args(["-c", GENERATOR])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut heard = Vec::new();
        let task = Task {
            command: "sha256sum",
            input: Some(generator.stdout.as_mut().unwrap()),
            output: &mut |data| heard.extend(data),
        };
        host.run(protection, task);
        assert!(generator.wait().unwrap().success());
        let heard = String::from_utf8(heard).unwrap();
        assert_eq!(heard, format!("{hash}  -\n"), "{}", protection.label());
    });
}
