//! What is shown: by the rules' reports, in JSON with all that was measured beside them.

use std::fs;
use std::io::{self, IsTerminal};
use std::iter;
use std::path::Path;
use std::time::Duration;

use rustix::termios::tcgetwinsize;
use serde_json::{Map, Value, json};
use sshoal_report::color_wanted;
use sshoal_trace::Traced;
use sshoal_why::report::{self, Followed, TextOptions};
use sshoal_why::{Diagnosis, Evidence, Fact, Facts, Fleet, Login, fix_script, fleet};

use super::args::WhyArgs;
use crate::manual;

/// Columns where there is no terminal.
const USUAL_WIDTH: usize = 100;

/// Refuses what cannot be shown of so many hosts.
pub(super) fn check(args: &WhyArgs, hosts: usize) -> Result<(), String> {
    let alone = [
        ("--chrome-trace", args.chrome_trace.is_some()),
        ("--fix", args.fix),
    ];
    match alone.into_iter().find(|(_, is_given)| *is_given) {
        Some((flag, _)) if hosts > 1 => Err(format!("{flag} is for one host; {hosts} were named")),
        _ => Ok(()),
    }
}

/// Shows all hosts; `failed` says which of them nobody could log in to, `traces` what is known of a login that was followed there.
/// Returns the exit status.
pub(super) fn show(
    args: &WhyArgs,
    evidence: &[Evidence],
    failed: &[bool],
    traces: &[Option<Traced>],
) -> Result<u8, Box<dyn std::error::Error>> {
    let diagnoses: Vec<Diagnosis> = evidence.iter().map(Diagnosis::of).collect();
    let fleet = (evidence.len() > 1).then(|| summary(evidence, failed));
    if let Some(path) = &args.html {
        let page = match (&fleet, diagnoses.as_slice()) {
            (Some(fleet), _) => fleet::html(fleet),
            (None, [only]) => report::html(only, followed(traces.first()).as_ref()),
            (None, _) => String::new(),
        };
        write(path, &page)?;
    }
    if let (Some(path), [only]) = (&args.chrome_trace, diagnoses.as_slice()) {
        let mut trace = report::chrome_trace(only);
        let events = trace["traceEvents"].as_array_mut();
        if let (Some(events), Some(Some(traced))) = (events, traces.first()) {
            // Behind the clients.
            let number = only.timelines.len() + 1;
            events.extend(sshoal_trace::events(traced, number));
        }
        write(path, &trace.to_string())?;
    }
    let mut shown = String::new();
    let traces = traces.iter().map(Option::as_ref);
    // Without --trace there are none.
    let traces = traces.chain(iter::repeat(None));
    for ((diagnosis, evidence), traced) in diagnoses.iter().zip(evidence).zip(traces) {
        shown.push_str(&match (args.json, args.fix) {
            (true, _) => {
                let judged = report::json(diagnosis);
                format!("{}\n", with_measured(judged, evidence, traced))
            }
            (false, true) => fix_script(diagnosis),
            (false, false) => with_trace(diagnosis, traced, options(args)),
        });
        if fleet.is_some() && !args.json {
            shown.push('\n');
        }
    }
    if let Some(fleet) = fleet {
        shown.push_str(&match args.json {
            true => format!("{}\n", fleet::json(&fleet)),
            false => fleet::text(&fleet, options(args)),
        });
    }
    Ok(manual::print(shown.as_bytes()))
}

/// The login that was followed, as the page shows it.
fn followed(traced: Option<&Option<Traced>>) -> Option<Followed> {
    let traced = traced?.as_ref()?;
    let options = sshoal_trace::TextOptions {
        width: USUAL_WIDTH,
        unicode: true,
    };
    Some(Followed {
        data: sshoal_trace::json(traced),
        text: sshoal_trace::text(traced, options),
    })
}

/// The rules' report, and the processes of the login that was followed.
fn with_trace(diagnosis: &Diagnosis, traced: Option<&Traced>, options: TextOptions) -> String {
    let mut shown = report::text(diagnosis, options);
    if let Some(traced) = traced {
        let options = sshoal_trace::TextOptions {
            width: options.width,
            unicode: options.unicode,
        };
        shown.push('\n');
        shown.push_str(&sshoal_trace::text(traced, options));
    }
    shown
}

/// What all hosts come to. One that nobody could log in to has part in it by its reason alone: what it took to fail is no
/// login's time.
fn summary(evidence: &[Evidence], failed: &[bool]) -> Fleet {
    let diagnoses = evidence.iter().zip(failed).map(|(evidence, failed)| {
        let mut evidence = evidence.clone();
        if *failed {
            let logins = evidence.logins.iter_mut();
            logins.for_each(|login| login.spans.clear());
        }
        Diagnosis::of(&evidence)
    });
    Fleet::of(&diagnoses.collect::<Vec<_>>())
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// As the terminal has it, if standard output is one.
fn options(args: &WhyArgs) -> TextOptions {
    let on_terminal = io::stdout().is_terminal();
    let columns = tcgetwinsize(io::stdout()).ok();
    let columns = columns.map(|size| usize::from(size.ws_col));
    let [no_color, term] = ["NO_COLOR", "TERM"].map(std::env::var_os);
    TextOptions {
        width: columns
            .filter(|columns| on_terminal && *columns > 0)
            .unwrap_or(USUAL_WIDTH),
        unicode: speaks_unicode(),
        colour: color_wanted(on_terminal, no_color.as_deref(), term.as_deref()),
        all_causes: args.causes,
    }
}

/// Whether the locale has UTF-8 (locale(7)): the first variable that is set decides.
fn speaks_unicode() -> bool {
    let set = ["LC_ALL", "LC_CTYPE", "LANG"].map(std::env::var_os);
    let first = set.into_iter().flatten().find(|value| !value.is_empty());
    let first = first.map(|value| value.to_string_lossy().to_lowercase());
    first.is_some_and(|name| name.contains("utf-8") || name.contains("utf8"))
}

/// The rules' object, and what was measured.
fn with_measured(mut judged: Value, evidence: &Evidence, traced: Option<&Traced>) -> Value {
    if let Value::Object(members) = &mut judged {
        members.insert("facts".to_owned(), facts(&evidence.facts));
        let logins = evidence.logins.iter().map(login);
        members.insert("measured".to_owned(), logins.collect());
        let traced = traced.map_or(Value::Null, sshoal_trace::json);
        members.insert("trace".to_owned(), traced);
    }
    judged
}

fn facts(facts: &Facts) -> Value {
    let members = facts.iter().map(|(name, fact)| {
        let value = match fact {
            Fact::Time(time) => json!(microseconds(*time)),
            Fact::Number(number) => json!(number),
            Fact::Text(text) => json!(text),
            Fact::Yes(yes) => json!(yes),
        };
        (name.to_owned(), value)
    });
    Value::Object(members.collect::<Map<_, _>>())
}

fn login(login: &Login) -> Value {
    let spans = login.spans.iter().map(|span| {
        json!({
            "phase": span.phase.name(),
            "start_us": microseconds(span.start),
            "duration_us": microseconds(span.duration),
            "detail": span.detail,
        })
    });
    json!({
        "by": login.by.name(),
        "failure": login.failure,
        "phases": spans.collect::<Vec<_>>(),
    })
}

fn microseconds(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
