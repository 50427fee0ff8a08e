//! OpenSSH's known_hosts: parse, index, match, judge.
//!
//! Files are read once by the caller, parsed in one pass and kept as they are; entries are
//! offsets into them. [`KnownHosts::judge`] decides about a presented host key as OpenSSH's
//! `check_host_key` (sshconnect.c) does, and [`KnownHosts::key_types`] tells which algorithms to
//! ask a server for first.
//!
//! Lines that cannot be understood never grant trust and never stop the others from working;
//! [`KnownHosts::problems`] lists them. Damaged `@revoked` lines stay in force as far as they can
//! be read, and farther where in doubt.

mod hashed;
mod host_name;
mod index;
mod judge;
mod key;
mod key_types;
mod known_hosts;
mod line;
mod parse;
mod pattern;
mod revocation;
#[cfg(test)]
mod testing;

pub use host_name::{DEFAULT_PORT, HostName};
pub use judge::{Certificate, Changed, Presented, Query, Unknown, Verdict};
pub use key::KeyType;
pub use key_types::KnownTypes;
pub use known_hosts::{Entry, KnownHosts, LineProblem, Location, Matches};
pub use line::Marker;
