//! UpdateHostKeys: what the run's servers have said of their host keys, written into known_hosts together.

use std::fs;
use std::io;
use std::path::Path;

use sshoal_known_hosts::edit::{EntryError, Salts, Update, update};
use sshoal_known_hosts::{HashedSearch, HostName, KnownHosts, OfferedKeys};

use super::file::KnownHostsFile;
use super::files::scan;
use crate::trust::AddressName;

/// A host's keys as its server has told them over an authenticated connection.
pub(crate) struct KeyUpdate {
    /// Without the port.
    pub(crate) name: String,
    pub(crate) port: u16,
    /// The address that known_hosts is asked for besides (CheckHostIP).
    pub(crate) address: Option<AddressName>,
    /// All keys that it is to have.
    pub(crate) offered: OfferedKeys,
    /// Those of them that it has proved to hold, beside the ones that are known.
    pub(crate) proven: Vec<Vec<u8>>,
}

impl KeyUpdate {
    fn host_name(&self) -> HostName<'_> {
        HostName::with_port(&self.name, self.port)
    }

    fn address_name(&self) -> Option<HostName<'_>> {
        self.address.as_ref().map(AddressName::host_name)
    }

    fn keys(&self) -> Vec<&[u8]> {
        let keys = self.offered.keys().iter();
        keys.map(Vec::as_slice).collect()
    }

    /// Whether there is something to do by what the files say now: others may have changed them since the server was
    /// judged.
    fn is_due(&self, known: &KnownHosts, user_files: usize) -> bool {
        let (host, address) = (self.host_name(), self.address_name());
        let plan = known.plan_update(user_files, &host, address.as_ref(), &self.offered);
        let is_proven = |at: &usize| self.proven.contains(&self.offered.keys()[*at]);
        plan.is_ok_and(|plan| plan.prove.iter().all(is_proven))
    }
}

/// What is to be done to a user's files, of which the first has this content under its lock.
pub(super) struct Renewal<'u> {
    /// The first file's new content.
    pub(super) content: Vec<u8>,
    /// The hosts whose lines change.
    pub(super) hosts: Vec<&'u KeyUpdate>,
    /// The files behind the first, which lose these hosts' lines.
    behind: Vec<String>,
}

/// Applies the updates to the first of `user_files`, whose content is given (hostfile_replace_entries, hostfile.c).
pub(super) fn renew<'u>(
    user_files: &[String],
    content: Vec<u8>,
    updates: &'u [KeyUpdate],
    salts: Option<Salts<'_>>,
) -> io::Result<Renewal<'u>> {
    let (Some(first), behind) = (user_files.first(), user_files.get(1..).unwrap_or_default())
    else {
        return Err(io::Error::other("there is no file to update"));
    };
    let mut contents = vec![(first.clone(), content)];
    let mut there = Vec::new();
    for path in behind.iter().filter(|path| *path != first) {
        match fs::read(path) {
            Ok(content) => {
                contents.push((path.clone(), content));
                there.push(path.clone());
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    let user_files = contents.len();
    let mut known = KnownHosts::parse(contents);
    learn(&mut known, updates);
    let is_due = |update: &&KeyUpdate| update.is_due(&known, user_files);
    let hosts: Vec<&KeyUpdate> = updates.iter().filter(is_due).collect();
    let content = changed(&known, first, &hosts, true, salts)?;
    Ok(Renewal {
        content,
        hosts,
        behind: there,
    })
}

impl Renewal<'_> {
    /// Takes the hosts' lines out of the files behind the first.
    pub(super) fn finish(&self, waits: &dyn Fn() -> bool) -> io::Result<()> {
        if self.hosts.is_empty() {
            return Ok(());
        }
        for path in &self.behind {
            KnownHostsFile::open_while(Path::new(path), waits)?.edit(|content| {
                let mut known = KnownHosts::parse(vec![(path.clone(), content.to_vec())]);
                learn(&mut known, self.hosts.iter().copied());
                let result = changed(&known, path, &self.hosts, false, None);
                // No key is written, so none can be unwritable.
                (result.unwrap_or_else(|_| content.to_vec()), ())
            })?;
        }
        Ok(())
    }
}

fn changed(
    known: &KnownHosts,
    path: &str,
    hosts: &[&KeyUpdate],
    is_first: bool,
    salts: Option<Salts<'_>>,
) -> io::Result<Vec<u8>> {
    let keys: Vec<Vec<&[u8]>> = hosts
        .iter()
        .map(|host| match is_first {
            true => host.keys(),
            false => Vec::new(),
        })
        .collect();
    let updates: Vec<Update<'_>> = hosts
        .iter()
        .zip(&keys)
        .map(|(host, keys)| Update {
            host: host.host_name(),
            address: host.address_name(),
            keys,
        })
        .collect();
    let unwritable = |error: EntryError| io::Error::other(error);
    update(known, path, &updates, salts)
        .map(|updated| updated.bytes)
        .map_err(unwritable)
}

/// Finds the hosts' hashed lines at once, on all cores.
fn learn<'u>(known: &mut KnownHosts, updates: impl IntoIterator<Item = &'u KeyUpdate>) {
    let names: Vec<HostName<'_>> = updates
        .into_iter()
        .flat_map(|update| [Some(update.host_name()), update.address_name()])
        .flatten()
        .collect();
    known.learn(&names, |search: &HashedSearch| scan(search));
}
