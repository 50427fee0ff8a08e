//! `UpdateHostKeys`: a server tells all its host keys after the login, proves those that are new,
//! and known_hosts follows (OpenSSH's PROTOCOL section 2.5; `client_input_hostkeys` and
//! `client_global_hostkeys_prove_confirm`, clientloop.c).
//!
//! In order: [`OfferedKeys::parse`] reads `hostkeys-00@openssh.com`, [`KnownHosts::plan_update`]
//! decides, [`prove_request`] asks, [`parse_proofs`] takes the answer apart for the caller to
//! verify, and [`edit::update`](crate::edit::update) changes the files.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::collections::HashSet;

use crate::host_name::HostName;
use crate::judge::Verdict;
use crate::key::{self, KeyFields, KeyType};
use crate::known_hosts::{Entry, KnownHosts, Location, Matches, RecordId};
use crate::line::Marker;

mod proofs;

pub use proofs::{Proof, ProofError, parse_proofs, prove_request};

/// Most host keys that a server may offer; it has one of each type as a rule.
pub const MAX_OFFERED_KEYS: usize = 64;

/// Why a server's offer is not used. The connection goes on; nothing is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OfferError {
    /// The request is cut short.
    #[error("the server's list of host keys is cut short")]
    Malformed,
    /// A key is there twice.
    #[error("the server offers a host key twice")]
    Duplicate,
    /// More than [`MAX_OFFERED_KEYS`].
    #[error("the server offers more than {MAX_OFFERED_KEYS} host keys")]
    TooMany,
}

/// The plain host keys that a server says are its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferedKeys {
    keys: Vec<Vec<u8>>,
}

impl OfferedKeys {
    /// Reads what follows the name and `want_reply` of the request `hostkeys-00@openssh.com`.
    /// Keys that are of no known type, damaged, certificates, not of `algorithms`
    /// (`HostKeyAlgorithms`), or RSA keys of fewer bits than `minimum_rsa_bits` (`RequiredRSASize`),
    /// are passed over.
    pub fn parse(
        data: &[u8],
        algorithms: &[&str],
        minimum_rsa_bits: usize,
    ) -> Result<OfferedKeys, OfferError> {
        let mut reader = crate::reader::Reader(data);
        let mut keys: Vec<Vec<u8>> = Vec::new();
        let mut seen = HashSet::new();
        while !reader.is_empty() {
            let blob = reader.string().ok_or(OfferError::Malformed)?;
            let Some(key) = KeyFields::parse(blob) else {
                continue;
            };
            let wanted = Some((key.key_type, false));
            if !algorithms
                .iter()
                .any(|name| KeyType::of_algorithm(name) == wanted)
            {
                continue;
            }
            if key.key_type == KeyType::Rsa && key.bits() < Some(minimum_rsa_bits) {
                continue;
            }
            if !seen.insert(key.canonical()) {
                return Err(OfferError::Duplicate);
            }
            if keys.len() == MAX_OFFERED_KEYS {
                return Err(OfferError::TooMany);
            }
            keys.push(key.canonical());
        }
        Ok(OfferedKeys { keys })
    }

    /// The keys' blobs, in the server's order.
    pub fn keys(&self) -> &[Vec<u8>] {
        &self.keys
    }
}

/// What is to be done about an offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpdatePlan {
    /// Places of the offered keys that are new: the server must prove them first. Without any,
    /// known_hosts can be updated at once.
    pub prove: Vec<usize>,
    /// Lines with keys of the host that the server has no more.
    pub obsolete: Vec<Location>,
}

/// Why known_hosts is left as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoUpdate {
    /// All offered keys are known, and no others; or none is offered.
    Nothing,
    /// The host's line has a marker, a wildcard or more than two names: somebody wrote it who
    /// knows better.
    Manual(Location),
    /// A key, offered or obsolete, is known under another name or address as well.
    OtherName(Location),
}

impl KnownHosts {
    /// How many of the files that are consulted first have one of these labels.
    pub fn leading_files(&self, labels: &[String]) -> usize {
        let is_one = |label: &str| labels.iter().any(|one| one == label);
        let files = self.files.iter();
        files.take_while(|file| is_one(&file.label)).count()
    }

    /// Whether a login with this verdict may change known_hosts (`check_host_key`,
    /// sshconnect.c): the plain key was known, and from one of the first `user_files` files, those
    /// of `UserKnownHostsFile`.
    pub fn allows_update(&self, verdict: &Verdict, user_files: usize) -> bool {
        let Verdict::Trusted { by, authority } = verdict else {
            return false;
        };
        let mut files = self.files.iter();
        let at = files.position(|file| file.label == by.file);
        !authority && at.is_some_and(|at| at < user_files)
    }

    /// Decides what of an offer is news for the first `user_files` files.
    ///
    /// Where there is news, looks at every entry of these files. The host's own hashed ones cost an HMAC
    /// each, unless it was [learned](Self::learn).
    pub fn plan_update<'k>(
        &'k self,
        user_files: usize,
        host: &HostName<'_>,
        address: Option<&HostName<'_>>,
        offered: &OfferedKeys,
    ) -> Result<UpdatePlan, NoUpdate> {
        let offered: Vec<Offered<'_>> =
            offered.keys.iter().filter_map(|k| Offered::of(k)).collect();
        if offered.is_empty() {
            return Err(NoUpdate::Nothing);
        }
        let of_host = self.lookup(host);
        let of_address = address.map(|address| self.lookup(address));
        let own = Own {
            host: of_host.ids().collect(),
            address: of_address.as_ref().map(|matches| matches.ids().collect()),
        };
        let mut seen = Seen {
            known: vec![false; offered.len()],
            ..Seen::default()
        };
        let numbered = |matches: &Matches<'k>| -> Vec<(RecordId, Entry<'k>)> {
            matches.ids().zip(matches.iter()).collect()
        };
        let mut entries = numbered(&of_host);
        entries.extend(of_address.iter().flat_map(numbered));
        entries.sort_unstable_by_key(|(id, _)| *id);
        entries.dedup_by_key(|(id, _)| *id);
        for (id, entry) in entries {
            if entry.file() < user_files {
                seen.add(&own, id, &entry, &offered);
            }
        }
        // As a rule there is no news, and no look at other hosts' entries is needed.
        if seen.known.iter().all(|&known| known) && seen.obsolete.is_empty() {
            return Err(NoUpdate::Nothing);
        }
        for (id, entry) in self.numbered_entries() {
            if entry.file() < user_files && !own.is_own(id) {
                seen.add(&own, id, &entry, &offered);
            }
        }
        if let Some(at) = seen.manual {
            return Err(NoUpdate::Manual(at));
        }
        if let Some(at) = seen.other_name {
            return Err(NoUpdate::OtherName(at));
        }
        if let Some(at) = self.obsolete_elsewhere(user_files, &own, &seen) {
            return Err(NoUpdate::OtherName(at));
        }
        let places = seen.known.iter().enumerate();
        Ok(UpdatePlan {
            prove: places
                .filter(|(_, known)| !**known)
                .map(|(at, _)| at)
                .collect(),
            obsolete: seen.obsolete.iter().map(Entry::location).collect(),
        })
    }

    /// `hostkeys_check_old`: a line for another host with a key that is to go.
    fn obsolete_elsewhere(
        &self,
        user_files: usize,
        own: &Own,
        seen: &Seen<'_>,
    ) -> Option<Location> {
        let old: Vec<Vec<u8>> = seen.obsolete.iter().filter_map(Entry::key_blob).collect();
        let old: Vec<Offered<'_>> = old.iter().filter_map(|key| Offered::of(key)).collect();
        let is_old = |entry: &Entry<'_>| old.iter().any(|key| key.is_key_of(entry));
        self.numbered_entries()
            .filter(|(id, entry)| entry.file() < user_files && !own.is_own(*id))
            .find(|(_, entry)| is_old(entry))
            .map(|(_, entry)| entry.location())
    }
}

/// The entries that apply to the host, and to its address if that is checked.
struct Own {
    host: HashSet<RecordId>,
    address: Option<HashSet<RecordId>>,
}

impl Own {
    fn is_address(&self, id: RecordId) -> bool {
        self.address.as_ref().is_some_and(|ids| ids.contains(&id))
    }

    fn is_own(&self, id: RecordId) -> bool {
        self.host.contains(&id) || self.is_address(id)
    }
}

/// A key that entries are compared with.
struct Offered<'a> {
    fields: KeyFields<'a>,
    text: String,
}

impl<'a> Offered<'a> {
    fn of(blob: &'a [u8]) -> Option<Offered<'a>> {
        let fields = KeyFields::parse(blob)?;
        let text = STANDARD.encode(blob);
        Some(Offered { fields, text })
    }

    /// Compares text first, because most entries are another host's; a number may be padded.
    fn is_key_of(&self, entry: &Entry<'_>) -> bool {
        let key_type = self.fields.key_type;
        if entry.key_type() != Some(key_type) {
            return false;
        }
        let padded = || {
            let blob = key::decode_as(key_type, entry.key_text());
            blob.as_deref()
                .and_then(KeyFields::parse)
                .is_some_and(|key| key.same(&self.fields))
        };
        let numbers = matches!(key_type, KeyType::Rsa | KeyType::Dsa);
        entry.key_text() == self.text.as_bytes() || (numbers && padded())
    }
}

/// `hostkeys_update_ctx` (clientloop.c): what the files say of the offered keys.
#[derive(Default)]
struct Seen<'k> {
    known: Vec<bool>,
    obsolete: Vec<Entry<'k>>,
    manual: Option<Location>,
    other_name: Option<Location>,
}

impl<'k> Seen<'k> {
    /// `hostkeys_find`
    fn add(&mut self, own: &Own, id: RecordId, entry: &Entry<'k>, offered: &[Offered<'_>]) {
        if !own.is_own(id) {
            if self.other_name.is_none() && offered.iter().any(|key| key.is_key_of(entry)) {
                self.other_name = Some(entry.location());
            }
            return;
        }
        if entry.marker() != Marker::None {
            self.manual.get_or_insert_with(|| entry.location());
            return;
        }
        if entry.key_blob().is_none() {
            return;
        }
        let hosts = entry.hosts();
        if own.address.is_some() && hosts.contains(&b',') {
            let of_host = own.host.contains(&id);
            if !of_host || !own.is_address(id) {
                self.other_name.get_or_insert_with(|| entry.location());
            }
            if !of_host {
                return;
            }
        }
        if is_manual(hosts) {
            self.manual.get_or_insert_with(|| entry.location());
            return;
        }
        match offered.iter().position(|key| key.is_key_of(entry)) {
            Some(key) => self.known[key] = true,
            None => self.obsolete.push(*entry),
        }
    }
}

/// `hostspec_is_complex`: `ssh` itself writes one name, or a name and an address.
fn is_manual(hosts: &[u8]) -> bool {
    let wild = hosts.iter().any(|c| matches!(c, b'*' | b'?'));
    wild || hosts.iter().filter(|&&c| c == b',').count() > 1
}

#[cfg(test)]
mod tests;
