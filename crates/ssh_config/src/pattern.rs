//! `*` and `?` patterns and lists of them, as OpenSSH's match.c decides.
//!
//! `known_hosts` has a copy of these few lines: no crate of this layer depends on another, and one definition in a property
//! test holds both.

/// Longest single pattern of a comma-separated list (`match_pattern_list`, match.c).
const MAX_PATTERN: usize = 1022;

/// Whether `pattern` matches all of `text` (`match_pattern`, match.c).
pub(crate) fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                p += 1;
                retry = Some((p, t));
            }
            Some(&c) if c == b'?' || c == text[t] => {
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

/// Whether a comma-separated list matches: one pattern does, and none that begins with `!`
/// (`match_pattern_list`, match.c).
pub(crate) fn list_matches(list: &str, text: &str) -> bool {
    let mut found = false;
    for item in list.split(',') {
        let (negated, pattern) = match item.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, item),
        };
        if pattern.len() > MAX_PATTERN {
            return false;
        }
        if matches(pattern.as_bytes(), text.as_bytes()) {
            if negated {
                return false;
            }
            found = true;
        }
    }
    found
}

#[cfg(test)]
mod tests;
