//! `--delete` with real sshd: what goes, what stays, and what is told.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use sshoal_testbed::sshd::{RealSshd, SshdSpec};
use support::copying::{listing, parts, real, sshoal, text, write};
use support::{Shoal, noise, shared_folder};
use tempfile::TempDir;

fn tree() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let tree = dir.path().join("tree");
    fs::create_dir_all(tree.join("a/empty")).unwrap();
    for number in 0..150 {
        write(&tree.join(format!("a/{number}")), &noise(number), 0o644);
    }
    write(&tree.join("x"), b"new", 0o644);
    symlink("a/1", tree.join("link")).unwrap();
    (dir, tree)
}

/// More than the tree has, in a folder of its name; returns what it is called, in order.
fn add_surplus(tree: &Path, elsewhere: &Path) -> Vec<String> {
    fs::create_dir_all(tree.join("gone/deep/er")).unwrap();
    for file in ["a/old", "gone/deep/er/f", "gone/.hidden", "old\nname", "z"] {
        write(&tree.join(file), b"old", 0o644);
    }
    for number in 0..300 {
        write(&tree.join(format!("gone/deep/{number:03}")), b"", 0o444);
    }
    fs::create_dir_all(elsewhere).unwrap();
    fs::set_permissions(elsewhere, Permissions::from_mode(0o777)).unwrap();
    write(&elsewhere.join("kept"), b"kept", 0o666);
    symlink(elsewhere, tree.join("outside")).unwrap();
    let mut names: Vec<String> = (0..300).map(|it| format!("gone/deep/{it:03}")).collect();
    let further = [
        "a/old",
        "gone/",
        "gone/.hidden",
        "gone/deep/",
        "gone/deep/er/",
        "gone/deep/er/f",
        "old\\nname",
        "outside",
        "z",
    ];
    names.extend(further.map(str::to_owned));
    names.sort();
    names
}

/// Makes a folder of this name on the host, by the account's own hand, with what is in it here.
fn send(shoal: &Shoal<RealSshd>, here: &Path, target: &Path) {
    sshoal(shoal, &["put", "-r", "-p", text(here), text(target)]).expect(0);
}

/// The paths of all lines that begin so, below the folder.
fn told(output: &str, how: &str, folder: &Path) -> Vec<String> {
    let prefix = format!("{how} {}/", folder.display());
    let lines = output.lines();
    let paths = lines.filter_map(|line| Some(line.split_once(&prefix)?.1.to_owned()));
    let mut paths: Vec<String> = paths.collect();
    paths.sort();
    paths
}

fn without_sftp() -> SshdSpec {
    SshdSpec::new(1).line("Subsystem other /bin/true")
}

#[test]
fn hosts_have_what_was_sent_and_nothing_else() {
    for spec in [SshdSpec::new(1), without_sftp()] {
        let shoal = real(spec);
        let (dir, tree) = tree();
        let target = shared_folder();
        let there = target.path().join("tree");
        write(&target.path().join("beside"), b"kept", 0o644);
        let elsewhere = target.path().join("elsewhere");
        let old = dir.path().join("old/tree");
        fs::create_dir_all(old.join("a")).unwrap();
        let surplus = add_surplus(&old, &elsewhere);
        send(&shoal, &old, target.path());
        let before = listing(&there);
        let put = [
            "put",
            "-r",
            "-p",
            "--delete",
            text(&tree),
            text(target.path()),
        ];
        // It is told, and nothing happens.
        let shown = sshoal(&shoal, &[&put[..], &["--dry-run"]].concat()).expect(0);
        assert_eq!(told(&shown.stdout(), "would delete", &there), surplus);
        assert!(
            shown.stdout().contains("put 151 files"),
            "{}",
            shown.stdout()
        );
        assert!(listing(&there) == before);
        // It happens, and is told if that is wanted.
        let ended = sshoal(&shoal, &[&put[..], &["-v"]].concat()).expect(0);
        assert_eq!(told(&ended.stdout(), "deleted", &there), surplus);
        assert!(
            ended.stderr().contains(", 309 deleted"),
            "{}",
            ended.stderr()
        );
        assert!(listing(&tree) == listing(&there), "nothing else is there");
        let modified = |path: &Path| fs::metadata(path).unwrap().mtime();
        assert_eq!(modified(&there.join("a")), modified(&tree.join("a")));
        assert!(elsewhere.join("kept").exists(), "no link is followed");
        assert!(target.path().join("beside").exists());
        assert_eq!(parts(target.path()), Vec::<Vec<u8>>::new());
        // Again there is nothing to do.
        let again = sshoal(&shoal, &[&put[..], &["--json"]].concat()).expect(0);
        assert!(again.stdout().contains(r#""deleted":0,"octets":0}"#));
        assert!(!again.stdout().contains("deleted /"), "{}", again.stdout());
    }
}

#[test]
fn the_target_itself_is_cleared_for_what_has_no_name() {
    let shoal = real(SshdSpec::new(3));
    let (dir, tree) = tree();
    let target = shared_folder();
    let there = target.path().join("there");
    let old = dir.path().join("there");
    fs::create_dir_all(old.join("a")).unwrap();
    add_surplus(&old, &target.path().join("elsewhere"));
    write(&old.join("keep.log"), b"k", 0o644);
    fs::create_dir_all(old.join("gone/logs")).unwrap();
    write(&old.join("gone/logs/keep.log"), b"k", 0o644);
    write(&old.join(".big.0123abcd.part"), b"p", 0o600);
    send(&shoal, &old, target.path());
    let source = format!("{}/", tree.display());
    // Three hosts with one file system: none takes from the others what they are about to put in place.
    let put = [
        "put",
        "-r",
        "--delete",
        "--exclude",
        "*.log",
        &source,
        text(&there),
    ];
    sshoal(&shoal, &put).expect(0);
    for stays in ["keep.log", "gone/logs/keep.log", ".big.0123abcd.part"] {
        let stays = there.join(stays);
        assert!(stays.exists(), "{}", stays.display());
        fs::remove_file(stays).unwrap();
    }
    fs::remove_dir(there.join("gone/logs")).unwrap();
    fs::remove_dir(there.join("gone")).unwrap();
    let names = |folder: &Path| listing(folder).into_keys().collect::<Vec<_>>();
    assert_eq!(names(&there), names(&tree));
}

#[test]
fn nothing_is_deleted_where_not_everything_was_copied() {
    let shoal = real(SshdSpec::new(1));
    let (dir, tree) = tree();
    let target = shared_folder();
    let there = target.path().join("tree");
    let old = dir.path().join("old/tree");
    fs::create_dir_all(&old).unwrap();
    write(&old.join("a"), b"in the way", 0o644);
    write(&old.join("old"), b"old", 0o644);
    send(&shoal, &old, target.path());
    let put = ["put", "-r", "--delete", text(&tree), text(target.path())];
    sshoal(&shoal, &put).expect(3).says(&[
        "it is to be a folder, and something else is there",
        "nothing was deleted, for something has failed before that",
    ]);
    assert!(there.join("old").exists());
    // What cannot be read here counts, too.
    fs::remove_file(there.join("a")).unwrap();
    let pipe = tree.join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    let nothing = "nothing was deleted";
    sshoal(&shoal, &put).expect(3).says(&[nothing]);
    assert!(there.join("old").exists());
    fs::remove_file(pipe).unwrap();
    sshoal(&shoal, &put).expect(0);
    assert!(!there.join("old").exists());
    // The same on the way back.
    let back = dir.path().join("back");
    let here = back.join(shoal.name(0)).join("tree");
    fs::create_dir_all(here.join("x")).unwrap();
    write(&here.join("old"), b"old", 0o644);
    let get = ["get", "-r", "--delete", text(&there), text(&back)];
    sshoal(&shoal, &get).expect(3).says(&[nothing]);
    assert!(here.join("old").exists());
    fs::remove_dir(here.join("x")).unwrap();
    sshoal(&shoal, &get).expect(0);
    assert!(!here.join("old").exists());
}

#[test]
fn folders_here_have_what_hosts_have_and_nothing_else() {
    let shoal = real(SshdSpec::new(2));
    let (dir, tree) = tree();
    let there = shared_folder();
    let there = there.path().join("tree");
    assert!(
        std::process::Command::new("cp")
            .arg("-a")
            .args([&tree, &there])
            .status()
            .unwrap()
            .success()
    );
    fs::set_permissions(there.parent().unwrap(), Permissions::from_mode(0o755)).unwrap();
    let back = dir.path().join("back");
    let folders = [0, 1].map(|host| back.join(shoal.name(host)).join("tree"));
    let mut surplus = Vec::new();
    for folder in &folders {
        fs::create_dir_all(folder.join("a")).unwrap();
        surplus = add_surplus(folder, &back.join("elsewhere"));
        write(&folder.parent().unwrap().join("beside"), b"kept", 0o644);
    }
    let before = listing(&back);
    let get = ["get", "-r", "-p", "--delete", text(&there), text(&back)];
    let shown = sshoal(&shoal, &[&get[..], &["--dry-run"]].concat()).expect(0);
    for folder in &folders {
        assert_eq!(told(&shown.stdout(), "would delete", folder), surplus);
    }
    assert!(listing(&back) == before);
    let ended = sshoal(&shoal, &[&get[..], &["-v"]].concat()).expect(0);
    for folder in &folders {
        assert_eq!(told(&ended.stdout(), "deleted", folder), surplus);
        assert!(listing(&there) == listing(folder), "nothing else is here");
        assert!(folder.parent().unwrap().join("beside").exists());
    }
    assert!(
        ended.stderr().contains(", 618 deleted"),
        "{}",
        ended.stderr()
    );
    assert!(back.join("elsewhere/kept").exists(), "no link is followed");
}

#[test]
fn what_was_just_sent_through_a_link_is_not_deleted_where_it_went() {
    let shoal = real(SshdSpec::new(1));
    let (dir, _tree) = tree();
    let target = shared_folder();
    let old = dir.path().join("t");
    fs::create_dir_all(old.join("releases/5")).unwrap();
    symlink("releases/5", old.join("current")).unwrap();
    send(&shoal, &old, target.path());
    let here = dir.path().join("s");
    fs::create_dir_all(here.join("current")).unwrap();
    write(&here.join("current/f"), b"new", 0o644);
    let there = target.path().join("t");
    let put = [
        "put",
        "-r",
        "--delete",
        &format!("{}/", here.display()),
        text(&there),
    ];
    sshoal(&shoal, &put)
        .expect(3)
        .says(&["a link stands for the folder", "nothing was deleted"]);
    assert_eq!(fs::read(there.join("releases/5/f")).unwrap(), b"new");
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let shoal = real(SshdSpec::new(1));
    let (_dir, tree) = tree();
    let contents = format!("{}/", tree.display());
    let file = tree.join("x");
    for (words, said) in [
        (
            &["put", "--delete", text(&file), "/tmp/x"][..],
            "--recursive",
        ),
        (
            &["put", "-r", "--delete", text(&file), "/tmp/x"],
            "about folders",
        ),
        (
            &["put", "-r", "--delete", &contents, "//"],
            "would empty the whole host",
        ),
        (
            &["get", "-r", "--delete", "/etc/hosts", "-"],
            "do not go together",
        ),
    ] {
        sshoal(&shoal, words).expect(2).says(&[said]);
    }
}
