//! Which host keys of a host are known: what to ask a server for first.

use crate::host_name::HostName;
use crate::key::{KeyFields, KeyType};
use crate::known_hosts::{Entry, KnownHosts, Matches};
use crate::line::Marker;

/// The types of the keys known for a host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownTypes {
    /// Types of the host's own keys, in the order of the files, each once.
    pub types: Vec<KeyType>,
    /// Whether a `@cert-authority` line applies to the host: certificates are worth asking for.
    pub authority: bool,
}

impl KnownTypes {
    /// Takes in what another source knows of the host.
    pub fn add(&mut self, other: KnownTypes) {
        self.authority |= other.authority;
        for key_type in other.types {
            if !self.types.contains(&key_type) {
                self.types.push(key_type);
            }
        }
    }

    /// Orders host-key algorithms so that the server shows a key that can be verified
    /// (`order_hostkeyalgs`, sshconnect2.c): as given, if a key of the first algorithm's type is
    /// known; otherwise those of known types, and certificates if an authority is known, before
    /// the rest. Nothing is added and nothing left out.
    pub fn order<'a>(&self, algorithms: &[&'a str]) -> Vec<&'a str> {
        let kind = |name: &str| KeyType::of_algorithm(name);
        let first = algorithms.first().and_then(|name| kind(name));
        if first.is_some_and(|(key_type, _)| self.types.contains(&key_type)) {
            return algorithms.to_vec();
        }
        let (preferred, others): (Vec<&str>, Vec<&str>) =
            algorithms.iter().partition(|name| match kind(name) {
                Some((key_type, certificate)) => {
                    (certificate && self.authority) || self.types.contains(&key_type)
                }
                None => false,
            });
        [preferred, others].concat()
    }
}

impl KnownHosts {
    /// The key types known for a host.
    ///
    /// As [`judge`](Self::judge) does, looks at the bare name when nothing is known for the name
    /// with its port, so that the order agrees with the verdict.
    pub fn key_types(&self, host: &HostName<'_>) -> KnownTypes {
        let known = types_of(&self.lookup(host));
        if known != KnownTypes::default() || host.is_default_port() {
            return known;
        }
        types_of(&self.lookup(&HostName::new(host.name)))
    }
}

fn types_of(matches: &Matches<'_>) -> KnownTypes {
    let entries: Vec<Entry<'_>> = matches.iter().collect();
    let mut known = KnownTypes::default();
    for entry in &entries {
        match entry.marker() {
            Marker::CertAuthority => known.authority = true,
            Marker::None => {
                let usable = entry.key_blob().filter(|blob| !is_revoked(&entries, blob));
                if let Some(key) = usable.as_deref().and_then(KeyFields::parse)
                    && !known.types.contains(&key.key_type)
                {
                    known.types.push(key.key_type);
                }
            }
            Marker::Revoked => {}
        }
    }
    known
}

/// Whether one of the entries revokes the key in `blob`.
pub(crate) fn revoking<'k>(entries: &[Entry<'k>], blob: &[u8]) -> Option<Entry<'k>> {
    entries
        .iter()
        .copied()
        .find(|entry| entry.revoked_key().is_some_and(|key| key.covers(blob)))
}

fn is_revoked(entries: &[Entry<'_>], blob: &[u8]) -> bool {
    revoking(entries, blob).is_some()
}

#[cfg(test)]
mod tests;
