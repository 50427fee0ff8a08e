//! What can be combined with a server: of each kind, the algorithms that both sides have.

use sshoal_crypto::{Cipher, KexAlgorithm, Mac, kex};
use sshoal_interop::{KeyType, Offers};
use sshoal_proto::Settings;

/// The kinds, in the order of [`Axes::sizes`] and of a cell's numbers.
pub const TITLES: [&str; 5] = [
    "key exchange",
    "cipher and MAC",
    "host key",
    "user key",
    "first message",
];

/// A cipher, and the MAC that goes with it unless it authenticates by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protection {
    pub cipher: Cipher,
    pub mac: Option<Mac>,
}

impl Protection {
    pub fn label(self) -> String {
        match self.mac {
            None => self.cipher.name().to_owned(),
            Some(mac) => format!("{} {}", self.cipher.name(), mac.name()),
        }
    }

    /// Settings that offer this and the key exchange, and nothing else.
    pub fn settings(self, kex: &'static KexAlgorithm) -> Settings {
        Settings {
            kex: vec![kex],
            ciphers: vec![self.cipher],
            macs: self.mac.into_iter().collect(),
            ..Settings::recommended()
        }
    }
}

/// Values to combine, of each kind.
pub struct Axes {
    pub kex: Vec<&'static KexAlgorithm>,
    pub protections: Vec<Protection>,
    /// Signature algorithms of host keys.
    pub host_keys: Vec<&'static str>,
    /// Signature algorithms of user keys.
    pub user_keys: Vec<&'static str>,
    /// Whether to guess: see [`Cell::guess`].
    pub guesses: Vec<bool>,
}

/// What one combination is.
pub struct Cell {
    pub kex: &'static KexAlgorithm,
    pub protection: Protection,
    pub host_key: &'static str,
    pub user_key: &'static str,
    /// Whether the client's half of the key exchange goes with its KEXINIT, right or wrong (RFC 4253, section 7.1).
    pub guess: bool,
}

impl Axes {
    /// What the client shares with a server of several instances, which differ in host keys only. The software that
    /// signs by an algorithm verifies by it too, so user keys have the same algorithms as host keys.
    pub fn shared(offers: &[&Offers]) -> Axes {
        let has = |list: &[String], name: &str| list.iter().any(|offered| offered == name);
        let first = offers[0];
        let mut protections = Vec::new();
        for &cipher in Cipher::ALL {
            if !has(&first.encryption_algorithms, cipher.name()) {
                continue;
            }
            match cipher.is_aead() {
                true => protections.push(Protection { cipher, mac: None }),
                false => protections.extend(
                    Mac::ALL
                        .iter()
                        .filter(|mac| has(&first.mac_algorithms, mac.name()))
                        .map(|mac| Protection {
                            cipher,
                            mac: Some(*mac),
                        }),
                ),
            }
        }
        let signatures: Vec<&'static str> = signature_algorithms()
            .filter(|name| {
                offers
                    .iter()
                    .any(|offers| has(&offers.server_host_key_algorithms, name))
            })
            .collect();
        Axes {
            kex: kex::ALGORITHMS
                .iter()
                .filter(|kex| has(&first.kex_algorithms, kex.name))
                .collect(),
            protections,
            host_keys: signatures.clone(),
            user_keys: signatures,
            guesses: vec![false, true],
        }
    }

    /// One protection for each cipher: the first, whose MAC is the one that the client prefers.
    pub fn one_protection_a_cipher(&self) -> Vec<Protection> {
        let mut protections = self.protections.clone();
        protections.dedup_by_key(|protection| protection.cipher);
        protections
    }

    pub fn sizes(&self) -> [usize; 5] {
        [
            self.kex.len(),
            self.protections.len(),
            self.host_keys.len(),
            self.user_keys.len(),
            self.guesses.len(),
        ]
    }

    pub fn cell(&self, [kex, protection, host_key, user_key, guess]: [usize; 5]) -> Cell {
        Cell {
            kex: self.kex[kex],
            protection: self.protections[protection],
            host_key: self.host_keys[host_key],
            user_key: self.user_keys[user_key],
            guess: self.guesses[guess],
        }
    }

    /// Names for people.
    pub fn labels(&self) -> [Vec<String>; 5] {
        let owned = |names: &[&'static str]| names.iter().map(|name| (*name).to_owned()).collect();
        [
            self.kex.iter().map(|kex| kex.name.to_owned()).collect(),
            self.protections
                .iter()
                .map(|protection| protection.label())
                .collect(),
            owned(&self.host_keys),
            owned(&self.user_keys),
            self.guesses.iter().copied().map(first_message).collect(),
        ]
    }
}

fn first_message(guess: bool) -> String {
    let label = match guess {
        false => "KEXINIT alone",
        true => "KEXINIT and a guess",
    };
    label.to_owned()
}

/// Every signature algorithm that the client verifies and signs by.
pub fn signature_algorithms() -> impl Iterator<Item = &'static str> {
    KeyType::ALL
        .into_iter()
        .flat_map(|kind| kind.signature_algorithms())
        .copied()
}
