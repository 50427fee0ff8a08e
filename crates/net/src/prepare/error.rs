//! Why a run cannot be prepared.

use std::path::PathBuf;

use sshoal_ssh_config::{LoadError, ResolveError};

use super::algorithms::AlgorithmError;
use super::key_files::IdentityError;
use super::trust_files::TrustError;

/// Why a run cannot be prepared: nothing was started.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// The configuration has errors.
    #[error(transparent)]
    Config(#[from] LoadError),
    /// What a host file or an inventory says of a host is no option of ssh_config.
    #[error("{host}: {error}")]
    Options {
        /// As the user wrote it.
        host: String,
        /// What is wrong.
        error: LoadError,
    },
    /// A host cannot be resolved.
    #[error("{host}: {error}")]
    Resolve {
        /// As the user wrote it.
        host: String,
        /// What is wrong.
        error: ResolveError,
    },
    /// A host's algorithms leave nothing to offer.
    #[error("{host}: {error}")]
    Algorithms {
        /// As the user wrote it.
        host: String,
        /// What is wrong.
        error: AlgorithmError,
    },
    /// A private key that was asked for cannot be used.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// A known_hosts file cannot be read.
    #[error(transparent)]
    KnownHosts(#[from] TrustError),
    /// KnownHostsCommand cannot be made into arguments.
    #[error("{host}: KnownHostsCommand {command} ({origin}): {why}")]
    KnownHostsCommand {
        /// As the user wrote it.
        host: String,
        /// As it is set.
        command: String,
        /// What is wrong.
        why: String,
        /// Where it is set.
        origin: String,
    },
    /// The host needs what this transport cannot do.
    #[error("{host}: {what} is not supported yet ({origin}); reach this host with ssh itself")]
    Unsupported {
        /// As the user wrote it.
        host: String,
        /// The setting.
        what: &'static str,
        /// Where it is set.
        origin: String,
    },
    /// The local address that connections are to come from is none.
    #[error("{host}: {keyword} {value} cannot be used ({origin}): {why}")]
    Bind {
        /// As the user wrote it.
        host: String,
        /// Which keyword.
        keyword: &'static str,
        /// Its value.
        value: String,
        /// What is wrong with it.
        why: String,
        /// Where it is set.
        origin: String,
    },
    /// Jump hosts that are reached through each other, or far too many of them.
    #[error(
        "jump host {host}: it is reached through more jump hosts than can be meant, \
         perhaps by way of itself; set ProxyJump to none for the first of them"
    )]
    JumpLoop {
        /// The jump host.
        host: String,
    },
    /// `-i` or `-F` with a path that is not valid UTF-8, which ssh_config cannot hold.
    #[error("{0:?} is not valid UTF-8; rename it or refer to it by a link")]
    PathNotUtf8(PathBuf),
}
