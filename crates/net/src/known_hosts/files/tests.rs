#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use sshoal_known_hosts::SALT_LEN;
use sshoal_known_hosts::edit::hash;
use tempfile::TempDir;

use super::*;

/// Enough hashed lines for a search that is worth remembering.
const LINES: usize = FEW_PAIRS as usize + 1;
const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB";

struct Scene {
    dir: TempDir,
    file: String,
    cache: IndexCache,
}

impl Scene {
    fn new() -> Scene {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("known_hosts").to_str().unwrap().to_owned();
        let cache = IndexCache::in_folder(dir.path().join("cache"));
        let scene = Scene { dir, file, cache };
        scene.write(LINES);
        scene
    }

    /// Writes that many hashed hosts, from `host0` on.
    fn write(&self, lines: usize) {
        let plain: String = (0..lines).map(|at| format!("host{at} {KEY}\n")).collect();
        let mut salt = [7u8; SALT_LEN];
        let mut salts = || {
            salt[0] = salt[0].wrapping_add(1);
            salt
        };
        fs::write(&self.file, hash(plain.as_bytes(), &mut salts).bytes).unwrap();
    }

    /// How many lines are found for a host.
    fn look_up(&self, host: &str) -> usize {
        let host = HostName::new(host);
        let paths = std::slice::from_ref(&self.file);
        let mut files = KnownHostsFiles::read_for(paths, &[host]).unwrap();
        files.look_up_hashed(&[host], Some(&self.cache));
        files.known().lookup(&host).len()
    }

    /// Names in the index that is believed; `None` without such an index.
    fn indexed(&self) -> Option<usize> {
        let files = KnownHostsFiles::read(std::slice::from_ref(&self.file)).unwrap();
        let index = index_of(&self.cache, files.known(), &files.states[0]);
        index.map(|index| index.names())
    }

    fn index(&self) -> PathBuf {
        let entries = fs::read_dir(self.dir.path().join("cache")).unwrap();
        let mut paths = entries.map(|entry| entry.unwrap().path());
        let is_index = |path: &PathBuf| path.extension().is_some_and(|end| end == "index");
        paths.find(is_index).unwrap()
    }
}

#[test]
fn hits_and_misses_are_remembered_for_the_user_alone() {
    let scene = Scene::new();
    assert_eq!(scene.indexed(), None);
    assert_eq!((scene.look_up("host5"), scene.indexed()), (1, Some(1)));
    assert_eq!((scene.look_up("missing"), scene.indexed()), (0, Some(2)));
    assert_eq!((scene.look_up("HOST5"), scene.indexed()), (1, Some(2)));
    let mode = fs::metadata(scene.index()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn an_index_of_another_state_or_of_somebody_else_is_not_believed() {
    let scene = Scene::new();
    scene.look_up("missing");
    let index = scene.index();
    fs::set_permissions(&index, fs::Permissions::from_mode(0o640)).unwrap();
    assert_eq!(scene.indexed(), None, "others can read it");
    fs::set_permissions(&index, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(scene.indexed(), Some(1));
    let moved = index.with_extension("moved");
    fs::rename(&index, &moved).unwrap();
    symlink(&moved, &index).unwrap();
    assert_eq!(scene.indexed(), None, "it is a link");
    fs::rename(&moved, &index).unwrap();
    scene.write(LINES + 1);
    assert_eq!(scene.indexed(), None, "the file was changed");
    let new = format!("host{LINES}");
    assert_eq!((scene.look_up(&new), scene.indexed()), (1, Some(1)));
}

#[test]
fn a_small_search_is_not_worth_an_index() {
    let scene = Scene::new();
    scene.write(10);
    assert_eq!(scene.look_up("host5"), 1);
    assert!(!scene.dir.path().join("cache").exists());
}

#[test]
fn runs_at_the_same_time_lose_nothing_of_each_others_names() {
    let scene = Scene::new();
    scene.look_up("host0");
    thread::scope(|scope| {
        for host in 1..8 {
            let scene = &scene;
            scope.spawn(move || assert_eq!(scene.look_up(&format!("host{host}")), 1));
        }
    });
    assert_eq!(scene.indexed(), Some(8));
}

#[test]
fn a_missing_file_is_empty_and_one_that_cannot_be_read_is_named() {
    let scene = Scene::new();
    let missing = format!("{}.missing", scene.file);
    assert!(
        KnownHostsFiles::read(&[missing])
            .unwrap()
            .known()
            .is_empty()
    );
    let folder = scene.dir.path().to_str().unwrap().to_owned();
    let error = KnownHostsFiles::read(std::slice::from_ref(&folder))
        .err()
        .unwrap();
    assert!(error.to_string().contains(&folder), "{error}");
}
