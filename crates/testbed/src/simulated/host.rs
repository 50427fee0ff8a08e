//! One simulated host: what lasts from connection to connection.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use russh::keys::{PrivateKey, PublicKey};
use russh::server::Config;
use russh::{MethodKind, MethodSet, Preferred, SshId, cipher, compression};

use super::behaviour::Behaviour;
use super::counters::Counters;
use super::fault::FaultRule;
use super::keys::{self, Purpose};
use super::meter::Meter;
use super::spec::SimulationSpec;

/// What all hosts of a simulation share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) seed: u64,
    pub(super) client_key: PublicKey,
    pub(super) password: Option<String>,
    /// The version line without its end, as in RFC 4253, 4.2.
    pub(super) version: String,
    /// Bytes in either direction after which a host rekeys; None for russh's own limit.
    pub(super) rekey_bytes: Option<u64>,
    pub(super) latency: Duration,
    pub(super) counters: Counters,
}

impl Shared {
    pub(super) fn new(spec: &SimulationSpec) -> Shared {
        Shared {
            seed: spec.seed,
            client_key: spec.client_key().public_key().clone(),
            password: spec.password.clone(),
            version: spec.version.clone(),
            rekey_bytes: spec.rekey_bytes,
            latency: spec.latency,
            counters: Counters::default(),
        }
    }
}

#[derive(Debug)]
pub(super) struct Host {
    pub(super) index: u32,
    pub(super) shared: Arc<Shared>,
    rules: Vec<FaultRule>,
    config: Arc<Config>,
    connections: AtomicU64,
    /// `count KEY`.
    counts: Mutex<BTreeMap<String, u64>>,
    last_connection: Mutex<Option<Arc<Meter>>>,
}

/// AES-GCM first, as sshd from 10.0 on, then what else OpenSSH and russh share.
const CIPHERS: &[cipher::Name] = &[
    cipher::AES_128_GCM,
    cipher::AES_256_GCM,
    cipher::CHACHA20_POLY1305,
    cipher::AES_128_CTR,
    cipher::AES_192_CTR,
    cipher::AES_256_CTR,
];

impl Host {
    pub(super) fn new(index: u32, rules: &[FaultRule], shared: Arc<Shared>) -> Host {
        let key = keys::derive(shared.seed, Purpose::Host, index);
        Host {
            index,
            rules: rules
                .iter()
                .filter(|rule| rule.concerns(index))
                .cloned()
                .collect(),
            config: Arc::new(server_config(&shared, key, CIPHERS)),
            shared,
            connections: AtomicU64::new(0),
            counts: Mutex::default(),
            last_connection: Mutex::default(),
        }
    }

    /// What `hostname` prints.
    pub(super) fn name(&self) -> String {
        format!("sim{}", self.index)
    }

    /// Counts a new connection and says what it will meet.
    pub(super) fn connected(&self) -> Behaviour {
        self.shared.counters.connection();
        let number = self.connections.fetch_add(1, Ordering::Relaxed);
        Behaviour::of_connection(&self.rules, self.shared.latency, number)
    }

    /// A meter for a connection, which from now on is the host's last one.
    pub(super) fn meter(&self) -> Arc<Meter> {
        let meter = Arc::new(Meter::new());
        *lock(&self.last_connection) = Some(Arc::clone(&meter));
        meter
    }

    pub(super) fn last_connection(&self) -> Option<Arc<Meter>> {
        lock(&self.last_connection).clone()
    }

    /// russh's configuration for a connection of this behaviour.
    pub(super) fn config(&self, behaviour: &Behaviour) -> Arc<Config> {
        if !behaviour.other_host_key && !behaviour.counts_packets() {
            return Arc::clone(&self.config);
        }
        let purpose = match behaviour.other_host_key {
            true => Purpose::OtherHost,
            false => Purpose::Host,
        };
        let ciphers = match behaviour.counts_packets() {
            true => &CIPHERS[..2],
            false => CIPHERS,
        };
        let key = keys::derive(self.shared.seed, purpose, self.index);
        Arc::new(server_config(&self.shared, key, ciphers))
    }

    /// Increments the counter `key` and returns its new value.
    pub(super) fn count(&self, key: &str) -> u64 {
        let mut counts = lock(&self.counts);
        let value = counts.entry(key.to_owned()).or_default();
        *value += 1;
        *value
    }

    /// The value of the counter `key`, 0 if it never was incremented.
    pub(super) fn count_read(&self, key: &str) -> u64 {
        lock(&self.counts).get(key).copied().unwrap_or_default()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn server_config(shared: &Shared, key: PrivateKey, ciphers: &'static [cipher::Name]) -> Config {
    let mut methods = MethodSet::empty();
    methods.push(MethodKind::PublicKey);
    if shared.password.is_some() {
        methods.push(MethodKind::Password);
    }
    let mut config = Config {
        server_id: SshId::Standard(Cow::Owned(shared.version.clone())),
        methods,
        // Nobody guesses passwords here, and a client's first request is always refused.
        auth_rejection_time: Duration::ZERO,
        auth_rejection_time_initial: Some(Duration::ZERO),
        keys: vec![key],
        preferred: Preferred {
            cipher: Cow::Borrowed(ciphers),
            compression: Cow::Borrowed(&[compression::NONE]),
            ..Preferred::DEFAULT
        },
        // A host that is silent stays so for as long as a test needs.
        inactivity_timeout: None,
        ..Config::default()
    };
    if let Some(bytes) = shared.rekey_bytes {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        config.limits.rekey_read_limit = bytes;
        config.limits.rekey_write_limit = bytes;
    }
    config
}
