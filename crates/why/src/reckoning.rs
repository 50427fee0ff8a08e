//! What each phase of a login takes, what it should take, and what is therefore lost in it.
//!
//! ```text
//! measured (median over the logins)
//!   = round trips x round-trip time      the network
//!   + sshd's padding                     key probe and signed request, of OpenSSH only
//!   + own share                          what this phase costs both ends where nothing is wrong
//!   + excess                             what a cause has to explain
//! ```
//!
//! Nothing counts as lost below [`LEAST`], or below three times what the repetitions differ by.

use std::time::Duration;

use crate::evidence::{Client, Evidence, Login, Phase};

/// A login is not made slow by less.
pub(crate) const LEAST: Duration = Duration::from_millis(10);

/// So many times the spread of the repetitions is noise.
const SPREADS: u32 = 3;

/// sshd pads each request that names a key to a time of its own for each user: 5 ms and up to 4.2 more, doubled until the
/// request's own work has room in it (auth2.c, `user_specific_delay`, `ensure_minimum_time_since`).
const PAD_LEAST: Duration = Duration::from_millis(5);
const PAD_MOST: Duration = Duration::from_micros(9_200);

/// sshd gives a login two minutes (LoginGraceTime): so often 5 ms may be doubled.
const MAX_DOUBLINGS: u32 = 14;

/// The spread of a normal distribution is this many times the median distance from the median.
const DISTANCES: f64 = 1.4826;

/// What is expected of a phase.
struct Expected {
    phase: Phase,
    /// Waits for an answer.
    round_trips: u32,
    /// One more, where sshd's Nagle or the client's holds back a second write until the first is acknowledged.
    further: u32,
    /// Whether sshd pads it.
    padded: bool,
    /// The most that it costs both ends where nothing is wrong, in milliseconds, with our client.
    own_ms: u64,
    /// The same with ssh, whose process must start, and whose log lines tell its phases.
    own_of_ssh_ms: u64,
}

const fn expected(phase: Phase, round_trips: u32, further: u32, own: [u64; 2]) -> Expected {
    Expected {
        phase,
        round_trips,
        further,
        padded: matches!(phase, Phase::KeyProbe | Phase::SignedRequest),
        own_ms: own[0],
        own_of_ssh_ms: own[1],
    }
}

/// What clean logins over loopback are expected to take, generously: estimates, not yet measured in a quiet hour. sshd's
/// fork and re-execution take 6 to 10 ms of the banner, a shell's start 3 to 8 ms of the first output.
const EXPECTED: [Expected; 11] = [
    expected(Phase::Local, 0, 0, [5, 30]),
    expected(Phase::Lookup, 0, 0, [20, 20]),
    expected(Phase::Connect, 1, 0, [2, 4]),
    expected(Phase::Banner, 1, 0, [12, 14]),
    expected(Phase::KeyExchangeInit, 1, 1, [4, 10]),
    expected(Phase::KeyExchange, 1, 1, [8, 20]),
    expected(Phase::FirstRequest, 2, 1, [8, 12]),
    expected(Phase::KeyProbe, 1, 0, [2, 4]),
    expected(Phase::SignedRequest, 1, 1, [8, 12]),
    expected(Phase::ChannelOpen, 1, 1, [12, 16]),
    expected(Phase::FirstOutput, 1, 1, [10, 15]),
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

    /// What it should take at most.
    pub(crate) fn expected(&self) -> Duration {
        self.sample.median - self.excess
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

/// sshd's padding for this user, as the logins of a client show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pad {
    /// What a request is padded to at least.
    pub(crate) base: Duration,
    /// How often that is doubled in a key probe.
    pub(crate) doublings: u32,
}

/// Which doubling of which padding a request of this length, without the round trip, fits.
pub(crate) fn pad(request: Duration) -> Option<Pad> {
    // What else there is in a request is small beside the padding.
    let slack = Duration::from_micros(1_500);
    (0..=MAX_DOUBLINGS).find_map(|doublings| {
        let base = request / 2_u32.pow(doublings);
        let fits = base + slack / 2 >= PAD_LEAST && base <= PAD_MOST + slack / 2_u32.pow(doublings);
        fits.then(|| Pad {
            base: base.clamp(PAD_LEAST, PAD_MOST),
            doublings,
        })
    })
}

/// The phases of a client's logins, in order: medians over those that succeeded, or over all if none has.
pub(crate) fn rows(evidence: &Evidence, by: Client) -> Vec<Row> {
    let logins = counted(evidence, by);
    let round_trip = round_trip(evidence).unwrap_or(Sample {
        median: Duration::ZERO,
        spread: Duration::ZERO,
        count: 0,
    });
    let pad = padding(evidence, &logins, round_trip.median).map_or(Duration::ZERO, |pad| pad.base);
    let rows = EXPECTED.iter().filter_map(|expected| {
        let taken = |login: &&Login| {
            let mut spans = spans(login, expected.phase).peekable();
            spans.peek()?;
            Some(spans.map(|span| span.duration).sum::<Duration>())
        };
        let sample = Sample::of(logins.iter().filter_map(taken))?;
        Some(row(expected, by, sample, &logins, round_trip, pad))
    });
    rows.collect()
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

/// The padding, if the server is one that pads: from the key probe, which has little else in it, or else the most there is.
pub(crate) fn padding(evidence: &Evidence, logins: &[&Login], round_trip: Duration) -> Option<Pad> {
    let identification = evidence.identification.as_deref();
    if identification.is_some_and(|server| !server.contains("OpenSSH")) {
        return None;
    }
    let probes = logins
        .iter()
        .flat_map(|login| spans(login, Phase::KeyProbe));
    let probe = Sample::of(probes.map(|span| span.duration.saturating_sub(round_trip)));
    let found = probe.and_then(|probe| pad(probe.median));
    Some(found.unwrap_or(Pad {
        base: PAD_MOST,
        doublings: 0,
    }))
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
    let pad = if expected.padded { pad } else { Duration::ZERO };
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
