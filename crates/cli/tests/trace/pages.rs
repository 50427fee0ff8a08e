//! How a login that was followed is shown.

use std::fs;
use std::process::Command;

use serde_json::Value;
use sshoal_testbed::slow::Injection;

use crate::logins::Host;
use crate::may_trace;
use crate::support::program::Running;

#[test]
fn the_report_the_page_and_the_events_show_the_processes() {
    if !may_trace() {
        return;
    }
    let Some(host) = Host::start(&Injection::several("motd:300").unwrap()) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let [page, events] = ["page.html", "events.json"].map(|name| folder.path().join(name));
    let (page, events) = (page.to_str().unwrap(), events.to_str().unwrap());
    let words = ["--trace", "--repeat", "1", "--no-ssh"];
    let mut command = host.why(&words);
    command.args(["--html", page, "--chrome-trace", events]);
    let text = Running::start(&mut command).wait().expect(0).stdout();
    let is_of_script = |line: &&str| line.contains("50-status") && line.contains('█');
    let line = text.lines().find(is_of_script);
    assert!(line.is_some_and(|line| line.contains(" ms")), "{text}");
    assert!(text.contains("Trace (by tracefs)"), "{text}");

    let events: Value = serde_json::from_str(&fs::read_to_string(events).unwrap()).unwrap();
    let of = |category: &str| {
        let all = events["traceEvents"].as_array().unwrap().iter();
        let of_it = all.filter(|event| event["cat"] == category);
        of_it.collect::<Vec<_>>()
    };
    assert!(of("process").iter().any(|it| it["name"] == "50-status"));
    assert!(of("path").iter().any(|it| it["name"] == "timer"));
    let opens = |event: &&Value| {
        let name = event["name"].as_str().unwrap();
        name.ends_with("pam_sm_open_session")
    };
    assert!(of("call").into_iter().any(|event| opens(&event)));

    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/check_pages.py");
    let output = Command::new("python3")
        .args([script, "--traced", page])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{errors}");
}
