#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;

/// The definition, without any cleverness.
fn naive(pattern: &[u8], text: &[u8]) -> bool {
    match pattern.split_first() {
        None => text.is_empty(),
        Some((b'*', rest)) => (0..=text.len()).any(|skip| naive(rest, &text[skip..])),
        Some((b'?', rest)) => !text.is_empty() && naive(rest, &text[1..]),
        Some((c, rest)) => text.first() == Some(c) && naive(rest, &text[1..]),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn matching_equals_its_definition(pattern in "[abA*?.]{0,8}", text in "[abA.]{0,8}") {
        let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
        prop_assert_eq!(matches(pattern, text), naive(pattern, text));
    }
}

#[test]
fn a_star_stands_for_nothing_too() {
    for (pattern, text) in [
        ("*", ""),
        ("*a", "a"),
        ("a*", "a"),
        ("a*b", "ab"),
        ("**?", "a"),
    ] {
        assert!(matches(pattern.as_bytes(), text.as_bytes()), "{pattern}");
    }
}

#[test]
fn a_negated_pattern_beats_every_other_one() {
    for (list, text, expected) in [
        ("a*,!ab", "aa", true),
        ("a*,!ab", "ab", false),
        ("!ab,a*", "ab", false),
        ("!ab", "aa", false),
        ("a,", "", true),
    ] {
        assert_eq!(list_matches(list, text), expected, "{list} {text}");
    }
    assert!(!list_matches(
        &format!("a,{}", "*".repeat(MAX_PATTERN + 1)),
        "a"
    ));
    assert!(list_matches(&format!("a,{}", "*".repeat(MAX_PATTERN)), "a"));
}
