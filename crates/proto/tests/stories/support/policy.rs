//! What a test server is and does.

use std::sync::Arc;

use sshoal_crypto::PrivateKey;

use super::keys::key;

/// The server's own `first_kex_packet_follows`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guess {
    /// It does not guess.
    None,
    /// It announces a guess that is right; a server sends nothing first in any method known.
    Right,
    /// It sends a packet of a method that is not chosen.
    Wrong,
}

/// What a server is and does.
#[derive(Clone)]
pub struct Policy {
    pub identification: &'static str,
    pub kex: Vec<&'static str>,
    pub host_key_algorithms: Vec<&'static str>,
    pub ciphers: Vec<&'static str>,
    pub macs: Vec<&'static str>,
    pub strict: bool,
    pub guess: Guess,
    pub ext_info: Vec<(&'static str, &'static str)>,
    pub host_key: Arc<PrivateKey>,
    /// Signs the exchange; the host key, unless the server lies.
    pub signing_key: Arc<PrivateKey>,
    /// Public keys that may log in.
    pub accepted_keys: Vec<Vec<u8>>,
    /// How many different accepted credentials a login takes.
    pub credentials_needed: usize,
    pub password: &'static str,
    /// What the authentication methods are said to be.
    pub methods: &'static str,
    pub max_sessions: usize,
    /// The number of the first channel.
    pub first_channel: u32,
    /// Octets of receive window for each session, given once its process starts (OpenSSH's way).
    pub window: u32,
    pub max_packet: u32,
    /// Whether processes read what they are sent.
    pub reads_stdin: bool,
    /// Whether the parts of the protocol are answered by the server itself, or left to the story.
    pub answers_kex: bool,
    pub answers_login: bool,
    pub answers_channels: bool,
}

impl Policy {
    /// An OpenSSH that flights may be merged for.
    pub fn openssh() -> Self {
        let host_key = key(1);
        Policy {
            identification: "SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3",
            kex: vec!["curve25519-sha256"],
            host_key_algorithms: vec!["ssh-ed25519"],
            ciphers: vec!["aes128-gcm@openssh.com"],
            macs: vec!["hmac-sha2-256"],
            strict: true,
            guess: Guess::None,
            ext_info: vec![(
                "server-sig-algs",
                "ssh-ed25519,rsa-sha2-512,rsa-sha2-256,ecdsa-sha2-nistp256",
            )],
            signing_key: host_key.clone(),
            host_key,
            accepted_keys: vec![key(2).public_blob().to_vec()],
            credentials_needed: 1,
            password: "correct horse",
            methods: "publickey,password",
            max_sessions: 10,
            first_channel: 0,
            window: 2 * 1024 * 1024,
            max_packet: 32 * 1024,
            reads_stdin: true,
            answers_kex: true,
            answers_login: true,
            answers_channels: true,
        }
    }

    /// Software that nothing is known of: one message, one answer.
    pub fn unknown() -> Self {
        Policy {
            identification: "SSH-2.0-Mystery_1.0",
            ..Policy::openssh()
        }
    }
}
