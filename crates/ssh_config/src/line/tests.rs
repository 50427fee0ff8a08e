#![allow(clippy::unwrap_used)]

use super::*;

fn keyword(line: &str) -> Option<(String, String)> {
    split_keyword(line)
        .unwrap()
        .map(|split| (split.keyword, split.rest))
}

#[test]
fn a_keyword_ends_at_blanks_or_one_equals_sign() {
    let port = |rest: &str| Some(("port".to_string(), rest.to_string()));
    for line in [
        "Port 22",
        "PORT=22",
        "port = 22",
        " \tPort\t22 \r\n",
        "\"Port\" 22",
        "=Port 22",
    ] {
        assert_eq!(keyword(line), port("22"), "{line}");
    }
    assert_eq!(keyword("Port==22"), port("=22"));
    assert_eq!(keyword("Port = = 22"), port("= 22"));
    assert_eq!(keyword("Port \"2 2\" # x"), port("\"2 2\" # x"));
}

#[test]
fn lines_without_a_keyword_say_nothing() {
    for line in ["", "  ", "# x", "  # x", "\t\r\n", "\u{c}", "\"", "="] {
        assert_eq!(keyword(line), None, "{line:?}");
    }
    for line in ["Port", "Port ", "Port=", "Port = ", "\"\" x"] {
        assert!(split_keyword(line).is_err(), "{line}");
    }
}

#[test]
fn arguments_are_split_quoted_and_escaped() {
    let cases: &[(&str, &[&str])] = &[
        ("a b\tc", &["a", "b", "c"]),
        ("  a  ", &["a"]),
        ("a # b", &["a"]),
        ("a#b", &["a#b"]),
        ("\"a b\" 'c d'", &["a b", "c d"]),
        ("a\"b c\"d", &["ab cd"]),
        ("\"a'b\" 'c\"d'", &["a'b", "c\"d"]),
        (r#"a\ b "c\ d""#, &["a b", r"c\ d"]),
        (r#"\"a\' "\"" '\'' \\"#, &["\"a'", "\"", "'", r"\"]),
        (r"a\x \", &[r"a\x", r"\"]),
        ("\"\" ''", &["", ""]),
        ("", &[]),
        ("# x", &[]),
        ("ä \"ö\"", &["ä", "ö"]),
    ];
    for (text, expected) in cases {
        assert_eq!(split_arguments(text).unwrap(), *expected, "{text}");
    }
    for open in ["\"a", "a'", "a \"b' c", r#""\""#] {
        assert_eq!(split_arguments(open), None, "{open}");
    }
}
