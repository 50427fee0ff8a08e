//! known_hosts files, each read once.

use std::collections::{BTreeMap, HashMap};
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

/// known_hosts files, each read once, however many hosts' lists it is in.
#[derive(Default)]
pub(super) struct TrustFiles {
    /// By the paths of a list, what stands for it until it is known which hosts it will be asked for.
    promised: HashMap<Vec<String>, Promise>,
    /// What was read for these hosts.
    read: Vec<KnownHosts>,
    /// Those that were read in whole, by their paths.
    whole: HashMap<String, KnownHosts>,
    revoked: HashMap<Vec<String>, Revoked>,
}

/// The known_hosts files of a list, and their paths.
type Promise = (Arc<KnownHosts>, Arc<[String]>);

/// What one file will be asked for.
#[derive(Default)]
struct Asked<'t> {
    names: Vec<HostName<'t>>,
    /// For addresses as they are connected to as well: which these are is not known yet.
    addresses: bool,
}

impl Asked<'_> {
    fn read(
        &self,
        path: &str,
        cache: Option<&IndexCache>,
    ) -> Result<(KnownHosts, Searched), TrustError> {
        let path = [path.to_owned()];
        let (read, searched) = match self.addresses {
            true => {
                let mut read = KnownHostsFiles::read(&path)?;
                let searched = read.look_up_hashed(&self.names, cache);
                (read, searched)
            }
            false => KnownHostsFiles::read_for(&path, &self.names, cache)?,
        };
        Ok((read.into_known(), searched))
    }
}

impl TrustFiles {
    /// Stands for the known_hosts files of one host's settings until [`read_for`](Self::read_for) reads them: it knows
    /// nobody.
    pub(super) fn promise(&mut self, host_keys: &HostKeys) -> Promise {
        let paths = paths(host_keys);
        if let Some(promised) = self.promised.get(&paths) {
            return promised.clone();
        }
        let promised = (Arc::default(), paths.as_slice().into());
        self.promised.entry(paths).or_insert(promised).clone()
    }

    /// The known_hosts files of one host's settings, in whole. Files that do not exist are empty; one that is there and
    /// cannot be read might revoke a key, so it is an error.
    pub(super) fn read(&mut self, host_keys: &HostKeys) -> Result<KnownHosts, TrustError> {
        let paths = paths(host_keys);
        for path in &paths {
            if !self.whole.contains_key(path) {
                let known = KnownHostsFiles::read(std::slice::from_ref(path))?.into_known();
                self.whole.insert(path.clone(), known);
            }
        }
        let files = paths.iter().filter_map(|path| self.whole.get(path));
        Ok(KnownHosts::chain(files))
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
        let promised = std::mem::take(&mut self.promised);
        let promises = promised
            .iter()
            .map(|(paths, (promise, _))| (Arc::as_ptr(promise), paths));
        let paths: HashMap<_, _> = promises.collect();
        let mut asked: BTreeMap<&str, Asked<'_>> = BTreeMap::new();
        for trust in trusts.iter() {
            let paths = paths.get(&Arc::as_ptr(&trust.known));
            for path in paths.into_iter().copied().flatten() {
                let asked = asked.entry(path).or_default();
                asked.names.push(trust.host_name());
                asked.addresses |= trust.checks_address;
            }
        }
        let mut searched = Vec::new();
        let mut files: BTreeMap<&str, KnownHosts> = BTreeMap::new();
        for (path, asked) in asked {
            let (known, search) = asked.read(path, cache)?;
            files.insert(path, known);
            searched.push(search);
        }
        let list = |paths: &[String]| {
            let files = paths.iter().filter_map(|path| files.get(path.as_str()));
            Arc::new(KnownHosts::chain(files))
        };
        let lists = promised
            .iter()
            .map(|(paths, (promise, _))| (Arc::as_ptr(promise), list(paths)));
        let lists: HashMap<_, _> = lists.collect();
        for trust in trusts {
            if let Some(known) = lists.get(&Arc::as_ptr(&trust.known)) {
                trust.known = known.clone();
            }
        }
        self.read.extend(files.into_values());
        Ok(searched.into_iter().sum())
    }
}

fn paths(host_keys: &HostKeys) -> Vec<String> {
    let user = host_keys.user_known_hosts_files.value.iter();
    let global = &host_keys.global_known_hosts_files.value;
    user.chain(global).cloned().collect()
}
