//! Which transport a host goes by, why, and what an ssh is told.

use sshoal_openssh::{CommandLine, HostKeyChecking};
use sshoal_proto::{Command, SessionRequest};
use sshoal_ssh_config::{Authentication, Proxy, Resolved, StrictHostKeyChecking, YesNoAsk};
use sshoal_targets::Target;

use super::algorithms::HostAlgorithms;
use super::explain::Shortfall;
use super::{Preparation, PrepareError, login_plans, option_line};
use crate::login::Method;
use crate::plan::SshPlan;

/// How hosts are reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Transport {
    /// By our own client; what it cannot do is an error.
    #[default]
    Native,
    /// By our own client, and by the installed ssh where the configuration requires what ours cannot do.
    Auto,
    /// By the installed ssh.
    OpenSsh,
}

/// Seconds of silence after which a server is asked for a sign of life, as with native hosts.
const ALIVE_INTERVAL: &str = "ServerAliveInterval=60";

impl Preparation {
    /// Why the host goes by ssh; `None` if it goes natively.
    pub(super) fn reason_for_ssh(&mut self, resolved: &Resolved) -> Option<String> {
        match self.ssh.transport {
            Transport::Native => None,
            Transport::OpenSsh => Some("--transport openssh".to_owned()),
            Transport::Auto => {
                self.first_requirement(resolved)
                    .map(|Shortfall { what, origin }| match origin.is_empty() {
                        true => what,
                        false => format!("{what} ({origin})"),
                    })
            }
        }
    }

    /// As [`requirements`], which for thousands of hosts is too slow: what most of them share is looked at once.
    fn first_requirement(&mut self, resolved: &Resolved) -> Option<Shortfall> {
        let of_login = of_login(resolved).next();
        if of_login.is_some() {
            return of_login;
        }
        match self.algorithms("", resolved) {
            Err(PrepareError::Algorithms { error, .. }) => Some(Shortfall {
                what: format!("{}: {}", error.keyword, error.error),
                origin: error.origin,
            }),
            _ => self.required_on_the_way(resolved),
        }
    }

    /// What the jump hosts require. Errors of theirs are those of the host, and told when it is planned.
    pub(super) fn required_on_the_way(&mut self, resolved: &Resolved) -> Option<Shortfall> {
        let Proxy::Jump(hops) = &resolved.connection.proxy.value else {
            return None;
        };
        match self.way(hops, 0) {
            Ok(Some(last)) => self.jumps.requirement(last),
            Ok(None) => None,
            Err(PrepareError::Algorithms { host, error }) => Some(Shortfall {
                what: format!("jump host {host}: {}: {}", error.keyword, error.error),
                origin: error.origin,
            }),
            Err(PrepareError::Unsupported { host, what, origin }) => Some(Shortfall {
                what: format!("jump host {host}: {what}"),
                origin,
            }),
            Err(_) => None,
        }
    }

    /// What an ssh is told about the host.
    pub(super) fn ssh_plan(
        &self,
        target: &Target,
        resolved: &Resolved,
        request: SessionRequest,
        why: String,
    ) -> SshPlan {
        let connection = &resolved.connection;
        let said = &self.ssh;
        let of_target = target.options.iter().map(option_line);
        let line = CommandLine {
            host: target.name.clone(),
            user: target.user.clone().or_else(|| said.user.clone()),
            port: target.port,
            config_file: said.config_file.clone(),
            identities: said.identities.clone(),
            jump: said.jump.clone(),
            forward_agent: said.forward_agent,
            tag: said.tag.clone(),
            options: of_target.chain(said.options.iter().cloned()).collect(),
            words: said.ssh_words.clone(),
            overrides: overrides(resolved),
            checking: checking(resolved),
            has_password: false,
            has_terminal: request.pty.is_some(),
            names_packets: false,
            command: match request.command {
                Command::Exec(line) => line,
                Command::Shell | Command::Subsystem(_) => Vec::new(),
            },
        };
        SshPlan {
            label: target.to_string(),
            name: connection.host_name.value.clone(),
            port: connection.port.value,
            user: connection.user.value.clone(),
            reads: request.standard_input,
            lends_terminal: line.has_terminal,
            connect_timeout: connection.connect_timeout.as_ref().map(|set| set.value),
            is_proxied: connection.proxy.value != Proxy::None,
            takes_password: login_plans::methods(&resolved.authentication)
                .iter()
                .any(|method| *method != Method::PublicKey),
            line,
            why,
        }
    }
}

/// Nobody can be asked about a key: many ssh's cannot share one terminal.
fn checking(resolved: &Resolved) -> HostKeyChecking {
    match resolved.host_keys.strict_host_key_checking.value {
        StrictHostKeyChecking::Ask => HostKeyChecking::Strict,
        _ => HostKeyChecking::Configured,
    }
}

/// Settings of the user's that do not go with a run, and defaults of ours that are not ssh's.
fn overrides(resolved: &Resolved) -> Vec<String> {
    let mut overrides = Vec::new();
    let mut set = |line: &str| overrides.push(line.to_owned());
    let other = |keyword: &str| {
        let set = resolved.other(keyword);
        set.and_then(|set| set.arguments.first())
            .map(String::as_str)
    };
    let is_on = |keyword: &str| !matches!(other(keyword), None | Some("no" | "false" | "none"));
    if !resolved.connection.server_alive_interval.is_configured() {
        set(ALIVE_INTERVAL);
    }
    // Each ssh would write known_hosts anew, all of them at once.
    let updates = &resolved.host_keys.update_host_keys;
    if !updates.is_configured() || updates.value == YesNoAsk::Ask {
        set("UpdateHostKeys=no");
    }
    // A master in the foreground stays until the last of its sessions ends, whosever they are.
    if is_on("controlmaster") && !is_on("controlpersist") {
        set("ControlMaster=no");
    }
    if is_on("tunnel") {
        set("Tunnel=no");
    }
    // Keywords that older releases do not know are named only where the configuration has them.
    if is_on("forkafterauthentication") {
        set("ForkAfterAuthentication=no");
    }
    if is_on("stdinnull") {
        set("StdinNull=no");
    }
    if resolved.session.remote_command.is_some() {
        set("RemoteCommand=none");
    }
    overrides
}

/// What the settings require that ssh can do and this client cannot.
pub(super) fn requirements(resolved: &Resolved) -> Vec<Shortfall> {
    let mut found: Vec<Shortfall> = of_login(resolved).collect();
    if let Err(error) = HostAlgorithms::resolve(resolved) {
        found.push(Shortfall {
            what: format!("{}: {}", error.keyword, error.error),
            origin: error.origin,
        });
    }
    found
}

/// The same but for the algorithms of the connection.
fn of_login(resolved: &Resolved) -> impl Iterator<Item = Shortfall> {
    let connection = &resolved.connection;
    let fdpass = &connection.proxy_use_fdpass;
    let hands_over = matches!(&connection.proxy.value, Proxy::Command(command) if command != "-")
        && fdpass.value;
    let fdpass = hands_over.then(|| Shortfall::new("ProxyUseFdpass", &fdpass.origin));
    let token = login_plans::pkcs11_provider(&resolved.authentication);
    let token =
        token.map(|set| Shortfall::new(format!("PKCS11Provider {}", set.value), &set.origin));
    let accepted = login_plans::accepted(&resolved.algorithms).err();
    let accepted = accepted.map(|error| Shortfall {
        what: format!("{}: {}", error.keyword, error.error),
        origin: error.origin,
    });
    let methods = only_foreign_methods(&resolved.authentication);
    fdpass
        .into_iter()
        .chain(methods)
        .chain(token)
        .chain(accepted)
}

/// That no method which is switched on is implemented here, and one is that ssh has.
fn only_foreign_methods(login: &Authentication) -> Option<Shortfall> {
    if let Some(set) = &login.preferred_authentications
        && set.value.iter().all(|name| Method::by_name(name).is_none())
    {
        let what = format!("PreferredAuthentications {}", set.value.join(","));
        return Some(Shortfall::new(what, &set.origin));
    }
    if !login_plans::methods(login).is_empty() {
        return None;
    }
    let only = [
        ("GSSAPIAuthentication", &login.gssapi_authentication),
        ("HostbasedAuthentication", &login.hostbased_authentication),
    ];
    let (keyword, set) = only.into_iter().find(|(_, set)| set.value)?;
    let what = format!("{keyword} is the only method that is switched on");
    Some(Shortfall::new(what, &set.origin))
}
