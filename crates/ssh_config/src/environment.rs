//! What ssh would ask the system for; here it is given.

use std::collections::HashMap;

/// The user and machine that sshoal runs as and on.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// The local user's name: `%u`, and the remote user if nothing else names one.
    pub local_user: String,
    /// The home directory: `%d`, `~`, and where the user's own files are. ssh takes that of the user database, whatever `HOME`
    /// says; which one stands here is the caller's choice.
    pub home: String,
    /// The local host's name as `gethostname` has it: `%l`, and `%L` up to its first dot.
    pub local_host: String,
    /// The local user's number: `%i`.
    pub uid: u32,
    /// Environment variables, for `${NAME}`.
    pub variables: HashMap<String, String>,
}
