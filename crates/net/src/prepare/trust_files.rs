//! known_hosts files, each set read once.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::sync::Arc;

use sshoal_known_hosts::{
    HostName, KnownHosts, LineProblem, RevokedHostKeys, RevokedHostKeysError,
};
use sshoal_ssh_config::HostKeys;

use crate::known_hosts::{self, FileState, IndexCache, KnownHostsFiles};
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

/// known_hosts files that are consulted together.
struct Set {
    known: Arc<KnownHosts>,
    files: Vec<FileState>,
}

/// Sets of known_hosts files by their paths.
#[derive(Default)]
pub(super) struct TrustFiles {
    sets: HashMap<Vec<String>, Set>,
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
        if let Some(set) = self.sets.get(&paths) {
            return Ok(set.known.clone());
        }
        let read = KnownHostsFiles::read(&paths).map_err(|error| TrustError::KnownHosts {
            path: error.path,
            error: error.error,
        })?;
        let (known, files) = read.into_parts();
        let known = Arc::new(known);
        let set = Set {
            known: known.clone(),
            files,
        };
        self.sets.insert(paths, set);
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
            .flat_map(|set| set.known.problems().iter().cloned())
            .collect()
    }

    /// Finds the hashed entries of all hosts before the first connection: in the cached indexes, or on all cores.
    pub(super) fn look_up_hashed(
        &mut self,
        trusts: &mut [&mut HostTrust],
        cache: Option<&IndexCache>,
    ) {
        let nothing = Arc::new(KnownHosts::parse(Vec::new()));
        for Set { known, files } in self.sets.values_mut() {
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
                known_hosts::look_up_hashed(own, files, &names, cache);
            }
            for trust in theirs {
                trust.known = known.clone();
            }
        }
    }
}
