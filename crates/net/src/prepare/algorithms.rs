//! Algorithm lists of ssh_config made into what a connection offers.

use std::sync::Arc;
use std::time::Duration;

use sshoal_crypto::{Cipher, KexAlgorithm, Mac, kex};
use sshoal_proto::Settings;
use sshoal_ssh_config::{AlgorithmSpec, EmptyAlgorithmList, Resolved, Setting};

use super::SharedSettings;

/// Host-key algorithms in OpenSSH's order (myproposal.h), certificates first.
const HOST_KEY_ALGORITHMS: &[&str] = &[
    "ssh-ed25519-cert-v01@openssh.com",
    "ecdsa-sha2-nistp256-cert-v01@openssh.com",
    "ecdsa-sha2-nistp384-cert-v01@openssh.com",
    "ecdsa-sha2-nistp521-cert-v01@openssh.com",
    "rsa-sha2-512-cert-v01@openssh.com",
    "rsa-sha2-256-cert-v01@openssh.com",
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "rsa-sha2-512",
    "rsa-sha2-256",
];

/// A list that leaves nothing to offer.
#[derive(Debug, thiserror::Error)]
#[error("{keyword} ({origin}): {error}")]
pub struct AlgorithmError {
    keyword: &'static str,
    origin: String,
    error: EmptyAlgorithmList,
}

/// What one host's connection offers.
#[derive(Clone)]
pub(super) struct HostAlgorithms {
    pub(super) settings: SharedSettings,
    pub(super) host_keys: Arc<[&'static str]>,
}

/// What the algorithms of a host depend on: hosts with the same key share them.
pub(super) fn key(resolved: &Resolved) -> String {
    let algorithms = &resolved.algorithms;
    let connection = &resolved.connection;
    format!(
        "{:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?}",
        algorithms.kex.as_ref().map(|setting| &setting.value),
        algorithms.ciphers.as_ref().map(|setting| &setting.value),
        algorithms.macs.as_ref().map(|setting| &setting.value),
        algorithms.host_key.as_ref().map(|setting| &setting.value),
        algorithms.rekey_limit.value,
        connection.server_alive_interval.value,
        connection.server_alive_count_max.value,
        resolved.host_keys.required_rsa_size.value,
    )
}

impl HostAlgorithms {
    pub(super) fn resolve(resolved: &Resolved) -> Result<Self, AlgorithmError> {
        let lists = &resolved.algorithms;
        let mut settings = Settings::recommended();
        let names: Vec<&'static str> = kex::ALGORITHMS
            .iter()
            .map(|algorithm| algorithm.name)
            .collect();
        settings.kex = chosen("KexAlgorithms", &lists.kex, &names, KexAlgorithm::by_name)?;
        let names: Vec<&'static str> = Cipher::preferred()
            .iter()
            .map(|cipher| cipher.name())
            .collect();
        settings.ciphers = chosen("Ciphers", &lists.ciphers, &names, Cipher::by_name)?;
        let names: Vec<&'static str> = Mac::ALL.iter().map(|mac| mac.name()).collect();
        settings.macs = chosen("MACs", &lists.macs, &names, Mac::by_name)?;
        let known = |name: &str| {
            HOST_KEY_ALGORITHMS
                .iter()
                .copied()
                .find(|have| *have == name)
        };
        let host_keys = chosen(
            "HostKeyAlgorithms",
            &lists.host_key,
            HOST_KEY_ALGORITHMS,
            known,
        )?;
        settings.required_rsa_size = resolved.host_keys.required_rsa_size.value as usize;
        let rekey = &lists.rekey_limit.value;
        settings.rekey.bytes = rekey.bytes;
        settings.rekey.interval = rekey.interval;
        let interval = resolved.connection.server_alive_interval.value;
        settings.keepalive = (interval > Duration::ZERO)
            .then_some((interval, resolved.connection.server_alive_count_max.value));
        Ok(HostAlgorithms {
            settings: Arc::new(settings),
            host_keys: host_keys.into(),
        })
    }
}

pub(super) fn chosen<T>(
    keyword: &'static str,
    setting: &Option<Setting<AlgorithmSpec>>,
    names: &[&'static str],
    by_name: impl Fn(&str) -> Option<T>,
) -> Result<Vec<T>, AlgorithmError> {
    let list = match setting {
        None => names.iter().map(|name| (*name).to_owned()).collect(),
        Some(setting) => setting
            .value
            .apply(names, names)
            .map_err(|error| AlgorithmError {
                keyword,
                origin: setting.origin.to_string(),
                error,
            })?,
    };
    Ok(list.iter().filter_map(|name| by_name(name)).collect())
}
