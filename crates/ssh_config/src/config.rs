//! A configuration that has been read, ready to be resolved for any number of hosts.

use std::ops::Range;

use crate::condition::Condition;
use crate::environment::Environment;
use crate::keyword::Keyword;
use crate::origin::Origin;
use crate::value::Value;

/// The host whose settings are wanted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Query<'a> {
    /// The host as the user wrote it, without user and port.
    pub host: &'a str,
    /// The user, if one was given with the host: it beats every line and `-o` option.
    pub user: Option<&'a str>,
    /// The port, if one was given with the host: it beats every line and `-o` option.
    pub port: Option<u16>,
}

/// All configuration of a run: `-o` options, the user's file, the system's, and what they include.
#[derive(Clone, Debug, Default)]
pub struct Config {
    pub(crate) environment: Environment,
    /// Blocks; the first is the one outside of all blocks.
    pub(crate) scopes: Vec<Scope>,
    pub(crate) steps: Vec<Step>,
    pub(crate) directives: Vec<Directive>,
    /// Whether some `Match final` asks for a second pass.
    pub(crate) wants_second_pass: bool,
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
}

/// One line that sets something.
#[derive(Clone, Debug)]
pub(crate) struct Directive {
    pub(crate) keyword: Keyword,
    pub(crate) value: Value,
    pub(crate) origin: Origin,
}
