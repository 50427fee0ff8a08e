//! Sans-I/O fan-out: who starts when, limits, deadlines, retries, results.

mod back_off;
mod event;
mod failure;
mod fleet;
mod host;
mod line;
mod outcome;
mod patience;
mod places;
mod plan;
mod progress;
mod schedule;

pub use event::{Action, Event, EventError, Gate, Phase};
pub use failure::{Failure, FailureKind, UnknownFailureKind};
pub use fleet::Fleet;
pub use outcome::{Fate, HostResult, Outcome, PhaseTimes};
pub use plan::{Deadlines, HostId, Job, JumpId, Limits, MAX_JOBS, PlanError, RetryPolicy};
pub use progress::Progress;
