//! Host patterns: `*`, `?`, lists and negation, as OpenSSH's match.c decides.
//!
//! `ssh_config` has a copy of these few lines: no crate of this layer depends on another, and one definition in a property
//! test holds both.

/// Longest single pattern of a list; OpenSSH gives up on a list with a longer one
/// (`match_pattern_list`, match.c).
pub(crate) const MAX_PATTERN: usize = 1022;

/// What a comma-separated list says about a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListMatch {
    /// No pattern of the list matched.
    None,
    /// A pattern matched and no negated one did.
    Matched,
    /// A pattern that starts with `!` matched: the whole list does not apply.
    Negated,
}

/// Whether `pattern` matches all of `text`, letters compared without case.
///
/// `text` must be lowercase already. Backtracks only to the last `*`, so the work is at most
/// the product of the two lengths.
pub(crate) fn matches(pattern: &[u8], text: &[u8]) -> bool {
    matches_by(pattern, text, |p, t| p.to_ascii_lowercase() == t)
}

/// As [`matches()`], but letters compare with case.
pub(crate) fn matches_exact_case(pattern: &[u8], text: &[u8]) -> bool {
    matches_by(pattern, text, |p, t| p == t)
}

fn matches_by(pattern: &[u8], text: &[u8], same: impl Fn(u8, u8) -> bool) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                retry = Some((p + 1, t));
                p += 1;
            }
            Some(&c) if c == b'?' || same(c, text[t]) => {
                p += 1;
                t += 1;
            }
            _ => match retry {
                Some((after_star, from)) => {
                    p = after_star;
                    t = from + 1;
                    retry = Some((after_star, t));
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&c| c == b'*')
}

/// Judges the comma-separated `list` for the lowercase `name`.
pub(crate) fn matches_list(list: &[u8], name: &[u8]) -> ListMatch {
    let mut found = ListMatch::None;
    for item in list.split(|&c| c == b',') {
        let (negated, pattern) = match item.split_first() {
            Some((b'!', rest)) => (true, rest),
            _ => (false, item),
        };
        if pattern.len() > MAX_PATTERN {
            return ListMatch::None;
        }
        if matches(pattern, name) {
            if negated {
                return ListMatch::Negated;
            }
            found = ListMatch::Matched;
        }
    }
    found
}

/// Whether the list needs matching at all: without `*`, `?` and `!` it is a list of exact names.
pub(crate) fn is_plain_list(list: &[u8]) -> bool {
    memchr::memchr3(b'*', b'?', b'!', list).is_none()
}

#[cfg(test)]
mod tests;
