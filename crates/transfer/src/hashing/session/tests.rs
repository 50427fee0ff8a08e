//! What is asked of a host's hashing program, what its answers mean, and the programs that hosts have.

#![allow(clippy::unwrap_used)]

use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use super::*;

fn ready() -> HostHashes {
    let mut hashes = HostHashes::new();
    assert!(!hashes.wants_session(), "nobody wants it yet");
    hashes.want();
    assert!(hashes.wants_session());
    hashes.opened();
    hashes.transmitted(GREETING.len());
    hashes.hear(b"Welcome!\nsshoal-end\n");
    assert_eq!(hashes.stage, Stage::Opening);
    hashes.hear(b"sshoal-re");
    hashes.hear(b"ady\n");
    assert_eq!(hashes.stage, Stage::Ready);
    hashes
}

fn sent(hashes: &mut HostHashes) -> String {
    hashes.flush();
    let sent = String::from_utf8(hashes.transmit().to_vec()).unwrap();
    hashes.transmitted(sent.len());
    sent
}

fn answers(hashes: &mut HostHashes) -> Vec<(u64, HostHash)> {
    std::iter::from_fn(|| hashes.poll_answer())
        .map(|(key, hash)| match key {
            HashKey::There(number) | HashKey::Arrived(number) => (number, hash),
        })
        .collect()
}

fn ask(hashes: &mut HostHashes, number: u64, path: &[u8], octets: u64) {
    hashes.ask(HashKey::There(number), path, octets);
}

fn line(octet: u8) -> String {
    format!("{}  name\n", FileHash([octet; 32]))
}

#[test]
fn what_is_asked_meanwhile_is_one_group() {
    let mut hashes = ready();
    ask(&mut hashes, 0, b"/a", 5);
    assert_eq!(sent(&mut hashes), "+/a\n.\n");
    ask(&mut hashes, 1, b"b", 5);
    ask(&mut hashes, 2, b"/c", 5);
    assert_eq!(sent(&mut hashes), "", "the host is busy");
    hashes.hear((line(1) + "sshoal-end\n").as_bytes());
    assert_eq!(sent(&mut hashes), "+./b\n+/c\n.\n");
    hashes.hear(format!("-\n{}sshoal-end\n", line(2)).as_bytes());
    let is = |octet| HostHash::Is(FileHash([octet; 32]));
    assert_eq!(
        answers(&mut hashes),
        [(0, is(1)), (1, HostHash::Unreadable), (2, is(2))]
    );
    assert_eq!(hashes.hashing(), None);
}

#[test]
fn large_files_and_names_of_several_lines_are_alone() {
    let mut hashes = ready();
    for (key, path, octets) in [
        (0, &b"/a"[..], 1),
        (1, b"/b\n\\c", 1),
        (2, b"/d", LARGE),
        (3, b"/e", LARGE - 1),
    ] {
        ask(&mut hashes, key, path, octets);
    }
    let mut groups = Vec::new();
    for _ in 0..4 {
        groups.push(sent(&mut hashes));
        hashes.hear(format!("{}sshoal-end\n", line(3)).as_bytes());
    }
    assert_eq!(
        groups,
        ["+/a\n.\n", "=/b\\0012\\0134c\n.\n", "+/d\n:\n", "+/e\n.\n"]
    );
}

#[test]
fn full_groups_are_two_at_a_time() {
    let mut hashes = ready();
    for key in 0..3 * GROUP as u64 {
        ask(&mut hashes, key, b"/x", 1);
    }
    assert_eq!(sent(&mut hashes).matches(".\n").count(), GROUPS);
    assert_eq!(hashes.hashing(), Some(2 * GROUP as u64));
}

#[test]
fn answers_of_another_number_are_none() {
    for lines in [0, 1, 3, 9] {
        let mut hashes = ready();
        ask(&mut hashes, 0, b"/a", 1);
        ask(&mut hashes, 1, b"/b", 1);
        sent(&mut hashes);
        hashes.hear((line(1).repeat(lines) + "sshoal-end\n").as_bytes());
        let unreadable = HostHash::Unreadable;
        assert_eq!(answers(&mut hashes), [(0, unreadable), (1, unreadable)]);
        // The next group is not confused by it.
        ask(&mut hashes, 2, b"/c", 1);
        sent(&mut hashes);
        hashes.hear((line(5) + "sshoal-end\n").as_bytes());
        let is = HostHash::Is(FileHash([5; 32]));
        assert_eq!(answers(&mut hashes), [(2, is)]);
    }
}

#[test]
fn whoever_waits_is_told_when_nobody_answers_any_more() {
    let mut hashes = ready();
    ask(&mut hashes, 0, b"/a", 1);
    sent(&mut hashes);
    ask(&mut hashes, 1, b"/b", 1);
    hashes.end();
    ask(&mut hashes, 2, b"/c", 1);
    let gone = HostHash::Gone;
    assert_eq!(answers(&mut hashes), [(0, gone), (1, gone), (2, gone)]);
    assert_eq!(hashes.stage, Stage::Over(ENDED));
    let mut refused = HostHashes::new();
    refused.want();
    refused.opened();
    refused.end();
    assert_eq!(refused.stage, Stage::Over(NO_PROGRAM));
    assert!(!refused.wants_session());
}

/// Asks a shell with these programs in its PATH.
fn asked(shell: &Path, path: &str, home: &Path, files: &[&[u8]]) -> Vec<HostHash> {
    let mut child = Command::new(shell)
        .args(["-c", &HostHashes::command()])
        .env("PATH", path)
        .env("HOME", home)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut hashes = HostHashes::new();
    hashes.want();
    hashes.opened();
    let mut said = [0; 4096];
    let mut found = Vec::new();
    let mut is_asked = false;
    while found.len() < files.len() {
        let sent = hashes.transmit().to_vec();
        child.stdin.as_mut().unwrap().write_all(&sent).unwrap();
        hashes.transmitted(sent.len());
        let octets = child.stdout.as_mut().unwrap().read(&mut said).unwrap();
        assert!(octets > 0, "it has ended");
        hashes.hear(&said[..octets]);
        if hashes.stage == Stage::Ready && !is_asked {
            is_asked = true;
            for (number, file) in files.iter().enumerate() {
                let octets = if number % 5 == 4 { LARGE } else { 1 };
                ask(&mut hashes, number as u64, file, octets);
            }
        }
        hashes.flush();
        found.extend(answers(&mut hashes));
    }
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    found.sort_unstable_by_key(|(number, _)| *number);
    found.into_iter().map(|(_, hash)| hash).collect()
}

/// What the machine's own program says of a file's contents.
fn expected(path: &Path) -> HostHash {
    let Ok(file) = fs::File::open(path) else {
        return HostHash::Unreadable;
    };
    let said = Command::new("sha256sum").stdin(file).output().unwrap();
    FileHash::of_line(&said.stdout).map_or(HostHash::Unreadable, HostHash::Is)
}

#[test]
fn gnu_s_and_busybox_tools_hash_files_of_every_name() {
    let home = tempfile::tempdir().unwrap();
    let programs = tempfile::tempdir().unwrap();
    for applet in ["sh", "sha256sum"] {
        symlink("/bin/busybox", programs.path().join(applet)).unwrap();
    }
    let names: Vec<Vec<u8>> = [
        &b"plain"[..],
        b"two  spaces ",
        b"-c",
        b"back\\slash",
        b"back\\0012slash",
        b"n\xff\xfe",
        b"several\nlines\n",
        b"both\\\n\\n",
        b"return\r",
        b"+plus",
        b"=equals",
        b"'quote\"$(id)`id`",
        b"*",
    ]
    .map(<[u8]>::to_vec)
    .to_vec();
    for (number, name) in names.iter().enumerate() {
        fs::write(home.path().join(OsStr::from_bytes(name)), [number as u8; 9]).unwrap();
    }
    fs::create_dir(home.path().join("folder")).unwrap();
    let mut files: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
    let absolute = home.path().join("plain");
    files.extend([&b"missing"[..], b"folder", absolute.as_os_str().as_bytes()]);
    let expected: Vec<HostHash> = files
        .iter()
        .map(|file| expected(&home.path().join(OsStr::from_bytes(file))))
        .collect();
    assert_eq!(
        expected[names.len()..names.len() + 2],
        [HostHash::Unreadable; 2]
    );
    let gnu = std::env::var("PATH").unwrap();
    let busybox = programs.path().to_str().unwrap();
    let busybox_sh = programs.path().join("sh");
    for (shell, path) in [
        (Path::new("/bin/sh"), gnu.as_str()),
        (Path::new("/bin/bash"), &gnu),
        (&busybox_sh, busybox),
    ] {
        let found = asked(shell, path, home.path(), &files);
        assert_eq!(found, expected, "{}", shell.display());
        // All of them readable: one process for most.
        let found = asked(shell, path, home.path(), &files[..names.len()]);
        assert_eq!(found, expected[..names.len()], "{}", shell.display());
    }
}

#[test]
fn without_a_hashing_program_it_ends() {
    let programs = tempfile::tempdir().unwrap();
    symlink("/bin/sh", programs.path().join("sh")).unwrap();
    let ended = Command::new("/bin/sh")
        .args(["-c", &HostHashes::command()])
        .env("PATH", programs.path())
        .env("HOME", "/")
        .stdin(Stdio::piped())
        .output()
        .unwrap();
    assert_eq!(
        (ended.status.code(), ended.stdout.as_slice()),
        (Some(3), &b""[..])
    );
}
