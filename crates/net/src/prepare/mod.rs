//! From what the user said to what is to be done: configuration, known_hosts and keys are read once, then
//! each host is resolved.

mod algorithms;
mod config_files;
mod environment;
mod error;
mod explain;
mod inquiries;
mod jumps;
mod kerberos;
mod key_files;
mod login_plans;
mod questions;
mod session_settings;
mod transport;
mod trust_files;
mod way_there;

use std::collections::HashMap;
use std::ffi::OsString;
use std::net::{IpAddr, Ipv6Addr};
use std::path::PathBuf;
use std::sync::Arc;

use sshoal_fleet::JumpId;
use sshoal_known_hosts::{DEFAULT_PORT, LineProblem};
use sshoal_proto::{SessionRequest, Settings};
use sshoal_ssh_config::{
    Config, HostKeys, Proxy, Query, ResolveError, Resolved, StrictHostKeyChecking, YesNoAsk,
};
use sshoal_targets::Target;

use crate::known_hosts::{IndexCache, KnownHostsCommand, Searched};
use crate::listening::Listening;
use crate::login::LoginPlan;
use crate::plan::{Endpoint, HostPlan, HostTrust, NativePlan, Recording, Strictness};
use algorithms::HostAlgorithms;
use jumps::Jumps;
use login_plans::{LoginPlanError, LoginPlans};
use questions::Open;
use trust_files::TrustFiles;

pub use config_files::local_user;
pub use error::PrepareError;
pub use explain::{Explanation, KnownLine, Shortfall};
pub use transport::Transport;

/// What the user said about ssh itself.
#[derive(Debug, Clone, Default)]
pub struct SshOptions {
    /// `-F`: the configuration file in place of the usual ones.
    pub config_file: Option<PathBuf>,
    /// `-o`: configuration lines, as "Key=Value".
    pub options: Vec<String>,
    /// `-l`: the user of targets that have none of their own.
    pub user: Option<String>,
    /// `-i`.
    pub identities: Vec<PathBuf>,
    /// Whether hosts do without a key file that is named and cannot be used, as with ssh, which only warns. Else nothing is
    /// begun.
    pub does_without_keys: bool,
    /// `-J`: jump hosts, as ProxyJump has them.
    pub jump: Option<String>,
    /// `-A`: ForwardAgent.
    pub forward_agent: bool,
    /// What SSH_AUTH_SOCK is for whoever asks, if that is not this process's own; empty for none.
    pub auth_sock: Option<String>,
    /// The tag, for `Match tagged`.
    pub tag: Option<String>,
    /// The command as it was typed, for `Match command` and `Match sessiontype`; it does not go together with
    /// RemoteCommand.
    pub command: Option<String>,
    /// How hosts are reached.
    pub transport: Transport,
    /// Words that are passed on to an ssh as they are, before the host.
    pub ssh_words: Vec<OsString>,
}

/// Reads configuration, keys and known_hosts for a run, each once.
pub struct Preparation {
    config: Config,
    ssh: SshOptions,
    questions: questions::Questions,
    trust: TrustFiles,
    login_plans: LoginPlans,
    settings: HashMap<String, HostAlgorithms>,
    jumps: Jumps,
}

impl Preparation {
    /// Reads the configuration.
    ///
    /// # Errors
    ///
    /// [`PrepareError::Config`] with every faulty line.
    pub fn new(ssh: &SshOptions) -> Result<Self, PrepareError> {
        let config = config_files::load(ssh)?;
        Ok(Preparation {
            config,
            ssh: ssh.clone(),
            questions: questions::Questions::default(),
            trust: TrustFiles::default(),
            login_plans: LoginPlans::new(ssh),
            settings: HashMap::new(),
            jumps: Jumps::new(ssh),
        })
    }

    /// Resolves all targets; `request` makes each one's command from what was resolved. Names are looked up and
    /// commands of `Match exec` run many at a time.
    ///
    /// # Errors
    ///
    /// [`PrepareError`], naming the host or the file.
    pub fn hosts(
        &mut self,
        targets: &[Target],
        request: impl Fn(&Place<'_>) -> SessionRequest,
    ) -> Result<Vec<HostPlan>, PrepareError> {
        self.each(targets, |preparation, target, resolved| {
            preparation.host(target, resolved, &request)
        })
    }

    /// Resolves all targets as far as a command on this machine needs it; `make` makes something of what was resolved.
    ///
    /// # Errors
    ///
    /// [`PrepareError::Resolve`], naming the host.
    pub fn places<T>(
        &mut self,
        targets: &[Target],
        make: impl Fn(&Place<'_>) -> T,
    ) -> Result<Vec<T>, PrepareError> {
        self.each(targets, |_, target, resolved| {
            Ok(make(&Place::of(target, resolved)))
        })
    }

    /// Makes something of each target, in their order. Hosts that ask nothing go first; what the others ask is found out
    /// for all of them at once.
    fn each<T>(
        &mut self,
        targets: &[Target],
        mut make: impl FnMut(&mut Self, &Target, &Resolved) -> Result<T, PrepareError>,
    ) -> Result<Vec<T>, PrepareError> {
        let mut made: Vec<Option<T>> = targets.iter().map(|_| None).collect();
        let mut waiting: Vec<usize> = (0..targets.len()).collect();
        while !waiting.is_empty() {
            let mut open = Open::default();
            let mut asking = Vec::new();
            for number in waiting {
                let target = &targets[number];
                let begun = self.query(target, |query| self.questions.begin(&self.config, query));
                match begun? {
                    Ok(resolved) => made[number] = Some(make(self, target, &resolved)?),
                    Err(question) => {
                        open.add(question);
                        asking.push(number);
                    }
                }
            }
            self.questions.find_out(open);
            waiting = asking;
        }
        Ok(made.into_iter().flatten().collect())
    }

    fn host(
        &mut self,
        target: &Target,
        resolved: &Resolved,
        request: impl FnOnce(&Place<'_>) -> SessionRequest,
    ) -> Result<HostPlan, PrepareError> {
        let label = target.to_string();
        session_settings::refuse_unsupported(&label, resolved)?;
        if let Some(why) = self.reason_for_ssh(resolved) {
            way_there::refuse_standard_streams(&label, resolved)?;
            let request = request(&Place::of(target, resolved));
            let plan = self.ssh_plan(target, resolved, request, why);
            return Ok(HostPlan::OpenSsh(Box::new(plan)));
        }
        let via = match &resolved.connection.proxy.value {
            Proxy::Jump(hops) => self.way(hops, 0)?,
            Proxy::None | Proxy::Command(_) => None,
        };
        let mut request = request(&Place::of(target, resolved));
        request.environment = environment::of(&resolved.session);
        let lends_terminal = request.pty.is_some();
        request.pty = request
            .pty
            .or_else(|| session_settings::forced_pty(&resolved.session));
        let forwarded_agent = self.login_plans.forwarded_agent(resolved);
        request.forward_agent = forwarded_agent.is_some();
        Ok(HostPlan::Native(Box::new(NativePlan {
            request,
            forwarded_agent,
            endpoint: self.endpoint(label, via, resolved)?,
            listening: Listening::of(resolved),
            lends_terminal,
            resumes_at: None,
            announcement: None,
        })))
    }

    /// What a host or jump host resolves to, behind the jump host `via`.
    fn endpoint(
        &mut self,
        label: String,
        via: Option<JumpId>,
        resolved: &Resolved,
    ) -> Result<Endpoint, PrepareError> {
        let proxy_command = match via {
            None => way_there::proxy_command(&label, resolved)?,
            // With -J a,b the way to b is a, whatever the configuration says of b.
            Some(_) => None,
        };
        let algorithms = self.algorithms(&label, resolved)?;
        let (known, files) = self.trust.promise(&resolved.host_keys);
        let trust = HostTrust {
            known,
            files,
            command: known_hosts_command(&label, resolved)?,
            name: known_as(resolved),
            port: known_port(resolved),
            algorithms: algorithms.host_keys,
            ca_signature_algorithms: algorithms.ca_signatures,
            required_rsa_size: algorithms.settings.required_rsa_size,
            revoked: self
                .trust
                .read_revoked(&resolved.host_keys.revoked_host_keys.value)?,
            strictness: strictness(resolved),
            checks_address: checks_address(resolved),
            trusts_loopback: trusts_loopback(&resolved.host_keys),
            wants_dns: resolved.host_keys.verify_host_key_dns.value != YesNoAsk::No,
            user_files: resolved
                .host_keys
                .user_known_hosts_files
                .value
                .clone()
                .into(),
            // As ssh, which asks only where it was given no command.
            updates_keys: resolved.host_keys.update_host_keys.value == YesNoAsk::Yes,
            recording: recording(&resolved.host_keys),
        };
        let login = self.login_plan(&label, resolved)?;
        let connection = &resolved.connection;
        Ok(Endpoint {
            tcp: way_there::tcp_options(&label, connection)?,
            label,
            via,
            proxy_command,
            name: connection.host_name.value.clone(),
            port: connection.port.value,
            user: connection.user.value.clone(),
            trust,
            login,
            settings: algorithms.settings,
            prefers_measured: algorithms::leaves_protection_open(resolved),
        })
    }

    fn resolve(&self, target: &Target) -> Result<Resolved, PrepareError> {
        self.query(target, |query| self.questions.resolve(&self.config, query))
    }

    /// Asks the configuration about a target; errors name it.
    fn query<T>(
        &self,
        target: &Target,
        ask: impl FnOnce(&Query<'_>) -> Result<T, ResolveError>,
    ) -> Result<T, PrepareError> {
        let options: Vec<String> = target.options.iter().map(option_line).collect();
        let options = match options.is_empty() {
            true => None,
            false => Some(self.config.host_options(&options)),
        };
        let options = options.transpose().map_err(|error| PrepareError::Options {
            host: target.to_string(),
            error,
        })?;
        let query = Query {
            options: options.as_ref(),
            host: &target.name,
            user: target.user.as_deref(),
            // No line of ssh_config, in which it would need quotes (ssh.c, main).
            login: self.ssh.user.as_deref(),
            port: target.port,
            command: self.ssh.command.as_deref(),
            tag: self.ssh.tag.as_deref(),
        };
        ask(&query).map_err(|error| PrepareError::Resolve {
            host: target.to_string(),
            error,
        })
    }

    /// Whether a command of `Match exec` was run to resolve what was resolved so far.
    pub fn has_run_commands(&self) -> bool {
        self.questions.have_run_commands()
    }

    /// What is wrong with the key files that hosts do without ([`SshOptions::does_without_keys`]), each once.
    pub fn unusable_keys(&self) -> impl ExactSizeIterator<Item = &str> {
        self.login_plans.unusable().iter().map(String::as_str)
    }

    /// Lines of the known_hosts files that were read which could not be understood; they grant no trust.
    pub fn known_hosts_problems(&self) -> Vec<LineProblem> {
        self.trust.problems()
    }

    /// Reads what known_hosts files say of all hosts and jump hosts that were resolved; until then nobody is known.
    /// What the indexes of the cache do not know of hashed lines is searched for on all cores.
    ///
    /// # Errors
    ///
    /// [`PrepareError::KnownHosts`], naming the file.
    pub fn read_known_hosts(
        &mut self,
        hosts: &mut [HostPlan],
        cache: Option<&IndexCache>,
    ) -> Result<Searched, PrepareError> {
        let hosts = hosts.iter_mut().filter_map(HostPlan::native_mut);
        let hosts = hosts.map(|host| &mut host.endpoint);
        let endpoints = hosts.chain(&mut self.jumps.plans);
        let mut trusts: Vec<&mut HostTrust> =
            endpoints.map(|endpoint| &mut endpoint.trust).collect();
        Ok(self.trust.read_for(&mut trusts, cache)?)
    }

    /// The jump hosts on the way to the hosts resolved so far.
    pub fn jumps(&self) -> &[Endpoint] {
        &self.jumps.plans
    }

    /// The same, to keep.
    pub fn into_jumps(self) -> Vec<Endpoint> {
        self.jumps.plans
    }

    fn login_plan(
        &mut self,
        host: &str,
        resolved: &Resolved,
    ) -> Result<Arc<LoginPlan>, PrepareError> {
        self.login_plans
            .plan(resolved)
            .map_err(|error| match error {
                LoginPlanError::Identity(error) => PrepareError::Identity(error),
                LoginPlanError::Algorithms(error) => PrepareError::Algorithms {
                    host: host.to_owned(),
                    error,
                },
            })
    }

    fn algorithms(
        &mut self,
        host: &str,
        resolved: &Resolved,
    ) -> Result<HostAlgorithms, PrepareError> {
        let key = algorithms::key(resolved);
        if let Some(known) = self.settings.get(&key) {
            return Ok(known.clone());
        }
        let made = HostAlgorithms::resolve(resolved).map_err(|error| PrepareError::Algorithms {
            host: host.to_owned(),
            error,
        })?;
        self.settings.insert(key, made.clone());
        Ok(made)
    }
}

/// Where a command will run: what %h, %p, %u and %n stand for.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// %h: the name or address connected to.
    pub host: &'a str,
    /// %p.
    pub port: u16,
    /// %u: the remote user.
    pub user: &'a str,
    /// %n: the host as the user wrote it.
    pub name: &'a str,
    /// RemoteCommand, its tokens filled in.
    pub remote_command: Option<&'a str>,
}

impl<'a> Place<'a> {
    fn of(target: &'a Target, resolved: &'a Resolved) -> Self {
        let connection = &resolved.connection;
        Place {
            host: &connection.host_name.value,
            port: connection.port.value,
            user: &connection.user.value,
            name: &target.name,
            remote_command: resolved
                .session
                .remote_command
                .as_ref()
                .map(|command| command.value.as_str()),
        }
    }
}

/// Keywords whose value is one path: blanks in it are part of it, and need quotes on a line.
const PATHS: [&str; 3] = ["IdentityFile", "CertificateFile", "IdentityAgent"];

/// An option of a target as a line of ssh_config.
fn option_line((keyword, value): &(String, String)) -> String {
    let is_path = PATHS.iter().any(|path| path.eq_ignore_ascii_case(keyword));
    match is_path && value.contains(char::is_whitespace) && !value.contains('"') {
        true => format!("{keyword}=\"{value}\""),
        false => format!("{keyword}={value}"),
    }
}

fn known_hosts_command(
    host: &str,
    resolved: &Resolved,
) -> Result<Option<Arc<KnownHostsCommand>>, PrepareError> {
    let keys = &resolved.host_keys;
    let (Some(set), Some(arguments)) = (&keys.known_hosts_command, &keys.known_hosts_arguments)
    else {
        return Ok(None);
    };
    match arguments {
        Ok(arguments) => Ok(Some(Arc::new(KnownHostsCommand {
            arguments: arguments.clone(),
            host: resolved.connection.host_name.value.clone(),
            orders: algorithms::leaves_order_open(resolved),
        }))),
        Err(why) => Err(PrepareError::KnownHostsCommand {
            host: host.to_owned(),
            command: set.value.clone(),
            why: why.clone(),
            origin: set.origin.to_string(),
        }),
    }
}

fn known_as(resolved: &Resolved) -> String {
    match &resolved.host_keys.host_key_alias {
        Some(alias) => alias.value.clone(),
        None => resolved.connection.host_name.value.clone(),
    }
}

/// The port that known_hosts is asked for: an alias stands for a host on any.
fn known_port(resolved: &Resolved) -> u16 {
    match resolved.host_keys.host_key_alias {
        Some(_) => DEFAULT_PORT,
        None => resolved.connection.port.value,
    }
}

fn strictness(resolved: &Resolved) -> Strictness {
    let checking = &resolved.host_keys.strict_host_key_checking;
    match checking.value {
        // Strict where nobody has said otherwise: ssh would ask.
        StrictHostKeyChecking::Ask if !checking.is_configured() => Strictness::Yes,
        StrictHostKeyChecking::Ask if !resolved.authentication.batch_mode.value => Strictness::Ask,
        StrictHostKeyChecking::Yes | StrictHostKeyChecking::Ask => Strictness::Yes,
        StrictHostKeyChecking::AcceptNew => Strictness::AcceptNew,
        StrictHostKeyChecking::No => Strictness::No,
    }
}

/// An address that the user names is the host's name already (check_host_key, sshconnect.c).
fn checks_address(resolved: &Resolved) -> bool {
    let name = &resolved.connection.host_name.value;
    resolved.host_keys.check_host_ip.value && !is_address(name)
}

/// Whether a name is an address, of IPv6 also with a scope behind it.
fn is_address(name: &str) -> bool {
    let unscoped = name.split_once('%').map(|(address, _)| address);
    name.parse::<IpAddr>().is_ok() || unscoped.is_some_and(|v6| v6.parse::<Ipv6Addr>().is_ok())
}

fn trusts_loopback(host_keys: &HostKeys) -> bool {
    host_keys.no_host_authentication_for_localhost.value && host_keys.host_key_alias.is_none()
}

fn recording(host_keys: &HostKeys) -> Option<Recording> {
    let file = host_keys.user_known_hosts_files.value.first()?;
    Some(Recording {
        file: file.clone(),
        hashes_names: host_keys.hash_known_hosts.value,
    })
}

/// Settings shared by all hosts that resolve to the same algorithms and limits.
pub(crate) type SharedSettings = Arc<Settings>;

#[cfg(test)]
mod tests {
    use super::is_address;

    #[test]
    fn an_address_may_have_a_scope() {
        for address in ["127.0.0.1", "::1", "fe80::1%eth0", "fe80::1%2"] {
            assert!(is_address(address), "{address}");
        }
        for name in [
            "web1",
            "127.0.0.1%eth0",
            "%eth0",
            "fe80%eth0",
            "::1.example",
        ] {
            assert!(!is_address(name), "{name}");
        }
    }
}
