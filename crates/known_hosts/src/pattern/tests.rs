#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;

/// The definition, without any cleverness.
fn naive(pattern: &[u8], text: &[u8]) -> bool {
    match pattern.split_first() {
        None => text.is_empty(),
        Some((b'*', rest)) => (0..=text.len()).any(|skip| naive(rest, &text[skip..])),
        Some((b'?', rest)) => !text.is_empty() && naive(rest, &text[1..]),
        Some((c, rest)) => text.first() == Some(&c.to_ascii_lowercase()) && naive(rest, &text[1..]),
    }
}

proptest! {
    // Short ones, so that many of them match.
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn matching_equals_its_definition(pattern in "[abA*?]{0,5}", text in "[ab]{0,4}") {
        let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
        prop_assert_eq!(matches(pattern, text), naive(pattern, text));
    }
}

#[test]
fn a_negated_pattern_beats_every_other_one() {
    let judge = |list: &str, name: &str| matches_list(list.as_bytes(), name.as_bytes());
    assert_eq!(
        judge("*.example.com,!b*", "a.example.com"),
        ListMatch::Matched
    );
    assert_eq!(
        judge("*.example.com,!b*", "b.example.com"),
        ListMatch::Negated
    );
    assert_eq!(
        judge("!b*,*.example.com", "b.example.com"),
        ListMatch::Negated
    );
    assert_eq!(judge("!b*", "a.example.com"), ListMatch::None);
    assert_eq!(judge("A.Example.com", "a.example.com"), ListMatch::Matched);
    assert_eq!(judge(",,a", ""), ListMatch::Matched);
    assert_eq!(judge("a,", "a"), ListMatch::Matched);
}

#[test]
fn a_star_matches_nothing_as_well() {
    for pattern in ["a*", "*a", "a**", "*", "a*b*"] {
        let text = pattern.replace('*', "");
        assert!(matches(pattern.as_bytes(), text.as_bytes()), "{pattern}");
    }
}

#[test]
fn a_list_with_a_negation_is_no_plain_list() {
    assert!(is_plain_list(b"a,b.example.com,[::1]:22"));
    for list in ["a,!b", "a*", "?"] {
        assert!(!is_plain_list(list.as_bytes()), "{list}");
    }
}

#[test]
fn a_list_with_an_overlong_pattern_matches_nothing() {
    let long = "*".repeat(MAX_PATTERN + 1);
    assert_eq!(
        matches_list(format!("a,{long}").as_bytes(), b"a"),
        ListMatch::None
    );
    assert_eq!(
        matches_list(format!("!a,{long}").as_bytes(), b"a"),
        ListMatch::Negated
    );
    let longest = "*".repeat(MAX_PATTERN);
    assert_eq!(matches_list(longest.as_bytes(), b"a"), ListMatch::Matched);
}

#[test]
fn many_stars_take_no_exponential_time() {
    let pattern = "*a".repeat(200);
    let text = "a".repeat(199);
    assert!(!matches(pattern.as_bytes(), text.as_bytes()));
}

#[test]
fn certificate_principals_compare_with_case() {
    assert!(matches_exact_case(b"*.Example", b"a.Example"));
    assert!(!matches_exact_case(b"*.Example", b"a.example"));
}
