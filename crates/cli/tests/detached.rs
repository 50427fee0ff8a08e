//! Commands that outlive their connection: `run --detach`, `sshoal attach`, `run --survive`.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};
use sshoal_testbed::sshd::{RealSshd, SshdSpec};
use support::program::{Ended, Running};
use support::{Shoal, descendants, processes_of, shared_folder, wait_until};
use tempfile::TempDir;

/// A host, and a folder whose path is in the command line of all that a test runs there.
struct Scene {
    shoal: Shoal<RealSshd>,
    marks: TempDir,
}

impl Scene {
    /// One host: all on this machine are one to a home that they share.
    fn new() -> Scene {
        Scene::of(None)
    }

    /// The same that runs a command of its own, whatever is sent; `@` in it is the folder.
    fn of(forced: Option<&str>) -> Scene {
        let marks = shared_folder();
        fs::write(marks.path().join("go"), "").unwrap();
        let folder = marks.path().display().to_string();
        let spec = SshdSpec::new(1);
        let spec = match forced {
            Some(forced) => spec.line(format!("ForceCommand {}", forced.replace('@', &folder))),
            None => spec,
        };
        Scene {
            shoal: Shoal::real(&spec),
            marks,
        }
    }

    /// How many lines there are in a file.
    fn count(&self, name: &str) -> usize {
        let text = fs::read_to_string(self.mark(name)).unwrap_or_default();
        text.lines().count()
    }

    fn mark(&self, name: &str) -> PathBuf {
        self.marks.path().join(name)
    }

    /// `@` in a line is the folder.
    fn line(&self, line: &str) -> String {
        line.replace('@', &self.marks.path().display().to_string())
    }

    fn detach(&self, line: &str) -> Ended {
        self.shoal.run(&["--detach", &self.line(line)]).expect(0)
    }

    /// `sshoal attach last` with these flags.
    fn attach_command(&self, flags: &[&str]) -> Command {
        let mut command = self.shoal.user.command(env!("CARGO_BIN_EXE_sshoal"));
        command.args(["attach", "last"]).args(flags);
        command
    }

    fn attach(&self, flags: &[&str]) -> Ended {
        Running::start(&mut self.attach_command(flags)).wait()
    }

    /// `sshoal show last`
    fn show(&self) -> Ended {
        let mut show = self.shoal.user.command(env!("CARGO_BIN_EXE_sshoal"));
        Running::start(show.args(["show", "last"])).wait()
    }

    /// Ends the sessions of the first host's server, as a lost connection would, without asking anybody.
    fn cut(&self) {
        for pid in descendants(self.shoal.hosts.pid(0).as_raw_nonzero().get()) {
            let comm = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            if comm.starts_with("sshd") {
                let _ = kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL);
            }
        }
    }
}

impl Drop for Scene {
    /// What is left there goes when the mark goes.
    fn drop(&mut self) {
        let _ = fs::remove_file(self.mark("go"));
    }
}

/// Runs until the mark is gone.
const LOOP: &str = "while [ -e @/go ]; do sleep 0.1; done";

#[test]
fn a_detached_command_goes_on_and_its_output_and_status_are_collected() {
    let scene = Scene::new();
    let ended = scene.detach(&format!(
        "echo begun; {LOOP}; echo ended; echo oops >&2; exit 7"
    ));
    let running = " running: process ";
    assert!(ended.stdout().contains(running), "{}", ended.stdout());
    ended.says(&["sshoal attach"]);
    scene.shoal.wait_for_sessions();
    assert_ne!(processes_of(scene.marks.path()), [0u32; 0]);
    let status = scene.attach(&["--status"]).expect(0).stdout();
    assert!(status.contains(running), "{status}");
    let following = Running::start(&mut scene.attach_command(&["--json"]));
    fs::remove_file(scene.mark("go")).unwrap();
    let records = following.wait().expect(1).records();
    let record = &records.hosts[0];
    assert_eq!(record.outcome, "exit");
    assert_eq!(record.stdout.as_deref(), Some("begun\nended\n"));
    assert_eq!(record.stderr.as_deref(), Some("oops\n"));
    // It may be collected again, until it is taken away.
    let again = scene.attach(&["-S"]).expect(7);
    assert!(again.stdout().contains(": ended\n"));
    scene.attach(&["--remove"]).expect(0);
    scene
        .attach(&["--status"])
        .expect(1)
        .says(&["is not on this host"]);
}

#[test]
fn a_detached_command_is_ended_with_all_that_it_has_started() {
    let scene = Scene::new();
    let daemon = format!("setsid sh -c 'trap \"\" TERM; touch @/begun; {LOOP}' >/dev/null 2>&1 &");
    scene.detach(&format!("({daemon}); {LOOP}"));
    wait_until("it runs", || scene.mark("begun").exists());
    let ended = scene.attach(&["--kill", "--kill-grace", "1"]).expect(0);
    assert!(ended.stdout().ends_with(": killed\n"), "{}", ended.stdout());
    assert_eq!(processes_of(scene.marks.path()), [0u32; 0]);
}

#[test]
fn a_run_that_was_not_detached_cannot_be_attached_to() {
    let scene = Scene::new();
    scene.shoal.run(&["true"]).expect(0);
    scene.attach(&[]).expect(2).says(&["--detach"]);
}

#[test]
fn on_the_word_of_a_damaged_journal_nothing_is_attached_to() {
    let scene = Scene::new();
    scene.detach("true");
    let folder = scene.shoal.user.home().join(".local/state/sshoal/runs");
    let entry = fs::read_dir(folder).unwrap().next().unwrap();
    let path = entry.unwrap().path();
    let mut octets = fs::read(&path).unwrap();
    // In the last records but one.
    let at = octets.len() - 60;
    octets[at] ^= 4;
    fs::write(&path, octets).unwrap();
    let damaged = ["is damaged at octet", path.to_str().unwrap()];
    scene.attach(&["--kill"]).expect(2).says(&damaged);
    // Nor is anything where not even the plan is.
    fs::write(&path, "").unwrap();
    scene.attach(&[]).expect(2).says(&["has begun no command"]);
}

/// Lines that come slowly enough to be cut in their midst; each tenth is a mark.
const COUNT: &str = "i=0; while [ $i -lt 100 ]; do i=$((i+1)); echo line $i; echo error $i >&2; \
    [ $((i % 25)) -gt 0 ] || : > @/mark$i; sleep 0.05; done; exit 7";

#[test]
fn a_run_survives_lost_connections_and_its_output_comes_once() {
    let scene = Scene::new();
    let line = scene.line(COUNT);
    let mut command: Command = scene.shoal.command(&["--json", "--survive", &line]);
    let running = Running::start(&mut command);
    for mark in ["mark25", "mark50", "mark75"] {
        wait_until("it is so far", || scene.mark(mark).exists());
        scene.cut();
    }
    let record = running.wait().expect(1).records().hosts.remove(0);
    assert_eq!(record.outcome, "exit", "{record:?}");
    let lines = |what: &str| {
        (1..=100)
            .map(|i| format!("{what} {i}\n"))
            .collect::<String>()
    };
    assert_eq!(record.stdout.unwrap(), lines("line"));
    assert_eq!(record.stderr.unwrap(), lines("error"));
    assert!(record.attempts > 1);
    // What has survived can be looked at again, too: it was begun once.
    let again = scene
        .attach(&["--json"])
        .expect(1)
        .records()
        .hosts
        .remove(0);
    assert_eq!(again.stdout.unwrap(), lines("line"));
}

#[test]
fn a_command_whose_folder_has_gone_is_not_begun_a_second_time() {
    let scene = Scene::new();
    let line = scene.line(&format!("echo it >>@/count; echo begun @; {LOOP}"));
    let mut command = scene
        .shoal
        .command(&["--json", "--record", "--survive", &line]);
    let running = Running::start(&mut command);
    // Its output has to have come before the folder goes.
    wait_until("it is heard of", || scene.show().stdout().contains("begun"));
    let remove =
        "for out in ~/.cache/sshoal/*/out; do ! grep -q @ \"$out\" || rm -r \"${out%/out}\"; done";
    let by_another = ["--journal=off", &scene.line(remove)];
    scene.shoal.run(&by_another).expect(0);
    scene.cut();
    let record = running.wait().expect(1).records().hosts.remove(0);
    assert_eq!(
        (record.outcome.as_str(), record.exit_status),
        ("exit", Some(69))
    );
    let said = record.stderr.unwrap();
    assert!(
        said.contains("was begun here, and its folder is gone"),
        "{said}"
    );
    assert_eq!(scene.count("count"), 1);
    // What came before the connection was lost is still there to be shown.
    let shown = scene.show().expect(1).stdout();
    assert!(shown.contains("begun"), "{shown}");
}

#[test]
fn while_a_run_goes_on_more_of_its_commands_may_begin_and_none_is_ended_by_it() {
    let scene = Scene::new();
    let line = scene.line(&format!("touch @/begun; {LOOP}"));
    let running = Running::start(&mut scene.shoal.command(&["--survive", &line]));
    wait_until("it runs", || scene.mark("begun").exists());
    for flag in ["--kill", "--remove"] {
        scene
            .attach(&[flag])
            .expect(2)
            .says(&["more of its commands may begin"]);
    }
    fs::remove_file(scene.mark("go")).unwrap();
    running.wait().expect(0);
}

#[test]
fn a_command_that_outlives_its_connection_has_the_umask_of_the_login() {
    let scene = Scene::new();
    let usual = scene.shoal.run(&["umask"]).expect(0).stdout();
    assert!(usual.ends_with("0022\n"), "{usual}");
    let survives = scene.shoal.run(&["--survive", "umask"]).expect(0);
    assert_eq!(survives.stdout(), usual);
    scene.detach("umask");
    assert_eq!(scene.attach(&[]).expect(0).stdout(), usual);
}

#[test]
fn a_command_that_survives_connections_is_ended_all_the_same() {
    let scene = Scene::new();
    let line = scene.line(&format!("trap '' TERM; touch @/begun; {LOOP}"));
    let flags = ["--json", "--survive", "-u", "3", "--kill-grace", "1"];
    let mut command = scene.shoal.command(&[&flags[..], &[&line]].concat());
    let running = Running::start(&mut command);
    wait_until("it runs", || scene.mark("begun").exists());
    scene.cut();
    let record = running.wait().expect(3).records().hosts.remove(0);
    assert_eq!(record.failure(), "command-timeout", "{record:?}");
    assert_eq!(
        record.kill.as_deref(),
        Some("gone-after-kill"),
        "{record:?}"
    );
    assert_eq!(processes_of(scene.marks.path()), [0u32; 0]);
}

#[test]
fn a_forced_command_is_not_run_again_when_its_connection_is_lost() {
    let forced = format!("echo it >>@/count; echo forced; {LOOP}; echo over");
    let scene = Scene::of(Some(&forced));
    let mut command = scene.shoal.command(&["--json", "--survive", "true"]);
    let running = Running::start(&mut command);
    wait_until("it runs", || scene.count("count") == 1);
    scene.cut();
    let record = running.wait().expect(3).records().hosts.remove(0);
    assert_eq!(record.failure(), "lost", "{record:?}");
    assert_eq!((record.attempts, scene.count("count")), (1, 1));
    // What ends by itself has not done what was asked for either.
    fs::remove_file(scene.mark("go")).unwrap();
    for (flags, runs) in [(&["--status"][..], 2), (&["--kill"], 3), (&[], 4)] {
        let ended = scene.attach(flags).expect(3).says(&["a forced command"]);
        assert_eq!(ended.stdout().matches("forced").count(), 1);
        assert_eq!(scene.count("count"), runs);
    }
    let run = scene.shoal.run(&["--detach", "true"]).expect(3);
    run.says(&["a forced command"]);
    assert_eq!(scene.count("count"), 5);
}

#[test]
fn each_of_several_names_for_one_host_has_a_command_of_its_own() {
    let scene = Scene::new();
    let (config, address) = (scene.shoal.file("ssh_config"), scene.shoal.name(0));
    let text = fs::read_to_string(&config).unwrap();
    let names = format!("Host a b c\nHostName {address}\n");
    fs::write(&config, names + &text).unwrap();
    for (flag, file) in [("--survive", "one"), ("--detach", "two")] {
        let line = scene.line(&format!("echo %n >>@/{file}; echo %n"));
        let run = ["run", "-F", &config, "-w", "a,b,c", flag, &line];
        let mut command = scene.shoal.user.command(env!("CARGO_BIN_EXE_sshoal"));
        Running::start(command.args(run)).wait().expect(0);
        let mut shown: Vec<String> = scene
            .attach(&["-q"])
            .expect(0)
            .stdout()
            .lines()
            .map(str::to_owned)
            .collect();
        shown.sort();
        assert_eq!(shown, ["a: a", "b: b", "c: c"]);
        assert_eq!(scene.count(file), 3);
    }
}
