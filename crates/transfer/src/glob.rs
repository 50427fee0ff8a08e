//! Patterns of names, on octets: glob(7) without its locale.

/// Whether `name` is one of those that `pattern` stands for: `*`, `?`, `[a-z]`, `[!a-z]`, and a backslash before what is to
/// be taken literally. Neither stands for a slash, nor for a dot at the beginning.
pub fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let hidden =
        name.starts_with(b".") && !pattern.starts_with(b".") && !pattern.starts_with(b"\\.");
    !hidden && matches_rest(pattern, name)
}

/// As [`matches`](matches()), a dot at the beginning being nothing special. Linear but for the last star: a hostile name
/// costs no more than pattern times name.
fn matches_rest(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    // Where to go on if what follows the last star does not fit: the star takes one octet more.
    let mut star: Option<(usize, usize)> = None;
    loop {
        let step = match pattern.get(p) {
            None if n == name.len() => return true,
            None => None,
            Some(b'*') => {
                star = Some((p + 1, n));
                p += 1;
                continue;
            }
            Some(_) => name
                .get(n)
                .and_then(|&octet| one(&pattern[p..], octet))
                .filter(|_| name[n] != b'/' || pattern[p] == b'/'),
        };
        match (step, star) {
            (Some(len), _) => (p, n) = (p + len, n + 1),
            (None, Some((after, taken))) if taken < name.len() && name[taken] != b'/' => {
                star = Some((after, taken + 1));
                (p, n) = (after, taken + 1);
            }
            _ => return false,
        }
    }
}

/// How much of the pattern stands for this octet; `None` if it does not.
fn one(pattern: &[u8], octet: u8) -> Option<usize> {
    match pattern {
        [b'?', ..] => Some(1),
        [b'\\', literal, ..] => (*literal == octet).then_some(2),
        [b'[', ..] => match class(pattern) {
            Some((len, negated, members)) => (contains(members, octet) != negated).then_some(len),
            // Without its end it is a bracket.
            None => (octet == b'[').then_some(1),
        },
        [literal, ..] => (*literal == octet).then_some(1),
        [] => None,
    }
}

/// The length of a bracket expression, whether it is negated, and what is between.
fn class(pattern: &[u8]) -> Option<(usize, bool, &[u8])> {
    let negated = matches!(pattern.get(1), Some(b'!' | b'^'));
    let start = 1 + usize::from(negated);
    // A bracket that comes first stands for itself.
    let end = pattern
        .get(start + 1..)?
        .iter()
        .position(|&octet| octet == b']')?;
    let end = start + 1 + end;
    Some((end + 1, negated, &pattern[start..end]))
}

fn contains(mut members: &[u8], octet: u8) -> bool {
    loop {
        match members {
            [] => return false,
            [from, b'-', to, rest @ ..] => {
                if (*from..=*to).contains(&octet) {
                    return true;
                }
                members = rest;
            }
            [one, rest @ ..] => {
                if *one == octet {
                    return true;
                }
                members = rest;
            }
        }
    }
}

/// Whether a path has to be looked for, rather than taken as it is.
pub(crate) fn is_pattern(text: &[u8]) -> bool {
    text.iter()
        .any(|octet| matches!(octet, b'*' | b'?' | b'[' | b'\\'))
}

/// What a part of a pattern without any wildcard stands for.
pub(crate) fn literal(part: &[u8]) -> Option<Vec<u8>> {
    let mut plain = Vec::with_capacity(part.len());
    let mut octets = part.iter();
    while let Some(&octet) = octets.next() {
        match octet {
            b'*' | b'?' | b'[' => return None,
            b'\\' => plain.push(*octets.next().unwrap_or(&b'\\')),
            octet => plain.push(octet),
        }
    }
    Some(plain)
}

/// Why a pattern does not stand for what was meant by it, whatever that was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// A part between slashes that no path has in it: paths are written without.
    #[error(
        "no path below what is copied has {:?} in it between slashes, and so it leaves nothing out", .0.escape_ascii().to_string()
    )]
    NoName(Vec<u8>),
    /// There is no name in it.
    #[error("it is empty, and leaves nothing out")]
    Empty,
    /// A bracket that is not closed.
    #[error("its [ has no ] behind it; a bracket that is meant literally is written \\[")]
    OpenBracket,
    /// A slash between brackets, which stand for no slash (glob(7)).
    #[error("a slash between brackets stands for nothing")]
    BracketedSlash,
    /// `[[:alpha:]]` and the like.
    #[error("character classes such as [:alpha:] are not known; write a range, such as [a-z]")]
    CharacterClass,
    /// A range that ends before it begins.
    #[error("the range {}-{} ends before it begins", .0.escape_ascii(), .1.escape_ascii())]
    EmptyRange(u8, u8),
    /// A backslash with nothing behind it.
    #[error(
        "a backslash at its end has nothing to take literally; one that is meant itself is written \\\\"
    )]
    LoneBackslash,
}

/// Whether a pattern of `--exclude` can stand for anything.
///
/// # Errors
///
/// What is wrong with it.
pub fn check_exclude(pattern: &[u8]) -> Result<(), PatternError> {
    if pattern.iter().all(|&octet| octet == b'/') {
        return Err(PatternError::Empty);
    }
    let inner = pattern.strip_prefix(b"/").unwrap_or(pattern);
    let inner = inner.strip_suffix(b"/").unwrap_or(inner);
    let is_none = |part: &&[u8]| matches!(*part, b"" | b"." | b".." | b"**");
    if let Some(part) = inner.split(|&octet| octet == b'/').find(is_none) {
        return Err(PatternError::NoName(part.to_vec()));
    }
    let mut rest = pattern;
    while let Some(&first) = rest.first() {
        let len = match first {
            b'\\' if rest.len() == 1 => return Err(PatternError::LoneBackslash),
            b'\\' => 2,
            b'[' => {
                let (len, _, members) = class(rest).ok_or(PatternError::OpenBracket)?;
                check_members(members)?;
                len
            }
            _ => 1,
        };
        rest = &rest[len..];
    }
    Ok(())
}

fn check_members(members: &[u8]) -> Result<(), PatternError> {
    if members.contains(&b'/') {
        return Err(PatternError::BracketedSlash);
    }
    if members
        .windows(2)
        .any(|two| matches!(two, b"[:" | b"[." | b"[="))
    {
        return Err(PatternError::CharacterClass);
    }
    let mut rest = members;
    loop {
        rest = match rest {
            [] => return Ok(()),
            &[from, b'-', to, ..] if from > to => return Err(PatternError::EmptyRange(from, to)),
            [_, b'-', _, rest @ ..] | [_, rest @ ..] => rest,
        };
    }
}

/// `--exclude`: what of a tree is left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Excludes(Vec<Vec<u8>>);

impl Excludes {
    /// Patterns; one with a slash in it is about the path below what was named, one without about every name.
    pub fn new(patterns: impl IntoIterator<Item = Vec<u8>>) -> Excludes {
        Excludes(patterns.into_iter().collect())
    }

    /// Whether `path`, relative to what was named on the command line, is left out. The folders above it are asked about
    /// by themselves.
    pub fn covers(&self, path: &[u8]) -> bool {
        let name = crate::path::file_name(path);
        self.0.iter().any(|pattern| {
            let pattern = pattern.strip_suffix(b"/").unwrap_or(pattern);
            match pattern.contains(&b'/') {
                true => matches_rest(pattern.strip_prefix(b"/").unwrap_or(pattern), path),
                false => matches_rest(pattern, name),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn patterns_stand_for_names() {
        for (pattern, name, is_one) in [
            (&b"*.conf"[..], &b"a.conf"[..], true),
            (b"*.conf", b".conf", false),
            (b".*", b".conf", true),
            (b"a?c", b"abc", true),
            (b"a?c", b"a\xffc", true),
            (b"a?c", b"a/c", false),
            (b"[a-c]x", b"bx", true),
            (b"[!a-c]x", b"bx", false),
            (b"[]x]", b"]", true),
            (b"[a", b"[a", true),
            (b"\\*", b"*", true),
            (b"\\*", b"a", false),
            (b"*a*b*c", b"xxaxxbxxc", true),
            (b"*a*b*c", b"xxaxxcxxb", false),
            (b"*", b"a/b", false),
            (b"", b"", true),
        ] {
            assert_eq!(matches(pattern, name), is_one, "{pattern:?} {name:?}");
        }
    }

    #[test]
    fn what_is_excluded_is_left_out_by_name_or_by_path() {
        let excludes = Excludes::new([b"*.o".to_vec(), b"/build".to_vec(), b"doc/*.md".to_vec()]);
        for (path, is_out) in [
            (&b"a.o"[..], true),
            (b"x/.o", true),
            (b"build", true),
            (b"x/build", false),
            (b"doc/a.md", true),
            (b"doc/x/a.md", false),
        ] {
            assert_eq!(excludes.covers(path), is_out, "{path:?}");
        }
        assert!(Excludes::new([b"cache/".to_vec()]).covers(b"x/cache"));
    }

    #[test]
    fn patterns_that_stand_for_nothing_are_told() {
        for (pattern, why) in [
            (&b""[..], PatternError::Empty),
            (b"/", PatternError::Empty),
            (b"[", PatternError::OpenBracket),
            (b"a[b", PatternError::OpenBracket),
            (b"[]", PatternError::OpenBracket),
            (b"[!]x", PatternError::OpenBracket),
            (b"[a][", PatternError::OpenBracket),
            (b"./cache", PatternError::NoName(b".".to_vec())),
            (b"a//b", PatternError::NoName(Vec::new())),
            (b"../x", PatternError::NoName(b"..".to_vec())),
            (b"**/x", PatternError::NoName(b"**".to_vec())),
            (b"x[a/b]", PatternError::BracketedSlash),
            (b"[[:alpha:]]", PatternError::CharacterClass),
            (b"[a-cz-x]", PatternError::EmptyRange(b'z', b'x')),
            (b"a\\", PatternError::LoneBackslash),
        ] {
            assert_eq!(check_exclude(pattern), Err(why), "{pattern:?}");
        }
        for pattern in [
            &b"*.o"[..],
            b"/build/",
            b"\\[",
            b"]",
            b"[]]",
            b"[!]]",
            b"[a-cx-z-]",
            b"[-a]",
            b"[a-]",
            b"[a-a]",
            b"\\\\",
            b"a\\*",
            b"[\\]",
            b"\xff",
        ] {
            assert_eq!(check_exclude(pattern), Ok(()), "{pattern:?}");
        }
        let told = PatternError::EmptyRange(b'z', 0xff).to_string();
        assert_eq!(told, "the range z-\\xff ends before it begins");
    }

    proptest! {
        #[test]
        fn a_literal_matches_itself(name in prop::collection::vec(1u8..=255, 1..20)) {
            let escaped: Vec<u8> = name.iter().flat_map(|&octet| [b'\\', octet]).collect();
            prop_assert!(matches_rest(&escaped, &name) || name.contains(&b'/'));
            prop_assert_eq!(literal(&escaped), Some(name));
        }

        #[test]
        fn nothing_takes_for_ever(pattern in "[*a]{0,40}", name in "a{0,200}") {
            matches(pattern.as_bytes(), name.as_bytes());
        }
    }
}
