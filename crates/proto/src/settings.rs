//! What the caller decides: offers, limits and credentials.

use std::sync::Arc;
use std::time::Duration;

use sshoal_crypto::{Cipher, KexAlgorithm, Mac, PrivateKey};

use crate::channels::MAX_DATA;
use crate::identification::Identification;
use crate::pipelining::Pipelining;
use crate::secret::Secret;

/// What every connection of a run offers; shared, not copied.
#[derive(Clone)]
pub struct Settings {
    /// What follows "SSH-2.0-" in our identification string (RFC 4253 section 4.2).
    pub software: String,
    /// Key exchange algorithms, best first.
    pub kex: Vec<&'static KexAlgorithm>,
    /// Ciphers for both directions, best first.
    pub ciphers: Vec<Cipher>,
    /// MACs for both directions, best first; not used with AEAD ciphers.
    pub macs: Vec<Mac>,
    /// RSA host keys below this are refused (RequiredRSASize), bits.
    pub required_rsa_size: usize,
    /// When to rekey.
    pub rekey: RekeyLimits,
    /// Octets of receive window for each channel. 2 to 8 MiB keep sshd's input buffer from being
    /// moved about (sshbuf.c).
    pub window: u32,
    /// Keepalive requests: interval and how many may go unanswered (ServerAliveInterval, ServerAliveCountMax).
    pub keepalive: Option<(Duration, u32)>,
    /// Where random octets for cookies and padding come from.
    pub random: fn(&mut [u8]),
    /// Whether public keys sign for the server's host key as well where the server can check that
    /// ("publickey-hostbound-v00@openssh.com", PROTOCOL section 3.1; PubkeyAuthentication unbound turns it off).
    pub binds_to_host_key: bool,
    /// The furthest that flights may be merged, whatever the server supports.
    pub pipelining: Pipelining,
    /// Whether all names of the server's first KEXINIT are kept ([`Connection::server_lists`](crate::Connection::server_lists)).
    pub keeps_lists: bool,
    /// Whether it is noted when each message of the server's came ([`Connection::arrivals`](crate::Connection::arrivals)):
    /// for measurements, which read as soon as an octet is there.
    pub notes_arrivals: bool,
}

/// Why settings cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// A list is empty: nothing could be negotiated.
    #[error("the list of {0} is empty")]
    Empty(&'static str),
    /// A receive window that does not take one whole message.
    #[error("a window of {window} octets; at least {least} are needed")]
    Window {
        /// As set.
        window: u32,
        /// The largest message of data.
        least: u32,
    },
}

impl Settings {
    /// This crate's defaults: all algorithms in the order of measured preference.
    pub fn recommended() -> Self {
        Settings {
            software: concat!("sshoal_", env!("CARGO_PKG_VERSION")).to_owned(),
            kex: sshoal_crypto::kex::ALGORITHMS.iter().collect(),
            ciphers: sshoal_crypto::Cipher::preferred().to_vec(),
            macs: Mac::ALL.to_vec(),
            required_rsa_size: 1024,
            rekey: RekeyLimits::default(),
            window: 2 * 1024 * 1024,
            keepalive: None,
            random: sshoal_crypto::random,
            binds_to_host_key: true,
            pipelining: Pipelining::Exec,
            keeps_lists: false,
            notes_arrivals: false,
        }
    }

    /// Checks that something can be negotiated at all, and received.
    pub fn validate(&self) -> Result<(), SettingsError> {
        if self.kex.is_empty() {
            return Err(SettingsError::Empty("key exchange algorithms"));
        }
        if self.ciphers.is_empty() {
            return Err(SettingsError::Empty("ciphers"));
        }
        if self.macs.is_empty() && !self.ciphers.iter().all(|cipher| cipher.is_aead()) {
            return Err(SettingsError::Empty("MACs"));
        }
        if self.window < MAX_DATA {
            return Err(SettingsError::Window {
                window: self.window,
                least: MAX_DATA,
            });
        }
        Ok(())
    }
}

/// When this side starts a key re-exchange, beside each cipher's own limit (RFC 4253 section 9, RFC 4344).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RekeyLimits {
    /// Octets in either direction; `None` for the cipher's own limit as OpenSSH computes it (packet.c).
    pub bytes: Option<u64>,
    /// Packets in either direction: OpenSSH's 2^31.
    pub packets: u32,
    /// Time since the last key exchange.
    pub interval: Option<Duration>,
}

impl Default for RekeyLimits {
    fn default() -> Self {
        RekeyLimits {
            bytes: None,
            packets: 1 << 31,
            interval: None,
        }
    }
}

/// What is particular to one connection.
pub struct Opening {
    /// The user to log in as.
    pub user: String,
    /// Host-key algorithms to offer, best first, ordered by what is known of this host.
    pub host_key_algorithms: Vec<&'static str>,
    /// Send the first key-exchange message with KEXINIT, guessing that the server prefers our first
    /// key exchange and host-key algorithm too (RFC 4253 section 7.1). Only for a server whose lists are known.
    pub guess_key_exchange: bool,
}

/// Something to authenticate with.
#[derive(Clone)]
pub enum Credential {
    /// "none": learns which methods can continue.
    None,
    /// "publickey" (RFC 4252 section 7).
    PublicKey(PublicKeyCredential),
    /// "password" (RFC 4252 section 8).
    Password(Secret),
    /// "keyboard-interactive" (RFC 4256).
    KeyboardInteractive,
}

/// A public key, and who signs for it.
#[derive(Clone)]
pub struct PublicKeyCredential {
    /// Key or certificate blob.
    pub blob: Vec<u8>,
    /// Algorithms it can sign with, best first; the server's server-sig-algs chooses.
    pub algorithms: Vec<SignatureAlgorithm>,
    /// Who signs.
    pub signer: Signer,
    /// Ask whether the server would accept the key before signing (costs a round trip and sshd's padding).
    pub probe: bool,
    /// Whether the command may travel in the same flight: not for keys that need a touch or a confirmation.
    pub pipeline: bool,
}

/// A public key algorithm name as RFC 4252 section 7 wants it, and the name inside the signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignatureAlgorithm {
    /// In the request: for certificates the certificate's algorithm (PROTOCOL.certkeys).
    pub request: String,
    /// In the signature.
    pub signature: String,
}

/// Who signs.
#[derive(Clone)]
pub enum Signer {
    /// A private key held in memory.
    Held(Arc<PrivateKey>),
    /// The caller, by [`Event::SignatureNeeded`](crate::Event::SignatureNeeded): an agent.
    External,
}

impl PublicKeyCredential {
    /// A private key in memory, offered as it is: signed at once, merged where the server allows it.
    pub fn held(key: Arc<PrivateKey>) -> Self {
        let algorithms = key
            .algorithms()
            .iter()
            .map(|name| SignatureAlgorithm {
                request: (*name).to_owned(),
                signature: (*name).to_owned(),
            })
            .collect();
        PublicKeyCredential {
            blob: key.public_blob().to_vec(),
            algorithms,
            signer: Signer::Held(key),
            probe: false,
            pipeline: true,
        }
    }
}

/// How far flights may be merged with this server by these settings.
pub(crate) fn pipelining(settings: &Settings, server: &Identification) -> Pipelining {
    settings.pipelining.min(Pipelining::supported_by(server))
}
