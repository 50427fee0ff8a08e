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

mod check;
pub mod edit;
mod hashed;
mod host_key_update;
mod host_name;
mod index;
mod judge;
mod key;
mod key_types;
mod known_hosts;
mod krl;
mod line;
mod line_index;
mod parse;
mod pattern;
mod reader;
mod revocation;
mod revoked_host_keys;
mod search;
mod split;
#[cfg(test)]
mod testing;

pub use check::{Duplicate, Report, TwoKeys, Weakness};
pub use hashed::SALT_LEN;
pub use host_key_update::{
    MAX_OFFERED_KEYS, NoUpdate, OfferError, OfferedKeys, Proof, ProofError, UpdatePlan,
    parse_proofs, prove_request,
};
pub use host_name::{DEFAULT_PORT, HostName};
pub use judge::{Certificate, Changed, Further, Presented, Query, Unknown, Verdict};
pub use key::KeyType;
pub use key_types::KnownTypes;
pub use known_hosts::{Content, Entry, KnownHosts, LineProblem, Location, Matches};
pub use krl::{KrlError, MAX_KRL_LEN};
pub use line::Marker;
#[cfg(feature = "fuzzing")]
pub use line_index::forge_index;
pub use line_index::{
    FileIdentity, INDEX_KEY_LEN, IndexBase, IndexError, IndexedLines, LineIndex, MAX_INDEX_LEN,
    MAX_INDEX_NAMES, Octets,
};
pub use revoked_host_keys::{CertificateIdentity, Revoked, RevokedHostKeys, RevokedHostKeysError};
pub use search::{Found, HashedSearch};
pub use split::{DirectoryError, Split, SplitFile, SplitHost, split_config};
