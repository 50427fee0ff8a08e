//! Several connections to one host that carry one transfer (`--lanes`), with real sshd.
//!
//! The server's SFTP program stands behind gates, so that nothing is over before everything is there that a test is about.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};
use sshoal_testbed::sshd::{RealSshd, SshdSpec};
use support::program::{Ended, Running};
use support::{Shoal, descendants, noise, shared_folder, wait_until};
use tempfile::TempDir;

/// Waits for the gate `start`, unless it is the first of all; answers with so many octets, and waits for the gate `rest`.
const GATED: &str = r#"
cd "$(dirname "$0")" || exit 1
if mkdir first 2>/dev/null; then
    echo $$ > first/pid
else
    while [ ! -e start ]; do sleep 0.02; done
fi
/usr/lib/openssh/sftp-server | {
    dd bs=1 count=1500 2>/dev/null
    : > "answered.$$"
    while [ ! -e rest ]; do sleep 0.02; done
    exec cat
}
"#;

const SIZE: usize = 120_000_000;

struct Scene {
    shoal: Shoal<RealSshd>,
    gates: TempDir,
    folder: TempDir,
    contents: Vec<u8>,
}

impl Scene {
    /// A server with these lines of configuration, and a large file.
    fn new(lines: &[&str]) -> Scene {
        let gates = shared_folder();
        let program = gates.path().join("sftp");
        fs::write(&program, GATED).unwrap();
        let mut spec =
            SshdSpec::new(1).line(format!("Subsystem sftp /bin/sh {}", program.display()));
        for line in lines {
            spec = spec.line(*line);
        }
        let (folder, contents) = (shared_folder(), noise(SIZE));
        fs::write(folder.path().join("big"), &contents).unwrap();
        fs::set_permissions(folder.path().join("big"), Permissions::from_mode(0o644)).unwrap();
        Scene {
            shoal: Shoal::real(&spec),
            gates,
            folder,
            contents,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.shoal.user.command(env!("CARGO_BIN_EXE_sshoal"));
        command
            .arg(words[0])
            .args(["-F", &self.shoal.file("ssh_config")])
            .args(["-f", &self.shoal.file("hosts")])
            .args(&words[1..]);
        command
    }

    fn put(&self, lanes: &str) -> Running {
        let (from, to) = (self.path("big"), self.path("there"));
        let words = ["put", "--lanes", lanes, text(&from), text(&to)];
        Running::start(&mut self.command(&words))
    }

    fn get(&self, lanes: &str) -> Running {
        let (from, to) = (self.path("big"), self.path("back"));
        let words = ["get", "--lanes", lanes, text(&from), text(&to)];
        Running::start(&mut self.command(&words))
    }

    fn open(&self, gate: &str) {
        File::create(self.gates.path().join(gate)).unwrap();
    }

    /// How many sessions have been asked for, as sshd tells at level VERBOSE (session.c, do_exec).
    fn sessions(&self) -> usize {
        let log = self.shoal.hosts.log(0);
        log.matches("Starting session: subsystem 'sftp'").count()
    }

    fn wait_for(&self, what: &str, count: usize) {
        wait_until(what, || self.sessions() == count);
    }

    /// Processes of SFTP programs that have given their first answers.
    fn answered(&self) -> Vec<i32> {
        let names = fs::read_dir(self.gates.path()).unwrap();
        let names = names.map(|name| name.unwrap().file_name().into_string().unwrap());
        let numbers = names.filter_map(|name| name.strip_prefix("answered.")?.parse().ok());
        numbers.collect()
    }

    /// A shell that runs an SFTP program of the first connection.
    fn first(&self) -> i32 {
        let path = self.gates.path().join("first/pid");
        fs::read_to_string(path).unwrap().trim().parse().unwrap()
    }

    /// The process of the first connection or of a further one.
    fn lane(&self, is_first: bool) -> i32 {
        let server = self.shoal.hosts.pid(0).as_raw_nonzero().get();
        let mut lanes = children(server).into_iter();
        lanes
            .find(|lane| descendants(*lane).contains(&self.first()) == is_first)
            .unwrap()
    }

    /// Stops the SFTP program of a channel of the first connection or of a further one. sshd starts them in their order.
    fn stop(&self, is_first: bool, channel: usize) -> Stopped {
        let mut session = self.lane(is_first);
        while let [only] = children(session)[..] {
            session = only;
        }
        let mut channels = children(session);
        channels.sort_unstable();
        let is_sftp = |process: &i32| {
            let name = fs::read_to_string(format!("/proc/{process}/comm"));
            name.is_ok_and(|name| name.trim() == "sftp-server")
        };
        let mut programs = descendants(channels[channel]).into_iter();
        let program = Pid::from_raw(programs.rfind(is_sftp).unwrap()).unwrap();
        kill_process(program, Signal::STOP).unwrap();
        Stopped(program)
    }

    /// Kills the process of the first connection or of a further one, with all that it has started.
    fn kill(&self, is_first: bool) {
        let lane = self.lane(is_first);
        for process in [vec![lane], descendants(lane)].concat() {
            // It may have ended with its parent.
            let _ = kill_process(Pid::from_raw(process).unwrap(), Signal::KILL);
        }
    }

    fn expect_sent(&self, ended: Ended) {
        ended.expect(0);
        assert!(fs::read(self.path("there")).unwrap() == self.contents);
        fs::remove_file(self.path("there")).unwrap();
        let names = fs::read_dir(self.folder.path()).unwrap();
        assert!(names.count() <= 2, "a part is left");
    }

    fn expect_fetched(&self, ended: Ended) {
        ended.expect(0);
        let host = self.path("back").join(self.shoal.name(0));
        assert!(fs::read(host.join("big")).unwrap() == self.contents);
        assert_eq!(fs::read_dir(host).unwrap().count(), 1, "a part is left");
    }
}

/// A process that does nothing until this is dropped.
struct Stopped(Pid);

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::KILL);
    }
}

fn children(parent: i32) -> Vec<i32> {
    let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
    let children = children.unwrap_or_default();
    let children = children.split_whitespace();
    children.map(|child| child.parse().unwrap()).collect()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_file_goes_there_over_several_connections() {
    let scene = Scene::new(&[]);
    let running = scene.put("4");
    scene.wait_for("four connections have two channels each", 8);
    scene.open("start");
    scene.open("rest");
    scene.expect_sent(running.wait());
    assert_eq!((scene.shoal.hosts.logins(), scene.sessions()), (4, 8));
}

#[test]
fn a_file_comes_back_over_several_connections() {
    let scene = Scene::new(&[]);
    let running = scene.get("4");
    scene.wait_for("four connections have two channels each", 8);
    scene.open("start");
    scene.open("rest");
    scene.expect_fetched(running.wait());
    assert_eq!((scene.shoal.hosts.logins(), scene.sessions()), (4, 8));
}

#[test]
fn a_connection_that_dies_in_the_midst_of_sending_loses_nothing() {
    let scene = Scene::new(&[]);
    let running = scene.put("3");
    scene.wait_for("three connections have two channels each", 6);
    scene.open("start");
    wait_until("all have work", || scene.answered().len() == 6);
    scene.kill(false);
    scene.open("rest");
    scene.expect_sent(running.wait());
    let logins = scene.shoal.hosts.logins();
    assert!(
        (3..=4).contains(&logins),
        "{logins}: one may take its place"
    );
}

#[test]
fn a_connection_that_dies_in_the_midst_of_fetching_loses_nothing() {
    let scene = Scene::new(&[]);
    let running = scene.get("3");
    scene.wait_for("three connections have two channels each", 6);
    scene.open("start");
    wait_until("all have work", || scene.answered().len() == 6);
    scene.kill(false);
    scene.open("rest");
    scene.expect_fetched(running.wait());
}

#[test]
fn a_first_connection_that_dies_is_made_anew_and_nothing_is_lost() {
    let scene = Scene::new(&[]);
    let running = scene.put("3");
    scene.wait_for("three connections have two channels each", 6);
    scene.open("start");
    wait_until("all have work", || scene.answered().len() == 6);
    scene.kill(true);
    scene.open("rest");
    scene.expect_sent(running.wait());
    assert!(scene.shoal.hosts.logins() > 3);
}

#[test]
fn a_connection_whose_program_hangs_is_done_without() {
    let scene = Scene::new(&[]);
    let running = scene.put("3");
    scene.wait_for("three connections have two channels each", 6);
    scene.open("start");
    wait_until("all have work", || scene.answered().len() == 6);
    let _stopped = scene.stop(false, 0);
    scene.open("rest");
    scene.expect_sent(running.wait());
}

#[test]
fn a_second_channel_whose_program_hangs_is_done_without() {
    let scene = Scene::new(&[]);
    let running = scene.put("1");
    scene.wait_for("the connection has two channels", 2);
    scene.open("start");
    wait_until("both have work", || scene.answered().len() == 2);
    let _stopped = scene.stop(true, 1);
    scene.open("rest");
    scene.expect_sent(running.wait());
    assert_eq!(scene.shoal.hosts.logins(), 1);
}

#[test]
fn a_first_channel_whose_program_hangs_while_others_go_on_is_made_anew() {
    let scene = Scene::new(&[]);
    let running = scene.get("2");
    scene.wait_for("two connections have two channels each", 4);
    scene.open("start");
    wait_until("all have work", || scene.answered().len() == 4);
    let _stopped = scene.stop(true, 0);
    scene.open("rest");
    scene.expect_fetched(running.wait());
    assert!(scene.shoal.hosts.logins() > 2);
}

#[test]
fn a_server_with_one_session_a_connection_gets_no_more() {
    let scene = Scene::new(&["MaxSessions 1"]);
    let running = scene.put("3");
    scene.wait_for("three connections have a channel each", 3);
    scene.open("start");
    scene.open("rest");
    scene.expect_sent(running.wait());
    assert_eq!((scene.shoal.hosts.logins(), scene.sessions()), (3, 3));
}

/// Those that sshd drops are not missed.
#[test]
fn a_server_that_lets_in_one_at_a_time_is_enough() {
    let scene = Scene::new(&["MaxStartups 1"]);
    let running = scene.put("6");
    wait_until("one more is in", || scene.shoal.hosts.logins() >= 2);
    scene.open("start");
    scene.open("rest");
    scene.expect_sent(running.wait());
}

#[test]
fn one_connection_is_all_if_the_user_says_so() {
    let scene = Scene::new(&[]);
    scene.open("start");
    scene.open("rest");
    scene.expect_sent(scene.put("1").wait());
    assert_eq!(scene.shoal.hosts.logins(), 1);
    let ended = scene.put("0").wait().expect(2);
    ended.says(&["--lanes", "from 1 to 128"]);
}
