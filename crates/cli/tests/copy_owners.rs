//! `sshoal put` and `sshoal get` with owners, with real sshd: `--owner` and `--chown`, as root and as somebody else, by names that both
//! sides know and by names that one of them knows.

#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use sshoal_testbed::sshd::{RealSshd, SshdSpec};
use support::copying::{
    SOMEBODY, as_somebody, command, give, moved, parts, real, sshoal, text, write,
};
use support::program::{Ended, Running};
use support::{Shoal, noise, shared_folder};
use tempfile::TempDir;

/// Numbers that nobody has.
const NOBODY: (u32, u32) = (412_345, 423_456);
/// daemon and bin, wherever there are Debian's accounts.
const DAEMON: (u32, u32) = (1, 2);

/// Only root makes files of others.
fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        println!("not tried: only root gives files away");
    }
    is_root
}

/// A tree of several people's: folders, a link, a program with set-user-ID, and many small files.
fn tree(dir: &TempDir) -> PathBuf {
    let tree = dir.path().join("tree");
    fs::create_dir_all(tree.join("a/b")).unwrap();
    for number in 0..150 {
        let path = tree.join(format!("a/b/{number}"));
        write(&path, &noise(1 + number * 31), 0o644);
        give(&path, [NOBODY, DAEMON, (0, 0)][number % 3]);
    }
    write(&tree.join("a/large"), &noise(300_000), 0o640);
    give(&tree.join("a/large"), DAEMON);
    symlink("large", tree.join("a/link")).unwrap();
    give(&tree.join("a/link"), NOBODY);
    write(&tree.join("a/program"), b"#!/bin/true\n", 0o755);
    give(&tree.join("a/program"), DAEMON);
    fs::set_permissions(tree.join("a/program"), Permissions::from_mode(0o4755)).unwrap();
    give(&tree.join("a/b"), NOBODY);
    give(&tree, DAEMON);
    tree
}

/// Whom everything below a folder belongs to, and its mode.
fn owned(folder: &Path) -> BTreeMap<Vec<u8>, (u32, u32, u32)> {
    let mut found = BTreeMap::new();
    let mut paths = vec![folder.to_owned()];
    while let Some(path) = paths.pop() {
        let it = fs::symlink_metadata(&path).unwrap();
        if it.is_dir() {
            paths.extend(
                fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        }
        let below = path.strip_prefix(folder).unwrap().as_os_str().as_bytes();
        found.insert(below.to_vec(), (it.uid(), it.gid(), it.mode()));
    }
    found
}

/// The same without set-user-ID.
fn harmless(folder: &Path) -> BTreeMap<Vec<u8>, (u32, u32, u32)> {
    let mut found = owned(folder);
    found.values_mut().for_each(|it| it.2 &= !0o6000);
    found
}

fn owner(path: &Path) -> (u32, u32) {
    let it = fs::symlink_metadata(path).unwrap();
    (it.uid(), it.gid())
}

/// `sshoal put` or `get` with root's account on the host.
fn as_root(shoal: &Shoal<RealSshd>, words: &[&str]) -> Ended {
    let words = [&words[..1], &["-l", "root"], &words[1..]].concat();
    sshoal(shoal, &words)
}

/// Commands that the host has been asked to run (session.c, do_exec, at level VERBOSE): those of batches.
fn commands(shoal: &Shoal<RealSshd>) -> usize {
    let log = shoal.hosts.log(0);
    log.matches("Starting session: command").count()
}

#[test]
fn what_is_sent_keeps_its_owners_however_it_goes() {
    if !is_root() {
        return;
    }
    let shoal = real(SshdSpec::new(1));
    let dir = tempfile::tempdir().unwrap();
    let tree = tree(&dir);
    for method in ["tar", "sftp"] {
        let target = shared_folder();
        let to = text(target.path());
        let words = [
            "put",
            "-r",
            "-p",
            "--owner",
            "--json",
            "--method",
            method,
            text(&tree),
            to,
        ];
        as_root(&shoal, &words).expect(0);
        let there = target.path().join("tree");
        assert!(
            owned(&there) == owned(&tree),
            "{method}: {:?}",
            owned(&there)
        );
        // A batch and its names; no command is needed for owners.
        assert_eq!(commands(&shoal), 2, "{method}");
        // Again nothing is sent, and owners alone are set where they are others.
        assert_eq!(moved(&as_root(&shoal, &words).expect(0)), 0);
        for name in ["a/b/7", "a/large", "a/link", "a/program", "a/b", ""] {
            give(&there.join(name), (77, 78));
        }
        fs::set_permissions(there.join("a/program"), Permissions::from_mode(0o4755)).unwrap();
        let inode = fs::metadata(there.join("a/large")).unwrap().ino();
        assert_eq!(moved(&as_root(&shoal, &words).expect(0)), 0);
        assert!(
            owned(&there) == owned(&tree),
            "{method}: {:?}",
            owned(&there)
        );
        assert_eq!(fs::metadata(there.join("a/large")).unwrap().ino(), inode);
        assert_eq!(parts(target.path()), Vec::<Vec<u8>>::new());
    }
}

#[test]
fn one_owner_is_for_all_and_half_of_one_leaves_the_other_half() {
    if !is_root() {
        return;
    }
    let shoal = real(SshdSpec::new(1));
    let dir = tempfile::tempdir().unwrap();
    let tree = tree(&dir);
    for (chown, expected) in [
        ("daemon:bin", DAEMON),
        (":bin", (0, 2)),
        ("412345", (412_345, 0)),
        ("daemon:423456", (1, 423_456)),
    ] {
        for method in ["tar", "sftp"] {
            let target = shared_folder();
            let to = text(target.path());
            let words = [
                "put",
                "-r",
                "--chown",
                chown,
                "--method",
                method,
                text(&tree),
                to,
            ];
            as_root(&shoal, &words).expect(0);
            let there = owned(&target.path().join("tree"));
            assert_eq!(there.len(), owned(&tree).len());
            for (path, (user, group, _)) in there {
                let shown = String::from_utf8_lossy(&path);
                assert_eq!((user, group), expected, "{chown} {method} {shown}");
            }
        }
    }
    // A file that is there, and standard input.
    let target = shared_folder();
    let file = target.path().join("file");
    fs::write(&file, "old").unwrap();
    give(&file, NOBODY);
    let (reader, mut writer) = std::io::pipe().unwrap();
    let words = [
        "put",
        "-l",
        "root",
        "--chown",
        "daemon:bin",
        "-",
        text(&file),
    ];
    let mut putting = command(&shoal, &words);
    putting.stdin(reader);
    let running = Running::start(&mut putting);
    drop(putting);
    writer.write_all(b"new").unwrap();
    drop(writer);
    running.wait().expect(0);
    assert_eq!(
        (fs::read(&file).unwrap(), owner(&file)),
        (b"new".to_vec(), DAEMON)
    );
}

/// A host of `internal-sftp` alone, with accounts of its own: `daemon` and `bin` have other numbers there, `onlythere` is not known here.
fn elsewhere() -> (Shoal<RealSshd>, TempDir, PathBuf) {
    let root = tempfile::Builder::new()
        .prefix("sshoal-chroot.")
        .tempdir_in("/")
        .unwrap();
    fs::set_permissions(root.path(), Permissions::from_mode(0o755)).unwrap();
    let etc = root.path().join("etc");
    fs::create_dir(&etc).unwrap();
    let users = "root:x:0:0::/:\ndaemon:x:555:555::/:\nonlythere:x:777:778::/:\n";
    fs::write(etc.join("passwd"), users).unwrap();
    fs::write(
        etc.join("group"),
        "root:x:0:\nbin:x:666:\nonlythere:x:778:\n",
    )
    .unwrap();
    let inside = root.path().join("in");
    fs::create_dir(&inside).unwrap();
    let spec = SshdSpec::new(1)
        .line("Subsystem sftp internal-sftp")
        .line("ForceCommand internal-sftp")
        .line(format!("ChrootDirectory {}", root.path().display()));
    (real(spec), root, inside)
}

#[test]
fn names_have_the_hosts_numbers_in_a_chroot_too() {
    if !is_root() {
        return;
    }
    let (shoal, _root, inside) = elsewhere();
    let dir = tempfile::tempdir().unwrap();
    let from = dir.path().join("from");
    fs::create_dir(&from).unwrap();
    // games is not known there.
    for (name, owner) in [
        ("known", DAEMON),
        ("nobodys", NOBODY),
        ("games", (5, 60)),
        ("root", (0, 0)),
    ] {
        write(&from.join(name), name.as_bytes(), 0o644);
        give(&from.join(name), owner);
    }
    let source = format!("{}/", text(&from));
    let put = |flags: &[&str]| {
        let words = [
            &["put", "-r", "-p", "-v"][..],
            flags,
            &[source.as_str(), "/in/to"],
        ]
        .concat();
        as_root(&shoal, &words)
    };
    let there = |name: &str| owner(&inside.join("to").join(name));
    put(&["--owner"]).expect(0).says(&[
        "kept by number in part",
        "does not know all users and groups",
    ]);
    assert_eq!(there("known"), (555, 666));
    assert_eq!(
        ["nobodys", "games", "root"].map(there),
        [NOBODY, (5, 60), (0, 0)]
    );
    let by_number = put(&["--owner", "--numeric-ids"]).expect(0);
    assert!(!by_number.stderr().contains("by number in part"));
    assert_eq!(["known", "games"].map(there), [DAEMON, (5, 60)]);
    put(&["--chown", "onlythere:onlythere"]).expect(0);
    assert_eq!(there("known"), (777, 778));
    // A name that is known here alone is no name there.
    let ended = as_root(
        &shoal,
        &[
            "put",
            "--chown",
            "games",
            text(&from.join("known")),
            "/in/never",
        ],
    );
    ended
        .expect(3)
        .says(&["the host has no user \"games\"", "give its number"]);
    assert!(!inside.join("never").exists());

    let back = dir.path().join("back");
    give(&inside.join("to/known"), (555, 666));
    give(&inside.join("to/games"), NOBODY);
    as_root(
        &shoal,
        &["get", "-r", "-p", "--owner", "/in/to", text(&back)],
    )
    .expect(0);
    let here = |name: &str| owner(&back.join(shoal.name(0)).join("to").join(name));
    // onlythere is not known here.
    let names = ["known", "nobodys", "games", "root"];
    assert_eq!(names.map(here), [DAEMON, (777, 778), NOBODY, (777, 778)]);
    let words = [
        "get",
        "-r",
        "-p",
        "--owner",
        "--numeric-ids",
        "--json",
        "/in/to",
        text(&back),
    ];
    let again = as_root(&shoal, &words).expect(0);
    assert_eq!((moved(&again), here("known")), (0, (555, 666)));
}

/// A host where accounts are in a directory, which getent asks.
#[test]
fn what_is_in_no_list_is_asked_for_in_a_session() {
    if !is_root() {
        return;
    }
    let programs = shared_folder();
    symlink("/bin/sh", programs.path().join("sh")).unwrap();
    let getent = programs.path().join("getent");
    let script = "#!/bin/sh\ncase $1$2 in passwd\"some one\") echo \"$2:x:31337:5::/:\";; groupstaff2) echo \"$2:*:4711:a,b\";; *) exit 2;; esac\n";
    fs::write(&getent, script).unwrap();
    fs::set_permissions(&getent, Permissions::from_mode(0o755)).unwrap();
    let path = format!("SetEnv PATH={}", programs.path().display());
    let shoal = real(SshdSpec::new(1).line(path));
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("file");
    fs::write(&source, "new").unwrap();
    let target = shared_folder();
    let to = target.path().join("file");
    let put = |chown| as_root(&shoal, &["put", "--chown", chown, text(&source), text(&to)]);
    put("some one:staff2").expect(0);
    assert_eq!(owner(&to), (31_337, 4711));
    put("some one:nosuch")
        .expect(3)
        .says(&["the host has no group \"nosuch\"", "getent"]);
    assert_eq!(owner(&to), (31_337, 4711));
}

#[test]
fn an_account_that_may_not_give_files_away_is_told_so_and_old_files_stay() {
    if !is_root() {
        return;
    }
    let shoal = real(SshdSpec::new(1));
    let dir = tempfile::tempdir().unwrap();
    let from = dir.path().join("from");
    fs::create_dir(&from).unwrap();
    for number in 0..80 {
        write(&from.join(number.to_string()), &noise(number * 31), 0o644);
    }
    let source = format!("{}/", text(&from));
    let account = |flag: &str| {
        let mut id = Command::new("id");
        let output = id.args([flag, shoal.hosts.user()]).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let group = format!(":{}", account("-g"));
    for method in ["tar", "sftp"] {
        let target = shared_folder();
        let old = target.path().join("7");
        fs::write(&old, "old").unwrap();
        fs::set_permissions(&old, Permissions::from_mode(0o666)).unwrap();
        let put = |owners: &[&str]| {
            let to = text(target.path());
            let words = [
                &["put", "-r", "--method", method][..],
                owners,
                &[source.as_str(), to],
            ]
            .concat();
            sshoal(&shoal, &words)
        };
        // All of it is root's.
        for owners in [&["--owner"][..], &["--chown", "daemon"]] {
            let ended = put(owners).expect(3);
            ended.says(&["/7: giving it to ", "permission denied", "needs root there"]);
            assert_eq!(fs::read(&old).unwrap(), b"old");
            assert_eq!(fs::read_dir(target.path()).unwrap().count(), 1, "{method}");
        }
        // Its own group it may give everything but what is not its own: the target's folder.
        let ended = put(&["--chown", &group]).expect(3);
        ended.says(&["giving it to :"]);
        assert_eq!(fs::read(&old).unwrap(), noise(7 * 31));
        let user: u32 = account("-u").parse().unwrap();
        assert_eq!(owner(&old), (user, account("-g").parse().unwrap()));
        assert_eq!(parts(target.path()), Vec::<Vec<u8>>::new());
    }
}

#[test]
fn what_is_fetched_keeps_its_owners_however_it_comes() {
    if !is_root() {
        return;
    }
    let shoal = real(SshdSpec::new(1));
    let dir = tempfile::tempdir().unwrap();
    let tree = tree(&dir);
    for method in ["tar", "sftp"] {
        let back = dir.path().join(method);
        let (from, to) = (text(&tree), text(&back));
        let words = [
            "get", "-r", "-p", "--owner", "--json", "--method", method, from, to,
        ];
        as_root(&shoal, &words).expect(0);
        let here = back.join(shoal.name(0)).join("tree");
        assert!(
            owned(&here) == harmless(&tree),
            "{method}: {:?}",
            owned(&here)
        );
        for name in ["a/b/7", "a/large", "a/link", "a/b", ""] {
            give(&here.join(name), (77, 78));
        }
        let again = as_root(&shoal, &words).expect(0);
        // A mode that differs from the host's does not matter here.
        assert_eq!(moved(&again), 0);
        assert!(
            owned(&here) == harmless(&tree),
            "{method}: {:?}",
            owned(&here)
        );
        let words = [
            "get",
            "-r",
            "-p",
            "--chown",
            "daemon:bin",
            "--method",
            method,
            from,
            to,
        ];
        as_root(&shoal, &words).expect(0);
        for (path, (user, group, mode)) in owned(&here) {
            let shown = String::from_utf8_lossy(&path);
            assert_eq!(((user, group), mode & 0o6000), (DAEMON, 0), "{shown}");
        }
    }
}

#[test]
fn with_hashes_what_is_unchanged_gets_its_owner_too() {
    if !is_root() {
        return;
    }
    let shoal = real(SshdSpec::new(1));
    let dir = tempfile::tempdir().unwrap();
    let tree = tree(&dir);
    let target = shared_folder();
    let (from, to) = (text(&tree), text(target.path()));
    let words = [
        "put",
        "-r",
        "-p",
        "--checksum",
        "--owner",
        "--json",
        from,
        to,
    ];
    as_root(&shoal, &words).expect(0);
    let there = target.path().join("tree");
    for name in ["a/b/7", "a/large"] {
        give(&there.join(name), (77, 78));
    }
    assert_eq!(moved(&as_root(&shoal, &words).expect(0)), 0);
    assert!(owned(&there) == owned(&tree), "{:?}", owned(&there));
    let back = dir.path().join("back");
    let words = [
        "get",
        "-r",
        "-p",
        "--checksum",
        "--owner",
        "--json",
        from,
        text(&back),
    ];
    as_root(&shoal, &words).expect(0);
    let here = back.join(shoal.name(0)).join("tree");
    give(&here.join("a/large"), (77, 78));
    assert_eq!(moved(&as_root(&shoal, &words).expect(0)), 0);
    assert!(owned(&here) == harmless(&tree), "{:?}", owned(&here));
}

#[test]
fn who_is_not_root_gets_everything_and_is_told_once() {
    if !is_root() {
        return;
    }
    let shoal = real(SshdSpec::new(1));
    let there = shared_folder();
    let from = there.path().join("from");
    fs::create_dir(&from).unwrap();
    for (name, owner) in [("1", DAEMON), ("2", NOBODY), ("mine", SOMEBODY)] {
        write(&from.join(name), name.as_bytes(), 0o644);
        give(&from.join(name), owner);
    }
    give(&from, SOMEBODY);
    let back = shared_folder();
    let to = text(back.path());
    let ended = as_somebody(&shoal, &["get", "-r", "-p", "--owner", text(&from), to]).expect(3);
    ended.says(&["only root gives files away here", "run it as root"]);
    let here = back.path().join(shoal.name(0)).join("from");
    for name in ["1", "2", "mine"] {
        assert_eq!(fs::read(here.join(name)).unwrap(), name.as_bytes());
        assert_eq!(owner(&here.join(name)), SOMEBODY);
    }
    // What is one's own is no trouble.
    let mine = from.join("mine");
    as_somebody(&shoal, &["get", "--owner", text(&mine), to]).expect(0);
    let ended = as_somebody(&shoal, &["get", "--chown", "daemon", text(&mine), to]).expect(2);
    ended.says(&["only root gives files to daemon here"]);
}

#[test]
fn what_does_not_go_together_is_refused_before_anything_is_done() {
    let shoal = real(SshdSpec::new(1));
    for (words, says) in [
        (
            &["put", "--owner", "-", "/tmp/never"][..],
            "standard input has no owner",
        ),
        (&["get", "--owner", "/etc/motd", "-"], "put in place"),
        (&["get", "--chown", "0:0", "/etc/motd", "-"], "put in place"),
        (
            &["get", "--chown", "no-such-user", "/etc/motd", "/tmp"],
            "no user \"no-such-user\"",
        ),
        (
            &["get", "--chown", ":no-such-group", "/etc/motd", "/tmp"],
            "no group",
        ),
        (
            &["put", "--chown", "a:", "/etc/motd", "/tmp/never"],
            "neither a name nor a number",
        ),
        (
            &["put", "--chown", "", "/etc/motd", "/tmp/never"],
            "USER:GROUP",
        ),
        (
            &["put", "--owner", "--chown", "0", "/etc/motd", "/tmp/never"],
            "cannot be used with",
        ),
    ] {
        sshoal(&shoal, words).expect(2).says(&[says]);
    }
    assert_eq!(shoal.hosts.logins(), 0);
    let words = [
        "put",
        "--dry-run",
        "--chown",
        "www-data:",
        "/etc/passwd",
        "/x",
    ];
    sshoal(&shoal, &words).expect(2);
    let words = [
        "put",
        "--dry-run",
        "--chown",
        "any:body",
        "/etc/passwd",
        "/x",
    ];
    let shown = sshoal(&shoal, &words).expect(0);
    assert!(
        shown.stdout().contains("to /x, for any:body"),
        "{}",
        shown.stdout()
    );
}

/// Somebody on the host puts a link to what is not his where root is to set an owner.
#[test]
fn no_owner_is_set_through_a_link() {
    if !is_root() {
        return;
    }
    let shoal = real(SshdSpec::new(1));
    let dir = tempfile::tempdir().unwrap();
    let tree = dir.path().join("tree");
    fs::create_dir_all(tree.join("folder")).unwrap();
    write(&tree.join("folder/file"), b"x", 0o644);
    let outside = shared_folder();
    fs::create_dir(outside.path().join("secret")).unwrap();
    let target = shared_folder();
    let there = target.path().join("tree");
    fs::create_dir(&there).unwrap();
    symlink(outside.path().join("secret"), there.join("folder")).unwrap();
    let words = [
        "put",
        "-r",
        "--chown",
        "daemon:bin",
        text(&tree),
        text(target.path()),
    ];
    as_root(&shoal, &words).expect(0);
    assert_eq!(owner(&outside.path().join("secret")), (0, 0));
    assert_eq!(owner(&outside.path().join("secret/file")), DAEMON);
    assert_eq!(owner(&there), DAEMON);
}
