//! Transfers that are cut, with real sshd: killed clients, hosts that die, and what is sent again afterwards.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use sshoal_testbed::sshd::{RealSshd, SshdSpec};
use support::chance::Chance;
use support::copying::{
    Barred, CHECKPOINT, SEGMENT, come, has_proof, kept, moved, noise, over_lanes, part, text,
};
use support::line::Line;
use support::program::{Ended, Running};
use support::{Shoal, descendants, shared_folder, wait_until};

const LEN: u64 = 10 * CHECKPOINT;
/// What those are slowed down to that are cut, so that there is a middle to be cut in, and what those are that go on.
const SLOW: &str = "4M";
const LESS_SLOW: &str = "8M";

/// Over one connection.
fn command(shoal: &Shoal<RealSshd>, words: &[&str]) -> Command {
    over_lanes(shoal, 1, words)
}

/// To its end.
fn sshoal(shoal: &Shoal<RealSshd>, words: &[&str]) -> Ended {
    Running::start(&mut command(shoal, words)).wait()
}

/// Waits until a part has so many octets, or the program has ended.
fn wait_for_octets(running: &mut Running, folder: &Path, octets: u64) {
    wait_until("enough has come", || {
        come(folder) >= octets || !running.is_running()
    });
}

/// Waits until a journal proves something, or the program has ended.
fn wait_for_proof(running: &mut Running, shoal: &Shoal<RealSshd>) {
    wait_until("something is proven", || {
        has_proof(shoal) || !running.is_running()
    });
}

/// The host dies, for this connection: all that serves it is killed.
fn kill_sessions(shoal: &Shoal<RealSshd>) {
    for process in descendants(shoal.hosts.pid(0).as_raw_nonzero().get()) {
        // It may have ended with its parent.
        let _ = kill_process(Pid::from_raw(process).unwrap(), Signal::KILL);
    }
    shoal.wait_for_sessions();
}

/// More pieces than a journal has room for, if it did not join what lies on both sides of a hole.
#[test]
fn a_sparse_file_of_a_client_that_is_killed_is_not_sent_twice_beyond_a_segment() {
    const EACH: u64 = 16 * 1024;
    const DATA: u64 = 10_000 * EACH;
    let shoal = Shoal::real(&SshdSpec::new(1));
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("source");
    let contents = noise(EACH, 19);
    let file = File::create(&source).unwrap();
    for number in 0..10_000 {
        file.write_all_at(&contents, 2 * number * EACH).unwrap();
    }
    // Some file systems count what they say of the extents, too.
    let has_holes = |path: &Path| fs::metadata(path).unwrap().blocks() * 512 < DATA * 5 / 4;
    assert!(has_holes(&source), "the file system has none");
    let target = shared_folder();
    let words = ["put", "--json", text(&source), text(target.path())];
    // No more comes to the host, so that there is somebody to be killed.
    let line = Line::to(shoal.hosts.addresses()[0], Duration::ZERO, DATA * 9 / 10);
    let config = shoal.file("ssh_config");
    let rest = fs::read_to_string(&config).unwrap();
    fs::write(&config, line.stanza() + &rest).unwrap();
    let mut running = Running::start(&mut command(&shoal, &words));
    wait_for_octets(&mut running, target.path(), DATA * 4 / 5);
    assert!(running.is_running(), "it has ended before it was cut");
    drop(running);
    line.cut();
    shoal.wait_for_programs();
    let before = come(target.path());
    let again = moved(&sshoal(&shoal, &words).expect(0));
    let twice = (before + again).saturating_sub(DATA);
    assert!(twice <= SEGMENT, "{twice} octets were sent twice");
    let there = target.path().join("source");
    assert!(fs::read(&there).unwrap() == fs::read(&source).unwrap());
    assert!(has_holes(&there));
}

#[test]
fn a_host_that_dies_at_forty_percent_is_sent_only_the_rest() {
    let shoal = Shoal::real(&SshdSpec::new(1));
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("source");
    let contents = noise(LEN, 7);
    fs::write(&source, &contents).unwrap();
    let target = shared_folder();
    fs::write(target.path().join("source"), "old").unwrap();
    let words = ["put", "--json", text(&source), text(target.path())];
    let slow = [&words[..1], &["--limit", SLOW], &words[1..]].concat();
    let mut running = Running::start(&mut command(&shoal, &slow));
    wait_for_octets(&mut running, target.path(), LEN * 2 / 5);
    wait_for_proof(&mut running, &shoal);
    let barred = Barred::new(&shoal);
    kill_sessions(&shoal);
    running
        .wait()
        .expect(3)
        .says(&["lost: ", "to do: run the same again"]);
    drop(barred);
    assert_eq!(fs::read(target.path().join("source")).unwrap(), b"old");
    let there = fs::metadata(part(target.path()).unwrap()).unwrap();
    let again = moved(&sshoal(&shoal, &words).expect(0));
    assert!(again < LEN, "nothing was left out");
    assert!(again <= LEN - there.blocks() * 512 + SEGMENT);
    let now = target.path().join("source");
    assert!(fs::read(&now).unwrap() == contents, "it is not the same");
    assert_eq!(
        fs::metadata(&now).unwrap().ino(),
        there.ino(),
        "gone on with"
    );
    assert_eq!(fs::read_dir(target.path()).unwrap().count(), 1);
    assert_eq!(kept(&shoal), Vec::<PathBuf>::new());
}

#[test]
fn a_source_that_is_another_since_is_sent_whole() {
    let shoal = Shoal::real(&SshdSpec::new(1));
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("source");
    fs::write(&source, noise(LEN, 9)).unwrap();
    let target = shared_folder();
    let words = ["put", "--json", text(&source), text(target.path())];
    let mut running = Running::start(&mut command(&shoal, &words));
    wait_for_octets(&mut running, target.path(), 2 * SEGMENT);
    drop(running);
    shoal.wait_for_programs();
    // The same size and name, another file.
    let contents = noise(LEN, 11);
    fs::write(dir.path().join("new"), &contents).unwrap();
    fs::rename(dir.path().join("new"), &source).unwrap();
    assert_eq!(moved(&sshoal(&shoal, &words).expect(0)), LEN);
    assert!(fs::read(target.path().join("source")).unwrap() == contents);
    assert_eq!(fs::read_dir(target.path()).unwrap().count(), 1);
}

#[test]
fn a_source_that_was_changed_in_place_and_its_time_set_back_is_sent_whole() {
    let shoal = Shoal::real(&SshdSpec::new(1));
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("source");
    fs::write(&source, noise(LEN, 9)).unwrap();
    let modified = fs::metadata(&source).unwrap().modified().unwrap();
    let target = shared_folder();
    let words = ["put", "--json", text(&source), text(target.path())];
    let slow = [&words[..1], &["--limit", SLOW], &words[1..]].concat();
    let mut running = Running::start(&mut command(&shoal, &slow));
    wait_for_proof(&mut running, &shoal);
    assert!(running.is_running(), "it has ended before it was cut");
    drop(running);
    shoal.wait_for_programs();
    let contents = noise(LEN, 11);
    let file = File::options().write(true).open(&source).unwrap();
    file.write_all_at(&contents, 0).unwrap();
    file.set_modified(modified).unwrap();
    assert_eq!(moved(&sshoal(&shoal, &words).expect(0)), LEN);
    assert!(fs::read(target.path().join("source")).unwrap() == contents);
    assert_eq!(fs::read_dir(target.path()).unwrap().count(), 1);
}

/// Its account may not write to it by then, and the host's programs may not read it.
#[test]
fn a_file_that_nobody_may_write_to_is_gone_on_with() {
    let shoal = Shoal::real(&SshdSpec::new(1));
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("source");
    let contents = noise(LEN, 15);
    fs::write(&source, &contents).unwrap();
    fs::set_permissions(&source, Permissions::from_mode(0o044)).unwrap();
    let target = shared_folder();
    let to = text(target.path());
    let words = ["put", "-p", "--verify", "--json", text(&source), to];
    let slow = [&words[..1], &["--limit", SLOW], &words[1..]].concat();
    let mut running = Running::start(&mut command(&shoal, &slow));
    wait_for_proof(&mut running, &shoal);
    assert!(running.is_running(), "it has ended before it was cut");
    drop(running);
    shoal.wait_for_programs();
    assert!(moved(&sshoal(&shoal, &words).expect(0)) < LEN);
    let there = target.path().join("source");
    assert_eq!(fs::metadata(&there).unwrap().mode() & 0o7777, 0o044);
    assert!(fs::read(there).unwrap() == contents, "it is not the same");
}

#[test]
fn what_was_fetched_is_not_fetched_again() {
    let shoal = Shoal::real(&SshdSpec::new(1));
    let there = shared_folder();
    let source = there.path().join("source");
    let contents = noise(LEN, 13);
    fs::write(&source, &contents).unwrap();
    fs::set_permissions(&source, Permissions::from_mode(0o644)).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let host = dir.path().join(shoal.name(0));
    let words = ["get", "--json", text(&source), text(dir.path())];
    let slow = [&words[..1], &["--limit", SLOW], &words[1..]].concat();
    let mut chance = Chance(1);
    for _ in 0..4 {
        let wanted = come(&host) + chance.below(LEN / 5);
        let mut running = Running::start(&mut command(&shoal, &slow));
        wait_for_octets(&mut running, &host, wanted);
        drop(running);
        shoal.wait_for_programs();
    }
    let mut running = Running::start(&mut command(&shoal, &slow));
    wait_for_octets(&mut running, &host, LEN * 2 / 5);
    wait_for_proof(&mut running, &shoal);
    let barred = Barred::new(&shoal);
    kill_sessions(&shoal);
    running.wait().expect(3).says(&["lost: "]);
    drop(barred);
    let half = fs::metadata(part(&host).unwrap()).unwrap();
    let again = moved(&sshoal(&shoal, &words).expect(0));
    assert!(again < LEN, "nothing was left out");
    assert!(again <= LEN - half.blocks() * 512 + SEGMENT);
    assert!(fs::read(host.join("source")).unwrap() == contents);
    let now = fs::metadata(host.join("source")).unwrap();
    assert_eq!(now.ino(), half.ino(), "gone on with");
    assert_eq!(fs::read_dir(&host).unwrap().count(), 1);
    assert_eq!(kept(&shoal), Vec::<PathBuf>::new());
}

/// Kills what serves the host in the middle of a file, and insists that the same run goes on with it.
fn cut_and_go_on(shoal: &Shoal<RealSshd>, words: &[&str], folder: &Path) {
    let mut running = Running::start(&mut command(shoal, words));
    wait_for_octets(&mut running, folder, LEN * 2 / 5);
    wait_for_proof(&mut running, shoal);
    let begun = fs::metadata(part(folder).unwrap()).unwrap().ino();
    kill_sessions(shoal);
    let ended = running.wait().expect(0);
    let all = moved(&ended);
    assert_eq!(ended.records().hosts[0].attempts, 2);
    let there = fs::metadata(folder.join("source")).unwrap();
    assert_eq!(there.ino(), begun, "gone on with");
    assert!(all >= LEN, "both attempts count: {all}");
    assert!(all <= LEN + SEGMENT, "{all} octets were moved");
    assert_eq!(fs::read_dir(folder).unwrap().count(), 1);
    assert_eq!(kept(shoal), Vec::<PathBuf>::new());
}

#[test]
fn a_host_that_is_lost_is_logged_in_to_again_and_gone_on_with() {
    let shoal = Shoal::real(&SshdSpec::new(1));
    let (there, dir) = (shared_folder(), tempfile::tempdir().unwrap());
    let source = dir.path().join("source");
    let contents = noise(LEN, 17);
    fs::write(&source, &contents).unwrap();
    let limit = ["--json", "--limit", LESS_SLOW];
    let target = there.path().join("target");
    fs::create_dir(&target).unwrap();
    fs::set_permissions(&target, Permissions::from_mode(0o777)).unwrap();
    let put = [&["put"], &limit[..], &[text(&source), text(&target)]].concat();
    cut_and_go_on(&shoal, &put, &target);
    let sent = target.join("source");
    assert!(fs::read(&sent).unwrap() == contents);
    let back = dir.path().join("back");
    let get = [&["get"], &limit[..], &[text(&sent), text(&back)]].concat();
    let host = back.join(shoal.name(0));
    cut_and_go_on(&shoal, &get, &host);
    assert!(fs::read(host.join("source")).unwrap() == contents);
}
