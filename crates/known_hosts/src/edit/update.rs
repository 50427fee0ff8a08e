//! Replacing hosts' keys, as `UpdateHostKeys` does: many hosts in one pass.

use std::collections::BTreeSet;

use super::append::recordable;
use super::lines::lines;
use super::{EntryError, Salts, end_last_line, put_entry};
use crate::host_name::HostName;
use crate::key::KeyFields;
use crate::known_hosts::KnownHosts;
use crate::line::Marker;

/// The keys that a host is to have.
#[derive(Clone, Copy, Debug)]
pub struct Update<'a> {
    /// The host.
    pub host: HostName<'a>,
    /// Its address, if `CheckHostIP` is on.
    pub address: Option<HostName<'a>>,
    /// The blobs of all its keys, known or proven. None of them for the files behind the first of
    /// `UserKnownHostsFile`: the host's lines are only removed there.
    pub keys: &'a [&'a [u8]],
}

/// A file with other keys for hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Updated {
    /// The new content; the old one if nothing was to be changed.
    pub bytes: Vec<u8>,
    /// How many keys were written, for a host, its address or both.
    pub added: usize,
    /// Numbers of the lines that are gone, in their order.
    pub removed: Vec<usize>,
}

/// What the lines of a file already hold of a key.
#[derive(Clone, Copy, Default)]
struct Present {
    host: bool,
    address: bool,
}

/// Removes the lines of each host, and of its address, that hold other keys, and adds the keys that
/// are missing (`hostfile_replace_entries`, hostfile.c). Lines with markers and damaged keys stay.
///
/// `known` holds the file, with this label, as it is now; where names are hashed, the hosts should have
/// been [learned](KnownHosts::learn).
pub fn update(
    known: &KnownHosts,
    label: &str,
    updates: &[Update<'_>],
    mut salts: Option<Salts<'_>>,
) -> Result<Updated, EntryError> {
    let mut removed = BTreeSet::new();
    let mut tail = Vec::new();
    let mut added = 0;
    for update in updates {
        let address = update.address.as_ref();
        let keys: Vec<KeyFields<'_>> = update
            .keys
            .iter()
            .map(|key| recordable(&update.host, address, key))
            .collect::<Result<_, _>>()?;
        let present = without_other_keys(known, label, update, &keys, &mut removed);
        for (key, present) in keys.iter().zip(present) {
            let wanted = [
                (!present.host).then_some(&update.host),
                address.filter(|_| !present.address),
            ];
            let (name, behind) = match wanted {
                [Some(host), address] => (host, address),
                [None, Some(address)] => (address, None),
                [None, None] => continue,
            };
            put_entry(&mut tail, name, behind, key, &mut salts);
            added += 1;
        }
    }
    let kept = lines(content(known, label)).filter(|line| !removed.contains(&line.number));
    let mut bytes: Vec<u8> = kept.flat_map(|line| line.text).copied().collect();
    if !tail.is_empty() {
        end_last_line(&mut bytes);
        bytes.extend(tail);
    }
    Ok(Updated {
        bytes,
        added,
        removed: removed.into_iter().collect(),
    })
}

fn content<'k>(known: &'k KnownHosts, label: &str) -> &'k [u8] {
    let file = known.files.iter().find(|file| &*file.label == label);
    file.map_or(&[], |file| &file.bytes)
}

/// `host_delete` (hostfile.c): notes the lines with the host's other keys, and returns for each of its
/// keys where it stands.
fn without_other_keys(
    known: &KnownHosts,
    label: &str,
    update: &Update<'_>,
    keys: &[KeyFields<'_>],
    removed: &mut BTreeSet<usize>,
) -> Vec<Present> {
    let mut present = vec![Present::default(); keys.len()];
    let names = [Some(update.host), update.address];
    for (is_address, name) in names.iter().enumerate() {
        let Some(name) = name else { continue };
        let matches = known.lookup(name);
        for entry in matches.iter() {
            let location = entry.location();
            let Some(blob) = entry.key_blob() else {
                continue;
            };
            if entry.marker() != Marker::None || &*location.file != label {
                continue;
            }
            let own = KeyFields::parse(&blob);
            let same = |key: &KeyFields<'_>| own.as_ref().is_some_and(|own| own.same(key));
            match keys.iter().position(same) {
                Some(key) if is_address == 0 => present[key].host = true,
                Some(key) => present[key].address = true,
                None => drop(removed.insert(location.line)),
            }
        }
    }
    present
}
