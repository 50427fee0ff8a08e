//! Judges what was measured once more, by the rules as they are now: a rule that was changed is tried on old measurements, and one
//! measurement is judged by each tier.
//!
//! Reads lines of JSON with a member `report`, an object of `sshoal why --json` (docs/json.md), and writes them with what the rules say of
//! its `measured` and `facts` today, and with `script`, what `--fix` would print. `bench/score_why.py` writes such lines, and scores
//! them.
//!
//! ```text
//! judge_again <reports.jsonl >judged.jsonl
//! judge_again client no-root root <reports.jsonl >judged.jsonl
//! ```
//!
//! With names of tiers each report is judged once for each: without what the trace tells as `no-root`, and without what was found out
//! on the host at all as `client`; of the same logins.

use std::error::Error;
use std::io::{self, BufRead, Write};
use std::time::Duration;

use serde_json::Value;
use sshoal_why::{
    Client, Diagnosis, Evidence, Facts, Login, Phase, Span, Tier, fix_script, report,
};

/// The spread of a normal distribution is this many times the median distance from the median: as the rules reckon it.
const DISTANCES: f64 = 1.4826;

const TIERS: [Tier; 3] = [Tier::Client, Tier::NoRoot, Tier::Root];

fn main() -> Result<(), Box<dyn Error>> {
    let tiers = std::env::args().skip(1).map(|word| tier(&word));
    let tiers: Vec<Tier> = tiers
        .collect::<Option<_>>()
        .ok_or("usage: judge_again [client] [no-root] [root]")?;
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let mut line: Value = serde_json::from_str(&line?)?;
        let before = line["report"].take();
        let evidence = evidence(&before).ok_or("a line without a report of `sshoal why`")?;
        if tiers.is_empty() {
            judge(&evidence, &before, &mut line);
            writeln!(out, "{line}")?;
        }
        for tier in &tiers {
            judge(&known_to(*tier, &evidence), &before, &mut line);
            line["row"]["tier"] = tier.name().into();
            writeln!(out, "{line}")?;
        }
    }
    Ok(())
}

fn tier(name: &str) -> Option<Tier> {
    TIERS.into_iter().find(|tier| tier.name() == name)
}

fn judge(evidence: &Evidence, before: &Value, line: &mut Value) {
    let diagnosis = Diagnosis::of(evidence);
    let mut judged = report::json(&diagnosis);
    for member in ["facts", "measured"] {
        judged[member] = before[member].clone();
    }
    line["report"] = judged;
    line["script"] = fix_script(&diagnosis).into();
}

/// What is known with these rights.
fn known_to(tier: Tier, evidence: &Evidence) -> Evidence {
    let is_known = |name: &str| match tier {
        Tier::Client => !name.starts_with("host.") && !name.starts_with("trace."),
        Tier::NoRoot => !name.starts_with("trace."),
        Tier::Root => true,
    };
    let mut facts = Facts::default();
    for (name, fact) in evidence.facts.iter().filter(|(name, _)| is_known(name)) {
        facts.insert(name, fact.clone());
    }
    Evidence {
        tier: evidence.tier.min(tier),
        facts,
        ..evidence.clone()
    }
}

/// What was measured, as far as a report tells it: of the round-trip times their middle and their spread.
fn evidence(report: &Value) -> Option<Evidence> {
    let text = |name: &str| report[name].as_str().map(str::to_owned);
    let notes = report["tier_notes"].as_array()?.iter();
    Some(Evidence {
        host: text("host")?,
        address: text("address"),
        identification: text("identification"),
        tier: tier(report["tier"].as_str()?)?,
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
