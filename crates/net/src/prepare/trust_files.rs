//! known_hosts files, each set read once.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::sync::Arc;
use std::thread;

use sshoal_known_hosts::{
    Found, HashedSearch, HostName, KnownHosts, LineProblem, RevokedHostKeys, RevokedHostKeysError,
};
use sshoal_ssh_config::HostKeys;

use crate::plan::HostTrust;

/// A file that says which host keys to trust cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// A known_hosts file is there and cannot be read.
    #[error(
        "cannot read the known_hosts file {path}: {error}; make it readable, or name another with \
         -o UserKnownHostsFile=FILE"
    )]
    KnownHosts {
        /// The file.
        path: String,
        /// Why not.
        error: io::Error,
    },
    /// A file of RevokedHostKeys cannot be read: ssh refuses every host then.
    #[error("cannot read {path} (RevokedHostKeys): {error}; no host key is accepted without it")]
    Revoked {
        /// The file.
        path: String,
        /// Why not.
        error: io::Error,
    },
    /// A file of RevokedHostKeys is not understood: ssh refuses every host then.
    #[error("{path} (RevokedHostKeys): {error}; no host key is accepted without it")]
    RevokedFormat {
        /// The file.
        path: String,
        /// Why not.
        error: RevokedHostKeysError,
    },
}

/// Files of revoked keys, by their paths.
type Revoked = Arc<[(String, RevokedHostKeys)]>;

/// Sets of known_hosts files by their paths.
#[derive(Default)]
pub(super) struct TrustFiles {
    sets: HashMap<Vec<String>, Arc<KnownHosts>>,
    revoked: HashMap<Vec<String>, Revoked>,
}

impl TrustFiles {
    /// The known_hosts of one host's settings. Files that do not exist are empty; one that is there and cannot be
    /// read might revoke a key, so it is an error.
    pub(super) fn read(&mut self, host_keys: &HostKeys) -> Result<Arc<KnownHosts>, TrustError> {
        let paths: Vec<String> = host_keys
            .user_known_hosts_files
            .value
            .iter()
            .chain(&host_keys.global_known_hosts_files.value)
            .cloned()
            .collect();
        if let Some(known) = self.sets.get(&paths) {
            return Ok(known.clone());
        }
        let mut files = Vec::new();
        for path in &paths {
            match fs::read(path) {
                Ok(octets) => files.push((path.clone(), octets)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    return Err(TrustError::KnownHosts {
                        path: path.clone(),
                        error,
                    });
                }
            }
        }
        let known = Arc::new(KnownHosts::parse(files));
        self.sets.insert(paths, known.clone());
        Ok(known)
    }

    /// The files of RevokedHostKeys, each set read once.
    pub(super) fn read_revoked(&mut self, paths: &[String]) -> Result<Revoked, TrustError> {
        if let Some(revoked) = self.revoked.get(paths) {
            return Ok(revoked.clone());
        }
        let files = paths.iter().cloned().map(|path| {
            let octets = match fs::read(&path) {
                Ok(octets) => octets,
                Err(error) => return Err(TrustError::Revoked { path, error }),
            };
            match RevokedHostKeys::parse(&octets) {
                Ok(revoked) => Ok((path, revoked)),
                Err(error) => Err(TrustError::RevokedFormat { path, error }),
            }
        });
        let revoked: Revoked = files.collect::<Result<_, _>>()?;
        self.revoked.insert(paths.to_vec(), revoked.clone());
        Ok(revoked)
    }

    pub(super) fn problems(&self) -> Vec<LineProblem> {
        self.sets
            .values()
            .flat_map(|known| known.problems().iter().cloned())
            .collect()
    }

    /// Finds the hashed entries of all hosts before the first connection, on all cores.
    pub(super) fn look_up_hashed(&mut self, trusts: &mut [&mut HostTrust]) {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let nothing = Arc::new(KnownHosts::parse(Vec::new()));
        for known in self.sets.values_mut() {
            let mut names = Vec::new();
            let mut theirs = Vec::new();
            for trust in trusts
                .iter_mut()
                .filter(|trust| Arc::ptr_eq(&trust.known, known))
            {
                names.push((trust.name.clone(), trust.port));
                // The plans hold the only other references; without them the set can be added to.
                trust.known = nothing.clone();
                theirs.push(trust);
            }
            let names: Vec<HostName<'_>> = names
                .iter()
                .map(|(name, port)| HostName::with_port(name, *port))
                .collect();
            if let Some(own) = Arc::get_mut(known) {
                own.learn(&names, |search| scan_on_threads(search, threads));
            }
            for trust in theirs {
                trust.known = known.clone();
            }
        }
    }
}

/// Where no more threads are to be had, what they would have scanned is left to the caller.
fn scan_on_threads(search: &HashedSearch, threads: usize) -> Vec<Found> {
    thread::scope(|scope| {
        let spawn = |range| thread::Builder::new().spawn_scoped(scope, move || search.scan(range));
        let running: Vec<_> = search.ranges(threads).into_iter().map(spawn).collect();
        let running = running.into_iter().filter_map(Result::ok);
        running.filter_map(|thread| thread.join().ok()).collect()
    })
}
