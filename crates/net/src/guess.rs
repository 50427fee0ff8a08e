//! How a connection opens: with what is known of its server, the first flight may carry more.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use sshoal_crypto::{KexAlgorithm, KexMethod, fingerprint_sha256};
use sshoal_known_hosts::{KeyType, Marker};
use sshoal_proto::{Opening, Pipelining, Settings};

use crate::plan::{Endpoint, HostTrust};
use crate::server_cache::{KnownServer, Protection, ServerCache};
use crate::shortcuts::{Doubt, Shortcuts};
use crate::worker::Worker;

/// Round trips shorter than this are not worth a guess: a wrong one costs the server a key exchange.
const LEAST_ROUND_TRIP: Duration = Duration::from_millis(2);
/// What an RSA host key costs beside an Ed25519 one, mostly the server's signature.
const RSA_SIGNATURE: Duration = Duration::from_millis(3);
/// What sntrup761 costs a server beside a curve.
const SNTRUP_SERVER: Duration = Duration::from_millis(14);
/// What it costs this side (ADR 0002): every login that shares the thread waits for it.
const SNTRUP_CLIENT: Duration = Duration::from_millis(11);

/// Settings that differ from a host's own only by what is known of its server; made once, then shared.
#[derive(Default)]
pub(crate) struct AdaptedSettings(RefCell<HashMap<Adaptation, Arc<Settings>>>);

#[derive(PartialEq, Eq, Hash)]
struct Adaptation {
    /// The address of the host's own settings, which the plan keeps alive.
    original: usize,
    /// The key exchange to put first.
    first_kex: Option<&'static KexAlgorithm>,
    pipelining: bool,
    window: u32,
    /// What was measured of the server, as its cache has it.
    fastest: String,
}

/// How one connection is opened.
pub(crate) struct Opened {
    pub(crate) settings: Arc<Settings>,
    pub(crate) opening: Opening,
    pub(crate) shortcuts: Shortcuts,
}

/// How to open a connection of this worker to a host `round_trip` away; its channels' windows are `window`.
/// The algorithms are in the order of [`HostTrust::ordered_algorithms`].
pub(crate) fn opening(
    endpoint: &Endpoint,
    worker: &Worker,
    round_trip: Duration,
    window: u32,
    host_key_algorithms: Vec<&'static str>,
) -> Opened {
    let mut opening = Opening {
        user: endpoint.user.clone(),
        host_key_algorithms,
        guess_key_exchange: false,
    };
    let known = endpoint.trust.known_server(&worker.servers);
    let doubt = worker.doubts.about(endpoint);
    let guess = known
        .as_ref()
        .filter(|(_, server)| server.pipelining && doubt.is_none())
        .and_then(|(_, server)| guess(endpoint, server, &opening.host_key_algorithms))
        .filter(|(kex, host_key)| {
            round_trip >= least_round_trip(kex.method, host_key, worker.crowd)
        });
    if let Some((_, host_key)) = guess {
        opening.guess_key_exchange = true;
        opening.host_key_algorithms.retain(|name| *name != host_key);
        opening.host_key_algorithms.insert(0, host_key);
    }
    let adaptation = Adaptation {
        original: Arc::as_ptr(&endpoint.settings) as usize,
        first_kex: guess.map(|(kex, _)| kex),
        pipelining: known.as_ref().is_none_or(|(_, server)| server.pipelining)
            && doubt != Some(Doubt::Merging),
        window,
        fastest: known
            .as_ref()
            .filter(|_| endpoint.prefers_measured)
            .map_or_else(String::new, |(_, server)| server.fastest.clone()),
    };
    let settings = worker.adapted.settings(&endpoint.settings, adaptation);
    let shortcuts = Shortcuts {
        guesses: guess.is_some(),
        merges: settings.pipelining == Pipelining::Exec,
        doubt,
        known: known.map(|(fingerprint, server)| (fingerprint, server.clone())),
    };
    Opened {
        settings,
        opening,
        shortcuts,
    }
}

/// The settings of a connection that is shared: of its channels, windows of so many octets are ours to give.
pub(crate) fn settings_of_shared(
    endpoint: &Endpoint,
    worker: &Worker,
    window: u32,
) -> Arc<Settings> {
    let adaptation = Adaptation {
        original: Arc::as_ptr(&endpoint.settings) as usize,
        first_kex: None,
        pipelining: true,
        window,
        fastest: String::new(),
    };
    worker.adapted.settings(&endpoint.settings, adaptation)
}

/// The server's own first choices, if we have them too, can verify the key, and ever save time by guessing.
fn guess(
    endpoint: &Endpoint,
    server: &KnownServer,
    host_keys: &[&'static str],
) -> Option<(&'static KexAlgorithm, &'static str)> {
    let kex = endpoint
        .settings
        .kex
        .iter()
        .copied()
        .find(|kex| kex.name == server.profile.first_kex)?;
    let slow = matches!(
        kex.method,
        KexMethod::DhGroup16 | KexMethod::DhGroup18 | KexMethod::DhGroupExchange
    );
    let host_key = host_keys
        .iter()
        .copied()
        .find(|name| *name == server.profile.first_host_key)?;
    let (key_type, certificate) = KeyType::of_algorithm(host_key)?;
    let known = endpoint.trust.known.key_types(&endpoint.trust.host_name());
    let can_verify = match certificate {
        true => known.authority,
        false => known.types.contains(&key_type),
    };
    (can_verify && !slow).then_some((kex, host_key))
}

/// The round trip that a guess must save to be worth what these algorithms cost beside our own first choices.
fn least_round_trip(kex: KexMethod, host_key: &str, crowd: u32) -> Duration {
    let mut cost = Duration::ZERO;
    if kex == KexMethod::Sntrup761X25519 {
        cost += SNTRUP_SERVER + SNTRUP_CLIENT * crowd;
    }
    if KeyType::of_algorithm(host_key).is_some_and(|(key_type, _)| key_type == KeyType::Rsa) {
        cost += RSA_SIGNATURE;
    }
    cost.max(LEAST_ROUND_TRIP)
}

impl HostTrust {
    /// What is remembered of the server behind this host's known keys, and by which key.
    fn known_server(&self, cache: &ServerCache) -> Option<(String, KnownServer)> {
        if cache.is_empty() {
            return None;
        }
        let entries = self.known.lookup(&self.host_name());
        entries
            .iter()
            .filter(|entry| entry.marker() == Marker::None)
            .find_map(|entry| {
                let fingerprint = fingerprint_sha256(&entry.key_blob()?);
                let server = cache.server(&fingerprint)?;
                Some((fingerprint, server))
            })
    }
}

impl AdaptedSettings {
    fn settings(&self, original: &Arc<Settings>, adaptation: Adaptation) -> Arc<Settings> {
        let Adaptation {
            first_kex,
            pipelining,
            window,
            ref fastest,
            ..
        } = adaptation;
        let is_usual = pipelining && window == original.window && fastest.is_empty();
        if first_kex.is_none() && is_usual {
            return original.clone();
        }
        let fastest = fastest.clone();
        let make = || {
            let mut settings = Settings::clone(original);
            settings.window = window;
            if let Some(first) = first_kex {
                settings.kex.retain(|kex| kex.name != first.name);
                settings.kex.insert(0, first);
            }
            if !pipelining {
                settings.pipelining = Pipelining::None;
            }
            put_first(&mut settings, &fastest);
            Arc::new(settings)
        };
        let mut made = self.0.borrow_mut();
        made.entry(adaptation).or_insert_with(make).clone()
    }
}

/// Offers ciphers and MACs in the order that was measured; what was not measured comes last.
fn put_first(settings: &mut Settings, fastest: &str) {
    let measured: Vec<Protection> = Protection::list(fastest).collect();
    let rank = |is_it: &dyn Fn(&Protection) -> bool| {
        let place = measured.iter().position(is_it);
        place.unwrap_or(measured.len())
    };
    settings
        .ciphers
        .sort_by_key(|&cipher| rank(&|pair| pair.cipher == cipher));
    settings
        .macs
        .sort_by_key(|&mac| rank(&|pair| pair.mac == Some(mac)));
}

#[cfg(test)]
mod tests {
    use sshoal_crypto::{Cipher, Mac};

    use super::*;

    #[test]
    fn what_was_measured_comes_first_and_nothing_is_lost() {
        let mut settings = Settings::recommended();
        let (ciphers, macs) = (settings.ciphers.len(), settings.macs.len());
        let first = "aes256-ctr+hmac-sha2-512-etm@openssh.com,unknown,aes128-gcm@openssh.com";
        put_first(&mut settings, first);
        assert_eq!(
            settings.ciphers[..2],
            [Cipher::Aes256Ctr, Cipher::Aes128Gcm]
        );
        assert_eq!(settings.macs[0], Mac::HmacSha512Etm);
        assert_eq!(
            (settings.ciphers.len(), settings.macs.len()),
            (ciphers, macs)
        );
    }

    #[test]
    fn a_slow_key_exchange_is_guessed_for_few_far_hosts_only() {
        let sntrup = |crowd| least_round_trip(KexMethod::Sntrup761X25519, "ssh-ed25519", crowd);
        let far = Duration::from_millis(100);
        assert!(sntrup(1) <= far);
        assert!(sntrup(50) > far);
        assert_eq!(
            least_round_trip(KexMethod::X25519, "ssh-ed25519", 50),
            LEAST_ROUND_TRIP
        );
        assert!(least_round_trip(KexMethod::X25519, "rsa-sha2-512", 1) > LEAST_ROUND_TRIP);
    }
}
