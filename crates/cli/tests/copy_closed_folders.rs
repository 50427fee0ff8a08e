//! `sshoal get` into folders that their owner may not write into, by somebody who is not root, with real sshd.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use sshoal_testbed::sshd::SshdSpec;
use support::copying::{SOMEBODY, as_somebody, give, real, text, write};
use support::{noise, shared_folder};

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

#[test]
fn what_is_new_in_a_folder_that_is_closed_to_its_owner_comes_and_it_is_closed_again() {
    if !rustix::process::geteuid().is_root() {
        println!("not tried: only root runs something as somebody else");
        return;
    }
    let shoal = real(SshdSpec::new(1));
    let there = shared_folder();
    let tree = there.path().join("tree");
    let inner = tree.join("closed/inner");
    fs::create_dir_all(&inner).unwrap();
    write(&inner.join("old"), b"old", 0o444);
    set_mode(&inner, 0o555);
    set_mode(&tree.join("closed"), 0o555);
    let back = shared_folder();
    give(back.path(), SOMEBODY);
    let get = |flags: &[&str]| {
        let words = [&["get", "-r"][..], flags, &[text(&tree), text(back.path())]].concat();
        as_somebody(&shoal, &words).expect(0);
    };
    get(&["-p"]);
    let here = back.path().join(shoal.name(0)).join("tree/closed");
    let modes = || [mode(&here), mode(&here.join("inner"))];
    assert_eq!(modes(), [0o555, 0o555]);
    // One by one, and in a batch.
    for (round, method) in ["sftp", "tar"].into_iter().enumerate() {
        let name = format!("new{round}");
        write(&inner.join(&name), &noise(500), 0o444);
        write(&tree.join("closed").join(&name), &noise(600), 0o444);
        get(&["-p", "--method", method]);
        assert_eq!(
            fs::read(here.join("inner").join(&name)).unwrap(),
            noise(500)
        );
        assert_eq!(fs::read(here.join(&name)).unwrap(), noise(600));
        assert_eq!(modes(), [0o555, 0o555], "{method}");
    }
    // Without -p it keeps the mode that it had here.
    set_mode(&here.join("inner"), 0o511);
    write(&inner.join("last"), b"last", 0o444);
    get(&[]);
    assert_eq!(fs::read(here.join("inner/last")).unwrap(), b"last");
    assert_eq!(modes(), [0o555, 0o511]);
}

#[test]
fn a_host_s_own_folder_that_is_closed_takes_what_is_new_and_is_closed_again() {
    if !rustix::process::geteuid().is_root() {
        println!("not tried: only root runs something as somebody else");
        return;
    }
    let shoal = real(SshdSpec::new(1));
    let there = shared_folder();
    let tree = there.path().join("tree");
    fs::create_dir(&tree).unwrap();
    write(&tree.join("first"), b"first", 0o444);
    set_mode(&tree, 0o555);
    let back = shared_folder();
    give(back.path(), SOMEBODY);
    let own = back.path().join(shoal.name(0));
    fs::create_dir(&own).unwrap();
    give(&own, SOMEBODY);
    set_mode(&own, 0o555);
    let contents = format!("{}/", text(&tree));
    for (round, method) in ["sftp", "tar"].into_iter().enumerate() {
        let name = format!("new{round}");
        write(&tree.join(&name), &noise(500), 0o444);
        for source in [contents.as_str(), text(&tree)] {
            let words = [
                "get",
                "-r",
                "-p",
                "--method",
                method,
                source,
                text(back.path()),
            ];
            as_somebody(&shoal, &words).expect(0);
        }
        assert_eq!(fs::read(own.join(&name)).unwrap(), noise(500), "{method}");
        assert_eq!(fs::read(own.join("tree").join(&name)).unwrap(), noise(500));
        assert_eq!([mode(&own), mode(&own.join("tree"))], [0o555, 0o555]);
    }
}
