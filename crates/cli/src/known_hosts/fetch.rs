//! `sshoal known-hosts fetch`: what hosts show, for somebody to compare. Nothing is trusted by it.

use std::collections::BTreeMap;
use std::error::Error;

use sshoal_crypto::fingerprint_sha256;
use sshoal_known_hosts::HostName;
use sshoal_known_hosts::edit::{Addition, Salts, append};
use sshoal_net::{Endpoint, FetchedKeys, HostPlan, Preparation, SshOptions, connections_allowed};
use sshoal_proto::SessionRequest;
use sshoal_targets::fold;

use super::args::FetchArgs;
use super::files::{self, say};
use crate::args::HostArgs;
use crate::hosts;
use crate::manual::print;

/// Hosts at a time, if nothing else is said.
const PARALLEL: u32 = 256;

pub(super) fn run(args: &FetchArgs) -> Result<u8, Box<dyn Error>> {
    let endpoints = endpoints(args)?;
    let names: Vec<Named> = endpoints.iter().map(Named::of).collect();
    let at_once = args
        .parallel
        .unwrap_or(PARALLEL)
        .min(connections_allowed(0));
    let fetched = sshoal_net::fetch_host_keys(endpoints, at_once as usize, args.timeout)?;
    let mut lines = Vec::new();
    let mut shown: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let mut failed = false;
    for (named, FetchedKeys { keys, failure }) in names.iter().zip(&fetched) {
        for key in keys {
            match named.line(key) {
                Ok(line) => lines.extend(line),
                Err(error) => say(&error.to_string()),
            }
            let fingerprint = fingerprint_sha256(key);
            shown.entry(fingerprint).or_default().push(&named.label);
        }
        let problem = match failure {
            Some(failure) => Some(format!("{}: {}", failure.kind, failure.detail)),
            None => keys
                .is_empty()
                .then(|| "it has no key of a usual type".to_owned()),
        };
        if let Some(problem) = problem {
            failed = true;
            say(&format!("{}: {problem}", named.label));
        }
    }
    for (fingerprint, names) in &shown {
        say(&format!("{fingerprint} {}", fold(names)));
    }
    let status = print(&lines);
    Ok(match failed {
        true => status.max(sshoal_report::HOST_FAILED),
        false => status,
    })
}

fn endpoints(args: &FetchArgs) -> Result<Vec<Endpoint>, Box<dyn Error>> {
    let targets = hosts::targets(&HostArgs {
        list: args.hosts.clone(),
        file: args.input_file.iter().cloned().collect(),
        ..HostArgs::default()
    })?;
    let mut preparation = Preparation::new(&SshOptions {
        config_file: args.config.clone(),
        options: args.option.clone(),
        ..SshOptions::default()
    })?;
    let mut endpoints = Vec::with_capacity(targets.len());
    for plan in preparation.hosts(&targets, |_| SessionRequest::exec(Vec::new()))? {
        // The transport is our own, since nothing else was asked for.
        let HostPlan::Native(plan) = plan else {
            continue;
        };
        let endpoint = plan.endpoint;
        if endpoint.via.is_some() || endpoint.proxy_command.is_some() {
            let label = &endpoint.label;
            return Err(format!(
                "{label} is behind a jump host or a ProxyCommand; fetch its keys there"
            )
            .into());
        }
        endpoints.push(endpoint);
    }
    Ok(endpoints)
}

/// What a host is called here and in known_hosts.
struct Named {
    label: String,
    name: String,
    port: u16,
    hashed: bool,
}

impl Named {
    fn of(endpoint: &Endpoint) -> Named {
        let trust = &endpoint.trust;
        Named {
            label: endpoint.label.clone(),
            name: trust.name.clone(),
            port: trust.port,
            hashed: trust.recording.as_ref().is_some_and(|to| to.hashes_names),
        }
    }

    /// The line of known_hosts for a key.
    fn line(&self, key: &[u8]) -> Result<Vec<u8>, sshoal_known_hosts::edit::EntryError> {
        let mut salt = files::salt;
        let salts: Option<Salts<'_>> = match self.hashed {
            true => Some(&mut salt),
            false => None,
        };
        let addition = Addition {
            host: HostName::with_port(&self.name, self.port),
            address: None,
            key,
        };
        Ok(append(&[], &[], &[addition], salts)?.tail)
    }
}
