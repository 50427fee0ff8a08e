//! `sshoal put` with real sshd and what modes forbid: folders that their owner may not write to, files that nobody may read, and what is
//! no file at all, here and there.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs::{self, Permissions};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use sshoal_testbed::sshd::{Layout, RealSshd, SshdSpec};
use support::copying::{listing, parts, real, sshoal, text, write};
use support::program::{Ended, Running};
use support::{Shoal, noise, shared_folder};

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

fn make_pipe(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

/// Adds files to a folder here that its mode closes.
fn add(folder: &Path, mode: u32, names: &[String]) {
    fs::create_dir_all(folder).unwrap();
    set_mode(folder, 0o755);
    for name in names {
        write(&folder.join(name), &noise(name.len() * 100), 0o444);
    }
    set_mode(folder, mode);
}

#[test]
fn what_is_new_in_a_folder_that_its_owner_may_not_write_to_arrives_and_its_mode_stays() {
    let shoal = real(SshdSpec::new(1));
    for method in ["tar", "sftp"] {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("tree");
        let target = shared_folder();
        let there = target.path().join("tree");
        let (from, to) = (text(&tree), text(target.path()));
        let closed = [
            ("a", 0o555),
            ("a/inner", 0o500),
            ("b", 0o1575),
            ("c", 0o600),
        ];
        let closed = if is_root() { &closed[..] } else { &closed[..3] };
        let names = |round: usize| (0..30).map(move |number| format!("{round}-{number}"));
        for round in 0..2 {
            fs::create_dir_all(tree.join("a")).unwrap();
            set_mode(&tree.join("a"), 0o755);
            for (name, mode) in closed.iter().rev() {
                add(&tree.join(name), *mode, &names(round).collect::<Vec<_>>());
            }
            sshoal(&shoal, &["put", "-r", "-p", "--method", method, from, to]).expect(0);
            assert!(listing(&tree) == listing(&there), "{method}, round {round}");
        }
        // A folder, and a link, in one; and nobody asks for modes.
        set_mode(&tree.join("a"), 0o755);
        add(&tree.join("a/new"), 0o755, &["x".to_owned()]);
        symlink("x", tree.join("a/link")).unwrap();
        sshoal(&shoal, &["put", "-r", "--method", method, from, to]).expect(0);
        assert!(there.join("a/new/x").exists());
        assert_eq!(fs::read_link(there.join("a/link")).unwrap(), Path::new("x"));
        for (name, expected) in closed {
            assert_eq!(mode(&there.join(name)), *expected, "{name}");
        }
        assert_eq!(parts(target.path()), Vec::<Vec<u8>>::new());
    }
}

#[test]
fn a_target_that_its_owner_may_not_write_to_takes_what_is_new_and_its_mode_stays() {
    let shoal = real(SshdSpec::new(1));
    let dir = tempfile::tempdir().unwrap();
    let (tree, more) = (dir.path().join("tree"), dir.path().join("more"));
    let target = shared_folder();
    let there = target.path().join("tree");
    let contents = format!("{}/", text(&tree));
    add(&tree, 0o555, &["first".to_owned()]);
    sshoal(
        &shoal,
        &["put", "-r", "-p", text(&tree), text(target.path())],
    )
    .expect(0);
    assert_eq!(mode(&there), 0o555);
    for method in ["tar", "sftp"] {
        // A file, a folder, and what is in one.
        let single = dir.path().join(method);
        write(&single, b"single", 0o644);
        let to = text(&there);
        sshoal(&shoal, &["put", "--method", method, text(&single), to]).expect(0);
        assert_eq!(fs::read(there.join(method)).unwrap(), b"single");
        assert_eq!(mode(&there), 0o555);
        let names: Vec<String> = (0..70).map(|it| format!("{method}-{it}")).collect();
        add(&more, 0o555, &names);
        sshoal(
            &shoal,
            &["put", "-r", "-p", "--method", method, text(&more), to],
        )
        .expect(0);
        assert!(listing(&more) == listing(&there.join("more")), "{method}");
        assert_eq!(mode(&there), 0o555);
        add(&tree, 0o555, &names);
        sshoal(
            &shoal,
            &["put", "-r", "-p", "--method", method, &contents, to],
        )
        .expect(0);
        let came = fs::read(there.join(&names[5])).unwrap();
        assert_eq!(came, fs::read(tree.join(&names[5])).unwrap());
        assert_eq!(mode(&there), 0o555);
    }
    assert_eq!(parts(target.path()), Vec::<Vec<u8>>::new());
}

#[test]
fn what_nobody_may_read_is_verified_all_the_same() {
    if !is_root() {
        println!("not tried: only root reads such files here");
        return;
    }
    let shoal = real(SshdSpec::new(1));
    for method in ["tar", "sftp"] {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("tree");
        fs::create_dir(&tree).unwrap();
        for number in 0..80 {
            let mode = [0o644, 0, 0o200, 0o444][number % 4];
            write(&tree.join(number.to_string()), &noise(number * 37), mode);
        }
        write(&tree.join("large"), &noise(5_000_000), 0);
        let target = shared_folder();
        let words = [
            "put", "-r", "-p", "-v", "--json", "--verify", "--method", method,
        ];
        let words = [&words[..], &[text(&tree), text(target.path())]].concat();
        let ended = sshoal(&shoal, &words).expect(0);
        assert!(
            ended.stdout().contains(r#""verified":81,"#),
            "{}",
            ended.stdout()
        );
        assert!(!ended.stderr().contains("one by one"), "{}", ended.stderr());
        let there = target.path().join("tree");
        assert!(listing(&tree) == listing(&there), "{method}");
        assert_eq!(parts(target.path()), Vec::<Vec<u8>>::new());
    }
}

/// As somebody whom modes bind, even if he is root.
fn bound(shoal: &Shoal<RealSshd>, words: &[&str]) -> Ended {
    let program = env!("CARGO_BIN_EXE_sshoal");
    let mut command = match is_root() {
        true => {
            let mut command = shoal.user.command("setpriv");
            command.arg("--bounding-set=-dac_override,-dac_read_search");
            command.arg(program);
            command
        }
        false => shoal.user.command(program),
    };
    command
        .arg(words[0])
        .args(["-F", &shoal.file("ssh_config")])
        .args(["-f", &shoal.file("hosts")])
        .args(&words[1..]);
    Running::start(&mut command).wait()
}

#[test]
fn what_cannot_be_read_here_is_told_and_the_rest_is_sent() {
    let mut spec = SshdSpec::new(2);
    spec.layout = Layout::Shared;
    let shoal = real(spec);
    let dir = tempfile::tempdir().unwrap();
    let tree = dir.path().join("tree");
    fs::create_dir_all(tree.join("closed")).unwrap();
    for name in ["first", "closed/hidden", "last", "unreadable"] {
        write(&tree.join(name), name.as_bytes(), 0o644);
    }
    make_pipe(&tree.join("pipe"));
    let socket = UnixListener::bind(tree.join("socket")).unwrap();
    set_mode(&tree.join("unreadable"), 0);
    set_mode(&tree.join("closed"), 0);
    let target = shared_folder();
    let words = ["put", "-r", text(&tree), text(target.path())];
    let said = bound(&shoal, &words).expect(3).stderr();
    for (name, why) in [
        ("pipe", "it is neither a file nor a folder"),
        ("socket", "it is neither a file nor a folder"),
        ("closed", "reading here: Permission denied"),
    ] {
        let line = format!("sshoal: {}: {why}", text(&tree.join(name)));
        assert_eq!(said.matches(&line).count(), 1, "{line}: {said}");
    }
    assert!(said.contains("opening here: Permission denied"), "{said}");
    assert!(said.contains("transfer: "), "{said}");
    let there = target.path().join("tree");
    let mut names: Vec<_> = fs::read_dir(&there)
        .unwrap()
        .map(|it| it.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["closed", "first", "last"]);
    assert_eq!(fs::read(there.join("last")).unwrap(), b"last");
    assert_eq!(fs::read_dir(there.join("closed")).unwrap().count(), 0);
    // Nothing else has failed, and each host has: also where that is all.
    fs::remove_file(tree.join("unreadable")).unwrap();
    let words = ["put", "-r", "--json", text(&tree), text(target.path())];
    let shown = bound(&shoal, &words).expect(3).stdout();
    for host in 0..2 {
        let name = format!("\"{}\"", shoal.name(host));
        let line = shown.lines().find(|line| line.contains(&name)).unwrap();
        assert!(line.contains(r#""failure":"transfer""#), "{line}");
        assert!(line.contains(r#""failed":3,"#), "{line}");
    }
    // What is named itself is a mistake.
    for name in ["pipe", "socket", "closed"] {
        let from = tree.join(name);
        let ended = bound(&shoal, &["put", "-r", text(&from), text(target.path())]);
        ended.expect(2).says(&[text(&from), "nothing was sent"]);
    }
    drop(socket);
    set_mode(&tree.join("closed"), 0o755);
}

#[test]
fn a_link_a_pipe_and_a_socket_are_replaced_and_a_device_is_not() {
    let shoal = real(SshdSpec::new(1));
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("source");
    fs::write(&source, "new").unwrap();
    let target = shared_folder();
    let at = |name: &str| target.path().join(name);
    fs::write(at("other"), "old").unwrap();
    symlink("other", at("link")).unwrap();
    symlink("nowhere", at("dangling")).unwrap();
    make_pipe(&at("pipe"));
    drop(UnixListener::bind(at("socket")).unwrap());
    for name in ["link", "dangling", "pipe", "socket"] {
        sshoal(&shoal, &["put", text(&source), text(&at(name))]).expect(0);
        let there = fs::symlink_metadata(at(name)).unwrap();
        assert!(there.is_file(), "{name} is {:?}", there.file_type());
        assert_eq!(fs::read(at(name)).unwrap(), b"new");
    }
    assert_eq!(fs::read(at("other")).unwrap(), b"old");
    assert!(!at("nowhere").exists());
    let ended = sshoal(&shoal, &["put", text(&source), "/dev/null"]).expect(3);
    ended.says(&["a device is there, and is not replaced by a file"]);
    let null = fs::symlink_metadata("/dev/null").unwrap();
    assert!(null.file_type().is_char_device());
}
