//! All causes judged by what was measured of one host.
//!
//! ```text
//! reckoning -> a ledger for each client: what is lost in each phase
//! proven, then likely causes take their share, in the order of the table; where a login was traced, what starves it behind the others
//! suspects take the rest: whoever explains the most comes first
//! who merely shares the host's processors and disks takes what these leave
//! what nobody takes is unexplained
//! ```
//!
//! A cause that takes nothing worth a word is ruled out, with the number that does so.

use std::cmp::Reverse;
use std::time::Duration;

use crate::causes::{self, Cause, Payer};
use crate::cost::{self, Cost, Shares};
use crate::evidence::{Client, Evidence, Phase, Tier};
use crate::ledger::Ledger;
use crate::reckoning::{self, Sample};
use crate::resources::{self, ResourceVerdict};
use crate::signs::{Answer, Case, Weight};
use crate::timeline::Timeline;
use crate::words;

/// What came of all that was measured of a host.
#[derive(Debug, Clone)]
pub struct Diagnosis {
    /// What the user calls the host.
    pub host: String,
    /// Where it was reached.
    pub address: Option<String>,
    /// Its identification string: foreign text.
    pub identification: Option<String>,
    /// The tier that was measured.
    pub tier: Tier,
    /// Why it is no better one.
    pub tier_notes: Vec<String>,
    /// The file that this sshd was started with in place of /etc/ssh/sshd_config, if it was: foreign text.
    pub sshd_config: Option<String>,
    /// The round-trip time.
    pub round_trip: Option<Sample>,
    /// sshd's padding that was subtracted, of our logins or else of ssh's.
    pub pad: Option<Duration>,
    /// Our login, then that of ssh, those that were measured.
    pub timelines: Vec<Timeline>,
    /// What makes the login slow, the most expensive first, and behind it what others who use the host do. Where there is no login of
    /// ours it is that of ssh.
    pub findings: Vec<Finding>,
    /// What ssh alone pays for.
    pub ssh_findings: Vec<Finding>,
    /// A verdict on each cause, in the order of the table.
    pub verdicts: Vec<Verdict>,
    /// A verdict on each resource.
    pub resources: Vec<ResourceVerdict>,
    /// Why logins failed, each reason once: foreign text.
    pub failures: Vec<String>,
}

/// A cause that was found.
#[derive(Debug, Clone)]
pub struct Finding {
    /// Which.
    pub cause: &'static Cause,
    /// How well it is known.
    pub certainty: Certainty,
    /// Whose login its cost is reckoned of.
    pub by: Client,
    /// What it costs a login.
    pub cost: Duration,
    /// The same by phase; empty where it is logins that fail.
    pub shares: Vec<(Phase, Duration)>,
    /// What it costs a login of ssh, where both were measured.
    pub ssh_cost: Option<Duration>,
    /// What speaks for it, with numbers.
    pub evidence: Vec<String>,
    /// Causes that would look the same.
    pub alternatives: Vec<&'static str>,
    /// What a login is expected to gain by the fix.
    pub saving: Duration,
}

/// How well a cause is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Certainty {
    /// What it takes was measured by itself.
    Proven,
    /// All that it needs is there, and the time is lost where it would be.
    Likely,
    /// The time is lost where it would be.
    Suspected,
}

impl Certainty {
    /// Its name in JSON and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Certainty::Proven => "proven",
            Certainty::Likely => "likely",
            Certainty::Suspected => "suspected",
        }
    }
}

/// What was decided of a cause.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// Which.
    pub cause: &'static Cause,
    /// What.
    pub status: Status,
}

/// Found, ruled out, or not looked at, with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// It is among the findings.
    Found,
    /// It is not, for this reason.
    RuledOut(String),
    /// It may be, or not, for this reason.
    NotLookedAt(String),
}

/// The file that sshd was told to read (-f).
const SSHD_CONFIG: &str = "host.sshd_config.file";
/// How many records of a trace were lost.
const LOST: &str = "trace.lost";

/// What the reader of a suspicion is told.
pub(crate) const NOT_APART: &str = "cannot be told apart without tracing on the host";

impl Diagnosis {
    /// Judges all causes.
    pub fn of(evidence: &Evidence) -> Diagnosis {
        let mut judge = Judge::new(evidence);
        // What starves a login makes what is timed on the host longer, but nothing that a trace says that a cause itself takes.
        let is_traced = evidence.facts.time("trace.contention.time").is_some();
        for certainty in [Certainty::Proven, Certainty::Likely] {
            let mut turns: [fn(Cost) -> bool; 2] = [Cost::is_starving, Cost::is_of_the_login];
            if is_traced {
                turns.reverse();
            }
            for takes in turns {
                judge.take_all(certainty, takes);
            }
        }
        judge.suspect();
        for certainty in [Certainty::Proven, Certainty::Likely] {
            judge.take_all(certainty, Cost::is_of_others);
        }
        judge.finish()
    }

    /// Findings of our login and those of ssh alone.
    pub fn all_findings(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().chain(&self.ssh_findings)
    }
}

/// What the signs of a cause come to by one login.
enum Standing {
    Known(Certainty, Vec<String>),
    RuledOut(String),
    NotLookedAt(String),
}

struct Judge<'a> {
    evidence: &'a Evidence,
    /// Ours first, where there is one.
    ledgers: Vec<Ledger>,
    findings: Vec<Finding>,
}

impl<'a> Judge<'a> {
    fn new(evidence: &'a Evidence) -> Judge<'a> {
        let clients = [Client::Sshoal, Client::Ssh];
        Judge {
            evidence,
            ledgers: clients
                .into_iter()
                .filter_map(|client| Ledger::new(evidence, client))
                .collect(),
            findings: Vec::new(),
        }
    }

    /// The ledgers that a cause is judged by.
    fn judged_by(&self, payer: Payer) -> Vec<usize> {
        let all = 0..self.ledgers.len();
        match payer {
            Payer::Everyone => all.take(1).collect(),
            Payer::Each => all.collect(),
            Payer::Ssh => all
                .filter(|at| self.ledgers[*at].by == Client::Ssh)
                .collect(),
        }
    }

    fn case<'b>(&'b self, ledgers: &'b [Ledger], at: usize) -> Case<'b> {
        Case {
            evidence: self.evidence,
            ledger: &ledgers[at],
            ours: (at > 0).then(|| &ledgers[0]),
        }
    }

    /// Causes of these costs that are known this well take their shares.
    fn take_all(&mut self, certainty: Certainty, takes: fn(Cost) -> bool) {
        for cause in causes::all().filter(|cause| takes(cause.cost)) {
            for at in self.judged_by(cause.payer) {
                let standing = standing(cause, &self.case(&self.ledgers, at));
                let Standing::Known(known, evidence) = standing else {
                    continue;
                };
                let is_known = |finding: &Finding| finding.alternatives.contains(&cause.id);
                let is_known = self.is_found(cause, at) || self.findings.iter().any(is_known);
                if known == certainty && !is_known {
                    self.take(cause, at, known, evidence);
                }
            }
        }
    }

    /// Of those that are merely suspected the one that explains the most comes first; what would explain the same is named with it.
    fn suspect(&mut self) {
        let before = self.ledgers.clone();
        loop {
            let best = self
                .suspects(&self.ledgers)
                .max_by_key(|suspect| (cost::sum(&suspect.shares), usize::MAX - suspect.place));
            let Some(Suspect {
                cause, at, words, ..
            }) = best
            else {
                break;
            };
            self.take(cause, at, Certainty::Suspected, words);
        }
        self.suspect_refusals();
        let others: Vec<Suspect> = self.suspects(&before).collect();
        for finding in &mut self.findings {
            if finding.certainty != Certainty::Suspected {
                continue;
            }
            let fits = |other: &&Suspect| {
                other.by == finding.by
                    && other.cause.id != finding.cause.id
                    && other
                        .shares
                        .iter()
                        .any(|(phase, _)| finding.shares.iter().any(|(own, _)| own == phase))
            };
            finding.alternatives = others
                .iter()
                .filter(fits)
                .map(|other| other.cause.id)
                .collect();
            let words = match finding.alternatives.as_slice() {
                [] => format!("suspected by the phase alone: {NOT_APART}"),
                others => format!("{} would look the same: {NOT_APART}", others.join(", ")),
            };
            finding.evidence.push(words);
        }
    }

    /// What may have refused logins, too, as far as is known, is named with what is found to have done so.
    fn suspect_refusals(&mut self) {
        let case = |at| self.case(&self.ledgers, at);
        let is_suspected = |cause: &&Cause| {
            let mut ledgers = self.judged_by(cause.payer).into_iter();
            matches!(cause.cost, Cost::FailedLogins)
                && ledgers.any(|at| {
                    let standing = standing(cause, &case(at));
                    matches!(standing, Standing::Known(Certainty::Suspected, _))
                })
        };
        let suspected: Vec<&'static str> = causes::all()
            .filter(is_suspected)
            .map(|cause| cause.id)
            .collect();
        let mut found = self.findings.iter_mut();
        let found = found.find(|it| matches!(it.cause.cost, Cost::FailedLogins));
        if let Some(found) = found.filter(|_| !suspected.is_empty()) {
            found.certainty = found.certainty.max(Certainty::Likely);
            let words = format!("{} would look the same", suspected.join(", "));
            found.evidence.push(words);
            found.alternatives.extend(suspected);
        }
    }

    /// Suspicions that are worth a word by these ledgers and not found yet.
    fn suspects<'b>(&'b self, ledgers: &'b [Ledger]) -> impl Iterator<Item = Suspect> + 'b {
        let causes = causes::all().enumerate();
        let each = causes.flat_map(move |(place, cause)| {
            self.judged_by(cause.payer)
                .into_iter()
                .map(move |at| (place, cause, at))
        });
        each.filter_map(move |(place, cause, at)| {
            if self.is_found(cause, at) {
                return None;
            }
            let case = self.case(ledgers, at);
            let Standing::Known(Certainty::Suspected, words) = standing(cause, &case) else {
                return None;
            };
            let shares = shares(cause, &case)?;
            Some(Suspect {
                place,
                cause,
                at,
                by: ledgers[at].by,
                shares,
                words,
            })
        })
    }

    fn is_found(&self, cause: &Cause, at: usize) -> bool {
        let by = self.ledgers[at].by;
        let same = |finding: &Finding| finding.cause.id == cause.id;
        self.findings
            .iter()
            .any(|finding| same(finding) && finding.by == by)
    }

    /// Notes a finding, if it costs anything worth a word.
    fn take(
        &mut self,
        cause: &'static Cause,
        at: usize,
        certainty: Certainty,
        mut words: Vec<String>,
    ) {
        if matches!(cause.cost, Cost::FailedLogins) {
            self.note_failures(cause, certainty, words);
            return;
        }
        let case = self.case(&self.ledgers, at);
        let Some(shares) = shares(cause, &case) else {
            return;
        };
        words.extend(shares.iter().filter_map(|(phase, _)| case.told(*phase)));
        words.extend(padded(&case, &shares));
        words.extend(where_else(cause, &case));
        words.extend(cause.fix.beware().map(str::to_owned));
        words.dedup();
        self.charge(cause, at, &shares);
        let by = self.ledgers[at].by;
        let ssh_cost = (cause.payer == Payer::Everyone)
            .then(|| self.take_of_ssh(cause, at, &shares))
            .flatten();
        self.findings.push(Finding {
            cause,
            certainty,
            by,
            cost: cost::sum(&shares),
            saving: cost::sum(&shares),
            shares,
            ssh_cost,
            evidence: words,
            alternatives: Vec::new(),
        });
    }

    /// What slows every client down slows ssh down as much.
    fn take_of_ssh(
        &mut self,
        cause: &'static Cause,
        judged: usize,
        ours: &Shares,
    ) -> Option<Duration> {
        let at = self
            .ledgers
            .iter()
            .position(|ledger| ledger.by == Client::Ssh)?;
        if at == judged {
            return None;
        }
        let mut shares = cause
            .cost
            .shares(cause.phases, &self.case(&self.ledgers, at));
        let requests = |at: usize, phase: Phase| {
            let requests = self.ledgers[at].row(phase).map(|row| row.requests.max(1));
            requests.map(|requests| u32::try_from(requests).unwrap_or(u32::MAX))
        };
        for (phase, share) in &mut shares {
            let ours = ours
                .iter()
                .find(|(known, _)| known == phase)
                .map(|(_, time)| *time);
            // Unless we have none of that phase.
            if let Some((of_ours, of_ssh)) = requests(judged, *phase).zip(requests(at, *phase)) {
                let most = ours.unwrap_or_default() * of_ssh / of_ours;
                *share = (*share).min(most);
            }
        }
        self.charge(cause, at, &shares);
        Some(cost::sum(&shares))
    }

    fn charge(&mut self, cause: &'static Cause, at: usize, shares: &[(Phase, Duration)]) {
        if matches!(
            cause.cost,
            Cost::Stretch(_) | Cost::Shared(_) | Cost::Starved(_)
        ) {
            self.ledgers[at].lose_stretch(shares);
        }
        self.ledgers[at].take(cause.id, shares);
    }

    /// Logins that were refused cost all of their time.
    fn note_failures(&mut self, cause: &'static Cause, certainty: Certainty, words: Vec<String>) {
        let refused = |finding: &&mut Finding| matches!(finding.cause.cost, Cost::FailedLogins);
        if let Some(first) = self.findings.iter_mut().find(refused) {
            first.alternatives.push(cause.id);
            return;
        }
        let failed = self
            .evidence
            .logins
            .iter()
            .filter(|login| login.failure.is_some());
        let times: Vec<Duration> = failed
            .map(|login| login.spans.iter().map(|span| span.duration).sum())
            .collect();
        let cost = times.iter().sum();
        let mut words = words;
        words.push(format!(
            "{} of {} logins failed, after {} in all",
            times.len(),
            self.evidence.logins.len(),
            words::time(cost)
        ));
        self.findings.push(Finding {
            cause,
            certainty,
            by: self
                .ledgers
                .first()
                .map_or(Client::Sshoal, |ledger| ledger.by),
            cost,
            shares: Vec::new(),
            ssh_cost: None,
            evidence: words,
            alternatives: Vec::new(),
            saving: cost,
        });
    }

    /// A cause that both clients pay for is one finding.
    fn join(&mut self, first: Client) {
        let (mut ours, others): (Vec<Finding>, Vec<Finding>) = self
            .findings
            .drain(..)
            .partition(|finding| finding.by == first);
        for other in others {
            match ours
                .iter_mut()
                .find(|finding| finding.cause.id == other.cause.id && finding.by == first)
            {
                Some(finding) => finding.ssh_cost = Some(other.cost),
                None => ours.push(other),
            }
        }
        self.findings = ours;
    }

    fn finish(mut self) -> Diagnosis {
        let first = self
            .ledgers
            .first()
            .map_or(Client::Sshoal, |ledger| ledger.by);
        self.join(first);
        let order = |finding: &Finding| (finding.cause.cost.is_of_others(), Reverse(finding.cost));
        self.findings.sort_by_key(order);
        let verdicts: Vec<Verdict> = causes::all()
            .map(|cause| Verdict {
                cause,
                status: self.status(cause),
            })
            .collect();
        let round_trip = reckoning::round_trip(self.evidence);
        let resources = resources::judge(self.evidence, &self.ledgers, &self.findings, round_trip);
        let (findings, ssh_findings) = self
            .findings
            .into_iter()
            .partition(|finding: &Finding| finding.by == first);
        let mut failures: Vec<String> = Vec::new();
        for failure in self
            .evidence
            .logins
            .iter()
            .filter_map(|login| login.failure.as_ref())
        {
            if !failures.contains(failure) {
                failures.push(failure.clone());
            }
        }
        Diagnosis {
            host: self.evidence.host.clone(),
            address: self.evidence.address.clone(),
            identification: self.evidence.identification.clone(),
            tier: self.evidence.tier,
            tier_notes: self.evidence.tier_notes.clone(),
            sshd_config: self.evidence.facts.text(SSHD_CONFIG).map(str::to_owned),
            round_trip,
            pad: self
                .ledgers
                .first()
                .and_then(|ledger| Some(ledger.pad?.base)),
            timelines: self.ledgers.iter().map(Timeline::of).collect(),
            findings,
            ssh_findings,
            verdicts,
            resources,
            failures,
        }
    }

    fn status(&self, cause: &'static Cause) -> Status {
        if self
            .findings
            .iter()
            .any(|finding| finding.cause.id == cause.id)
        {
            return Status::Found;
        }
        let rival = |finding: &&Finding| finding.alternatives.contains(&cause.id);
        if let Some(finding) = self.findings.iter().find(rival) {
            return Status::NotLookedAt(format!("looks like {}: {NOT_APART}", finding.cause.id));
        }
        let Some(at) = self.judged_by(cause.payer).first().copied() else {
            let words = match self.ledgers.as_slice() {
                [] => "no login was measured",
                _ => "no login of ssh was measured",
            };
            return Status::NotLookedAt(words.to_owned());
        };
        let case = self.case(&self.ledgers, at);
        match standing(cause, &case) {
            Standing::RuledOut(words) => Status::RuledOut(words),
            Standing::NotLookedAt(words) if has_loss(cause, &case) => Status::NotLookedAt(words),
            _ => nothing_lost(cause, &case),
        }
    }
}

/// A suspicion.
struct Suspect {
    place: usize,
    cause: &'static Cause,
    at: usize,
    by: Client,
    shares: Shares,
    words: Vec<String>,
}

/// What the signs say, with the words of those that do.
fn standing(cause: &Cause, case: &Case) -> Standing {
    let mut certainty = match cause.tier {
        Tier::Root => Certainty::Suspected,
        _ => Certainty::Likely,
    };
    let mut proven = false;
    let mut unlike = None;
    let mut words = Vec::new();
    let mut has_needs = false;
    for sign in cause.signs {
        let answer = sign.test.answer(case);
        match (sign.weight, answer) {
            (Weight::Known | Weight::Needed, Answer::Yes(told)) => {
                has_needs = true;
                words.push(told);
            }
            (Weight::Known | Weight::Needed, Answer::No(told)) => return Standing::RuledOut(told),
            (Weight::Known, Answer::Unknown(told)) => return Standing::NotLookedAt(told),
            (Weight::Needed, Answer::Unknown(_)) => certainty = Certainty::Suspected,
            (Weight::Proof, Answer::Yes(told)) => {
                proven = true;
                words.push(told);
            }
            (Weight::Shape, Answer::No(told)) => {
                unlike.get_or_insert(told);
            }
            (Weight::Proof, _) | (Weight::Shape, _) => {}
        }
    }
    if proven {
        // A trace with holes shows times that are not, and lacks some that are.
        certainty = match case.number(LOST) {
            Some(lost) if lost > 0.0 => Certainty::Likely,
            _ => Certainty::Proven,
        };
    } else if !has_needs {
        certainty = Certainty::Suspected;
    }
    words.dedup();
    match unlike {
        Some(told) if certainty == Certainty::Suspected => Standing::RuledOut(told),
        _ => Standing::Known(certainty, words),
    }
}

/// What a cause would take, if that is more than noise.
fn shares(cause: &Cause, case: &Case) -> Option<Shares> {
    let mut shares = cause.cost.shares(cause.phases, case);
    if let Some(ours) = case.ours.filter(|_| cause.payer == Payer::Ssh) {
        // What both clients lose is none of ssh's own.
        for (phase, share) in &mut shares {
            let whole = |ledger: &Ledger| ledger.row(*phase).map(|row| row.sample.median);
            let beside = whole(case.ledger).unwrap_or_default();
            *share = (*share).min(beside.saturating_sub(whole(ours).unwrap_or_default()));
        }
    }
    shares.retain(|(_, share)| !share.is_zero());
    let floor = match cause.cost.is_measured(case) {
        // What was measured by itself, or is common to all phases, is no noise of one of them.
        true => reckoning::LEAST,
        false => case.ledger.floor(&shares),
    };
    let enough = cost::sum(&shares) >= floor;
    (enough && !shares.is_empty()).then_some(shares)
}

/// sshd's padding doubles with the work of a request: what the work itself took is told.
fn padded(case: &Case, shares: &[(Phase, Duration)]) -> Option<String> {
    let pad = case.ledger.pad?;
    let doublings = pad.doublings.filter(|doublings| *doublings > 0)?;
    let is_first = |(phase, _): &&(Phase, Duration)| *phase == Phase::FirstRequest;
    shares.iter().find(is_first)?;
    let whole = pad.base * 2_u32.pow(doublings);
    Some(format!(
        "sshd pads a request to {} x 2^{doublings}: the work itself takes between {} and {}",
        words::time(pad.base),
        words::time(whole / 2),
        words::time(whole),
    ))
}

/// Where a line of sshd_config belongs if that is not in its usual place.
fn where_else(cause: &Cause, case: &Case) -> Option<String> {
    let file = case.word(SSHD_CONFIG).filter(|_| cause.fix.is_of_sshd())?;
    Some(format!(
        "this sshd was started with {file}: the line belongs there"
    ))
}

fn has_loss(cause: &Cause, case: &Case) -> bool {
    cause.phases.iter().any(|phase| case.ledger.is_lost(*phase))
}

/// Ruled out by the phases themselves.
fn nothing_lost(cause: &Cause, case: &Case) -> Status {
    let told: Vec<String> = cause
        .phases
        .iter()
        .filter_map(|phase| case.told(*phase))
        .collect();
    match told.as_slice() {
        [] => {
            let titles: Vec<&str> = cause.phases.iter().map(|phase| phase.title()).collect();
            Status::NotLookedAt(format!("{} was not measured", titles.join(", ")))
        }
        _ if has_loss(cause, case) => {
            Status::RuledOut(format!("takes no time of its own: {}", told.join("; ")))
        }
        told if cause
            .phases
            .iter()
            .any(|phase| case.ledger.row(*phase).is_some_and(|row| row.is_lost())) =>
        {
            Status::RuledOut(format!(
                "other causes explain what is lost: {}",
                told.join("; ")
            ))
        }
        told => Status::RuledOut(told.join("; ")),
    }
}

#[cfg(test)]
#[path = "diagnosis_tests.rs"]
mod tests;
