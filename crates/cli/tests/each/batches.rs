//! Batches, canaries, and what is between two batches.

use std::fs;

use crate::Scene;

/// Each begins only if all of the batches before have ended, and leaves a line of its own.
const COUNTED: &str = "echo b%h >>$MARKS/log; echo e%h >>$MARKS/log";

/// Which hosts have begun, in order.
fn begun(scene: &Scene) -> Vec<String> {
    let log = fs::read_to_string(scene.marks.path().join("log")).unwrap_or_default();
    let begun = log.lines().filter_map(|line| line.strip_prefix('b'));
    begun.map(str::to_owned).collect()
}

#[test]
fn a_batch_begins_when_the_one_before_has_ended() {
    let scene = Scene::new();
    // Nobody begins while one of another batch has begun and not ended.
    let line = "mkdir -p $MARKS/now; for other in $(ls $MARKS/now); do \
        case %h$other in a[12]a[12]|a[34]a[34]|a5a5) ;; *) touch $MARKS/mixed;; esac; done; \
        touch $MARKS/now/%h; echo b%h >>$MARKS/log; sleep 0.1; rm $MARKS/now/%h";
    scene
        .run(&["-w", "a[1-5]", "--batch", "2", "sh", "-c", line])
        .expect(0);
    assert_eq!(scene.marks(), ["log", "now"]);
    let mut batches: Vec<Vec<String>> = begun(&scene).chunks(2).map(<[_]>::to_vec).collect();
    batches.iter_mut().for_each(|batch| batch.sort());
    assert_eq!(
        batches,
        [vec!["a1", "a2"], vec!["a3", "a4"], vec!["a5"]],
        "in the order of the list"
    );
}

#[test]
fn a_canary_that_fails_is_the_only_one_that_has_run() {
    let scene = Scene::new();
    let line = format!("{COUNTED}; exit 3");
    let words = ["-w", "a[1-9]", "--canary", "a4", "sh", "-c", &line];
    let ended = scene
        .run(&words)
        .expect(3)
        .says(&["1 host has failed, which is one too many: nothing else is started"]);
    assert_eq!(begun(&scene), ["a4"]);
    assert!(
        ended.stderr().contains("8 not started"),
        "{}",
        ended.stderr()
    );
    // They are there for another run.
    scene
        .run(&["--retry-failed", "not-started", "sh", "-c", COUNTED])
        .expect(0);
    assert_eq!(begun(&scene).len(), 9);
}

#[test]
fn more_failures_than_allowed_end_the_run_and_as_many_as_allowed_do_not() {
    let run = |most: &str| {
        let scene = Scene::new();
        let line = format!("{COUNTED}; case %h in a[1-4]) ;; *) exit 1 ;; esac");
        let words = ["-w", "a[1-10]", "-p", "1", "--batch", "3"];
        let words = [&words[..], &["--max-failures", most, "sh", "-c", &line]].concat();
        let ended = scene.run(&words);
        (begun(&scene).len(), ended)
    };
    let (begun, ended) = run("2");
    assert_eq!(begun, 7, "{}", ended.stderr());
    ended
        .expect(3)
        .says(&["3 hosts have failed, which is one too many"]);
    let (begun, ended) = run("60%");
    assert_eq!(begun, 10, "{}", ended.stderr());
    ended.expect(1);
    // The last one is one too many, and there is nobody left who is not started.
    let (begun, ended) = run("5");
    assert_eq!(begun, 10, "{}", ended.stderr());
    let said = ended.expect(1).stderr();
    assert!(!said.contains("one too many"), "{said}");
}

#[test]
fn a_check_must_succeed_before_each_further_batch_and_is_repeated_until_it_does() {
    let scene = Scene::new();
    // Succeeds at its second attempt after each batch.
    let until =
        "echo $SSHOAL_BATCH >>$MARKS/checks; [ $(grep -cx $SSHOAL_BATCH $MARKS/checks) -ge 2 ]";
    let words = [
        "-w", "a[1-6]", "--batch", "2", "--until", until, "--pause", "0.01",
    ];
    scene
        .run(&[&words[..], &["sh", "-c", COUNTED]].concat())
        .expect(0);
    let checks = fs::read_to_string(scene.marks.path().join("checks")).unwrap();
    assert_eq!(checks, "1\n1\n2\n2\n", "not after the last batch");
    assert_eq!(begun(&scene).len(), 6);
}

#[test]
fn a_check_that_never_succeeds_halts_the_run_and_is_told() {
    let scene = Scene::new();
    let until = "echo the shop is closed >&2; false";
    let words = [
        "-w",
        "a[1-4]",
        "--batch",
        "1",
        "--until",
        until,
        "--until-timeout",
        "0.2",
    ];
    scene
        .run(&[&words[..], &["sh", "-c", COUNTED]].concat())
        .expect(3)
        .says(&[
            "--until has not succeeded within 0.2 s",
            "the shop is closed",
        ]);
    assert_eq!(begun(&scene), ["a1"]);
}

#[test]
fn ctrl_c_between_batches_ends_the_run_and_the_check() {
    let scene = Scene::new();
    let until = "touch $MARKS/checking; exec sleep 3600";
    let words = ["-w", "a[1-4]", "--batch", "1", "--until", until];
    let running = scene.start(&[&words[..], &["sh", "-c", COUNTED]].concat());
    let checking = scene.marks.path().join("checking");
    crate::wait_until("the check runs", || checking.exists());
    running.interrupt();
    running.wait().expect(130);
    assert_eq!(begun(&scene), ["a1"]);
}

#[test]
fn what_makes_no_sense_is_said_before_anything_runs() {
    let scene = Scene::new();
    for (words, said) in [
        (&["--batch", "0"][..], "--batch takes a number from 1"),
        (&["--batch", "many"], "neither a number of hosts nor a part"),
        (&["--pause", "1"], "add --batch N"),
        (&["--until", "true"], "add --batch N"),
        (
            &["--canary", "b"],
            "--canary names b, which is not among the hosts",
        ),
        (&["--batch", "1", "--until-timeout", "1"], "--until"),
    ] {
        let words = [&["-w", "a[1-2]"], words, &["sh", "-c", COUNTED]].concat();
        scene.run(&words).expect(2).says(&[said]);
    }
    assert!(scene.marks().is_empty());
}
