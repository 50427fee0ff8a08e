#![allow(clippy::unwrap_used)]

use super::*;

fn value(kind: Kind, rest: &str) -> Result<Value, String> {
    let variables = [("SET".to_string(), "value".to_string())].into();
    read(
        kind,
        rest,
        &Environment {
            variables,
            ..Environment::default()
        },
    )
}

fn number(number: u32) -> Result<Value, String> {
    Ok(Value::Number(number))
}

fn text(text: &str) -> Result<Value, String> {
    Ok(Value::Text(text.into()))
}

#[test]
fn times_are_sums_of_units() {
    for (text, seconds) in [
        ("0", 0),
        ("90", 90),
        ("90s", 90),
        ("1m30", 90),
        ("1M30S", 90),
        ("1w2d3h4m5s", 788_645),
        ("1h1h", 7200),
        ("1.9", 1),
        ("2.5s", 2),
        ("2147483647", 2_147_483_647),
    ] {
        assert_eq!(
            value(Kind::Time, text),
            Ok(Value::Seconds(Some(seconds))),
            "{text}"
        );
    }
    assert_eq!(value(Kind::Time, "none"), Ok(Value::Seconds(None)));
    for text in [
        "",
        "x",
        "5x",
        "1.5m",
        "1.",
        "-1",
        "+1",
        "1s1s",
        "1 m",
        "2147483648",
        "1..5",
        "m",
    ] {
        assert!(value(Kind::Time, text).is_err(), "{text}");
    }
}

#[test]
fn numbers_and_ports_have_bounds() {
    assert_eq!(value(Kind::Integer, "2147483647"), number(2_147_483_647));
    assert_eq!(value(Kind::Integer, "+3"), number(3));
    assert_eq!(value(Kind::Port, "65535"), number(65_535));
    assert_eq!(value(Kind::Port, "ssh"), number(22));
    for text in ["2147483648", "-1", "1.0", "", "x", "1 2"] {
        assert!(value(Kind::Integer, text).is_err(), "{text}");
    }
    for text in ["0", "65536", "http", "22x"] {
        assert!(value(Kind::Port, text).is_err(), "{text}");
    }
}

#[test]
fn rekey_limits_are_scaled() {
    let rekey = |bytes, interval| Ok(Value::Rekey { bytes, interval });
    for (text, expected) in [
        ("1G", rekey(1 << 30, None)),
        ("16", rekey(16, None)),
        ("0 none", rekey(0, None)),
        ("default 1h", rekey(0, Some(3600))),
        ("1.5k", rekey(1536, None)),
        (
            "1.5",
            rekey(0, None).and(Err("the RekeyLimit is too small".into())),
        ),
        ("100B", rekey(100, None)),
        ("7E", rekey(7 << 60, None)),
    ] {
        assert_eq!(value(Kind::RekeyLimit, text), expected, "{text}");
    }
    for text in [
        "15", "1X", "1KB", "1.2.3M", "8E", "G x", "1G soon", "1G 1h x", "-1G",
    ] {
        assert!(value(Kind::RekeyLimit, text).is_err(), "{text}");
    }
}

#[test]
fn choices_take_any_case() {
    let strict = Kind::Choice(is_word::<StrictHostKeyChecking>);
    assert_eq!(value(strict, "Accept-New"), text("accept-new"));
    assert_eq!(value(Kind::OneOf(&["yes", "no"]), "YES"), text("yes"));
    assert!(value(Kind::OneOf(&["yes", "no"]), "true").is_err());
    assert_eq!(
        StrictHostKeyChecking::of_word("off"),
        Some(StrictHostKeyChecking::No)
    );
    assert_eq!(LogLevel::of_word("debug"), LogLevel::of_word("debug1"));
}

#[test]
fn one_argument_means_one() {
    assert_eq!(value(Kind::Text, "\"a b\" # c"), text("a b"));
    assert_eq!(
        value(Kind::Text, "a b c").unwrap_err(),
        "extra arguments at the end of the line, from \"b\" on"
    );
    assert!(value(Kind::Text, "\"\"").is_err());
    assert!(value(Kind::Text, "# a").is_err());
}

#[test]
fn commands_are_the_rest_of_the_line() {
    assert_eq!(
        value(Kind::Command, "=  echo 'a # b'  c"),
        text("echo 'a # b'  c")
    );
    assert!(value(Kind::Command, "echo 'a").is_err());
}

#[test]
fn lists_take_none_only_alone() {
    let words = |words: &[&str]| {
        Ok(Value::Words(
            words.iter().map(ToString::to_string).collect(),
        ))
    };
    assert_eq!(value(Kind::List, "a \"b c\""), words(&["a", "b c"]));
    assert_eq!(value(Kind::List, "NONE"), words(&["NONE"]));
    for text in ["", "a none", "none none", "a \"\""] {
        assert!(value(Kind::List, text).is_err(), "{text}");
    }
    assert!(value(Kind::List, &"a ".repeat(MAX_HOSTS_FILES)).is_ok());
    assert!(value(Kind::List, &"a ".repeat(MAX_HOSTS_FILES + 1)).is_err());
}

#[test]
fn agents_are_paths_or_variables_that_can_be() {
    for good in ["/a", "none", "SSH_AUTH_SOCK", "$UNSET", "${SET}/a"] {
        assert_eq!(value(Kind::AgentPath, good), text(good));
        assert_eq!(value(Kind::ForwardAgent, good), text(good));
    }
    for bad in ["${UNSET}", "$A-B", "$", "${SET"] {
        assert!(value(Kind::AgentPath, bad).is_err(), "{bad}");
        assert!(value(Kind::ForwardAgent, bad).is_err(), "{bad}");
    }
    assert_eq!(value(Kind::ForwardAgent, "YES"), text("yes"));
}

#[test]
fn the_first_value_of_a_variable_holds() {
    let variables = vec![("A".into(), "1=2".into()), ("B".into(), String::new())];
    assert_eq!(
        value(Kind::SetEnv, "A=1=2 B= A=3"),
        Ok(Value::Variables(variables))
    );
    assert!(value(Kind::SetEnv, "A").is_err());
    assert!(value(Kind::SetEnv, "# A=1").is_err());
}
