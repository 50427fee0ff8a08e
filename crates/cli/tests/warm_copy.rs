//! `sshoal put` and `get` by the connections that `sshoal up` keeps: the same as without, but for the logins. Real sshd.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::{Signal, kill_process};
use serde_json::Value;
use sshoal_testbed::sshd::SshdSpec;
use support::between::Between;
use support::copying::{Barred, SmallDisk, listing, parts, text, write};
use support::program::{Ended, Running};
use support::warm::{Warm, has_ended};
use support::{noise, shared_folder, wait_until};
use tempfile::TempDir;

/// `sshoal put` or `get` of all hosts.
fn command(warm: &Warm, words: &[&str]) -> Command {
    let (config, hosts) = (warm.shoal.file("ssh_config"), warm.shoal.file("hosts"));
    let mut command = warm.sshoal(&[words[0], "--json", "-F", &config, "-f", &hosts]);
    command.args(&words[1..]);
    command
}

fn copied(warm: &Warm, words: &[&str], status: i32) -> Ended {
    Running::start(&mut command(warm, words))
        .wait()
        .expect(status)
}

#[track_caller]
fn expect_warm(ended: &Ended, warm: bool) {
    for record in ended.records().hosts {
        assert_eq!(record.warm, Some(warm), "{record:?}");
        assert_eq!(record.times_us.login.is_none(), warm, "{record:?}");
    }
}

/// What is to be the same by whatever connection.
fn essence(ended: &Ended) -> Vec<[Value; 9]> {
    let shown = ended.stdout();
    let objects = shown
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    let hosts = objects.filter(|object: &Value| object["type"] == "host");
    let essence = |object: Value| {
        [
            "host",
            "outcome",
            "failure",
            "detail",
            "remedy",
            "exit_status",
            "stdout",
            "stderr",
            "transfer",
        ]
        .map(|key| object[key].clone())
    };
    let mut essences: Vec<_> = hosts.map(essence).collect();
    essences.sort_unstable_by_key(|[host, ..]| host.to_string());
    essences
}

/// Files of all sizes: enough small ones for batches, and links.
fn tree() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let tree = dir.path().join("tree");
    fs::create_dir_all(tree.join("a/empty")).unwrap();
    for number in 0..200 {
        write(
            &tree.join(format!("a/{number}")),
            &noise(number * 37),
            0o644,
        );
    }
    write(&tree.join("large"), &noise(3_000_000), 0o600);
    symlink("../large", tree.join("a/link")).unwrap();
    (dir, tree)
}

#[test]
fn a_tree_goes_there_and_back_the_same_cold_and_warm() {
    let warm = Warm::up(&SshdSpec::new(1));
    let (_dir, tree) = tree();
    let name = warm.shoal.name(0);
    let mut essences = Vec::new();
    for flags in [&["--no-pool"][..], &[]] {
        let is_warm = flags.is_empty();
        let logins = warm.shoal.hosts.logins();
        let (target, fetched) = (shared_folder(), tempfile::tempdir().unwrap());
        let there = target.path().join("tree");
        let (from, to, back) = (text(&tree), text(target.path()), text(fetched.path()));
        let mut said = Vec::new();
        for hashing in [&[][..], &["--checksum", "--verify"]] {
            let words = |words: &[&'static str]| [words, flags, hashing].concat();
            let put = [&words(&["put", "-r", "-p"])[..], &[from, to]].concat();
            let put = copied(&warm, &put, 0);
            assert!(
                listing(&tree) == listing(&there),
                "what arrived is not the same"
            );
            let get = [&words(&["get", "-r", "-p"])[..], &[text(&there), back]].concat();
            let get = copied(&warm, &get, 0);
            let came = fetched.path().join(&name).join("tree");
            assert!(
                listing(&tree) == listing(&came),
                "what came back is not the same"
            );
            expect_warm(&put, is_warm);
            expect_warm(&get, is_warm);
            said.extend([essence(&put), essence(&get)]);
        }
        essences.push(said);
        // The first half is of one login each.
        let more = if is_warm { 0 } else { 4 };
        assert_eq!(warm.shoal.hosts.logins() - logins, more);
    }
    assert_eq!(essences[0], essences[1]);
}

#[test]
fn a_large_file_goes_by_two_channels_of_the_connection_and_nobody_logs_in() {
    let warm = Warm::up(&SshdSpec::new(3));
    let contents = noise(100_000_000);
    let (from, target) = (tempfile::tempdir().unwrap(), shared_folder());
    let (source, fetched) = (from.path().join("big"), from.path().join("fetched"));
    fs::write(&source, &contents).unwrap();
    let there = target.path().join("there");
    // On a busy machine packets may need so long that further connections are logged in.
    let flags = ["--verify", "--lanes", "1"];
    let words = [&["put"][..], &flags, &[text(&source), text(&there)]].concat();
    let put = copied(&warm, &words, 0);
    expect_warm(&put, true);
    assert!(fs::read(&there).unwrap() == contents);
    let words = [&["get"][..], &flags, &[text(&there), text(&fetched)]].concat();
    let get = copied(&warm, &words, 0);
    expect_warm(&get, true);
    for host in 0..3 {
        let came = fetched.join(warm.shoal.name(host)).join("there");
        assert!(fs::read(came).unwrap() == contents);
        let log = warm.shoal.hosts.log(host);
        let sessions = log.matches("Starting session: subsystem 'sftp'").count();
        assert_eq!(sessions, 2 + 2);
    }
    assert_eq!(warm.shoal.hosts.logins(), 3);
}

#[test]
fn further_connections_are_logged_in_to_beside_the_one_that_is_kept() {
    let warm = Warm::up(&SshdSpec::new(1));
    let contents = noise(120_000_000);
    let (from, target) = (tempfile::tempdir().unwrap(), shared_folder());
    let source = from.path().join("big");
    fs::write(&source, &contents).unwrap();
    let there = target.path().join("there");
    let words = [
        "put",
        "--lanes",
        "3",
        "--limit",
        "10M",
        text(&source),
        text(&there),
    ];
    let running = Running::start(&mut command(&warm, &words));
    wait_until("two more are logged in", || warm.shoal.hosts.logins() == 3);
    let ended = running.wait().expect(0);
    assert_eq!(ended.records().hosts[0].warm, Some(true));
    assert!(fs::read(&there).unwrap() == contents);
}

#[test]
fn behind_a_jump_host_nobody_logs_in_but_for_a_further_connection() {
    let warm = Warm::cold(&SshdSpec::new(2));
    let config = warm.shoal.file("ssh_config");
    let (jump, name) = (warm.shoal.name(0), warm.shoal.name(1));
    warm.run(&["up", "-F", &config, "-J", &jump, &name])
        .expect(0);
    let contents = noise(120_000_000);
    let (from, target) = (tempfile::tempdir().unwrap(), shared_folder());
    let source = from.path().join("big");
    fs::write(&source, &contents).unwrap();
    let there = target.path().join("there");
    // A further lane has the time to log in twice.
    for (lanes, limit, logins) in [("1", "40M", 2), ("2", "10M", 2 + 2)] {
        let words = ["-F", &config, "-J", &jump, "-w", &name, "--lanes", lanes];
        let paths = ["--limit", limit, text(&source), text(&there)];
        let ended = warm.run(&[&["put", "--json"][..], &words, &paths].concat());
        assert_eq!(ended.expect(0).records().hosts[0].warm, Some(true));
        assert!(fs::read(&there).unwrap() == contents);
        assert_eq!(
            warm.shoal.hosts.logins(),
            logins,
            "the jump host, and a lane"
        );
    }
}

#[test]
fn standard_input_and_output_are_copied_by_them_too() {
    let warm = Warm::up(&SshdSpec::new(1));
    let contents = noise(5_000_000);
    let (from, target) = (tempfile::tempdir().unwrap(), shared_folder());
    let (source, there) = (from.path().join("input"), target.path().join("there"));
    fs::write(&source, &contents).unwrap();
    let mut put = command(&warm, &["put", "-", text(&there)]);
    put.stdin(fs::File::open(&source).unwrap());
    expect_warm(&Running::start(&mut put).wait().expect(0), true);
    assert!(fs::read(&there).unwrap() == contents);
    let config = warm.shoal.file("ssh_config");
    let mut get = warm.sshoal(&[
        "get",
        "-F",
        &config,
        "-w",
        &warm.shoal.name(0),
        text(&there),
        "-",
    ]);
    let output = get.stderr(Stdio::inherit()).output().unwrap();
    assert!(output.status.success() && output.stdout == contents);
    assert_eq!(warm.shoal.hosts.logins(), 1);
}

#[test]
fn what_fails_has_the_same_kind_words_and_remedy() {
    let warm = Warm::up(&SshdSpec::new(1));
    let (dir, tree) = tree();
    let target = shared_folder();
    let full = shared_folder();
    fs::create_dir(target.path().join("large")).unwrap();
    let (disk, missing) = (
        full.path().join("here"),
        target.path().join("no/folder/there"),
    );
    let large = tree.join("large");
    let back = dir.path().join("back");
    let mut cases = vec![
        // sysfs lets nobody make a file, root neither.
        vec!["put", text(&large), "/sys/kernel/new"],
        vec!["put", text(&large), text(&missing)],
        // A folder is not replaced.
        vec!["put", text(&large), text(target.path())],
        vec!["get", text(&missing), text(&back)],
        vec!["get", "/proc/self/mem", text(&back)],
    ];
    let small = SmallDisk::mount(full.path(), "1m");
    if small.is_some() {
        cases.push(vec!["put", text(&large), text(&disk)]);
    }
    for words in cases {
        let cold = copied(&warm, &[&words[..], &["--no-pool"]].concat(), 3);
        let logins = warm.shoal.hosts.logins();
        let by_warm = copied(&warm, &words, 3);
        expect_warm(&by_warm, true);
        assert_eq!(warm.shoal.hosts.logins(), logins);
        assert_eq!(essence(&by_warm), essence(&cold), "{words:?}");
        assert_eq!(cold.records().hosts[0].failure(), "transfer");
    }
}

/// A file, and where it is put at a rate that leaves time for something to happen meanwhile.
struct Slow {
    from: TempDir,
    target: TempDir,
    contents: Vec<u8>,
}

impl Slow {
    fn new() -> Slow {
        let slow = Slow {
            from: tempfile::tempdir().unwrap(),
            target: shared_folder(),
            contents: noise(30_000_000),
        };
        fs::write(slow.source(), &slow.contents).unwrap();
        slow
    }

    fn source(&self) -> PathBuf {
        self.from.path().join("file")
    }

    fn there(&self) -> PathBuf {
        self.target.path().join("file")
    }

    /// Begins it, and waits until some octets are there.
    fn begin(&self, warm: &Warm, flags: &[&str]) -> Running {
        let (source, there) = (self.source(), self.there());
        let words = ["put", "--limit", "3M", text(&source), text(&there)];
        let running = Running::start(&mut command(warm, &[&words[..], flags].concat()));
        wait_until("some of it has come", || {
            let parts = parts(self.target.path());
            let begun = |part: &Vec<u8>| {
                let path = self
                    .target
                    .path()
                    .join(String::from_utf8_lossy(part).as_ref());
                fs::metadata(path).is_ok_and(|part| part.blocks() > 2000)
            };
            parts.iter().any(begun)
        });
        running
    }

    #[track_caller]
    fn expect_whole(&self) {
        assert!(fs::read(self.there()).unwrap() == self.contents);
        assert_eq!(listing(self.target.path()).len(), 1);
    }
}

#[test]
fn a_connection_that_is_lost_meanwhile_is_made_anew_once() {
    let warm = Warm::up(&SshdSpec::new(1));
    for ends_keeper in [false, true] {
        let slow = Slow::new();
        let running = slow.begin(&warm, &[]);
        match ends_keeper {
            false => warm.cut(0),
            true => {
                let keeper = warm.pid();
                kill_process(keeper, Signal::KILL).unwrap();
                wait_until("the keeper is gone", || has_ended(keeper));
            }
        }
        let ended = running.wait().expect(0);
        expect_warm(&ended, false);
        assert_eq!(ended.records().hosts[0].attempts, 2);
        slow.expect_whole();
        if !ends_keeper {
            wait_until("it is logged in to again", || {
                warm.status()["hosts"][0]["state"] == "up"
            });
        }
    }
}

#[test]
fn one_that_cannot_be_made_anew_is_lost_as_after_a_login() {
    let warm = Warm::up(&SshdSpec::new(1));
    let mut records = Vec::new();
    for flags in [&[][..], &["--no-pool"]] {
        let slow = Slow::new();
        let running = slow.begin(&warm, flags);
        let barred = Barred::new(&warm.shoal);
        warm.cut(0);
        let ended = running.wait().expect(3);
        drop(barred);
        let record = ended.records().hosts.remove(0);
        records.push((record.failure, record.outcome, record.fate, record.attempts));
        assert!(!slow.there().exists());
    }
    assert_eq!(records[0], records[1]);
    assert_eq!(records[0].0.as_deref(), Some("lost"));
}

#[test]
fn ctrl_c_removes_what_is_half_done_and_leaves_no_session_behind() {
    let warm = Warm::up(&SshdSpec::new(1));
    let slow = Slow::new();
    let running = slow.begin(&warm, &[]);
    running.interrupt();
    let ended = running.wait().expect(130);
    assert_eq!(ended.records().hosts[0].failure(), "transfer");
    assert_eq!(listing(slow.target.path()).len(), 0);
    wait_until("its sessions are over", || {
        warm.status()["hosts"][0]["sessions"] == 0
    });
    // One that is killed leaves its part, and nothing on the connection.
    let running = slow.begin(&warm, &[]);
    drop(running);
    wait_until("its sessions are over", || {
        warm.status()["hosts"][0]["sessions"] == 0
    });
    assert_eq!(warm.shoal.hosts.logins(), 1);
}

#[test]
fn a_copy_that_takes_too_long_is_ended_in_its_time() {
    let warm = Warm::up(&SshdSpec::new(1));
    let slow = Slow::new();
    let (source, there) = (slow.source(), slow.there());
    let words = [
        "put",
        "-u",
        "1",
        "--limit",
        "5M",
        text(&source),
        text(&there),
    ];
    let ended = copied(&warm, &words, 3);
    expect_warm(&ended, true);
    assert_eq!(ended.records().hosts[0].failure(), "command-timeout");
    assert_eq!(listing(slow.target.path()).len(), 0);
    assert_eq!(warm.shoal.hosts.logins(), 1);
}

#[test]
fn one_that_would_log_in_differently_does_so() {
    let warm = Warm::up(&SshdSpec::new(2));
    let (from, target) = (tempfile::tempdir().unwrap(), shared_folder());
    let source = from.path().join("file");
    fs::write(&source, "text").unwrap();
    let there = target.path().join("there");
    for (arguments, is_warm) in [
        (&["-o", "ServerAliveInterval=9"][..], true),
        // Neither is for copies.
        (&["-o", "RequestTTY=force", "-o", "ForwardAgent=yes"], true),
        (&["--congestion", "system"], true),
        (&["--congestion", "reno"], false),
        (&["-o", "StrictHostKeyChecking=no"], false),
        (&["--no-pool"], false),
    ] {
        let before = warm.shoal.hosts.logins();
        let words = [&["put"][..], arguments, &[text(&source), text(&there)]].concat();
        let ended = copied(&warm, &words, 0);
        expect_warm(&ended, is_warm);
        let more = if is_warm { 0 } else { 2 };
        assert_eq!(warm.shoal.hosts.logins() - before, more, "{arguments:?}");
        let dry = copied(&warm, &[&words[..], &["--dry-run"]].concat(), 0).stdout();
        assert_eq!(dry.contains(r#""warm":true"#), is_warm, "{dry}");
    }
    let (config, hosts) = (warm.shoal.file("ssh_config"), warm.shoal.file("hosts"));
    let dry = [
        "get",
        "-F",
        &config,
        "-f",
        &hosts,
        "--dry-run",
        "/etc/hosts",
        "fetched",
    ];
    let dry = warm.run(&dry).expect(0).stdout();
    assert!(dry.contains(" by a warm connection: get"), "{dry}");
}

#[test]
fn a_host_that_is_not_kept_any_more_is_logged_in_to() {
    let warm = Warm::up(&SshdSpec::new(2));
    warm.run(&["down", &warm.shoal.name(1)]).expect(0);
    wait_until("it is down", || {
        warm.status()["hosts"][1]["state"] == "down"
    });
    let fetched = tempfile::tempdir().unwrap();
    let ended = copied(&warm, &["get", "/etc/hostname", text(fetched.path())], 0);
    let records = ended.records().by_name();
    for host in 0..2 {
        assert_eq!(records[&warm.shoal.name(host)].warm, Some(host == 0));
    }
    assert_eq!(warm.shoal.hosts.logins(), 2 + 1);
}

#[test]
fn a_keeper_that_is_another_one_when_it_is_asked_again_shares_no_other_host() {
    let warm = Warm::up(&SshdSpec::new(2));
    // It has as many hosts, and has numbered them otherwise.
    let between = Between::new(&warm, |found| found.reverse());
    let fetched = tempfile::tempdir().unwrap();
    let mut get = command(&warm, &["get", "/etc/hostname", text(fetched.path())]);
    get.env("XDG_RUNTIME_DIR", between.folder());
    let ended = Running::start(&mut get).wait().expect(0);
    expect_warm(&ended, false);
    assert_eq!(between.identities().len(), 2);
    assert_eq!(warm.shoal.hosts.logins(), 2 + 2);
}

#[test]
fn one_that_is_found_out_to_be_down_when_its_turn_has_come_is_logged_in_to() {
    let warm = Warm::up(&SshdSpec::new(2));
    let slow = Slow::new();
    let running = slow.begin(&warm, &["--parallel", "1"]);
    warm.run(&["down", &warm.shoal.name(1)]).expect(0);
    let records = running.wait().expect(0).records().by_name();
    for (host, is_warm) in [(0, true), (1, false)] {
        assert_eq!(records[&warm.shoal.name(host)].warm, Some(is_warm));
    }
    slow.expect_whole();
    assert_eq!(warm.shoal.hosts.logins(), 2 + 1);
}

#[test]
fn a_server_that_does_not_answer_on_its_kept_connection_is_told_so() {
    let warm = Warm::up(&SshdSpec::new(1));
    let (from, target) = (tempfile::tempdir().unwrap(), shared_folder());
    let (source, there) = (from.path().join("file"), target.path().join("file"));
    fs::write(&source, "text").unwrap();
    let stopped = warm.stop(0);
    let words = ["put", "--login-timeout", "1", text(&source), text(&there)];
    let ended = copied(&warm, &words, 3);
    for pid in &stopped {
        let _ = kill_process(*pid, Signal::CONT);
    }
    let record = &ended.records().hosts[0];
    assert_eq!(
        (record.failure(), &record.fate[..]),
        ("login-timeout", "not-sent")
    );
    let words = "no answer within 1s on the connection that `sshoal up` keeps";
    assert_eq!(record.detail.as_deref(), Some(words));
}

/// One session is all that a connection has.
#[test]
fn where_a_server_allows_one_session_everything_goes_by_that() {
    let warm = Warm::up(&SshdSpec::new(1).line("MaxSessions 1"));
    let (_dir, tree) = tree();
    let target = shared_folder();
    let put = |to: &Path| {
        let ended = copied(&warm, &["put", "-r", "-p", text(&tree), text(to)], 0);
        expect_warm(&ended, true);
        assert!(listing(&tree) == listing(&to.join("tree")));
    };
    put(target.path());
    assert_eq!(warm.shoal.hosts.logins(), 1);
    // Nor does the session that is kept open for another command take it.
    let (config, hosts) = (warm.shoal.file("ssh_config"), warm.shoal.file("hosts"));
    warm.run(&["run", "-F", &config, "-f", &hosts, "true"])
        .expect(0);
    let target = shared_folder();
    put(target.path());
    assert_eq!(warm.shoal.hosts.logins(), 1);
    // Beside a command that has it the host is logged in to once more, by whoever keeps its connections.
    let marks = shared_folder();
    let (begun, go_on) = (marks.path().join("begun"), marks.path().join("go-on"));
    let line = format!(
        "touch {}; while [ ! -e {} ]; do sleep 0.05; done",
        text(&begun),
        text(&go_on)
    );
    let mut run = warm.sshoal(&["run", "-F", &config, "-f", &hosts, &line]);
    let running = Running::start(&mut run);
    wait_until("a command runs", || begun.exists());
    let target = shared_folder();
    put(target.path());
    assert_eq!(warm.shoal.hosts.logins(), 2);
    fs::write(&go_on, "").unwrap();
    running.wait().expect(0);
}

#[test]
fn a_session_that_is_kept_open_for_the_next_command_takes_no_place_from_a_copy() {
    let warm = Warm::up(&SshdSpec::new(1).line("MaxSessions 2"));
    let (config, hosts) = (warm.shoal.file("ssh_config"), warm.shoal.file("hosts"));
    warm.run(&["run", "-F", &config, "-f", &hosts, "true"])
        .expect(0);
    let fetched = tempfile::tempdir().unwrap();
    // Hashes need a second session.
    let words = ["get", "--verify", "/etc/hostname", text(fetched.path())];
    expect_warm(&copied(&warm, &words, 0), true);
    warm.run(&["run", "-F", &config, "-f", &hosts, "true"])
        .expect(0);
    assert_eq!(warm.shoal.hosts.logins(), 1);
}

#[test]
fn an_account_without_a_shell_and_a_server_without_sftp_are_what_they_are_by_a_login() {
    let (_dir, tree) = tree();
    for (line, status) in [
        ("ForceCommand internal-sftp", 0),
        ("Subsystem sftp /bin/false", 3),
    ] {
        let warm = Warm::up(&SshdSpec::new(1).line(line));
        let mut essences = Vec::new();
        for flags in [&["--no-pool"][..], &[]] {
            let target = shared_folder();
            let words = ["put", "-r", "-p", text(&tree), text(target.path())];
            let ended = copied(&warm, &[&words[..], flags].concat(), status);
            expect_warm(&ended, flags.is_empty());
            essences.push(essence(&ended));
            let there = target.path().join("tree");
            assert_eq!(there.exists(), status == 0);
            assert!(status != 0 || listing(&tree) == listing(&there));
        }
        assert_eq!(essences[0], essences[1], "{line}");
        assert_eq!(warm.shoal.hosts.logins(), 2);
    }
}
