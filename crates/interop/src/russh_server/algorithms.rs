//! What russh is told to offer: all that it has and does not call insecure, and HMAC-SHA-1.

use std::borrow::Cow;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use russh::keys::load_secret_key;
use russh::server::Config;
use russh::{MethodKind, MethodSet, Preferred, cipher, compression, kex, mac};

use crate::software::Options;

/// russh's own default leaves out the NIST curves.
const KEX: &[kex::Name] = &[
    kex::MLKEM768X25519_SHA256,
    kex::CURVE25519,
    kex::CURVE25519_PRE_RFC_8731,
    kex::ECDH_SHA2_NISTP256,
    kex::ECDH_SHA2_NISTP384,
    kex::ECDH_SHA2_NISTP521,
    kex::DH_GEX_SHA256,
    kex::DH_G14_SHA256,
    kex::DH_G15_SHA512,
    kex::DH_G16_SHA512,
    kex::DH_G17_SHA512,
    kex::DH_G18_SHA512,
];

/// RFC 8308 and OpenSSH's strict key exchange, which russh takes for names of the same list.
const KEX_EXTENSIONS: &[kex::Name] = &[
    kex::EXTENSION_SUPPORT_AS_SERVER,
    kex::EXTENSION_OPENSSH_STRICT_KEX_AS_SERVER,
];

const CIPHERS: &[cipher::Name] = &[
    cipher::CHACHA20_POLY1305,
    cipher::AES_256_GCM,
    cipher::AES_128_GCM,
    cipher::AES_256_CTR,
    cipher::AES_192_CTR,
    cipher::AES_128_CTR,
];

const MACS: &[mac::Name] = &[
    mac::HMAC_SHA512_ETM,
    mac::HMAC_SHA256_ETM,
    mac::HMAC_SHA1_ETM,
    mac::HMAC_SHA512,
    mac::HMAC_SHA256,
    mac::HMAC_SHA1,
];

/// russh's configuration, with the host keys of these files.
pub(super) fn config(options: &Options, host_keys: &[PathBuf]) -> io::Result<Config> {
    let keys = host_keys
        .iter()
        .map(|file| load_secret_key(file, None).map_err(io::Error::other))
        .collect::<io::Result<_>>()?;
    let mut kex = chosen(&options.kex_algorithms, KEX)?;
    if !options.plain_kex {
        kex.extend(KEX_EXTENSIONS);
    }
    let mut methods = MethodSet::empty();
    methods.push(MethodKind::PublicKey);
    let mut config = Config {
        keys,
        methods,
        // Nobody guesses passwords here.
        auth_rejection_time: Duration::ZERO,
        auth_rejection_time_initial: Some(Duration::ZERO),
        inactivity_timeout: None,
        preferred: Preferred {
            kex: Cow::Owned(kex),
            cipher: Cow::Owned(chosen(&options.ciphers, CIPHERS)?),
            mac: Cow::Owned(chosen(&options.macs, MACS)?),
            compression: Cow::Borrowed(&[compression::NONE]),
            ..Preferred::DEFAULT
        },
        ..Config::default()
    };
    if let Some(bytes) = options.rekey_bytes {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        config.limits.rekey_read_limit = bytes;
        config.limits.rekey_write_limit = bytes;
    }
    Ok(config)
}

/// The named algorithms, or `otherwise` if none is named.
fn chosen<T>(names: &[String], otherwise: &[T]) -> io::Result<Vec<T>>
where
    T: Copy + for<'a> TryFrom<&'a str>,
{
    if names.is_empty() {
        return Ok(otherwise.to_vec());
    }
    let by_name = |name: &String| {
        T::try_from(name.as_str())
            .map_err(|_| io::Error::other(format!("russh has no algorithm {name}")))
    };
    names.iter().map(by_name).collect()
}
