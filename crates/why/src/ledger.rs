//! Who has taken how much of what is lost in each phase, so that nothing is explained twice and what no cause explains is
//! left over.

use std::time::Duration;

use crate::evidence::{Client, Evidence, Login, Phase};
use crate::padding::Pad;
use crate::reckoning::{self, Row, Sample};

/// A client's phases, and what causes have taken of them.
#[derive(Debug, Clone)]
pub(crate) struct Ledger {
    pub(crate) by: Client,
    pub(crate) rows: Vec<Row>,
    /// How many logins succeeded. Where there is none the figures are of those that failed.
    pub(crate) logins: usize,
    /// What lies between the phases.
    pub(crate) between: Duration,
    pub(crate) pad: Option<Pad>,
    pub(crate) taken: Vec<Taken>,
}

/// What a cause explains of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) phase: Phase,
    pub(crate) cause: &'static str,
    pub(crate) time: Duration,
}

impl Ledger {
    /// The ledger of a client that has logged in at least once, with nothing taken.
    pub(crate) fn new(evidence: &Evidence, by: Client) -> Option<Ledger> {
        let logins = reckoning::counted(evidence, by);
        Some(Ledger {
            by,
            between: Sample::of(logins.iter().map(|login| gaps(login)))?.median,
            pad: Pad::of(evidence, &logins, reckoning::quiet_round_trip(evidence)),
            logins: logins
                .iter()
                .filter(|login| login.failure.is_none())
                .count(),
            rows: reckoning::rows(evidence, by),
            taken: Vec::new(),
        })
    }

    pub(crate) fn row(&self, phase: Phase) -> Option<&Row> {
        self.rows.iter().find(|row| row.phase == phase)
    }

    /// What is lost in a phase and not taken yet.
    pub(crate) fn remaining(&self, phase: Phase) -> Duration {
        let Some(row) = self.row(phase) else {
            return Duration::ZERO;
        };
        let taken = self.taken.iter().filter(|taken| taken.phase == phase);
        row.excess
            .saturating_sub(taken.map(|taken| taken.time).sum())
    }

    /// What a cause has taken.
    pub(crate) fn taken_by(&self, cause: &str) -> Duration {
        let taken = self.taken.iter().filter(|taken| taken.cause == cause);
        taken.map(|taken| taken.time).sum()
    }

    /// Whether more than noise is lost in a phase and not taken yet.
    pub(crate) fn is_lost(&self, phase: Phase) -> bool {
        let floor = self.row(phase).map(|row| row.floor);
        floor.is_some_and(|floor| self.remaining(phase) >= floor)
    }

    /// Takes for a cause; no more than there is.
    pub(crate) fn take(&mut self, cause: &'static str, shares: &[(Phase, Duration)]) {
        for &(phase, time) in shares {
            let time = time.min(self.remaining(phase));
            if !time.is_zero() {
                self.taken.push(Taken { phase, cause, time });
            }
        }
    }

    /// Whether more than noise is lost in a phase, what all phases are stretched by included.
    pub(crate) fn is_slow(&self, phase: Phase) -> bool {
        let row = self.row(phase);
        row.is_some_and(|row| self.remaining(phase) + row.stretch >= row.floor)
    }

    /// Lets a cause take of what all phases are stretched by, too.
    pub(crate) fn lose_stretch(&mut self, shares: &[(Phase, Duration)]) {
        for row in &mut self.rows {
            if let Some((_, share)) = shares.iter().find(|(phase, _)| *phase == row.phase) {
                let lost = row.stretch.min(*share);
                row.own -= lost;
                row.excess += lost;
                row.stretch -= lost;
            }
        }
    }

    /// What must be exceeded in these phases together to count.
    pub(crate) fn floor(&self, shares: &[(Phase, Duration)]) -> Duration {
        let floors = shares
            .iter()
            .filter_map(|(phase, _)| Some(self.row(*phase)?.floor));
        floors.max().unwrap_or(reckoning::LEAST)
    }

    /// All phases, and what lies between them.
    pub(crate) fn total(&self) -> Duration {
        let phases: Duration = self.rows.iter().map(|row| row.sample.median).sum();
        phases + self.between
    }
}

/// The time of a login in which no phase was under way.
fn gaps(login: &Login) -> Duration {
    let mut spans: Vec<_> = login
        .spans
        .iter()
        .map(|span| (span.start, span.duration))
        .collect();
    spans.sort_unstable();
    let mut end = Duration::ZERO;
    let mut gaps = Duration::ZERO;
    for (start, duration) in spans {
        gaps += start.saturating_sub(end);
        end = end.max(start.saturating_add(duration));
    }
    gaps
}
