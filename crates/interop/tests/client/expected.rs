//! What each server is supposed to share with the client: if it no longer does, on either side, a test fails.
//!
//! What a server has beyond this is combined as well, see [`Axes::shared`].

use std::collections::BTreeSet;

use sshoal_crypto::{Cipher, Mac, kex};
use sshoal_interop::Software;

use crate::axes::{Axes, signature_algorithms};

const CURVES: &[&str] = &[
    "curve25519-sha256",
    "curve25519-sha256@libssh.org",
    "ecdh-sha2-nistp256",
    "ecdh-sha2-nistp384",
    "ecdh-sha2-nistp521",
    "diffie-hellman-group14-sha256",
];
const LARGE_GROUPS: &[&str] = &[
    "diffie-hellman-group16-sha512",
    "diffie-hellman-group18-sha512",
];
/// The name without a domain came with OpenSSH 9.9; Debian gave it to 9.2 too.
const SNTRUP: &[&str] = &[
    "sntrup761x25519-sha512",
    "sntrup761x25519-sha512@openssh.com",
];
const GROUP_EXCHANGE: &[&str] = &["diffie-hellman-group-exchange-sha256"];

const GCM: &[&str] = &["aes128-gcm@openssh.com", "aes256-gcm@openssh.com"];
const CHACHA_AND_CTR: &[&str] = &["chacha20-poly1305@openssh.com", "aes128-ctr", "aes256-ctr"];
const CTR_192: &[&str] = &["aes192-ctr"];

const HMAC_SHA2: &[&str] = &[
    "hmac-sha2-256-etm@openssh.com",
    "hmac-sha2-512-etm@openssh.com",
    "hmac-sha2-256",
    "hmac-sha2-512",
];
const HMAC_SHA1: &[&str] = &["hmac-sha1-etm@openssh.com", "hmac-sha1"];

const SIGNATURES: &[&str] = &[
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "rsa-sha2-256",
];
const RSA_SHA512: &[&str] = &["rsa-sha2-512"];

/// All names that must be among the server's.
fn expected(software: Software) -> BTreeSet<&'static str> {
    let parts: &[&[&str]] = match software {
        Software::OpenSsh => &[
            SNTRUP,
            LARGE_GROUPS,
            GROUP_EXCHANGE,
            GCM,
            CTR_192,
            HMAC_SHA2,
            HMAC_SHA1,
            RSA_SHA512,
        ],
        Software::Dropbear => &[&["hmac-sha2-256", "hmac-sha1"]],
        Software::Asyncssh => &[
            &["mlkem768x25519-sha256"],
            LARGE_GROUPS,
            GROUP_EXCHANGE,
            GCM,
            CTR_192,
            HMAC_SHA2,
            HMAC_SHA1,
            RSA_SHA512,
        ],
        Software::Go => &[
            &["mlkem768x25519-sha256", "diffie-hellman-group16-sha512"],
            GROUP_EXCHANGE,
            GCM,
            CTR_192,
            HMAC_SHA2,
            RSA_SHA512,
        ],
        Software::Russh => &[
            &["mlkem768x25519-sha256"],
            LARGE_GROUPS,
            GROUP_EXCHANGE,
            GCM,
            CTR_192,
            HMAC_SHA2,
            HMAC_SHA1,
            RSA_SHA512,
        ],
    };
    [CURVES, CHACHA_AND_CTR, SIGNATURES]
        .iter()
        .chain(parts)
        .flat_map(|part| part.iter().copied())
        .collect()
}

/// Names that the server is supposed to share with the client and does not.
pub fn missing(software: Software, axes: &Axes) -> Vec<&'static str> {
    let shared = shared_names(axes);
    expected(software).difference(&shared).copied().collect()
}

/// Whether the server drops a wrong guess. asyncssh takes any message of the chosen key exchange for a right guess: it
/// compares the choice with the client's first name, not with its own (connection.py, `_process_kexinit`).
pub fn skips_wrong_guesses(software: Software) -> bool {
    software != Software::Asyncssh
}

/// Names of the client that the server does not have, for people to read.
pub fn not_offered(axes: &Axes) -> Vec<&'static str> {
    client_names()
        .difference(&shared_names(axes))
        .copied()
        .collect()
}

fn shared_names(axes: &Axes) -> BTreeSet<&'static str> {
    let ciphers = axes
        .protections
        .iter()
        .map(|protection| protection.cipher.name());
    let macs = axes
        .protections
        .iter()
        .filter_map(|protection| protection.mac);
    let kex = axes.kex.iter().map(|kex| kex.name);
    let signatures = axes.host_keys.iter().chain(&axes.user_keys).copied();
    kex.chain(ciphers)
        .chain(macs.map(Mac::name))
        .chain(signatures)
        .collect()
}

fn client_names() -> BTreeSet<&'static str> {
    let kex = kex::ALGORITHMS.iter().map(|kex| kex.name);
    let ciphers = Cipher::ALL.iter().map(|cipher| cipher.name());
    let macs = Mac::ALL.iter().map(|mac| mac.name());
    kex.chain(ciphers)
        .chain(macs)
        .chain(signature_algorithms())
        .collect()
}

#[test]
fn every_algorithm_of_the_client_meets_a_server() {
    let met: BTreeSet<&str> = Software::ALL.into_iter().flat_map(expected).collect();
    let client = client_names();
    assert_eq!(client, met, "left: the client's, right: the servers'");
}
