#![allow(clippy::unwrap_used)]

use base64::Engine as _;
use proptest::prelude::*;
use serde_json::{Value, json};
use sshoal_fleet::{Failure, FailureKind, HostId};
use sshoal_targets::Target;

use super::*;

fn host() -> Host {
    Host {
        label: "web1".into(),
        target: Target {
            name: "web1".into(),
            user: Some("root".into()),
            ..Target::default()
        },
        user: Some("root".into()),
        port: Some(22),
        way: None,
    }
}

fn result(outcome: Outcome) -> HostResult {
    HostResult {
        host: HostId(0),
        outcome,
        attempts: 1,
        times: PhaseTimes::default(),
    }
}

fn parsed(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

fn with_output(stdout: &[u8], stderr: &[u8]) -> Vec<u8> {
    let mut spill = Spill::new(std::env::temp_dir());
    let mut kept: [Kept; 2] = Default::default();
    for (kept, bytes) in kept.iter_mut().zip([stdout, stderr]) {
        bytes
            .chunks(9_999)
            .for_each(|chunk| kept.push(chunk, &mut spill).unwrap());
    }
    let mut out = Vec::new();
    let record = host_record(&host(), &result(Outcome::Exit(0)));
    write_with_output(&record, &kept, &spill, &mut out).unwrap();
    out
}

/// The bytes of a stream as a reader of the schema gets them back.
fn stream(object: &Value, name: &str) -> Vec<u8> {
    match &object[name] {
        Value::String(text) => text.clone().into_bytes(),
        _ => STANDARD
            .decode(object[format!("{name}_base64")].as_str().unwrap())
            .unwrap(),
    }
}

#[test]
fn what_a_host_file_said_of_a_host_comes_back() {
    let options = [
        ("HostName", "h"),
        ("IdentityFile", "b"),
        ("IdentityFile", "a"),
    ];
    let options = options.map(|(keyword, value)| (keyword.to_owned(), value.to_owned()));
    let mut named = host();
    named.target.options = options.to_vec();
    let record = parsed(&host_record(&named, &result(Outcome::Exit(0))));
    assert_eq!(
        record["options"],
        json!({"HostName": "h", "IdentityFile": ["b", "a"]})
    );
    let Value::Object(members) = record["options"].clone() else {
        panic!("no object");
    };
    assert_eq!(read_options(members), options);
}

#[test]
fn every_member_is_there() {
    let mut ended = result(Outcome::Exit(3));
    ended.attempts = 2;
    ended.times.login = Some(Duration::from_micros(1234));
    ended.times.waited = Duration::from_millis(5);
    assert_eq!(
        parsed(&host_record(&host(), &ended)),
        json!({
            "type": "host", "version": 1, "host": "web1", "target": "root@web1", "user": "root", "port": 22,
            "outcome": "exit", "exit_status": 3, "signal": null, "core_dumped": null,
            "failure": "exit", "detail": null, "remedy": null, "fate": "ran", "attempts": 2,
            "times_us": {
                "lookup": null, "connect": null, "login": 1234, "key_exchange": null,
                "authentication": null, "session": null, "command": null, "waited": 5000, "total": null
            }
        })
    );
}

#[test]
fn each_outcome_has_its_members() {
    let signal = Outcome::Signal {
        name: "KILL".into(),
        core_dumped: true,
        message: String::new(),
    };
    let failure = Failure::new(FailureKind::Lost, "gone\nin \u{9b}mid-air");
    let failed = Outcome::Failed {
        failure,
        fate: Fate::MayHaveRun,
    };
    for (outcome, expected) in [
        (Outcome::Exit(0), json!(["ok", 0, null, null, "ran", null])),
        (
            signal,
            json!(["signal", null, "KILL", "signal", "ran", null]),
        ),
        (
            failed,
            json!([
                "failed",
                null,
                null,
                "lost",
                "may-have-run",
                "gone\nin \u{9b}mid-air"
            ]),
        ),
        (
            Outcome::NotStarted,
            json!(["not-started", null, null, null, "not-sent", null]),
        ),
    ] {
        let line = host_record(&host(), &result(outcome));
        assert!(
            !line.contains(&b'\n') && line.is_ascii(),
            "{}",
            String::from_utf8_lossy(&line)
        );
        let object = parsed(&line);
        let members = [
            "outcome",
            "exit_status",
            "signal",
            "failure",
            "fate",
            "detail",
        ];
        assert_eq!(
            Value::from_iter(members.map(|member| object[member].clone())),
            expected
        );
    }
}

#[test]
fn output_is_text_or_base64() {
    let object = parsed(&with_output(
        "a\tä\"\\\r\n\u{1b}[0m\u{202e}".as_bytes(),
        b"\xff\0",
    ));
    assert_eq!(object["stdout"], "a\tä\"\\\r\n\u{1b}[0m\u{202e}");
    assert_eq!(object["stderr_base64"], "/wA=");
    assert_eq!(
        (&object["stdout_base64"], &object["stderr"]),
        (&Value::Null, &Value::Null)
    );
    let empty = parsed(&with_output(b"", b""));
    assert_eq!(
        (&empty["stdout"], &empty["stderr"]),
        (&json!(""), &json!(""))
    );
}

#[test]
fn what_was_dropped_is_told() {
    let spill = Spill::new(std::env::temp_dir());
    let kept = [
        Kept {
            dropped: 7,
            ..Kept::default()
        },
        Kept::default(),
    ];
    let mut out = Vec::new();
    write_with_output(b"{\"a\":1}", &kept, &spill, &mut out).unwrap();
    assert_eq!(
        out,
        b"{\"a\":1,\"stdout\":\"\",\"stdout_dropped\":7,\"stderr\":\"\"}\n"
    );
}

#[test]
fn a_long_output_comes_back() {
    for text in [
        "ä€🐟\r\n".repeat(100_000).into_bytes(),
        b"\xff\xfe".repeat(150_001),
    ] {
        let object = parsed(&with_output(&text, b"x"));
        assert!(stream(&object, "stdout") == text);
        assert_eq!(stream(&object, "stderr"), b"x");
    }
}

proptest! {
    #[test]
    fn any_output_comes_back(stdout: Vec<u8>, stderr in ".*") {
        let line = with_output(&stdout, stderr.as_bytes());
        prop_assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
        let steering = std::str::from_utf8(&line).unwrap().chars().find(|c| *c != '\n' && steers_terminal(*c));
        prop_assert_eq!(steering, None);
        let object = parsed(&line);
        prop_assert_eq!(stream(&object, "stdout"), stdout);
        prop_assert_eq!(stream(&object, "stderr"), stderr.as_bytes());
    }
}
