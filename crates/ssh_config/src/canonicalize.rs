//! From the name that a user wrote to the name that is meant: `CanonicalizeHostname` and its like
//! (`resolve_canonicalize` and `check_follow_cname`, ssh.c).

use crate::address;
use crate::error::{ResolveError, Unresolved};
use crate::keyword::Keyword;
use crate::pattern;
use crate::question::{Answers, Lookup};
use crate::slots::Slots;
use crate::value::lists::is_domain;
use crate::value::words::{AddressFamily, CanonicalizeHostname, Word};

/// How many dots a name may have to be completed (`CanonicalizeMaxDots`).
const DEFAULT_MAX_DOTS: u32 = 1;

/// What the lines say about names.
pub(crate) struct Rules<'a> {
    answers: &'a Answers,
    pub(crate) canonicalize: CanonicalizeHostname,
    family: AddressFamily,
    /// The name is for this machine to resolve, not for a proxy.
    direct: bool,
    domains: &'a [String],
    max_dots: u32,
    fallback_local: bool,
    /// Pairs of pattern lists, joined by a colon: which names may be aliases for which.
    cnames: &'a [String],
}

impl<'a> Rules<'a> {
    pub(crate) fn new(slots: &Slots<'a>, answers: &'a Answers) -> Rules<'a> {
        let word = |keyword, default: &'static str| slots.word_of(keyword).unwrap_or(default);
        let list = |keyword| match slots.words_of(keyword) {
            Some([none]) if none.eq_ignore_ascii_case("none") => &[],
            words => words.unwrap_or_default(),
        };
        let command = slots.word_of(Keyword::ProxyCommand);
        Rules {
            answers,
            canonicalize: CanonicalizeHostname::of_word(word(Keyword::CanonicalizeHostname, "no"))
                .unwrap_or(CanonicalizeHostname::No),
            family: AddressFamily::of_word(word(Keyword::AddressFamily, "any"))
                .unwrap_or(AddressFamily::Any),
            direct: slots.jump_host().is_none()
                && command.is_none_or(|command| command.eq_ignore_ascii_case("none")),
            domains: list(Keyword::CanonicalDomains),
            max_dots: slots
                .number(Keyword::CanonicalizeMaxDots, DEFAULT_MAX_DOTS)
                .value,
            fallback_local: word(Keyword::CanonicalizeFallbackLocal, "yes") == "yes",
            cnames: list(Keyword::CanonicalizePermittedCnames),
        }
    }

    /// Whether ssh leaves the name to the proxy.
    fn is_for_proxy(&self) -> bool {
        !self.direct && self.canonicalize != CanonicalizeHostname::Always
    }

    /// The name to use for `host`.
    pub(crate) fn canonical(&self, host: String) -> Result<String, Unresolved> {
        if let Some(address) = address::canonical(&host, self.family) {
            return Ok(address);
        }
        if address::looks_like_one(&host) {
            return self.follow(host);
        }
        let host = host.to_ascii_lowercase();
        match self.complete(&host)? {
            Some(completed) => Ok(completed),
            None => self.follow(host),
        }
    }

    /// The name completed by one of the domains.
    fn complete(&self, host: &str) -> Result<Option<String>, Unresolved> {
        if self.canonicalize == CanonicalizeHostname::No || self.is_for_proxy() {
            return Ok(None);
        }
        let candidates: Vec<String> = if host.ends_with('.') {
            vec![host.into()]
        } else {
            let dots = host.matches('.').count();
            if u32::try_from(dots).is_ok_and(|dots| dots > self.max_dots) {
                return Ok(None);
            }
            let domains = self.domains.iter();
            domains.map(|domain| format!("{host}.{domain}.")).collect()
        };
        for candidate in candidates {
            if let Lookup::Found { canonical_name } =
                self.answers.lookup(&candidate, self.family)?
            {
                let name = candidate.strip_suffix('.').unwrap_or(&candidate).into();
                return Ok(Some(self.follow_cname(name, canonical_name.as_deref())));
            }
        }
        if self.fallback_local {
            Ok(None)
        } else {
            Err(ResolveError::NotFound(host.into()).into())
        }
    }

    /// What a name that was not completed is an alias for, if it may be one.
    fn follow(&self, host: String) -> Result<String, Unresolved> {
        if self.cnames.is_empty() || self.is_for_proxy() {
            return Ok(host);
        }
        match self.answers.lookup(&host, self.family)? {
            Lookup::Found { canonical_name } => {
                Ok(self.follow_cname(host, canonical_name.as_deref()))
            }
            Lookup::NotFound if self.direct => Err(ResolveError::NotFound(host).into()),
            Lookup::NotFound => Ok(host),
        }
    }

    fn follow_cname(&self, name: String, canonical_name: Option<&str>) -> String {
        let Some(target) = canonical_name.filter(|target| is_domain(target)) else {
            return name;
        };
        let target = target.strip_suffix('.').unwrap_or(target);
        if self.canonicalize == CanonicalizeHostname::No || self.is_for_proxy() {
            return name;
        }
        let permits = |rule: &String| {
            rule.split_once(':').is_some_and(|(sources, targets)| {
                pattern::list_matches(sources, &name) && pattern::list_matches(targets, target)
            })
        };
        match self.cnames.iter().any(permits) {
            true => target.to_ascii_lowercase(),
            false => name,
        }
    }
}

#[cfg(test)]
mod tests;
