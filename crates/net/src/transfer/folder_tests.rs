//! What a host sends is written below its own folder, and nowhere else.

#![allow(clippy::unwrap_used)]

use std::ffi::OsStr;

use sshoal_transfer::CHECKPOINT;

use super::*;

const NOBODY: Owner = Owner {
    user: None,
    group: None,
};

const KEPT: Kept = Kept {
    owner: NOBODY,
    mode: None,
    times: None,
};

fn folder(path: &Path) -> Folder {
    Folder::new(path.join("host"), PartNames(PartTag(1)), None)
}

#[test]
fn nothing_is_written_through_a_link() {
    let outside = tempfile::tempdir().unwrap();
    let inside = tempfile::tempdir().unwrap();
    let folder = folder(inside.path());
    folder.make(b"a").unwrap();
    folder
        .link(b"a/out", outside.path().as_os_str().as_bytes(), NOBODY)
        .unwrap();
    assert!(folder.begin(b"a/out/x", None, true, 0o644).is_err());
    assert!(folder.make(b"a/out").is_err());
    assert!(folder.make(b"a/out/y").is_err());
    assert!(folder.finish_folder(b"a/out", KEPT).is_err());
    // A link in a file's place is replaced, and not written through.
    let victim = outside.path().join("victim");
    std::fs::write(&victim, "mine").unwrap();
    folder
        .link(b"b", victim.as_os_str().as_bytes(), NOBODY)
        .unwrap();
    let part = folder.begin(b"b", None, true, 0o644).unwrap().unwrap();
    part.write(0, b"theirs").unwrap();
    part.finish(6, KEPT).unwrap();
    assert_eq!(std::fs::read(&victim).unwrap(), b"mine");
    assert_eq!(
        std::fs::read(inside.path().join("host/b")).unwrap(),
        b"theirs"
    );
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
}

#[test]
fn what_is_given_up_leaves_nothing_and_what_was_there_stays() {
    let dir = tempfile::tempdir().unwrap();
    let folder = folder(dir.path());
    let part = folder.begin(b"f", None, true, 0o600).unwrap().unwrap();
    part.write(0, b"old").unwrap();
    part.finish(3, KEPT).unwrap();
    let part = folder.begin(b"f", None, true, 0o600).unwrap().unwrap();
    part.write(0, b"new and longer").unwrap();
    part.discard();
    assert_eq!(std::fs::read(dir.path().join("host/f")).unwrap(), b"old");
    assert_eq!(
        std::fs::read_dir(dir.path().join("host")).unwrap().count(),
        1
    );
}

#[test]
fn what_somebody_else_has_put_under_a_part_s_name_is_not_put_in_place() {
    let dir = tempfile::tempdir().unwrap();
    let folder = folder(dir.path());
    let part = folder.begin(b"f", None, true, 0o600).unwrap().unwrap();
    part.write(0, b"mine").unwrap();
    // As a file does whose name this file system takes for the same.
    let name = dir
        .path()
        .join("host")
        .join(OsStr::from_bytes(&folder.part(b"f")));
    std::fs::remove_file(&name).unwrap();
    std::fs::write(&name, "its half").unwrap();
    let error = part.finish(4, KEPT).unwrap_err().to_string();
    assert!(error.contains("has taken the name of its part"), "{error}");
    assert!(!dir.path().join("host/f").exists());
}

#[test]
fn a_mode_that_is_kept_makes_nobody_somebody_else() {
    use std::os::unix::fs::MetadataExt;
    let dir = tempfile::tempdir().unwrap();
    let folder = folder(dir.path());
    let part = folder.begin(b"f", None, true, 0o600).unwrap().unwrap();
    let kept = Kept {
        owner: NOBODY,
        mode: Some(0o6755),
        times: Some((5, 7)),
    };
    part.finish(1 << 20, kept).unwrap();
    let metadata = std::fs::metadata(dir.path().join("host/f")).unwrap();
    assert_eq!(metadata.mode() & 0o7777, 0o755);
    assert_eq!((metadata.size(), metadata.mtime()), (1 << 20, 7));
    assert!(
        folder
            .begin(b"f", Some((1 << 20, 7)), true, 0o600)
            .unwrap()
            .is_none()
    );
}

/// Runs a test as somebody who is not root, whom this folder belongs to. A thread of its own may be somebody else.
fn as_somebody(folder: &Path, test: impl FnOnce() + Send) {
    use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
    let somebody = 454_545;
    std::thread::scope(|scope| {
        let run = scope.spawn(|| {
            if rustix::process::geteuid().is_root() {
                std::os::unix::fs::chown(folder, Some(somebody), Some(somebody)).unwrap();
                let (user, group) = (Uid::from_raw(somebody), Gid::from_raw(somebody));
                set_thread_groups(&[]).unwrap();
                set_thread_res_gid(group, group, group).unwrap();
                set_thread_res_uid(user, user, user).unwrap();
            }
            test();
        });
        run.join().unwrap();
    });
}

fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::MetadataExt;
    std::fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

#[test]
fn folders_that_are_closed_to_their_owner_open_for_what_is_put_into_them() {
    let dir = tempfile::tempdir().unwrap();
    let host = dir.path().join("host");
    as_somebody(dir.path(), || {
        let first = folder(dir.path());
        for path in [&b"a"[..], b"a/b", b"a/c"] {
            first.make(path).unwrap();
        }
        drop(first);
        set_mode(&host.join("a/b"), 0o000);
        set_mode(&host.join("a/c"), 0o300);
        set_mode(&host.join("a"), 0o2555);
        let again = folder(dir.path());
        for path in [&b"a"[..], b"a/b", b"a/c"] {
            again.make(path).unwrap();
            let file = [path, b"/f"].concat();
            let part = again.begin(&file, None, true, 0o600).unwrap().unwrap();
            part.finish(0, KEPT).unwrap();
        }
        // One gets a mode of the host's.
        let kept = Kept {
            mode: Some(0o511),
            ..KEPT
        };
        again.finish_folder(b"a/b", kept).unwrap();
        again.finish_folder(b"a/c", KEPT).unwrap();
        assert!(!again.lent().is_empty());
        again.lent().give_back().unwrap();
        assert_eq!(mode(&host.join("a")), 0o2555);
        assert_eq!(mode(&host.join("a/b")), 0o511);
        assert_eq!(mode(&host.join("a/c")), 0o300);
        // A transfer that is cut gives them back, too.
        let cut = folder(dir.path());
        for path in [&b"a"[..], b"a/c"] {
            cut.make(path).unwrap();
        }
        assert_eq!(mode(&host.join("a/c")), 0o700);
        drop(cut);
        assert_eq!(mode(&host.join("a")), 0o2555);
        assert_eq!(mode(&host.join("a/c")), 0o300);
    });
}

#[test]
fn the_host_s_own_folder_opens_as_well_and_has_its_mode_back_whatever_the_plan_keeps() {
    let dir = tempfile::tempdir().unwrap();
    let host = dir.path().join("host");
    as_somebody(dir.path(), || {
        std::fs::create_dir(&host).unwrap();
        set_mode(&host, 0o555);
        let own = folder(dir.path());
        own.make(b"a").unwrap();
        let part = own.begin(b"f", None, true, 0o600).unwrap().unwrap();
        part.finish(0, KEPT).unwrap();
        let kept = Kept {
            mode: Some(0o711),
            ..KEPT
        };
        own.finish_folder(b"", kept).unwrap();
        own.lent().give_back().unwrap();
        assert_eq!(mode(&host), 0o555);
        assert!(host.join("a").is_dir() && host.join("f").is_file());
        // One that is cut gives it back, too.
        let cut = folder(dir.path());
        cut.make(b"b").unwrap();
        assert_eq!(mode(&host), 0o755);
        drop(cut);
        assert_eq!(mode(&host), 0o555);
    });
}

#[test]
fn what_fails_is_told_with_its_path_here_and_whose_disk_is_full() {
    let folder = folder(Path::new("fetched"));
    let told = |errno: Errno| folder.told(b"a/f", &errno.into());
    assert_eq!(
        told(Errno::NOSPC),
        "fetched/host/a/f: no space left on this machine's disk"
    );
    assert!(told(Errno::DQUOT).ends_with("this machine's quota is used up"));
    assert!(told(Errno::ROFS).contains("this machine's file system"));
    assert!(told(Errno::ACCESS).starts_with("fetched/host/a/f: Permission denied"));
    assert!(
        folder
            .told(b"", &Errno::NOSPC.into())
            .starts_with("fetched/host: ")
    );
}

#[test]
fn folders_behind_links_keep_their_modes() {
    let outside = tempfile::tempdir().unwrap();
    let inside = tempfile::tempdir().unwrap();
    let closed = outside.path().join("closed");
    std::fs::create_dir(&closed).unwrap();
    set_mode(&closed, 0o500);
    set_mode(outside.path(), 0o755);
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&closed, Some(454_545), None).unwrap();
    }
    as_somebody(inside.path(), || {
        let folder = folder(inside.path());
        folder
            .link(b"l", closed.as_os_str().as_bytes(), NOBODY)
            .unwrap();
        assert!(folder.make(b"l").is_err());
        assert!(folder.lent().is_empty());
        assert_eq!(mode(&closed), 0o500);
    });
}

/// Needs root, as all tests of owners do.
#[test]
fn owners_are_set_and_links_are_not_followed() {
    use std::os::unix::fs::MetadataExt;
    if !rustix::process::geteuid().is_root() {
        println!("not tried: only root gives files away");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let folder = folder(dir.path());
    let owner = Owner {
        user: Some(1234),
        group: None,
    };
    let both = Owner {
        user: Some(1),
        group: Some(4321),
    };
    let part = folder.begin(b"f", None, true, 0o600).unwrap().unwrap();
    let kept = Kept {
        owner,
        mode: Some(0o6755),
        times: Some((5, 7)),
    };
    part.finish(0, kept).unwrap();
    let host = dir.path().join("host");
    let look = |name: &str| {
        let metadata = std::fs::symlink_metadata(host.join(name)).unwrap();
        (metadata.uid(), metadata.gid())
    };
    let own = look("");
    assert_eq!(look("f"), (1234, own.1));
    assert_eq!(
        std::fs::metadata(host.join("f")).unwrap().mode() & 0o7777,
        0o755
    );
    // One that is there.
    let mode = |name: &str| std::fs::metadata(host.join(name)).unwrap().mode() & 0o7777;
    for (wanted, kept) in [(Some(0o6200), 0o200), (None, 0o200), (Some(0o640), 0o640)] {
        folder.adjust(b"f", both, wanted).unwrap();
        assert_eq!((look("f"), mode("f")), ((1, 4321), kept));
    }
    for already in [false, true] {
        assert_eq!(folder.link(b"l", b"f", owner).unwrap(), already);
        assert_eq!((look("l").0, look("f")), (1234, (1, 4321)));
    }
    // What a link leads to is left alone.
    folder.adjust(b"l", both, Some(0o777)).unwrap();
    assert_eq!((look("l"), look("f").0), ((1, 4321), 1));
    assert_eq!(mode("f"), 0o640);
    folder.make(b"d").unwrap();
    folder
        .finish_folder(
            b"d",
            Kept {
                owner: both,
                ..KEPT
            },
        )
        .unwrap();
    assert_eq!(look("d"), (1, 4321));
    // What is gone needs none.
    folder.adjust(b"gone", both, None).unwrap();
}

#[test]
fn hashes_of_files_without_an_end_are_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let folder = folder(dir.path());
    let size = 1 << 40;
    let part = folder.begin(b"f", None, true, 0o600).unwrap().unwrap();
    let stop = Stop::default();
    std::thread::scope(|scope| {
        let hashing = scope.spawn(|| part.hash(size, &stop));
        stop.order();
        assert!(hashing.join().unwrap().is_err());
    });
    part.finish(size, KEPT).unwrap();
    assert!(folder.hash(b"f", size, &stop).is_err());
    let none = folder.hash(b"f", 5, &Stop::default()).unwrap();
    assert_eq!(none, None, "it has another size");
}

#[test]
fn a_file_that_nobody_may_write_to_is_gone_on_with_and_has_its_mode_before_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("host");
    let begin = |mode: u32| {
        let keeper = Keeper::new(dir.path().join("journal"));
        let folder = Folder::new(path.clone(), PartNames(PartTag(1)), Some(Arc::new(keeper)));
        let like = Some((4 * CHECKPOINT, 7));
        folder.begin(b"f", like, false, mode).unwrap().unwrap()
    };
    as_somebody(dir.path(), || {
        let part = begin(0o444);
        assert!(part.write(0, &vec![1; CHECKPOINT as usize]).unwrap());
        part.note().unwrap();
        drop(part);
        let again = begin(0o444);
        assert_eq!(again.proven().end(), CHECKPOINT);
        again.finish(4 * CHECKPOINT, KEPT).unwrap();
        assert_eq!(mode(&path.join("f")) & 0o700, 0o400);
        // It keeps that if it is replaced.
        set_mode(&path.join("f"), 0o440);
        begin(0o644).finish(4 * CHECKPOINT, KEPT).unwrap();
        assert_eq!(mode(&path.join("f")), 0o440);
    });
}

/// They are holes, and the part would be shorter than what is proven.
#[test]
fn zeros_at_the_end_of_what_is_proven_are_gone_on_with() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("host");
    let begin = || {
        let keeper = Keeper::new(dir.path().join("journal"));
        let folder = Folder::new(path.clone(), PartNames(PartTag(1)), Some(Arc::new(keeper)));
        let like = Some((4 * CHECKPOINT, 7));
        folder.begin(b"f", like, false, 0o644).unwrap().unwrap()
    };
    let part = begin();
    for octet in [1, 0] {
        let data = vec![octet; CHECKPOINT as usize];
        let offset = part.file.metadata().unwrap().len();
        assert!(part.write(offset, &data).unwrap(), "it is to be noted");
        part.note().unwrap();
    }
    drop(part);
    assert_eq!(begin().proven().end(), 2 * CHECKPOINT);
}
