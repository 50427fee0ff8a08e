//! How to log in to a host, as ssh_config says it.

use std::sync::Arc;

use sshoal_proto::SignatureAlgorithm;
use sshoal_ssh_config::AddKeysToAgent;
use tokio::sync::Semaphore;

use super::key::{KeyFile, UserKey};
use crate::agent::Agent;

/// How to log in: shared by all hosts with the same settings. Made by [`Preparation`](crate::Preparation).
pub struct LoginPlan {
    /// Methods that are switched on, in the order of PreferredAuthentications.
    pub(crate) methods: Vec<Method>,
    /// CertificateFile: certificates for keys in files or in the agent.
    pub(crate) certificates: Vec<Arc<UserKey>>,
    /// IdentityFile, or the files of the usual names.
    pub(crate) files: Vec<KeyFile>,
    /// IdentityAgent, or SSH_AUTH_SOCK.
    pub(crate) agent: Option<Arc<Agent>>,
    /// AddKeysToAgent.
    pub(crate) add_keys: AddKeysToAgent,
    /// IdentitiesOnly: of the agent's keys only those of `files` and `certificates`.
    pub(crate) identities_only: bool,
    /// PubkeyAcceptedAlgorithms, best first.
    pub(crate) algorithms: Vec<&'static str>,
    /// RequiredRSASize, bits.
    pub(crate) required_rsa_size: usize,
    /// Methods that are switched on and that only ssh itself has.
    pub(crate) foreign: Vec<ForeignMethod>,
    /// Whether the user may be asked for passphrases: not with BatchMode.
    pub(crate) may_ask: bool,
    /// Why a key file was left out, for the message when nothing else served.
    pub(crate) left_out: Vec<String>,
    /// One FIDO key at a time waits for its touch, in the whole run.
    pub(crate) touch: Arc<Semaphore>,
}

/// A method of authentication, by its name in RFC 4252 and RFC 4256.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    PublicKey,
    KeyboardInteractive,
    Password,
}

impl Method {
    /// In the order of OpenSSH's default (readconf.c, PreferredAuthentications).
    pub(crate) const ALL: [Method; 3] = [
        Method::PublicKey,
        Method::KeyboardInteractive,
        Method::Password,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Method::PublicKey => "publickey",
            Method::KeyboardInteractive => "keyboard-interactive",
            Method::Password => "password",
        }
    }

    pub(crate) fn by_name(name: &str) -> Option<Method> {
        Method::ALL.into_iter().find(|method| method.name() == name)
    }
}

/// A method that this client does not have: what to say where a server takes it and nothing else has served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ForeignMethod {
    /// "gssapi-with-mic" (RFC 4462), with a Kerberos ticket at hand.
    Gssapi,
    /// "hostbased" (RFC 4252 section 9).
    Hostbased,
}

impl ForeignMethod {
    pub(crate) fn name(self) -> &'static str {
        match self {
            ForeignMethod::Gssapi => "gssapi-with-mic",
            ForeignMethod::Hostbased => "hostbased",
        }
    }

    pub(crate) fn remedy(self) -> &'static str {
        match self {
            ForeignMethod::Gssapi => {
                "reach this host with ssh itself: it takes GSSAPI, and there is a Kerberos ticket"
            }
            ForeignMethod::Hostbased => {
                "reach this host with ssh itself: it takes host-based authentication, which is switched on"
            }
        }
    }
}

impl LoginPlan {
    /// What a key may sign with here, best first; nothing if the configuration forbids the key.
    pub(crate) fn algorithms_of(&self, key: &UserKey) -> Vec<SignatureAlgorithm> {
        if key
            .rsa_bits
            .is_some_and(|bits| bits < self.required_rsa_size)
        {
            return Vec::new();
        }
        self.algorithms
            .iter()
            .filter_map(|name| key.key_type.algorithm(name))
            .map(|algorithm| SignatureAlgorithm {
                request: algorithm.name.to_owned(),
                signature: algorithm.signature.to_owned(),
            })
            .collect()
    }
}
