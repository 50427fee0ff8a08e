//! How long a host may take before it counts as slow.

use std::time::Duration;

/// No host is slow before this, whatever the others take: scheduling and retransmission delays of a busy
/// LAN stay below.
pub(crate) const LEAST_PATIENCE: Duration = Duration::from_millis(100);

/// Judges slowness by what the others took, with the estimator that TCP uses for its retransmission timeout
/// (RFC 6298 section 2): a smoothed mean plus four times the smoothed deviation, at least twice the mean.
///
/// Slow hosts enter the estimate too when they get there in the end. A client that is itself overloaded
/// therefore grows more patient, instead of taking on more hosts and making everything slower still.
#[derive(Debug)]
pub(crate) struct Patience {
    /// Holds until the first host got there.
    initial: Duration,
    estimate: Option<Estimate>,
}

#[derive(Debug, Clone, Copy)]
struct Estimate {
    mean: Duration,
    deviation: Duration,
}

impl Patience {
    pub(crate) fn new(initial: Duration) -> Patience {
        Patience {
            initial,
            estimate: None,
        }
    }

    /// How long a host may take now.
    pub(crate) fn span(&self) -> Duration {
        match self.estimate {
            None => self.initial,
            Some(Estimate { mean, deviation }) => {
                let margin = mean.max(deviation.saturating_mul(4));
                mean.saturating_add(margin).max(LEAST_PATIENCE)
            }
        }
    }

    /// Learns what one host took.
    pub(crate) fn learn(&mut self, took: Duration) {
        self.estimate = Some(match self.estimate {
            None => Estimate {
                mean: took,
                deviation: took / 2,
            },
            Some(Estimate { mean, deviation }) => Estimate {
                mean: mean / 8 * 7 + took / 8,
                deviation: deviation / 4 * 3 + mean.abs_diff(took) / 4,
            },
        });
    }
}

#[cfg(test)]
#[path = "patience_tests.rs"]
mod tests;
