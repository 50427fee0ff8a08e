//! Each resource found or ruled out with its number: processors, memory, files, disks, network.

use std::time::Duration;

use crate::causes::{Resource, SERVER};
use crate::diagnosis::{Finding, Status};
use crate::evidence::{Evidence, Fact, Tier};
use crate::ledger::Ledger;
use crate::reckoning::Sample;
use crate::words;

/// What was decided of a resource.
#[derive(Debug, Clone)]
pub struct ResourceVerdict {
    /// Which.
    pub resource: Resource,
    /// What.
    pub status: Status,
    /// The causes that were found, and their number.
    pub words: String,
}

/// Per cent of the time that something waits.
const BUSY: f64 = 10.0;

/// What a reader is told of a resource where no cause uses it up.
struct Gauge {
    resource: Resource,
    /// Facts, how they are called, and their unit.
    facts: &'static [(&'static str, &'static str, &'static str)],
}

const GAUGES: [Gauge; 5] = [
    Gauge {
        resource: Resource::Cpu,
        facts: &[
            ("host.pressure.cpu", "pressure", " %"),
            ("host.steal", "stolen", " %"),
            ("host.cpu_quota", "quota", " % of a core"),
            ("host.throttled", "throttled", " times"),
            ("host.load", "load", ""),
        ],
    },
    Gauge {
        resource: Resource::Memory,
        facts: &[("host.pressure.memory", "pressure", " %")],
    },
    Gauge {
        resource: Resource::Files,
        facts: &[
            ("host.home.filesystem", "home on", ""),
            ("host.home.time", "home read in", ""),
            ("host.authorized_keys.octets", "authorized_keys", " octets"),
            ("local.known_hosts.octets", "known_hosts", " octets"),
            ("local.known_hosts.time", "searched in", ""),
        ],
    },
    Gauge {
        resource: Resource::BlockIo,
        facts: &[("host.pressure.io", "pressure", " %")],
    },
    Gauge {
        resource: Resource::Network,
        facts: &[],
    },
];

impl Resource {
    /// Its name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Resource::Cpu => "cpu",
            Resource::Memory => "memory",
            Resource::Files => "files",
            Resource::BlockIo => "block-io",
            Resource::Network => "network",
            Resource::Programs => "programs",
        }
    }

    /// What a reader is told it is.
    pub const fn title(self) -> &'static str {
        match self {
            Resource::Cpu => "CPU",
            Resource::Memory => "memory",
            Resource::Files => "files",
            Resource::BlockIo => "block I/O",
            Resource::Network => "network",
            Resource::Programs => "other programs",
        }
    }
}

/// A verdict on each, in a fixed order.
pub(crate) fn judge(
    evidence: &Evidence,
    ledgers: &[Ledger],
    findings: &[Finding],
    round_trip: Option<Sample>,
) -> Vec<ResourceVerdict> {
    let judged = GAUGES.iter().map(|gauge| {
        let uses = |finding: &&Finding| finding.cause.resource == gauge.resource;
        let found: Vec<String> = findings.iter().filter(uses).map(told).collect();
        let numbers = match gauge.resource {
            Resource::Network => network(ledgers.first(), round_trip),
            _ => numbers(evidence, gauge),
        };
        if !found.is_empty() {
            let words = [found.join(", "), numbers.join(", ")].join(" · ");
            return verdict(gauge.resource, Status::Found, words.trim_end_matches(" · "));
        }
        if !numbers.is_empty() {
            let mut words = numbers.join(", ");
            if is_busy(evidence, gauge) {
                words.push_str(": but the login is not slowed down by it");
            }
            return verdict(gauge.resource, Status::RuledOut(words.clone()), &words);
        }
        let (status, words) = by_phases(evidence, ledgers.first());
        verdict(gauge.resource, status, &words)
    });
    judged.collect()
}

/// Whether others wait for it so much that a reader would wonder.
fn is_busy(evidence: &Evidence, gauge: &Gauge) -> bool {
    let shares = gauge.facts.iter().filter(|(_, _, unit)| *unit == " %");
    let mut shares = shares.filter_map(|(name, _, _)| evidence.facts.number(name));
    shares.any(|share| share >= BUSY)
}

fn verdict(resource: Resource, status: Status, words: &str) -> ResourceVerdict {
    ResourceVerdict {
        resource,
        status,
        words: words.to_owned(),
    }
}

fn told(finding: &Finding) -> String {
    format!(
        "{} {} ({})",
        finding.cause.id,
        words::time(finding.cost),
        finding.certainty.name()
    )
}

fn numbers(evidence: &Evidence, gauge: &Gauge) -> Vec<String> {
    let facts = gauge.facts.iter().filter_map(|(name, title, unit)| {
        let (_, fact) = evidence.facts.iter().find(|(known, _)| known == name)?;
        Some(match fact {
            Fact::Number(number) => format!("{title} {}{unit}", words::number(*number)),
            Fact::Time(time) => format!("{title} {}", words::time(*time)),
            Fact::Text(text) => format!("{title} {}", words::foreign(text)),
            Fact::Yes(yes) => format!("{title} {yes}"),
        })
    });
    facts.collect()
}

/// The network's own share of the login.
fn network(ledger: Option<&Ledger>, round_trip: Option<Sample>) -> Vec<String> {
    let Some((ledger, round_trip)) = ledger.zip(round_trip) else {
        return Vec::new();
    };
    let trips: u32 = ledger.rows.iter().map(|row| row.round_trips).sum();
    let time: Duration = ledger.rows.iter().map(|row| row.network).sum();
    vec![format!(
        "{trips} round trips of {} (spread {}) are {} of {}",
        words::time(round_trip.median),
        words::time(round_trip.spread),
        words::time(time),
        words::time(ledger.total()),
    )]
}

/// Where no number of the host is known, the server's phases may still rule it out.
fn by_phases(evidence: &Evidence, ledger: Option<&Ledger>) -> (Status, String) {
    let rows = ledger.map(|ledger| ledger.rows.iter().filter(|row| SERVER.contains(&row.phase)));
    let rows: Vec<_> = rows.into_iter().flatten().collect();
    if !rows.is_empty() && rows.iter().all(|row| !row.is_lost()) {
        let taken: Duration = rows.iter().map(|row| row.sample.median).sum();
        let words = format!(
            "the server's phases take {} in all, and none of them more than expected",
            words::time(taken)
        );
        return (Status::RuledOut(words.clone()), words);
    }
    let words = match evidence.tier {
        Tier::Client => "nothing was looked at on the host (client tier)",
        Tier::NoRoot | Tier::Root => "the host does not tell",
    };
    (Status::NotLookedAt(words.to_owned()), words.to_owned())
}
