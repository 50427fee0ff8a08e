//! Block devices for tests: files that the kernel shows as such, gone when they are dropped.

#![allow(dead_code)] // each test file uses some of it

use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use rustix::fs::OFlags;
use tempfile::{NamedTempFile, TempDir};

/// Whether the system has loop devices; says so if not.
pub(crate) fn are_there() -> bool {
    let are_there = Path::new("/dev/loop-control").exists() && rustix::process::geteuid().is_root();
    if !are_there {
        println!(
            "SKIPPED: block devices need root and loop devices, and here is no /dev/loop-control or no root"
        );
    }
    are_there
}

/// A loop device that everybody may write.
pub(crate) struct Loop {
    path: String,
    mode: u32,
    file: NamedTempFile,
}

impl Loop {
    /// A device of so many octets, all of them 0xff, with sectors of this size.
    pub(crate) fn new(len: usize, sector: u32) -> Loop {
        let file = NamedTempFile::new().unwrap();
        file.as_file().write_all_at(&vec![0xff; len], 0).unwrap();
        file.as_file().sync_all().unwrap();
        Loop::of(file, sector)
    }

    /// A device of so many octets that takes no more of them than its folder's file system has room for.
    pub(crate) fn in_folder(folder: &Path, len: usize, sector: u32) -> Loop {
        let file = NamedTempFile::new_in(folder).unwrap();
        file.as_file().set_len(len as u64).unwrap();
        Loop::of(file, sector)
    }

    fn of(file: NamedTempFile, sector: u32) -> Loop {
        let sector = sector.to_string();
        let setup = |more: &[&str]| {
            let mut losetup = Command::new("losetup");
            losetup.args(["--find", "--show", "--sector-size", &sector]);
            losetup.args(more).arg(file.path()).output().unwrap()
        };
        // Not every file system does direct I/O.
        let mut made = setup(&["--direct-io=on"]);
        if !made.status.success() {
            made = setup(&[]);
        }
        let said = String::from_utf8_lossy(&made.stderr);
        assert!(made.status.success(), "losetup: {said}");
        let path = String::from_utf8(made.stdout).unwrap().trim().to_owned();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        let device = Loop { path, mode, file };
        fs::set_permissions(device.path(), fs::Permissions::from_mode(0o666)).unwrap();
        device
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Reads and writes that the device has done, of the fields of Documentation/ABI/stable/sysfs-block.
    pub(crate) fn reads_and_writes(&self) -> (u64, u64) {
        let name = self.path.strip_prefix("/dev/").unwrap();
        let text = fs::read_to_string(format!("/sys/block/{name}/stat")).unwrap();
        let fields: Vec<u64> = text
            .split_whitespace()
            .map(|it| it.parse().unwrap())
            .collect();
        (fields[0], fields[4])
    }

    pub(crate) fn contents(&self) -> Vec<u8> {
        let mut contents = Vec::new();
        File::open(&self.path)
            .unwrap()
            .read_to_end(&mut contents)
            .unwrap();
        contents
    }

    /// What is on the medium, whatever the kernel has kept of the device.
    pub(crate) fn medium(&self) -> Vec<u8> {
        fs::read(self.file.path()).unwrap()
    }

    pub(crate) fn fill(&self, contents: &[u8]) {
        let device = OpenOptions::new().write(true).open(&self.path).unwrap();
        device.write_all_at(contents, 0).unwrap();
        device.sync_all().unwrap();
    }

    /// Holds it as the kernel does for a mount.
    pub(crate) fn claim(&self) -> File {
        let flags = OFlags::EXCL.bits() as i32;
        OpenOptions::new()
            .read(true)
            .custom_flags(flags)
            .open(&self.path)
            .unwrap()
    }

    pub(crate) fn set_read_only(&self) {
        let set = Command::new("blockdev")
            .args(["--setro", &self.path])
            .status();
        assert!(set.unwrap().success());
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("blockdev")
            .args(["--setrw", &self.path])
            .status();
        let _ = fs::set_permissions(&self.path, fs::Permissions::from_mode(self.mode));
        let _ = Command::new("losetup")
            .args(["--detach", &self.path])
            .status();
    }
}

/// A mounted device.
pub(crate) struct Mount(TempDir);

impl Mount {
    pub(crate) fn of(device: &Loop) -> Mount {
        let mount = Mount(tempfile::tempdir().unwrap());
        let made = Command::new("mount")
            .arg(device.path())
            .arg(mount.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&made.stderr);
        assert!(made.status.success(), "mount: {said}");
        mount
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.path()).status();
    }
}
