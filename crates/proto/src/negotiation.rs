//! Algorithm negotiation: RFC 4253 section 7.1.

use sshoal_crypto::{Cipher, KexAlgorithm, Mac};
use sshoal_wire::{KexInit, NameList};

use crate::error::ConnectionError;
use crate::settings::Settings;

/// RFC 8308 section 2.1: this client understands EXT_INFO.
const EXT_INFO_CLIENT: &str = "ext-info-c";
/// "strict key exchange" of OpenSSH's PROTOCOL, offered by this client.
const STRICT_CLIENT: &str = "kex-strict-c-v00@openssh.com";
/// The same, offered by a server.
const STRICT_SERVER: &str = "kex-strict-s-v00@openssh.com";

/// What both sides will use.
#[derive(Clone, Copy)]
pub(crate) struct Chosen {
    pub(crate) kex: &'static KexAlgorithm,
    pub(crate) host_key: &'static str,
    pub(crate) client_to_server: Protection,
    pub(crate) server_to_client: Protection,
    /// The server offers strict key exchange; only its first KEXINIT counts.
    pub(crate) strict: bool,
    /// The server's guess was wrong: its next key-exchange message is to be skipped.
    pub(crate) skip_next: bool,
    /// Our own guess, if we made one, was right.
    pub(crate) guess_was_right: bool,
}

/// One direction's packet protection.
#[derive(Clone, Copy)]
pub(crate) struct Protection {
    pub(crate) cipher: Cipher,
    pub(crate) mac: Option<Mac>,
}

/// Our KEXINIT's payload. `first_follows` announces a guessed key-exchange message.
pub(crate) fn propose(
    settings: &Settings,
    host_keys: &[&'static str],
    initial: bool,
    first_follows: bool,
) -> Vec<u8> {
    let mut kex: Vec<&str> = settings
        .kex
        .iter()
        .map(|algorithm| algorithm.name)
        .collect();
    if initial {
        kex.extend([EXT_INFO_CLIENT, STRICT_CLIENT]);
    }
    let kex = kex.join(",");
    let host_keys = host_keys.join(",");
    let ciphers = join(settings.ciphers.iter().map(|cipher| cipher.name()));
    // Some servers refuse an empty list even where every cipher authenticates by itself.
    let macs = match settings.macs.as_slice() {
        [] => Mac::ALL[0].name().to_owned(),
        macs => join(macs.iter().map(|mac| mac.name())),
    };
    let mut cookie = [0; 16];
    (settings.random)(&mut cookie);
    let mut payload =
        Vec::with_capacity(kex.len() + host_keys.len() + 2 * (ciphers.len() + macs.len()) + 96);
    KexInit {
        cookie,
        kex_algorithms: NameList::new(&kex),
        server_host_key_algorithms: NameList::new(&host_keys),
        encryption_algorithms_client_to_server: NameList::new(&ciphers),
        encryption_algorithms_server_to_client: NameList::new(&ciphers),
        mac_algorithms_client_to_server: NameList::new(&macs),
        mac_algorithms_server_to_client: NameList::new(&macs),
        compression_algorithms_client_to_server: NameList::new("none"),
        compression_algorithms_server_to_client: NameList::new("none"),
        languages_client_to_server: NameList::new(""),
        languages_server_to_client: NameList::new(""),
        first_kex_packet_follows: first_follows,
        reserved: 0,
    }
    .encode(&mut payload);
    payload
}

/// Chooses by RFC 4253 section 7.1: "The chosen algorithm MUST be the first algorithm on the client's name-list that is
/// also on the server's name-list. If there is no such algorithm, both sides MUST disconnect."
pub(crate) fn choose(
    settings: &Settings,
    host_keys: &[&'static str],
    theirs: &KexInit<'_>,
) -> Result<Chosen, ConnectionError> {
    let kex = pick(
        "key exchange algorithm",
        &settings.kex,
        |a| a.name,
        theirs.kex_algorithms,
    )?;
    let host_key = pick(
        "host key algorithm",
        host_keys,
        |name| name,
        theirs.server_host_key_algorithms,
    )?;
    let client_to_server = protection(
        settings,
        ["cipher (client to server)", "MAC (client to server)"],
        theirs.encryption_algorithms_client_to_server,
        theirs.mac_algorithms_client_to_server,
    )?;
    let server_to_client = protection(
        settings,
        ["cipher (server to client)", "MAC (server to client)"],
        theirs.encryption_algorithms_server_to_client,
        theirs.mac_algorithms_server_to_client,
    )?;
    for theirs in [
        theirs.compression_algorithms_client_to_server,
        theirs.compression_algorithms_server_to_client,
    ] {
        pick("compression", &["none"], |name| name, theirs)?;
    }
    // "The guess is considered wrong if: the kex algorithm and/or the host key algorithm is guessed wrong (server and
    // client have different preferred algorithm), or if any of the other algorithms cannot be agreed upon".
    let firsts_agree = theirs.kex_algorithms.first() == settings.kex.first().map(|a| a.name)
        && theirs.server_host_key_algorithms.first() == host_keys.first().copied();
    Ok(Chosen {
        kex,
        host_key,
        client_to_server,
        server_to_client,
        strict: theirs.kex_algorithms.contains(STRICT_SERVER),
        skip_next: theirs.first_kex_packet_follows && !firsts_agree,
        guess_was_right: firsts_agree,
    })
}

fn protection(
    settings: &Settings,
    [cipher_purpose, mac_purpose]: [&'static str; 2],
    their_ciphers: NameList<'_>,
    their_macs: NameList<'_>,
) -> Result<Protection, ConnectionError> {
    let cipher = pick(
        cipher_purpose,
        &settings.ciphers,
        |cipher| cipher.name(),
        their_ciphers,
    )?;
    let mac = match cipher.is_aead() {
        true => None,
        false => Some(pick(
            mac_purpose,
            &settings.macs,
            |mac| mac.name(),
            their_macs,
        )?),
    };
    Ok(Protection { cipher, mac })
}

fn pick<T: Copy>(
    purpose: &'static str,
    ours: &[T],
    name: impl Fn(T) -> &'static str,
    theirs: NameList<'_>,
) -> Result<T, ConnectionError> {
    ours.iter()
        .copied()
        .find(|&candidate| theirs.contains(name(candidate)))
        .ok_or_else(|| ConnectionError::NoCommonAlgorithm {
            purpose,
            ours: join(ours.iter().map(|&candidate| name(candidate))),
            theirs: theirs.as_str().to_owned(),
        })
}

fn join(names: impl Iterator<Item = &'static str>) -> String {
    names.collect::<Vec<_>>().join(",")
}
