//! known_hosts files, each set read once.

use std::collections::HashMap;
use std::fs;
use std::sync::Arc;
use std::thread;

use sshoal_known_hosts::{HostName, KnownHosts, LineProblem};
use sshoal_ssh_config::HostKeys;

use crate::plan::HostPlan;

/// Sets of known_hosts files by their paths.
#[derive(Default)]
pub(super) struct TrustFiles {
    sets: HashMap<Vec<String>, Arc<KnownHosts>>,
}

impl TrustFiles {
    /// The known_hosts of one host's settings. Files that do not exist are empty.
    pub(super) fn read(&mut self, host_keys: &HostKeys) -> Arc<KnownHosts> {
        let paths: Vec<String> = host_keys
            .user_known_hosts_files
            .value
            .iter()
            .chain(&host_keys.global_known_hosts_files.value)
            .cloned()
            .collect();
        let read = |paths: &Vec<String>| {
            let files = paths
                .iter()
                .filter_map(|path| Some((path.clone(), fs::read(path).ok()?)));
            Arc::new(KnownHosts::parse(files.collect()))
        };
        self.sets.entry(paths).or_insert_with_key(read).clone()
    }

    pub(super) fn problems(&self) -> Vec<LineProblem> {
        self.sets
            .values()
            .flat_map(|known| known.problems().iter().cloned())
            .collect()
    }

    /// Finds the hashed entries of all hosts before the first connection, on all cores.
    pub(super) fn look_up_hashed(&mut self, hosts: &mut [HostPlan]) {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let nothing = Arc::new(KnownHosts::parse(Vec::new()));
        for known in self.sets.values_mut() {
            let mut names = Vec::new();
            let mut theirs = Vec::new();
            for host in hosts
                .iter_mut()
                .filter(|host| Arc::ptr_eq(&host.trust.known, known))
            {
                names.push((host.trust.name.clone(), host.trust.port));
                // The plans hold the only other references; without them the set can be added to.
                host.trust.known = nothing.clone();
                theirs.push(host);
            }
            let names: Vec<HostName<'_>> = names
                .iter()
                .map(|(name, port)| HostName::with_port(name, *port))
                .collect();
            if let Some(own) = Arc::get_mut(known) {
                own.learn(&names, threads);
            }
            for host in theirs {
                host.trust.known = known.clone();
            }
        }
    }
}
