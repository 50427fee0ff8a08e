#![allow(clippy::unwrap_used)]

use std::{collections::HashSet, os::unix::fs::symlink};

use proptest::prelude::*;
use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::*;

fn labels(labels: &[&str]) -> Vec<String> {
    labels.iter().map(|label| (*label).to_owned()).collect()
}

#[test]
fn names_are_readable_and_stay_in_the_directory() {
    let given = labels(&[
        "web1",
        "root@web1:2222",
        "fe80::1%eth0",
        "..",
        ".x",
        "a/b",
        "a%2Fb",
        "",
    ]);
    let names = file_names(&given);
    assert_eq!(
        names,
        [
            "web1",
            "root@web1:2222",
            "fe80::1%25eth0",
            "%2E.",
            "%2Ex",
            "a%2Fb",
            "a%252Fb",
            ""
        ]
    );
}

#[test]
fn long_names_are_numbered() {
    let long = "x".repeat(300);
    let names = file_names(&labels(&[&format!("{long}1"), &format!("{long}2")]));
    assert_eq!(names, ["x".repeat(240), format!("{}~2", "x".repeat(240))]);
}

#[test]
fn thousands_of_hosts_write_in_turn() {
    let dir = tempfile::tempdir().unwrap();
    let hosts: Vec<String> = (0..1000).map(|n| format!("web{n}")).collect();
    let mut out = OutDir::create(dir.path().join("deep/er"), &hosts).unwrap();
    for round in 0..3 {
        for host in 0..hosts.len() {
            out.push(host, Stream::Stdout, format!("{round} {host}\n").as_bytes())
                .unwrap();
            assert!(out.open.len() <= MAX_OPEN);
        }
    }
    for host in 0..hosts.len() {
        out.end(host).unwrap();
        let text = fs::read_to_string(dir.path().join(format!("deep/er/web{host}.out"))).unwrap();
        assert_eq!(text, format!("0 {host}\n1 {host}\n2 {host}\n"));
    }
    assert!(out.open.is_empty());
    assert!(!dir.path().join("deep/er/web0.err").exists());
}

#[test]
fn nothing_of_an_earlier_run_is_left() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["a.out", "a.err", "b.out", "b.err"] {
        fs::write(dir.path().join(name), "old").unwrap();
    }
    let mut out = OutDir::create(dir.path().into(), &labels(&["a", "b"])).unwrap();
    out.push(0, Stream::Stderr, b"\xff\0 new").unwrap();
    out.end(0).unwrap();
    out.end(1).unwrap();
    let read = |name: &str| fs::read(dir.path().join(name)).ok();
    assert_eq!(read("a.out"), Some(vec![]));
    assert_eq!(read("a.err"), Some(b"\xff\0 new".to_vec()));
    assert_eq!(read("b.out"), Some(vec![]));
    assert_eq!(read("b.err"), None);
}

#[test]
fn a_failure_names_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let mut out = OutDir::create(dir.path().into(), &labels(&["a"])).unwrap();
    fs::create_dir(dir.path().join("a.out")).unwrap();
    let error = out.push(0, Stream::Stdout, b"x").unwrap_err();
    assert!(
        error.to_string().contains("cannot write output file"),
        "{error}"
    );
    assert!(error.to_string().contains("a.out"), "{error}");
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(OutDir::create(file.join("dir"), &[]).is_err());
}

/// A directory that somebody else may write to: `a.out` is a symbolic link to a file of ours, `b.out` a FIFO.
fn traps(dir: &Path) -> PathBuf {
    let ours = dir.join("ours");
    fs::write(&ours, "precious").unwrap();
    symlink(&ours, dir.join("a.out")).unwrap();
    let mode = Mode::RUSR | Mode::WUSR;
    mknodat(CWD, dir.join("b.out"), FileType::Fifo, mode, 0).unwrap();
    ours
}

#[test]
fn nothing_but_regular_files_is_written() {
    let dir = tempfile::tempdir().unwrap();
    // The traps are laid when the run has begun.
    let mut out = OutDir::create(dir.path().into(), &labels(&["a", "b"])).unwrap();
    let ours = traps(dir.path());
    for host in [0, 1] {
        let error = out.push(host, Stream::Stdout, b"x").unwrap_err();
        assert!(error.to_string().contains("cannot write"), "{error}");
    }
    // A FIFO that is being read can be opened, and is refused all the same.
    let fifo = dir.path().join("b.out");
    let read = OFlags::RDONLY | OFlags::NONBLOCK;
    let _reader = rustix::fs::open(&fifo, read, Mode::empty()).unwrap();
    let error = out.push(1, Stream::Stdout, b"x").unwrap_err();
    assert!(error.to_string().contains("no regular file"), "{error}");
    assert_eq!(fs::read(&ours).unwrap(), b"precious");
}

#[test]
fn what_is_no_file_is_found_before_anything_is_run() {
    for (host, trap) in [("a", "a.out"), ("b", "b.out")] {
        let dir = tempfile::tempdir().unwrap();
        traps(dir.path());
        let refused = OutDir::create(dir.path().into(), &labels(&[host, "c"]));
        let error = refused.err().unwrap().to_string();
        assert!(error.contains(trap) && error.contains("no regular file"));
        assert!(OutDir::create(dir.path().into(), &labels(&["c", "ours"])).is_ok());
    }
}

proptest! {
    #[test]
    fn names_are_distinct_and_safe(given in proptest::collection::hash_set(".{0,400}|[ab./%]{1,4}", 0..20)) {
        let given: Vec<String> = given.into_iter().collect();
        let names = file_names(&given);
        prop_assert_eq!(names.iter().collect::<HashSet<_>>().len(), given.len());
        for name in names {
            prop_assert!(!name.contains('/') && !name.starts_with('.') && name.len() < 250, "{}", name);
        }
    }
}
