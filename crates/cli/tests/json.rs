//! `--json` and the result file, held against docs/json.md.

#![allow(clippy::unwrap_used)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::{Map, Value};
use support::Shoal;
use support::program::Running;

/// docs/json.md.
struct Document {
    text: String,
}

impl Document {
    fn read() -> Document {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/json.md");
        Document {
            text: fs::read_to_string(path).unwrap(),
        }
    }

    /// What stands between two lines that begin so.
    fn between(&self, from: &str, to: &str) -> &str {
        let from = self.text.find(from).unwrap();
        let length = self.text[from..].find(to).unwrap();
        &self.text[from..from + length]
    }

    /// The members of a table, each with the text of its second column.
    fn members(&self, from: &str, to: &str) -> BTreeMap<&str, &str> {
        let rows = self
            .between(from, to)
            .lines()
            .filter(|line| line.starts_with("| `"));
        rows.flat_map(|row| {
            let mut cells = row.trim_matches('|').split(" | ").map(str::trim);
            let (names, kind) = (cells.next().unwrap(), cells.next().unwrap());
            quoted(names).map(move |name| (name, kind))
        })
        .collect()
    }

    /// The words in backticks of a paragraph, or of a row of a table.
    fn words(&self, from: &str, to: &str) -> BTreeSet<&str> {
        quoted(self.between(from, to)).collect()
    }
}

/// What stands in backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Whether a value is of the type that the document says.
fn fits(value: &Value, kind: &str) -> bool {
    match kind {
        "string" => value.is_string() || value.is_null(),
        "number" => value.is_u64() || value.is_null(),
        "boolean" => value.is_boolean() || value.is_null(),
        "object" => value.is_object(),
        other => panic!("the document has a type {other:?} that this test does not know"),
    }
}

#[track_caller]
fn check(object: &Map<String, Value>, members: &BTreeMap<&str, &str>) {
    for (name, value) in object {
        let kind = members.get(name.as_str());
        let kind = kind.unwrap_or_else(|| panic!("{name} is not in the document"));
        assert!(fits(value, kind), "{name} is no {kind}: {value}");
    }
}

/// The objects of a run whose hosts end in different ways.
fn objects(shoal: &Shoal<sshoal_testbed::simulated::Simulation>) -> Vec<Map<String, Value>> {
    let mut command = shoal.command(&["--json", "echo out"]);
    let ended = Running::start(&mut command).wait().expect(3);
    parse(&ended.stdout())
}

fn parse(text: &str) -> Vec<Map<String, Value>> {
    let object = |line: &str| serde_json::from_str(line).expect(line);
    text.lines().map(object).collect()
}

#[test]
fn every_member_is_documented_and_every_documented_member_is_there() {
    let document = Document::read();
    let shoal = Shoal::simulated(4, &["1=exit-signal:KILL", "2=refuse", "3=auth-denied"]);
    let objects = objects(&shoal);
    let (summary, hosts) = objects.split_last().unwrap();
    assert_eq!(hosts.len(), 4);

    let members = document.members("## `host`", "The kinds of failure");
    let times = document.members("`times_us` are those", "## `summary`");
    let outcomes = document.words("| `outcome`", "\n");
    let fates = document.words("| `fate`", "\n");
    let kinds = document.words("The kinds of failure", "`times_us` are");
    for host in hosts {
        check(host, &members);
        let found: BTreeSet<&str> = host["times_us"]
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        assert_eq!(found, times.keys().copied().collect());
        assert_eq!(
            (host["type"].as_str(), host["version"].as_u64()),
            (Some("host"), Some(1))
        );
        assert!(outcomes.contains(host["outcome"].as_str().unwrap()));
        assert!(fates.contains(host["fate"].as_str().unwrap()));
        assert!(
            host["failure"]
                .as_str()
                .is_none_or(|kind| kinds.contains(kind))
        );
    }
    // These are there only where they have something to say.
    let sometimes = [
        "kill",
        "kill_detail",
        "options",
        "transfer",
        "stdout_base64",
        "stderr_base64",
        "stdout_dropped",
        "stderr_dropped",
    ];
    let expected: BTreeSet<&str> = members
        .keys()
        .copied()
        .filter(|name| !sometimes.contains(name))
        .collect();
    let found: BTreeSet<&str> = hosts[0].keys().map(String::as_str).collect();
    assert_eq!(found, expected);

    let members = document.members("## `summary`", "Output without");
    check(summary, &members);
    let found: BTreeSet<&str> = summary.keys().map(String::as_str).collect();
    // `kill` is there only where a command had to end.
    let expected = members.keys().copied().filter(|name| *name != "kill");
    assert_eq!(found, expected.collect());
    let parts = ["ok", "exited", "signalled", "failed", "not_started"];
    let sum: u64 = parts
        .iter()
        .map(|part| summary[*part].as_u64().unwrap())
        .sum();
    assert_eq!(summary["hosts"].as_u64(), Some(sum));
    assert_eq!(
        (summary["type"].as_str(), summary["version"].as_u64()),
        (Some("summary"), Some(1))
    );
}

#[test]
fn the_kinds_of_failure_are_all_named_and_all_meant() {
    let document = Document::read();
    let documented = document.words("The kinds of failure", "`times_us` are");
    let known: BTreeSet<&str> = sshoal_fleet::FailureKind::all()
        .map(|kind| kind.name())
        .collect();
    assert_eq!(documented, known);
}

#[test]
fn a_dry_run_is_an_object_a_host_whatever_is_to_be_done() {
    let document = Document::read();
    let members = document.members("## `dry-run`", "## `ciphers`");
    let shoal = Shoal::simulated(2, &[]);
    let program = env!("CARGO_BIN_EXE_sshoal");
    let file = shoal.file("ssh_config");
    let mut found = BTreeSet::new();
    for (words, what) in [
        (&["run", "-F", &file, "echo %n"][..], "echo "),
        (&["each", "-F", &file, "ls", "-l"], "ls -l"),
        (&["put", "-F", &file, &file, "/x"], "put 1 file ("),
        (&["get", "-F", &file, "/x", "/y"], "get 1 path, /x into /y/"),
    ] {
        let mut command = shoal.user.command(program);
        command.arg(words[0]);
        command.args(["--json", "--dry-run", "--batch", "1"]);
        command.args(["-f", &shoal.file("hosts")]).args(&words[1..]);
        let objects = parse(&Running::start(&mut command).wait().expect(0).stdout());
        assert_eq!(objects.len(), 2, "{words:?}");
        for object in objects {
            check(&object, &members);
            assert_eq!(object["type"], "dry-run");
            assert!(object["what"].as_str().unwrap().starts_with(what));
            found.extend(object.keys().cloned());
        }
    }
    let sometimes = ["options", "what_base64"];
    let always = members.keys().filter(|name| !sometimes.contains(name));
    let always: BTreeSet<String> = always.map(|&name| name.to_owned()).collect();
    assert_eq!(found, always);
    assert_eq!(shoal.hosts.totals().connections, 0);
}

#[test]
fn the_result_file_has_the_same_without_output_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let shoal = Shoal::simulated(4, &["1=exit-signal:KILL", "2=refuse", "3=auth-denied"]);
    let mut shown = objects(&shoal);
    for object in &mut shown {
        object.retain(|name, _| !name.starts_with("stdout") && !name.starts_with("stderr"));
    }
    let path = shoal.user.home().join(".local/state/sshoal/last-run.jsonl");
    let mut kept = parse(&fs::read_to_string(&path).unwrap());
    assert_eq!(kept.remove(0)["type"], "run", "whose journal knows more");
    assert_eq!(kept, shown);
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_host_that_was_not_started_has_its_object_too() {
    let shoal = Shoal::simulated(2, &[]);
    let running = Running::start(&mut shoal.command(&["--json", "-p", "1", "sleep 3600"]));
    support::wait_until("the first runs", || shoal.hosts.totals().execs == 1);
    running.interrupt();
    let objects = parse(&running.wait().expect(130).stdout());
    let document = Document::read();
    let members = document.members("## `host`", "The kinds of failure");
    let idle = objects.iter().find(|object| {
        object
            .get("outcome")
            .is_some_and(|outcome| outcome == "not-started")
    });
    let idle = idle.unwrap();
    check(idle, &members);
    assert_eq!(
        (idle["fate"].as_str(), idle["attempts"].as_u64()),
        (Some("not-sent"), Some(0))
    );
}

#[test]
fn a_host_that_was_being_logged_in_to_was_not_started_either_but_tried() {
    let shoal = Shoal::simulated(1, &["0=silent-after-message:3"]);
    let running = Running::start(&mut shoal.command(&["--json", "hostname"]));
    support::wait_until("it logs in", || shoal.hosts.totals().connections == 1);
    running.interrupt();
    let objects = parse(&running.wait().expect(130).stdout());
    let told = ["outcome", "fate"].map(|name| objects[0][name].as_str());
    assert_eq!(told, [Some("not-started"), Some("not-sent")]);
    assert_eq!(objects[0]["attempts"], 1);
}

#[test]
fn the_examples_hold() {
    let shoal = Shoal::simulated(3, &["1=auth-denied"]);
    let lines = shoal.run(&["--json", "hostname"]).expect(3).stdout();
    let ok = |object: &&Map<String, Value>| object["type"] == "host" && object["outcome"] == "ok";
    let objects = parse(&lines);
    let shown: BTreeSet<String> = objects
        .iter()
        .filter(ok)
        .map(|object| {
            format!(
                "{} {}",
                object["host"].as_str().unwrap(),
                object["stdout"].as_str().unwrap()
            )
        })
        .collect();
    let expected = [0, 2].map(|host| format!("{} sim{host}\n", shoal.name(host)));
    assert_eq!(shown, expected.into_iter().collect());
    // As the second example: the slowest login.
    let logins = objects
        .iter()
        .filter_map(|object| object.get("times_us")?.get("login")?.as_u64());
    assert!(logins.max().unwrap() > 0);
}
