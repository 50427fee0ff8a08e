//! Sans-I/O fan-out: who starts when, limits, deadlines, retries, results.

mod event;
mod failure;
mod fleet;
mod outcome;
mod plan;
mod progress;

pub use event::{Action, Event, EventError, Gate, Phase};
pub use failure::{Failure, FailureKind, UnknownFailureKind};
pub use fleet::Fleet;
pub use outcome::{Fate, HostResult, Outcome, PhaseTimes};
pub use plan::{Deadlines, HostId, Job, JumpId, Limits, MAX_JOBS, PlanError, RetryPolicy};
pub use progress::Progress;
