#![allow(clippy::unwrap_used)]

use std::os::unix::fs::PermissionsExt as _;

use super::*;

const SUMMARY: &str = r#"{"type":"summary","version":1}"#;

fn host(target: &str, outcome: &str, failure: &str) -> String {
    format!(
        r#"{{"type":"host","version":1,"target":"{target}","outcome":"{outcome}","failure":{failure}}}"#
    )
}

fn error(lines: &[&str]) -> String {
    parse_last_run("last", lines.join("\n").as_bytes())
        .unwrap_err()
        .to_string()
}

#[test]
fn the_path_follows_xdg() {
    let path = |state: &str, home: &str| {
        let given = |value| Some(OsStr::new(value)).filter(|value| !value.is_empty());
        last_run_path(given(state), given(home))
    };
    assert_eq!(path("/s", "/h"), Some("/s/sshoal/last-run.jsonl".into()));
    assert_eq!(
        path("", "/h"),
        Some("/h/.local/state/sshoal/last-run.jsonl".into())
    );
    assert_eq!(
        path("relative", "/h"),
        Some("/h/.local/state/sshoal/last-run.jsonl".into())
    );
    assert_eq!(path("", ""), None);
}

#[test]
fn hosts_come_back_with_their_endings() {
    let lines = [
        &host("root@web1:2222", "failed", r#""throttled""#),
        &host("web2", "ok", "null"),
        &host("[::1]:22", "exit", r#""exit""#),
        &host("web3", "not-started", "null"),
        r#"{"type":"from the future","version":1}"#,
        SUMMARY,
    ];
    let hosts = parse_last_run("last", lines.join("\n").as_bytes()).unwrap();
    let found: Vec<_> = hosts
        .iter()
        .map(|host| (host.target.to_string(), host.ending))
        .collect();
    assert_eq!(
        found,
        [
            (
                "root@web1:2222".into(),
                PastEnding::Failed(FailureKind::Throttled)
            ),
            ("web2".into(), PastEnding::Ok),
            ("[::1]:22".into(), PastEnding::Failed(FailureKind::Exit)),
            ("web3".into(), PastEnding::NotStarted),
        ]
    );
}

#[test]
fn a_file_that_is_not_whole_is_refused() {
    assert!(error(&[]).contains("last is cut off"));
    assert!(error(&[&host("a", "ok", "null")]).contains("last is cut off"));
    assert!(error(&[&host("a", "ok", "null"), "{\"type\":"]).contains("last:2: not a result"));
    assert!(error(&[r#"{"type":"host","version":2}"#]).contains("schema version 2"));
    assert!(error(&[&host("a[1-2]", "ok", "null")]).contains("is not one host"));
    assert!(error(&[&host("^/etc/passwd", "ok", "null")]).contains("is not one host"));
    assert!(error(&[&host("a;b", "ok", "null")]).contains("cannot stand in a host name"));
    assert!(
        error(&[&host("a", "failed", r#""tired""#)]).contains("\"tired\" is no kind of failure")
    );
    assert!(error(&[&host("a", "failed", "null")]).contains("has no failure"));
}

#[test]
fn the_file_is_private_and_replaced_in_one_step() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state/sshoal/last-run.jsonl");
    let mut first = ResultFile::begin(path.clone()).unwrap();
    first.record(host("web1", "ok", "null").as_bytes()).unwrap();
    assert!(matches!(
        read_last_run(&path),
        Err(LastRunError::Read { .. })
    ));
    first.commit(SUMMARY.as_bytes()).unwrap();
    assert_eq!(read_last_run(&path).unwrap().len(), 1);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));

    let mut interrupted = ResultFile::begin(path.clone()).unwrap();
    interrupted.record(b"half").unwrap();
    drop(interrupted);
    assert_eq!(
        read_last_run(&path).unwrap().len(),
        1,
        "the file of the run before stays"
    );
    assert_eq!(
        fs::read_dir(path.parent().unwrap()).unwrap().count(),
        1,
        "nothing else is left"
    );
}
