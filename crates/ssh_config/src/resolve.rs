//! From a configuration to the settings of one host.

use crate::address;
use crate::config::{Config, Directive, Query};
use crate::error::{Problem, ResolveError};
use crate::expand::{self, TargetTokens, Tokens};
use crate::keyword::Keyword;
use crate::origin::{Origin, Setting};
use crate::pass::Pass;
use crate::pattern;
use crate::resolved::{
    Algorithms, Authentication, Connection, HostKeys, OtherSetting, Proxy, Resolved, Session,
};
use crate::slots::Slots;
use crate::value::{
    self, AddressFamily, ForwardAgent, IdentityAgent, LogLevel, PubkeyAuthentication, RekeyLimit,
    RequestTty, StrictHostKeyChecking, Value, Word,
};

/// The port of ssh.
const DEFAULT_PORT: u16 = 22;

/// Most identity files, and most certificate files, of one host (`SSH_MAX_IDENTITY_FILES`,
/// ssh.h).
const MAX_IDENTITY_FILES: usize = 100;

/// Fewest bits of an RSA key (`SSH_RSA_MINIMUM_MODULUS_SIZE`, sshkey.h).
const DEFAULT_REQUIRED_RSA_SIZE: u32 = 1024;

/// Where ssh looks for keys if no line says (`fill_default_options`, readconf.c).
const DEFAULT_IDENTITY_FILES: [&str; 5] = [
    "~/.ssh/id_rsa",
    "~/.ssh/id_ecdsa",
    "~/.ssh/id_ecdsa_sk",
    "~/.ssh/id_ed25519",
    "~/.ssh/id_ed25519_sk",
];

const DEFAULT_USER_KNOWN_HOSTS: [&str; 2] = ["~/.ssh/known_hosts", "~/.ssh/known_hosts2"];
const DEFAULT_GLOBAL_KNOWN_HOSTS: [&str; 2] =
    ["/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"];

/// The variable that names the agent's socket.
const SSH_AUTH_SOCK: &str = "SSH_AUTH_SOCK";

impl Config {
    /// The settings of a host.
    pub fn resolve(&self, query: &Query<'_>) -> Result<Resolved, ResolveError> {
        if !is_host_name(query.host) {
            return Err(ResolveError::HostName(query.host.into()));
        }
        if let Some(user) = query.user.filter(|user| !is_user_name(user)) {
            return Err(ResolveError::UserName(user.into()));
        }
        let mut pass = Pass::new(self, query);
        pass.run(query.host, false)?;
        let host_name = address::canonical(pass.host_name.take().unwrap_or(query.host.into()));
        if self.wants_second_pass {
            pass.host_name = Some(host_name.clone());
            pass.run(&host_name, true)?;
        }
        let builder = Builder::new(self, query, &pass.slots, &host_name)?;
        builder.check_jump_loop()?;
        builder.build()
    }
}

/// `ssh_valid_hostname` (readconf.c)
fn is_host_name(host: &str) -> bool {
    let is_bad = |c: char| "'`\"$\\;&<>|(){},".contains(c) || c.is_ascii_control() || c == ' ';
    !host.is_empty() && !host.starts_with('-') && !host.contains(is_bad)
}

/// `ssh_valid_ruser` (readconf.c)
fn is_user_name(user: &str) -> bool {
    let is_bad = |c: char| "'`\";&<>|(){}".contains(c) || c.is_ascii_control();
    !user.starts_with('-')
        && !user.contains(is_bad)
        && !user.contains(" -")
        && !user.ends_with('\\')
}

/// Makes values of what the slots hold.
struct Builder<'a> {
    config: &'a Config,
    query: &'a Query<'a>,
    slots: &'a Slots<'a>,
    host_name: Setting<String>,
    port: Setting<u16>,
    user: Setting<String>,
    proxy: Setting<Proxy>,
    key_alias: Option<Setting<String>>,
}

impl<'a> Builder<'a> {
    /// Settles what tokens in other values refer to.
    fn new(
        config: &'a Config,
        query: &'a Query<'a>,
        slots: &'a Slots<'a>,
        host_name: &str,
    ) -> Result<Builder<'a>, ResolveError> {
        let origin = slots
            .filled(Keyword::HostName)
            .map(|set| set.origin.clone());
        let mut builder = Builder {
            config,
            query,
            slots,
            host_name: Setting::new(host_name.into(), origin.unwrap_or(Origin::Query)),
            port: port(query, slots),
            user: Setting::default(config.environment.local_user.clone()),
            proxy: proxy(slots),
            key_alias: slots
                .text(Keyword::HostKeyAlias)
                .map(|alias| alias.map(|name| name.to_ascii_lowercase())),
        };
        if let Some(user) = query.user {
            builder.user = Setting::new(user.into(), Origin::Query);
        } else if let Some(set) = slots.text(Keyword::User) {
            builder.user = builder.configured_user(&set)?;
        }
        Ok(builder)
    }

    /// A user from a line may contain tokens, but not `%r` and `%C`; ssh checks the name only if
    /// it did.
    fn configured_user(&self, set: &Setting<&str>) -> Result<Setting<String>, ResolveError> {
        let user = self.expand(set, |text| {
            expand::percent_and_variables(text, &self.tokens(None))
        })?;
        if user.value != set.value && !is_user_name(&user.value) {
            return Err(ResolveError::UserName(user.value));
        }
        Ok(user)
    }

    /// A host whose last jump is itself cannot be reached.
    fn check_jump_loop(&self) -> Result<(), ResolveError> {
        let Proxy::Jump(hops) = &self.proxy.value else {
            return Ok(());
        };
        let Some(hop) = hops.last() else {
            return Ok(());
        };
        let is_itself = hop.host == self.host_name.value
            && hop.port.unwrap_or(DEFAULT_PORT) == self.port.value
            && hop
                .user
                .as_ref()
                .is_none_or(|user| *user == self.user.value);
        if !is_itself {
            return Ok(());
        }
        let origin = self.proxy.origin.clone();
        let why = format!(
            "{0} would be reached through itself; except it with \"Host {0}\" and \"ProxyJump none\"",
            hop.host
        );
        Err(ResolveError::Line(Problem { origin, why }))
    }

    fn tokens<'t>(&'t self, user: Option<&'t str>) -> Tokens<'t> {
        let key_alias = self.key_alias.as_ref().map(|alias| alias.value.as_str());
        let jump_host = match &self.proxy.value {
            Proxy::Jump(hops) => hops.last().map_or("", |hop| hop.host.as_str()),
            Proxy::None | Proxy::Command(_) => "",
        };
        Tokens {
            environment: &self.config.environment,
            original_host: Some(self.query.host),
            target: Some(TargetTokens {
                host_name: &self.host_name.value,
                port: self.port.value,
                key_alias: key_alias.unwrap_or(self.query.host),
                jump_host,
                user,
            }),
        }
    }

    /// A path: `~`, then tokens and variables.
    fn path(&self, path: &str) -> Result<String, String> {
        let path = expand::tilde(path, &self.config.environment)?;
        self.percent_and_variables(&path)
    }

    fn percent_and_variables(&self, text: &str) -> Result<String, String> {
        expand::percent_and_variables(text, &self.tokens(Some(&self.user.value)))
    }

    /// Expands a value; what cannot be expanded is reported with its line.
    fn expand<T, U>(
        &self,
        set: &Setting<T>,
        how: impl FnOnce(&T) -> Result<U, String>,
    ) -> Result<Setting<U>, ResolveError> {
        match how(&set.value) {
            Ok(value) => Ok(Setting::new(value, set.origin.clone())),
            Err(why) => Err(ResolveError::Line(Problem {
                origin: set.origin.clone(),
                why,
            })),
        }
    }

    fn build(self) -> Result<Resolved, ResolveError> {
        let authentication = self.authentication()?;
        let host_keys = self.host_keys()?;
        let session = self.session()?;
        let algorithms = self.algorithms();
        let others = self
            .slots
            .others
            .iter()
            .map(|directive| other(directive))
            .collect();
        let host = self.query.host.to_string();
        let connection = self.connection()?;
        Ok(Resolved {
            host,
            connection,
            host_keys,
            authentication,
            algorithms,
            session,
            others,
        })
    }

    fn connection(self) -> Result<Connection, ResolveError> {
        let slots = self.slots;
        let connection_attempts = slots.number(Keyword::ConnectionAttempts, 1);
        if connection_attempts.value == 0 {
            let why = "ConnectionAttempts must be at least 1".into();
            return Err(ResolveError::Line(Problem {
                origin: connection_attempts.origin,
                why,
            }));
        }
        let alive = slots
            .seconds(Keyword::ServerAliveInterval)
            .unwrap_or(Setting::default(0));
        let timeout = slots
            .seconds(Keyword::ConnectTimeout)
            .filter(|set| set.value > 0);
        Ok(Connection {
            host_name: self.host_name,
            user: self.user,
            port: self.port,
            address_family: slots.word(Keyword::AddressFamily, AddressFamily::Any),
            bind_address: slots.text(Keyword::BindAddress).map(Setting::owned),
            proxy: self.proxy,
            connect_timeout: timeout.map(|set| set.map(value::duration)),
            connection_attempts,
            server_alive_interval: alive.map(value::duration),
            server_alive_count_max: slots.number(Keyword::ServerAliveCountMax, 3),
            tcp_keep_alive: slots.word(Keyword::TcpKeepAlive, true),
            compression: slots.word(Keyword::Compression, false),
        })
    }

    fn host_keys(&self) -> Result<HostKeys, ResolveError> {
        let slots = self.slots;
        let user_known_hosts_files = match slots.words(Keyword::UserKnownHostsFile) {
            Some(set) => self.expand(&set, |files| self.paths(files))?,
            None => {
                let files = DEFAULT_USER_KNOWN_HOSTS.map(String::from);
                self.expand(&Setting::default(files), |files| self.paths(files))?
            }
        };
        let global_known_hosts_files = match slots.words(Keyword::GlobalKnownHostsFile) {
            Some(set) => set.map(|files| without_none(files).to_vec()),
            None => Setting::default(DEFAULT_GLOBAL_KNOWN_HOSTS.map(String::from).to_vec()),
        };
        Ok(HostKeys {
            user_known_hosts_files,
            global_known_hosts_files,
            strict_host_key_checking: slots
                .word(Keyword::StrictHostKeyChecking, StrictHostKeyChecking::Ask),
            host_key_alias: self.key_alias.clone(),
            check_host_ip: slots.word(Keyword::CheckHostIp, false),
            required_rsa_size: slots.number(Keyword::RequiredRsaSize, DEFAULT_REQUIRED_RSA_SIZE),
        })
    }

    fn paths(&self, files: &[String]) -> Result<Vec<String>, String> {
        without_none(files)
            .iter()
            .map(|file| self.path(file))
            .collect()
    }

    fn authentication(&self) -> Result<Authentication, ResolveError> {
        let slots = self.slots;
        let mut identity_files = self.accumulated_paths(Keyword::IdentityFile)?;
        if !slots
            .accumulated
            .iter()
            .any(|set| set.keyword == Keyword::IdentityFile)
        {
            for file in DEFAULT_IDENTITY_FILES {
                identity_files.push(self.expand(&Setting::default(file), |file| self.path(file))?);
            }
        }
        let preferred = slots.text(Keyword::PreferredAuthentications);
        Ok(Authentication {
            identity_files,
            certificate_files: self.accumulated_paths(Keyword::CertificateFile)?,
            identities_only: slots.word(Keyword::IdentitiesOnly, false),
            identity_agent: self.identity_agent()?,
            preferred_authentications: preferred
                .map(|set| set.map(|list| list.split(',').map(String::from).collect())),
            pubkey_authentication: slots
                .word(Keyword::PubkeyAuthentication, PubkeyAuthentication::Yes),
            password_authentication: slots.word(Keyword::PasswordAuthentication, true),
            kbd_interactive_authentication: slots.word(Keyword::KbdInteractiveAuthentication, true),
            number_of_password_prompts: slots.number(Keyword::NumberOfPasswordPrompts, 3),
            batch_mode: slots.word(Keyword::BatchMode, false),
        })
    }

    /// The paths of all lines with a keyword, each once; `none` stands for no file.
    fn accumulated_paths(&self, keyword: Keyword) -> Result<Vec<Setting<String>>, ResolveError> {
        let mut paths: Vec<Setting<String>> = Vec::new();
        for (text, directive) in self.accumulated(keyword) {
            if text.eq_ignore_ascii_case("none") {
                continue;
            }
            let set = Setting::new(text, directive.origin.clone());
            let path = self.expand(&set, |text| self.path(text))?;
            if paths.iter().any(|have| have.value == path.value) {
                continue;
            }
            if paths.len() == MAX_IDENTITY_FILES {
                let why = format!("more than {MAX_IDENTITY_FILES} files for one host");
                return Err(ResolveError::Line(Problem {
                    origin: path.origin,
                    why,
                }));
            }
            paths.push(path);
        }
        Ok(paths)
    }

    fn accumulated(&self, keyword: Keyword) -> impl Iterator<Item = (&'a str, &'a Directive)> {
        self.slots
            .accumulated
            .iter()
            .filter_map(move |directive| match &directive.value {
                Value::Text(text) if directive.keyword == keyword => {
                    Some((text.as_str(), *directive))
                }
                _ => None,
            })
    }

    fn identity_agent(&self) -> Result<Setting<IdentityAgent>, ResolveError> {
        let Some(set) = self.slots.text(Keyword::IdentityAgent) else {
            return Ok(Setting::default(IdentityAgent::Variable(
                SSH_AUTH_SOCK.into(),
            )));
        };
        let path = self.expand(&set, |path| self.path(path))?;
        Ok(path.map(|path| match path.as_str() {
            "none" => IdentityAgent::None,
            SSH_AUTH_SOCK => IdentityAgent::Variable(path),
            text => match text.strip_prefix('$') {
                Some(name) => IdentityAgent::Variable(name.into()),
                None => IdentityAgent::Socket(path),
            },
        }))
    }

    fn algorithms(&self) -> Algorithms {
        let list = |keyword| {
            self.slots.get(keyword, |value| match value {
                Value::Algorithms(spec) => Some(spec.clone()),
                _ => None,
            })
        };
        Algorithms {
            kex: list(Keyword::KexAlgorithms),
            ciphers: list(Keyword::Ciphers),
            macs: list(Keyword::Macs),
            host_key: list(Keyword::HostKeyAlgorithms),
            pubkey_accepted: list(Keyword::PubkeyAcceptedAlgorithms),
            ca_signature: list(Keyword::CaSignatureAlgorithms),
            rekey_limit: self.rekey_limit(),
        }
    }

    fn rekey_limit(&self) -> Setting<RekeyLimit> {
        let interval = self
            .slots
            .rekey_interval
            .and_then(|directive| match directive.value {
                Value::Rekey { interval, .. } => interval,
                _ => None,
            });
        let interval = interval.filter(|&seconds| seconds > 0).map(value::duration);
        let bytes = self.slots.get(Keyword::RekeyLimit, |value| match value {
            Value::Rekey { bytes, .. } => Some(*bytes),
            _ => None,
        });
        match bytes {
            Some(set) => set.map(|bytes| RekeyLimit {
                bytes: (bytes > 0).then_some(bytes),
                interval,
            }),
            None => Setting::default(RekeyLimit::default()),
        }
    }

    fn session(&self) -> Result<Session, ResolveError> {
        let slots = self.slots;
        let remote_command = slots
            .text(Keyword::RemoteCommand)
            .filter(|set| !set.value.eq_ignore_ascii_case("none"))
            .map(|set| {
                self.expand(&set, |text| {
                    expand::percent(text, &self.tokens(Some(&self.user.value)))
                })
            });
        Ok(Session {
            send_env: self.send_env(),
            set_env: self.set_env()?,
            request_tty: slots.word(Keyword::RequestTty, RequestTty::Auto),
            remote_command: remote_command.transpose()?,
            forward_agent: self.forward_agent()?,
            log_level: slots.word(Keyword::LogLevel, LogLevel::Info),
            tag: slots.text(Keyword::Tag).map(Setting::owned),
        })
    }

    /// Every line adds names; `-pattern` takes the matching ones away again (`rm_env`,
    /// readconf.c).
    fn send_env(&self) -> Vec<Setting<String>> {
        let mut names: Vec<Setting<String>> = Vec::new();
        for directive in &self.slots.accumulated {
            let Value::Words(words) = &directive.value else {
                continue;
            };
            for word in words {
                match word.strip_prefix('-') {
                    Some(pattern) => names.retain(|name| {
                        !pattern::matches(pattern.as_bytes(), name.value.as_bytes())
                    }),
                    None => names.push(Setting::new(word.clone(), directive.origin.clone())),
                }
            }
        }
        names
    }

    fn set_env(&self) -> Result<Setting<Vec<(String, String)>>, ResolveError> {
        let set = self.slots.get(Keyword::SetEnv, |value| match value {
            Value::Variables(variables) => Some(variables.as_slice()),
            _ => None,
        });
        let Some(set) = set else {
            return Ok(Setting::default(Vec::new()));
        };
        self.expand(&set, |variables| {
            let expanded = variables
                .iter()
                .map(|(name, value)| Ok((name.clone(), self.percent_and_variables(value)?)));
            expanded.collect()
        })
    }

    /// A flag or a path; a path after "no" changes nothing.
    fn forward_agent(&self) -> Result<Setting<ForwardAgent>, ResolveError> {
        let Some(set) = self.slots.text(Keyword::ForwardAgent) else {
            return Ok(Setting::default(ForwardAgent::No));
        };
        if bool::of_word(set.value) == Some(false) {
            return Ok(set.map(|_| ForwardAgent::No));
        }
        let Some(directive) = self.slots.forwarded_socket else {
            return Ok(set.map(|_| ForwardAgent::Yes));
        };
        let Value::Text(text) = &directive.value else {
            return Ok(set.map(|_| ForwardAgent::Yes));
        };
        let path = Setting::new(text.as_str(), directive.origin.clone());
        let path = self.expand(&path, |path| self.path(path))?;
        Ok(path.map(|path| match path.strip_prefix('$') {
            Some(name) => ForwardAgent::Variable(name.into()),
            None => ForwardAgent::Socket(path),
        }))
    }
}

fn port(query: &Query<'_>, slots: &Slots<'_>) -> Setting<u16> {
    if let Some(port) = query.port {
        return Setting::new(port, Origin::Query);
    }
    let configured = slots.get(Keyword::Port, |value| match value {
        Value::Number(number) => u16::try_from(*number).ok(),
        _ => None,
    });
    configured.unwrap_or(Setting::default(DEFAULT_PORT))
}

fn proxy(slots: &Slots<'_>) -> Setting<Proxy> {
    let jump = slots.get(Keyword::ProxyJump, |value| match value {
        Value::Hops(hops) if !hops.is_empty() => Some(Proxy::Jump(hops.clone())),
        _ => None,
    });
    let command = slots.text(Keyword::ProxyCommand);
    let command = command.map(|set| {
        set.map(|command| match command {
            none if none.eq_ignore_ascii_case("none") => Proxy::None,
            command => Proxy::Command(command.into()),
        })
    });
    jump.or(command).unwrap_or(Setting::default(Proxy::None))
}

/// A list that is only `none` is empty.
fn without_none(files: &[String]) -> &[String] {
    match files {
        [only] if only.eq_ignore_ascii_case("none") => &[],
        files => files,
    }
}

fn other(directive: &Directive) -> OtherSetting {
    OtherSetting {
        keyword: directive.keyword.row().name,
        arguments: directive.value.arguments(),
        origin: directive.origin.clone(),
    }
}
