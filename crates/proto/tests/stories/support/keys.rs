//! Keys that are the same in every run.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sshoal_crypto::PrivateKey;

/// RFC 8410 section 7: what stands before the 32 octets of an ed25519 key in PKCS#8.
const PKCS8: [u8; 16] = [
    0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20,
];

/// An ed25519 key made of one octet.
pub fn key(seed: u8) -> Arc<PrivateKey> {
    let der = [PKCS8.as_slice(), &[seed; 32]].concat();
    let pem = format!(
        "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
        STANDARD.encode(der)
    );
    Arc::new(PrivateKey::parse(pem.as_bytes(), None).expect("a key of ours"))
}
