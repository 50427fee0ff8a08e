//! The conditions of `Host` and `Match` blocks, taken apart when the file is read.

use crate::config::Query;
use crate::environment::Environment;
use crate::error::{Problem, ResolveError, Unresolved};
use crate::expand::{self, TargetTokens, Tokens};
use crate::keyword::Keyword;
use crate::network::Network;
use crate::origin::Origin;
use crate::pattern;
use crate::proxy::harmless;
use crate::question::Answers;
use crate::resolve::{is_host_name, is_user_name};
use crate::slots::Slots;

/// The release whose rules hold, for `Match version` (`SSH_RELEASE`, version.h).
const RELEASE: &str = "OpenSSH_10.5p1";

/// When a block holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    /// Outside of all blocks.
    Always,
    /// `Host`: one of the patterns matches, and no negated one.
    Host(Vec<Pattern>),
    /// `Match`: all criteria hold.
    Match(Vec<Criterion>),
}

/// A pattern of a `Host` line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    negated: bool,
    text: String,
    /// Without wildcards: equality decides.
    literal: bool,
}

/// One test of a `Match` line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Criterion {
    negated: bool,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    All,
    /// `final` and `canonical`: the second pass over the configuration.
    SecondPass {
        requests_it: bool,
    },
    /// Comma-separated patterns, in lowercase.
    Host(String),
    OriginalHost(String),
    User(String),
    LocalUser(String),
    LocalNetwork(Vec<Network>),
    Version(String),
    Tagged(String),
    Command(String),
    SessionType(String),
    /// A command, its tokens not expanded.
    Exec {
        command: String,
        origin: Origin,
    },
}

/// What conditions are judged by.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) environment: &'a Environment,
    pub(crate) answers: &'a Answers,
    pub(crate) query: &'a Query<'a>,
    /// What is set by now.
    pub(crate) slots: &'a Slots<'a>,
    /// The host of this pass: as given, then as resolved.
    pub(crate) host: &'a str,
    /// The host with `HostName` applied as far as it is set by now.
    pub(crate) host_name: &'a str,
    pub(crate) second_pass: bool,
}

impl Condition {
    /// Reads the arguments of `Host`.
    pub(crate) fn host(arguments: Vec<String>) -> Result<Condition, String> {
        if arguments.iter().any(String::is_empty) {
            return Err("an argument of Host is empty".into());
        }
        let patterns = arguments.into_iter().map(|argument| {
            let (negated, text) = match argument.strip_prefix('!') {
                Some(rest) => (true, rest.to_string()),
                None => (false, argument),
            };
            let literal = !text.contains(['*', '?']);
            Pattern {
                negated,
                text,
                literal,
            }
        });
        Ok(Condition::Host(patterns.collect()))
    }

    /// Reads the arguments of `Match` (`match_cfg_line`, readconf.c).
    pub(crate) fn matching(arguments: Vec<String>, origin: &Origin) -> Result<Condition, String> {
        let mut criteria: Vec<Criterion> = Vec::new();
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            if argument.starts_with('#') {
                break;
            }
            let (negated, attribute) = match argument.strip_prefix('!') {
                Some(rest) => (true, rest),
                None => (false, argument.as_str()),
            };
            if attribute.eq_ignore_ascii_case("all") {
                let next = arguments
                    .next()
                    .filter(|next| !next.is_empty() && !next.starts_with('#'));
                if criteria.len() > 1 || next.is_some() {
                    return Err("Match all cannot be combined with other criteria".into());
                }
                criteria.push(Criterion {
                    negated,
                    test: Test::All,
                });
                return Ok(Condition::Match(criteria));
            }
            criteria.push(Criterion {
                negated,
                test: read_test(attribute, &mut arguments, origin)?,
            });
        }
        if criteria.is_empty() {
            return Err("Match needs a criterion".into());
        }
        Ok(Condition::Match(criteria))
    }

    /// Whether the condition asks for a second pass (`Match final`).
    pub(crate) fn requests_second_pass(&self) -> bool {
        let Condition::Match(criteria) = self else {
            return false;
        };
        criteria.iter().any(|criterion| {
            !criterion.negated && criterion.test == Test::SecondPass { requests_it: true }
        })
    }

    /// Whether the block holds.
    pub(crate) fn holds(&self, subject: &Subject<'_>) -> Result<bool, Unresolved> {
        match self {
            Condition::Always => Ok(true),
            Condition::Host(patterns) => Ok(one_matches(patterns, subject.host)),
            Condition::Match(criteria) => {
                for criterion in criteria {
                    if criterion.test.holds(subject)? == criterion.negated {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
        }
    }
}

/// Whether a pattern matches, and no negated one.
fn one_matches(patterns: &[Pattern], host: &str) -> bool {
    let mut holds = false;
    for pattern in patterns.iter().filter(|pattern| pattern.matches(host)) {
        if pattern.negated {
            return false;
        }
        holds = true;
    }
    holds
}

impl Pattern {
    fn matches(&self, host: &str) -> bool {
        if self.literal {
            return self.text == host;
        }
        pattern::matches(self.text.as_bytes(), host.as_bytes())
    }
}

/// Criteria that may be joined to their argument by `=`.
const WITH_EQUALS: [&str; 9] = [
    "host",
    "originalhost",
    "user",
    "localuser",
    "localnetwork",
    "version",
    "tagged",
    "command",
    "exec",
];

fn read_test(
    attribute: &str,
    arguments: &mut impl Iterator<Item = String>,
    origin: &Origin,
) -> Result<Test, String> {
    let name = attribute.to_ascii_lowercase();
    if let "final" | "canonical" = name.as_str() {
        return Ok(Test::SecondPass {
            requests_it: name == "final",
        });
    }
    let (name, argument) = match name.split_once('=') {
        Some((name, _)) if WITH_EQUALS.contains(&name) => {
            (name.to_string(), Some(attribute[name.len() + 1..].into()))
        }
        _ => (name, arguments.next()),
    };
    let may_be_empty = matches!(name.as_str(), "tagged" | "command");
    let argument = argument
        .filter(|text: &String| (may_be_empty || !text.is_empty()) && !text.starts_with('#'))
        .ok_or_else(|| format!("Match {name} lacks its argument"))?;
    Ok(match name.as_str() {
        "host" => Test::Host(argument.to_ascii_lowercase()),
        "originalhost" => Test::OriginalHost(argument.to_ascii_lowercase()),
        "user" => Test::User(argument),
        "localuser" => Test::LocalUser(argument),
        "localnetwork" => Test::LocalNetwork(Network::parse_list(&argument)?),
        "version" => Test::Version(argument),
        "tagged" => Test::Tagged(argument),
        "command" => Test::Command(argument),
        "sessiontype" => Test::SessionType(argument),
        "exec" => Test::Exec {
            command: argument,
            origin: origin.clone(),
        },
        _ => return Err(format!("unsupported Match attribute \"{attribute}\"")),
    })
}

impl Test {
    fn holds(&self, subject: &Subject<'_>) -> Result<bool, Unresolved> {
        let in_lowercase = |patterns: &str, host: &str| {
            pattern::list_matches(patterns, &host.to_ascii_lowercase())
        };
        // What is not set matches the empty argument only.
        let or_empty = |patterns: &str, text: &str| match text {
            "" => patterns.is_empty(),
            text => pattern::list_matches(patterns, text),
        };
        Ok(match self {
            Test::All => true,
            Test::SecondPass { .. } => subject.second_pass,
            Test::Host(patterns) => in_lowercase(patterns, subject.host_name),
            Test::OriginalHost(patterns) => in_lowercase(patterns, subject.query.host),
            Test::User(patterns) => pattern::list_matches(patterns, subject.user()),
            Test::LocalUser(patterns) => {
                pattern::list_matches(patterns, &subject.environment.local_user)
            }
            Test::LocalNetwork(networks) => {
                let mut addresses = subject.answers.addresses()?.iter();
                addresses.any(|&address| networks.iter().any(|network| network.contains(address)))
            }
            Test::Version(patterns) => pattern::list_matches(patterns, RELEASE),
            Test::Tagged(patterns) => or_empty(patterns, subject.tag()),
            Test::Command(patterns) => or_empty(patterns, subject.query.command.unwrap_or("")),
            Test::SessionType(patterns) => pattern::list_matches(patterns, subject.session_type()),
            Test::Exec { command, origin } => subject.succeeds(command, origin)?,
        })
    }
}

impl Subject<'_> {
    fn user(&self) -> &str {
        let configured = self.slots.word_of(Keyword::User);
        let user = self.query.user.or(self.query.login).or(configured);
        user.unwrap_or(&self.environment.local_user)
    }

    fn tag(&self) -> &str {
        let configured = self.slots.word_of(Keyword::Tag);
        self.query.tag.or(configured).unwrap_or("")
    }

    fn session_type(&self) -> &'static str {
        match self.slots.word_of(Keyword::SessionType) {
            Some("subsystem") => "subsystem",
            Some("none") => "none",
            _ if self
                .query
                .command
                .is_some_and(|command| !command.is_empty()) =>
            {
                "exec"
            }
            _ => "shell",
        }
    }

    /// The tokens of `Match exec` and `Include`
    /// (`expand_match_exec_or_include_path`, readconf.c).
    pub(crate) fn tokens(&self) -> Tokens<'_> {
        let key_alias = self.slots.word_of(Keyword::HostKeyAlias);
        Tokens {
            environment: self.environment,
            original_host: Some(self.query.host),
            target: Some(TargetTokens {
                host_name: self.host_name,
                port: self.slots.port_of(self.query).value,
                key_alias: key_alias.unwrap_or(self.host_name),
                jump_host: self.slots.jump_host().unwrap_or(""),
                user: Some(self.user()),
            }),
        }
    }

    /// A shell will read what stands for these tokens, and names may come out of an inventory.
    fn check_tokens(&self, command: &str) -> Result<(), String> {
        let command = command.replace("%%", "");
        let key_alias = self.slots.word_of(Keyword::HostKeyAlias);
        let names = [
            ("%h", self.host_name),
            ("%k", key_alias.unwrap_or(self.host_name)),
        ];
        for (token, name) in names {
            if command.contains(token) && !name.is_empty() {
                harmless(name, "Match exec", is_host_name)?;
            }
        }
        if command.contains("%r") {
            harmless(self.user(), "Match exec", is_user_name)?;
        }
        Ok(())
    }

    fn succeeds(&self, command: &str, origin: &Origin) -> Result<bool, Unresolved> {
        let refused = |why| {
            let origin = origin.clone();
            Unresolved::from(ResolveError::Line(Problem { origin, why }))
        };
        self.check_tokens(command).map_err(refused)?;
        let command = expand::percent(command, &self.tokens()).map_err(refused)?;
        match self.answers.status_of(&command)? {
            Some(status) => Ok(status == 0),
            None => Err(refused(format!(
                "Match exec: \"{command}\" ended abnormally"
            ))),
        }
    }
}

#[cfg(test)]
mod tests;
