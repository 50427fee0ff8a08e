//! How commands end, and how they are ended.

use rustix::process::{Signal, kill_process};

use crate::support::wait_until;
use crate::{Scene, runs, wait_for_end};

/// Two processes of one group that outlive these signals, and tell their numbers. SIGINT leaves a mark.
fn outliving(signals: &str) -> String {
    format!(
        "trap '' {signals}; trap 'touch $MARKS/%h.interrupted' INT; \
         sleep 3600 & echo $! > $MARKS/%h.sleep; echo $$ > $MARKS/%h.shell; \
         while :; do wait; done"
    )
}

#[test]
fn statuses_and_signals_are_told_apart_and_decide_the_exit_status() {
    let scene = Scene::new();
    let line = "case %h in a1) exit 7;; a2) kill -TERM $$;; a3) kill -BUS $$;; esac";
    let ended = scene
        .run(&["--json", "-w", "a[1-4]", "sh", "-c", line])
        .expect(1);
    let by_name = ended.records().by_name();
    let outcome = |host: &str| {
        (
            by_name[host].outcome.as_str(),
            by_name[host].signal.as_deref(),
        )
    };
    assert_eq!(outcome("a1"), ("exit", None));
    assert_eq!(outcome("a2"), ("signal", Some("TERM")));
    assert_eq!(outcome("a3"), ("signal", Some("BUS")));
    assert_eq!(outcome("a4"), ("ok", None));
    scene
        .run(&["-S", "-w", "a[1-2]", "sh", "-c", line])
        .expect(143);
    scene
        .run(&["-S", "-w", "a1,a4", "sh", "-c", line])
        .expect(7);
}

#[test]
fn failed_hosts_can_be_retried() {
    let scene = Scene::new();
    let line = "case %h in a2) exit 7;; a3) kill -TERM $$;; esac";
    scene.run(&["-w", "a[1-4]", "sh", "-c", line]).expect(1);
    let ended = scene
        .run(&["--retry-failed", "exit", "echo", "again"])
        .expect(0);
    assert_eq!(ended.stdout(), "a2: again\n");
    scene
        .run(&["--retry-failed", "exit", "true"])
        .expect(2)
        .says(&["no host of the last run ended so"]);
}

#[test]
fn a_deadline_ends_the_whole_group_which_may_say_last_words() {
    let scene = Scene::new();
    let line = "trap 'echo last words; exit 0' TERM; sleep 3600 & echo $! > $MARKS/%h.sleep; wait";
    let ended = scene
        .run(&["--json", "-u", "0.5", "-w", "a[1-2]", "sh", "-c", line])
        .expect(3);
    for (name, record) in ended.records().by_name() {
        assert_eq!(
            (record.failure(), record.fate.as_str()),
            ("command-timeout", "ran")
        );
        assert_eq!(record.stdout.as_deref(), Some("last words\n"));
        wait_for_end(scene.process(&format!("{name}.sleep")));
    }
}

#[test]
fn a_group_that_ignores_the_request_is_killed() {
    let scene = Scene::new();
    let ended = scene
        .run(&[
            "--json",
            "-u",
            "0.5",
            "-w",
            "a1",
            "sh",
            "-c",
            &outliving("TERM"),
        ])
        .expect(3);
    assert_eq!(ended.records().hosts[0].failure(), "command-timeout");
    wait_for_end(scene.process("a1.shell"));
    wait_for_end(scene.process("a1.sleep"));
}

#[test]
fn no_deadline_is_what_zero_means() {
    let scene = Scene::new();
    scene
        .run(&["-u", "0", "-w", "a1", "sleep", "0.2"])
        .expect(0);
}

#[test]
fn an_interrupt_reaches_the_groups_and_starts_no_more() {
    let scene = Scene::new();
    let line =
        "sleep 3600 & echo $! > $MARKS/%h.sleep; trap 'kill $!; exit 9' INT; touch $MARKS/%h; wait";
    let running = scene.start(&["--json", "-p", "2", "-w", "a[1-5]", "sh", "-c", line]);
    let sleeps = ["a1.sleep", "a2.sleep"].map(|name| scene.process(name));
    for mark in ["a1", "a2"] {
        wait_until("the trap is set", || {
            scene.marks().contains(&mark.to_owned())
        });
    }
    running.interrupt();
    let records = running.wait().expect(130).records();
    assert_eq!(
        (records.summary.exited, records.summary.not_started),
        (2, 3)
    );
    assert!(records.summary.interrupted);
    sleeps.into_iter().for_each(wait_for_end);
}

#[test]
fn a_second_interrupt_kills_what_ignores_the_first() {
    let scene = Scene::new();
    let running = scene.start(&["--json", "-w", "a1", "sh", "-c", &outliving("TERM")]);
    let processes = ["a1.shell", "a1.sleep"].map(|name| scene.process(name));
    running.interrupt();
    wait_until("the first has arrived", || {
        scene.marks().contains(&"a1.interrupted".to_owned())
    });
    running.interrupt();
    let records = running.wait().expect(130).records();
    assert_eq!(records.hosts[0].failure(), "lost");
    processes.into_iter().for_each(wait_for_end);
}

#[test]
fn signals_that_end_a_program_leave_no_command_behind() {
    for (signal, status) in [(Signal::HUP, 129), (Signal::QUIT, 131), (Signal::TERM, 143)] {
        let scene = Scene::new();
        let running = scene.start(&[
            "--json",
            "-w",
            "a1",
            "sh",
            "-c",
            &outliving("TERM HUP QUIT"),
        ]);
        let processes = ["a1.shell", "a1.sleep"].map(|name| scene.process(name));
        kill_process(running.pid(), signal).unwrap();
        let summary = running.wait().expect(status).records().summary;
        assert!(summary.interrupted && summary.failed == 1, "{summary:?}");
        processes.into_iter().for_each(wait_for_end);
    }
}

#[test]
fn what_a_command_leaves_running_on_purpose_stays() {
    let scene = Scene::new();
    let line = "sleep 3600 >/dev/null 2>&1 & echo $! > $MARKS/sleep";
    scene.run(&["-w", "a1", "sh", "-c", line]).expect(0);
    let sleep = scene.process("sleep");
    assert!(runs(sleep));
    kill_process(sleep, Signal::KILL).unwrap();
}
