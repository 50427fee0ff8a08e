//! Algorithm lists of ssh_config made into what a connection offers.

use std::sync::Arc;
use std::time::Duration;

use sshoal_crypto::{Cipher, KexAlgorithm, Mac, kex};
use sshoal_proto::Settings;
use sshoal_ssh_config::{
    AlgorithmSpec, Connection, EmptyAlgorithmList, Origin, PubkeyAuthentication, Resolved, Setting,
};

use super::SharedSettings;

/// Host-key algorithms in OpenSSH's order (myproposal.h), certificates first.
pub(super) const HOST_KEY_ALGORITHMS: &[&str] = &[
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

/// ServerAliveInterval where nobody sets it: with ServerAliveCountMax 3, a host that is gone is given up after 4 minutes.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(60);

/// What authorities may sign with (myproposal.h, SSH_ALLOWED_CA_SIGALGS), as far as it can be verified.
pub(super) const CA_SIGNATURE_ALGORITHMS: &[&str] = &[
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "sk-ssh-ed25519@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
    "rsa-sha2-512",
    "rsa-sha2-256",
];

/// A list that leaves nothing to offer.
#[derive(Debug, thiserror::Error)]
#[error("{keyword} ({origin}): {error}")]
pub struct AlgorithmError {
    pub(super) keyword: &'static str,
    pub(super) origin: String,
    pub(super) error: EmptyAlgorithmList,
}

/// What one host's connection offers.
#[derive(Clone)]
pub(super) struct HostAlgorithms {
    pub(super) settings: SharedSettings,
    pub(super) host_keys: Arc<[&'static str]>,
    pub(super) ca_signatures: Arc<[&'static str]>,
}

/// What the algorithms of a host depend on: hosts with the same key share them.
pub(super) fn key(resolved: &Resolved) -> String {
    let algorithms = &resolved.algorithms;
    format!(
        "{:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {}",
        algorithms.kex.as_ref().map(|setting| &setting.value),
        algorithms.ciphers.as_ref().map(|setting| &setting.value),
        algorithms.macs.as_ref().map(|setting| &setting.value),
        algorithms.host_key.as_ref().map(|setting| &setting.value),
        algorithms
            .ca_signature
            .as_ref()
            .map(|setting| &setting.value),
        algorithms.rekey_limit.value,
        keepalive(&resolved.connection),
        resolved.host_keys.required_rsa_size.value,
        binds_to_host_key(resolved),
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
        let names = HOST_KEY_ALGORITHMS;
        let host_keys = chosen("HostKeyAlgorithms", &lists.host_key, names, one_of(names))?;
        let names = CA_SIGNATURE_ALGORITHMS;
        let setting = &lists.ca_signature;
        let ca_signatures = chosen("CASignatureAlgorithms", setting, names, one_of(names))?;
        settings.required_rsa_size = resolved.host_keys.required_rsa_size.value as usize;
        settings.binds_to_host_key = binds_to_host_key(resolved);
        let rekey = &lists.rekey_limit.value;
        settings.rekey.bytes = rekey.bytes;
        settings.rekey.interval = rekey.interval;
        settings.keepalive = keepalive(&resolved.connection);
        Ok(HostAlgorithms {
            settings: Arc::new(settings),
            host_keys: host_keys.into(),
            ca_signatures: ca_signatures.into(),
        })
    }
}

/// Whether HostKeyAlgorithms says nothing of the order.
pub(super) fn leaves_order_open(resolved: &Resolved) -> bool {
    let set = resolved.algorithms.host_key.as_ref();
    set.is_none_or(|set| set.value.keeps_default_order())
}

/// Whether neither Ciphers nor MACs are set.
pub(super) fn leaves_protection_open(resolved: &Resolved) -> bool {
    resolved.algorithms.ciphers.is_none() && resolved.algorithms.macs.is_none()
}

/// ServerAliveInterval and ServerAliveCountMax. Unlike ssh, which waits for its user's patience to end, a run has a
/// default: a host that has lost its power in the midst of a command must not keep the others' summary for ever.
pub(super) fn keepalive(connection: &Connection) -> Option<(Duration, u32)> {
    let interval = &connection.server_alive_interval;
    let interval = match interval.origin {
        Origin::Default => KEEPALIVE_INTERVAL,
        _ => interval.value,
    };
    (interval > Duration::ZERO).then_some((interval, connection.server_alive_count_max.value))
}

/// "host-bound" is no more than "yes": where the server cannot check it, ssh too signs without (sshconnect2.c,
/// sign_and_send_pubkey).
fn binds_to_host_key(resolved: &Resolved) -> bool {
    resolved.authentication.pubkey_authentication.value != PubkeyAuthentication::Unbound
}

fn one_of(names: &'static [&'static str]) -> impl Fn(&str) -> Option<&'static str> {
    move |name| names.iter().copied().find(|have| *have == name)
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::path::PathBuf;

    use sshoal_targets::parse_file;

    use super::*;
    use crate::prepare::{Preparation, SshOptions};

    fn keepalive_with(options: &[&str]) -> Option<(Duration, u32)> {
        let ssh = SshOptions {
            config_file: Some(PathBuf::from("none")),
            options: options.iter().map(|&option| option.to_owned()).collect(),
            ..SshOptions::default()
        };
        let target = &parse_file("hosts", b"127.0.0.1").unwrap()[0];
        let resolved = Preparation::new(&ssh).unwrap().resolve(target).unwrap();
        keepalive(&resolved.connection)
    }

    #[test]
    fn a_host_that_is_gone_is_noticed_unless_the_user_says_otherwise() {
        let seconds = Duration::from_secs;
        assert_eq!(keepalive_with(&[]), Some((seconds(60), 3)));
        assert_eq!(keepalive_with(&["ServerAliveInterval=0"]), None);
        let own = ["ServerAliveInterval=5", "ServerAliveCountMax=7"];
        assert_eq!(keepalive_with(&own), Some((seconds(5), 7)));
    }
}
