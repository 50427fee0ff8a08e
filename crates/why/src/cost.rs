//! How much of what is lost in its phases is a cause's: the ways to reckon it, as data.

use std::time::Duration;

use crate::evidence::Phase;
use crate::reckoning::LEAST;
use crate::signs::Case;

/// sshd writes twice after a login, and the client's kernel holds its acknowledgement back for 40 ms (Linux, TCP_DELACK_MIN).
const DELAYED_ACK: [Duration; 2] = [Duration::from_millis(34), Duration::from_millis(50)];

/// What a command that does nothing takes even where nothing is slow.
const USUAL: Duration = Duration::from_millis(2);

/// What was measured apart may take so much longer in a login: sshd starts it, and reads what it says. Where more than that is lost, others
/// have taken it, and this little as well.
const AROUND_MEASURED: Duration = Duration::from_millis(5);

/// Per cent of a login's time that it could run and had no processor.
pub(crate) const MUCH_OF_A_LOGIN: f64 = 25.0;

/// sshd looks a client's name up a few times in each phase.
const MAX_CALLS: u32 = 6;

/// How often something is asked for in a phase.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Often {
    /// As it was measured: so often where more is lost than all calls there may be would take.
    pub(crate) usual: u32,
    pub(crate) most: u32,
}

/// A call in a login takes no less than this part of what it took when it was timed.
const OF_CALL: f64 = 0.7;

/// A way to reckon a cost.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Cost {
    /// All that is lost in its phases.
    Excess,
    /// The same with what is too little in one of them to be told from noise by itself; in none of them more than in the first.
    Spread,
    /// What was measured apart, as far as it is lost in its phases; where nothing was measured, all that is.
    Measured(&'static str),
    /// All that is lost in its phases, but hardly more than was measured apart (the first of these facts that is known, the best one
    /// first); where nothing was measured, what the other way comes to.
    Bounded(&'static [&'static str], &'static Cost),
    /// The same, where a function says what was measured.
    BoundedBy(fn(&Case) -> Option<Duration>, &'static Cost),
    /// What the other way comes to, and in all phases together no more than this function says, where it knows it.
    AtMost(fn(&Case) -> Option<Duration>, &'static Cost),
    /// What a function reckons, give or take a half for another machine, as far as it is lost in its phases.
    Reckoned(fn(&Case) -> Option<Duration>),
    /// Calls, each as long as the first of these facts that is worth a word: whole numbers of them in each phase, as many as may be made
    /// there.
    Calls(&'static [&'static str], fn(Phase) -> Often),
    /// Lookups of the client's name, as far as they were seen in a traced login. Where none was traced: all that is lost in the first
    /// request, which is padded, and in the others whole numbers of what was timed apart.
    Lookups {
        seen: &'static str,
        timed: &'static str,
    },
    /// One fact less the other, as far as it is lost; all that is where they are not known.
    Difference(&'static str, &'static str),
    /// Work for each request that names a key, hardly more than this fact has it, if there is one: the signed request loses no more
    /// by it than the probe.
    EachKeyRequest(Option<&'static str>),
    /// All key probes but one.
    FurtherProbes,
    /// What phases take longer that are all stretched alike: it is no excess (`reckoning.rs`). Of each no more than this part of its time,
    /// in per cent, where that is known.
    Stretch(&'static str),
    /// As much of that, and of what no other cause explains, suspected ones included, as a login was seen to wait for others; where that
    /// is not known, what phases are stretched by.
    Shared(&'static Waited),
    /// The same, before others take theirs; where it is not known how long a login waited, all that is lost.
    Starved(&'static Waited),
    /// What ssh loses beside us by a delayed acknowledgement.
    DelayedAck,
    /// Logins that failed. Nothing of a login that succeeded.
    FailedLogins,
}

/// How a login was seen to wait for others.
#[derive(Debug)]
pub(crate) struct Waited {
    /// All that a traced login waited.
    pub(crate) traced: Option<&'static str>,
    /// The same in per cent of its time.
    pub(crate) part: Option<&'static str>,
    /// What some of its processes waited, and for how much of all its time, in per cent.
    pub(crate) timed: Option<(&'static str, &'static str)>,
    /// Causes that take of it before.
    pub(crate) taken_by: &'static [&'static str],
}

impl Waited {
    /// How long a login waits for others at most, if that is known, and not taken by another cause.
    fn most(&self, case: &Case) -> Option<Duration> {
        let taken = self.taken_by.iter().map(|it| case.ledger.taken_by(it));
        Some(self.whole(case)?.saturating_sub(taken.sum()))
    }

    /// What other logins have waited in these phases if they were starved as the traced one was: that may have been quicker, or slower.
    fn part_of(&self, phases: &[Phase], case: &Case) -> Option<Duration> {
        let part = self.part.and_then(|fact| case.number(fact))?;
        let rows = phases.iter().filter_map(|phase| case.ledger.row(*phase));
        let whole: Duration = rows.map(|row| row.sample.median).sum();
        Some(whole.mul_f64(part.clamp(0.0, 100.0) / 100.0))
    }

    /// One login waits longer than another: where those processes that are known of waited for much of one, it may be for all that
    /// nobody else explains.
    fn whole(&self, case: &Case) -> Option<Duration> {
        if let Some(time) = self.traced.and_then(|fact| case.time(fact)) {
            return Some(time);
        }
        let (time, share) = self.timed?;
        let is_much = case
            .number(share)
            .is_some_and(|share| share >= MUCH_OF_A_LOGIN);
        case.time(time).map(|time| match is_much {
            true => Duration::MAX,
            false => time,
        })
    }
}

/// What a cause costs in each phase.
pub(crate) type Shares = Vec<(Phase, Duration)>;

impl Cost {
    /// The shares of a cause that lives in these phases, of what others have not taken.
    pub(crate) fn shares(self, phases: &[Phase], case: &Case) -> Shares {
        match self {
            Cost::Excess => excess(phases, case),
            Cost::Spread => spread(phases, case),
            Cost::Measured(fact) => match case.time(fact) {
                Some(time) => capped(time.saturating_sub(USUAL), phases, case),
                None => excess(phases, case),
            },
            Cost::Bounded(facts, other) => match first(facts, case) {
                Some(time) => bounded(time, phases, case),
                None => other.shares(phases, case),
            },
            Cost::BoundedBy(measured, other) => match measured(case) {
                Some(time) => bounded(time, phases, case),
                None => other.shares(phases, case),
            },
            Cost::AtMost(most, other) => {
                let shares = other.shares(phases, case);
                match most(case) {
                    Some(most) => cut(shares, most),
                    None => shares,
                }
            }
            Cost::Reckoned(reckoned) => match reckoned(case) {
                Some(time) => capped(time + time / 2, phases, case),
                None => excess(phases, case),
            },
            Cost::Calls(facts, often) => {
                let mut times = facts.iter().filter_map(|fact| case.time(fact)).peekable();
                match times.peek() {
                    Some(_) => match times.find(|time| *time >= LEAST) {
                        Some(call) => calls(call, often, phases, case),
                        None => Vec::new(),
                    },
                    None => excess(phases, case),
                }
            }
            Cost::Lookups { seen, timed } => match case.time(seen) {
                Some(seen) => seen_lookups(seen, phases, case),
                None => lookups(case.time(timed), phases, case),
            },
            Cost::Difference(whole, part) => match case.time(whole).zip(case.time(part)) {
                Some((whole, part)) => capped(whole.saturating_sub(part), phases, case),
                None => excess(phases, case),
            },
            Cost::EachKeyRequest(fact) => {
                let measured = fact.and_then(|fact| case.time(fact));
                each_key_request(measured, phases, case)
            }
            Cost::FurtherProbes => further_probes(case),
            Cost::Stretch(part) => match case.number(part) {
                Some(part) => in_part(part, stretch(phases, case), case),
                None => stretch(phases, case),
            },
            Cost::Shared(waited) => match waited.most(case) {
                Some(most) => waited_for(most, phases, case),
                None => stretch(phases, case),
            },
            Cost::Starved(waited) => {
                let most = waited.part_of(phases, case).or_else(|| waited.most(case));
                waited_for(most.unwrap_or(Duration::MAX), phases, case)
            }
            Cost::DelayedAck => delayed_ack(phases, case),
            Cost::FailedLogins => Vec::new(),
        }
    }

    /// Whether it is known by itself, so that what the repetitions of a phase differ by is no reason to doubt it.
    pub(crate) fn is_measured(self, case: &Case) -> bool {
        match self {
            Cost::Bounded(facts, _) => first(facts, case).is_some(),
            Cost::BoundedBy(measured, _) => measured(case).is_some(),
            Cost::Lookups { seen, .. } => case.time(seen).is_some(),
            Cost::EachKeyRequest(Some(fact)) => case.time(fact).is_some(),
            Cost::Stretch(_) | Cost::Shared(_) => true,
            Cost::Starved(waited) => {
                let is_traced = waited.traced.and_then(|fact| case.time(fact)).is_some();
                is_traced || waited.whole(case) == Some(Duration::MAX)
            }
            _ => false,
        }
    }

    /// Whether it is others who take the time, so that every cause of the login's own comes first.
    pub(crate) fn is_of_others(self) -> bool {
        matches!(self, Cost::Shared(_))
    }

    /// Whether it slows everything down that other causes are measured by.
    pub(crate) fn is_starving(self) -> bool {
        matches!(self, Cost::Starved(_))
    }

    /// Whether it is neither.
    pub(crate) fn is_of_the_login(self) -> bool {
        !self.is_of_others() && !self.is_starving()
    }
}

/// The sum of shares.
pub(crate) fn sum(shares: &[(Phase, Duration)]) -> Duration {
    shares.iter().map(|(_, time)| *time).sum()
}

fn excess(phases: &[Phase], case: &Case) -> Shares {
    let lost = |phase: &Phase| {
        let remaining = case.ledger.remaining(*phase);
        case.ledger.is_lost(*phase).then_some((*phase, remaining))
    };
    phases.iter().filter_map(lost).collect()
}

fn first(facts: &[&str], case: &Case) -> Option<Duration> {
    facts.iter().find_map(|fact| case.time(fact))
}

/// A time that lies in these phases together, as far as it is lost in them.
fn capped(time: Duration, phases: &[Phase], case: &Case) -> Shares {
    let mut left = time;
    let share = |phase: &Phase| {
        let share = case.ledger.remaining(*phase).min(left);
        left -= share;
        (!share.is_zero()).then_some((*phase, share))
    };
    phases.iter().filter_map(share).collect()
}

/// What was measured apart: all that is lost in these phases if that is hardly more, or else no more than it takes.
fn bounded(time: Duration, phases: &[Phase], case: &Case) -> Shares {
    let lost: Duration = phases
        .iter()
        .map(|phase| case.ledger.remaining(*phase))
        .sum();
    match lost <= time + AROUND_MEASURED {
        true => capped(lost, phases, case),
        false => capped(time, phases, case),
    }
}

/// These, until they come to so much.
fn cut(mut shares: Shares, most: Duration) -> Shares {
    let mut left = most;
    for (_, share) in &mut shares {
        *share = (*share).min(left);
        left -= *share;
    }
    shares
}

/// What one phase loses, and what others lose by the same: however little, and no more.
fn spread(phases: &[Phase], case: &Case) -> Shares {
    let first = phases.first().map(|phase| case.ledger.remaining(*phase));
    let most = first.unwrap_or_default();
    if most < LEAST || excess(phases, case).is_empty() {
        return Vec::new();
    }
    let mut shares = excess_of_any_size(phases, case);
    for (_, share) in &mut shares {
        *share = (*share).min(most);
    }
    shares
}

fn calls(call: Duration, often: fn(Phase) -> Often, phases: &[Phase], case: &Case) -> Shares {
    let left = |time: Duration, causes: &[&str]| {
        let taken = causes.iter().map(|cause| case.ledger.taken_by(cause));
        time.saturating_sub(taken.sum())
    };
    let counted = |phase: Phase, lost: Duration| {
        let requests = case.ledger.row(phase).map_or(1, |row| row.requests.max(1));
        count(lost, call, often(phase), requests)
    };
    // What a probe is padded by is that of who makes it slow.
    let probe = counted(Phase::KeyProbe, case.ledger.remaining(Phase::KeyProbe));
    let is_of_probe = probe.is_all && probe.count > 0;
    let of_phase = |phase: &Phase| {
        let others = match phase {
            Phase::FirstOutput => left(shell_startup(case), &["shell-startup", "login-shell"]),
            Phase::ChannelOpen => left(motd_scripts(case), &["pam-motd"]),
            // The probe is answered before its padding is over, for which the signed request waits.
            Phase::SignedRequest if is_of_probe => left_of_padding(case),
            _ => Duration::ZERO,
        };
        let remaining = case.ledger.remaining(*phase);
        let of_calls = remaining.saturating_sub(others);
        let Counted { count, is_all } = counted(*phase, of_calls);
        let work = call * count;
        // Groups and users do not take the same.
        let most = if is_all { work + LEAST } else { work };
        match (phase, case.ledger.pad.filter(|pad| pad.doublings.is_some())) {
            (Phase::SignedRequest, _) if count > 0 || !others.is_zero() => {
                Some((*phase, remaining.min(others + most)))
            }
            (Phase::FirstRequest, Some(pad)) if count > 0 => {
                let padded = pad.around(work + AROUND_LOOKUP).saturating_sub(pad.base);
                Some((*phase, of_calls.min(most.max(padded + LEAST))))
            }
            _ => (count > 0).then(|| (*phase, of_calls.min(most))),
        }
    };
    let shares = phases.iter().filter_map(of_phase);
    shares.filter(|(_, share)| !share.is_zero()).collect()
}

/// Calls in a phase.
struct Counted {
    count: u32,
    /// Whether nobody else needs to have a part in what is lost.
    is_all: bool,
}

/// How many calls a loss in so many requests is. Where it is more than there may be others have a part in it, and they are as many as usual.
fn count(lost: Duration, call: Duration, often: Often, requests: usize) -> Counted {
    let requests = u32::try_from(requests).unwrap_or(u32::MAX);
    let calls = lost.as_secs_f64() / call.as_secs_f64();
    let most = often.most.saturating_mul(requests);
    let whole = (1..=most).find(|count| calls < f64::from(*count) + 0.5);
    let (count, is_all) = match whole {
        _ if calls < OF_CALL => (0, true),
        Some(count) => (count, true),
        None => (often.usual.saturating_mul(requests), false),
    };
    Counted { count, is_all }
}

/// What a key's probe is padded by beyond its work, if that is more than usual.
pub(crate) fn left_of_padding(case: &Case) -> Duration {
    let probe = case.ledger.row(Phase::KeyProbe).filter(|row| row.is_lost());
    let Some((probe, pad)) = probe.zip(case.ledger.pad) else {
        return Duration::ZERO;
    };
    let requests = u32::try_from(probe.requests.max(1)).unwrap_or(u32::MAX);
    let work = probe.excess / requests;
    // The usual padding is none of it.
    pad.around(work).saturating_sub(work + pad.base)
}

/// What the scripts of update-motd.d take, where that is worth a word.
fn motd_scripts(case: &Case) -> Duration {
    let time = crate::causes::motd_time(case);
    time.filter(|time| *time >= LEAST).unwrap_or_default()
}

/// What the user's shell takes more than a bare one, by itself.
fn shell_startup(case: &Case) -> Duration {
    let times = case
        .time("host.shell.time")
        .zip(case.time("host.bare_exec.time"));
    times.map_or(Duration::ZERO, |(shell, bare)| shell.saturating_sub(bare))
}

/// A lookup of sshd's takes no longer than the same one as it was timed, programs and their start included, and not much less.
const OF_LOOKUP: f64 = 0.85;
const AROUND_LOOKUP: Duration = Duration::from_millis(4);

fn lookups(lookup: Option<Duration>, phases: &[Phase], case: &Case) -> Shares {
    let mut shares = excess(&[Phase::FirstRequest], case);
    let Some(lookup) = lookup.filter(|lookup| *lookup >= LEAST) else {
        return shares;
    };
    let most = match case.ledger.pad.filter(|pad| pad.doublings.is_some()) {
        Some(pad) => pad.around(lookup + AROUND_LOOKUP).saturating_sub(pad.base),
        // A resolver that does not answer is waited for longer by sshd than by what was timed.
        None => lookup * 2,
    };
    for (_, share) in &mut shares {
        *share = (*share).min(most + AROUND_MEASURED);
    }
    let others = phases.iter().filter(|phase| **phase != Phase::FirstRequest);
    for share in excess(&others.copied().collect::<Vec<_>>(), case) {
        let least = lookup.mul_f64(OF_LOOKUP).saturating_sub(AROUND_LOOKUP);
        let each = |count: u32| share.1 / count;
        let fits = |count| (least..=lookup + AROUND_LOOKUP).contains(&each(count));
        if (1..=MAX_CALLS).any(fits) {
            shares.push(share);
        }
    }
    shares
}

/// Lookups that a traced login was seen to make took so long in all.
fn seen_lookups(seen: Duration, phases: &[Phase], case: &Case) -> Shares {
    let is_first = |phase: &&Phase| **phase == Phase::FirstRequest;
    let (first, others): (Vec<&Phase>, Vec<&Phase>) = phases.iter().partition(is_first);
    let of = |phases: Vec<&Phase>| phases.into_iter().copied().collect::<Vec<Phase>>();
    let pad = case.ledger.pad.filter(|pad| pad.doublings.is_some());
    let padded = pad.map_or(seen, |pad| {
        pad.around(seen + AROUND_LOOKUP).saturating_sub(pad.base)
    });
    let mut shares = bounded(padded, &of(first), case);
    // More than half of what a request is padded to is its work.
    let in_first = match pad {
        Some(pad) if !shares.is_empty() => (sum(&shares) + pad.base) / 2,
        _ => sum(&shares),
    };
    shares.extend(bounded(seen.saturating_sub(in_first), &of(others), case));
    shares
}

fn each_key_request(measured: Option<Duration>, phases: &[Phase], case: &Case) -> Shares {
    // What was measured is no noise, however much logins differ.
    let mut shares = match measured {
        Some(_) => excess_of_any_size(phases, case),
        None => excess(phases, case),
    };
    let Some(probe) = case.ledger.row(Phase::KeyProbe) else {
        return shares;
    };
    let requests = u32::try_from(probe.requests.max(1)).unwrap_or(u32::MAX);
    // The same work again, and the padding of both: the probe is answered before its own is over.
    let seen = probe.excess / requests;
    let work = measured.map_or(seen, |measured| seen.min(measured + AROUND_MEASURED));
    let most = match case.ledger.pad {
        _ if !probe.is_lost() => Duration::ZERO,
        Some(pad) => {
            let padded = pad.around(work) * 2;
            // Where the work ends just at a doubling it may have been the next one.
            let padded = padded.max(pad.around(work + work / 20) * 2);
            padded.saturating_sub(work + pad.base * 2) + probe.floor
        }
        None => work + probe.floor,
    };
    for (phase, share) in &mut shares {
        *share = match phase {
            Phase::SignedRequest => (*share).min(most),
            _ => (*share).min(work * requests),
        };
    }
    shares
}

fn further_probes(case: &Case) -> Shares {
    let Some(row) = case
        .ledger
        .row(Phase::KeyProbe)
        .filter(|row| row.requests > 1)
    else {
        return Vec::new();
    };
    let requests = u32::try_from(row.requests).unwrap_or(u32::MAX);
    // All but the last are refused, and padded.
    let pad = case.ledger.pad.map_or(Duration::ZERO, |pad| pad.base) * (requests - 1);
    let further = row.sample.median.saturating_sub(pad) / requests * (requests - 1) + pad;
    vec![(row.phase, further.min(case.ledger.remaining(row.phase)))]
}

/// What a slow machine takes more in each phase.
fn stretch(phases: &[Phase], case: &Case) -> Shares {
    let rows = phases.iter().filter_map(|phase| case.ledger.row(*phase));
    rows.map(|row| (row.phase, row.stretch))
        .filter(|(_, share)| !share.is_zero())
        .collect()
}

/// Of each phase no more than this part of the time that the host may have worked in it, in per cent.
fn in_part(per_cent: f64, mut shares: Shares, case: &Case) -> Shares {
    for (phase, share) in &mut shares {
        let time = case.ledger.row(*phase).map(|row| {
            let waited = row.network + row.pad;
            row.sample.median.saturating_sub(waited)
        });
        let most = time.map(|time| time.mul_f64(per_cent.clamp(0.0, 100.0) / 100.0));
        *share = (*share).min(most.unwrap_or_default());
    }
    shares
}

/// What phases are stretched by, and then what is lost beside it, until it comes to so much.
fn waited_for(most: Duration, phases: &[Phase], case: &Case) -> Shares {
    let stretched = cut(stretch(phases, case), most);
    let mut shares = capped(most - sum(&stretched), phases, case);
    for (phase, share) in stretched {
        match shares.iter_mut().find(|(known, _)| *known == phase) {
            Some((_, known)) => *known += share,
            None => shares.push((phase, share)),
        }
    }
    shares.sort_unstable();
    shares
}

fn excess_of_any_size(phases: &[Phase], case: &Case) -> Shares {
    let left = phases.iter();
    left.map(|phase| (*phase, case.ledger.remaining(*phase)))
        .collect()
}

fn delayed_ack(phases: &[Phase], case: &Case) -> Shares {
    let of_phase = |phase: &Phase| {
        let beside = |ledger: &crate::ledger::Ledger| {
            let row = ledger.row(*phase)?;
            Some(row.sample.median.saturating_sub(row.network))
        };
        let here = beside(case.ledger)?;
        let ours = case.ours.and_then(beside).unwrap_or_default();
        let difference = here.saturating_sub(ours);
        let share = difference.min(case.ledger.remaining(*phase));
        let is_one = DELAYED_ACK[0] <= difference && difference <= DELAYED_ACK[1] + LEAST;
        is_one.then_some((*phase, share))
    };
    phases.iter().filter_map(of_phase).collect()
}
