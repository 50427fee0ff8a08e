//! `sshoal put` and `sshoal get` onto block devices that fail while they are written: loop devices on a file system that is
//! soon full. Their writes fail as those of a disk that has gone.
//!
//! Needs root and loop devices. Where the system has none (no /dev/loop-control, as in most containers) every test says so on
//! standard output and checks nothing; where it has them and refuses one, the test fails.

#![allow(clippy::unwrap_used)]

#[path = "support/loop_device.rs"]
mod loop_device;
mod support;

use std::fs;

use loop_device::{Loop, are_there};
use sshoal_testbed::sshd::SshdSpec;
use support::copying::{SmallDisk, programs, real, script, sshoal, text, with_programs};
use support::program::Ended;
use support::{noise, shared_folder};
use tempfile::TempDir;

const MIB: usize = 1 << 20;

/// A device of 16 MiB that has room for less than 4. In the order in which they are undone.
struct Failing {
    device: Loop,
    _disk: SmallDisk,
    _folder: TempDir,
}

/// `None` where there can be none, which is said.
fn failing() -> Option<Failing> {
    if !are_there() {
        return None;
    }
    let folder = TempDir::new().unwrap();
    let disk = SmallDisk::mount(folder.path(), "4m")?;
    Some(Failing {
        device: Loop::in_folder(folder.path(), 16 * MIB, 4096),
        _disk: disk,
        _folder: folder,
    })
}

/// Insists on the exit status, the names, and a number of octets that is true; returns that.
#[track_caller]
fn is_told(ended: Ended, names: &[&str], device: &Loop, image: &[u8]) -> usize {
    let ended = ended.expect(3).says(names);
    let ended = ended.says(&["half-written", "run it again"]);
    let said = ended.stderr();
    let (_, rest) = said.split_once("with at least ").unwrap();
    let certain: usize = rest.split(' ').next().unwrap().parse().unwrap();
    assert!(certain < image.len(), "{said}");
    let medium = device.medium();
    assert!(
        medium[..certain] == image[..certain],
        "it is not true: {said}"
    );
    certain
}

#[test]
fn the_error_names_host_device_and_what_is_on_it() {
    let sound = ["sh", "stat", "dd"].map(|name| (name, format!("/usr/bin/{name}")));
    let sound: Vec<(&str, &str)> = sound
        .iter()
        .map(|(name, path)| (*name, &path[..]))
        .collect();
    let sound = programs(&sound);
    // A dd that knows no direct writes.
    let plain = programs(&[("sh", "/usr/bin/sh"), ("stat", "/usr/bin/stat")]);
    let dd = "case \"$*\" in *oflag=direct*) exit 1;; esac\nexec /usr/bin/dd \"$@\"";
    script(plain.path(), "dd", dd);
    let dir = TempDir::new().unwrap();
    let image = dir.path().join("image");
    let contents = noise(12 * MIB);
    fs::write(&image, &contents).unwrap();
    for (spec, least) in [
        (with_programs(sound.path()), MIB),
        (with_programs(plain.path()), 0),
        (SshdSpec::new(1).line("ForceCommand internal-sftp"), 0),
    ] {
        let Some(failing) = failing() else {
            return;
        };
        let device = &failing.device;
        let shoal = real(spec.line("Subsystem sftp internal-sftp"));
        let (host, words) = (shoal.name(0), ["put", "--yes", text(&image), device.path()]);
        let ended = sshoal(&shoal, &words);
        let names = [host.as_str(), device.path(), "on the host"];
        let certain = is_told(ended, &names, device, &contents);
        assert!(certain >= least, "{certain} of {least} octets or more");
    }
}

#[test]
fn a_device_here_that_fails_is_told_in_the_same_way() {
    let Some(failing) = failing() else {
        return;
    };
    let shoal = real(SshdSpec::new(1));
    let there = shared_folder();
    let image = there.path().join("image");
    let contents = noise(12 * MIB);
    fs::write(&image, &contents).unwrap();
    let (host, device) = (shoal.name(0), &failing.device);
    let ended = sshoal(&shoal, &["get", "--yes", text(&image), device.path()]);
    is_told(ended, &[host.as_str(), text(&image)], device, &contents);
}
