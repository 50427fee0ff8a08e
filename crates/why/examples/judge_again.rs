//! Judges what was measured once more, by the rules as they are now: a rule that was changed is tried on old measurements.
//!
//! Reads lines of JSON with a member `report`, an object of `sshoal why --json` (docs/json.md), and writes them with what the rules say of
//! its `measured` and `facts` today. `bench/score_why.py --keep` writes such lines, and `--again` scores them.
//!
//! ```text
//! judge_again <reports.jsonl >judged.jsonl
//! judge_again client <reports.jsonl >judged.jsonl
//! ```
//!
//! With `client` it is judged without what was found out on the host: as with --no-host, of the same logins.

use std::error::Error;
use std::io::{self, BufRead, Write};
use std::time::Duration;

use serde_json::Value;
use sshoal_why::{Client, Diagnosis, Evidence, Facts, Login, Phase, Span, Tier, report};

/// The spread of a normal distribution is this many times the median distance from the median: as the rules reckon it.
const DISTANCES: f64 = 1.4826;

fn main() -> Result<(), Box<dyn Error>> {
    let from_here_alone = std::env::args().nth(1).is_some_and(|word| word == "client");
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let mut line: Value = serde_json::from_str(&line?)?;
        let before = line["report"].take();
        let mut evidence = evidence(&before).ok_or("a line without a report of `sshoal why`")?;
        if from_here_alone {
            evidence.tier = Tier::Client;
            evidence.facts =
                facts(&Value::Object(of_this_side(&before["facts"]))).unwrap_or_default();
            line["row"]["tier"] = Tier::Client.name().into();
        }
        let mut judged = report::json(&Diagnosis::of(&evidence));
        for member in ["facts", "measured"] {
            judged[member] = before[member].clone();
        }
        line["report"] = judged;
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// What was measured, as far as a report tells it: of the round-trip times their middle and their spread.
fn evidence(report: &Value) -> Option<Evidence> {
    let text = |name: &str| report[name].as_str().map(str::to_owned);
    let tiers = [Tier::Client, Tier::NoRoot, Tier::Root];
    let notes = report["tier_notes"].as_array()?.iter();
    Some(Evidence {
        host: text("host")?,
        address: text("address"),
        identification: text("identification"),
        tier: tiers
            .into_iter()
            .find(|tier| Some(tier.name()) == report["tier"].as_str())?,
        tier_notes: notes
            .filter_map(|note| note.as_str().map(str::to_owned))
            .collect(),
        round_trips: round_trips(&report["round_trip"]),
        logins: report["measured"]
            .as_array()?
            .iter()
            .map(login)
            .collect::<Option<_>>()?,
        facts: facts(&report["facts"])?,
    })
}

fn round_trips(sample: &Value) -> Vec<Duration> {
    let Some((median, spread)) = sample["median_us"]
        .as_f64()
        .zip(sample["spread_us"].as_f64())
    else {
        return Vec::new();
    };
    let distance = spread / DISTANCES;
    let times = [median - distance, median, median + distance];
    times.map(microseconds).to_vec()
}

fn login(login: &Value) -> Option<Login> {
    let clients = [Client::Sshoal, Client::Ssh];
    Some(Login {
        by: clients
            .into_iter()
            .find(|by| Some(by.name()) == login["by"].as_str())?,
        spans: login["phases"]
            .as_array()?
            .iter()
            .map(span)
            .collect::<Option<_>>()?,
        failure: login["failure"].as_str().map(str::to_owned),
    })
}

fn span(span: &Value) -> Option<Span> {
    let name = span["phase"].as_str()?;
    Some(Span {
        phase: Phase::ALL.into_iter().find(|phase| phase.name() == name)?,
        start: microseconds(span["start_us"].as_f64()?),
        duration: microseconds(span["duration_us"].as_f64()?),
        detail: span["detail"].as_str()?.to_owned(),
    })
}

fn of_this_side(members: &Value) -> serde_json::Map<String, Value> {
    let members = members.as_object().into_iter().flatten();
    let known = members.filter(|(name, _)| !name.starts_with("host."));
    known
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// What ends in `.time` is in microseconds.
fn facts(members: &Value) -> Option<Facts> {
    let mut facts = Facts::default();
    for (name, value) in members.as_object()? {
        match value {
            Value::Bool(yes) => facts.insert(name, *yes),
            Value::String(text) => facts.insert(name, text.as_str()),
            Value::Number(number) if name.ends_with(".time") => {
                facts.insert(name, microseconds(number.as_f64()?));
            }
            Value::Number(number) => facts.insert(name, number.as_f64()?),
            _ => return None,
        }
    }
    Some(facts)
}

fn microseconds(us: f64) -> Duration {
    Duration::from_secs_f64(us.max(0.0) / 1e6)
}
