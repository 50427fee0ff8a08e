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

/// What a traced login spends on a resource before that is worth a word, and which part of the whole that must be.
const MUCH: Duration = Duration::from_millis(50);
const MUCH_OF: u32 = 4;
/// Pages that must have been swapped in for memory to be to blame.
const SWAPPED: f64 = 64.0;
/// Per cent of the time that something waits.
const BUSY: f64 = 10.0;

/// What a reader is told of a resource where no cause uses it up.
struct Gauge {
    resource: Resource,
    /// How long a login that was traced waited for it, or used it.
    traced: &'static [&'static str],
    /// What there must be at least for that time to be this resource's.
    only_with: Option<(&'static str, f64)>,
    /// Facts, how they are called, and their unit.
    facts: &'static [(&'static str, &'static str, &'static str)],
}

const GAUGES: [Gauge; 5] = [
    Gauge {
        resource: Resource::Cpu,
        traced: &["trace.cpu.time", "trace.contention.time"],
        only_with: None,
        facts: &[
            ("trace.cpu.time", "worked", ""),
            ("trace.contention.time", "waited for a processor", ""),
            ("host.pressure.cpu", "pressure", " %"),
            ("host.steal", "stolen", " %"),
            ("host.cpu_quota", "quota", " % of a core"),
            ("host.throttled", "throttled", " times"),
            ("host.load", "load", ""),
        ],
    },
    Gauge {
        resource: Resource::Memory,
        // What was swapped out is waited for as a disk is.
        traced: &["trace.storage.time"],
        only_with: Some(("trace.swapped_in", SWAPPED)),
        facts: &[
            ("host.pressure.memory", "pressure", " %"),
            ("trace.major_faults", "read from disks", " pages"),
            ("trace.swapped_in", "swapped in", " pages"),
        ],
    },
    Gauge {
        resource: Resource::Files,
        traced: &[],
        only_with: None,
        facts: &[
            ("trace.opened", "opened", " files"),
            ("trace.opened.longest", "that which took the longest", ""),
            ("trace.opened.most", "most often", ""),
            ("host.home.filesystem", "home on", ""),
            ("host.home.time", "home read in", ""),
            ("host.authorized_keys.octets", "authorized_keys", " octets"),
            ("local.known_hosts.octets", "known_hosts", " octets"),
            ("local.known_hosts.time", "searched in", ""),
        ],
    },
    Gauge {
        resource: Resource::BlockIo,
        traced: &["trace.storage.time"],
        only_with: None,
        facts: &[
            ("trace.storage.time", "waited", ""),
            ("trace.block.octets", "asked for", " octets"),
            ("host.pressure.io", "pressure", " %"),
        ],
    },
    Gauge {
        resource: Resource::Network,
        traced: &["trace.network.time"],
        only_with: None,
        facts: &[
            ("trace.lookups", "resolver called", " times"),
            ("trace.lookups.time", "which took", ""),
            ("trace.lookups.of", "asked for", ""),
            ("trace.network.time", "the host waited", ""),
            ("trace.connections", "connections made", ""),
            ("trace.connections.to", "to", ""),
        ],
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
            Resource::Network => {
                let mut words = network(ledgers.first(), round_trip);
                words.extend(numbers(evidence, gauge));
                words
            }
            _ => numbers(evidence, gauge),
        };
        if !found.is_empty() {
            let words = [found.join(", "), numbers.join(", ")].join(" · ");
            return verdict(gauge.resource, Status::Found, words.trim_end_matches(" · "));
        }
        if let Some(words) = by_trace(evidence, gauge) {
            let words = [vec![words], numbers].concat().join(", ");
            return verdict(gauge.resource, Status::Found, &words);
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

/// Whether a traced login spent much of its time on it, whatever the cause.
fn by_trace(evidence: &Evidence, gauge: &Gauge) -> Option<String> {
    let has = |(fact, least)| evidence.facts.number(fact).is_some_and(|it| it >= least);
    if !gauge.only_with.is_none_or(has) {
        return None;
    }
    let times = gauge
        .traced
        .iter()
        .filter_map(|fact| evidence.facts.time(fact));
    let spent: Duration = times.sum();
    let whole = evidence.facts.time("trace.wall.time")?;
    let is_much = spent >= MUCH && spent >= whole / MUCH_OF;
    is_much.then(|| {
        format!(
            "{} of the {} of a traced login",
            words::time(spent),
            words::time(whole)
        )
    })
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
