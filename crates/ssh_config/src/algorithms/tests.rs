#![allow(clippy::unwrap_used)]

use super::*;

const DEFAULTS: [&str; 3] = ["aes-gcm", "chacha", "aes-ctr"];
const KNOWN: [&str; 5] = ["chacha", "aes-ctr", "aes-gcm", "aes-cbc", "3des"];

fn apply(text: &str) -> Result<Vec<String>, EmptyAlgorithmList> {
    AlgorithmSpec::parse(text).unwrap().apply(&DEFAULTS, &KNOWN)
}

#[test]
fn lists_replace_append_remove_and_prepend() {
    let cases: &[(&str, &[&str])] = &[
        ("aes-ctr,chacha", &["aes-ctr", "chacha"]),
        ("aes-ctr,rc4,aes-ctr", &["aes-ctr"]),
        ("aes-*", &["aes-ctr", "aes-gcm", "aes-cbc"]),
        ("+3des,chacha", &["aes-gcm", "chacha", "aes-ctr", "3des"]),
        ("-aes-*", &["chacha"]),
        ("-rc4", &["aes-gcm", "chacha", "aes-ctr"]),
        (
            "^aes-cbc,aes-ctr",
            &["aes-cbc", "aes-ctr", "aes-gcm", "chacha"],
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(apply(text).unwrap(), *expected, "{text}");
    }
}

#[test]
fn nothing_left_is_an_error() {
    assert_eq!(apply("rc4,blowfish"), Err(EmptyAlgorithmList));
    assert_eq!(apply("-*"), Err(EmptyAlgorithmList));
    for text in ["", "+", "-", "^"] {
        assert!(AlgorithmSpec::parse(text).is_err(), "{text}");
    }
}

#[test]
fn unknown_names_are_told() {
    let unknown = |text: &str| {
        let spec = AlgorithmSpec::parse(text).unwrap();
        spec.unknown(&KNOWN)
            .into_iter()
            .map(String::from)
            .collect::<Vec<_>>()
    };
    assert_eq!(unknown("rc4,chacha,aes*"), ["rc4"]);
    assert_eq!(unknown("+rc4"), ["rc4"]);
    assert!(unknown("-rc4").is_empty());
}

#[test]
fn a_list_is_shown_as_it_was_written() {
    for text in ["a,b", "+a", "-a*,b", "^a"] {
        assert_eq!(AlgorithmSpec::parse(text).unwrap().to_string(), text);
    }
}
