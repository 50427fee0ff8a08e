//! A diagnosis as JSON. The schema is docs/json.md's, section `why`.

use std::time::Duration;

use serde_json::{Value, json};

use crate::diagnosis::{Diagnosis, Finding, Status};
use crate::fix::Place;
use crate::reckoning::Sample;
use crate::timeline::{Part, Timeline};

/// The schema's version: it grows when a member goes or changes its meaning.
pub const SCHEMA_VERSION: u32 = 1;

/// The object of one host. Foreign text in it is as it came: whoever prints it on a terminal escapes it.
pub fn json(diagnosis: &Diagnosis) -> Value {
    let findings = |findings: &[Finding]| findings.iter().map(finding).collect::<Vec<_>>();
    json!({
        "type": "why",
        "version": SCHEMA_VERSION,
        "host": diagnosis.host,
        "address": diagnosis.address,
        "identification": diagnosis.identification,
        "tier": diagnosis.tier.name(),
        "tier_notes": diagnosis.tier_notes,
        "round_trip": diagnosis.round_trip.map(sample),
        "padding_us": diagnosis.pad.map(microseconds),
        "failures": diagnosis.failures,
        "findings": findings(&diagnosis.findings),
        "ssh_findings": findings(&diagnosis.ssh_findings),
        "logins": diagnosis.timelines.iter().map(timeline).collect::<Vec<_>>(),
        "causes": diagnosis.verdicts.iter().map(|verdict| json!({
            "cause": verdict.cause.id,
            "title": verdict.cause.title,
            "phases": verdict.cause.phases.iter().map(|phase| phase.name()).collect::<Vec<_>>(),
            "status": status(&verdict.status),
            "reason": reason(&verdict.status),
            "source": verdict.cause.source,
        })).collect::<Vec<_>>(),
        "resources": diagnosis.resources.iter().map(|verdict| json!({
            "resource": verdict.resource.name(),
            "status": status(&verdict.status),
            "reason": verdict.words,
        })).collect::<Vec<_>>(),
    })
}

/// A time in whole microseconds.
pub(crate) fn microseconds(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn sample(sample: Sample) -> Value {
    json!({
        "median_us": microseconds(sample.median),
        "spread_us": microseconds(sample.spread),
        "count": sample.count,
    })
}

fn finding(finding: &Finding) -> Value {
    let fix = &finding.cause.fix;
    json!({
        "cause": finding.cause.id,
        "title": finding.cause.title,
        "certainty": finding.certainty.name(),
        "by": finding.by.name(),
        "resource": finding.cause.resource.name(),
        "cost_us": microseconds(finding.cost),
        "ssh_cost_us": finding.ssh_cost.map(microseconds),
        "saving_us": microseconds(finding.saving),
        "phases": finding.shares.iter().map(|(phase, time)| json!({
            "phase": phase.name(),
            "cost_us": microseconds(*time),
        })).collect::<Vec<_>>(),
        "evidence": finding.evidence,
        "alternatives": finding.alternatives,
        "fix": {
            "place": match fix.place {
                Place::Here => "here",
                Place::Host => "host",
            },
            "file": fix.file,
            "line": fix.line,
            "undo": fix.undo,
        },
        "source": finding.cause.source,
    })
}

fn timeline(timeline: &Timeline) -> Value {
    let stage = |stage: &crate::timeline::Stage| {
        json!({
            "phase": stage.phase.name(),
            "title": stage.phase.title(),
            "start_us": microseconds(stage.start),
            "duration": sample(stage.sample),
            "requests": stage.requests,
            "details": stage.details,
            "shares": stage.shares.iter().map(|share| json!({
                "of": share.of.name(),
                "round_trips": match share.of {
                    Part::Network(trips) => Some(trips),
                    _ => None,
                },
                "us": microseconds(share.time),
            })).collect::<Vec<_>>(),
        })
    };
    json!({
        "by": timeline.by.name(),
        "logins": timeline.logins,
        "total_us": microseconds(timeline.total),
        "unexplained_us": microseconds(timeline.unexplained),
        "between_us": microseconds(timeline.between),
        "phases": timeline.stages.iter().map(stage).collect::<Vec<_>>(),
    })
}

fn status(status: &Status) -> &'static str {
    match status {
        Status::Found => "found",
        Status::RuledOut(_) => "ruled-out",
        Status::NotLookedAt(_) => "not-looked-at",
    }
}

fn reason(status: &Status) -> Option<&str> {
    match status {
        Status::Found => None,
        Status::RuledOut(words) | Status::NotLookedAt(words) => Some(words),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::evidence::Phase;
    use crate::fixtures::{clean_no_root, slow};

    #[test]
    fn what_was_found_and_what_was_not_stands_in_the_object() {
        let mut evidence = clean_no_root(0.05);
        slow(&mut evidence, Phase::SignedRequest, 200.0);
        let value = json(&Diagnosis::of(&evidence));
        assert_eq!(value["type"], "why");
        assert_eq!(value["version"], SCHEMA_VERSION);
        let found = &value["findings"][0];
        assert_eq!(found["cause"], "pam-account");
        assert_eq!(found["certainty"], "suspected");
        assert_eq!(found["fix"]["place"], "host");
        assert_eq!(found["phases"][0]["phase"], "signed-request");
        let statuses: Vec<&str> = value["causes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|cause| cause["status"].as_str().unwrap())
            .collect();
        assert!(statuses.contains(&"ruled-out") && statuses.contains(&"found"));
        assert_eq!(value["resources"].as_array().unwrap().len(), 5);
        let ours = &value["logins"][0];
        assert_eq!(ours["by"], "sshoal");
        assert_eq!(ours["phases"].as_array().unwrap().len(), Phase::ALL.len());
    }

    #[test]
    fn every_member_is_documented() {
        let page = include_str!("../../../../docs/json.md");
        let section = page.split("\n## `why`").nth(1).unwrap();
        let section = section.split("\n## ").next().unwrap();
        let mut evidence = clean_no_root(0.05);
        slow(&mut evidence, Phase::SignedRequest, 200.0);
        let mut missing = Vec::new();
        names(&json(&Diagnosis::of(&evidence)), &mut |name| {
            if !section.contains(&format!("`{name}`")) {
                missing.push(name.to_owned());
            }
        });
        assert_eq!(missing, [""; 0]);
    }

    fn names(value: &Value, told: &mut impl FnMut(&str)) {
        match value {
            Value::Object(members) => {
                for (name, value) in members {
                    told(name);
                    names(value, told);
                }
            }
            Value::Array(values) => values.iter().for_each(|value| names(value, told)),
            _ => {}
        }
    }
}
