//! Logins followed where the kernel has no tracefs, or not all of it: simulated by `--without`.

use std::fs;
use std::process::Command;

use serde_json::Value;
use sshoal_testbed::slow::Injection;
use sshoal_trace::Tree;

use crate::logins::{Host, check_sum, processes, ran, started_tracers};
use crate::may_trace;
use crate::support::program::Running;
use crate::support::wait_until;
use crate::tracer::{Shell, Tracer, check_that_all_are_seen};

/// Of update-motd.d.
const SCRIPT: &str = "/etc/update-motd.d/50-status";

/// Whether the kernel tells root of processes by netlink, and our namespaces are those that it speaks to; says so if not.
fn has_connector() -> bool {
    let shell = Shell::new("true");
    let tracer = Tracer::start_without(shell.pid(), "tracefs").arm();
    let is_there = tracer.means().by == "proc-connector";
    if !is_there {
        eprintln!("not tested: {:?}", tracer.means().refused);
    }
    is_there
}

#[test]
fn by_the_proc_connector_every_descendant_is_there_too() {
    if may_trace() && has_connector() {
        check_that_all_are_seen(|pid| Tracer::start_without(pid, "tracefs"));
    }
}

#[test]
fn where_the_kernel_does_not_follow_forks_every_descendant_is_there_too() {
    if may_trace() {
        check_that_all_are_seen(|pid| {
            let tracer = Tracer::start_without(pid, "event-fork").arm();
            assert_eq!(tracer.means().by, "tracefs");
            assert_eq!(tracer.means().lacks, ["event-fork"]);
            tracer
        });
    }
}

#[test]
fn that_nobody_listens_to_the_name_service_is_a_lack_of_its_own() {
    if !may_trace() {
        return;
    }
    let shell = Shell::new("true");
    let tracer = Tracer::start_without(shell.pid(), "name-service").arm();
    let probes = &tracer.recording.probes;
    assert!(probes.iter().all(|probe| probe.module != "libc"));
    // Where sshd has no PAM nothing is left of either.
    let lack = match probes.is_empty() {
        true => "functions",
        false => "name-service",
    };
    assert_eq!(tracer.means().lacks, [lack]);
}

/// Numbers of the processes below one that have ended up in `sleep`.
fn sleepers(below: u32) -> usize {
    let children = fs::read_to_string(format!("/proc/{below}/task/{below}/children"));
    let children = children.unwrap_or_default();
    let children = children.split_whitespace().map(|pid| pid.parse().unwrap());
    children
        .map(|pid: u32| {
            let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            usize::from(name == "sleep\n") + sleepers(pid)
        })
        .sum()
}

#[test]
fn who_lives_when_proc_is_looked_at_is_there_under_its_parent_with_its_program() {
    if !may_trace() {
        return;
    }
    let shell =
        "( exec sleep 1000 ) & ( ( exec sleep 1000 ) & ( exec sleep 1000 ) & wait; : ) & wait";
    let mut shell = Shell::new(shell);
    let mut tracer = Tracer::start_without(shell.pid(), "tracefs,proc-connector").arm();
    assert_eq!(tracer.means().by, "proc");
    shell.tell();
    wait_until("all three sleep", || sleepers(shell.pid()) == 3);
    tracer.end();
    let (followed, records) = tracer.recording.records().unwrap();
    let tree = Tree::of(followed, &records);
    let pid = |id| tree.process(id).pid;
    let seen = tree.processes().skip(1).map(|(_, process)| {
        let is_of_shell = process.parent.map(pid) == Some(shell.pid());
        (process.title().to_owned(), is_of_shell)
    });
    let mut seen: Vec<(String, bool)> = seen.collect();
    seen.sort();
    let sleep = "sleep".to_owned();
    // The one in between is a fork, and has its parent's name.
    let between = ("sh".to_owned(), true);
    assert_eq!(
        seen,
        [
            between,
            (sleep.clone(), false),
            (sleep.clone(), false),
            (sleep, true)
        ]
    );
    assert!(tree.processes().skip(1).all(|(_, it)| it.ended.is_none()));
    shell.end_all();
}

/// A login with a slow script of update-motd.d, followed without tracefs: what is told of it, and what is not.
#[track_caller]
fn check_login(found: &Value, by: &str) {
    check_sum(found);
    let trace = &found["trace"];
    assert_eq!(trace["by"], by);
    assert_eq!(trace["matched"], true);
    assert_eq!(found["tier"], "no-root");
    assert_eq!(trace["refused"][0]["by"], "tracefs");
    let notes = found["tier_notes"].to_string();
    assert!(notes.contains("a login was followed by"), "{notes}");
    for lack in ["time", "files", "disks", "connections", "functions"] {
        let lacks = trace["lacks"].as_array().unwrap();
        assert!(lacks.iter().any(|it| it == lack), "{lacks:?}");
    }
    let all = processes(found);
    let script = all.iter().find(|process| ran(process, SCRIPT)).unwrap();
    let lived = |end: &Value, begin: &Value| end.as_u64().unwrap() - begin.as_u64().unwrap();
    // A little of it may pass before it is seen.
    assert!(
        lived(&script["end_us"], &script["start_us"]) > 1_000_000,
        "{script}"
    );
    assert!(script["path_us"].is_null());
    let words = &script["programs"].as_array().unwrap().last().unwrap()["arguments"];
    assert!(words.as_array().unwrap().iter().any(|word| word == SCRIPT));
    let facts = &found["facts"];
    assert!(
        facts["trace.motd.time"].as_u64() > Some(1_000_000),
        "{facts:#}"
    );
    // Nothing is said of what was not seen.
    for name in ["trace.cpu.time", "trace.opened", "trace.lookups"] {
        assert!(facts[name].is_null(), "{name}");
    }
    // On a busy host others may cost more.
    let findings = found["findings"].as_array().unwrap();
    let mut causes = findings.iter().map(|finding| &finding["cause"]);
    assert!(causes.any(|cause| cause == "pam-motd"), "{findings:#?}");
}

#[test]
fn by_the_proc_connector_a_login_has_its_processes() {
    if !may_trace() || !has_connector() {
        return;
    }
    let Some(host) = Host::start(&Injection::several("motd:2000").unwrap()) else {
        return;
    };
    check_login(&host.followed("tracefs"), "proc-connector");
}

#[test]
fn by_looking_at_proc_a_login_has_the_processes_that_lived_long_enough() {
    if !may_trace() {
        return;
    }
    let Some(host) = Host::start(&Injection::several("motd:2000").unwrap()) else {
        return;
    };
    check_login(&host.followed("tracefs,proc-connector"), "proc");
}

#[test]
fn a_kernel_without_probes_or_without_some_events_tells_all_the_rest() {
    if !may_trace() {
        return;
    }
    let Some(host) = Host::start(&Injection::several("motd:2000").unwrap()) else {
        return;
    };
    let found = host.followed("uprobes,files");
    check_sum(&found);
    let trace = &found["trace"];
    assert_eq!(
        (&trace["by"], &found["tier"]),
        (&"tracefs".into(), &"root".into())
    );
    let lacks = serde_json::json!(["files", "functions", "names"]);
    assert_eq!(trace["lacks"], lacks);
    assert!(trace["calls"].as_array().unwrap().is_empty());
    assert!(trace["files"].as_array().unwrap().is_empty());
    let notes = trace["notes"].to_string();
    assert!(
        notes.contains("not told: files, what PAM's modules"),
        "{notes}"
    );
    assert!(found["facts"]["trace.opened"].is_null());
    assert!(found["facts"]["trace.connections"].is_number());
    assert!(processes(&found).iter().any(|process| ran(process, SCRIPT)));
    let findings = found["findings"].as_array().unwrap();
    let motd = findings.iter().find(|it| it["cause"] == "pam-motd");
    assert_eq!(motd.unwrap()["certainty"], "proven");
}

#[test]
fn where_the_kernel_does_not_follow_forks_a_login_is_told_from_all_that_the_host_does() {
    if !may_trace() {
        return;
    }
    let Some(host) = Host::start(&Injection::several("motd:20").unwrap()) else {
        return;
    };
    let found = host.followed("event-fork");
    let trace = &found["trace"];
    assert_eq!(
        (&trace["by"], &found["tier"]),
        (&"tracefs".into(), &"root".into())
    );
    assert_eq!(trace["lacks"], serde_json::json!(["event-fork"]));
    assert_eq!(trace["matched"], true);
    assert!(processes(&found).iter().any(|process| ran(process, SCRIPT)));
}

#[test]
fn without_tracefs_report_page_and_events_show_the_processes() {
    if !may_trace() {
        return;
    }
    let Some(host) = Host::start(&Injection::several("motd:1000").unwrap()) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let [page, events] = ["page.html", "events.json"].map(|name| folder.path().join(name));
    let (page, events) = (page.to_str().unwrap(), events.to_str().unwrap());
    let mut command = host.why(&["--trace", "--repeat", "1", "--no-ssh"]);
    command.args(["--html", page, "--chrome-trace", events]);
    command.env("SSHOAL_TRACE_WITHOUT", "tracefs,proc-connector");
    let text = Running::start(&mut command).wait().expect(0).stdout();
    assert_eq!(started_tracers(&host), [0; 0]);
    assert!(text.contains("Trace (by /proc)"), "{text}");
    assert!(text.contains("not told: who worked"), "{text}");
    let is_of_script = |line: &str| line.contains("50-status") && line.contains('█');
    assert!(text.lines().any(is_of_script), "{text}");

    let events: Value = serde_json::from_str(&fs::read_to_string(events).unwrap()).unwrap();
    let mut all = events["traceEvents"].as_array().unwrap().iter();
    assert!(all.any(|event| event["cat"] == "process" && event["name"] == "50-status"));

    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/check_pages.py");
    let mut check = Command::new("python3");
    let output = check.args([script, "--traced", page]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{errors}");
}
