//! How much of what is lost in its phases is a cause's: the ways to reckon it, as data.

use std::time::Duration;

use crate::evidence::Phase;
use crate::reckoning::LEAST;
use crate::signs::Case;

/// sshd writes twice after a login, and the client's kernel holds its acknowledgement back for 40 ms (Linux, TCP_DELACK_MIN).
const DELAYED_ACK: [Duration; 2] = [Duration::from_millis(34), Duration::from_millis(50)];

/// What a command that does nothing takes even where nothing is slow.
const USUAL: Duration = Duration::from_millis(2);

/// sshd and the shell look a user and its groups up a few times in each phase.
const MAX_CALLS: u32 = 6;

/// A way to reckon a cost.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Cost {
    /// All that is lost in its phases.
    Excess,
    /// What was measured apart (the slowest of these facts), as far as it is lost in its phases; where nothing was measured, all
    /// that is.
    Measured(&'static [&'static str]),
    /// What a function reckons, give or take a half for another machine, as far as it is lost in its phases.
    Reckoned(fn(&Case) -> Option<Duration>),
    /// Calls, each as long as the first of these facts that is worth a word: whole numbers of them in each phase.
    Calls(&'static [&'static str]),
    /// Lookups of the client's name: all that is lost in the first request, which is padded, and whole numbers of them in the others.
    Lookups(&'static str),
    /// One fact less the other, as far as it is lost; all that is where they are not known.
    Difference(&'static str, &'static str),
    /// Work for each request that names a key: the signed request loses no more by it than the probe.
    EachKeyRequest,
    /// All key probes but one.
    FurtherProbes,
    /// What phases take longer that are all stretched alike: it is no excess (`reckoning.rs`).
    Stretch,
    /// That, and all that is lost beside it.
    Starved,
    /// What ssh loses beside us by a delayed acknowledgement.
    DelayedAck,
    /// Logins that failed. Nothing of a login that succeeded.
    FailedLogins,
}

/// What a cause costs in each phase.
pub(crate) type Shares = Vec<(Phase, Duration)>;

impl Cost {
    /// The shares of a cause that lives in these phases, of what others have not taken.
    pub(crate) fn shares(self, phases: &[Phase], case: &Case) -> Shares {
        match self {
            Cost::Excess => excess(phases, case),
            Cost::Measured(facts) => match slowest(facts, case) {
                Some(time) => capped(time.saturating_sub(USUAL), phases, case),
                None => excess(phases, case),
            },
            Cost::Reckoned(reckoned) => match reckoned(case) {
                Some(time) => capped(time + time / 2, phases, case),
                None => excess(phases, case),
            },
            Cost::Calls(facts) => {
                let mut times = facts.iter().filter_map(|fact| case.time(fact)).peekable();
                match times.peek() {
                    Some(_) => match times.find(|time| *time >= LEAST) {
                        Some(call) => calls(call, phases, case),
                        None => Vec::new(),
                    },
                    None => excess(phases, case),
                }
            }
            Cost::Lookups(fact) => lookups(case.time(fact), phases, case),
            Cost::Difference(whole, part) => match case.time(whole).zip(case.time(part)) {
                Some((whole, part)) => capped(whole.saturating_sub(part), phases, case),
                None => excess(phases, case),
            },
            Cost::EachKeyRequest => each_key_request(phases, case),
            Cost::FurtherProbes => further_probes(case),
            Cost::Stretch => stretch(phases, case),
            Cost::Starved => starved(phases, case),
            Cost::DelayedAck => delayed_ack(phases, case),
            Cost::FailedLogins => Vec::new(),
        }
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

fn slowest(facts: &[&str], case: &Case) -> Option<Duration> {
    facts.iter().filter_map(|fact| case.time(fact)).max()
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

fn calls(call: Duration, phases: &[Phase], case: &Case) -> Shares {
    let of_phase = |phase: &Phase| {
        let of_shell = match phase {
            Phase::FirstOutput => shell_startup(case),
            _ => Duration::ZERO,
        };
        let remaining = case.ledger.remaining(*phase).saturating_sub(of_shell);
        let count = (remaining.as_secs_f64() / call.as_secs_f64()).round();
        let count = count.min(f64::from(MAX_CALLS));
        (count >= 1.0).then(|| (*phase, remaining.min(call.mul_f64(count))))
    };
    phases.iter().filter_map(of_phase).collect()
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

fn each_key_request(phases: &[Phase], case: &Case) -> Shares {
    let mut shares = excess(phases, case);
    let Some(probe) = case.ledger.row(Phase::KeyProbe) else {
        return shares;
    };
    let requests = u32::try_from(probe.requests.max(1)).unwrap_or(u32::MAX);
    // The same work again, and the padding of both: the probe is answered before its own is over.
    let work = probe.excess / requests;
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
        if *phase == Phase::SignedRequest {
            *share = (*share).min(most);
        }
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

fn starved(phases: &[Phase], case: &Case) -> Shares {
    let rows = phases.iter().filter_map(|phase| case.ledger.row(*phase));
    rows.map(|row| (row.phase, row.stretch + case.ledger.remaining(row.phase)))
        .filter(|(_, share)| !share.is_zero())
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
