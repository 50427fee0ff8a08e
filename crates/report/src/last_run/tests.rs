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
    parse_last_run("last", (lines.join("\n") + "\n").as_bytes())
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
    let hosts = parse_last_run("last", (lines.join("\n") + "\n").as_bytes()).unwrap();
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
    assert!(error(&[]).contains("last has no end"));
    assert!(error(&[&host("a", "ok", "null")]).contains("last has no end"));
    let torn = host("a", "ok", "null") + "\n" + &SUMMARY[..SUMMARY.len() / 2];
    let torn = parse_last_run("last", torn.as_bytes());
    assert!(matches!(torn, Err(LastRunError::CutOff { .. })), "{torn:?}");
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
fn the_file_is_private_and_of_the_last_run_from_its_beginning() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state/sshoal/last-run.jsonl");
    let web1 = host("web1", "ok", "null");
    let mut first = ResultFile::begin(&path, None).unwrap();
    first.record(web1.as_bytes()).unwrap();
    let unfinished = read_last_run(&path);
    assert!(matches!(unfinished, Err(LastRunError::CutOff { .. })));
    first.commit(SUMMARY.as_bytes()).unwrap();
    assert_eq!(read_last_run(&path).unwrap().len(), 1);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));

    // As if killed: nothing is committed, and nothing of it is cleaned up.
    let mut killed = ResultFile::begin(&path, None).unwrap();
    killed.record(web1.as_bytes()).unwrap();
    killed.file.flush().unwrap();
    std::mem::forget(killed);
    let unfinished = read_last_run(&path);
    assert!(matches!(unfinished, Err(LastRunError::CutOff { .. })));
    let files = fs::read_dir(path.parent().unwrap()).unwrap().count();
    assert_eq!(files, 1, "nothing else is left");
}

#[test]
fn what_cannot_be_replaced_is_not_taken_for_the_last_run() {
    // PATH_MAX, 4096 octets, has room for the file's path and not for that of another beside it.
    let root = tempfile::tempdir().unwrap();
    let mut dir = root.path().to_owned();
    while dir.as_os_str().len() < 4085 {
        let room = 4085 - dir.as_os_str().len();
        // No folder of no or of one octet is left over.
        let length = if room > 300 { 200 } else { room - 1 };
        dir.push("d".repeat(length.min(250)));
    }
    fs::create_dir_all(&dir).unwrap();
    let path = dir.join("last");
    fs::write(&path, "of the run before").unwrap();
    assert!(ResultFile::begin(&path, None).is_err());
    assert!(!path.exists());
}
