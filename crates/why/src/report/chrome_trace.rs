//! A diagnosis in the Trace Event Format, which Perfetto and speedscope read: a process for each client, its phases on one
//! line and what they consist of on the next.

use serde_json::{Value, json};

use super::microseconds;
use crate::diagnosis::Diagnosis;
use crate::timeline::{Stage, Timeline};

/// The trace. Times are in microseconds from the start of each login.
pub fn chrome_trace(diagnosis: &Diagnosis) -> Value {
    let mut events = Vec::new();
    for (at, timeline) in diagnosis.timelines.iter().enumerate() {
        let process = at + 1;
        let name = format!("{} to {}", timeline.by.name(), diagnosis.host);
        events.push(named("process_name", process, 0, &name));
        events.push(named("thread_name", process, 1, "phases"));
        events.push(named("thread_name", process, 2, "where the time goes"));
        push_events(&mut events, process, timeline);
    }
    json!({
        "displayTimeUnit": "ms",
        "traceEvents": events,
    })
}

fn named(kind: &str, process: usize, thread: usize, name: &str) -> Value {
    json!({"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": name}})
}

fn push_events(events: &mut Vec<Value>, process: usize, timeline: &Timeline) {
    for stage in &timeline.stages {
        events.push(phase(process, stage));
        let mut start = stage.start;
        for share in &stage.shares {
            events.push(json!({
                "ph": "X",
                "name": share.of.name(),
                "cat": "share",
                "pid": process,
                "tid": 2,
                "ts": microseconds(start),
                "dur": microseconds(start + share.time) - microseconds(start),
                "args": {"phase": stage.phase.title()},
            }));
            start += share.time;
        }
    }
}

fn phase(process: usize, stage: &Stage) -> Value {
    let end = stage.start + stage.sample.median;
    json!({
        "ph": "X",
        "name": stage.phase.title(),
        "cat": "phase",
        "pid": process,
        "tid": 1,
        "ts": microseconds(stage.start),
        "dur": microseconds(end) - microseconds(stage.start),
        "args": {
            "details": stage.details,
            "spread_us": microseconds(stage.sample.spread),
            "logins": stage.sample.count,
        },
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::evidence::Phase;
    use crate::fixtures::{clean, slow};

    #[test]
    fn shares_lie_within_their_phases_and_follow_one_another() {
        let mut evidence = clean(1.0);
        slow(&mut evidence, Phase::ChannelOpen, 300.0);
        let trace = chrome_trace(&Diagnosis::of(&evidence));
        let events = trace["traceEvents"].as_array().unwrap();
        for (process, thread) in [(1, 1), (1, 2), (2, 1), (2, 2)] {
            let mut end = 0;
            let of_line = |event: &&Value| {
                event["ph"] == "X" && event["pid"] == process && event["tid"] == thread
            };
            let line: Vec<&Value> = events.iter().filter(of_line).collect();
            assert!(line.len() >= Phase::ALL.len() - 1);
            for event in line {
                assert_eq!(event["ts"].as_u64().unwrap(), end, "{event}");
                end += event["dur"].as_u64().unwrap();
            }
        }
    }
}
