//! How many commands run at a time.

use crate::Scene;
use crate::support::program::Running;

#[test]
fn as_many_run_at_a_time_as_asked_for_and_no_more() {
    let scene = Scene::new();
    // Each waits for three to have begun: fewer at a time would never end, more would be seen.
    let line = "mkdir -p $MARKS/now $MARKS/ever; touch $MARKS/now/%h $MARKS/ever/%h; \
        test $(ls $MARKS/now | wc -l) -le 3 || touch $MARKS/too-many; \
        until test $(ls $MARKS/ever | wc -l) -ge 3; do sleep 0.01; done; rm $MARKS/now/%h";
    scene
        .run(&["-w", "a[1-12]", "-p", "3", "sh", "-c", line])
        .expect(0);
    assert_eq!(scene.marks(), ["ever", "now"]);
}

#[test]
fn starts_are_kept_apart() {
    let scene = Scene::new();
    let ended = scene
        .run(&["--json", "-w", "a[1-4]", "--delay", "100", "true"])
        .expect(0);
    let elapsed = ended.records().summary.elapsed_us;
    assert!(elapsed >= 300_000, "three intervals passed in {elapsed} us");
}

#[test]
fn more_commands_than_descriptors_take_turns() {
    let scene = Scene::new();
    let line = format!(
        "ulimit -n 96; {} each -w 'a[1-200]' -p 200 sh -c 'ulimit -n' | sort -u -k 2",
        env!("CARGO_BIN_EXE_sshoal")
    );
    let ended = Running::start(&mut scene.user.shell(&line))
        .wait()
        .expect(0);
    let shown = ended.stdout();
    assert!(
        shown.ends_with(": 96\n") && shown.lines().count() == 1,
        "{shown}"
    );
}

#[test]
fn commands_inherit_the_usual_limit_of_descriptors() {
    let scene = Scene::new();
    let line = format!(
        "ulimit -Sn 1024; {} each -w a sh -c 'ulimit -n'",
        env!("CARGO_BIN_EXE_sshoal")
    );
    let ended = Running::start(&mut scene.user.shell(&line))
        .wait()
        .expect(0);
    assert_eq!(ended.stdout(), "a: 1024\n");
}
