//! From a configuration to the settings of one host.

pub(crate) mod authentication;
mod host_keys;
mod session;

use crate::canonicalize::Rules;
use crate::config::{Config, Directive, Query};
use crate::error::{Problem, ResolveError, Unresolved};
use crate::expand::{self, TargetTokens, Tokens};
use crate::keyword::{Keyword, Kind};
use crate::origin::{Origin, Setting};
use crate::pass::Pass;
use crate::question::Answers;
use crate::resolved::{Connection, OtherSetting, Proxy, Resolved};
use crate::slots::{DEFAULT_PORT, Slots};
use crate::value::Value;
use crate::value::number::duration;
use crate::value::words::{AddressFamily, CanonicalizeHostname};

impl Config {
    /// The settings of a host. [`Unresolved::Asks`] is what has to be answered first: put the
    /// answer into `answers` and call again, until there is no question left.
    pub fn resolve(&self, query: &Query<'_>, answers: &Answers) -> Result<Resolved, Unresolved> {
        check_names(query.host, query.user.or(query.login))?;
        let mut pass = Pass::new(self, answers, query);
        pass.run(query.host, false)?;
        let configured = pass.host_name.take().unwrap_or(query.host.into());
        let rules = Rules::new(&pass.slots, answers);
        let host_name = rules.canonical(configured.clone())?;
        let is_completed = !host_name.eq_ignore_ascii_case(&configured)
            && rules.canonicalize != CanonicalizeHostname::No;
        if pass.wants_second_pass || rules.canonicalize != CanonicalizeHostname::No {
            pass.host_name = Some(host_name.clone());
            pass.run(&host_name, true)?;
        }
        let named_by = match is_completed {
            true => Keyword::CanonicalizeHostname,
            false => Keyword::HostName,
        };
        let origin = pass.slots.filled(named_by).map(|set| set.origin.clone());
        let host_name = Setting::new(host_name, origin.unwrap_or(Origin::Query));
        let builder = Builder::new(self, answers, query, &pass.slots, host_name)?;
        builder.check_jump_loop()?;
        builder.check_conflicts()?;
        builder.build()
    }
}

/// Whether ssh would take a host and a user that were given by name, which it leaves to no shell unseen.
///
/// # Errors
/// [`ResolveError::HostName`] or [`ResolveError::UserName`].
pub fn check_names(host: &str, user: Option<&str>) -> Result<(), ResolveError> {
    if !is_host_name(host) {
        return Err(ResolveError::HostName(host.into()));
    }
    match user.filter(|user| user.is_empty() || !is_user_name(user)) {
        Some(user) => Err(ResolveError::UserName(user.into())),
        None => Ok(()),
    }
}

/// `ssh_valid_hostname` (readconf.c)
pub(crate) fn is_host_name(host: &str) -> bool {
    let is_bad = |c: char| "'`\"$\\;&<>|(){},".contains(c) || c.is_ascii_control() || c == ' ';
    !host.is_empty() && !host.starts_with('-') && !host.contains(is_bad)
}

/// `ssh_valid_ruser` (readconf.c)
pub(crate) fn is_user_name(user: &str) -> bool {
    let is_bad = |c: char| "'`\";&<>|(){}".contains(c) || c.is_ascii_control();
    !user.starts_with('-')
        && !user.contains(is_bad)
        && !user.contains(" -")
        && !user.ends_with('\\')
}

/// Makes values of what the slots hold.
struct Builder<'a> {
    config: &'a Config,
    answers: &'a Answers,
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
        answers: &'a Answers,
        query: &'a Query<'a>,
        slots: &'a Slots<'a>,
        host_name: Setting<String>,
    ) -> Result<Builder<'a>, Unresolved> {
        let mut builder = Builder {
            config,
            answers,
            query,
            slots,
            host_name,
            port: slots.port_of(query),
            user: Setting::default(config.environment.local_user.clone()),
            proxy: proxy(slots),
            key_alias: slots
                .text(Keyword::HostKeyAlias)
                .map(|alias| alias.map(|name| name.to_ascii_lowercase())),
        };
        if let Some(user) = query.user {
            builder.user = Setting::new(user.into(), Origin::Query);
        } else if let Some(user) = query.login {
            builder.user = Setting::new(user.into(), Origin::CommandLine);
        } else if let Some(set) = slots.text(Keyword::User) {
            builder.user = builder.configured_user(&set)?;
        }
        Ok(builder)
    }

    /// A user from a line may contain tokens, but not `%r` and `%C`; ssh checks the name only if
    /// it did.
    fn configured_user(&self, set: &Setting<&str>) -> Result<Setting<String>, Unresolved> {
        let user = self.expand(set, |text| {
            Ok(expand::percent_and_variables(text, &self.tokens(None))?)
        })?;
        if user.value != set.value && !is_user_name(&user.value) {
            return Err(ResolveError::UserName(user.value).into());
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

    /// What `main` (ssh.c) refuses once all lines are read.
    fn check_conflicts(&self) -> Result<(), ResolveError> {
        let slots = self.slots;
        let is = |keyword, word| slots.word_of(keyword) == Some(word);
        let has_command = self
            .query
            .command
            .is_some_and(|command| !command.is_empty());
        let remote_command = slots.word_of(Keyword::RemoteCommand);
        let remote_command = remote_command.filter(|text| !text.eq_ignore_ascii_case("none"));
        if has_command && remote_command.is_some() {
            return Err(ResolveError::Conflict(
                "there is a command to run, and a RemoteCommand; set RemoteCommand to none",
            ));
        }
        let runs = has_command || remote_command.is_some();
        if is(Keyword::ForkAfterAuthentication, "yes") && !runs && !is(Keyword::SessionType, "none")
        {
            return Err(ResolveError::Conflict(
                "ForkAfterAuthentication needs a command to run in the background",
            ));
        }
        let session_type = slots.filled(Keyword::SessionType);
        if is(Keyword::SessionType, "subsystem")
            && !has_command
            && session_type.is_some_and(|set| set.origin == Origin::CommandLine)
        {
            return Err(ResolveError::Conflict("the subsystem's name is missing"));
        }
        if is(Keyword::ProxyCommand, "-")
            && self.proxy.value == Proxy::Command("-".into())
            && slots
                .word_of(Keyword::ProxyUseFdpass)
                .is_some_and(|word| word == "yes" || word == "true")
        {
            return Err(ResolveError::Conflict(
                "ProxyCommand - and ProxyUseFdpass do not go together",
            ));
        }
        Ok(())
    }

    /// A path: `~`, then tokens and variables.
    fn path(&self, path: &str) -> Result<String, Trouble> {
        let home = match expand::tilde_user(path) {
            None => &self.config.environment.home,
            Some(user) => self
                .answers
                .home_of(user)
                .map_err(Trouble::Unresolved)?
                .ok_or_else(|| format!("\"{path}\": there is no user \"{user}\""))?,
        };
        Ok(self.percent_and_variables(&expand::tilde(path, home))?)
    }

    fn percent_and_variables(&self, text: &str) -> Result<String, String> {
        expand::percent_and_variables(text, &self.tokens(Some(&self.user.value)))
    }

    fn percent(&self, text: &str) -> Result<String, String> {
        expand::percent(text, &self.tokens(Some(&self.user.value)))
    }

    /// Expands a value; what cannot be expanded is reported with its line.
    fn expand<T, U>(
        &self,
        set: &Setting<T>,
        how: impl FnOnce(&T) -> Result<U, Trouble>,
    ) -> Result<Setting<U>, Unresolved> {
        match how(&set.value) {
            Ok(value) => Ok(Setting::new(value, set.origin.clone())),
            Err(Trouble::Unresolved(unresolved)) => Err(unresolved),
            Err(Trouble::Value(why)) => {
                let origin = set.origin.clone();
                Err(ResolveError::Line(Problem { origin, why }).into())
            }
        }
    }

    fn build(self) -> Result<Resolved, Unresolved> {
        let authentication = self.authentication()?;
        let host_keys = self.host_keys()?;
        let session = self.session()?;
        let algorithms = self.algorithms();
        let others = self.others()?;
        let owned = |files: Vec<Setting<&str>>| files.into_iter().map(Setting::owned).collect();
        let written_identity_files = owned(self.written(Keyword::IdentityFile)?);
        let written_certificate_files = owned(self.written(Keyword::CertificateFile)?);
        let ignore_unknown = self.slots.text(Keyword::IgnoreUnknown).map(Setting::owned);
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
            written_identity_files,
            written_certificate_files,
            ignore_unknown,
        })
    }

    /// What is left to others, the forwards only if `ClearAllForwardings` lets them be
    /// (`clear_forwardings`, readconf.c).
    fn others(&self) -> Result<Vec<OtherSetting>, Unresolved> {
        let cleared = self.slots.word_of(Keyword::ClearAllForwardings) == Some("yes");
        let is_forward = |directive: &Directive| {
            matches!(directive.value, Value::Forward(..)) || directive.keyword == Keyword::Tunnel
        };
        let others = self.slots.others.iter();
        others
            .filter(|directive| !(cleared && is_forward(directive)))
            .map(|directive| self.other(directive))
            .collect()
    }

    fn other(&self, directive: &Directive) -> Result<OtherSetting, Unresolved> {
        let set = Setting::new(&directive.value, directive.origin.clone());
        let kind = directive.keyword.row().kind;
        let arguments = self.expand(&set, |value| {
            Ok(match (kind, value) {
                (_, Value::Forward(direction, forward)) => forward
                    .expanded(|path| self.percent(path))?
                    .arguments(*direction),
                (Kind::Path, Value::Text(path)) if !path.eq_ignore_ascii_case("none") => {
                    vec![self.path(path)?]
                }
                (Kind::Addendum, Value::Text(text)) => vec![self.percent_and_variables(text)?],
                (_, value) => value.arguments(),
            })
        })?;
        Ok(OtherSetting {
            keyword: directive.keyword.row().name,
            arguments: arguments.value,
            origin: arguments.origin,
        })
    }

    fn connection(self) -> Result<Connection, Unresolved> {
        let slots = self.slots;
        let connection_attempts = slots.number(Keyword::ConnectionAttempts, 1);
        if connection_attempts.value == 0 {
            let why = "ConnectionAttempts must be at least 1".into();
            let origin = connection_attempts.origin;
            return Err(ResolveError::Line(Problem { origin, why }).into());
        }
        let alive = slots
            .seconds(Keyword::ServerAliveInterval)
            .unwrap_or(Setting::default(0));
        let timeout = slots
            .seconds(Keyword::ConnectTimeout)
            .filter(|set| set.value > 0);
        Ok(Connection {
            host_name: self.host_name,
            canonicalize_hostname: slots
                .word(Keyword::CanonicalizeHostname, CanonicalizeHostname::No),
            user: self.user,
            port: self.port,
            address_family: slots.word(Keyword::AddressFamily, AddressFamily::Any),
            bind_address: slots.text(Keyword::BindAddress).map(Setting::owned),
            bind_interface: slots.text(Keyword::BindInterface).map(Setting::owned),
            proxy_use_fdpass: match self.proxy.value {
                Proxy::Jump(_) => Setting::default(false),
                _ => slots.word(Keyword::ProxyUseFdpass, false),
            },
            proxy: self.proxy,
            connect_timeout: timeout.map(|set| set.map(duration)),
            connection_attempts,
            server_alive_interval: alive.map(duration),
            server_alive_count_max: slots.number(Keyword::ServerAliveCountMax, 3),
            tcp_keep_alive: slots.word(Keyword::TcpKeepAlive, true),
            compression: slots.word(Keyword::Compression, false),
        })
    }
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

/// Why a value cannot be expanded.
enum Trouble {
    Value(String),
    Unresolved(Unresolved),
}

impl From<String> for Trouble {
    fn from(why: String) -> Trouble {
        Trouble::Value(why)
    }
}

#[cfg(test)]
mod question_tests;
#[cfg(test)]
mod tests;
