//! Changing known_hosts files: functions from the old bytes to the new.
//!
//! Nothing here reads or writes a file; the caller does, under a lock, and renames the result
//! into place (or appends it, for [`append`]). Whatever a change is not about stays as it is,
//! byte for byte: comments, broken lines, line ends.

mod append;
mod forget;
mod hash;
mod import;
mod lines;
mod update;

pub use append::{Addition, Appended, EntryError, append};
pub use forget::{Forgotten, RemovedLine, forget};
pub use hash::{Hashed, KeptPlain, hash};
pub use import::{Conflict, ImportProblem, Imported, import};
pub use update::{Update, Updated, update};

use crate::hashed::{HashedName, SALT_LEN};
use crate::host_name::HostName;
use crate::key::KeyFields;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Gives a fresh random salt at each call, for names that are to be hashed.
pub type Salts<'s> = &'s mut dyn FnMut() -> [u8; SALT_LEN];

/// Writes one line for a key as `write_host_entry` (hostfile.c) does, or two if names are hashed
/// and there is an address.
fn put_entry(
    out: &mut Vec<u8>,
    host: &HostName<'_>,
    address: Option<&HostName<'_>>,
    key: &KeyFields<'_>,
    salts: &mut Option<Salts<'_>>,
) {
    let blob = STANDARD.encode(key.canonical());
    let mut line = |hosts: String| {
        let line = format!("{hosts} {} {blob}\n", key.key_type.name());
        out.extend(line.into_bytes());
    };
    let Some(salts) = salts else {
        let names: Vec<String> = [Some(host), address]
            .into_iter()
            .flatten()
            .map(HostName::written)
            .collect();
        return line(names.join(","));
    };
    for name in [Some(host), address].into_iter().flatten() {
        line(HashedName::of(name.written().as_bytes(), salts()).written());
    }
}

/// Adds the line feed that a file's last line may lack before something follows it.
fn end_last_line(bytes: &mut Vec<u8>) {
    if bytes.last().is_some_and(|&last| last != b'\n') {
        bytes.push(b'\n');
    }
}

#[cfg(test)]
mod tests;
