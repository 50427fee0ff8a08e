//! What tests of `sshoal put` and `get` share: the commands, and what there is to be seen afterwards.

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, SystemTime};

use sshoal_testbed::sshd::{RealSshd, SshdSpec};
use tempfile::TempDir;

use super::chance::Chance;
use super::program::{Ended, Running};
use super::{Shoal, shared_folder, write_program};

pub(crate) fn real(spec: SshdSpec) -> Shoal<RealSshd> {
    Shoal::real(&spec)
}

pub(crate) fn command(shoal: &Shoal<RealSshd>, words: &[&str]) -> Command {
    let mut command = shoal.user.command(env!("CARGO_BIN_EXE_sshoal"));
    command
        .arg(words[0])
        .args(["-F", &shoal.file("ssh_config")]);
    command.args(["-f", &shoal.file("hosts")]).args(&words[1..]);
    command
}

/// The same over so many connections at most.
pub(crate) fn over_lanes(shoal: &Shoal<RealSshd>, lanes: u64, words: &[&str]) -> Command {
    let lanes = lanes.to_string();
    command(
        shoal,
        &[&words[..1], &["--lanes", &lanes], &words[1..]].concat(),
    )
}

/// `sshoal put` or `get` on all hosts, to its end.
pub(crate) fn sshoal(shoal: &Shoal<RealSshd>, words: &[&str]) -> Ended {
    Running::start(&mut command(shoal, words)).wait()
}

/// Makes something somebody's; a link itself.
pub(crate) fn give(path: &Path, (user, group): (u32, u32)) {
    lchown(path, Some(user), Some(group)).unwrap();
}

/// Somebody who is not root on this machine.
pub(crate) const SOMEBODY: (u32, u32) = (454_545, 454_546);

/// `sshoal` run by that one; needs root.
pub(crate) fn as_somebody(shoal: &Shoal<RealSshd>, words: &[&str]) -> Ended {
    for folder in [shoal.dir.path(), shoal.user.home()] {
        let entries = fs::read_dir(folder).unwrap();
        for path in entries.map(|entry| entry.unwrap().path()) {
            give(&path, SOMEBODY);
        }
        give(folder, SOMEBODY);
    }
    let mut command = command(shoal, words);
    Running::start(command.uid(SOMEBODY.0).gid(SOMEBODY.1)).wait()
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Commands that the first host has been asked to run (session.c, do_exec, at level VERBOSE).
pub(crate) fn commands(shoal: &Shoal<RealSshd>) -> usize {
    let log = shoal.hosts.log(0);
    log.matches("Starting session: command").count()
}

/// A folder with these programs alone, by what they are called there.
pub(crate) fn programs(named: &[(&str, &str)]) -> TempDir {
    let programs = shared_folder();
    for (name, program) in named {
        symlink(program, programs.path().join(name)).unwrap();
    }
    programs
}

/// One program more, of a few lines for a shell.
pub(crate) fn script(programs: &Path, name: &str, lines: &str) {
    write_program(programs.join(name), format!("#!/bin/sh\n{lines}\n"));
}

/// A host with a folder of programs as its only one.
pub(crate) fn with_programs(programs: &Path) -> SshdSpec {
    SshdSpec::new(1).line(format!("SetEnv PATH={}", programs.display()))
}

/// The key that lets everybody in, out of the way for as long as this is there: who is cut off stays so.
pub(crate) struct Barred(PathBuf);

impl Barred {
    pub(crate) fn new(shoal: &Shoal<RealSshd>) -> Barred {
        let keys = shoal.hosts.dir().join("authorized_keys");
        fs::rename(&keys, keys.with_extension("barred")).unwrap();
        Barred(keys)
    }
}

impl Drop for Barred {
    fn drop(&mut self) {
        fs::rename(self.0.with_extension("barred"), &self.0).unwrap();
    }
}

/// A small file system that everybody may write to, unmounted when it is dropped.
pub(crate) struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts one of this size (tmpfs(5)) on a folder; `None` where nothing may be mounted, which is said.
    pub(crate) fn mount(folder: &Path, size: &str) -> Option<SmallDisk> {
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size},mode=0777")])
            .arg("tmpfs")
            .arg(folder)
            .output();
        if mounted.is_ok_and(|mounted| mounted.status.success()) {
            return Some(SmallDisk(folder.to_owned()));
        }
        println!("a full disk is not tried: no file system may be mounted here");
        None
    }

    /// Nothing can be written to it any more.
    pub(crate) fn seal(&self) {
        let mut mount = Command::new("mount");
        mount.args(["-o", "remount,ro"]).arg(&self.0);
        assert!(mount.status().unwrap().success());
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("-l").arg(&self.0).status();
        assert!(thread::panicking() || unmounted.unwrap().success());
    }
}

/// A file that has no room on the host: what was there stays, and no part is left.
pub(crate) fn a_full_disk_is_named(shoal: &Shoal<RealSshd>) {
    let target = shared_folder();
    let Some(_disk) = SmallDisk::mount(target.path(), "2m") else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let new = dir.path().join("new");
    fs::write(&new, super::noise(5_000_000)).unwrap();
    fs::write(target.path().join("new"), "old").unwrap();
    sshoal(shoal, &["put", text(&new), text(target.path())])
        .expect(3)
        .says(&["no space left on the device", "make room"]);
    assert_eq!(fs::read(target.path().join("new")).unwrap(), b"old");
    assert_eq!(parts(target.path()).len(), 0);
}

/// A file system that is read-only: neither a file nor a folder can be put there, nor a folder into one that is there.
pub(crate) fn a_read_only_target_is_named(shoal: &Shoal<RealSshd>) {
    let target = shared_folder();
    let Some(disk) = SmallDisk::mount(target.path(), "2m") else {
        return;
    };
    fs::write(target.path().join("new"), "old").unwrap();
    fs::create_dir(target.path().join("there")).unwrap();
    disk.seal();
    let dir = tempfile::tempdir().unwrap();
    let (file, tree) = (dir.path().join("new"), dir.path().join("tree"));
    fs::write(&file, "contents").unwrap();
    fs::create_dir_all(tree.join("inner")).unwrap();
    let there = target.path().join("there");
    let missing = target.path().join("missing");
    for words in [
        ["put", text(&file), text(target.path())].as_slice(),
        &["put", "-r", text(&tree), text(&there)],
        &["put", "-r", text(&tree), text(&missing)],
    ] {
        sshoal(shoal, words)
            .expect(3)
            .says(&["the file system is read-only"]);
    }
    assert_eq!(fs::read(target.path().join("new")).unwrap(), b"old");
}

/// Everything below a folder by its path: what it is, its mode, time and contents.
pub(crate) fn listing(folder: &Path) -> BTreeMap<Vec<u8>, (u32, i64, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(path) = folders.pop() {
        for entry in fs::read_dir(path).unwrap() {
            let path = entry.unwrap().path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            let (mut time, contents) = match metadata.file_type() {
                kind if kind.is_symlink() => (
                    0,
                    fs::read_link(&path)
                        .unwrap()
                        .into_os_string()
                        .as_bytes()
                        .to_vec(),
                ),
                kind if kind.is_dir() => (metadata.mtime(), Vec::new()),
                _ => (metadata.mtime(), fs::read(&path).unwrap()),
            };
            if metadata.is_dir() {
                folders.push(path.clone());
            }
            let name = path
                .strip_prefix(folder)
                .unwrap()
                .as_os_str()
                .as_bytes()
                .to_vec();
            if metadata.is_symlink() {
                time = 0;
            }
            found.insert(name, (metadata.mode(), time, contents));
        }
    }
    found
}

pub(crate) fn write(path: &Path, contents: &[u8], mode: u32) {
    fs::write(path, contents).unwrap();
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_500_000_000);
    File::open(path).unwrap().set_modified(time).unwrap();
}

/// Names of parts below a folder, in which a transfer may put things in place meanwhile.
pub(crate) fn parts(folder: &Path) -> Vec<Vec<u8>> {
    assert!(folder.is_dir(), "{}", folder.display());
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(path) = folders.pop() {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = path.strip_prefix(folder).unwrap().as_os_str().as_bytes();
            if name.ends_with(b".part") {
                found.push(name.to_vec());
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(path);
            }
        }
    }
    found
}

/// After so many octets of a file an fsync is asked for (`sshoal_transfer::CHECKPOINT`).
pub(crate) const CHECKPOINT: u64 = 8 << 20;

/// Octets of contents that a transfer with `--json` says it has moved.
pub(crate) fn moved(ended: &Ended) -> u64 {
    let shown = ended.stdout();
    let (_, octets) = shown.rsplit_once(r#""octets":"#).unwrap();
    let digits = octets.split(|letter: char| !letter.is_ascii_digit()).next();
    digits.unwrap().parse().unwrap()
}

/// Everything that is kept of transfers, in the state folder.
pub(crate) fn kept(shoal: &Shoal<RealSshd>) -> Vec<PathBuf> {
    let folder = shoal.user.home().join(".local/state/sshoal/transfers");
    // It is made by the first transfer.
    let entries = fs::read_dir(folder).into_iter().flatten();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| !path.ends_with("secret")).collect()
}

/// Octets that the journals of transfers prove (`sshoal_journal`: a head of 12 octets, then records of a length, a sum and a body, whose
/// first octet is 1 where a file begins, with its number and key, or 2 before a number and segments).
pub(crate) fn proven(shoal: &Shoal<RealSshd>) -> u64 {
    let folders = kept(shoal);
    let files = folders.iter().filter_map(|it| fs::read_dir(it).ok());
    let paths = files.flatten().filter_map(|file| Some(file.ok()?.path()));
    paths
        .map(|path| proven_by(&fs::read(path).unwrap_or_default()))
        .sum()
}

fn proven_by(journal: &[u8]) -> u64 {
    let number = |octets: &[u8]| octets.iter().fold(0, |all, &it| all << 8 | u64::from(it));
    let mut keys: BTreeMap<u64, &[u8]> = BTreeMap::new();
    let mut files: BTreeMap<&[u8], Vec<(u64, u64)>> = BTreeMap::new();
    let mut records = journal.get(12..).unwrap_or_default();
    while let Some((head, after)) = records.split_first_chunk::<8>() {
        let Some((body, rest)) = after.split_at_checked(number(&head[..4]) as usize) else {
            break;
        };
        records = rest;
        let (file, len) = (
            number(&body[1..5]),
            number(body.get(5..9).unwrap_or_default()),
        );
        match body[0] {
            1 => {
                let key = &body[9..9 + len as usize];
                keys.insert(file, key);
                files.insert(key, Vec::new());
            }
            2 => {
                let segments = body[9..].chunks(16);
                let segments = segments.map(|it| (number(&it[..8]), number(&it[8..])));
                files.get_mut(keys[&file]).unwrap().extend(segments);
            }
            _ => {}
        }
    }
    // Segments may be told of twice.
    let octets = |segments: &mut Vec<(u64, u64)>| {
        segments.sort_unstable();
        let mut end = 0;
        let new = segments.iter().map(|&(from, to)| {
            let begun = end.max(from);
            end = end.max(to);
            end - begun.min(end)
        });
        new.sum::<u64>()
    };
    files.values_mut().map(octets).sum()
}

/// Whether a journal proves something.
pub(crate) fn has_proof(shoal: &Shoal<RealSshd>) -> bool {
    proven(shoal) > 0
}

/// What one lane may send twice: on each of its two channels what came since the last fsync, and as much while that went on.
pub(crate) const SEGMENT: u64 = 2 * 2 * CHECKPOINT;

/// The only part in a folder.
pub(crate) fn part(folder: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?;
    let mut paths = entries.map(|entry| entry.unwrap().path());
    paths.find(|path| text(path).ends_with(".part"))
}

/// Octets that a part has: those that were never written are holes.
pub(crate) fn come(folder: &Path) -> u64 {
    let metadata = part(folder).and_then(|part| fs::metadata(part).ok());
    metadata.map_or(0, |metadata| metadata.blocks() * 512)
}

/// Octets that repeat nothing, others for each seed.
pub(crate) fn noise(length: u64, seed: u64) -> Vec<u8> {
    let mut chance = Chance(seed | 1);
    let words = (0..length.div_ceil(8)).flat_map(|_| chance.below(u64::MAX).to_le_bytes());
    words.take(length as usize).collect()
}
