//! Hosts whose login is slow for a known reason: one real sshd a cause, to try a diagnosis on and to score it by.
//!
//! A [`SlowHost`] is the installed sshd in a mount namespace of its own, on a loopback address, as root. There it sees a copy of this
//! machine's /etc, altered, an empty /run and /var/log, and the home of an account that exists nowhere else; so the machine's own
//! files stay as they are, and an ordinary program logging in finds an ordinary host. What there is to choose from is data:
//! [`TABLE`], a row each, with what it costs where. What has run is counted, and [`SlowHost::apply_fix`] makes the host
//! well, so that a login can be measured again.
//!
//! Nothing is left when it is dropped, and nothing either when its process is killed: see `keeper.sh`.
//!
//! ```no_run
//! use sshoal_testbed::slow::{Injection, SlowHost};
//!
//! let host = SlowHost::start(&Injection::several("pam-account:200+bashrc:50")?)?;
//! // ssh -F DIR/ssh_config NAME
//! println!("{} {}", host.ssh_config().display(), host.name());
//! host.apply_fix()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Not here: a slow home (NFS), pam_systemd without its daemon, disk and CPU load from outside, which a scorer makes beside the
//! hosts; and what is the client's (ssh_config, agents, address families).

use std::io;

use thiserror::Error;

use crate::sshd::SshdError;
use crate::sshd::key_files::KeygenError;

mod availability;
mod change;
mod host;
mod inject;
mod injection;
mod keeper;
mod kind;
mod name_service;
mod plan;
mod quota;
mod resolver;
mod view;

pub use change::Change;
pub use host::{SlowHost, SlowSpec};
pub use injection::{Injection, NoInjection};
pub use kind::{Kind, Phase, Role, Row, TABLE, Unit};

/// Why there is no such host.
#[derive(Debug, Error)]
pub enum SlowError {
    /// Mount namespaces and port 53 are root's.
    #[error("slow hosts need root: run this as root")]
    NotRoot,
    /// This machine cannot show it.
    #[error("{name} cannot be shown on this machine: {reason}")]
    Impossible {
        /// The kind's name.
        name: &'static str,
        /// What is missing.
        reason: String,
    },
    /// Two injections want the same thing to themselves.
    #[error("these injections do not go together: each has a {0} of its own")]
    Conflict(String),
    /// A key could not be made.
    #[error(transparent)]
    Keygen(#[from] KeygenError),
    /// The installed sshd cannot be asked for its version.
    #[error(transparent)]
    Sshd(#[from] SshdError),
    /// A file, process or socket could not be made.
    #[error("{what}: {source}")]
    System {
        /// What was being done, or to which file.
        what: String,
        /// What the system said.
        source: io::Error,
    },
    /// The host's own view of the machine could not be made.
    #[error("a slow host's mount namespace could not be made: {}", log.trim())]
    NoView {
        /// What was said.
        log: String,
    },
    /// The server ended. Its log says why.
    #[error("a slow host's sshd ended: {}", log.trim())]
    Ended {
        /// The whole log.
        log: String,
    },
    /// The server did not say that it listens.
    #[error("a slow host's sshd did not listen in time: {}", log.trim())]
    Late {
        /// The log so far.
        log: String,
    },
}

fn at(what: &str) -> impl FnOnce(io::Error) -> SlowError {
    move |source| SlowError::System {
        what: what.to_owned(),
        source,
    }
}
