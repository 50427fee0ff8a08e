//! A client's login as a row of phases, each taken apart into shares. All shares add up to the whole.

use std::time::Duration;

use crate::evidence::{Client, Phase};
use crate::ledger::Ledger;
use crate::reckoning::{Row, Sample};

/// The login of a client: phases one behind the other, each as long as in the middle of all its logins.
#[derive(Debug, Clone)]
pub struct Timeline {
    /// Whose login it is.
    pub by: Client,
    /// How many logins succeeded. Where there is none the figures are of those that failed.
    pub logins: usize,
    /// The phases that were measured, in order.
    pub stages: Vec<Stage>,
    /// What lies between the phases.
    pub between: Duration,
    /// All of it.
    pub total: Duration,
    /// What no cause explains, with what lies between the phases.
    pub unexplained: Duration,
}

/// A phase of it.
#[derive(Debug, Clone)]
pub struct Stage {
    /// Which.
    pub phase: Phase,
    /// When it begins, if those before it take as long as they do in the middle.
    pub start: Duration,
    /// How long it takes.
    pub sample: Sample,
    /// How often it came: key probes.
    pub requests: usize,
    /// What it consists of; adds up to the sample's median.
    pub shares: Vec<Share>,
    /// What it was about: foreign text.
    pub details: Vec<String>,
}

/// A part of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// What it is.
    pub of: Part,
    /// How long it takes.
    pub time: Duration,
}

/// What a share may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Waiting for this many round trips.
    Network(u32),
    /// sshd's padding against the timing of answers.
    Padding,
    /// What both ends do in this phase where nothing is wrong.
    Own,
    /// A cause, by its name.
    Cause(&'static str),
    /// What is left.
    Unexplained,
}

impl Part {
    /// Its name in JSON; that of a cause is the cause's.
    pub const fn name(self) -> &'static str {
        match self {
            Part::Network(_) => "network",
            Part::Padding => "padding",
            Part::Own => "own",
            Part::Cause(id) => id,
            Part::Unexplained => "unexplained",
        }
    }
}

impl Timeline {
    pub(crate) fn of(ledger: &Ledger) -> Timeline {
        let mut start = Duration::ZERO;
        let mut stages = Vec::new();
        for row in &ledger.rows {
            stages.push(Stage {
                phase: row.phase,
                start,
                sample: row.sample,
                requests: row.requests,
                shares: shares(row, ledger),
                details: row.details.clone(),
            });
            start += row.sample.median;
        }
        let left = stages.iter().flat_map(|stage| &stage.shares);
        let left = left.filter(|share| share.of == Part::Unexplained);
        Timeline {
            by: ledger.by,
            logins: ledger.logins,
            unexplained: left.map(|share| share.time).sum::<Duration>() + ledger.between,
            stages,
            between: ledger.between,
            total: ledger.total(),
        }
    }

    /// A phase, if it was measured.
    pub fn stage(&self, phase: Phase) -> Option<&Stage> {
        self.stages.iter().find(|stage| stage.phase == phase)
    }
}

fn shares(row: &Row, ledger: &Ledger) -> Vec<Share> {
    let taken = ledger.taken.iter().filter(|taken| taken.phase == row.phase);
    let causes = taken.map(|taken| (Part::Cause(taken.cause), taken.time));
    let known = [
        (Part::Network(row.round_trips), row.network),
        (Part::Padding, row.pad),
        (Part::Own, row.own),
    ];
    let left = [(Part::Unexplained, ledger.remaining(row.phase))];
    let all = known.into_iter().chain(causes).chain(left);
    all.filter(|(_, time)| !time.is_zero())
        .map(|(of, time)| Share { of, time })
        .collect()
}
