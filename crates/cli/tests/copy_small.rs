//! `sshoal put` of many small files with real sshd: batches that tar unpacks there, and what becomes of them without.

#![allow(clippy::unwrap_used)]

mod support;

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use sshoal_testbed::sshd::{RealSshd, SshdSpec};
use support::copying::{
    SmallDisk, command, commands, listing, parts, programs, real, script, sshoal, text,
    with_programs, write,
};
use support::program::Running;
use support::{Shoal, noise, shared_folder, wait_until};

/// Small files of all kinds, and some that are none.
fn tree() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let tree = dir.path().join("tree");
    fs::create_dir_all(tree.join("a/b/empty")).unwrap();
    for number in 0..300 {
        let mode = [0o644, 0o600, 0o755, 0o4711][number % 4];
        write(
            &tree.join(format!("a/b/{number}")),
            &noise(number * 37),
            mode,
        );
    }
    write(&tree.join("a/none"), b"", 0o440);
    write(
        &tree.join("a").join(OsStr::from_bytes(b"n\xff\nx")),
        b"odd",
        0o644,
    );
    write(&tree.join("-x"), b"no option", 0o644);
    let deep = tree.join("long".repeat(40)).join("name".repeat(50));
    fs::create_dir_all(deep.parent().unwrap()).unwrap();
    write(&deep, b"deep", 0o644);
    write(&tree.join("a/large"), &noise(1_000_000), 0o644);
    symlink("../a", tree.join("a/b/link")).unwrap();
    fs::hard_link(tree.join("a/b/7"), tree.join("hard")).unwrap();
    (dir, tree)
}

/// Puts a tree, puts it again, changes something, and puts it once more.
fn goes_there_and_is_kept(shoal: &Shoal<RealSshd>) {
    let (_dir, tree) = tree();
    let target = shared_folder();
    let to = text(target.path());
    sshoal(shoal, &["put", "-r", "-p", text(&tree), to]).expect(0);
    let there = target.path().join("tree");
    assert!(
        listing(&tree) == listing(&there),
        "what arrived is not the same"
    );
    assert_eq!(listing(target.path()).len(), listing(&there).len() + 1);
    let inode = |name: &str| fs::metadata(there.join(name)).unwrap().ino();
    assert_eq!(inode("a/b/7"), inode("hard"));
    let again = sshoal(shoal, &["put", "-r", "-p", "--json", text(&tree), to]).expect(0);
    assert!(
        again.stdout().contains(r#""octets":0}"#),
        "{}",
        again.stdout()
    );
    for number in 0..100 {
        write(&tree.join(format!("a/b/{number}")), b"new", 0o644);
    }
    sshoal(shoal, &["put", "-r", "-p", text(&tree), to]).expect(0);
    assert!(listing(&tree) == listing(&there));
}

#[test]
fn many_small_files_go_in_batches() {
    let shoal = real(SshdSpec::new(1));
    goes_there_and_is_kept(&shoal);
    // A batch and its names, and the same for the files that changed; none where nothing had.
    assert_eq!(commands(&shoal), 4);
}

#[test]
fn a_host_of_busybox_alone_takes_batches() {
    let programs = programs(&["sh", "tar", "sync", "test"].map(|applet| (applet, "/bin/busybox")));
    let shoal = real(with_programs(programs.path()));
    goes_there_and_is_kept(&shoal);
    assert_eq!(commands(&shoal), 4);
}

#[test]
fn without_p_a_file_keeps_the_mode_of_what_it_replaces_and_a_new_one_the_accounts() {
    let shoal = real(SshdSpec::new(1));
    let (_dir, tree) = tree();
    let modes = |method: &str| {
        let target = shared_folder();
        let there = target.path().join("a/b");
        fs::create_dir_all(&there).unwrap();
        for folder in [&target.path().join("a"), &there] {
            fs::set_permissions(folder, Permissions::from_mode(0o777)).unwrap();
        }
        write(&there.join("8"), b"old", 0o606);
        let from = tree.join("a");
        let words = [
            "put",
            "-r",
            "--method",
            method,
            text(&from),
            text(target.path()),
        ];
        sshoal(&shoal, &words).expect(0);
        assert_eq!(fs::read(there.join("8")).unwrap(), noise(8 * 37));
        let mode = |name: &str| fs::metadata(there.join(name)).unwrap().mode() & 0o7777;
        ["8", "9", "10", "11", "12"].map(mode)
    };
    let by_tar = modes("tar");
    assert_eq!(by_tar, modes("sftp"));
    assert_eq!((by_tar[0], by_tar[1]), (0o606, 0o600));
}

/// Puts a tree where no batch can be, and is told why.
fn falls_back(spec: SshdSpec, target: &Path, to: &str) {
    let shoal = real(spec);
    let (_dir, tree) = tree();
    let ended = sshoal(&shoal, &["put", "-r", "-p", "-v", text(&tree), to]).expect(0);
    ended.says(&["small files went one by one over SFTP: the host runs no tar"]);
    assert!(listing(&tree) == listing(&target.join("tree")));
    assert_eq!(parts(target), Vec::<Vec<u8>>::new());
}

#[test]
fn without_tar_everything_goes_over_sftp() {
    let target = shared_folder();
    let programs = programs(&[("sh", "/bin/sh")]);
    let spec = with_programs(programs.path());
    falls_back(spec, target.path(), text(target.path()));
}

#[test]
fn internal_sftp_alone_gets_everything_over_sftp() {
    let target = shared_folder();
    let spec = SshdSpec::new(1)
        .line("Subsystem sftp internal-sftp")
        .line("ForceCommand internal-sftp");
    falls_back(spec, target.path(), text(target.path()));
}

#[test]
fn a_single_session_is_for_sftp() {
    let target = shared_folder();
    let spec = SshdSpec::new(1).line("MaxSessions 1");
    falls_back(spec, target.path(), text(target.path()));
}

#[test]
fn a_tar_that_fails_half_way_loses_nothing() {
    let programs = programs(&[
        ("sh", "/bin/sh"),
        ("sync", "/bin/sync"),
        ("head", "/bin/head"),
        ("cat", "/bin/cat"),
    ]);
    let tar = "head -c 20000 | /bin/tar \"$@\"; cat >/dev/null; exit 2";
    script(programs.path(), "tar", tar);
    let shoal = real(with_programs(programs.path()));
    let (_dir, tree) = tree();
    let target = shared_folder();
    let words = ["put", "-r", "-p", "-v", text(&tree), text(target.path())];
    let ended = sshoal(&shoal, &words).expect(0);
    ended.says(&["tar on the host did not unpack all of it"]);
    assert!(listing(&tree) == listing(&target.path().join("tree")));
    assert_eq!(parts(target.path()), Vec::<Vec<u8>>::new());
}

#[test]
fn what_fails_in_a_batch_is_named_and_the_rest_arrives() {
    let shoal = real(SshdSpec::new(1));
    let (_dir, tree) = tree();
    let target = shared_folder();
    let there = target.path().join("a/b");
    fs::create_dir_all(there.join("17/in the way")).unwrap();
    fs::set_permissions(target.path().join("a"), Permissions::from_mode(0o777)).unwrap();
    fs::set_permissions(&there, Permissions::from_mode(0o777)).unwrap();
    let closed = target.path().join("a/none");
    fs::write(&closed, "old").unwrap();
    let from = tree.join("a");
    let words = ["put", "-r", text(&from), text(target.path())];
    sshoal(&shoal, &words)
        .expect(3)
        .says(&["a/b/17", "a folder is there"]);
    assert_eq!(fs::read(there.join("18")).unwrap(), noise(18 * 37));
    assert_eq!(parts(target.path()), Vec::<Vec<u8>>::new());
    // A folder that the account may not write to.
    fs::set_permissions(&there, Permissions::from_mode(0o755)).unwrap();
    write(&tree.join("a/b/18"), b"newer", 0o644);
    sshoal(&shoal, &words)
        .expect(3)
        .says(&["a/b/18", "permission denied"]);
    assert_eq!(fs::read(there.join("18")).unwrap(), noise(18 * 37));
}

#[test]
fn a_full_disk_is_named_and_the_old_files_stay() {
    let target = shared_folder();
    let Some(_disk) = SmallDisk::mount(target.path(), "1m") else {
        return;
    };
    let shoal = real(SshdSpec::new(1));
    let dir = tempfile::tempdir().unwrap();
    let tree = dir.path().join("tree");
    fs::create_dir(&tree).unwrap();
    for number in 0..100 {
        fs::write(tree.join(number.to_string()), noise(40_000)).unwrap();
    }
    for number in 90..100 {
        fs::write(target.path().join(number.to_string()), "old").unwrap();
    }
    let from = format!("{}/", text(&tree));
    sshoal(&shoal, &["put", "-r", &from, text(target.path())])
        .expect(3)
        .says(&["no space left on the device"]);
    for (name, (_, _, contents)) in listing(target.path()) {
        assert!(!name.ends_with(b".part"));
        assert!(contents == b"old" || contents == noise(40_000));
    }
}

#[test]
fn ctrl_c_leaves_no_part_of_a_batch() {
    let shoal = real(SshdSpec::new(1));
    let dir = tempfile::tempdir().unwrap();
    let tree = dir.path().join("tree");
    fs::create_dir(&tree).unwrap();
    for number in 0..500 {
        fs::write(tree.join(number.to_string()), noise(20_000)).unwrap();
    }
    let target = shared_folder();
    let words = [
        "put",
        "-r",
        "--limit",
        "500K",
        text(&tree),
        text(target.path()),
    ];
    let running = Running::start(&mut command(&shoal, &words));
    let is_part_of_file = |name: &Vec<u8>| name.len() > b"tree/.12345678.part".len();
    wait_until("a part is there", || {
        parts(target.path()).iter().any(is_part_of_file)
    });
    running.interrupt();
    running.wait().expect(130);
    assert_eq!(parts(target.path()), Vec::<Vec<u8>>::new());
    assert_eq!(listing(&target.path().join("tree")).len(), 0);
}
