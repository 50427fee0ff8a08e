//! From single measurements to a figure for each combination: the median of its rounds.

use std::time::Duration;

use sshoal_fleet::Outcome;
use sshoal_net::{Leg, Measured};

use super::pairs::{By, Pair};
use super::trials::Done;

/// The least time that is told from none.
const TICK: Duration = Duration::from_micros(1);

/// A combination, and what was measured of it by one client.
pub(super) struct Row {
    pub(super) pair: Pair,
    pub(super) by: By,
    pub(super) down: Option<Direction>,
    pub(super) up: Option<Direction>,
    /// Those that have measured all that there is to be measured, in their order.
    pub(super) rounds: Vec<Round>,
    /// Why a round has measured nothing.
    pub(super) failure: Option<String>,
}

/// What there is to be measured: all rows of a report the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ways {
    Both,
    /// Nothing comes from the host: its SFTP has no /dev/zero.
    Up,
}

/// One round of a combination, both directions together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Round {
    /// Octets a second: of as much down as up.
    pub(super) rate: f64,
    pub(super) cost: Cost,
}

/// Seconds of CPU for 10^9 octets each way, of an end whose time is known for all ways.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Cost {
    pub(super) client: Option<f64>,
    pub(super) server: Option<f64>,
}

/// One direction, in octets a second and in seconds of CPU for 10^9 octets; medians.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Direction {
    pub(super) rate: f64,
    /// All rounds, in their order.
    pub(super) rates: Vec<f64>,
    pub(super) client_cpu: Option<f64>,
    pub(super) server_cpu: Option<f64>,
}

impl Row {
    pub(super) fn new(pair: Pair, by: By, ways: Ways, rounds: &[&Done]) -> Row {
        let legs = |which: fn(&Measured) -> Option<Leg>| {
            let legs = rounds.iter().filter_map(|done| which(&done.measured));
            Direction::of(&legs.collect::<Vec<_>>())
        };
        Row {
            pair,
            by,
            down: legs(|measured| measured.down),
            up: legs(|measured| measured.up),
            rounds: rounds
                .iter()
                .filter_map(|done| Round::of(&done.measured, ways))
                .collect(),
            failure: rounds.iter().find_map(|done| failure(done)),
        }
    }

    /// Both directions as one rate, by their medians; `None` if one is missing that others have: the rest is no match for
    /// theirs.
    pub(super) fn rate(&self) -> Option<f64> {
        let rate = |direction: &Option<Direction>| direction.as_ref().map(|it| it.rate);
        if self.rounds.is_empty() {
            return None;
        }
        Some(together(rate(&self.down), rate(&self.up)?))
    }

    pub(super) fn cost(&self) -> Cost {
        let directions = [&self.down, &self.up].into_iter().flatten();
        Cost::of_all(directions.map(|it| (it.client_cpu, it.server_cpu)))
    }
}

impl Cost {
    /// Of all ways, each with what it costs the client and the server.
    fn of_all(ways: impl Iterator<Item = (Option<f64>, Option<f64>)>) -> Cost {
        let (clients, servers): (Vec<_>, Vec<_>) = ways.unzip();
        Cost {
            client: clients.into_iter().sum(),
            server: servers.into_iter().sum(),
        }
    }

    /// This and another one, of the ends that both know; `None` if there is none: where one lacks a part it is no cheaper for it.
    pub(super) fn beside(&self, other: &Cost) -> Option<(f64, f64)> {
        let ends = [self.client.zip(other.client), self.server.zip(other.server)];
        let ends = ends.into_iter().flatten();
        ends.reduce(|(one, other), (more, of_other)| (one + more, other + of_other))
    }
}

impl Round {
    fn of(measured: &Measured, ways: Ways) -> Option<Round> {
        let (down, up) = (measured.down, measured.up?);
        if down.is_none() && ways == Ways::Both {
            return None;
        }
        let legs = [down, Some(up)].into_iter().flatten();
        let costs = legs.map(|leg| {
            let cost = |cpu: Duration| cpu.as_secs_f64() * 1e9 / leg.octets as f64;
            (leg.client_cpu.map(cost), leg.server_cpu.map(cost))
        });
        Some(Round {
            rate: together(down.as_ref().map(rate), rate(&up)),
            cost: Cost::of_all(costs),
        })
    }
}

/// The rate of as much down as up.
fn together(down: Option<f64>, up: f64) -> f64 {
    match down {
        Some(down) => 2.0 / (1.0 / down + 1.0 / up),
        None => up,
    }
}

impl Direction {
    fn of(legs: &[Leg]) -> Option<Direction> {
        let rates: Vec<f64> = legs.iter().map(rate).collect();
        let cost = |which: fn(&Leg) -> Option<Duration>| {
            let costs = legs.iter().filter_map(|leg| {
                let cpu = which(leg)?;
                Some(cpu.as_secs_f64() * 1e9 / leg.octets as f64)
            });
            median(costs.collect())
        };
        Some(Direction {
            rate: median(rates.clone())?,
            rates,
            client_cpu: cost(|leg| leg.client_cpu),
            server_cpu: cost(|leg| leg.server_cpu),
        })
    }

    /// How far the furthest round is from the median, as a part of it.
    pub(super) fn spread(&self) -> f64 {
        let distances = self.rates.iter().map(|rate| (rate - self.rate).abs());
        distances.fold(0.0, f64::max) / self.rate
    }
}

/// Octets a second. A clock that is too coarse for what was moved counts as a tick of it.
pub(super) fn rate(leg: &Leg) -> f64 {
    leg.octets as f64 / leg.elapsed.max(TICK).as_secs_f64()
}

/// Why a trial has failed, in words.
pub(super) fn failure(done: &Done) -> Option<String> {
    match &done.result.outcome {
        Outcome::Failed { failure, .. } => Some(format!(
            "{}: {}; {}",
            failure.kind, failure.detail, failure.remedy
        )),
        Outcome::NotStarted => Some("not started".to_owned()),
        // How a shell ends that has done everything does not matter.
        _ if done.measured.down.is_some() || done.measured.up.is_some() => None,
        Outcome::Exit(0) => None,
        Outcome::Exit(status) => Some(format!("the commands exited with status {status}")),
        Outcome::Signal { name, .. } => Some(format!("a signal, {name}, ended the commands")),
    }
}

/// The middle one; of an even number the mean of the two in the middle.
pub(super) fn median(mut figures: Vec<f64>) -> Option<f64> {
    figures.sort_by(f64::total_cmp);
    let (middle, is_odd) = (figures.len() / 2, figures.len() % 2 == 1);
    match is_odd {
        true => figures.get(middle).copied(),
        false => Some((figures.get(middle.checked_sub(1)?)? + figures.get(middle)?) / 2.0),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use sshoal_fleet::{HostId, HostResult, PhaseTimes};

    use super::*;

    fn leg(milliseconds: u64) -> Leg {
        Leg {
            octets: 1_000_000,
            elapsed: Duration::from_millis(milliseconds),
            client_cpu: Some(Duration::from_millis(2)),
            server_cpu: None,
        }
    }

    #[test]
    fn the_median_of_the_rounds_counts() {
        let direction = Direction::of(&[leg(10), leg(1000), leg(20)]).unwrap();
        assert_eq!(direction.rate, 50_000_000.0);
        assert_eq!(direction.rates.len(), 3);
        assert_eq!(direction.client_cpu, Some(2.0));
        assert_eq!(direction.server_cpu, None);
        assert_eq!(direction.spread(), 1.0);
        assert_eq!(median(vec![4.0, 1.0]), Some(2.5));
        assert_eq!(median(Vec::new()), None);
    }

    #[test]
    fn a_clock_that_stands_still_leaves_figures_that_can_be_worked_with() {
        let direction = Direction::of(&[leg(0)]).unwrap();
        assert!(direction.rate.is_finite() && direction.spread() == 0.0);
        assert_eq!(Direction::of(&[]), None);
    }

    /// What one round has measured, which had both directions, one or none.
    fn row(down: Option<u64>, up: Option<u64>, ways: Ways) -> Row {
        let measured = Measured {
            down: down.map(leg),
            up: up.map(leg),
            ..Measured::default()
        };
        let result = HostResult {
            host: HostId(0),
            outcome: Outcome::Exit(0),
            attempts: 1,
            times: PhaseTimes::default(),
        };
        let pair = Pair {
            cipher: "aes128-ctr".to_owned(),
            mac: None,
        };
        Row::new(pair, By::Native, ways, &[&Done { result, measured }])
    }

    #[test]
    fn two_directions_make_one_rate() {
        let both = row(Some(10), Some(30), Ways::Both);
        assert!((both.rate().unwrap() - 50_000_000.0).abs() < 1.0);
        let cost = Cost {
            client: Some(4.0),
            server: None,
        };
        assert_eq!(both.cost(), cost);
        assert_eq!(both.rounds.len(), 1);
        assert_eq!(both.rounds[0].cost, cost);
        assert_eq!(both.rate(), Some(both.rounds[0].rate));
    }

    #[test]
    fn costs_are_compared_by_what_both_know() {
        let cost = |client, server| Cost { client, server };
        let whole = cost(Some(1.0), Some(4.0));
        assert_eq!(whole.beside(&cost(Some(2.0), Some(5.0))), Some((5.0, 7.0)));
        assert_eq!(whole.beside(&cost(Some(2.0), None)), Some((1.0, 2.0)));
        assert_eq!(whole.beside(&cost(None, Some(3.0))), Some((4.0, 3.0)));
        assert_eq!(cost(Some(1.0), None).beside(&cost(None, Some(1.0))), None);
        // One of two ways is unknown.
        let ways = [(Some(1.0), Some(2.0)), (Some(3.0), None)];
        assert_eq!(Cost::of_all(ways.into_iter()), cost(Some(4.0), None));
    }

    #[test]
    fn one_direction_alone_counts_only_where_there_is_no_other() {
        let up = row(None, Some(10), Ways::Up);
        assert_eq!(up.rate(), Some(100_000_000.0));
        for (down, up) in [(None, Some(10)), (Some(10), None), (None, None)] {
            let half = row(down, up, Ways::Both);
            assert_eq!((half.rate(), half.rounds.len()), (None, 0));
        }
        assert!(row(None, Some(10), Ways::Both).up.is_some(), "it is shown");
    }
}
