//! The keys that a run accepts of hosts nothing is known of (StrictHostKeyChecking accept-new and no): one for each
//! host, recorded when the run is over, in one write for each known_hosts file.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sshoal_known_hosts::edit::{Addition, Salts, append};
use sshoal_known_hosts::{HostName, KnownHosts, SALT_LEN};
use sshoal_targets::fold;

use super::file::KnownHostsFile;
use crate::plan::{HostTrust, Recording};

/// Octets of folded names that are shown of what was recorded: some lines.
const MAX_SHOWN: usize = 400;

/// New keys of a run, of all its threads.
#[derive(Default)]
pub(crate) struct NewKeys(Mutex<HashMap<Place, NewKey>>);

/// A host as a known_hosts file knows it.
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Place {
    recording: Option<Recording>,
    /// As known_hosts writes it.
    name: String,
}

struct NewKey {
    /// Without the port.
    name: String,
    port: u16,
    key: Vec<u8>,
    /// What the key was judged by.
    known: Arc<KnownHosts>,
}

/// What became of the keys that belong into one file.
#[derive(Default)]
struct Recorded {
    /// The names that are in the file now.
    added: Vec<String>,
    /// What could not be recorded, and why.
    problems: Vec<String>,
}

impl NewKeys {
    /// Takes the key for the host's own.
    ///
    /// # Errors
    ///
    /// Another key was taken for it already in this run: that one.
    pub(crate) fn accept(&self, trust: &HostTrust, key: &[u8]) -> Result<(), Vec<u8>> {
        let place = Place {
            recording: trust.recording.clone(),
            name: trust.host_name().written(),
        };
        let mut keys = self.locked();
        let taken = keys.entry(place).or_insert_with(|| NewKey {
            name: trust.name.clone(),
            port: trust.port,
            key: key.to_vec(),
            known: trust.known.clone(),
        });
        match taken.key == key {
            true => Ok(()),
            false => Err(taken.key.clone()),
        }
    }

    /// Records all that was accepted, and gives what is to be said of it.
    pub(crate) fn record(&self) -> Vec<String> {
        let mut files: BTreeMap<Recording, Vec<NewKey>> = BTreeMap::new();
        // In the order of the names, whoever came first.
        let keys: BTreeMap<Place, NewKey> = self.locked().drain().collect();
        for (place, key) in keys {
            if let Some(recording) = place.recording {
                files.entry(recording).or_default().push(key);
            }
        }
        let mut said = Vec::new();
        for (recording, keys) in &files {
            let path = &recording.file;
            match record_in(recording, keys) {
                Ok(Recorded { added, problems }) => {
                    if !added.is_empty() {
                        let names = shown(&added);
                        said.push(format!("new host keys in {path}: {}{names}", added.len()));
                    }
                    said.extend(problems);
                }
                Err(error) => said.push(format!(
                    "new host keys are not in {path}, {}: {error}",
                    counted(keys.len())
                )),
            }
        }
        said
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<Place, NewKey>> {
        // Nothing that can panic is done under the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The names, if they are not too many to read.
fn shown(names: &[String]) -> String {
    let names = fold(names);
    match names.len() {
        0..=MAX_SHOWN => format!(" ({names})"),
        _ => String::new(),
    }
}

fn counted(hosts: usize) -> String {
    match hosts {
        1 => "those of 1 host".to_owned(),
        hosts => format!("those of {hosts} hosts"),
    }
}

fn record_in(recording: &Recording, keys: &[NewKey]) -> io::Result<Recorded> {
    let mut recorded = Recorded::default();
    let path = Path::new(&recording.file);
    // /dev/null is what many name who want nothing recorded.
    if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return Ok(recorded);
    }
    let additions: Vec<Addition<'_>> = keys
        .iter()
        .map(NewKey::addition)
        .filter(|addition| recorded.is_recordable(addition))
        .collect();
    let mut file = KnownHostsFile::open_or_create(path)?;
    let now = file.read()?;
    let judged = &now[..keys[0].known.seen_of(&recording.file, &now)];
    let mut random = || {
        let mut salt = [0; SALT_LEN];
        sshoal_crypto::random(&mut salt);
        salt
    };
    let salts: Option<Salts<'_>> = recording.hashes_names.then_some(&mut random);
    let appended = append(judged, &now, &additions, salts).map_err(io::Error::other)?;
    if !appended.tail.is_empty() {
        file.append(&appended.tail)?;
    }
    for (place, addition) in additions.iter().enumerate() {
        let name = addition.host.written();
        match appended.conflicts.contains(&place) {
            true => recorded.problems.push(format!(
                "{name}: {} has got another key of it meanwhile; the one that was accepted is not recorded",
                recording.file
            )),
            false => recorded.added.push(addition.host.name.to_owned()),
        }
    }
    Ok(recorded)
}

impl NewKey {
    fn addition(&self) -> Addition<'_> {
        Addition {
            host: HostName::with_port(&self.name, self.port),
            address: None,
            key: &self.key,
        }
    }
}

impl Recorded {
    /// Whether a line can be made of it; notes what is wrong if not.
    fn is_recordable(&mut self, addition: &Addition<'_>) -> bool {
        let tried = append(&[], &[], &[*addition], None);
        let problem = tried.as_ref().err().map(ToString::to_string);
        self.problems.extend(problem);
        tried.is_ok()
    }
}

#[cfg(test)]
mod tests;
