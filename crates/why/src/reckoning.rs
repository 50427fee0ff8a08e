//! What each phase of a login takes, what it should take, and what is therefore lost in it.
//!
//! ```text
//! measured (median over the logins)
//!   = round trips x round-trip time      the network
//!   + sshd's padding                     of requests for authentication, of OpenSSH only (`padding.rs`)
//!   + own share                          what this phase costs both ends where nothing is wrong, on a machine as fast as this one
//!   + excess                             what a cause has to explain
//! ```
//!
//! Nothing counts as lost below [`LEAST`], or below three times what the repetitions differ by.

use std::time::Duration;

use crate::causes::SERVER;
use crate::evidence::{Client, Evidence, Login, Phase};
use crate::padding::Pad;

/// A login is not made slow by less.
pub(crate) const LEAST: Duration = Duration::from_millis(10);

/// So many times the spread of the repetitions is noise.
const SPREADS: u32 = 3;

/// The spread of a normal distribution is this many times the median distance from the median.
const DISTANCES: f64 = 1.4826;

/// What is expected of a phase.
struct Expected {
    phase: Phase,
    /// Waits for an answer.
    round_trips: u32,
    /// One more, where sshd's Nagle or the client's holds back a second write until the first is acknowledged.
    further: u32,
    /// What it costs both ends where nothing is wrong, in milliseconds, with our client.
    own_ms: u64,
    /// The same with ssh, whose process must start, and whose log lines tell its phases.
    own_of_ssh_ms: u64,
}

const fn expected(phase: Phase, round_trips: u32, further: u32, own: [u64; 2]) -> Expected {
    Expected {
        phase,
        round_trips,
        further,
        own_ms: own[0],
        own_of_ssh_ms: own[1],
    }
}

/// What logins to clean hosts take over loopback, rounded up: measured with OpenSSH 9.2 at both ends, the padding aside
/// (bench/results, `why`). A slower machine takes as many times as much in all of them (`slowness`).
const EXPECTED: [Expected; 11] = [
    expected(Phase::Local, 0, 0, [5, 8]),
    expected(Phase::Lookup, 0, 0, [3, 3]),
    expected(Phase::Connect, 1, 0, [1, 2]),
    expected(Phase::Banner, 1, 0, [9, 9]),
    expected(Phase::KeyExchangeInit, 1, 1, [2, 2]),
    expected(Phase::KeyExchange, 1, 1, [6, 20]),
    expected(Phase::FirstRequest, 2, 1, [1, 2]),
    expected(Phase::KeyProbe, 1, 0, [1, 1]),
    expected(Phase::SignedRequest, 1, 1, [1, 2]),
    expected(Phase::ChannelOpen, 1, 1, [8, 9]),
    expected(Phase::FirstOutput, 1, 1, [3, 4]),
];

/// By how much a machine is slow is told by these: what the server computes or starts, and does not wait for.
const TELLING: [Phase; 5] = [
    Phase::Banner,
    Phase::KeyExchangeInit,
    Phase::KeyExchange,
    Phase::ChannelOpen,
    Phase::FirstOutput,
];

/// Several measurements of one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// The one in the middle.
    pub median: Duration,
    /// How far they are from it, as a standard deviation would be, but for outliers.
    pub spread: Duration,
    /// How many they are.
    pub count: usize,
}

impl Sample {
    /// Of measurements, unless there are none.
    pub(crate) fn of(values: impl IntoIterator<Item = Duration>) -> Option<Sample> {
        let mut values: Vec<Duration> = values.into_iter().collect();
        let median = middle(&mut values)?;
        let mut distances: Vec<Duration> =
            values.iter().map(|value| value.abs_diff(median)).collect();
        let spread = middle(&mut distances)?.mul_f64(DISTANCES);
        Some(Sample {
            median,
            spread,
            count: values.len(),
        })
    }

    /// What must be exceeded to be more than noise.
    pub(crate) fn floor(&self) -> Duration {
        LEAST.max(self.spread * SPREADS)
    }
}

/// The value in the middle, or between the two that are.
pub(crate) fn middle(values: &mut [Duration]) -> Option<Duration> {
    values.sort_unstable();
    let upper = *values.get(values.len() / 2)?;
    if values.len() % 2 == 1 {
        return Some(upper);
    }
    Some((values[values.len() / 2 - 1] + upper) / 2)
}

/// A phase as it was, taken apart. The parts add up to the median.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) phase: Phase,
    pub(crate) sample: Sample,
    /// How often the phase came in a login; 1 but for key probes.
    pub(crate) requests: usize,
    pub(crate) round_trips: u32,
    pub(crate) network: Duration,
    pub(crate) pad: Duration,
    pub(crate) own: Duration,
    /// What of `own` is more than a machine takes that is not slow.
    pub(crate) stretch: Duration,
    /// What is left for causes.
    pub(crate) excess: Duration,
    /// What of it must be exceeded to count.
    pub(crate) floor: Duration,
    /// What the phase was about.
    pub(crate) details: Vec<String>,
}

impl Row {
    /// Whether more is lost than noise.
    pub(crate) fn is_lost(&self) -> bool {
        self.excess >= self.floor
    }

    /// Gives so many times as much to its own share, or so much more, as far as there is excess.
    fn slow_down(&mut self, factor: f64, late: Duration) {
        self.stretch = self.own.mul_f64(factor - 1.0).max(late).min(self.excess);
        self.own += self.stretch;
        self.excess -= self.stretch;
    }

    /// What it should take at most.
    pub(crate) fn expected(&self) -> Duration {
        self.sample.median - self.excess - self.stretch
    }
}

/// The round-trip time: as measured apart, or else TCP's.
pub(crate) fn round_trip(evidence: &Evidence) -> Option<Sample> {
    let connects = || {
        let spans = evidence.logins.iter().flat_map(|login| &login.spans);
        let connects = spans.filter(|span| span.phase == Phase::Connect);
        Sample::of(connects.map(|span| span.duration).min())
    };
    Sample::of(evidence.round_trips.iter().copied()).or_else(connects)
}

/// By which sshd's padding is told. On a network that is this quick what makes one round trip longer than another is a machine that has to
/// wake up first: a millisecond, and much beside the padding. There the least counts.
pub(crate) fn quiet_round_trip(evidence: &Evidence) -> Duration {
    const QUICK: Duration = Duration::from_millis(2);
    let middle = round_trip(evidence).map_or(Duration::ZERO, |sample| sample.median);
    let spans = evidence.logins.iter().flat_map(|login| &login.spans);
    let connects = spans.filter(|span| span.phase == Phase::Connect);
    let connects = connects.map(|span| span.duration);
    let all = evidence.round_trips.iter().copied().chain(connects);
    match middle <= QUICK {
        true => all.min().unwrap_or_default(),
        false => middle,
    }
}

/// The phases of a client's logins, in order: medians over those that succeeded, or over all if none has.
pub(crate) fn rows(evidence: &Evidence, by: Client) -> Vec<Row> {
    let logins = counted(evidence, by);
    let round_trip = round_trip(evidence).unwrap_or(Sample {
        median: Duration::ZERO,
        spread: Duration::ZERO,
        count: 0,
    });
    let pad = Pad::of(evidence, &logins, quiet_round_trip(evidence));
    let count = |login: &&Login, phase: Phase| spans(login, phase).count();
    let requests = logins.iter().map(|login| count(login, Phase::KeyProbe));
    let requests = u32::try_from(requests.max().unwrap_or_default()).unwrap_or(u32::MAX);
    let mut rows: Vec<Row> = EXPECTED
        .iter()
        .filter_map(|expected| {
            let taken = |login: &&Login| {
                let mut spans = spans(login, expected.phase).peekable();
                spans.peek()?;
                Some(spans.map(|span| span.duration).sum::<Duration>())
            };
            let sample = Sample::of(logins.iter().filter_map(taken))?;
            let pad = pad.map_or(Duration::ZERO, |pad| {
                pad.in_phase(expected.phase, requests, round_trip.median)
            });
            Some(row(expected, by, sample, &logins, round_trip, pad))
        })
        .collect();
    let (factor, late) = slowness(&rows);
    // What each login that was traced has waited for a processor in a phase is lost to others, however quick the other phases are.
    let contended = |phase: Phase| {
        let fact = format!("trace.phase.{}.contended.time", phase.name());
        evidence.facts.time(&fact).unwrap_or_default()
    };
    let of_server = rows.iter_mut().filter(|row| SERVER.contains(&row.phase));
    of_server.for_each(|row| row.slow_down(factor, late.max(contended(row.phase))));
    rows
}

/// How many times as much as expected the server's own work takes, and by how much it is late each time, as on a machine that has
/// other things to do: what all but one of the telling phases take at least. Any other cause makes other phases longer, or not
/// all of them.
fn slowness(rows: &[Row]) -> (f64, Duration) {
    let telling = || {
        let telling = rows.iter().filter(|row| TELLING.contains(&row.phase));
        telling.filter(|row| !row.own.is_zero())
    };
    let factor = |row: &Row| (row.own + row.excess).as_secs_f64() / row.own.as_secs_f64();
    let mut factors: Vec<f64> = telling().map(factor).collect();
    factors.sort_by(f64::total_cmp);
    let mut late: Vec<Duration> = telling().map(|row| row.excess).collect();
    late.sort_unstable();
    let factor = factors.get(1).copied().unwrap_or(1.0).max(1.0);
    (factor, late.get(1).copied().unwrap_or_default())
}

/// The logins of a client that figures are made of.
pub(crate) fn counted(evidence: &Evidence, by: Client) -> Vec<&Login> {
    let of_client = || evidence.logins.iter().filter(|login| login.by == by);
    let good: Vec<&Login> = of_client()
        .filter(|login| login.failure.is_none())
        .collect();
    if good.is_empty() {
        of_client().collect()
    } else {
        good
    }
}

fn spans(login: &Login, phase: Phase) -> impl Iterator<Item = &crate::evidence::Span> {
    login.spans.iter().filter(move |span| span.phase == phase)
}

fn row(
    expected: &Expected,
    by: Client,
    sample: Sample,
    logins: &[&Login],
    round_trip: Sample,
    pad: Duration,
) -> Row {
    let own = Duration::from_millis(match by {
        Client::Sshoal => expected.own_ms,
        Client::Ssh => expected.own_of_ssh_ms,
    });
    let plain = round_trip.median * expected.round_trips + pad + own;
    let over = sample.median.saturating_sub(plain);
    let most = match by {
        Client::Sshoal => expected.further,
        // It sends a part of its messages by themselves, and Nagle holds them back.
        Client::Ssh => expected.further * 2,
    };
    let round_trips = expected.round_trips + further(over, own, round_trip.median, most);
    let mut rest = sample.median;
    let mut take = |most: Duration| {
        let part = most.min(rest);
        rest -= part;
        part
    };
    let network = take(round_trip.median * round_trips);
    let pad = take(pad);
    let own = take(own);
    let counts = logins
        .iter()
        .map(|login| spans(login, expected.phase).count());
    let mut details: Vec<String> = Vec::new();
    for span in logins.iter().flat_map(|login| spans(login, expected.phase)) {
        if !span.detail.is_empty() && !details.contains(&span.detail) {
            details.push(span.detail.clone());
        }
    }
    let noise = Sample {
        spread: sample.spread.max(round_trip.spread * round_trips),
        ..sample
    };
    Row {
        phase: expected.phase,
        sample,
        requests: counts.max().unwrap_or_default(),
        round_trips,
        network,
        pad,
        own,
        stretch: Duration::ZERO,
        excess: rest,
        floor: noise.floor(),
        details,
    }
}

/// How many further round trips `over` is, if it is just that: what is lost to a cause is seldom a multiple of them.
fn further(over: Duration, own: Duration, round_trip: Duration, most: u32) -> u32 {
    let fits = |trips: &u32| {
        let trips = round_trip * *trips;
        // The own share is the most there may be: a part of the trip may stand in what is not used of it.
        over <= trips + trips / 10 && over + own >= trips
    };
    if over.is_zero() || round_trip < LEAST / 2 {
        return 0;
    }
    (1..=most).find(fits).unwrap_or_default()
}

#[cfg(test)]
#[path = "reckoning_tests.rs"]
mod tests;
