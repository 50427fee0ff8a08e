//! From what the user said to what is to be done: configuration, known_hosts and keys are read once, then
//! each host is resolved.

mod algorithms;
mod config_files;
mod environment;
mod explain;
mod jumps;
mod key_files;
mod login_plans;
mod questions;
mod trust_files;

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use sshoal_fleet::JumpId;
use sshoal_known_hosts::{DEFAULT_PORT, LineProblem};
use sshoal_proto::{SessionRequest, Settings};
use sshoal_ssh_config::{
    Config, Connection, HostKeys, LoadError, Proxy, Query, ResolveError, Resolved,
    StrictHostKeyChecking, YesNoAsk,
};
use sshoal_targets::Target;

use crate::known_hosts::{IndexCache, KnownHostsCommand};
use crate::login::LoginPlan;
use crate::plan::{Endpoint, HostPlan, HostTrust, Recording, Strictness, TcpOptions};
use algorithms::{AlgorithmError, HostAlgorithms};
use jumps::Jumps;
use key_files::IdentityError;
use login_plans::{LoginPlanError, LoginPlans};
use trust_files::{TrustError, TrustFiles};

pub use explain::{Explanation, KnownLine, Shortfall};

/// What the user said about ssh itself.
#[derive(Debug, Clone, Default)]
pub struct SshOptions {
    /// `-F`: the configuration file in place of the usual ones.
    pub config_file: Option<PathBuf>,
    /// `-o`: configuration lines, as "Key=Value".
    pub options: Vec<String>,
    /// `-l`.
    pub user: Option<String>,
    /// `-i`.
    pub identities: Vec<PathBuf>,
    /// `-J`: jump hosts, as ProxyJump has them.
    pub jump: Option<String>,
}

/// Why a run cannot be prepared: nothing was started.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// The configuration has errors.
    #[error(transparent)]
    Config(#[from] LoadError),
    /// What a host file or an inventory says of a host is no option of ssh_config.
    #[error("{host}: {error}")]
    Options {
        /// As the user wrote it.
        host: String,
        /// What is wrong.
        error: LoadError,
    },
    /// A host cannot be resolved.
    #[error("{host}: {error}")]
    Resolve {
        /// As the user wrote it.
        host: String,
        /// What is wrong.
        error: ResolveError,
    },
    /// A host's algorithms leave nothing to offer.
    #[error("{host}: {error}")]
    Algorithms {
        /// As the user wrote it.
        host: String,
        /// What is wrong.
        error: AlgorithmError,
    },
    /// A private key that was asked for cannot be used.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// A known_hosts file cannot be read.
    #[error(transparent)]
    KnownHosts(#[from] TrustError),
    /// KnownHostsCommand cannot be made into arguments.
    #[error("{host}: KnownHostsCommand {command} ({origin}): {why}")]
    KnownHostsCommand {
        /// As the user wrote it.
        host: String,
        /// As it is set.
        command: String,
        /// What is wrong.
        why: String,
        /// Where it is set.
        origin: String,
    },
    /// The host needs what this transport cannot do.
    #[error("{host}: {what} is not supported yet ({origin}); reach this host with ssh itself")]
    Unsupported {
        /// As the user wrote it.
        host: String,
        /// The setting.
        what: &'static str,
        /// Where it is set.
        origin: String,
    },
    /// Jump hosts that are reached through each other, or far too many of them.
    #[error(
        "jump host {host}: it is reached through more jump hosts than can be meant, \
         perhaps by way of itself; set ProxyJump to none for the first of them"
    )]
    JumpLoop {
        /// The jump host.
        host: String,
    },
    /// `-i` or `-F` with a path that is not valid UTF-8, which ssh_config cannot hold.
    #[error("{0:?} is not valid UTF-8; rename it or refer to it by a link")]
    PathNotUtf8(PathBuf),
}

/// Reads configuration, keys and known_hosts for a run, each once.
pub struct Preparation {
    config: Config,
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
            questions: questions::Questions::default(),
            trust: TrustFiles::default(),
            login_plans: LoginPlans::new(),
            settings: HashMap::new(),
            jumps: Jumps::new(ssh),
        })
    }

    /// Resolves one target; `request` makes its command from what was resolved.
    ///
    /// # Errors
    ///
    /// [`PrepareError`], naming the host or the file.
    pub fn host(
        &mut self,
        target: &Target,
        request: impl FnOnce(&Place<'_>) -> SessionRequest,
    ) -> Result<HostPlan, PrepareError> {
        let label = target.to_string();
        let resolved = self.resolve(target)?;
        let via = match &resolved.connection.proxy.value {
            Proxy::Jump(hops) => self.way(hops, 0)?,
            Proxy::None | Proxy::Command(_) => None,
        };
        let mut request = request(&Place::of(target, &resolved));
        request.environment = environment::of(&resolved.session);
        Ok(HostPlan {
            request,
            endpoint: self.endpoint(label, via, &resolved)?,
        })
    }

    /// What a host or jump host resolves to, behind the jump host `via`.
    fn endpoint(
        &mut self,
        label: String,
        via: Option<JumpId>,
        resolved: &Resolved,
    ) -> Result<Endpoint, PrepareError> {
        refuse_unsupported(&label, resolved)?;
        let algorithms = self.algorithms(&label, resolved)?;
        let trust = HostTrust {
            known: self.trust.read(&resolved.host_keys)?,
            command: known_hosts_command(&label, resolved)?,
            name: known_as(resolved),
            port: known_port(resolved),
            algorithms: algorithms.host_keys,
            ca_signature_algorithms: algorithms.ca_signatures,
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
            tcp: tcp_options(&label, connection)?,
            label,
            via,
            name: connection.host_name.value.clone(),
            port: connection.port.value,
            user: connection.user.value.clone(),
            trust,
            login,
            settings: algorithms.settings,
        })
    }

    /// Resolves one target as far as a command on this machine needs it; `make` makes something of what was
    /// resolved.
    ///
    /// # Errors
    ///
    /// [`PrepareError::Resolve`], naming the host.
    pub fn place<T>(
        &self,
        target: &Target,
        make: impl FnOnce(&Place<'_>) -> T,
    ) -> Result<T, PrepareError> {
        let resolved = self.resolve(target)?;
        Ok(make(&Place::of(target, &resolved)))
    }

    fn resolve(&self, target: &Target) -> Result<Resolved, PrepareError> {
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
            port: target.port,
            ..Query::default()
        };
        self.questions
            .resolve(&self.config, &query)
            .map_err(|error| PrepareError::Resolve {
                host: target.to_string(),
                error,
            })
    }

    /// Lines of known_hosts files that could not be understood; they grant no trust.
    pub fn known_hosts_problems(&self) -> Vec<LineProblem> {
        self.trust.problems()
    }

    /// Looks all hosts and jump hosts up in hashed known_hosts entries at once: in the cached indexes, and what those do
    /// not know on all cores.
    pub fn look_up_hashed(&mut self, hosts: &mut [HostPlan], cache: Option<&IndexCache>) {
        let hosts = hosts.iter_mut().map(|host| &mut host.endpoint);
        let endpoints = hosts.chain(&mut self.jumps.plans);
        let mut trusts: Vec<&mut HostTrust> =
            endpoints.map(|endpoint| &mut endpoint.trust).collect();
        self.trust.look_up_hashed(&mut trusts, cache);
    }

    /// The jump hosts on the way to the hosts resolved so far.
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
}

impl<'a> Place<'a> {
    fn of(target: &'a Target, resolved: &'a Resolved) -> Self {
        let connection = &resolved.connection;
        Place {
            host: &connection.host_name.value,
            port: connection.port.value,
            user: &connection.user.value,
            name: &target.name,
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
    match resolved.host_keys.strict_host_key_checking.value {
        StrictHostKeyChecking::Ask if !resolved.authentication.batch_mode.value => Strictness::Ask,
        StrictHostKeyChecking::Yes | StrictHostKeyChecking::Ask => Strictness::Yes,
        StrictHostKeyChecking::AcceptNew => Strictness::AcceptNew,
        StrictHostKeyChecking::No => Strictness::No,
    }
}

/// An address that the user names is the host's name already (check_host_key, sshconnect.c).
fn checks_address(resolved: &Resolved) -> bool {
    let name = &resolved.connection.host_name.value;
    resolved.host_keys.check_host_ip.value && name.parse::<IpAddr>().is_err()
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

fn tcp_options(host: &str, connection: &Connection) -> Result<TcpOptions, PrepareError> {
    let bind_address = connection.bind_address.as_ref().map(|bind| {
        let address = bind.value.parse::<IpAddr>();
        address.map_err(|_| PrepareError::Unsupported {
            host: host.to_owned(),
            what: "a BindAddress that is no IP address",
            origin: bind.origin.to_string(),
        })
    });
    let connect_timeout = connection.connect_timeout.as_ref();
    Ok(TcpOptions {
        address_family: connection.address_family.value,
        bind_address: bind_address.transpose()?,
        connect_timeout: connect_timeout.map(|timeout| timeout.value),
        // Where the server is asked for signs of life, that is better.
        keep_alive: connection.tcp_keep_alive.value && algorithms::keepalive(connection).is_none(),
    })
}

fn refuse_unsupported(host: &str, resolved: &Resolved) -> Result<(), PrepareError> {
    let unsupported = |what, origin: &dyn std::fmt::Display| PrepareError::Unsupported {
        host: host.to_owned(),
        what,
        origin: origin.to_string(),
    };
    let connection = &resolved.connection;
    if let Some(interface) = &connection.bind_interface {
        return Err(unsupported("BindInterface", &interface.origin));
    }
    match &connection.proxy.value {
        Proxy::None | Proxy::Jump(_) => Ok(()),
        Proxy::Command(_) => Err(unsupported("ProxyCommand", &connection.proxy.origin)),
    }
}

/// Settings shared by all hosts that resolve to the same algorithms and limits.
pub(crate) type SharedSettings = Arc<Settings>;
