//! `sshoal plan`: what is refused, what is explained, and what runs in which order.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use sshoal_testbed::sshd::SshdSpec;
use support::copying::real;
use support::program::{Ended, Running};
use support::terminal::Screen;
use support::{Shoal, User, shared_folder, wait_until};
use tempfile::TempDir;

/// A user, a folder for a plan, and one for the commands to leave marks in.
struct Scene {
    user: User,
    desk: TempDir,
    marks: TempDir,
}

impl Scene {
    fn new(plan: &str) -> Scene {
        let [desk, marks] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        fs::write(desk.path().join("plan.toml"), plan).unwrap();
        let user = User::new();
        Scene { user, desk, marks }
    }

    /// Steps that each leave their names in the log, and fail if these names say so: `a b:a c:ab!` is a, b after a, and c after
    /// both, which fails.
    fn of_steps(steps: &str) -> Scene {
        let mut plan = String::from("[defaults]\nhosts = 'h1'\n");
        for step in steps.split(' ') {
            let (name, after) = step
                .trim_end_matches('!')
                .split_once(':')
                .unwrap_or((step, ""));
            let name = name.trim_end_matches('!');
            let status = u32::from(step.ends_with('!'));
            let after: Vec<String> = after.chars().map(|it| format!("'{it}'")).collect();
            plan.push_str(&format!(
                "[step.{name}]\nafter = [{}]\neach = ['sh', '-c', 'echo {name} >>$MARKS/log; exit {status}']\n",
                after.join(",")
            ));
        }
        Scene::new(&plan)
    }

    fn plan(&self) -> PathBuf {
        self.desk.path().join("plan.toml")
    }

    /// `sshoal plan` with these words, the first of which is followed by the plan.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.user.command(env!("CARGO_BIN_EXE_sshoal"));
        command
            .args(["plan", words[0]])
            .arg(self.plan())
            .args(&words[1..])
            .env("MARKS", self.marks.path());
        command
    }

    fn run(&self, words: &[&str]) -> Ended {
        Running::start(&mut self.command(words)).wait()
    }

    fn mark(&self, name: &str) -> PathBuf {
        self.marks.path().join(name)
    }

    /// The steps that have left their names, in order.
    fn log(&self) -> String {
        let log = fs::read_to_string(self.mark("log")).unwrap_or_default();
        log.split_whitespace().collect()
    }
}

fn objects(ended: &Ended) -> Vec<Value> {
    let text = ended.stdout();
    let objects = text
        .lines()
        .map(|line| serde_json::from_str(line).expect(line));
    objects.collect()
}

#[test]
fn a_step_that_fails_stops_what_comes_after_it_and_nothing_else() {
    let scene = Scene::of_steps("c:b b:a a d:e e");
    let ended = scene.run(&["run"]).expect(0);
    assert_eq!(scene.log(), "abced", "{}", ended.stderr());
    let scene = Scene::of_steps("c:b b:a a! d:e e");
    scene.run(&["run"]).expect(1).says(&[
        "2 steps done, 1 failed, 2 not begun",
        "a: failed with exit status 1",
        "b: not begun: a has failed",
        "c: not begun: a has failed",
        "d: done",
    ]);
    assert_eq!(scene.log(), "aed");
}

#[test]
fn a_step_may_have_as_many_failures_as_it_says_and_tells_of_them() {
    let plan = |steps: &str| Scene::new(&format!("[defaults]\nhosts = 'h[1-4]'\n{steps}"));
    let fails = |hosts: &str, more: &str| {
        format!("[step.a]\neach = ['sh', '-c', 'case %h in {hosts}) exit 1; esac']\n{more}\n")
    };
    let after = "[step.b]\nafter = 'a'\neach = ['true']\n";
    let scene = plan(&(fails("h2|h3", "max-failures = 2") + after));
    let ended = scene.run(&["run"]).expect(0);
    let ended = ended.says(&[
        "2 hosts have failed, and --max-failures lets 2: this step has succeeded",
        "2 steps done in",
    ]);
    assert!(!ended.stderr().contains("b: 2 hosts"), "{}", ended.stderr());
    let quiet = scene.run(&["run", "-q"]).expect(0);
    assert_eq!(quiet.stderr(), "");
    let ended = scene.run(&["run", "--json"]).expect(0);
    let plan_object = objects(&ended).pop().unwrap();
    assert_eq!(plan_object["exit_status"], 0);
    assert_eq!(plan_object["steps"][0]["outcome"], "done");
    assert_eq!(plan_object["steps"][0]["exit_status"], 0);
    // One more, none allowed, a canary, and nothing said of failures.
    for (hosts, more) in [
        ("h2|h3", "max-failures = 1\nparallel = 1"),
        ("h4", "max-failures = 0"),
        ("h1", "max-failures = 2\ncanary = 'h1'"),
        ("h2", ""),
    ] {
        let scene = plan(&(fails(hosts, more) + after));
        let ended = scene.run(&["run"]);
        assert_ne!(ended.status.code(), Some(0), "{more}");
        ended.says(&["b: not begun: a has failed"]);
    }
    // By itself the command's status is what it was.
    let mut each = scene.user.command(env!("CARGO_BIN_EXE_sshoal"));
    each.args(["each", "-w", "h[1-4]", "--max-failures", "2"]);
    each.args(["sh", "-c", "test %h != h2"]);
    Running::start(&mut each).wait().expect(1);
}

#[test]
fn a_dry_run_of_a_plan_tells_the_batches_of_its_steps() {
    let scene = Scene::new("[step.a]\nhosts = 'h[1-3]'\nbatch = 2\neach = 'true'\n");
    let shown = scene.run(&["run", "--dry-run"]).expect(0).stdout();
    for (host, batch) in [("h1", 1), ("h2", 1), ("h3", 2)] {
        let words = format!("{host}: batch {batch}: ");
        assert!(shown.contains(&words), "{shown}");
    }
}

#[test]
fn json_has_the_steps_names_and_what_became_of_all() {
    let scene = Scene::of_steps("b:a! a c:b d");
    let ended = scene.run(&["run", "--json", "--only", "a,b,c"]).expect(1);
    let objects = objects(&ended);
    let kinds: Vec<_> = objects
        .iter()
        .map(|object| (object["step"].as_str(), object["type"].as_str().unwrap()))
        .collect();
    let (a, b) = (Some("a"), Some("b"));
    assert_eq!(
        kinds,
        [
            (a, "host"),
            (a, "summary"),
            (b, "host"),
            (b, "summary"),
            (None, "plan")
        ]
    );
    let plan = &objects[4];
    assert_eq!(plan["exit_status"], 1);
    assert_eq!(plan["interrupted"], false);
    let steps = plan["steps"].as_array().unwrap();
    let outcome = |step: &Value| {
        let text = |member: &str| step[member].to_string().replace('"', "");
        ["step", "outcome", "exit_status", "stopped_by"]
            .map(text)
            .join(" ")
    };
    let outcomes: Vec<String> = steps.iter().map(outcome).collect();
    assert_eq!(
        outcomes,
        [
            "b failed 1 null",
            "a done 0 null",
            "c not-begun null b",
            "d left-out null null"
        ]
    );
}

#[test]
fn some_steps_are_run_alone_or_with_all_that_comes_after_them() {
    let scene = Scene::of_steps("a b:a c:b d");
    scene.run(&["run", "--from", "b"]).expect(0);
    scene.run(&["run", "--only", "d,a"]).expect(0);
    assert_eq!(scene.log(), "bcad");
}

#[test]
fn a_plan_that_is_wrong_is_refused_before_anything_runs() {
    let good = "[step.first]\nhosts = 'h1'\neach = ['sh', '-c', 'echo first >>$MARKS/log']\n";
    for (steps, said) in [
        (
            "[step.a]\nafter='b'\nrun='x'\nhosts='h'\n[step.b]\nafter='a'\nrun='x'\nhosts='h'",
            "4: step a: it would wait for itself: a (line 4) comes after b (line 8), which comes after a",
        ),
        (
            "[step.a]\nrun='x'\nhosts='h'\nafter='frist'",
            "7: step a: it comes after frist, which is no step",
        ),
        ("[step.first]\nrun='x'", "4: duplicate key"),
        (
            "[step.a]\nrun='x'\nhost='h'",
            "6: step a: a step with run has no setting host",
        ),
        (
            "[step.a]\nput=['x','y']\nhosts='h'\nsudo=true",
            "7: step a: a step with put has no setting sudo",
        ),
        (
            "[step.a]\nrun='x'\nhosts='h'\nbatch='ten'",
            "7: step a: invalid value 'ten' for '--batch",
        ),
        (
            "[step.a]\nrun='x'\nhosts='h'\nbatch=0",
            "4: step a: a batch of no hosts never ends",
        ),
        ("[step.a]\nrun='x'", "4: step a: no hosts were named"),
        ("[step.a]\nrun='x'\nhosts=''", "4: step a: "),
        ("[step.a]\nrun='x'\nhosts='h['", "4: step a: "),
        (
            "[step.a]\nrun='x'\nhosts='h'\nexclude='h'",
            "4: step a: the list of hosts is empty",
        ),
        (
            "[step.a]\nrun='x'\nhosts='h'\ntty=true",
            "7: step a: tty cannot be set here",
        ),
        (
            "[step.a]\nrun='x'\nhosts='h'\nstdin='-'",
            "5: step a: the steps of a plan share no standard input",
        ),
        (
            "[step.a]\nput=['-','y']\nhosts='h'",
            "5: step a: the steps of a plan share no standard input",
        ),
        (
            "[defaults]\njson=true",
            "5: defaults: json cannot be set here",
        ),
        (
            "[defaults]\nscript='x'",
            "5: defaults: script cannot be set here",
        ),
        (
            "[defaults]\nlogni='x'",
            "5: defaults: no kind of step has a setting logni",
        ),
        ("[step.a]", "4: step a: it does nothing"),
    ] {
        let scene = Scene::new(&format!("{good}{steps}"));
        for words in [
            &["run"][..],
            &["check"],
            &["explain"],
            &["run", "--only", "first"],
        ] {
            let ended = scene.run(words).expect(2);
            let wanted = format!("plan.toml:{said}");
            assert!(
                ended.stderr().contains(&wanted),
                "{wanted}: {}",
                ended.stderr()
            );
            assert_eq!(ended.stdout(), "");
        }
        assert_eq!(scene.log(), "");
    }
    let scene = Scene::new(good);
    for words in [
        &["run", "--from", "a"][..],
        &["run", "--only", "a"],
        &["explain", "a"],
    ] {
        scene
            .run(words)
            .expect(2)
            .says(&["there is no step a; there are: first"]);
    }
    scene.run(&["run", "--steps-at-once", "0"]).expect(2);
    fs::remove_file(scene.plan()).unwrap();
    scene
        .run(&["run"])
        .expect(2)
        .says(&["cannot read the plan"]);
}

#[test]
fn what_waits_for_what_is_explained_in_both_directions() {
    let scene = Scene::of_steps("d:c a b:a c:b e");
    let ended = scene.run(&["explain"]).expect(0);
    let text = ended.stdout();
    let names = text
        .lines()
        .filter_map(|line| line.strip_suffix(": 1 host"));
    assert_eq!(names.collect::<String>(), "abcde");
    let ended = scene.run(&["explain", "b"]).expect(0);
    let lines: Vec<String> = ended.stdout().lines().map(str::to_owned).collect();
    assert_eq!(lines[0], "b: 1 host");
    assert!(
        lines[1].starts_with("  does          sshoal each --hosts=h1 -- sh -c '"),
        "{lines:?}"
    );
    assert_eq!(
        lines[2..],
        ["  comes after   a", "  comes before  c; through it d"]
    );
    let ended = scene.run(&["explain", "--json", "c"]).expect(0);
    let [object] = &objects(&ended)[..] else {
        panic!("{}", ended.stdout());
    };
    assert_eq!(object["type"], "plan-step");
    assert_eq!(object["line"], 12);
    let names = |member: &str| object[member].to_string();
    let members = ["after", "all_after", "before", "all_before"].map(names);
    assert_eq!(
        members,
        [r#"["b"]"#, r#"["a","b"]"#, r#"["d"]"#, r#"["d"]"#]
    );
    let check = scene.run(&["check"]).expect(0).stdout();
    assert!(
        check.ends_with("plan.toml: 5 steps, nothing is wrong\n"),
        "{check}"
    );
}

#[test]
fn independent_steps_run_at_the_same_time_if_that_is_allowed() {
    // Neither ends before the other has begun.
    let step = |own: &str, other: &str| {
        format!(
            "[step.{own}]\nhosts = 'h[1-2]'\neach = ['sh', '-c', '''touch $MARKS/{own}%h; \
             until [ -e $MARKS/{other}h1 ]; do sleep 0.05; done; echo {own} is there''']\n"
        )
    };
    let scene = Scene::new(&(step("a", "b") + &step("b", "a")));
    let ended = scene.run(&["run", "--steps-at-once", "2"]).expect(0);
    let mut lines: Vec<String> = ended.stdout().lines().map(str::to_owned).collect();
    lines.sort();
    let expected = ["a: h1: a", "a: h2: a", "b: h1: b", "b: h2: b"];
    assert_eq!(lines, expected.map(|line| format!("{line} is there")));
}

#[test]
fn paths_are_those_of_the_plans_folder() {
    let scene = Scene::new("[defaults]\nhosts-file = 'hosts'\n[step.a]\neach = ['./tool', '%h']\n");
    fs::write(scene.desk.path().join("hosts"), "h[1-2]\n").unwrap();
    support::copying::script(scene.desk.path(), "tool", "echo it is $1");
    let ended = scene.run(&["run", "-q"]).expect(0);
    let mut lines: Vec<String> = ended.stdout().lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, ["a: h1: it is h1", "a: h2: it is h2"]);
    assert_eq!(ended.stderr(), "");
}

/// A command that says when it has begun, and clears up when it is interrupted.
const CLEARS_UP: &str = "[step.a]\nhosts = 'h1'\neach = ['sh', '-c', '''
trap 'sleep 0.3; touch $MARKS/cleared; exit 1' INT
touch $MARKS/begun
while :; do sleep 0.05; done''']
[step.b]\nafter = 'a'\nhosts = 'h1'\neach = ['touch', 'never']
[step.c]\nhosts = 'h1'\neach = ['touch', 'never']\n";

#[test]
fn a_signal_ends_the_steps_that_run_in_order_and_no_other_begins() {
    for at_once in ["1", "2"] {
        let scene = Scene::new(&CLEARS_UP.replace("[step.c]", "[step.c]\nafter = 'a'"));
        let mut command = scene.command(&["run", "--steps-at-once", at_once]);
        let running = Running::start(&mut command);
        wait_until("the step has begun", || scene.mark("begun").exists());
        running.interrupt();
        let ended = running
            .wait()
            .expect(130)
            .says(&["b: not begun", "c: not begun"]);
        assert!(scene.mark("cleared").exists(), "{}", ended.stderr());
        assert!(!scene.desk.path().join("never").exists());
    }
}

#[test]
fn ctrl_c_on_the_terminal_reaches_a_step_once() {
    let scene = Scene::new(CLEARS_UP);
    let mut screen = Screen::start(&scene.command(&["run"]), 24, 100);
    screen.expect("step a");
    wait_until("the step has begun", || scene.mark("begun").exists());
    screen.type_in("\x03");
    screen.expect("c: not begun");
    assert_eq!(screen.finish().0, Some(130));
    assert!(scene.mark("cleared").exists());
}

#[test]
fn a_reader_that_goes_away_ends_the_plan() {
    let scene = Scene::of_steps("b:a a");
    let plan = scene.plan();
    let text = fs::read_to_string(&plan)
        .unwrap()
        .replace("exit 0", "while :; do echo on; done");
    fs::write(&plan, text).unwrap();
    let line = format!(
        "sshoal plan run {} | head -n 1; echo ${{PIPESTATUS[0]}}",
        plan.display()
    );
    let mut command = scene.user.command("bash");
    command.args(["-c", &line]).env("MARKS", scene.marks.path());
    let ended = Running::start(&mut command).wait().expect(0);
    assert_eq!(ended.stdout(), "a: h1: on\n141\n");
    assert_eq!(scene.log(), "a");
}

#[test]
fn output_that_cannot_be_written_ends_the_plan_as_failed() {
    let scene = Scene::new(
        "[defaults]\nhosts = 'h1'\n[step.a]\neach = ['echo', 'it']\n[step.b]\nafter = 'a'\neach = ['touch', 'never']\n",
    );
    let line = format!("exec sshoal plan run {} >/dev/full", scene.plan().display());
    let ended = Running::start(&mut scene.user.shell(&line)).wait();
    ended.expect(74).says(&[
        "step a: its output cannot be written",
        "a: failed with exit status 74",
        "b: not begun",
    ]);
    assert!(!scene.desk.path().join("never").exists());
}

#[test]
fn what_could_never_run_is_found_by_a_check() {
    for (step, said) in [
        ("run = 'true'\njournal = 'off'\nrecord = true", "record"),
        ("run = 'true'\njournal = 'off'\ndetach = true", "detach"),
        ("run = \"a\\u0000b\"", "NUL"),
        ("run = 'true'\nuser = \"a\\u0000b\"", "NUL"),
    ] {
        let scene = Scene::new(&format!("[step.a]\nhosts = 'h1'\n{step}\n"));
        scene.run(&["check"]).expect(2).says(&["step a", said]);
    }
}

#[test]
fn steps_are_runs_on_hosts_and_one_host_that_fails_is_a_step_that_fails() {
    let shoal = Shoal::simulated(3, &["2=auth-denied"]);
    let (config, hosts) = (shoal.file("ssh_config"), shoal.file("hosts"));
    let plan = shoal.dir.path().join("plan.toml");
    let text = format!(
        "[defaults]\nconfig = '{config}'\nhosts-file = '{hosts}'\n[step.a]\nrun = 'count a'\n[step.b]\nafter = 'a'\nrun = 'count b'\n\
         [step.c]\nhosts = '{}'\nrun = ['count', 'c']\n",
        shoal.name(0)
    );
    fs::write(&plan, text).unwrap();
    let mut command = shoal.user.command(env!("CARGO_BIN_EXE_sshoal"));
    command.args(["plan", "run", "--json"]).arg(&plan);
    let ended = Running::start(&mut command).wait().expect(3);
    let counts = |name| [0, 1, 2].map(|host| shoal.hosts.count(host, name));
    assert_eq!(counts("a"), [1, 1, 0], "{}", ended.stderr());
    assert_eq!(counts("b"), [0, 0, 0]);
    assert_eq!(counts("c"), [1, 0, 0]);
    let records = objects(&ended);
    assert_eq!(
        records
            .iter()
            .filter(|it| it["failure"] == "auth-denied")
            .count(),
        1
    );
}

#[test]
fn files_go_there_a_script_reads_them_and_they_come_back() {
    let shoal = real(SshdSpec::new(2));
    let there = shared_folder();
    let there = there.path().display();
    let folder = shoal.dir.path();
    fs::write(folder.join("note"), "contents\n").unwrap();
    support::copying::script(folder, "show.sh", "cat \"$1\"");
    let text = format!(
        "[defaults]\nconfig = '{}'\nhosts = '{}'\nsudo = false\n\
         [step.fetch]\nafter = 'show'\nget = ['{there}/note', 'fetched']\n\
         [step.show]\nafter = 'send'\nhosts-file = 'hosts'\nscript = ['show.sh', '{there}/note']\ngather = true\n\
         [step.send]\nput = ['note', '{there}/note']\nbatch = 1\n",
        shoal.file("ssh_config"),
        shoal.name(1),
    );
    let plan = folder.join("plan.toml");
    fs::write(&plan, text).unwrap();
    let run = |more: &[&str]| {
        let mut command = shoal.user.command(env!("CARGO_BIN_EXE_sshoal"));
        command.args(["plan", "run"]).arg(&plan).args(more);
        Running::start(&mut command).wait()
    };
    let shown = run(&["--dry-run"]).expect(0).stdout();
    let steps: Vec<&str> = shown
        .lines()
        .filter_map(|line| line.split(':').next())
        .collect();
    assert_eq!(steps, ["send", "show", "show", "fetch"], "{shown}");
    assert!(!Path::new(&format!("{there}/note")).exists());
    let ended = run(&[]).expect(0);
    assert!(
        ended.stdout().contains("show: contents\n"),
        "{}",
        ended.stdout()
    );
    let fetched = folder.join("fetched").join(shoal.name(1)).join("note");
    assert_eq!(fs::read_to_string(fetched).unwrap(), "contents\n");
    // A file that is not there is found out when its step begins.
    fs::remove_file(folder.join("note")).unwrap();
    run(&[])
        .expect(3)
        .says(&["send: failed with exit status 2", "fetch: not begun"]);
}
