//! Two runs of the script at a time, and runs that come to no end of their own.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use super::tests::{PAM_SSHD, Place, SSHD_CONFIG, by_each_shell, run_of, script_of, slow_host};

/// How long a script may take to get where it is awaited.
const DEADLINE: Duration = Duration::from_secs(60);
/// What is there as long as a run is at work.
const LOCK: &str = "run/sshoal-fix.lock";

/// Begins to change the host, and comes to where sshd checks its configuration; there it stays until there is a file `go`.
fn halfway(place: &Place, shell: &[&str], script: &str) -> Child {
    let wait = "i=0\nwhile [ ! -e @/go ] && [ $i -lt 1200 ]; do sleep 0.05; i=$((i + 1)); done";
    let check = "! grep -q Bad @/etc/ssh/sshd_config";
    // The first time nothing is changed yet.
    let again = format!(
        "#!/bin/sh\nif [ -e @/checked ]; then\n: >@/waits\n{wait}\nfi\n: >@/checked\n{check}\n"
    );
    place.program("sshd", &again);
    for left in ["go", "checked", "waits"] {
        let _ = fs::remove_file(place.path(left));
    }
    let script = place.start(shell, script, &["host"]).unwrap();
    let begun = Instant::now();
    while !place.path("waits").exists() {
        assert!(begun.elapsed() < DEADLINE, "it does not get there");
        thread::sleep(Duration::from_millis(5));
    }
    script
}

#[test]
fn while_a_run_is_at_work_no_other_changes_or_puts_back_anything() {
    let script = script_of(&slow_host());
    by_each_shell(|place, shell| {
        let first = halfway(place, shell, &script);
        let changed = format!("UseDNS no\n{SSHD_CONFIG}");
        assert_eq!(place.read("etc/ssh/sshd_config"), changed, "{shell:?}");
        let run = place.read(&format!("{LOCK}/run")).trim().to_owned();
        for words in [&["host"][..], &["undo-host", &run]] {
            let (is_done, said) = place.run(shell, &script, words).unwrap();
            assert!(!is_done, "{shell:?}: {said}");
            let wanted = format!("another run, {run}, is at work, and nothing is changed");
            assert!(said.contains(&wanted), "{shell:?}: {said}");
            assert_eq!(place.read("etc/ssh/sshd_config"), changed, "{said}");
        }
        // This machine's files are others.
        let (is_done, said) = place.run(shell, &script, &["here"]).unwrap();
        assert!(is_done, "{shell:?}: {said}");
        assert_eq!(place.left("home", "sshoal-fix"), [""; 0]);
        place.write("go", "");
        let (is_done, said) = Place::end(first);
        assert!(is_done && run_of(&said) == run, "{shell:?}: {said}");
        assert!(!place.path(LOCK).exists());
        let (is_done, said) = place.run(shell, &script, &["undo-host", &run]).unwrap();
        assert!(is_done, "{shell:?}: {said}");
        assert_eq!(place.read("etc/ssh/sshd_config"), SSHD_CONFIG);
        assert_eq!(place.read("etc/pam.d/sshd"), PAM_SSHD);
        assert!(!place.path(LOCK).exists());
    });
}

#[test]
fn a_run_that_a_signal_ends_puts_all_back_and_lets_the_next_one_in() {
    let script = script_of(&slow_host());
    by_each_shell(|place, shell| {
        for signal in ["-HUP", "-INT", "-TERM"] {
            let run = halfway(place, shell, &script);
            let mut kill = Command::new("kill");
            let killed = kill.args([signal, &run.id().to_string()]).status();
            assert!(killed.unwrap().success());
            place.write("go", "");
            let (is_done, said) = Place::end(run);
            assert!(!is_done && said.contains("put back"), "{shell:?}: {said}");
            assert_eq!(place.read("etc/ssh/sshd_config"), SSHD_CONFIG);
            assert_eq!(place.left("etc/ssh", "before"), [""; 0]);
            assert!(!place.path(LOCK).exists(), "{shell:?} {signal}");
        }
    });
}

#[test]
fn what_a_killed_run_has_left_is_named_with_the_way_out() {
    let script = script_of(&slow_host());
    by_each_shell(|place, shell| {
        let mut killed = halfway(place, shell, &script);
        killed.kill().unwrap();
        killed.wait().unwrap();
        place.write("go", "");
        let run = place.read(&format!("{LOCK}/run")).trim().to_owned();
        let (is_done, said) = place.run(shell, &script, &["host"]).unwrap();
        assert!(!is_done, "{shell:?}: {said}");
        let lock = place.path(LOCK);
        assert!(
            said.contains(&format!("rm -r {}", lock.display())),
            "{said}"
        );
        assert!(said.contains(&format!("undo-host {run}")), "{said}");
        fs::remove_dir_all(lock).unwrap();
        let (is_done, said) = place.run(shell, &script, &["undo-host", &run]).unwrap();
        assert!(is_done, "{shell:?}: {said}");
        assert_eq!(place.read("etc/ssh/sshd_config"), SSHD_CONFIG);
        assert_eq!(place.read("etc/pam.d/sshd"), PAM_SSHD);
        // One that came no further than to make it.
        fs::create_dir(place.path(LOCK)).unwrap();
        let (is_done, said) = place.run(shell, &script, &["host"]).unwrap();
        let wanted = "another run is at work";
        assert!(!is_done && said.contains(wanted), "{shell:?}: {said}");
        assert!(!said.contains("undo-host"), "{said}");
        fs::remove_dir(place.path(LOCK)).unwrap();
        fs::remove_dir(place.path("run")).unwrap();
        let (is_done, said) = place.run(shell, &script, &["host"]).unwrap();
        assert_eq!(place.read("etc/ssh/sshd_config"), SSHD_CONFIG, "{said}");
        assert!(!is_done && said.contains("nothing is changed"), "{said}");
    });
}
