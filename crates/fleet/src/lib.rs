//! Sans-I/O fan-out: who starts when, limits, deadlines, retries, results.
//!
//! A [`Fleet`] runs a command on many hosts without touching one of them. It says what to do ([`Action`]), is
//! told what happened ([`Event`]), and yields one [`HostResult`] a host. Time is an argument and randomness a
//! seed: the same calls give the same run, so that ten thousand hosts with faults can be simulated in one
//! thread (`tests/simulation.rs`).
//!
//! ```text
//!      jobs, limits, deadlines                         one result a host
//!                 |                                           ^
//!   +-------------v-------------------------------------------|------+
//!   |  lanes --> in flight: lookup, connect, login, session, command |
//!   |    ^           |  gates: login, signature, session             |
//!   |    +-back-off--+                                               |
//!   +-------------|-------------------------------------------^------+
//!                 v poll_action, poll_timeout                 | handle, try_pass
//!            the performer: sockets, timers, connections
//! ```
//!
//! A performer whose hosts all answer at once:
//!
//! ```
//! use std::time::Instant;
//! use sshoal_fleet::{
//!     Action, Deadlines, Event, Fleet, Gate, HostId, Job, Limits, Outcome, Phase, RetryPolicy,
//! };
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let jobs = (0..1000).map(|host| Job { host: HostId(host), via: None });
//! let mut fleet = Fleet::new(jobs, Limits::default(), Deadlines::default(), RetryPolicy::default(), 7)?;
//! let mut succeeded = 0;
//! while !fleet.is_done() {
//!     let now = Instant::now();
//!     while let Some(action) = fleet.poll_action(now) {
//!         let Action::Start { host, .. } = action else { continue };
//!         fleet.handle(now, host, Event::Entered(Phase::Connect))?;
//!         assert!(fleet.try_pass(now, host, Gate::Login)?);
//!         fleet.handle(now, host, Event::Entered(Phase::Login))?;
//!         assert!(fleet.try_pass(now, host, Gate::Session)?);
//!         fleet.handle(now, host, Event::Entered(Phase::Session))?;
//!         fleet.handle(now, host, Event::Entered(Phase::Command))?;
//!         fleet.handle(now, host, Event::Finished(Outcome::Exit(0)))?;
//!     }
//!     while let Some(result) = fleet.poll_result() {
//!         succeeded += u32::from(result.outcome.is_success());
//!     }
//!     // A real performer now sleeps until something happens or `fleet.poll_timeout()` is due.
//! }
//! assert_eq!(succeeded, 1000);
//! # Ok(())
//! # }
//! ```

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

pub use event::{Action, Event, EventError, Gate, JumpEvent, Phase};
pub use failure::{Failure, FailureKind, UnknownFailureKind};
pub use fleet::Fleet;
pub use outcome::{Fate, HostResult, KillVerdict, Outcome, PhaseTimes};
pub use plan::{Deadlines, HostId, Job, JumpId, Limits, MAX_JOBS, PlanError, RetryPolicy, Rolling};
pub use progress::Progress;
