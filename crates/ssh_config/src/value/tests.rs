#![allow(clippy::unwrap_used)]

use super::lists;
use super::words::{COMPRESSION, LogLevel, StrictHostKeyChecking};
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
    assert_eq!(value(Kind::OneOf(COMPRESSION), "YES"), text("yes"));
    assert!(value(Kind::OneOf(COMPRESSION), "true").is_err());
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

fn words(words: &[&str]) -> Result<Value, String> {
    let words = words.iter().map(ToString::to_string);
    Ok(Value::Words(words.collect()))
}

#[test]
fn lists_take_none_only_alone() {
    let files = Kind::List(lists::files);
    assert_eq!(value(files, "a \"b c\""), words(&["a", "b c"]));
    assert_eq!(value(files, "NONE"), words(&["NONE"]));
    assert_eq!(value(files, "# none"), words(&[]));
    for text in ["a none", "none none", "none a", "a \"\""] {
        assert!(value(files, text).is_err(), "{text}");
    }
    assert!(value(Kind::List(lists::some_files), "# none").is_err());
    assert_eq!(value(Kind::List(lists::log_verbose), "a b"), words(&["a"]));
}

#[test]
fn lists_have_their_forms() {
    for (items, text, expected) in [
        (
            lists::canonical_domains as lists::Items,
            "A.example B_c.",
            &["a.example", "b_c"][..],
        ),
        (lists::canonical_domains, "none", &["none"]),
        (lists::permitted_cnames, "* *.A,!b:C", &["*:*", "*.a,!b:c"]),
        (
            lists::channel_timeouts,
            "session=5m x*=0",
            &["session=5m", "x*=0"],
        ),
        (
            lists::permit_remote_open,
            "a:22 [::1]:*",
            &["a:22", "[::1]:*"],
        ),
        (lists::permit_remote_open, "any", &["any"]),
        (lists::permit_remote_open, "NONE", &["NONE"]),
    ] {
        assert_eq!(value(Kind::List(items), text), words(expected), "{text}");
    }
    for (items, texts) in [
        (
            lists::canonical_domains as lists::Items,
            &["", "-a", "a..b", "a b/", "none a", ".a"][..],
        ),
        (lists::permitted_cnames, &["", "a", "a:", "none *"]),
        (lists::channel_timeouts, &["", "a", "=5", "a=x", "none a=5"]),
        (
            lists::permit_remote_open,
            &[
                "",
                "a",
                "a:x",
                "a:0",
                "a/22",
                "[a:22",
                "any a:22",
                "a:22 none",
            ],
        ),
    ] {
        for text in texts {
            assert!(value(Kind::List(items), text).is_err(), "{text}");
        }
    }
}

#[test]
fn forms_are_brought_into_the_words_of_ssh() {
    for (form, rest, expected) in [
        (forms::control_persist as forms::Form, "no", "no"),
        (forms::control_persist, "true", "yes"),
        (forms::control_persist, "0", "yes"),
        (forms::control_persist, "1m", "60"),
        (forms::escape_char, "none", "none"),
        (forms::escape_char, "^a", r"\^A"),
        (forms::escape_char, "\" \"", r"\040"),
        (forms::escape_char, r"\\", r"\\"),
        (forms::escape_char, "\u{7f}", r"\^?"),
        (forms::stream_local_bind_mask, "0", "00"),
        (forms::stream_local_bind_mask, "77x", "077"),
        (forms::tunnel_device, "1:ANY", "1:any"),
        (forms::tunnel_device, "2147483645", "2147483645:any"),
        (forms::ip_qos, "EF", "ef ef"),
        (forms::ip_qos, "0x28 lowdelay", "af11 none"),
        (forms::ip_qos, "7 0", "0x07 cs0"),
        (forms::ip_qos, "020 255", "0x10 0xff"),
        (forms::obscure_keystroke_timing, "interval:20", "yes"),
        (forms::obscure_keystroke_timing, "interval:1000", "1000"),
        (forms::obscure_keystroke_timing, "false", "no"),
    ] {
        assert_eq!(value(Kind::Form(form), rest), text(expected), "{rest}");
    }
    for (form, bad) in [
        (forms::control_persist as forms::Form, "Yes"),
        (forms::escape_char, "ab"),
        (forms::escape_char, "^?"),
        (forms::stream_local_bind_mask, "1000"),
        (forms::stream_local_bind_mask, "x"),
        (forms::stream_local_bind_mask, "-1"),
        (forms::tunnel_device, "2147483646"),
        (forms::tunnel_device, ":3"),
        (forms::ip_qos, "256"),
        (forms::ip_qos, "ef ef ef"),
        (forms::obscure_keystroke_timing, "interval:0"),
        (forms::obscure_keystroke_timing, "interval:1001"),
        (forms::obscure_keystroke_timing, "maybe"),
    ] {
        assert!(value(Kind::Form(form), bad).is_err(), "{bad}");
    }
}

#[test]
fn keys_are_added_at_once_for_a_time_or_on_demand() {
    let added = |choice, seconds: Option<u64>| {
        Ok(Value::AddKeys(AddKeysToAgent {
            choice,
            lifetime: seconds.map(Duration::from_secs),
        }))
    };
    for (text, expected) in [
        ("NO", added(AddKeys::No, None)),
        ("ask", added(AddKeys::Ask, None)),
        ("confirm", added(AddKeys::Confirm, None)),
        ("confirm 5m", added(AddKeys::Confirm, Some(300))),
        ("1h", added(AddKeys::Yes, Some(3600))),
        ("0", added(AddKeys::Yes, None)),
    ] {
        assert_eq!(value(Kind::AddKeysToAgent, text), expected, "{text}");
    }
    for text in ["", "yes 5m", "confirm x", "5m 5m", "soon"] {
        assert!(value(Kind::AddKeysToAgent, text).is_err(), "{text}");
    }
}

#[test]
fn algorithms_must_be_known_to_openssh() {
    use crate::algorithms::names::Family;
    for (family, text) in [
        (Family::Cipher, "aes128-ctr"),
        (Family::Cipher, "+3des-cbc,,x"),
        (Family::Cipher, "-x*"),
        (Family::Mac, "^hmac-md5"),
        (Family::Kex, "mlkem768x25519-sha256"),
        (Family::Key, "*ed25519*,ssh-rsa"),
        (Family::PlainKey, "ssh-rsa"),
        (Family::GssKex, "gss-gex-sha1-toWM5Slw5Ew8Mqkay+al2g=="),
    ] {
        assert!(value(Kind::Algorithms(family), text).is_ok(), "{text}");
    }
    for (family, text) in [
        (Family::Cipher, "aes128-crt"),
        (Family::Cipher, "aes*"),
        (Family::Cipher, "none"),
        (Family::Mac, "+x"),
        (Family::Kex, "^x"),
        (Family::Key, "x*"),
        (Family::PlainKey, "ssh-rsa-cert-v01@openssh.com"),
        (Family::GssKex, "gss-x-"),
    ] {
        assert!(value(Kind::Algorithms(family), text).is_err(), "{text}");
    }
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
