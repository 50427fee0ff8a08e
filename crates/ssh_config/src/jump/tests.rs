#![allow(clippy::unwrap_used)]

use super::*;

fn hop(user: Option<&str>, host: &str, port: Option<u16>) -> Hop {
    Hop {
        user: user.map(String::from),
        host: host.into(),
        port,
    }
}

#[test]
fn hops_come_in_the_order_of_travel() {
    let cases = [
        ("none", vec![]),
        ("a", vec![hop(None, "a", None)]),
        (
            "u@a:2222,b",
            vec![hop(Some("u"), "a", Some(2222)), hop(None, "b", None)],
        ),
        ("u@v@a", vec![hop(Some("u@v"), "a", None)]),
        ("[::1]:22", vec![hop(None, "::1", Some(22))]),
        ("[::1]", vec![hop(None, "::1", None)]),
        ("a:", vec![hop(None, "a", None)]),
        ("a # note", vec![hop(None, "a", None)]),
        ("ssh://u@a:2222", vec![hop(Some("u"), "a", Some(2222))]),
        ("ssh://a/", vec![hop(None, "a", None)]),
        ("ssh://a:22/", vec![hop(None, "a", Some(22))]),
        (
            "ssh://u%40v+w;x=y@j.example.",
            vec![hop(Some("u@v w"), "j.example", None)],
        ),
    ];
    for (text, hops) in cases {
        assert_eq!(parse(text), Ok(hops), "{text}");
    }
}

#[test]
fn what_is_no_host_is_refused() {
    for text in [
        "",
        "@a",
        "a:0",
        "a:x",
        "a:65536",
        "a,,b",
        ",a",
        "[a",
        "[a]b",
        "[]:22",
        ":22",
        "u@",
        "ssh://",
        "ssh://@a",
        "ssh://[::1]",
        "ssh://a/path",
        "a/22",
        "u@a/",
        "ssh://a:22/path",
        "ssh://%zz@a",
        "ssh://%+f@a",
        "ssh://%4@a",
        "ssh://%00@a",
    ] {
        assert!(parse(text).is_err(), "{text}");
    }
}
