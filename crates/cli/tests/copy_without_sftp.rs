//! `sshoal put` and `sshoal get` with an sshd that has no SFTP: a shell stands in, and what is promised stays.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use sshoal_testbed::sshd::SshdSpec;
use support::copying::{
    SOMEBODY, a_full_disk_is_named, a_read_only_target_is_named, give, listing, moved, parts,
    programs, real, sshoal, text, write,
};
use support::{noise, shared_folder};
use tempfile::TempDir;

/// A server that refuses the subsystem.
fn without_sftp(hosts: u32) -> SshdSpec {
    SshdSpec::new(hosts).line("Subsystem other /bin/true")
}

fn tree() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let tree = dir.path().join("it's a tree");
    fs::create_dir_all(tree.join("a/empty")).unwrap();
    for number in 0..50 {
        write(
            &tree.join(format!("a/{number}")),
            &noise(number * 37),
            0o644,
        );
    }
    write(&tree.join("-rf *\n\u{fc}"), b"odd", 0o600);
    write(&tree.join("large"), &noise(3_000_001), 0o4755);
    write(&tree.join("closed"), &noise(100_000), 0o444);
    symlink("a/1", tree.join("link")).unwrap();
    symlink("nowhere", tree.join("dangling")).unwrap();
    (dir, tree)
}

#[test]
fn trees_go_and_come() {
    let shoal = real(without_sftp(2));
    let (dir, tree) = tree();
    let target = shared_folder();
    let put = [
        "put",
        "-r",
        "-p",
        "--method",
        "sftp",
        "-v",
        text(&tree),
        text(target.path()),
    ];
    let ended = sshoal(&shoal, &[&put[..], &["-w", &shoal.name(0)]].concat());
    ended
        .expect(0)
        .says(&["refused the subsystem sftp", "stood in"]);
    let sent = target.path().join("it's a tree");
    assert!(listing(&tree) == listing(&sent));
    assert_eq!(parts(target.path()), Vec::<Vec<u8>>::new());
    for method in ["sftp", "auto"] {
        let back = dir.path().join(method);
        let get = [
            "get",
            "-r",
            "-p",
            "--method",
            method,
            text(&sent),
            text(&back),
        ];
        sshoal(&shoal, &get).expect(0);
        for host in 0..2 {
            let mut fetched = listing(&back.join(shoal.name(host)).join("it's a tree"));
            // What is fetched never gets set-user-ID.
            fetched.get_mut(&b"large"[..]).unwrap().0 |= 0o4000;
            assert!(fetched == listing(&tree), "{method}");
        }
    }
    let ended = sshoal(&shoal, &[&put[..], &["--json"]].concat()).expect(0);
    assert_eq!(moved(&ended), 0, "{}", ended.stdout());
}

#[test]
fn patterns_standard_streams_and_hashes() {
    let shoal = real(without_sftp(1));
    let target = shared_folder();
    let file = target.path().join("file");
    let dir = tempfile::tempdir().unwrap();
    let new = dir.path().join("new");
    fs::write(&new, noise(500_000)).unwrap();
    fs::write(&file, "old").unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
    sshoal(&shoal, &["put", "--verify", text(&new), text(&file)]).expect(0);
    assert!(fs::read(&file).unwrap() == noise(500_000));
    assert_eq!(file.metadata().unwrap().mode() & 0o7777, 0o640, "it stays");
    let ended = sshoal(
        &shoal,
        &["put", "--checksum", "--json", text(&new), text(&file)],
    );
    assert_eq!(moved(&ended.expect(0)), 0);
    let pattern = target.path().join("f*");
    let ended = sshoal(&shoal, &["get", text(&pattern), "-"]).expect(0);
    assert!(ended.stdout == noise(500_000));
}

#[test]
fn owners_are_kept() {
    if !rustix::process::geteuid().is_root() {
        println!("not tried: only root gives files away");
        return;
    }
    let shoal = real(without_sftp(1));
    let dir = tempfile::tempdir().unwrap();
    let new = dir.path().join("new");
    write(&new, b"new", 0o4750);
    give(&new, SOMEBODY);
    fs::set_permissions(&new, Permissions::from_mode(0o4750)).unwrap();
    symlink("new", dir.path().join("link")).unwrap();
    give(&dir.path().join("link"), SOMEBODY);
    let target = shared_folder();
    let words = ["put", "-l", "root", "-r", "-p", "--owner", "--numeric-ids"];
    let source = format!("{}/", text(dir.path()));
    sshoal(
        &shoal,
        &[&words[..], &[&source, text(target.path())]].concat(),
    )
    .expect(0);
    for name in ["new", "link"] {
        let metadata = fs::symlink_metadata(target.path().join(name)).unwrap();
        assert_eq!((metadata.uid(), metadata.gid()), SOMEBODY, "{name}");
    }
    assert_eq!(
        target.path().join("new").metadata().unwrap().mode() & 0o7777,
        0o4750
    );
}

#[test]
fn what_fails_is_named_and_the_old_file_stays() {
    let shoal = real(without_sftp(1));
    a_full_disk_is_named(&shoal);
    a_read_only_target_is_named(&shoal);
    let dir = tempfile::tempdir().unwrap();
    let new = dir.path().join("new");
    fs::write(&new, "new").unwrap();
    sshoal(&shoal, &["put", text(&new), "/no/such/folder/new"])
        .expect(3)
        .says(&["/no/such/folder"]);
    sshoal(&shoal, &["get", "/no/such/file", text(dir.path())])
        .expect(3)
        .says(&["/no/such/file"]);
}

/// Holes, other names, modes that keep everybody out, and a folder that gives its group away: twice the same.
#[test]
fn odd_files_arrive_as_they_are_with_any_shell() {
    for shell in ["/bin/dash", "/bin/bash", "/bin/busybox"] {
        let programs = programs(&[("sh", shell)]);
        let path = format!("SetEnv PATH={}:/usr/bin:/bin", programs.path().display());
        let shoal = real(without_sftp(1).line(path));
        let (_dir, tree) = tree();
        let sparse = fs::File::create(tree.join("sparse")).unwrap();
        sparse.set_len(9_000_000).unwrap();
        write(&tree.join("sealed"), &noise(70_000), 0);
        fs::hard_link(tree.join("a/7"), tree.join("a/name")).unwrap();
        let target = shared_folder();
        fs::set_permissions(target.path(), Permissions::from_mode(0o2777)).unwrap();
        for _ in 0..2 {
            let words = ["put", "-r", "-p", text(&tree), text(target.path())];
            sshoal(&shoal, &words).expect(0);
            let there = listing(&target.path().join("it's a tree"));
            assert!(there == listing(&tree), "{shell}");
        }
        assert_eq!(parts(target.path()), Vec::<Vec<u8>>::new());
        let back = tempfile::tempdir().unwrap();
        sshoal(&shoal, &["get", "/proc/version", text(back.path())]).expect(0);
        let fetched = fs::read(back.path().join(shoal.name(0)).join("version")).unwrap();
        assert_eq!(fetched, fs::read("/proc/version").unwrap(), "{shell}");
    }
}

/// One session at a time: the one that was refused has to be gone first.
#[test]
fn one_session_is_enough() {
    let shoal = real(without_sftp(1).line("MaxSessions 1"));
    let (_dir, tree) = tree();
    let target = shared_folder();
    sshoal(
        &shoal,
        &["put", "-r", "-p", text(&tree), text(target.path())],
    )
    .expect(0);
    assert!(listing(&tree) == listing(&target.path().join("it's a tree")));
}

/// What has ended by itself has perhaps done something: it is not run again.
#[test]
fn what_is_there_is_not_replaced() {
    let dir = shared_folder();
    let count = dir.path().join("count");
    let spec = SshdSpec::new(1).line(format!(
        "ForceCommand echo once >>{}; exit 1",
        count.display()
    ));
    let shoal = real(spec);
    let new = dir.path().join("new");
    fs::write(&new, "new").unwrap();
    sshoal(&shoal, &["put", text(&new), "/tmp/never"]).expect(3);
    assert_eq!(fs::read_to_string(&count).unwrap(), "once\n");
    assert!(!Path::new("/tmp/never").exists());
}
