//! Clients that are killed at any moment, with real sshd: what is there is old or new, and who comes next ends it and sends only what
//! nothing proves.
//!
//! SSHOAL_KILLS and SSHOAL_KILL_SEED make it more kills of each copy than what every test run has, and others.

#![allow(clippy::unwrap_used)]

mod support;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use sshoal_testbed::sshd::{RealSshd, SshdSpec};
use support::chance::{Chance, number};
use support::copying::{
    CHECKPOINT, SEGMENT, come, give, kept, listing, moved, noise, over_lanes, parts, proven, text,
    write,
};
use support::program::Running;
use support::{Shoal, shared_folder, wait_until};

const LEN: u64 = 10 * CHECKPOINT;
const OLD: &[u8] = b"the old one";

/// One copy, again and again, to one folder.
struct Scene {
    shoal: Shoal<RealSshd>,
    words: Vec<String>,
    /// Where what is copied arrives.
    target: PathBuf,
    chance: Chance,
    /// What those that are killed are slowed down to, so that there is a middle to be killed in.
    limit: &'static str,
    /// How long one takes that nobody kills.
    usual: Duration,
}

impl Scene {
    /// The copy has been made once.
    fn new(shoal: Shoal<RealSshd>, words: &[&str], target: PathBuf, limit: &'static str) -> Scene {
        let mut scene = Scene {
            shoal,
            words: words.iter().map(|&word| word.to_owned()).collect(),
            target,
            chance: Chance::of_kills(20_261_128),
            limit,
            usual: Duration::ZERO,
        };
        let begun = Instant::now();
        scene.start_slowly().wait().expect(0);
        scene.usual = begun.elapsed();
        scene
    }

    fn start(&self) -> Running {
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        Running::start(&mut over_lanes(&self.shoal, 1, &words))
    }

    fn start_slowly(&self) -> Running {
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        let slow = [&words[..1], &["--limit", self.limit], &words[1..]].concat();
        Running::start(&mut over_lanes(&self.shoal, 1, &slow))
    }

    fn sleep_at_most(&mut self, most: Duration) {
        let most = most.as_micros() as u64;
        thread::sleep(Duration::from_micros(self.chance.below(most.max(1))));
    }

    /// Kills one at any moment; the verdict hangs on none in particular.
    fn kill_anywhere(&mut self) {
        let running = self.start_slowly();
        self.sleep_at_most(self.usual);
        drop(running);
        self.shoal.wait_for_programs();
    }

    /// Kills one as soon as something has come true.
    fn kill_when(&mut self, what: &str, is_true: impl Fn(&Scene) -> bool) {
        let mut running = self.start_slowly();
        wait_until(what, || is_true(self) || !running.is_running());
        drop(running);
        self.shoal.wait_for_programs();
    }

    /// Kills one when all has come, while it is brought to the disk, noted and put in place.
    fn kill_at_the_end(&mut self, len: u64) {
        let mut running = self.start_slowly();
        wait_until("all has come", || {
            come(&self.target) >= len || !running.is_running()
        });
        self.sleep_at_most(self.usual / 8);
        drop(running);
        self.shoal.wait_for_programs();
    }
}

/// A file that has a predecessor: whoever looks finds one of them, whole.
fn one_file_is_old_or_new(mut scene: Scene, contents: &[u8]) {
    let there = scene.target.join("source");
    let (mut halves, mut news, mut proofs) = (0, 0, 0);
    for round in 0..number("SSHOAL_KILLS", 15) {
        write(&there, OLD, 0o644);
        match round % 3 {
            0 => scene.kill_at_the_end(LEN),
            1 => scene.kill_when("something is proven", |it| proven(&it.shoal) > 0),
            _ => scene.kill_anywhere(),
        }
        let now = fs::read(&there).unwrap();
        let is_new = now == contents;
        assert!(is_new || now == OLD, "it is neither in round {round}");
        let (before, proven) = (come(&scene.target), proven(&scene.shoal));
        halves += usize::from(before > 0);
        news += usize::from(is_new);
        proofs += usize::from(!is_new && proven > 0);
        let again = moved(&scene.start().wait().expect(0));
        match is_new {
            true => assert_eq!(again, 0, "it was there"),
            false => {
                assert!(again <= LEN - proven, "{again}, and {proven} were proven");
                let twice = (before + again).saturating_sub(LEN);
                assert!(twice <= SEGMENT, "{twice} octets were sent twice");
            }
        }
        assert!(fs::read(&there).unwrap() == contents, "round {round}");
        assert_eq!(fs::read_dir(&scene.target).unwrap().count(), 1);
        assert_eq!(kept(&scene.shoal), Vec::<PathBuf>::new());
    }
    assert!(halves > 0, "nothing was ever half done");
    assert!(
        proofs > 0,
        "of nothing that was half done was anything proven"
    );
    println!("{halves} were half done, {proofs} with proof, {news} in place");
}

#[test]
fn a_file_that_is_sent_over_an_old_one_is_old_or_new_whenever_the_client_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("source");
    let contents = noise(LEN, 23);
    fs::write(&source, &contents).unwrap();
    let target = shared_folder();
    let words = ["put", "-p", "--json", text(&source), text(target.path())];
    let shoal = Shoal::real(&SshdSpec::new(1));
    let scene = Scene::new(shoal, &words, target.path().to_owned(), "100M");
    one_file_is_old_or_new(scene, &contents);
}

#[test]
fn a_file_that_is_fetched_over_an_old_one_is_old_or_new_whenever_the_client_is_killed() {
    let there = shared_folder();
    let source = there.path().join("source");
    let contents = noise(LEN, 29);
    write(&source, &contents, 0o644);
    let dir = tempfile::tempdir().unwrap();
    let words = ["get", "-p", "--json", text(&source), text(dir.path())];
    let shoal = Shoal::real(&SshdSpec::new(1));
    let target = dir.path().join(shoal.name(0));
    let scene = Scene::new(shoal, &words, target, "100M");
    one_file_is_old_or_new(scene, &contents);
}

/// Small files that go in batches, some that do not, a link and an empty folder.
fn plant(tree: &Path) {
    for folder in ["a", "b", "empty"] {
        fs::create_dir_all(tree.join(folder)).unwrap();
    }
    for number in 0..300_u64 {
        let folder = ["", "a", "b"][number as usize % 3];
        let path = tree.join(folder).join(number.to_string());
        write(&path, &noise(100 + number * 37, number), 0o644);
    }
    for number in 0..6 {
        let path = tree.join("b").join(format!("larger{number}"));
        write(&path, &noise(1_500_000, 1000 + number), 0o604);
    }
    symlink("a/1", tree.join("link")).unwrap();
}

/// Every file of a tree is old, new or not there yet, and all are new in the end, with nothing beside them.
fn a_tree_is_old_or_new(mut scene: Scene, tree: &Path) {
    let wanted = listing(tree);
    let copy = scene.target.join("tree");
    let is_whole = |now: &Path| {
        let now = listing(now);
        assert!(now.keys().eq(wanted.keys()), "other names");
        for (name, entry) in &wanted {
            let name = String::from_utf8_lossy(name);
            assert!(now[name.as_bytes()] == *entry, "{name} is another");
        }
    };
    is_whole(&copy);
    let whose = fs::metadata(&copy).unwrap();
    let owner = (whose.uid(), whose.gid());
    let mut halves = 0;
    for round in 0..number("SSHOAL_KILLS", 15) {
        fs::remove_dir_all(&copy).unwrap();
        // Every other file has a predecessor; some folders are there.
        for (name, _) in wanted.iter().filter(|(_, it)| it.0 >> 12 == 8).step_by(2) {
            let path = copy.join(OsStr::from_bytes(name));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            write(&path, OLD, 0o644);
        }
        give_all(&copy, owner);
        match round % 3 {
            0 => scene.kill_when("some are in place", |_| {
                let files = wanted.iter().filter(|(_, it)| it.0 >> 12 == 8);
                let is_new = |(name, it): &(&Vec<u8>, &(u32, i64, Vec<u8>))| {
                    let there = fs::metadata(copy.join(OsStr::from_bytes(name)));
                    there.is_ok_and(|there| there.len() == it.2.len() as u64)
                };
                files.filter(is_new).count() > 10
            }),
            _ => scene.kill_anywhere(),
        }
        let mut news = 0;
        for (name, (_, _, contents)) in listing(&copy) {
            let Some(new) = wanted.get(&name) else {
                continue;
            };
            let is_new = contents == new.2;
            news += usize::from(is_new);
            let name = String::from_utf8_lossy(&name);
            assert!(
                is_new || contents == OLD,
                "{name} is neither, round {round}"
            );
        }
        halves += usize::from(news > 5 && news < wanted.len());
        scene.start().wait().expect(0);
        is_whole(&copy);
        assert_eq!(kept(&scene.shoal), Vec::<PathBuf>::new());
        assert_eq!(parts(&scene.target), Vec::<Vec<u8>>::new());
    }
    assert!(halves > 0, "nothing was ever half done");
    println!("{halves} were half done");
}

/// A folder and what is in it become those of whoever copies.
fn give_all(folder: &Path, owner: (u32, u32)) {
    give(folder, owner);
    for name in listing(folder).into_keys() {
        give(&folder.join(OsStr::from_bytes(&name)), owner);
    }
}

#[test]
fn every_file_of_a_tree_that_is_sent_is_old_or_new_whenever_the_client_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let tree = dir.path().join("tree");
    plant(&tree);
    let target = shared_folder();
    let words = ["put", "-rp", "--json", text(&tree), text(target.path())];
    let shoal = Shoal::real(&SshdSpec::new(1));
    let scene = Scene::new(shoal, &words, target.path().to_owned(), "10M");
    a_tree_is_old_or_new(scene, &tree);
}

#[test]
fn every_file_of_a_tree_that_is_fetched_is_old_or_new_whenever_the_client_is_killed() {
    let there = shared_folder();
    let tree = there.path().join("tree");
    plant(&tree);
    let dir = tempfile::tempdir().unwrap();
    let words = ["get", "-rp", "--json", text(&tree), text(dir.path())];
    let shoal = Shoal::real(&SshdSpec::new(1));
    let target = dir.path().join(shoal.name(0));
    let scene = Scene::new(shoal, &words, target, "10M");
    a_tree_is_old_or_new(scene, &tree);
}

/// Kills a client ten times a round, each time when so much more has come, and lets another one end what it has begun: of what had come
/// by then that one sends no more than a segment a lane. What those that were killed have sent again they tell nobody.
fn is_killed(lanes: u64, rounds: usize, length: u64) {
    let shoal = Shoal::real(&SshdSpec::new(1));
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("source");
    let contents = noise(length, 5);
    fs::write(&source, &contents).unwrap();
    let target = shared_folder();
    let words = ["put", "--json", text(&source), text(target.path())];
    let start = || Running::start(&mut over_lanes(&shoal, lanes, &words));
    let mut chance = Chance(20_261_122);
    let mut in_the_middle = 0;
    for _ in 0..rounds {
        for _ in 0..10 {
            let wanted = come(target.path()) + chance.below(length / 8);
            let mut running = start();
            wait_until("enough has come", || {
                come(target.path()) >= wanted || !running.is_running()
            });
            drop(running);
            shoal.wait_for_programs();
        }
        let before = come(target.path());
        in_the_middle += usize::from(before > 0);
        let ended = start().wait().expect(0);
        let twice = (before + moved(&ended)).saturating_sub(length);
        assert!(twice <= lanes * SEGMENT, "{twice} octets were sent twice");
        let there = target.path().join("source");
        assert!(fs::read(&there).unwrap() == contents, "it is not the same");
        assert_eq!(fs::read_dir(target.path()).unwrap().count(), 1);
        fs::remove_file(&there).unwrap();
    }
    assert!(in_the_middle > 0, "nothing was ever half done");
    assert_eq!(kept(&shoal), Vec::<PathBuf>::new());
}

#[test]
fn a_client_that_is_killed_twenty_times_sends_nothing_twice_beyond_a_segment() {
    is_killed(1, 2, LEN);
}

#[test]
fn a_client_of_two_lanes_that_is_killed_sends_nothing_twice_beyond_a_segment_a_lane() {
    is_killed(2, 2, 2 * LEN);
}
