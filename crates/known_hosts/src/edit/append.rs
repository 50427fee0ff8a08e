//! Adding hosts that were accepted, many at once.

use std::collections::HashSet;

use super::{Salts, put_entry};
use crate::host_name::HostName;
use crate::judge::{Presented, Query, Verdict};
use crate::key::KeyFields;
use crate::known_hosts::KnownHosts;

/// A host's key that was accepted.
#[derive(Clone, Copy, Debug)]
pub struct Addition<'a> {
    /// The host; with `HostKeyAlias` the alias, at port 22.
    pub host: HostName<'a>,
    /// The address, if `CheckHostIP` is on and nothing is known of it.
    pub address: Option<HostName<'a>>,
    /// The plain key's blob.
    pub key: &'a [u8],
}

/// What cannot be written as a known_hosts line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// A name with characters that mean something in known_hosts, or that break a line.
    #[error(
        "the host name {0:?} cannot be recorded in known_hosts; give the host a plain name with \
         HostKeyAlias"
    )]
    Name(String),
    /// Not a whole plain key of a known type.
    #[error("the key of {0} is not a whole public key, and cannot be recorded in known_hosts")]
    Key(String),
}

/// What is to be appended to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The bytes that go behind the file's last one, in a single write; perhaps none.
    pub tail: Vec<u8>,
    /// How many additions the tail holds.
    pub added: usize,
    /// Places in the list of those that are in the file by now, or were given before.
    pub present: Vec<usize>,
    /// Places in the list of those left out, because the file holds another key of the host by
    /// now, or revokes this one.
    pub conflicts: Vec<usize>,
}

/// Says what to append to a known_hosts file for hosts that were new (`add_host_to_hostfile`,
/// hostfile.c). With `salts` the names are hashed (`HashKnownHosts`), host and address apart.
///
/// `judged` is what the file held when the keys were judged, and `now` what it holds under the
/// lock. What others have appended meanwhile is looked at, so that no line is written twice and
/// no second key is added behind their back; if the file was rewritten, all of it is.
pub fn append(
    judged: &[u8],
    now: &[u8],
    additions: &[Addition<'_>],
    mut salts: Option<Salts<'_>>,
) -> Result<Appended, EntryError> {
    let mut appended = Appended {
        tail: Vec::new(),
        added: 0,
        present: Vec::new(),
        conflicts: Vec::new(),
    };
    let fresh = KnownHosts::parse(vec![(String::new(), since(judged, now).to_vec())]);
    let mut written = HashSet::new();
    for (place, addition) in additions.iter().enumerate() {
        let key = recordable(&addition.host, addition.address.as_ref(), addition.key)?;
        let query = Query {
            names: &[addition.host],
            now: 0,
        };
        match fresh.judge(&query, &Presented::Key(addition.key)) {
            Verdict::Trusted { .. } => appended.present.push(place),
            Verdict::Changed(_) | Verdict::Revoked { .. } => appended.conflicts.push(place),
            Verdict::Unknown(_) => {
                if !written.insert((addition.host.written(), key.canonical())) {
                    appended.present.push(place);
                    continue;
                }
                let address = addition.address.as_ref();
                put_entry(
                    &mut appended.tail,
                    &addition.host,
                    address,
                    &key,
                    &mut salts,
                );
                appended.added += 1;
            }
        }
    }
    if !appended.tail.is_empty() && now.last().is_some_and(|&last| last != b'\n') {
        appended.tail.insert(0, b'\n');
    }
    Ok(appended)
}

/// The lines of `now` that were not in `judged`.
fn since<'n>(judged: &[u8], now: &'n [u8]) -> &'n [u8] {
    if !now.starts_with(judged) {
        return now;
    }
    let line = memchr::memrchr(b'\n', judged).map_or(0, |feed| feed + 1);
    &now[line..]
}

/// The key, if it and the names can stand on a line.
pub(super) fn recordable<'k>(
    host: &HostName<'_>,
    address: Option<&HostName<'_>>,
    key: &'k [u8],
) -> Result<KeyFields<'k>, EntryError> {
    for name in [Some(host), address].into_iter().flatten() {
        if !name.is_recordable() {
            return Err(EntryError::Name(name.name.to_string()));
        }
    }
    KeyFields::parse(key).ok_or_else(|| EntryError::Key(host.written()))
}
