#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::PathBuf;

use sshoal_known_hosts::edit::hash;
use sshoal_known_hosts::{Entry, SALT_LEN};
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
        let (files, _) = KnownHostsFiles::read_for(paths, &[host], Some(&self.cache)).unwrap();
        files.known().lookup(&host).len()
    }

    /// The names of which the index that is believed knows something; `None` without such an index.
    fn indexed(&self) -> Option<usize> {
        let (file, state) = open(&self.file, now()).unwrap();
        let content = read_whole(&file, &state.identity).unwrap();
        let index = self.cache.of_content(&state, &content);
        index.map(|index| index.hashed_rows())
    }

    /// The lines that are found for hosts when the file has been left alone for long.
    fn later(&self, hosts: &[HostName<'_>]) -> (Vec<String>, Searched) {
        let paths = std::slice::from_ref(&self.file);
        let long_after = now() + 1000;
        let read = KnownHostsFiles::read_for_at(paths, hosts, Some(&self.cache), long_after);
        let (files, searched) = read.unwrap();
        (lines(files.known(), hosts), searched)
    }

    /// What a scan of the whole file finds.
    fn naively(&self, hosts: &[HostName<'_>]) -> Vec<String> {
        let content = fs::read(&self.file).unwrap();
        lines(
            &KnownHosts::parse(vec![(self.file.clone(), content)]),
            hosts,
        )
    }

    /// Changes the file; waits for the clock's next tick, in which a file that is settled is at the earliest.
    fn change(&self, change: impl FnOnce(&str)) {
        let changed = || fs::metadata(&self.file).map(|file| (file.ctime(), file.ctime_nsec()));
        let before = changed().unwrap();
        change(&self.file);
        while changed().unwrap() == before {
            fs::set_permissions(&self.file, fs::Permissions::from_mode(0o600)).unwrap();
        }
    }

    fn index(&self) -> PathBuf {
        let entries = fs::read_dir(self.dir.path().join("cache")).unwrap();
        let mut paths = entries.map(|entry| entry.unwrap().path());
        let is_index = |path: &PathBuf| path.extension().is_some_and(|end| end == "index");
        paths.find(is_index).unwrap()
    }
}

fn lines(known: &KnownHosts, hosts: &[HostName<'_>]) -> Vec<String> {
    let found = hosts.iter().map(|host| known.lookup(host));
    let entries = found.flat_map(|found| found.iter().collect::<Vec<_>>());
    let text = |entry: Entry<'_>| {
        let line = String::from_utf8_lossy(entry.line_text()).into_owned();
        format!("{}: {line}", entry.location())
    };
    entries.map(text).collect()
}

/// Writes within the file, keeping its size, and gives it back the time that it had.
fn overwrite(path: &str, at: u64, octets: &[u8]) {
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    let before = file.metadata().unwrap().modified().unwrap();
    file.write_all_at(octets, at).unwrap();
    file.set_modified(before).unwrap();
}

#[test]
fn what_a_settled_file_says_of_known_names_is_read_by_its_index_alone() {
    let scene = Scene::new();
    let hosts = ["host1", "missing"].map(HostName::new);
    let (found, searched) = scene.later(&hosts);
    assert_eq!((found.len(), searched.hmacs), (1, 2 * LINES as u64));
    // If the file were read in whole, or its lines searched, this would be found to be another one.
    let is_read_by_index = || {
        let (file, mut state) = open(&scene.file, now() + 1000).unwrap();
        indexed_lines(&scene.cache, &file, &mut state, &hosts).is_some()
    };
    assert!(is_read_by_index());
    assert_eq!(scene.later(&hosts), (found, Searched::default()));
    // What is known of a file that has just been written has to be compared with the file.
    scene.change(|_| {});
    scene.look_up("host1");
    assert!(!is_read_by_index());
    let (_, searched) = scene.later(&hosts);
    assert!(is_read_by_index());
    assert_eq!(searched.hmacs, 0, "the lines are the same");
    // What others add to the file is searched, and nothing else.
    let mut salts = || [9; SALT_LEN];
    let line = hash(format!("missing {KEY}\n").as_bytes(), &mut salts).bytes;
    scene.change(|path| {
        let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
        file.write_all(&line).unwrap();
    });
    let (found, searched) = scene.later(&hosts);
    assert_eq!((found.len(), searched.hmacs), (2, 2));
    assert!(is_read_by_index());
    assert_eq!(scene.later(&hosts), (found, Searched::default()));
}

#[test]
fn a_large_plain_file_has_an_index_and_a_small_one_has_none() {
    let scene = Scene::new();
    let hosts = ["host1", "missing"].map(HostName::new);
    for lines in [10, LARGE as usize / KEY.len()] {
        let content = (0..lines).map(|at| format!("host{at} {KEY}\n"));
        fs::write(&scene.file, content.collect::<String>()).unwrap();
        assert_eq!(scene.later(&hosts).0, scene.naively(&hosts));
        let has_index = scene.dir.path().join("cache").exists();
        assert_eq!(has_index, lines > 10);
    }
    assert_eq!(scene.later(&hosts).0, scene.naively(&hosts));
}

#[test]
fn a_file_that_needs_no_index_gets_none_from_another_ones_search() {
    let scene = Scene::new();
    let paths = ["/dev/null".to_owned(), scene.file.clone()];
    let host = [HostName::new("host1")];
    let (_, searched) = KnownHostsFiles::read_for(&paths, &host, Some(&scene.cache)).unwrap();
    assert_eq!(searched.hmacs, LINES as u64);
    let kept = fs::read_dir(scene.dir.path().join("cache")).unwrap();
    let is_index = |path: &PathBuf| path.extension().is_some_and(|end| end == "index");
    assert_eq!(
        kept.map(|entry| entry.unwrap().path())
            .filter(is_index)
            .count(),
        1
    );
}

#[test]
fn answers_are_those_of_the_file_as_it_is_whatever_became_of_it_or_of_its_index() {
    let scene = Scene::new();
    let hosts = ["host0", "host5", "missing", "new"].map(HostName::new);
    let plain = format!("new {KEY}\n");
    let revoked = format!("@revoked host5 {KEY}\n");
    let changes: [&dyn Fn(&str); 6] = [
        &|_| {},
        &|path| overwrite(path, 0, plain.as_bytes()),
        &|path| overwrite(path, 0, b"#"),
        &|path| {
            let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
            file.write_all(revoked.as_bytes()).unwrap();
        },
        &|path| {
            let file = fs::OpenOptions::new().write(true).open(path).unwrap();
            file.set_len(1000).unwrap();
        },
        &|path| {
            let other = format!("{path}.other");
            fs::write(&other, format!("{revoked}{plain}")).unwrap();
            fs::rename(&other, path).unwrap();
        },
    ];
    for (number, change) in changes.iter().enumerate() {
        scene.change(change);
        let naive = scene.naively(&hosts);
        for time in 0..2 {
            assert_eq!(scene.later(&hosts).0, naive, "change {number}, time {time}");
        }
        // An index that is damaged anywhere may cost time, and nothing else.
        let index = fs::read(scene.index()).unwrap();
        for at in (0..index.len()).step_by(index.len() / 50 + 1) {
            let mut damaged = index.clone();
            damaged[at] ^= 1;
            fs::write(scene.index(), damaged).unwrap();
            assert_eq!(scene.later(&hosts).0, naive, "change {number}, octet {at}");
        }
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
    assert_eq!(scene.indexed(), Some(1), "a line was added");
    overwrite(&scene.file, 0, b"#");
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
