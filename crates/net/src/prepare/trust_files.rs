//! known_hosts files, each set read once.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::sync::Arc;

use sshoal_known_hosts::{
    HostName, KnownHosts, LineProblem, RevokedHostKeys, RevokedHostKeysError,
};
use sshoal_ssh_config::HostKeys;

use crate::known_hosts::{IndexCache, KnownHostsFiles, Searched, Unreadable};
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

impl From<Unreadable> for TrustError {
    fn from(Unreadable { path, error }: Unreadable) -> Self {
        TrustError::KnownHosts { path, error }
    }
}

/// Sets of known_hosts files that are consulted together.
#[derive(Default)]
pub(super) struct TrustFiles {
    /// By their paths, what stands for them until it is known which hosts they will be asked for.
    promised: HashMap<Vec<String>, Arc<KnownHosts>>,
    /// What was read of them for these hosts.
    read: Vec<Arc<KnownHosts>>,
    /// Those that were read in whole.
    whole: HashMap<Vec<String>, Arc<KnownHosts>>,
    revoked: HashMap<Vec<String>, Revoked>,
}

impl TrustFiles {
    /// Stands for the known_hosts files of one host's settings until [`read_for`](Self::read_for) reads them: it knows
    /// nobody.
    pub(super) fn promise(&mut self, host_keys: &HostKeys) -> Arc<KnownHosts> {
        let promised = self.promised.entry(paths(host_keys));
        promised.or_default().clone()
    }

    /// The known_hosts files of one host's settings, in whole. Files that do not exist are empty; one that is there and
    /// cannot be read might revoke a key, so it is an error.
    pub(super) fn read(&mut self, host_keys: &HostKeys) -> Result<Arc<KnownHosts>, TrustError> {
        let paths = paths(host_keys);
        if let Some(known) = self.whole.get(&paths) {
            return Ok(known.clone());
        }
        let known = Arc::new(KnownHostsFiles::read(&paths)?.into_known());
        self.whole.insert(paths, known.clone());
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
        let problems = self.read.iter().flat_map(|known| known.problems());
        problems.cloned().collect()
    }

    /// Keeps all promises: reads what the files say of these hosts, in the cached indexes as far as they know, and
    /// says what search they did not spare.
    pub(super) fn read_for(
        &mut self,
        trusts: &mut [&mut HostTrust],
        cache: Option<&IndexCache>,
    ) -> Result<Searched, TrustError> {
        let mut searched = Vec::new();
        for (paths, promised) in self.promised.drain() {
            let own = |trust: &HostTrust| Arc::ptr_eq(&trust.known, &promised);
            let theirs = trusts.iter().filter(|trust| own(trust));
            // Addresses are asked for as they are connected to: which these are is not known yet.
            let addresses = theirs.clone().any(|trust| trust.checks_address);
            let names: Vec<HostName<'_>> = theirs.map(|trust| trust.host_name()).collect();
            let (read, search) = match addresses {
                true => {
                    let mut read = KnownHostsFiles::read(&paths)?;
                    let search = read.look_up_hashed(&names, cache);
                    (read, search)
                }
                false => KnownHostsFiles::read_for(&paths, &names, cache)?,
            };
            let known = Arc::new(read.into_known());
            for trust in trusts.iter_mut().filter(|trust| own(trust)) {
                trust.known = known.clone();
            }
            self.read.push(known);
            searched.push(search);
        }
        Ok(searched.into_iter().sum())
    }
}

fn paths(host_keys: &HostKeys) -> Vec<String> {
    let user = host_keys.user_known_hosts_files.value.iter();
    let global = &host_keys.global_known_hosts_files.value;
    user.chain(global).cloned().collect()
}
