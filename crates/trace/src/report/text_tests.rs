//! How a traced login looks.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::fixtures::{ASLEEP, HARD, Host, RUNNABLE, ZOMBIE, login, recording, told};
use crate::login::Wanted;
use crate::report::{events, json};

const US: u64 = 1000;

fn traced(between: impl FnOnce(&mut Host)) -> Traced {
    let ports = Some((22, 40000));
    let wanted = Wanted {
        ports,
        ..Wanted::default()
    };
    login(between).traced(wanted).unwrap()
}

fn slow(host: &mut Host) {
    host.fork(110 * US, 150, 160)
        .switch(112 * US, 150, ASLEEP, 160)
        .exec(115 * US, 160, "/etc/update-motd.d/10-s\u{1b}low")
        .switch(120 * US, 160, ASLEEP, 0)
        .wake(700 * US, 0, HARD, 160)
        .switch(703 * US, 0, RUNNABLE, 160)
        .exit(705 * US, 160)
        .wake(706 * US, 160, 0, 150)
        .switch(707 * US, 160, ZOMBIE, 150);
}

#[test]
fn each_process_has_a_bar_under_who_made_it() {
    let options = TextOptions {
        width: 100,
        unicode: false,
    };
    let shown = text(&traced(slow), options);
    let lines: Vec<&str> = shown.lines().collect();
    assert!(
        lines[0].contains("0.9 ms on the host, 3 processes"),
        "{shown}"
    );
    let place = |name: &str| lines.iter().position(|line| line.contains(name)).unwrap();
    let script = place("10-s?low 160");
    assert!(
        place("sshd 150") < script && script < place("sh 190"),
        "{shown}"
    );
    assert!(
        lines[script].contains("####") && lines[script].contains("0.6 ms"),
        "{shown}"
    );
    assert!(
        lines.iter().all(|line| line.chars().count() <= 100),
        "{shown}"
    );
    assert!(!shown.contains('\u{1b}'));
}

#[test]
fn without_tracefs_there_are_bars_and_what_is_not_told_is_said() {
    let lines = "fork 100000 100 150 sshd\nfork 200000 150 190 sshd\n\
                 exec 210000 190\t/bin/sh\tsh\nexit 900000 190\n";
    let octets = told("proc", lines);
    let traced = Traced::of(recording(&octets), Wanted::default()).unwrap();
    let options = TextOptions {
        width: 100,
        unicode: false,
    };
    let shown = text(&traced, options);
    assert!(shown.starts_with("Trace (by /proc): 0.8 ms"), "{shown}");
    assert!(shown.contains("not by tracefs: this kernel has no tracefs"));
    assert!(shown.contains("not told: who worked"), "{shown}");
    assert!(!shown.contains("working") && !shown.contains("of it path"));
    let has_bar = |line: &str| line.contains("sh 190") && line.contains("####");
    assert!(shown.lines().any(has_bar), "{shown}");
    let value = json(&traced);
    assert_eq!(value["by"], "proc");
    assert_eq!(value["lacks"][0], "time");
    assert_eq!(value["refused"][0]["by"], "tracefs");
    assert!(value["processes"][1]["path_us"].is_null());
    let bars = events(&traced, 1);
    let bars = bars.iter().filter(|event| event["cat"] == "process");
    assert_eq!(bars.count(), 2);
}

#[test]
fn foreign_names_steer_nothing_and_have_an_end() {
    assert_eq!(visible("a\u{1b}[2J\u{202e}b\u{200b}"), "a?[2J?b?");
    assert_eq!(visible(&"x".repeat(10_000)).len(), MAX_FOREIGN);
}

#[test]
fn events_have_a_line_for_the_path_without_gaps_and_one_for_each_process() {
    let traced = traced(slow);
    let events = events(&traced, 7);
    let of = |category: &str| {
        let of_it = events.iter().filter(|event| event["cat"] == category);
        of_it.collect::<Vec<_>>()
    };
    let mut until = 0;
    for event in of("path") {
        assert_eq!(event["ts"], until, "{event}");
        until += event["dur"].as_u64().unwrap();
    }
    assert_eq!(until, 900);
    let names: Vec<_> = of("process")
        .iter()
        .map(|it| it["args"]["pid"].clone())
        .collect();
    assert_eq!(names, [150, 160, 190]);
    let lines: std::collections::BTreeSet<u64> = of("process")
        .iter()
        .map(|event| event["tid"].as_u64().unwrap())
        .collect();
    assert_eq!(lines.len(), 3);
    assert!(!lines.contains(&1));
    assert!(events.iter().all(|event| event["pid"] == 7));
}

#[test]
fn only_the_longest_of_many_are_shown() {
    let options = TextOptions {
        width: 100,
        unicode: true,
    };
    let shown = text(
        &traced(|host| {
            for number in 0..300 {
                let pid = 1000 + u32::try_from(number).unwrap();
                host.fork((110 + number) * US, 150, pid)
                    .exit((111 + number) * US, pid);
            }
            slow(host);
        }),
        options,
    );
    assert!(shown.contains("10-s?low"), "{shown}");
    assert!(shown.contains("shorter ones"), "{shown}");
    assert!(shown.lines().count() < MAX_SHOWN + 20, "{shown}");
}

#[test]
fn json_has_every_process_and_all_of_the_time() {
    let traced = traced(|host| {
        host.open_by_name(110 * US, 150, "/etc/motd");
        slow(host);
    });
    let value = json(&traced);
    let processes = value["processes"].as_array().unwrap();
    assert_eq!(processes.len(), 3);
    assert_eq!(processes[1]["parent"], 150);
    let path = value["path"].as_array().unwrap();
    assert_eq!(path.last().unwrap()["end_us"], value["wall_us"]);
    assert_eq!(value["shares_us"]["timer"], 580);
    let mut missing = Vec::new();
    let page = include_str!("../../../../docs/json.md");
    let section = page.split("\n## `why`").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    names(&value, &mut |name| {
        if !section.contains(&format!("`{name}`"))
            && !name.contains("pgmajfault")
            && name != "steal"
        {
            missing.push(name.to_owned());
        }
    });
    assert_eq!(missing, [""; 0]);
}

fn names(value: &serde_json::Value, told: &mut impl FnMut(&str)) {
    match value {
        serde_json::Value::Object(members) => {
            for (name, value) in members {
                told(name);
                names(value, told);
            }
        }
        serde_json::Value::Array(values) => values.iter().for_each(|value| names(value, told)),
        _ => {}
    }
}
