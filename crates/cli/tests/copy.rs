//! `sshoal put` and `sshoal get` with real sshd: what arrives, what is named, what is left.

#![allow(clippy::unwrap_used)]

mod support;

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::thread;

use sshoal_testbed::sshd::{Layout, RealSshd, SshdSpec};
use support::copying::{
    Barred, SmallDisk, a_full_disk_is_named, a_read_only_target_is_named, command, listing, parts,
    real, sshoal, text, write,
};
use support::program::Running;
use support::{Shoal, descendants, noise, shared_folder, wait_until};

/// A tree with everything that there can be in one.
fn tree() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let tree = dir.path().join("tree");
    fs::create_dir_all(tree.join("a/b/empty")).unwrap();
    write(&tree.join("a/x"), &noise(100_000), 0o644);
    write(&tree.join("a/private"), b"secret", 0o600);
    write(&tree.join("a/none"), b"", 0o755);
    write(
        &tree.join("a").join(OsStr::from_bytes(b"n\xff\nx")),
        b"odd",
        0o644,
    );
    for number in 0..100 {
        write(
            &tree.join(format!("a/b/{number}")),
            &noise(number * 37),
            0o644,
        );
    }
    symlink("../x", tree.join("a/b/link")).unwrap();
    symlink("nowhere", tree.join("dangling")).unwrap();
    fs::hard_link(tree.join("a/x"), tree.join("hard")).unwrap();
    let sparse = File::create(tree.join("sparse")).unwrap();
    sparse.set_len(20_000_000).unwrap();
    drop(sparse);
    let mut sparse = File::options()
        .append(true)
        .open(tree.join("sparse"))
        .unwrap();
    sparse.write_all(b"end").unwrap();
    (dir, tree)
}

#[test]
fn a_tree_goes_there_and_back_and_is_not_sent_twice() {
    let shoal = real(SshdSpec::new(1));
    let (dir, tree) = tree();
    let target = shared_folder();
    let to = text(target.path());
    sshoal(&shoal, &["put", "-r", "-p", text(&tree), to]).expect(0);
    assert!(
        listing(&tree) == listing(&target.path().join("tree")),
        "what arrived is not the same"
    );
    let there = target.path().join("tree");
    let inode = |name: &str| fs::metadata(there.join(name)).unwrap().ino();
    assert_eq!(inode("a/x"), inode("hard"), "hard links stay links");
    let sparse = fs::metadata(there.join("sparse")).unwrap();
    assert!(sparse.blocks() * 512 < 1_000_000, "holes stay holes");
    // Again: nothing is sent.
    let again = sshoal(&shoal, &["put", "-r", "-p", "--json", text(&tree), to]).expect(0);
    assert!(
        again.stdout().contains(r#""octets":0}"#),
        "{}",
        again.stdout()
    );
    // A change of one file is.
    write(&tree.join("a/private"), b"changed", 0o600);
    let changed = sshoal(&shoal, &["put", "-r", "-p", "--json", text(&tree), to]).expect(0);
    assert!(
        changed.stdout().contains(r#""octets":7}"#),
        "{}",
        changed.stdout()
    );
    // And back.
    let back = dir.path().join("back");
    let from = text(&there);
    sshoal(&shoal, &["get", "-r", "-p", from, text(&back)]).expect(0);
    let host = back.join(shoal.name(0));
    assert!(
        listing(&tree) == listing(&host.join("tree")),
        "what came back is not the same"
    );
    // Again nothing comes but what has changed: modes, of a small file and of a large one.
    for name in ["a/private", "sparse"] {
        let mode = fs::Permissions::from_mode(0o604);
        fs::set_permissions(there.join(name), mode).unwrap();
    }
    let again = sshoal(&shoal, &["get", "-r", "-p", "--json", from, text(&back)]).expect(0);
    assert!(
        again.stdout().contains(r#""octets":0}"#),
        "{}",
        again.stdout()
    );
    assert!(
        listing(&there) == listing(&host.join("tree")),
        "modes that have changed alone are not kept"
    );
    let sparse = fs::metadata(host.join("tree/sparse")).unwrap();
    assert!(sparse.blocks() * 512 < 1_000_000, "holes are found");
}

/// How many there have been, as sshd tells at level VERBOSE (session.c, do_exec).
fn sftp_sessions(shoal: &Shoal<RealSshd>) -> usize {
    let log = shoal.hosts.log(0);
    log.matches("Starting session: subsystem 'sftp'").count()
}

#[test]
fn a_large_file_arrives_over_two_channels_and_memory_is_bounded() {
    let shoal = real(SshdSpec::new(1));
    let dir = tempfile::tempdir().unwrap();
    let target = shared_folder();
    let big = dir.path().join("big");
    fs::write(&big, noise(150_000_000)).unwrap();
    let to = text(target.path());
    let limit = 100 << 20;
    sshoal(&shoal, &["put", "--lanes", "1", text(&big), to])
        .expect(0)
        .expect_memory_below(limit);
    let there = target.path().join("big");
    assert!(fs::read(&big).unwrap() == fs::read(&there).unwrap());
    assert_eq!(sftp_sessions(&shoal), 2);
    let back = dir.path().join("back");
    sshoal(&shoal, &["get", "--lanes", "1", text(&there), text(&back)])
        .expect(0)
        .expect_memory_below(limit);
    assert!(fs::read(&big).unwrap() == fs::read(back.join(shoal.name(0)).join("big")).unwrap());
    assert_eq!(sftp_sessions(&shoal), 4);
}

#[test]
fn a_server_with_one_session_gets_everything_over_one_channel() {
    let shoal = real(
        SshdSpec::new(1)
            .line("MaxSessions 1")
            .line("Subsystem sftp internal-sftp"),
    );
    let dir = tempfile::tempdir().unwrap();
    let target = shared_folder();
    let big = dir.path().join("big");
    fs::write(&big, noise(50_000_000)).unwrap();
    sshoal(&shoal, &["put", text(&big), text(target.path())]).expect(0);
    assert!(fs::read(&big).unwrap() == fs::read(target.path().join("big")).unwrap());
}

#[test]
fn internal_sftp_alone_in_a_chroot_is_enough() {
    let root = tempfile::Builder::new()
        .prefix("sshoal-chroot.")
        .tempdir_in("/")
        .unwrap();
    fs::set_permissions(root.path(), Permissions::from_mode(0o755)).unwrap();
    let inside = root.path().join("in");
    fs::create_dir(&inside).unwrap();
    fs::set_permissions(&inside, Permissions::from_mode(0o777)).unwrap();
    let spec = SshdSpec::new(1)
        .line("Subsystem sftp internal-sftp")
        .line("ForceCommand internal-sftp")
        .line(format!("ChrootDirectory {}", root.path().display()));
    let shoal = real(spec);
    let (dir, tree) = tree();
    sshoal(&shoal, &["put", "-r", text(&tree.join("a")), "/in"]).expect(0);
    assert_eq!(fs::read(inside.join("a/x")).unwrap(), noise(100_000));
    let back = dir.path().join("back");
    sshoal(&shoal, &["get", "-r", "/in/a", text(&back)]).expect(0);
    assert_eq!(
        fs::read(back.join(shoal.name(0)).join("a/x")).unwrap(),
        noise(100_000)
    );
}

/// A folder of its own for each host, all served from one machine.
fn with_folders(hosts: u32) -> (Shoal<RealSshd>, tempfile::TempDir) {
    let root = tempfile::Builder::new()
        .prefix("sshoal-chroot.")
        .tempdir_in("/")
        .unwrap();
    fs::set_permissions(root.path(), Permissions::from_mode(0o755)).unwrap();
    let mut spec = SshdSpec::new(hosts).line("Subsystem sftp internal-sftp");
    spec.layout = Layout::Shared;
    for host in 0..hosts {
        let inside = root.path().join(host.to_string()).join("in");
        fs::create_dir_all(&inside).unwrap();
        fs::set_permissions(&inside, Permissions::from_mode(0o777)).unwrap();
        let root = inside.parent().unwrap().display();
        spec = spec
            .line(format!("Match LocalAddress 127.2.0.{}", host + 1))
            .line("    ForceCommand internal-sftp")
            .line(format!("    ChrootDirectory {root}"));
    }
    (real(spec), root)
}

#[test]
fn twenty_hosts_at_once() {
    let (shoal, root) = with_folders(20);
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("source");
    fs::write(&source, noise(3_000_000)).unwrap();
    let limit = 200 << 20;
    sshoal(&shoal, &["put", text(&source), "/in"])
        .expect(0)
        .expect_memory_below(limit);
    let back = dir.path().join("back");
    sshoal(&shoal, &["get", "/in/s*", text(&back)])
        .expect(0)
        .expect_memory_below(limit);
    for host in 0..20 {
        let there = root.path().join(host.to_string()).join("in/source");
        assert!(fs::read(there).unwrap() == noise(3_000_000), "host {host}");
        let here = back.join(shoal.name(host)).join("source");
        assert!(
            fs::read(here).unwrap() == noise(3_000_000),
            "from host {host}"
        );
    }
}

#[test]
fn hosts_with_one_file_system_do_not_disturb_each_other() {
    let mut spec = SshdSpec::new(10);
    spec.layout = Layout::Shared;
    let shoal = real(spec);
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("source");
    fs::write(&source, noise(3_000_000)).unwrap();
    let target = shared_folder();
    sshoal(&shoal, &["put", text(&source), text(target.path())]).expect(0);
    assert!(fs::read(target.path().join("source")).unwrap() == noise(3_000_000));
    assert_eq!(listing(target.path()).len(), 1);
}

#[test]
fn standard_input_goes_there_and_standard_output_gets_it_back() {
    let shoal = real(SshdSpec::new(1));
    let target = shared_folder();
    let to = target.path().join("input");
    let bytes = noise(5_000_000);
    let (reader, mut writer) = std::io::pipe().unwrap();
    let mut putting = command(&shoal, &["put", "-", text(&to)]);
    putting.stdin(reader);
    let running = Running::start(&mut putting);
    drop(putting);
    let sent = bytes.clone();
    let writing = thread::spawn(move || writer.write_all(&sent).unwrap());
    running.wait().expect(0);
    writing.join().unwrap();
    assert!(fs::read(&to).unwrap() == bytes);
    let ended = sshoal(&shoal, &["get", text(&to), "-"]).expect(0);
    assert!(ended.stdout == bytes);
    // What has no size of its own is read to its end.
    let version = sshoal(&shoal, &["get", "/proc/version", "-"]).expect(0);
    assert_eq!(version.stdout, fs::read("/proc/version").unwrap());
}

#[test]
fn what_fails_is_named_and_the_old_file_stays() {
    let shoal = real(SshdSpec::new(1));
    let dir = tempfile::tempdir().unwrap();
    let new = dir.path().join("new");
    fs::write(&new, noise(100_000)).unwrap();
    let target = shared_folder();
    let missing = target.path().join("missing/new");
    let ended = sshoal(&shoal, &["put", text(&new), text(&missing)]).expect(3);
    ended.says(&["transfer: ", "missing/new", "no such file or folder"]);
    // A folder that the account may not write to.
    let closed = target.path().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::write(closed.join("new"), "old").unwrap();
    fs::set_permissions(&closed, Permissions::from_mode(0o755)).unwrap();
    let ended = sshoal(&shoal, &["put", text(&new), text(&closed)]).expect(3);
    ended.says(&["permission denied"]);
    assert_eq!(fs::read(closed.join("new")).unwrap(), b"old");
    let ended = sshoal(
        &shoal,
        &["get", "/nowhere/*", text(&dir.path().join("back"))],
    )
    .expect(3);
    ended.says(&["/nowhere/*"]);
    let ended = sshoal(&shoal, &["put", text(dir.path()), text(target.path())]).expect(2);
    ended.says(&["add -r"]);
    let ended = sshoal(&shoal, &["put", text(&new)]).expect(2);
    ended.says(&["sshoal put -w"]);
    assert_eq!(parts(target.path()), Vec::<Vec<u8>>::new());
}

#[test]
fn a_full_disk_is_named_and_the_old_file_stays() {
    a_full_disk_is_named(&real(SshdSpec::new(1)));
}

#[test]
fn a_read_only_target_is_named_for_files_and_folders() {
    a_read_only_target_is_named(&real(SshdSpec::new(1)));
}

#[test]
fn a_full_disk_here_is_told_from_one_of_the_host_s() {
    let here = tempfile::tempdir().unwrap();
    let Some(_disk) = SmallDisk::mount(here.path(), "2m") else {
        return;
    };
    let shoal = real(SshdSpec::new(1));
    let dir = shared_folder();
    let large = dir.path().join("large");
    write(&large, &noise(5_000_000), 0o644);
    let mine = here.path().join(shoal.name(0));
    fs::create_dir(&mine).unwrap();
    fs::write(mine.join("large"), "old").unwrap();
    let told = format!(
        "{}: writing here: {}: no space left on this machine's disk",
        text(&large),
        text(&mine.join("large"))
    );
    sshoal(&shoal, &["get", text(&large), text(here.path())])
        .expect(3)
        .says(&[
            &told,
            "to do: see to the file, or to its disk, on this machine",
        ]);
    assert_eq!(fs::read(mine.join("large")).unwrap(), b"old");
    assert_eq!(parts(&mine).len(), 0);
}

#[test]
fn patterns_that_stand_for_nothing_are_refused() {
    let shoal = real(SshdSpec::new(1));
    for (pattern, why) in [
        ("[", "its [ has no ] behind it"),
        ("", "leaves nothing out"),
        ("[z-a]", "the range z-a ends before it begins"),
        ("x\\", "a backslash at its end"),
    ] {
        let words = ["put", "-r", "--exclude", pattern, "/etc/motd", "/nowhere/"];
        sshoal(&shoal, &words).expect(2).says(&["--exclude", why]);
    }
    assert_eq!(shoal.hosts.logins(), 0);
}

#[test]
fn ctrl_c_leaves_no_part_on_either_side() {
    let shoal = real(SshdSpec::new(1));
    let dir = tempfile::tempdir().unwrap();
    let big = dir.path().join("big");
    fs::write(&big, noise(100_000_000)).unwrap();
    let target = shared_folder();
    let to = text(target.path());
    let running = Running::start(&mut command(
        &shoal,
        &["put", "--limit", "1M", text(&big), to],
    ));
    wait_until("the part is there", || !parts(target.path()).is_empty());
    running.interrupt();
    running.wait().expect(130);
    assert_eq!(listing(target.path()).len(), 0);
    fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(&big, Permissions::from_mode(0o644)).unwrap();
    let back = dir.path().join("back");
    let fetching = &["get", "--limit", "1M", text(&big), text(&back)];
    let running = Running::start(&mut command(&shoal, fetching));
    wait_until("the part is there", || {
        back.exists() && !parts(&back).is_empty()
    });
    running.interrupt();
    running.wait().expect(130);
    assert_eq!(parts(&back), Vec::<Vec<u8>>::new());
}

/// Kills all that the process has started, the outermost first: who held the connection cannot tell of the others' end.
fn kill_sessions(parent: i32) {
    for process in descendants(parent) {
        let pid = rustix::process::Pid::from_raw(process).unwrap();
        // It may have ended with its parent.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}

#[test]
fn a_server_that_dies_in_the_middle_is_named_and_the_rest_follows() {
    let shoal = real(SshdSpec::new(1));
    let dir = tempfile::tempdir().unwrap();
    let tree = dir.path().join("tree");
    fs::create_dir(&tree).unwrap();
    for number in 0..4 {
        write(
            &tree.join(format!("{number}")),
            &noise(2_000_000 + number),
            0o644,
        );
    }
    let target = shared_folder();
    let words = [
        "put",
        "-r",
        "-p",
        "--limit",
        "200K",
        text(&tree),
        text(target.path()),
    ];
    let running = Running::start(&mut command(&shoal, &words));
    wait_until("the part is there", || !parts(target.path()).is_empty());
    let barred = Barred::new(&shoal);
    kill_sessions(shoal.hosts.pid(0).as_raw_nonzero().get());
    running
        .wait()
        .expect(3)
        .says(&["lost: ", "; logging in again: auth-denied: "]);
    drop(barred);
    shoal.wait_for_sessions();
    // The same command again: its parts have the same names, and none is left.
    let again: Vec<&str> = words
        .iter()
        .copied()
        .filter(|word| !["--limit", "200K"].contains(word))
        .collect();
    sshoal(&shoal, &again).expect(0);
    assert!(listing(&tree) == listing(&target.path().join("tree")));
}

#[test]
fn an_account_without_a_shell_is_explained() {
    let shoal = real(SshdSpec::new(1).line("ForceCommand echo This account is closed."));
    let dir = tempfile::tempdir().unwrap();
    let new = dir.path().join("new");
    fs::write(&new, "new").unwrap();
    let ended = sshoal(&shoal, &["put", text(&new), "/tmp/never"]).expect(3);
    ended.says(&["no SFTP", "This account is closed.", "internal-sftp"]);
    // Neither has its shell, where there is no SFTP.
    let shoal = real(
        SshdSpec::new(1)
            .line("Subsystem other /bin/true")
            .line("ForceCommand echo This account is closed."),
    );
    let ended = sshoal(&shoal, &["put", text(&new), "/tmp/never"]).expect(3);
    ended.says(&[
        "refused the subsystem",
        "no shell",
        "This account is closed.",
    ]);
    assert!(!Path::new("/tmp/never").exists());
}

#[test]
fn a_dry_run_does_nothing() {
    let shoal = real(SshdSpec::new(1));
    let (_dir, tree) = tree();
    let target = shared_folder();
    let ended = sshoal(
        &shoal,
        &["put", "--dry-run", "-r", text(&tree), text(target.path())],
    )
    .expect(0);
    assert!(
        ended.stdout().contains("put 105 files, 4 folders, 3 links"),
        "{}",
        ended.stdout()
    );
    let ended = sshoal(
        &shoal,
        &[
            "put",
            "--dry-run",
            "-r",
            "--exclude",
            "b",
            text(&tree),
            "/x",
        ],
    )
    .expect(0);
    assert!(
        ended.stdout().contains("put 5 files, 2 folders, 2 links"),
        "{}",
        ended.stdout()
    );
    sshoal(
        &shoal,
        &["get", "--dry-run", "/etc/motd", text(target.path())],
    )
    .expect(0);
    assert_eq!(listing(target.path()).len(), 0);
    assert_eq!(shoal.hosts.logins(), 0);
}
