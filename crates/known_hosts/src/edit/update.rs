//! Replacing a host's keys, as `UpdateHostKeys` does.

use super::append::recordable;
use super::lines::{View, lines};
use super::{EntryError, Salts, end_last_line, put_entry};
use crate::host_name::HostName;
use crate::key::KeyFields;
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

/// A file with other keys for a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Updated {
    /// The new content; the old one if nothing was to be changed.
    pub bytes: Vec<u8>,
    /// How many keys were written, for the host, its address or both.
    pub added: usize,
    /// Numbers of the lines that are gone.
    pub removed: Vec<usize>,
    /// Numbers of lines that are not understood, and stay.
    pub broken: Vec<usize>,
}

/// What the lines of a file already hold of a key.
#[derive(Clone, Copy, Default)]
struct Present {
    host: bool,
    address: bool,
}

/// Removes the lines of the host, and of its address, that hold other keys, and adds the keys
/// that are missing (`hostfile_replace_entries`, hostfile.c). Lines with markers stay.
pub fn update(
    file: &[u8],
    update: &Update<'_>,
    mut salts: Option<Salts<'_>>,
) -> Result<Updated, EntryError> {
    let address = update.address.as_ref();
    let keys: Vec<KeyFields<'_>> = update
        .keys
        .iter()
        .map(|key| recordable(&update.host, address, key))
        .collect::<Result<_, _>>()?;
    let (mut updated, present) = without_other_keys(file, update, &keys);
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
        end_last_line(&mut updated.bytes);
        put_entry(&mut updated.bytes, name, behind, key, &mut salts);
        updated.added += 1;
    }
    Ok(updated)
}

/// `host_delete` (hostfile.c): the file without the host's other keys, and for each of its keys
/// where it stands.
fn without_other_keys(
    file: &[u8],
    update: &Update<'_>,
    keys: &[KeyFields<'_>],
) -> (Updated, Vec<Present>) {
    let names: Vec<String> = [Some(update.host), update.address]
        .iter()
        .flatten()
        .map(HostName::written)
        .collect();
    let names: Vec<&[u8]> = names.iter().map(String::as_bytes).collect();
    let mut present = vec![Present::default(); keys.len()];
    let mut updated = Updated {
        bytes: Vec::with_capacity(file.len()),
        added: 0,
        removed: Vec::new(),
        broken: Vec::new(),
    };
    for line in lines(file) {
        match line.view {
            View::Entry(entry) if entry.key_blob().is_none() => updated.broken.push(line.number),
            View::Entry(entry) if entry.marker == Marker::None => {
                let which = entry.which(&names);
                let same = keys.iter().position(|key| entry.has_key(key));
                if let (Some(key), false) = (same, which.is_empty()) {
                    present[key].host |= which.contains(&0);
                    present[key].address |= which.contains(&1);
                } else if !which.is_empty() {
                    updated.removed.push(line.number);
                    continue;
                }
            }
            View::Broken => updated.broken.push(line.number),
            View::Entry(_) | View::Blank => {}
        }
        updated.bytes.extend(line.text);
    }
    (updated, present)
}
