//! `sshoal get` of many small files with real sshd: batches that tar makes there, and what becomes of them without.

#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use sshoal_testbed::sshd::{RealSshd, SshdSpec};
use support::copying::{
    SmallDisk, command, commands, listing, parts, programs, real, script, sshoal, text,
    with_programs, write,
};
use support::program::Running;
use support::{Shoal, noise, shared_folder, wait_until};
use tempfile::TempDir;

/// Small files of all kinds, and some that are none, where the account may read them.
fn tree() -> (TempDir, PathBuf) {
    let dir = shared_folder();
    let tree = dir.path().join("tree");
    fs::create_dir_all(tree.join("a/b/empty")).unwrap();
    for number in 0..300 {
        let mode = [0o644, 0o604, 0o755, 0o4755][number % 4];
        write(
            &tree.join(format!("a/b/{number}")),
            &noise(1 + number * 37),
            mode,
        );
    }
    write(&tree.join("a/none"), b"", 0o444);
    write(&tree.join("a/hole"), &[0; 9000], 0o644);
    for name in [
        &b"n\xff\nx"[..],
        b"back\\nslash",
        b"-x",
        b"@x",
        b"two words",
    ] {
        write(&tree.join("a").join(OsStr::from_bytes(name)), name, 0o644);
    }
    let deep = tree.join("long".repeat(40)).join("name".repeat(50));
    fs::create_dir_all(deep.parent().unwrap()).unwrap();
    write(&deep, b"deep", 0o644);
    write(&tree.join("a/large"), &noise(1_000_000), 0o644);
    symlink("../a", tree.join("a/b/link")).unwrap();
    fs::hard_link(tree.join("a/b/7"), tree.join("hard")).unwrap();
    (dir, tree)
}

/// Everything below a folder, without what is not kept when fetching.
fn fetched(folder: &Path) -> BTreeMap<Vec<u8>, (u32, i64, Vec<u8>)> {
    let mut found = listing(folder);
    found.values_mut().for_each(|(mode, ..)| *mode &= !0o6000);
    found
}

/// A host with these programs alone, and a tar of these lines.
fn with_tar(names: &[(&str, &str)], tar: Option<&str>) -> (TempDir, SshdSpec) {
    let programs = programs(names);
    if let Some(lines) = tar {
        script(programs.path(), "tar", lines);
    }
    let spec = with_programs(programs.path());
    (programs, spec)
}

/// The host's folder in what was fetched.
fn host(shoal: &Shoal<RealSshd>, into: &Path) -> PathBuf {
    into.join(shoal.name(0))
}

/// Fetches a tree, fetches it again, changes something, and fetches it once more.
fn comes_and_is_kept(shoal: &Shoal<RealSshd>) {
    let (_dir, tree) = tree();
    let here = TempDir::new().unwrap();
    let to = text(here.path());
    let words = ["get", "-r", "-p", "-v", text(&tree), to];
    let ended = sshoal(shoal, &words).expect(0);
    assert!(!ended.stderr().contains("one by one"), "{}", ended.stderr());
    let came = host(shoal, here.path());
    assert!(
        fetched(&tree) == fetched(&came.join("tree")),
        "what came is not the same"
    );
    assert_eq!(listing(&came).len(), listing(&tree).len() + 1);
    let run = commands(shoal);
    assert!(run > 0, "no batch");
    let words = ["get", "-r", "-p", "--json", text(&tree), to];
    let again = sshoal(shoal, &words).expect(0);
    assert!(
        again.stdout().contains(r#""octets":0}"#),
        "{}",
        again.stdout()
    );
    assert_eq!(commands(shoal), run);
    for number in 0..100 {
        write(&tree.join(format!("a/b/{number}")), b"new", 0o644);
    }
    sshoal(shoal, &words).expect(0);
    assert!(fetched(&tree) == fetched(&came.join("tree")));
    assert!(commands(shoal) > run);
}

#[test]
fn many_small_files_come_in_batches() {
    comes_and_is_kept(&real(SshdSpec::new(1)));
}

#[test]
fn a_host_of_busybox_alone_sends_batches() {
    let applets = ["sh", "tar", "xargs"].map(|applet| (applet, "/bin/busybox"));
    let (_programs, spec) = with_tar(&applets, None);
    comes_and_is_kept(&real(spec));
}

/// What is asked of sftp-server, two hundred times a hundred names, and the names alone: links are not written to a disk.
#[test]
fn a_folder_of_twenty_thousand_names_comes_whole() {
    let shoal = real(SshdSpec::new(1));
    let dir = shared_folder();
    let tree = dir.path().join("tree");
    fs::create_dir(&tree).unwrap();
    for number in 0..19_900 {
        symlink(number.to_string(), tree.join(format!("link {number}"))).unwrap();
    }
    for number in 0..100 {
        write(&tree.join(number.to_string()), &noise(number), 0o644);
    }
    let here = TempDir::new().unwrap();
    sshoal(&shoal, &["get", "-r", "-p", text(&tree), text(here.path())]).expect(0);
    assert!(fetched(&tree) == fetched(&host(&shoal, here.path()).join("tree")));
}

#[test]
fn all_of_them_are_in_the_archives() {
    let keep =
        "case $1 in --help) exec /bin/tar --help;; esac\n/bin/tar \"$@\" | tee -a \"$HOME/sent\"\n";
    let names = [
        ("sh", "/bin/sh"),
        ("xargs", "/usr/bin/xargs"),
        ("tee", "/usr/bin/tee"),
    ];
    let (programs, spec) = with_tar(&names, Some(keep));
    // Where the account may write.
    let sent = programs.path().join("sent");
    fs::write(&sent, "").unwrap();
    fs::set_permissions(&sent, Permissions::from_mode(0o666)).unwrap();
    let tar = programs.path().join("tar");
    let script = fs::read_to_string(&tar).unwrap();
    fs::write(&tar, script.replace("$HOME", text(programs.path()))).unwrap();
    let shoal = real(spec);
    let (_dir, tree) = tree();
    let here = TempDir::new().unwrap();
    sshoal(&shoal, &["get", "-r", "-p", text(&tree), text(here.path())]).expect(0);
    let listed = Command::new("tar")
        .arg("--ignore-zeros")
        .arg("-tf")
        .arg(&sent)
        .output()
        .unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let names: Vec<&str> = listed.lines().collect();
    // 300, with another name of one of them, the odd ones, the one with a hole, and the one that is deep down.
    assert_eq!(names.len(), 308, "{listed}");
    for name in ["/none", "/large", "/link"] {
        assert!(!names.iter().any(|it| it.ends_with(name)), "{name}");
    }
}

#[test]
fn a_file_that_is_asked_for_by_itself_comes_by_tar_where_that_is_wanted() {
    let shoal = real(SshdSpec::new(1));
    let (_dir, tree) = tree();
    let here = TempDir::new().unwrap();
    let pattern = format!("{}/a/b/1?", text(&tree));
    for (method, run) in [("sftp", 0), ("auto", 0), ("tar", 1)] {
        let to = here.path().join(method);
        sshoal(&shoal, &["get", "--method", method, &pattern, text(&to)]).expect(0);
        assert_eq!(commands(&shoal), run, "{method}");
        for number in 10..20 {
            let came = fs::read(host(&shoal, &to).join(number.to_string())).unwrap();
            assert_eq!(came, noise(1 + number * 37));
        }
    }
}

/// Fetches a tree where no batch can be, and is told why.
fn falls_back(spec: SshdSpec, why: &str) {
    let shoal = real(spec);
    let (_dir, tree) = tree();
    let here = TempDir::new().unwrap();
    let words = ["get", "-r", "-p", "-v", text(&tree), text(here.path())];
    let why = format!("small files went one by one over SFTP: {why}");
    sshoal(&shoal, &words).expect(0).says(&[&why]);
    let came = host(&shoal, here.path());
    assert!(fetched(&tree) == fetched(&came.join("tree")));
    assert_eq!(parts(here.path()), Vec::<Vec<u8>>::new());
}

#[test]
fn without_tar_everything_comes_over_sftp() {
    let (_programs, spec) = with_tar(&[("sh", "/bin/sh")], None);
    falls_back(spec, "the host runs no tar");
}

#[test]
fn internal_sftp_alone_gives_everything_over_sftp() {
    let spec = SshdSpec::new(1)
        .line("Subsystem sftp internal-sftp")
        .line("ForceCommand internal-sftp");
    falls_back(spec, "the host runs no tar");
}

#[test]
fn a_single_session_is_for_sftp() {
    falls_back(
        SshdSpec::new(1).line("MaxSessions 1"),
        "the host runs no tar",
    );
}

#[test]
fn a_tar_that_sees_other_files_brings_none() {
    // The names and sizes are the same: in a folder of another root, files are older.
    let other = "case $1 in --help) exit;; esac\nexec /bin/tar --mtime=@7 \"$@\"\n";
    let (_programs, spec) = with_tar(
        &[("sh", "/bin/sh"), ("xargs", "/usr/bin/xargs")],
        Some(other),
    );
    falls_back(spec, "tar on the host did not send what was listed");
}

#[test]
fn a_tar_that_breaks_off_loses_nothing() {
    let half = "case $1 in --help) exec /bin/tar --help;; esac\n/bin/tar \"$@\" | head -c 60000\n";
    let names = [
        ("sh", "/bin/sh"),
        ("xargs", "/usr/bin/xargs"),
        ("head", "/usr/bin/head"),
    ];
    let (_programs, spec) = with_tar(&names, Some(half));
    let shoal = real(spec);
    let (_dir, tree) = tree();
    let here = TempDir::new().unwrap();
    sshoal(&shoal, &["get", "-r", "-p", text(&tree), text(here.path())]).expect(0);
    assert!(fetched(&tree) == fetched(&host(&shoal, here.path()).join("tree")));
    assert_eq!(parts(here.path()), Vec::<Vec<u8>>::new());
}

#[test]
fn what_a_hostile_tar_sends_leads_nowhere() {
    let evil = shared_folder();
    let archive = evil.path().join("evil.tar");
    fs::write(evil.path().join("f"), "evil").unwrap();
    let made = Command::new("tar")
        .args(["-P", "--transform", "s,.*,../../../evil,", "-cf"])
        .args([&archive, &evil.path().join("f")])
        .status();
    assert!(made.unwrap().success());
    // What was asked for twice, the second time with other contents, and what nobody asked for.
    let script = format!(
        "case $1 in --help) exec /bin/tar --help;; esac\ncat {0}\n/bin/tar \"$@\"\n/bin/tar --mtime=@1500000000 \"$@\"\ncat {0}\n",
        archive.display()
    );
    let names = [
        ("sh", "/bin/sh"),
        ("xargs", "/usr/bin/xargs"),
        ("cat", "/bin/cat"),
    ];
    let (_programs, spec) = with_tar(&names, Some(&script));
    let shoal = real(spec);
    let (_dir, tree) = tree();
    let here = TempDir::new().unwrap();
    let into = here.path().join("a/b/c");
    sshoal(&shoal, &["get", "-r", "-p", text(&tree), text(&into)]).expect(0);
    assert!(fetched(&tree) == fetched(&host(&shoal, &into).join("tree")));
    let evil = |name: &Vec<u8>| name.ends_with(b"evil");
    assert!(!listing(here.path()).keys().any(evil));
    assert!(!here.path().parent().unwrap().join("evil").exists());
}

#[test]
fn a_file_that_changes_meanwhile_comes_as_it_is_then() {
    // Before it is read, and after it was, by a tar that does not tell of that; then its size stays.
    for (before, after) in [("echo more >>FILE", ":"), (":", "cat NEW >FILE")] {
        let (dir, tree) = tree();
        let changing = tree.join("a/b/17");
        let old = fs::read(&changing).unwrap();
        write(&changing, &old, 0o666);
        fs::set_permissions(dir.path(), Permissions::from_mode(0o777)).unwrap();
        fs::write(dir.path().join("new"), vec![b'x'; old.len()]).unwrap();
        // It changes once, however many batches there are.
        let once = format!("mkdir {0}/once 2>/dev/null && once=1", text(dir.path()));
        let script = format!(
            "case $1 in --help) exit;; esac\n{once}\n[ -z \"$once\" ] || {before}\n\
             /bin/busybox tar \"$@\"\n[ -z \"$once\" ] || {after}\n"
        );
        let script = script.replace("FILE", text(&changing));
        let script = script.replace("NEW", text(&dir.path().join("new")));
        let names = [
            ("sh", "/bin/sh"),
            ("xargs", "/usr/bin/xargs"),
            ("cat", "/bin/cat"),
            ("mkdir", "/bin/mkdir"),
        ];
        let (_programs, spec) = with_tar(&names, Some(&script));
        let shoal = real(spec);
        let here = TempDir::new().unwrap();
        sshoal(&shoal, &["get", "-r", "-v", text(&tree), text(here.path())]).expect(0);
        assert!(commands(&shoal) > 0 && dir.path().join("once").exists());
        let came = host(&shoal, here.path()).join("tree/a/b");
        let new = fs::read(&changing).unwrap();
        assert!(new != old);
        assert!(fs::read(came.join("17")).unwrap() == new);
        assert_eq!(fs::read(came.join("18")).unwrap(), noise(1 + 18 * 37));
        assert_eq!(parts(here.path()), Vec::<Vec<u8>>::new());
    }
}

#[test]
fn what_cannot_be_read_is_named_and_the_rest_comes() {
    let shoal = real(SshdSpec::new(1));
    let (_dir, tree) = tree();
    fs::set_permissions(tree.join("a/b/17"), Permissions::from_mode(0o600)).unwrap();
    let here = TempDir::new().unwrap();
    sshoal(&shoal, &["get", "-r", text(&tree), text(here.path())])
        .expect(3)
        .says(&["a/b/17", "permission denied"]);
    let came = host(&shoal, here.path()).join("tree");
    assert!(commands(&shoal) > 0);
    assert_eq!(fs::read(came.join("a/b/18")).unwrap(), noise(1 + 18 * 37));
    assert_eq!(listing(&came).len() + 1, listing(&tree).len());
    assert_eq!(parts(here.path()), Vec::<Vec<u8>>::new());
}

#[test]
fn a_full_disk_here_is_named_and_the_old_files_stay() {
    let here = TempDir::new().unwrap();
    let Some(_disk) = SmallDisk::mount(here.path(), "1m") else {
        return;
    };
    let shoal = real(SshdSpec::new(1));
    let dir = shared_folder();
    let tree = dir.path().join("tree");
    fs::create_dir(&tree).unwrap();
    let came = host(&shoal, here.path());
    fs::create_dir(&came).unwrap();
    for number in 0..100 {
        write(&tree.join(number.to_string()), &noise(40_000), 0o644);
    }
    for number in 90..100 {
        fs::write(came.join(number.to_string()), "old").unwrap();
    }
    let from = format!("{}/", text(&tree));
    sshoal(&shoal, &["get", "-r", &from, text(here.path())])
        .expect(3)
        .says(&[text(&came), "no space left on this machine's disk"]);
    assert!(commands(&shoal) > 0);
    for (name, (_, _, contents)) in listing(&came) {
        assert!(!name.ends_with(b".part"));
        assert!(contents == b"old" || contents == noise(40_000));
    }
}

#[test]
fn ctrl_c_leaves_no_part_of_a_batch() {
    let shoal = real(SshdSpec::new(1));
    let dir = shared_folder();
    let tree = dir.path().join("tree");
    fs::create_dir(&tree).unwrap();
    for number in 0..500 {
        write(&tree.join(number.to_string()), &noise(20_000), 0o644);
    }
    let here = TempDir::new().unwrap();
    let words = [
        "get",
        "-r",
        "--limit",
        "500K",
        text(&tree),
        text(here.path()),
    ];
    let running = Running::start(&mut command(&shoal, &words));
    wait_until("a part is there", || !parts(here.path()).is_empty());
    running.interrupt();
    running.wait().expect(130);
    assert_eq!(parts(here.path()), Vec::<Vec<u8>>::new());
}
