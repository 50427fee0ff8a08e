//! Keys and lines for tests. The keys are well formed; whether they are points or primes is no
//! concern of known_hosts.

#![allow(clippy::unwrap_used)]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::hashed::HashedName;
use crate::{HostName, KnownHosts};

fn string(bytes: &[u8]) -> Vec<u8> {
    let mut out = (bytes.len() as u32).to_be_bytes().to_vec();
    out.extend(bytes);
    out
}

fn blob(parts: &[&[u8]]) -> Vec<u8> {
    parts.iter().flat_map(|part| string(part)).collect()
}

/// An Ed25519 key, another for each `seed`.
pub(crate) fn ed25519(seed: u8) -> Vec<u8> {
    blob(&[b"ssh-ed25519", &[seed; 32]])
}

/// An ECDSA key on P-256.
pub(crate) fn ecdsa(seed: u8) -> Vec<u8> {
    let mut point = vec![seed; 65];
    point[0] = 4;
    blob(&[b"ecdsa-sha2-nistp256", b"nistp256", &point])
}

/// A 2048-bit RSA key whose modulus is padded with `zeros` zero bytes; one is canonical.
pub(crate) fn rsa(seed: u8, zeros: usize) -> Vec<u8> {
    let mut modulus = vec![0; zeros];
    modulus.extend([0x80 | seed; 256]);
    blob(&[b"ssh-rsa", &[1, 0, 1], &modulus])
}

/// An Ed25519 certificate's blob for the key of `seed`, as far as known_hosts reads it.
pub(crate) fn ed25519_certificate(seed: u8) -> Vec<u8> {
    let name = b"ssh-ed25519-cert-v01@openssh.com";
    let mut out = blob(&[name, &[9; 32], &[seed; 32]]);
    out.extend([0; 8]);
    out
}

/// A key of a type that is not known here.
pub(crate) fn foreign(seed: u8) -> Vec<u8> {
    blob(&[b"ssh-mldsa44-ed25519@openssh.com", &[seed; 64]])
}

/// The type and the key as a line has them.
pub(crate) fn text(blob: &[u8]) -> String {
    let len = u32::from_be_bytes([blob[0], blob[1], blob[2], blob[3]]) as usize;
    let name = std::str::from_utf8(&blob[4..4 + len]).unwrap();
    format!("{name} {}", STANDARD.encode(blob))
}

/// A name hashed with a salt of its own for each `salt`.
pub(crate) fn hashed(name: &str, salt: u8) -> String {
    HashedName::of(name.as_bytes(), [salt; 20]).written()
}

/// One file of these lines.
pub(crate) fn known_hosts(lines: &[String]) -> KnownHosts {
    KnownHosts::parse(vec![("known_hosts".into(), lines.join("\n").into_bytes())])
}

/// The numbers of the lines that apply to a host.
pub(crate) fn lines_for(known: &KnownHosts, host: &HostName<'_>) -> Vec<usize> {
    known
        .lookup(host)
        .iter()
        .map(|entry| entry.location().line)
        .collect()
}
