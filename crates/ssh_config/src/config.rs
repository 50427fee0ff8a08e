//! A configuration that has been read, ready to be resolved for any number of hosts.

use std::ops::Range;

use crate::condition::Condition;
use crate::environment::Environment;
use crate::error::{LoadError, Problem};
use crate::keyword::Keyword;
use crate::loader::Loader;
use crate::origin::Origin;
use crate::value::Value;

/// The host whose settings are wanted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Query<'a> {
    /// The host as the user wrote it, without user and port.
    pub host: &'a str,
    /// The user, if one was given with the host: it beats every line and `-o` option.
    pub user: Option<&'a str>,
    /// The user given with `-l`, for hosts that none was given with: it, too, is a name as it stands, and beats every line
    /// and `-o` option.
    pub login: Option<&'a str>,
    /// The port, if one was given with the host: it beats every line and `-o` option.
    pub port: Option<u16>,
    /// The command, if one was given: for `Match command` and `sessiontype`. As ssh does, it is
    /// refused together with a `RemoteCommand`.
    pub command: Option<&'a str>,
    /// The tag given with `-P`, for `Match tagged`.
    pub tag: Option<&'a str>,
    /// Options of this host alone, from [`Config::host_options`]: they go before every line and `-o` option.
    pub options: Option<&'a Config>,
}

/// All configuration of a run: `-o` options, the user's file, the system's, and what they include.
#[derive(Clone, Debug, Default)]
pub struct Config {
    pub(crate) environment: Environment,
    /// Blocks; the first is the one outside of all blocks.
    pub(crate) scopes: Vec<Scope>,
    pub(crate) steps: Vec<Step>,
    pub(crate) directives: Vec<Directive>,
    /// Files whose names depend on the host.
    pub(crate) includes: Vec<HostInclude>,
    /// Whether some `Match final` asks for a second pass.
    pub(crate) wants_second_pass: bool,
    pub(crate) warnings: Vec<Problem>,
}

impl Config {
    /// Reads options of one host, each as `-o` takes it, for [`Query::options`]. Their origin is
    /// [`Origin::Query`].
    ///
    /// # Errors
    /// All options that ssh would refuse.
    pub fn host_options(&self, options: &[String]) -> Result<Config, LoadError> {
        let loader = Loader::with_roots(options, Vec::new(), self.environment.clone());
        let given = |error| match error {
            LoadError::Lines(mut problems) => {
                for problem in &mut problems {
                    problem.origin = Origin::Query;
                }
                LoadError::Lines(problems)
            }
            other => other,
        };
        let mut config = loader.finish().map_err(given)?;
        for directive in &mut config.directives {
            directive.origin = Origin::Query;
        }
        for step in &mut config.steps {
            if let Step::Unknown { origin, .. } = step {
                *origin = Origin::Query;
            }
        }
        Ok(config)
    }

    /// What ssh warns of and goes on: unsupported keywords, an `Include` of a path with a
    /// variable that is not set.
    pub fn warnings(&self) -> &[Problem] {
        &self.warnings
    }
}

/// An `Include` whose path has tokens of the host.
#[derive(Clone, Debug)]
pub(crate) struct HostInclude {
    /// As written.
    pub(crate) path: String,
    /// In a user's own file.
    pub(crate) user: bool,
    /// How deep the files lie.
    pub(crate) depth: usize,
    pub(crate) origin: Origin,
}

/// A block: it holds if its condition does, and the block around it, where one file includes
/// another.
#[derive(Clone, Debug)]
pub(crate) struct Scope {
    pub(crate) parent: usize,
    pub(crate) condition: Condition,
}

/// What happens from line to line.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// A block begins: judge its condition now, by what is set so far.
    Open(usize),
    /// Directives of a block, applied if it holds.
    Apply {
        scope: usize,
        directives: Range<usize>,
    },
    /// A keyword that nobody knows: an error unless `IgnoreUnknown`, as it is set by now,
    /// matches; whether or not the block holds.
    Unknown { keyword: String, origin: Origin },
    /// A line with a value that is no text here: an error if the block holds.
    NotUtf8 { scope: usize, origin: Origin },
    /// One of the configuration's `includes` is read if the block holds.
    Include { scope: usize, include: usize },
}

/// One line that sets something.
#[derive(Clone, Debug)]
pub(crate) struct Directive {
    pub(crate) keyword: Keyword,
    pub(crate) value: Value,
    pub(crate) origin: Origin,
}
