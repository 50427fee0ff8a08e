//! Many hosts at once: how long each phase takes over all of them, who is far off, and which causes they have in common.

mod report;

pub use report::{html, json, text};

use std::cmp::Reverse;
use std::time::Duration;

use crate::causes::Cause;
use crate::diagnosis::{Certainty, Diagnosis};
use crate::evidence::{Client, Phase};
use crate::reckoning::Sample;
use crate::timeline::{Part, Stage, Timeline};

/// Of fewer hosts none is far off the others.
const LEAST_HOSTS: usize = 5;

/// What came of all hosts.
#[derive(Debug, Clone)]
pub struct Fleet {
    /// The hosts that were measured, the slowest first.
    pub hosts: Vec<Measured>,
    /// Each phase over the hosts.
    pub phases: Vec<(Phase, Percentiles)>,
    /// The whole login over the hosts.
    pub total: Option<Percentiles>,
    /// Causes and the hosts that have them, the one that costs most in all first.
    pub groups: Vec<Group>,
    /// Phases of hosts that are far off the others, the furthest first.
    pub outliers: Vec<Outlier>,
    /// Hosts of which no login has succeeded, and why: foreign text.
    pub unmeasured: Vec<(String, String)>,
}

/// A host's login.
#[derive(Debug, Clone)]
pub struct Measured {
    /// What the user calls it.
    pub host: String,
    /// Whose login it is.
    pub by: Client,
    /// How long it takes.
    pub total: Duration,
    /// Its phases, and what of each is the network's.
    pub phases: Vec<(Phase, Duration, Duration)>,
    /// The names of its causes.
    pub causes: Vec<&'static str>,
}

/// How a time is spread over hosts, by nearest rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Percentiles {
    /// How many hosts.
    pub count: usize,
    /// Half of them take no longer.
    pub p50: Duration,
    /// Nine in ten take no longer.
    pub p90: Duration,
    /// 99 in a hundred take no longer.
    pub p99: Duration,
    /// None takes longer.
    pub max: Duration,
    /// The one that takes longest.
    pub slowest: String,
}

/// Hosts with one cause.
#[derive(Debug, Clone)]
pub struct Group {
    /// Which cause.
    pub cause: &'static Cause,
    /// How well it is known where it is known best.
    pub certainty: Certainty,
    /// The hosts and what it costs a login there, the most first.
    pub hosts: Vec<(String, Duration)>,
    /// What it costs a login to each of them, together.
    pub cost: Duration,
}

/// A phase that takes much longer on one host than on others.
#[derive(Debug, Clone)]
pub struct Outlier {
    /// Which host.
    pub host: String,
    /// Which phase.
    pub phase: Phase,
    /// How long it takes there, without the network.
    pub time: Duration,
    /// How long it takes in the middle, without the network.
    pub usual: Duration,
    /// The names of causes that explain it there.
    pub causes: Vec<&'static str>,
}

impl Fleet {
    /// What these hosts come to.
    pub fn of(diagnoses: &[Diagnosis]) -> Fleet {
        let mut hosts: Vec<Measured> = diagnoses.iter().filter_map(measured).collect();
        hosts.sort_by(|one, other| other.total.cmp(&one.total).then(one.host.cmp(&other.host)));
        let phases = Phase::ALL.into_iter().filter_map(|phase| {
            let times = hosts
                .iter()
                .filter_map(|host| Some((host.time(phase)?.0, host.host.as_str())));
            Some((phase, percentiles(times.collect())?))
        });
        let phases = phases.collect();
        let unmeasured = diagnoses
            .iter()
            .filter(|diagnosis| measured(diagnosis).is_none());
        Fleet {
            phases,
            total: percentiles(
                hosts
                    .iter()
                    .map(|host| (host.total, host.host.as_str()))
                    .collect(),
            ),
            groups: groups(diagnoses),
            outliers: outliers(&hosts, diagnoses),
            unmeasured: unmeasured
                .map(|diagnosis| (diagnosis.host.clone(), diagnosis.failures.join("; ")))
                .collect(),
            hosts,
        }
    }
}

impl Measured {
    /// A phase's time, and that without the network.
    fn time(&self, phase: Phase) -> Option<(Duration, Duration)> {
        let (_, time, network) = self.phases.iter().find(|(known, _, _)| *known == phase)?;
        Some((*time, time.saturating_sub(*network)))
    }
}

fn measured(diagnosis: &Diagnosis) -> Option<Measured> {
    let timeline: &Timeline = diagnosis
        .timelines
        .first()
        .filter(|timeline| timeline.logins > 0)?;
    let phase = |stage: &Stage| {
        let network = stage
            .shares
            .iter()
            .filter(|share| matches!(share.of, Part::Network(_)));
        (
            stage.phase,
            stage.sample.median,
            network.map(|share| share.time).sum::<Duration>(),
        )
    };
    Some(Measured {
        host: diagnosis.host.clone(),
        by: timeline.by,
        total: timeline.total,
        phases: timeline.stages.iter().map(phase).collect(),
        causes: diagnosis
            .findings
            .iter()
            .map(|finding| finding.cause.id)
            .collect(),
    })
}

fn percentiles(mut times: Vec<(Duration, &str)>) -> Option<Percentiles> {
    times.sort_unstable();
    let (max, slowest) = *times.last()?;
    // The nearest rank: the least value that so many per cent do not exceed.
    let rank = |per_cent: usize| times[(times.len() * per_cent).div_ceil(100).max(1) - 1].0;
    Some(Percentiles {
        count: times.len(),
        p50: rank(50),
        p90: rank(90),
        p99: rank(99),
        max,
        slowest: slowest.to_owned(),
    })
}

fn groups(diagnoses: &[Diagnosis]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for diagnosis in diagnoses {
        for finding in diagnosis.all_findings() {
            let host = (diagnosis.host.clone(), finding.cost);
            match groups
                .iter_mut()
                .find(|group| group.cause.id == finding.cause.id)
            {
                Some(group) => {
                    group.certainty = group.certainty.min(finding.certainty);
                    group.cost += finding.cost;
                    group.hosts.push(host);
                }
                None => groups.push(Group {
                    cause: finding.cause,
                    certainty: finding.certainty,
                    cost: finding.cost,
                    hosts: vec![host],
                }),
            }
        }
    }
    for group in &mut groups {
        group
            .hosts
            .sort_by(|one, other| other.1.cmp(&one.1).then(one.0.cmp(&other.0)));
    }
    groups.sort_by(|one, other| {
        other
            .cost
            .cmp(&one.cost)
            .then(one.cause.id.cmp(other.cause.id))
    });
    groups
}

/// What is far off is so without the network: a distant host is none.
fn outliers(hosts: &[Measured], diagnoses: &[Diagnosis]) -> Vec<Outlier> {
    let mut outliers = Vec::new();
    for phase in Phase::ALL {
        let times: Vec<(&Measured, Duration)> = hosts
            .iter()
            .filter_map(|host| Some((host, host.time(phase)?.1)))
            .collect();
        let Some(sample) = Sample::of(times.iter().map(|(_, time)| *time)) else {
            continue;
        };
        if times.len() < LEAST_HOSTS {
            continue;
        }
        for (host, time) in times {
            if time >= sample.median + sample.floor() {
                outliers.push(Outlier {
                    host: host.host.clone(),
                    phase,
                    time,
                    usual: sample.median,
                    causes: causes(diagnoses, &host.host, phase),
                });
            }
        }
    }
    outliers.sort_by_key(|outlier| Reverse(outlier.time - outlier.usual));
    outliers
}

fn causes(diagnoses: &[Diagnosis], host: &str, phase: Phase) -> Vec<&'static str> {
    let of_host = diagnoses.iter().filter(|diagnosis| diagnosis.host == host);
    let findings = of_host.flat_map(|diagnosis| &diagnosis.findings);
    findings
        .filter(|finding| finding.shares.iter().any(|(known, _)| *known == phase))
        .map(|finding| finding.cause.id)
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::fixtures::{clean, clean_no_root, ms, slow};

    /// Twenty hosts: some near, some far, three with slow scripts, one with slow names.
    pub(super) fn fleet() -> Vec<Diagnosis> {
        let host = |number: u32| {
            let mut evidence = clean_no_root(if number.is_multiple_of(2) { 0.1 } else { 80.0 });
            evidence.host = format!("web{number}");
            if number < 3 {
                let scripts = 500.0 + 100.0 * f64::from(number);
                slow(&mut evidence, Phase::ChannelOpen, scripts);
                evidence.facts.insert("host.motd_scripts.time", ms(scripts));
            }
            if number == 7 {
                slow(&mut evidence, Phase::FirstRequest, 10_000.0);
                evidence.facts.insert("host.sshd_config.UseDNS", "yes");
                evidence
                    .facts
                    .insert("host.getent_hosts.time", ms(10_000.0));
            }
            Diagnosis::of(&evidence)
        };
        (0..20).map(host).collect()
    }

    #[test]
    fn percentiles_are_nearest_ranks() {
        let names: Vec<String> = (1..=200).map(|number| format!("h{number}")).collect();
        let times = names
            .iter()
            .zip(1..)
            .map(|(name, at)| (Duration::from_millis(at), name.as_str()));
        let found = percentiles(times.collect()).unwrap();
        let told = [found.p50, found.p90, found.p99, found.max].map(|time| time.as_millis());
        assert_eq!(told, [100, 180, 198, 200]);
        assert_eq!(found.slowest, "h200");
        assert_eq!(percentiles(Vec::new()), None);
    }

    #[test]
    fn hosts_are_grouped_by_cause() {
        let fleet = Fleet::of(&fleet());
        let groups: Vec<(&str, usize)> = fleet
            .groups
            .iter()
            .map(|group| (group.cause.id, group.hosts.len()))
            .collect();
        assert_eq!(groups, [("use-dns", 1), ("pam-motd", 3)]);
        assert_eq!(fleet.groups[1].hosts[0].0, "web2");
        assert_eq!(fleet.hosts[0].host, "web7");
    }

    #[test]
    fn a_host_that_is_merely_far_away_is_no_outlier() {
        let fleet = Fleet::of(&fleet());
        let mut names: Vec<&str> = fleet
            .outliers
            .iter()
            .map(|outlier| outlier.host.as_str())
            .collect();
        names.sort_unstable();
        assert_eq!(names, ["web0", "web1", "web2", "web7"]);
        assert_eq!(
            (
                fleet.outliers[0].host.as_str(),
                fleet.outliers[0].causes.as_slice()
            ),
            ("web7", ["use-dns"].as_slice())
        );
    }

    #[test]
    fn a_host_without_a_login_is_told_with_its_reason() {
        let mut evidence = clean(0.1);
        evidence.logins.truncate(1);
        evidence.logins[0].spans.clear();
        evidence.logins[0].failure = Some("refused".to_owned());
        let fleet = Fleet::of(&[Diagnosis::of(&evidence)]);
        assert_eq!(
            fleet.unmeasured,
            [("web1".to_owned(), "refused".to_owned())]
        );
        assert!(fleet.total.is_none() && fleet.phases.is_empty());
    }
}
