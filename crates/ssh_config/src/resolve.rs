//! From a configuration to the settings of one host.

mod authentication;
mod session;

use crate::address;
use crate::config::{Config, Directive, Query};
use crate::error::{Problem, ResolveError};
use crate::expand::{self, TargetTokens, Tokens};
use crate::keyword::Keyword;
use crate::origin::{Origin, Setting};
use crate::pass::Pass;
use crate::resolved::{Connection, OtherSetting, Proxy, Resolved};
use crate::slots::Slots;
use crate::value::{self, AddressFamily, Value};

/// The port of ssh.
const DEFAULT_PORT: u16 = 22;

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

fn other(directive: &Directive) -> OtherSetting {
    OtherSetting {
        keyword: directive.keyword.row().name,
        arguments: directive.value.arguments(),
        origin: directive.origin.clone(),
    }
}

#[cfg(test)]
mod tests;
