//! Commands that must end: whether what is said of them is true by the host's own list of processes.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::PathBuf;

use sshoal_testbed::sshd::{RealSshd, SshdSpec};
use support::program::Running;
use support::records::HostRecord;
use support::{Shoal, processes_of, shared_folder, wait_until};
use tempfile::TempDir;

/// The script that looks, for shells other than the host's /bin/sh.
const SCRIPT: &str = include_str!("../../net/src/kill/kill.sh");
/// Seconds from SIGTERM to SIGKILL: for what does not heed the first, and for what does, on a busy machine.
const SHORT: &str = "1";
const LONG: &str = "20";

/// One host, and a folder whose path is in the command line of all that a test runs there.
struct Scene {
    shoal: Shoal<RealSshd>,
    marks: TempDir,
}

impl Scene {
    fn new(lines: &[&str]) -> Scene {
        let marks = shared_folder();
        fs::write(marks.path().join("go"), "").unwrap();
        let mut spec = SshdSpec::new(1);
        for line in lines {
            spec = spec.line(line.replace("@", &marks.path().display().to_string()));
        }
        Scene {
            shoal: Shoal::real(&spec),
            marks,
        }
    }

    fn mark(&self, name: &str) -> PathBuf {
        self.marks.path().join(name)
    }

    /// `@` in a line is the folder.
    fn line(&self, line: &str) -> String {
        line.replace('@', &self.marks.path().display().to_string())
    }

    /// What runs there.
    fn processes(&self) -> Vec<u32> {
        processes_of(self.marks.path())
    }

    /// Runs a line whose time is over after a second.
    fn time_out(&self, grace: &str, arguments: &[&str], line: &str) -> HostRecord {
        self.time_out_at_once(&[&["--kill-grace", grace], arguments].concat(), line)
    }

    /// The same for one that makes the mark `begun`: again, if its time was over before that, as it may be on a busy machine.
    fn time_out_begun(&self, grace: &str, arguments: &[&str], line: &str) -> HostRecord {
        let mut record = None;
        wait_until("it has begun before its time is over", || {
            let _ = fs::remove_file(self.mark("begun"));
            record = Some(self.time_out(grace, arguments, line));
            self.mark("begun").exists()
        });
        record.unwrap()
    }

    /// The same without a time for it to end in.
    fn time_out_at_once(&self, arguments: &[&str], line: &str) -> HostRecord {
        let line = self.line(line);
        let arguments = [&["--json", "-u", "1"], arguments, &[&line]].concat();
        let record = self
            .shoal
            .run(&arguments)
            .expect(3)
            .records()
            .hosts
            .remove(0);
        assert_eq!(record.failure(), "command-timeout", "{record:?}");
        record
    }

    /// The same for one that is interrupted once its word `begun` has been heard.
    fn interrupt(&self, line: &str) -> HostRecord {
        let line = self.line(line);
        let words = ["--json", "--record", "--kill-grace", LONG, &line];
        let running = Running::start(&mut self.shoal.command(&words));
        wait_until("the command is heard of", || {
            self.shoal.recorded().contains("begun")
        });
        running.interrupt();
        running.wait().expect(130).records().hosts.remove(0)
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

#[track_caller]
fn assert_verdict(record: &HostRecord, verdict: &str) {
    assert_eq!(record.kill.as_deref(), Some(verdict), "{record:?}");
}

#[track_caller]
fn assert_not_confirmed(record: &HostRecord, why: &str) {
    assert_verdict(record, "not-confirmed");
    let detail = record.kill_detail.as_deref().unwrap();
    assert!(detail.contains(why), "{detail}");
}

#[test]
fn what_ends_by_sigterm_is_gone() {
    let scene = Scene::new(&[]);
    assert_verdict(&scene.time_out(LONG, &[], LOOP), "gone");
    assert_eq!(scene.processes(), [0u32; 0]);
}

#[test]
fn what_ignores_sigterm_is_gone_after_sigkill() {
    let scene = Scene::new(&[]);
    let line = format!("trap '' TERM; touch @/begun; {LOOP}");
    let record = scene.time_out_begun(SHORT, &[], &line);
    assert_verdict(&record, "gone-after-kill");
    assert_eq!(scene.processes(), [0u32; 0]);
}

#[test]
fn what_has_forked_twice_and_has_a_session_of_its_own_is_found() {
    let scene = Scene::new(&[]);
    for (trap, grace, verdict) in [
        ("", LONG, "gone"),
        ("trap \"\" TERM; ", SHORT, "gone-after-kill"),
    ] {
        let daemon =
            format!("setsid sh -c '{trap}touch @/begun; {LOOP}' </dev/null >/dev/null 2>&1 &");
        let record = scene.time_out_begun(grace, &[], &format!("({daemon}); {LOOP}"));
        assert_verdict(&record, verdict);
        assert_eq!(scene.processes(), [0u32; 0]);
    }
}

#[test]
fn what_an_interrupted_command_leaves_behind_is_found() {
    let scene = Scene::new(&[]);
    let daemon = format!("setsid sh -c '{LOOP}' </dev/null >/dev/null 2>&1 &");
    let record = scene.interrupt(&format!(
        "trap 'exit 9' INT; ({daemon}); echo begun; {LOOP}"
    ));
    assert_eq!(record.outcome, "exit");
    assert_verdict(&record, "gone");
    assert_eq!(scene.processes(), [0u32; 0]);
}

#[test]
fn what_ignores_an_interrupt_is_ended_by_sigterm() {
    let scene = Scene::new(&[]);
    let record = scene.interrupt(&format!("trap '' INT; echo begun; {LOOP}"));
    assert_eq!(record.signal.as_deref(), Some("TERM"), "{record:?}");
    assert_verdict(&record, "gone");
    assert_eq!(scene.processes(), [0u32; 0]);
}

#[test]
fn a_forced_command_is_not_run_a_second_time_and_that_is_said() {
    let force = format!("ForceCommand echo run >> @/runs; {LOOP}");
    let scene = Scene::new(&[&force]);
    assert_not_confirmed(&scene.time_out(SHORT, &[], "true"), "forced command");
    let runs = || fs::read_to_string(scene.mark("runs")).unwrap_or_default();
    // No signal reaches it, and its time may be over before it runs.
    wait_until("it has run", || !runs().is_empty());
    assert_eq!(runs(), "run\n");
    assert_ne!(scene.processes(), [0u32; 0]);
}

#[test]
fn a_server_that_passes_no_signals_on_is_no_hindrance_where_no_command_is_forced() {
    // To sshd it is a forced command, and signals to one are refused.
    let scene = Scene::new(&["ForceCommand eval \"$SSH_ORIGINAL_COMMAND\""]);
    let record = scene.time_out(SHORT, &[], "sleep 2; true @");
    assert_not_confirmed(&record, "did not pass");
    let line = format!("trap '' TERM; touch @/begun; {LOOP}");
    let record = scene.time_out_begun(SHORT, &["--kill-where=always"], &line);
    assert_verdict(&record, "gone-after-kill");
    wait_until("the first one has ended", || scene.processes().is_empty());
}

#[test]
fn a_connection_that_is_lost_meanwhile_confirms_nothing() {
    let scene = Scene::new(&[]);
    let line = format!("trap 'kill -9 $PPID' TERM; touch @/begun; {LOOP}");
    let record = scene.time_out_begun(LONG, &[], &line);
    assert_not_confirmed(&record, "connection was lost");
}

#[test]
fn a_server_that_opens_no_second_session_confirms_nothing() {
    let scene = Scene::new(&["MaxSessions 1"]);
    // The first one must not end before a second is asked for.
    let line = format!("trap '' TERM; touch @/begun; {LOOP}");
    let record = scene.time_out_begun(SHORT, &[], &line);
    assert_not_confirmed(&record, "MaxSessions");
}

#[test]
fn where_nobody_is_to_look_nothing_is_said() {
    let scene = Scene::new(&[]);
    let record = scene.time_out_at_once(&["--kill-where=never"], LOOP);
    assert_eq!(record.kill, None);
    let both = ["--kill-where", "never", "--kill-grace", "3", "true"];
    let said = ["--kill-grace", "--kill-where never"];
    scene.shoal.run(&both).expect(2).says(&said);
}

#[test]
fn the_summary_tells_of_it() {
    let scene = Scene::new(&[]);
    let line = scene.line(LOOP);
    scene
        .shoal
        .run(&["-u", "1", "--kill-grace", LONG, &line])
        .expect(3)
        .says(&["ended there, and gone: 127."]);
}

#[test]
fn a_run_that_is_shown_again_tells_of_it() {
    let scene = Scene::new(&[]);
    for keeps in [&[][..], &["--record"]] {
        let line = format!("trap '' TERM; touch @/begun; {LOOP}");
        let record = scene.time_out_begun(SHORT, keeps, &line);
        assert_verdict(&record, "gone-after-kill");
        let mut command = scene.shoal.user.command(env!("CARGO_BIN_EXE_sshoal"));
        let shown = Running::start(command.args(["show", "last", "--json"])).wait();
        let shown = shown.expect(3);
        assert!(shown.stdout().contains(r#""gone_after_kill":1"#));
        assert_verdict(&shown.records().hosts[0], "gone-after-kill");
    }
}

/// Runs the script by another shell, on a host where something has forked twice.
fn look_by(scene: &Scene, shell: &str) -> String {
    let script = scene.marks.path().join("script");
    fs::write(
        &script,
        format!("grace=1 told= sudo= run= mark= password=\n{SCRIPT}"),
    )
    .unwrap();
    let daemon = format!(
        "setsid sh -c 'trap \"\" TERM; touch @/begun; {LOOP}' </dev/null >/dev/null 2>&1 &"
    );
    let line = scene.line(&format!(
        "({daemon}); while ! [ -e @/begun ]; do sleep 0.1; done; exec {shell} -s"
    ));
    let input = script.to_str().unwrap();
    let ended = scene
        .shoal
        .run(&["--json", "--stdin", input, &line])
        .expect(0);
    ended.records().hosts[0].stdout.clone().unwrap()
}

#[test]
fn any_posix_shell_will_do_busybox_among_them() {
    let scene = Scene::new(&[]);
    for shell in ["dash", "bash", "busybox sh"] {
        let _ = fs::remove_file(scene.mark("begun"));
        assert_eq!(look_by(&scene, shell), "killed\n", "{shell}");
        assert_eq!(scene.processes(), [0u32; 0], "{shell}");
    }
}
