//! What has to be asked of the system to resolve a host: its caller asks it.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;

use crate::config::Config;
use crate::environment::Environment;
use crate::error::{LoadError, Unresolved};
use crate::loader::Loader;
use crate::value::words::AddressFamily;

/// What a configuration wants to know before a host can be resolved.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Question {
    /// `Match exec`: the exit status of a command. ssh runs it with `$SHELL -c`, or `/bin/sh` if
    /// that is not set, its input and output `/dev/null` (`execute_in_shell`, readconf.c). Answer
    /// with [`Answers::exited`].
    Exec {
        /// The command, its tokens expanded.
        command: String,
    },
    /// `Match localnetwork`: the addresses of the network interfaces that are up. Answer with
    /// [`Answers::local_addresses`].
    LocalAddresses,
    /// `CanonicalizeHostname`, `CanonicalizePermittedCNAMEs`: whether a name has an address, and
    /// its canonical name (getaddrinfo(3) with `AI_CANONNAME`). Answer with
    /// [`Answers::looked_up`].
    Lookup {
        /// The name; a dot at its end says that it is complete.
        name: String,
        /// Which kinds of addresses count.
        family: AddressFamily,
    },
    /// `~user`: another user's home directory. Answer with [`Answers::home`].
    Home {
        /// The user.
        user: String,
    },
    /// `Include` of files that depend on the host. Answer with [`Answers::included`].
    Include(IncludeRequest),
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Question::Exec { command } => write!(f, "what does \"{command}\" exit with?"),
            Question::LocalAddresses => f.write_str("which addresses has this machine?"),
            Question::Lookup { name, .. } => write!(f, "does {name} have an address?"),
            Question::Home { user } => write!(f, "where is the home directory of {user}?"),
            Question::Include(request) => write!(f, "what is in {}?", request.pattern),
        }
    }
}

/// Files to be read for some hosts only.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IncludeRequest {
    pub(crate) pattern: String,
    pub(crate) user: bool,
    pub(crate) depth: usize,
}

impl IncludeRequest {
    /// Reads the files.
    pub fn loader(&self, environment: Environment) -> Loader {
        Loader::for_include(self, environment)
    }
}

/// What the system says of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// It has no address.
    NotFound,
    /// It has one.
    Found {
        /// What the name is an alias for, itself if it is none.
        canonical_name: Option<String>,
    },
}

/// What has been asked so far. Answers serve every host: what one host's lines ask is not asked
/// again for the next, where ssh would run the same `Match exec` for each.
#[derive(Debug, Default)]
pub struct Answers {
    statuses: HashMap<String, Option<i32>>,
    local_addresses: Option<Vec<IpAddr>>,
    lookups: HashMap<(String, AddressFamily), Lookup>,
    homes: HashMap<String, Option<String>>,
    includes: HashMap<IncludeRequest, Result<Config, LoadError>>,
}

impl Answers {
    /// A command exited with this status; `None` if a signal ended it or it could not be started.
    pub fn exited(&mut self, command: String, status: Option<i32>) {
        self.statuses.insert(command, status);
    }

    /// These are the addresses of the interfaces that are up.
    pub fn local_addresses(&mut self, addresses: Vec<IpAddr>) {
        self.local_addresses = Some(addresses);
    }

    /// This became of a name.
    pub fn looked_up(&mut self, name: String, family: AddressFamily, lookup: Lookup) {
        self.lookups.insert((name, family), lookup);
    }

    /// This is a user's home directory; `None` if there is no such user.
    pub fn home(&mut self, user: String, home: Option<String>) {
        self.homes.insert(user, home);
    }

    /// This is in the files ([`Loader::finish`]).
    pub fn included(&mut self, request: IncludeRequest, config: Result<Config, LoadError>) {
        self.includes.insert(request, config);
    }

    pub(crate) fn status_of(&self, command: &str) -> Result<Option<i32>, Unresolved> {
        self.statuses.get(command).copied().ok_or_else(|| {
            Unresolved::Asks(Question::Exec {
                command: command.into(),
            })
        })
    }

    pub(crate) fn addresses(&self) -> Result<&[IpAddr], Unresolved> {
        self.local_addresses
            .as_deref()
            .ok_or(Unresolved::Asks(Question::LocalAddresses))
    }

    pub(crate) fn lookup(&self, name: &str, family: AddressFamily) -> Result<&Lookup, Unresolved> {
        let key = (name.to_string(), family);
        self.lookups.get(&key).ok_or_else(|| {
            let (name, family) = key;
            Unresolved::Asks(Question::Lookup { name, family })
        })
    }

    pub(crate) fn home_of(&self, user: &str) -> Result<Option<&str>, Unresolved> {
        match self.homes.get(user) {
            Some(home) => Ok(home.as_deref()),
            None => Err(Unresolved::Asks(Question::Home { user: user.into() })),
        }
    }

    pub(crate) fn include(&self, request: IncludeRequest) -> Result<&Config, Unresolved> {
        match self.includes.get(&request) {
            Some(Ok(config)) => Ok(config),
            Some(Err(error)) => Err(Unresolved::Refused(error.clone().into())),
            None => Err(Unresolved::Asks(Question::Include(request))),
        }
    }
}
