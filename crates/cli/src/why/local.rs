//! What a login costs on this machine before the first packet: facts whose names begin with `local` and `ssh_config`.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read;
use std::time::{Duration, Instant};

use sshoal_known_hosts::HostName;
use sshoal_net::{Explanation, KnownHostsFiles, Preparation, SshOptions, time_agent, time_lookup};
use sshoal_ssh_config::{AddressFamily, IdentityAgent, Proxy};
use sshoal_targets::Target;
use sshoal_why::Facts;

use super::args::WhyArgs;
use crate::run;

/// Lookups that take longer are measured for each family apart.
const QUICK_LOOKUP: Duration = Duration::from_millis(10);
/// Octets of a known_hosts file among which a hashed name is looked for.
const MOST_LOOKED_THROUGH: u64 = 16 << 20;
/// What a hashed name begins with (sshd(8), SSH_KNOWN_HOSTS FILE FORMAT).
const HASHED: &[u8] = b"|1|";
/// Settings that are told as they are, by ssh_config's spelling.
const SETTINGS: [&str; 6] = [
    "CanonicalizeHostname",
    "VerifyHostKeyDNS",
    "GSSAPIAuthentication",
    "ProxyJump",
    "ProxyCommand",
    "AddressFamily",
];

/// What was measured of files and agents that several hosts share.
#[derive(Default)]
pub(super) struct Local {
    /// By the paths of known_hosts: how long they take, how many octets they have, whether any name is hashed.
    known_hosts: HashMap<Vec<String>, (Option<Duration>, u64, bool)>,
    /// By socket: how long listing its keys takes, and how many there are.
    agents: HashMap<String, Option<(Duration, usize)>>,
}

impl Local {
    /// Finds them out for one host; its name is looked up only if that `looks_up`.
    pub(super) fn facts(
        &mut self,
        args: &WhyArgs,
        target: &Target,
        looks_up: bool,
    ) -> Result<Facts, Box<dyn std::error::Error>> {
        let mut facts = Facts::default();
        let options = SshOptions {
            forward_agent: false,
            ..run::ssh_options(&args.config, &args.login)
        };
        let begun = Instant::now();
        let mut preparation = Preparation::new(&options)?;
        preparation.places(std::slice::from_ref(target), |_| ())?;
        facts.insert("local.ssh_config.time", begun.elapsed());
        facts.insert(
            "local.ssh_config.match_exec",
            preparation.has_run_commands(),
        );
        let explanation = preparation.explain(target)?;
        settings(&explanation, &mut facts);
        self.known_hosts(&explanation, &mut facts);
        self.agent(&explanation, &mut facts);
        if looks_up {
            lookups(&explanation, &mut facts);
        }
        Ok(facts)
    }

    fn known_hosts(&mut self, explanation: &Explanation, facts: &mut Facts) {
        let keys = &explanation.resolved.host_keys;
        let user = keys.user_known_hosts_files.value.iter();
        let paths = user.chain(&keys.global_known_hosts_files.value);
        let paths: Vec<String> = paths.cloned().collect();
        let measured = self.known_hosts.entry(paths);
        let (time, octets, hashed) = *measured.or_insert_with_key(|paths| {
            let sizes = paths.iter().filter_map(|path| fs::metadata(path).ok());
            (
                time_known_hosts(explanation, paths),
                sizes.map(|file| file.len()).sum(),
                paths.iter().any(|path| has_hashed_names(path)),
            )
        });
        if let Some(time) = time {
            facts.insert("local.known_hosts.time", time);
        }
        facts.insert("local.known_hosts.octets", octets as f64);
        facts.insert("local.known_hosts.hashed", hashed);
    }

    fn agent(&mut self, explanation: &Explanation, facts: &mut Facts) {
        let agent = &explanation.resolved.authentication.identity_agent.value;
        let socket = match agent {
            IdentityAgent::None => None,
            IdentityAgent::Socket(path) => Some(path.clone()),
            IdentityAgent::Variable(name) => std::env::var(name).ok(),
        };
        let Some(socket) = socket.filter(|socket| !socket.is_empty()) else {
            facts.insert("local.agent.keys", 0.0);
            return;
        };
        // One that cannot be reached costs next to nothing; one that does not answer is known by the logins.
        let measured = self.agents.entry(socket);
        let measured = measured.or_insert_with_key(|socket| time_agent(socket).ok());
        if let Some((time, keys)) = *measured {
            facts.insert("local.agent.time", time);
            facts.insert("local.agent.keys", keys as f64);
        }
    }
}

fn settings(explanation: &Explanation, facts: &mut Facts) {
    for name in SETTINGS {
        let set = explanation.settings.iter();
        let mut set = set.filter(|set| set.keyword.eq_ignore_ascii_case(name));
        if let Some(set) = set.next() {
            facts.insert(format!("ssh_config.{name}"), set.value.as_str());
        }
    }
    let only = explanation.resolved.authentication.identities_only.value;
    facts.insert("local.identities_only", only);
}

/// As ssh finds a host in known_hosts, without an index; `None` if they cannot be read.
fn time_known_hosts(explanation: &Explanation, paths: &[String]) -> Option<Duration> {
    let keys = &explanation.resolved.host_keys;
    let connection = &explanation.resolved.connection;
    let host = match &keys.host_key_alias {
        Some(alias) => HostName::new(&alias.value),
        None => HostName::with_port(&connection.host_name.value, connection.port.value),
    };
    let begun = Instant::now();
    let (read, _) = KnownHostsFiles::read_for(paths, &[host], None).ok()?;
    // All that is to be found is found here.
    let _ = read.known().lookup(&host);
    Some(begun.elapsed())
}

fn has_hashed_names(path: &str) -> bool {
    let mut content = Vec::new();
    let read = File::open(path).map(|file| {
        let mut file = file.take(MOST_LOOKED_THROUGH);
        file.read_to_end(&mut content)
    });
    let mut lines = content.split(|octet| *octet == b'\n');
    matches!(read, Ok(Ok(_))) && lines.any(|line| line.starts_with(HASHED))
}

/// The name, as far as it is this machine that looks it up.
fn lookups(explanation: &Explanation, facts: &mut Facts) {
    let connection = &explanation.resolved.connection;
    let name = &connection.host_name.value;
    let is_address = name.parse::<std::net::IpAddr>().is_ok();
    if is_address || !matches!(connection.proxy.value, Proxy::None) {
        return;
    }
    let (time, _) = time_lookup(name, connection.address_family.value);
    facts.insert("local.lookup.time", time);
    if time < QUICK_LOOKUP {
        return;
    }
    for (fact, family) in [
        ("local.lookup.a.time", AddressFamily::Inet),
        ("local.lookup.aaaa.time", AddressFamily::Inet6),
    ] {
        facts.insert(fact, time_lookup(name, family).0);
    }
}
