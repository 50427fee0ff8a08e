//! One line for one host that has ended, as `--verbose` shows it.

use std::time::Duration;

use sshoal_fleet::{HostResult, Outcome, PhaseTimes};

use crate::sanitise::visible;

/// `web1: ok in 213.4 ms: connect 20.1, login 180.0, session 5.2, command 8.1`, with its newline.
pub(crate) fn result_line(label: &str, result: &HostResult) -> String {
    let ending = match &result.outcome {
        Outcome::Exit(0) => "ok".to_owned(),
        Outcome::Exit(status) => format!("exit {status}"),
        Outcome::Signal { name, .. } => format!("signal {}", visible(name)),
        Outcome::Failed { failure, .. } => {
            format!("{}: {}", failure.kind, visible(&failure.detail))
        }
        Outcome::NotStarted => "not started".to_owned(),
    };
    format!("{}: {ending}{}\n", visible(label), times(&result.times))
}

fn times(times: &PhaseTimes) -> String {
    let Some(total) = times.total else {
        return String::new();
    };
    let phases = [
        ("lookup", times.lookup),
        ("connect", times.connect),
        ("login", times.login),
        ("session", times.session),
        ("command", times.command),
        (
            "waited",
            Some(times.waited).filter(|waited| !waited.is_zero()),
        ),
    ];
    let entered = phases
        .iter()
        .filter_map(|(phase, time)| time.map(|time| format!("{phase} {}", millis(time))));
    let entered: Vec<String> = entered.collect();
    let colon = if entered.is_empty() { "" } else { ": " };
    let warm = if times.is_warm() { ", warm" } else { "" };
    format!(
        " in {} ms{warm}{colon}{}",
        millis(total),
        entered.join(", ")
    )
}

fn millis(time: Duration) -> String {
    format!("{:.1}", time.as_secs_f64() * 1000.0)
}
