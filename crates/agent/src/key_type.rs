//! The types of keys that an agent may hold, and the algorithms each signs with.

use sshoal_wire::{DecodeError, Decoder};

/// A type of public key, as its blob begins.
#[derive(Debug, PartialEq, Eq)]
pub struct KeyType {
    /// The name at the beginning of the blob, such as `ssh-rsa`.
    pub name: &'static str,
    /// Whether the blob is a certificate (OpenSSH's PROTOCOL.certkeys).
    pub certificate: bool,
    /// Whether the private half is in a FIDO security key, which asks for a touch (PROTOCOL.u2f): one signature at a
    /// time, with the host named to the user.
    pub security_key: bool,
    /// What it signs with, most preferred first.
    pub algorithms: &'static [Algorithm],
}

/// A public key algorithm of user authentication (RFC 4252, section 7; RFC 8332).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Algorithm {
    /// The name in USERAUTH_REQUEST, such as `rsa-sha2-512-cert-v01@openssh.com`.
    pub name: &'static str,
    /// The name inside the signature, such as `rsa-sha2-512`.
    pub signature: &'static str,
    /// The flags of SSH_AGENTC_SIGN_REQUEST that choose it.
    pub(crate) flags: u32,
}

/// `SSH_AGENT_RSA_SHA2_256`
const RSA_SHA2_256: u32 = 0x02;
/// `SSH_AGENT_RSA_SHA2_512`
const RSA_SHA2_512: u32 = 0x04;

impl KeyType {
    /// The type that a key blob claims to be; `None` if it is not in [`KEY_TYPES`].
    ///
    /// # Errors
    /// The blob does not begin with a string.
    pub fn of_blob(blob: &[u8]) -> Result<Option<&'static Self>, DecodeError> {
        let name = Decoder::named("public key", blob)
            .field("key_type")
            .string()?;
        Ok(KEY_TYPES
            .iter()
            .find(|key_type| key_type.name.as_bytes() == name))
    }

    /// The algorithm of this name, if the type signs with it.
    #[must_use]
    pub fn algorithm(&self, name: &str) -> Option<&'static Algorithm> {
        self.algorithms
            .iter()
            .find(|algorithm| algorithm.name == name)
    }
}

const fn plain(name: &'static str, algorithms: &'static [Algorithm]) -> KeyType {
    KeyType {
        name,
        certificate: false,
        security_key: false,
        algorithms,
    }
}

const fn certificate(name: &'static str, algorithms: &'static [Algorithm]) -> KeyType {
    KeyType {
        certificate: true,
        ..plain(name, algorithms)
    }
}

const fn security_key(of: KeyType) -> KeyType {
    KeyType {
        security_key: true,
        ..of
    }
}

const fn signs(name: &'static str, signature: &'static str) -> Algorithm {
    Algorithm {
        name,
        signature,
        flags: 0,
    }
}

const fn flagged(flags: u32, of: Algorithm) -> Algorithm {
    Algorithm { flags, ..of }
}

const ED25519: &str = "ssh-ed25519";
const ED25519_CERT: &str = "ssh-ed25519-cert-v01@openssh.com";
const P256: &str = "ecdsa-sha2-nistp256";
const P256_CERT: &str = "ecdsa-sha2-nistp256-cert-v01@openssh.com";
const P384: &str = "ecdsa-sha2-nistp384";
const P384_CERT: &str = "ecdsa-sha2-nistp384-cert-v01@openssh.com";
const P521: &str = "ecdsa-sha2-nistp521";
const P521_CERT: &str = "ecdsa-sha2-nistp521-cert-v01@openssh.com";
const RSA_256: &str = "rsa-sha2-256";
const RSA_256_CERT: &str = "rsa-sha2-256-cert-v01@openssh.com";
const RSA_512: &str = "rsa-sha2-512";
const RSA_512_CERT: &str = "rsa-sha2-512-cert-v01@openssh.com";
const SK_ED25519: &str = "sk-ssh-ed25519@openssh.com";
const SK_ED25519_CERT: &str = "sk-ssh-ed25519-cert-v01@openssh.com";
const SK_P256: &str = "sk-ecdsa-sha2-nistp256@openssh.com";
const SK_P256_CERT: &str = "sk-ecdsa-sha2-nistp256-cert-v01@openssh.com";

/// All types of which something can be made. RSA with SHA-1 and DSA are left out on purpose: servers refuse them.
#[rustfmt::skip]
pub static KEY_TYPES: &[KeyType] = &[
    plain(ED25519,            &[signs(ED25519, ED25519)]),
    certificate(ED25519_CERT, &[signs(ED25519_CERT, ED25519)]),
    plain(P256,               &[signs(P256, P256)]),
    certificate(P256_CERT,    &[signs(P256_CERT, P256)]),
    plain(P384,               &[signs(P384, P384)]),
    certificate(P384_CERT,    &[signs(P384_CERT, P384)]),
    plain(P521,               &[signs(P521, P521)]),
    certificate(P521_CERT,    &[signs(P521_CERT, P521)]),
    plain("ssh-rsa", &[
        flagged(RSA_SHA2_512, signs(RSA_512, RSA_512)),
        flagged(RSA_SHA2_256, signs(RSA_256, RSA_256)),
    ]),
    certificate("ssh-rsa-cert-v01@openssh.com", &[
        flagged(RSA_SHA2_512, signs(RSA_512_CERT, RSA_512)),
        flagged(RSA_SHA2_256, signs(RSA_256_CERT, RSA_256)),
    ]),
    security_key(plain(SK_ED25519,            &[signs(SK_ED25519, SK_ED25519)])),
    security_key(certificate(SK_ED25519_CERT, &[signs(SK_ED25519_CERT, SK_ED25519)])),
    security_key(plain(SK_P256,               &[signs(SK_P256, SK_P256)])),
    security_key(certificate(SK_P256_CERT,    &[signs(SK_P256_CERT, SK_P256)])),
];
