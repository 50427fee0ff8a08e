//! What would be done for a host, and which line of which file says so.

use sshoal_crypto::{Cipher, Mac, kex};
use sshoal_fleet::JumpId;
use sshoal_known_hosts::{HostName, KeyType, Location, Marker};
use sshoal_ssh_config::{
    Authentication, Implemented, Names, Origin, Proxy, Resolved, ShownSetting, YesNoAsk,
};
use sshoal_targets::Target;

use super::algorithms::{CA_SIGNATURE_ALGORITHMS, HOST_KEY_ALGORITHMS};
use super::transport::{self, Transport};
use super::{
    Preparation, PrepareError, known_as, known_port, login_plans, session_settings, way_there,
};
use crate::login::Method;

/// What would be done for a host.
#[derive(Debug, Clone)]
pub struct Explanation {
    /// The host as the user wrote it.
    pub label: String,
    /// Its settings.
    pub resolved: Resolved,
    /// All settings in the words of `ssh -G`, with the algorithms that are implemented here.
    pub settings: Vec<ShownSetting>,
    /// What known_hosts is asked for: a name, `[name]:port` unless the port is 22.
    pub known_as: String,
    /// The lines of known_hosts that apply, in the order of files and lines.
    pub known_hosts: Vec<KnownLine>,
    /// The jump hosts in the order of travel, as `user@name:port`.
    pub way: Vec<String>,
    /// ProxyCommand with its tokens expanded, if it can be run.
    pub proxy_command: Option<String>,
    /// How the host is reached: natively or by ssh.
    pub transport: Transport,
    /// What the settings require that only ssh can do: why the transport is that.
    pub requirements: Vec<Shortfall>,
    /// What neither transport can do: a run refuses the host, or cannot succeed with it.
    pub obstacles: Vec<Shortfall>,
    /// Settings that this client does without.
    pub unheeded: Vec<Shortfall>,
}

/// A line of known_hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownLine {
    /// The file and the line.
    pub location: Location,
    /// What the line is for.
    pub marker: Marker,
    /// The key's type; `None` on a damaged revocation, and where the type is not known.
    pub key_type: Option<KeyType>,
}

/// A setting that is not honoured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shortfall {
    /// The keyword and its value, or what is wrong with it.
    pub what: String,
    /// Where it is set.
    pub origin: String,
}

impl Shortfall {
    pub(super) fn new(what: impl Into<String>, origin: &Origin) -> Self {
        Shortfall {
            what: what.into(),
            origin: origin.to_string(),
        }
    }
}

impl Preparation {
    /// Says what would be done for a host. Nothing is connected to; no key file is read but those of jump hosts.
    ///
    /// # Errors
    ///
    /// [`PrepareError`] if the host cannot be resolved, or a known_hosts file cannot be read.
    pub fn explain(&mut self, target: &Target) -> Result<Explanation, PrepareError> {
        let resolved = self.resolve(target)?;
        let mut obstacles = obstacles(&resolved);
        let mut requirements = transport::requirements(&resolved);
        let proxy = &resolved.connection.proxy;
        let way = match &proxy.value {
            Proxy::Jump(hops) => match self.way(hops, 0) {
                Ok(last) => self.names_on_way(last),
                Err(PrepareError::Algorithms { .. } | PrepareError::Unsupported { .. }) => {
                    Vec::new()
                }
                Err(error) => {
                    obstacles.push(Shortfall::new(error.to_string(), &proxy.origin));
                    Vec::new()
                }
            },
            Proxy::None | Proxy::Command(_) => Vec::new(),
        };
        requirements.extend(self.required_on_the_way(&resolved));
        let name = known_as(&resolved);
        let host = HostName::with_port(&name, known_port(&resolved));
        let known_hosts = self.known_lines(&host, &resolved)?;
        Ok(Explanation {
            label: target.to_string(),
            settings: settings(&resolved),
            known_as: host.written(),
            known_hosts,
            way,
            proxy_command: way_there::proxy_command("", &resolved).ok().flatten(),
            transport: match (self.ssh.transport, requirements.is_empty()) {
                (Transport::OpenSsh, _) | (Transport::Auto, false) => Transport::OpenSsh,
                _ => Transport::Native,
            },
            requirements,
            obstacles,
            unheeded: unheeded(&resolved),
            resolved,
        })
    }

    /// As a host key would be looked up: a host on another port that is not known is asked for by its bare name
    /// (check_host_key, sshconnect.c).
    fn known_lines(
        &mut self,
        host: &HostName<'_>,
        resolved: &Resolved,
    ) -> Result<Vec<KnownLine>, PrepareError> {
        let known = self.trust.read(&resolved.host_keys)?;
        let mut matches = known.lookup(host);
        if matches.is_empty() {
            matches = known.lookup(&HostName::new(host.name));
        }
        let lines = matches.iter().map(|entry| KnownLine {
            location: entry.location(),
            marker: entry.marker(),
            key_type: entry.key_type(),
        });
        Ok(lines.collect())
    }

    fn names_on_way(&self, last: Option<JumpId>) -> Vec<String> {
        let mut names = Vec::new();
        let mut next = last;
        while let Some(jump) = next.and_then(|id| self.jumps.plans.get(id.0 as usize)) {
            let (user, name, port) = (&jump.user, &jump.name, jump.port);
            names.push(match name.contains(':') {
                true => format!("{user}@[{name}]:{port}"),
                false => format!("{user}@{name}:{port}"),
            });
            next = jump.via;
        }
        names.reverse();
        names
    }
}

fn settings(resolved: &Resolved) -> Vec<ShownSetting> {
    let ciphers: Vec<&str> = Cipher::preferred()
        .iter()
        .map(|cipher| cipher.name())
        .collect();
    let macs: Vec<&str> = Mac::ALL.iter().map(|mac| mac.name()).collect();
    let kex: Vec<&str> = kex::ALGORITHMS
        .iter()
        .map(|algorithm| algorithm.name)
        .collect();
    resolved.dump(&Implemented {
        ciphers: all(&ciphers),
        macs: all(&macs),
        kex: all(&kex),
        keys: all(HOST_KEY_ALGORITHMS),
        ca_signatures: all(CA_SIGNATURE_ALGORITHMS),
    })
}

/// All that is implemented is offered.
fn all<'a>(names: &'a [&'a str]) -> Names<'a> {
    Names {
        defaults: names,
        known: names,
    }
}

/// What a run refuses: neither transport can do it.
fn obstacles(resolved: &Resolved) -> Vec<Shortfall> {
    let mut found = Vec::new();
    let connection = &resolved.connection;
    if let Err(PrepareError::Resolve { error, .. }) = way_there::proxy_command("", resolved) {
        let origin = &connection.proxy.origin;
        found.push(Shortfall::new(error.to_string(), origin));
    }
    let refused = [
        way_there::refuse_standard_streams("", resolved),
        session_settings::refuse_unsupported("", resolved),
    ];
    for refusal in refused {
        if let Err(PrepareError::Unsupported { what, origin, .. }) = refusal {
            let what = what.to_owned();
            found.push(Shortfall { what, origin });
        }
    }
    if let Err(PrepareError::Bind {
        keyword,
        value,
        why,
        origin,
        ..
    }) = way_there::bind("", connection)
    {
        let what = format!("{keyword} {value}: {why}");
        found.push(Shortfall { what, origin });
    }
    found.extend(no_method(&resolved.authentication));
    found
}

/// That nobody can be logged in: no method is switched on.
fn no_method(login: &Authentication) -> Option<Shortfall> {
    let foreign = [
        &login.gssapi_authentication,
        &login.hostbased_authentication,
    ];
    if login.preferred_authentications.is_some()
        || !login_plans::methods(login).is_empty()
        || foreign.iter().any(|set| set.value)
    {
        return None;
    }
    let origin = &login.pubkey_authentication.origin;
    Some(Shortfall::new(
        "no method of logging in is switched on",
        origin,
    ))
}

/// Keywords for more than a command, of which each line that is set is named: what forwards, and what runs here.
const FORWARDS: [&str; 6] = [
    "localforward",
    "remoteforward",
    "dynamicforward",
    "forwardx11",
    "tunnel",
    "localcommand",
];

/// Settings that somebody made, and that a run does without (docs/config.md).
fn unheeded(resolved: &Resolved) -> Vec<Shortfall> {
    let mut found = Vec::new();
    let (keys, login) = (&resolved.host_keys, &resolved.authentication);
    if keys.verify_host_key_dns.value != YesNoAsk::No {
        let origin = &keys.verify_host_key_dns.origin;
        let what =
            "VerifyHostKeyDNS is not supported natively: fingerprints in the DNS are not looked up";
        found.push(Shortfall::new(what, origin));
    }
    if let Some(set) = &login.preferred_authentications {
        let foreign = set
            .value
            .iter()
            .filter(|name| Method::by_name(name).is_none());
        found.extend(foreign.map(|name| {
            let what = format!("PreferredAuthentications {name}: it is not tried");
            Shortfall::new(what, &set.origin)
        }));
    }
    let others = resolved.others.iter();
    let is_off =
        |arguments: &[String]| matches!(arguments, [word] if word == "no" || word == "none");
    for other in others.filter(|other| FORWARDS.contains(&other.keyword)) {
        if !is_off(&other.arguments) {
            let what = format!("{} {}", other.keyword, other.arguments.join(" "));
            found.push(Shortfall::new(what, &other.origin));
        }
    }
    let compression = &resolved.connection.compression;
    if compression.value {
        found.push(Shortfall::new("Compression yes", &compression.origin));
    }
    found
}
