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
use super::key_updates::{KeyUpdate, renew};
use crate::plan::{HostTrust, Recording};
use crate::trust::AddressName;

/// Octets of folded names that are shown of what was recorded: some lines.
const MAX_SHOWN: usize = 400;

/// New keys of a run, of all its threads.
#[derive(Default)]
pub(crate) struct NewKeys(Mutex<News>);

#[derive(Default)]
struct News {
    /// Keys of hosts nothing was known of.
    keys: HashMap<Place, NewKey>,
    /// What known hosts have said of their keys.
    updates: HashMap<Place, (Arc<[String]>, KeyUpdate)>,
}

/// What is to be done to one file.
#[derive(Default)]
struct Batch {
    keys: Vec<NewKey>,
    updates: Vec<KeyUpdate>,
    /// UserKnownHostsFile, if there are updates: the file itself, and those behind it.
    user_files: Arc<[String]>,
}

/// A host as a known_hosts file knows it.
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Place {
    recording: Option<Recording>,
    /// As known_hosts writes it.
    name: String,
}

impl Place {
    fn of(trust: &HostTrust, name: &HostName<'_>) -> Place {
        Place {
            recording: trust.recording.clone(),
            name: name.written(),
        }
    }
}

#[derive(Clone)]
struct NewKey {
    /// Without the port.
    name: String,
    port: u16,
    /// The address that is new as well (CheckHostIP).
    address: Option<AddressName>,
    key: Vec<u8>,
    /// What the key was judged by.
    known: Arc<KnownHosts>,
    is_recorded: bool,
}

/// What became of the keys that belong into one file.
#[derive(Default)]
struct Recorded {
    /// The names that this run has put into the file.
    added: Vec<String>,
    /// The names whose lines there have changed.
    updated: Vec<String>,
    /// What could not be recorded, and why.
    problems: Vec<String>,
}

impl NewKeys {
    /// Takes the key for the host's own.
    ///
    /// # Errors
    ///
    /// Another key was taken for it already in this run: that one.
    pub(crate) fn accept(
        &self,
        trust: &HostTrust,
        address: Option<&AddressName>,
        key: &[u8],
    ) -> Result<(), Vec<u8>> {
        let mut news = self.locked();
        let place = Place::of(trust, &trust.host_name());
        let taken = news.keys.entry(place).or_insert_with(|| NewKey {
            name: trust.name.clone(),
            port: trust.port,
            address: address.cloned(),
            key: key.to_vec(),
            known: trust.known.clone(),
            is_recorded: false,
        });
        match taken.key == key {
            true => Ok(()),
            false => Err(taken.key.clone()),
        }
    }

    /// Whether a key was taken for the host already.
    pub(crate) fn has_one_of(&self, trust: &HostTrust) -> bool {
        let place = Place::of(trust, &trust.host_name());
        self.locked().keys.contains_key(&place)
    }

    /// Takes the known key of a host for that of its address, of which nothing is known (check_host_key, sshconnect.c).
    pub(crate) fn accept_address(&self, trust: &HostTrust, address: &AddressName, key: &[u8]) {
        let name = address.host_name();
        if !trust.known.lookup(&name).is_empty() {
            return;
        }
        let new = || NewKey {
            name: name.name.to_owned(),
            port: name.port,
            address: None,
            key: key.to_vec(),
            known: trust.known.clone(),
            is_recorded: false,
        };
        let place = Place::of(trust, &name);
        self.locked().keys.entry(place).or_insert_with(new);
    }

    /// Notes what a known host has said of its keys.
    pub(crate) fn note_update(&self, trust: &HostTrust, update: KeyUpdate) {
        let place = Place::of(trust, &trust.host_name());
        let user_files = trust.user_files.clone();
        let mut news = self.locked();
        news.updates.entry(place).or_insert((user_files, update));
    }

    /// Whether there is nothing to record.
    pub(crate) fn is_empty(&self) -> bool {
        let news = self.locked();
        news.keys.values().all(|key| key.is_recorded) && news.updates.is_empty()
    }

    /// Records all that was accepted, and gives what is to be said of it. Files that other programs keep locked are
    /// waited for as long as somebody waits.
    pub(crate) fn record(&self, waits: &dyn Fn() -> bool) -> Vec<String> {
        let mut said = Vec::new();
        for (recording, batch) in &self.batches() {
            let path = &recording.file;
            match record_in(recording, batch, waits) {
                Ok(recorded) => {
                    for (what, names) in [("new", &recorded.added), ("updated", &recorded.updated)]
                    {
                        if !names.is_empty() {
                            let count = names.len();
                            said.push(format!(
                                "{what} host keys in {path}: {count}{}",
                                shown(names)
                            ));
                        }
                    }
                    said.extend(recorded.problems);
                }
                Err(error) => said.push(format!(
                    "new host keys are not in {path}, {}: {error}",
                    counted(batch.keys.len().max(batch.updates.len()))
                )),
            }
        }
        said
    }

    /// All that was noted and not recorded yet, by files. The keys stay: a host may be logged in to again in the same run.
    fn batches(&self) -> BTreeMap<Recording, Batch> {
        let mut news = self.locked();
        let News { keys, updates } = &mut *news;
        let mut batches: BTreeMap<Recording, Batch> = BTreeMap::new();
        // In the order of the names, whoever came first.
        let fresh: BTreeMap<&Place, &mut NewKey> = keys
            .iter_mut()
            .filter(|(_, key)| !key.is_recorded)
            .collect();
        let updates: BTreeMap<_, _> = std::mem::take(updates).into_iter().collect();
        for (place, key) in fresh {
            key.is_recorded = true;
            if let Some(recording) = &place.recording {
                let batch = batches.entry(recording.clone()).or_default();
                batch.keys.push(key.clone());
            }
        }
        for (place, (user_files, update)) in updates {
            if let Some(recording) = place.recording {
                let batch = batches.entry(recording).or_default();
                batch.user_files = user_files;
                batch.updates.push(update);
            }
        }
        batches
    }

    fn locked(&self) -> MutexGuard<'_, News> {
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

/// Appends new keys and updates the others, under one lock.
fn record_in(
    recording: &Recording,
    batch: &Batch,
    waits: &dyn Fn() -> bool,
) -> io::Result<Recorded> {
    let mut recorded = Recorded::default();
    let path = Path::new(&recording.file);
    // /dev/null is what many name who want nothing recorded.
    if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return Ok(recorded);
    }
    let mut file = KnownHostsFile::open_or_create_while(path, waits)?;
    if !batch.keys.is_empty() {
        append_to(&mut file, recording, &batch.keys, &mut recorded)?;
    }
    if !batch.updates.is_empty() {
        match renew_in(file, recording, batch, waits) {
            Ok(names) => recorded.updated = names,
            Err(error) => recorded.problems.push(format!(
                "host keys are not updated in {}: {error}",
                recording.file
            )),
        }
    }
    Ok(recorded)
}

fn append_to(
    file: &mut KnownHostsFile,
    recording: &Recording,
    keys: &[NewKey],
    recorded: &mut Recorded,
) -> io::Result<()> {
    let additions: Vec<Addition<'_>> = keys
        .iter()
        .map(NewKey::addition)
        .filter(|addition| recorded.is_recordable(addition))
        .collect();
    let now = file.read()?;
    let judged = &now[..keys[0].known.seen_of(&recording.file, &now)];
    let mut random = random_salt;
    let salts: Option<Salts<'_>> = recording.hashes_names.then_some(&mut random);
    let appended = append(judged, &now, &additions, salts).map_err(io::Error::other)?;
    if !appended.tail.is_empty() {
        file.append(&appended.tail)?;
    }
    for (place, addition) in additions.iter().enumerate() {
        let name = addition.host.written();
        let is_one = |places: &[usize]| places.binary_search(&place).is_ok();
        if is_one(&appended.conflicts) {
            recorded.problems.push(format!(
                "{name}: {} has got another key of it meanwhile; the one that was accepted is not recorded",
                recording.file
            ));
        } else if !is_one(&appended.present) {
            recorded.added.push(addition.host.name.to_owned());
        }
    }
    Ok(())
}

/// Gives the names of the hosts whose lines have changed.
fn renew_in(
    file: KnownHostsFile,
    recording: &Recording,
    batch: &Batch,
    waits: &dyn Fn() -> bool,
) -> io::Result<Vec<String>> {
    let renewal = file.edit(|content| {
        let mut random = random_salt;
        let salts: Option<Salts<'_>> = recording.hashes_names.then_some(&mut random);
        let renewal = renew(&batch.user_files, content.to_vec(), &batch.updates, salts);
        match renewal {
            Ok(renewal) => (renewal.content.clone(), Ok(renewal)),
            Err(error) => (content.to_vec(), Err(error)),
        }
    })??;
    renewal.finish(waits)?;
    let names = renewal.hosts.iter().map(|host| host.name.clone());
    Ok(names.collect())
}

fn random_salt() -> [u8; SALT_LEN] {
    let mut salt = [0; SALT_LEN];
    sshoal_crypto::random(&mut salt);
    salt
}

impl NewKey {
    fn addition(&self) -> Addition<'_> {
        Addition {
            host: HostName::with_port(&self.name, self.port),
            address: self.address.as_ref().map(AddressName::host_name),
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
