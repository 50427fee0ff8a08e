//! Choosing among hosts: globs, regular expressions, a random few, equal parts.

use std::fmt;

use regex::{Regex, RegexBuilder};

use crate::{Target, TargetError, TargetProblem, pattern::Pattern};

/// Largest compiled regular expression, in octets; matching is linear in the text, whatever the expression.
const MAX_REGEX: usize = 1 << 20;

/// Picks hosts by name, in any ASCII case: `web[1-3]*` or `/^web.*[02468]$/`.
#[derive(Debug, Clone)]
pub struct Selector {
    text: String,
    regexes: Vec<Regex>,
}

/// Most globs that one with ranges may stand for.
const MAX_GLOBS: usize = 1000;

impl Selector {
    /// Whether a spec is a glob: `*` or `?` stands in it.
    pub(crate) fn is_glob(text: &str) -> bool {
        text.contains(['*', '?'])
    }

    /// `*` is any text, `?` any character; brackets are ranges, as everywhere in lists, and not sets of
    /// characters.
    pub(crate) fn glob(text: &str) -> Result<Selector, TargetProblem> {
        if let Some(c) = text
            .chars()
            .find(|c| "@:/\\$;|<>(){}'\"`#".contains(*c) || c.is_control())
        {
            return Err(TargetProblem::GlobCharacter(c));
        }
        let pattern = Pattern::parse(text)?;
        if pattern.count()? > MAX_GLOBS {
            return Err(TargetProblem::TooManyGlobs(MAX_GLOBS));
        }
        let mut regexes = Vec::new();
        pattern.expand(|glob| {
            let mut regex = String::from("^");
            for character in glob.chars() {
                match character {
                    '*' => regex.push_str(".*"),
                    '?' => regex.push('.'),
                    other => regex.push_str(&regex::escape(other.encode_utf8(&mut [0; 4]))),
                }
            }
            regex.push('$');
            regexes.push(compile(&regex)?);
            Ok(())
        })?;
        Ok(Selector {
            text: text.to_owned(),
            regexes,
        })
    }

    /// A regular expression (the `regex` crate's), found anywhere in the name. `\/` is a slash.
    pub(crate) fn regex(regex: &str) -> Result<Selector, TargetProblem> {
        Ok(Selector {
            text: format!("/{regex}/"),
            regexes: vec![compile(&regex.replace("\\/", "/"))?],
        })
    }

    /// Whether it picks this name.
    pub fn matches(&self, name: &str) -> bool {
        self.regexes.iter().any(|regex| regex.is_match(name))
    }
}

fn compile(regex: &str) -> Result<Regex, TargetProblem> {
    RegexBuilder::new(regex)
        .case_insensitive(true)
        .size_limit(MAX_REGEX)
        .build()
        .map_err(|error| TargetProblem::Regex(error.to_string()))
}

/// Selectors are the same when they are written the same.
impl PartialEq for Selector {
    fn eq(&self, other: &Selector) -> bool {
        self.text == other.text
    }
}

impl Eq for Selector {}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Picks `count` of the targets at random, each set of that size as likely as any other, and keeps their order
/// (clush's `--pick`). All of them when there are no more. `random` gives a fresh 64-bit number a call.
pub fn pick(targets: Vec<Target>, count: usize, mut random: impl FnMut() -> u64) -> Vec<Target> {
    let mut left = targets.len() as u64;
    let mut wanted = (count as u64).min(left);
    // Knuth's algorithm S: take each with the chance that is left for it.
    let mut is_picked = |_: &Target| {
        let take = uniform(left, &mut random) < wanted;
        left -= 1;
        wanted -= u64::from(take);
        take
    };
    targets
        .into_iter()
        .filter(|target| is_picked(target))
        .collect()
}

/// A number below `bound`, which is not 0, without bias.
fn uniform(bound: u64, random: &mut impl FnMut() -> u64) -> u64 {
    let unbiased = u64::MAX - u64::MAX % bound;
    loop {
        let number = random();
        if number < unbiased {
            return number % bound;
        }
    }
}

/// Cuts the targets into at most `parts` runs whose sizes differ by one at most, the longer ones first
/// (`nodeset --split`). No parts for no targets.
pub fn split(targets: &[Target], parts: usize) -> Vec<&[Target]> {
    let parts = parts.min(targets.len());
    let mut rest = targets;
    let mut runs = Vec::with_capacity(parts);
    for left in (1..=parts).rev() {
        let (run, behind) = rest.split_at(rest.len().div_ceil(left));
        runs.push(run);
        rest = behind;
    }
    runs
}

/// Reads a selector on its own: a glob, or `/regex/`.
///
/// # Errors
/// What is wrong with it, and what to write.
impl std::str::FromStr for Selector {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Selector, TargetError> {
        let inner = text
            .strip_prefix('/')
            .and_then(|text| text.strip_suffix('/'));
        let selector = match inner {
            Some(regex) => Selector::regex(regex),
            None => Selector::glob(text),
        };
        selector.map_err(|problem| TargetError::new(text, problem))
    }
}
