//! The conditions of `Host` and `Match` blocks, taken apart when the file is read.

use crate::pattern;

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
}

/// What conditions are judged by.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    /// The host of this pass: as given, then as resolved.
    pub(crate) host: &'a str,
    /// The host with `HostName` applied as far as it is set by now.
    pub(crate) host_name: &'a str,
    /// The host as given.
    pub(crate) original_host: &'a str,
    /// The remote user as far as it is set by now.
    pub(crate) user: &'a str,
    pub(crate) local_user: &'a str,
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
    pub(crate) fn matching(arguments: Vec<String>) -> Result<Condition, String> {
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
                test: read_test(attribute, &mut arguments)?,
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
    pub(crate) fn holds(&self, subject: &Subject<'_>) -> bool {
        match self {
            Condition::Always => true,
            Condition::Host(patterns) => {
                let mut holds = false;
                for pattern in patterns
                    .iter()
                    .filter(|pattern| pattern.matches(subject.host))
                {
                    if pattern.negated {
                        return false;
                    }
                    holds = true;
                }
                holds
            }
            Condition::Match(criteria) => criteria
                .iter()
                .all(|criterion| criterion.test.holds(subject) != criterion.negated),
        }
    }
}

impl Pattern {
    fn matches(&self, host: &str) -> bool {
        if self.literal {
            return self.text == host;
        }
        pattern::matches(self.text.as_bytes(), host.as_bytes())
    }
}

fn read_test(
    attribute: &str,
    arguments: &mut impl Iterator<Item = String>,
) -> Result<Test, String> {
    let (name, joined) = match attribute.split_once('=') {
        Some((name, value)) => (name, Some(value.to_string())),
        None => (attribute, None),
    };
    let name = name.to_ascii_lowercase();
    match name.as_str() {
        "final" | "canonical" if joined.is_none() => {
            return Ok(Test::SecondPass {
                requests_it: name == "final",
            });
        }
        "exec" | "localnetwork" | "version" | "tagged" | "command" | "sessiontype" => {
            return Err(format!("Match {name} is not supported yet"));
        }
        "host" | "originalhost" | "user" | "localuser" => {}
        _ => return Err(format!("unsupported Match attribute \"{attribute}\"")),
    }
    let argument = joined.or_else(|| arguments.next());
    let patterns = argument
        .filter(|text| !text.is_empty() && !text.starts_with('#'))
        .ok_or_else(|| format!("Match {name} lacks its argument"))?;
    Ok(match name.as_str() {
        "host" => Test::Host(patterns.to_ascii_lowercase()),
        "originalhost" => Test::OriginalHost(patterns.to_ascii_lowercase()),
        "user" => Test::User(patterns),
        _ => Test::LocalUser(patterns),
    })
}

impl Test {
    fn holds(&self, subject: &Subject<'_>) -> bool {
        let in_lowercase = |patterns: &str, host: &str| {
            pattern::list_matches(patterns, &host.to_ascii_lowercase())
        };
        match self {
            Test::All => true,
            Test::SecondPass { .. } => subject.second_pass,
            Test::Host(patterns) => in_lowercase(patterns, subject.host_name),
            Test::OriginalHost(patterns) => in_lowercase(patterns, subject.original_host),
            Test::User(patterns) => pattern::list_matches(patterns, subject.user),
            Test::LocalUser(patterns) => pattern::list_matches(patterns, subject.local_user),
        }
    }
}

#[cfg(test)]
mod tests;
