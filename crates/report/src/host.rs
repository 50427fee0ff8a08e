//! What the report knows of a host before it has ended.

use sshoal_targets::Target;

/// One host of the run. Its position in the list is its [`sshoal_fleet::HostId`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// What the host is called in output (see [`sshoal_targets::labels`]).
    pub label: String,
    /// The host as the user named it.
    pub target: Target,
    /// The user that is logged in as, when it is known.
    pub user: Option<String>,
    /// The port that is connected to, when it is known.
    pub port: Option<u16>,
    /// How it is reached; `None` for a command on this machine.
    pub way: Option<Way>,
}

/// How a host is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Way {
    /// The transport's name: `native` or `openssh`.
    pub transport: &'static str,
    /// Why it is not the native one.
    pub why: Option<String>,
    /// Whether by a connection that is kept already, as far as that is known before the host's turn.
    pub is_warm: bool,
}

impl Host {
    /// A host of which nothing but the target is known, called by that target's name.
    pub fn new(target: Target) -> Host {
        Host {
            label: target.name.clone(),
            user: target.user.clone(),
            port: target.port,
            way: None,
            target,
        }
    }
}
