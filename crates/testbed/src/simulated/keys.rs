//! Keys derived from a seed: the same simulation has the same keys, and ten thousand cost a moment.

use russh::keys::PrivateKey;
use russh::keys::ssh_key::private::{Ed25519Keypair, KeypairData};

/// What a derived key is for, so that no two purposes share a key.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    /// The key that known_hosts says.
    Host,
    /// The key that a host with a wrong or changed key presents.
    OtherHost,
    /// The client's.
    Client,
}

/// The ed25519 key of host `index` for `purpose`. Anybody can derive it: no secret, by intention.
pub(super) fn derive(seed: u64, purpose: Purpose, index: u32) -> PrivateKey {
    let mut secret = *b"sshoal-testbed..................";
    secret[15] = match purpose {
        Purpose::Host => b'h',
        Purpose::OtherHost => b'o',
        Purpose::Client => b'c',
    };
    secret[16..24].copy_from_slice(&seed.to_be_bytes());
    secret[24..28].copy_from_slice(&index.to_be_bytes());
    PrivateKey::new(
        KeypairData::Ed25519(Ed25519Keypair::from_seed(&secret)),
        "sshoal-testbed",
    )
    .expect("only key types that PrivateKey cannot hold are refused")
}
