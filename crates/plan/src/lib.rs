//! Plan files: named steps, each with hosts, something to do, and the steps it comes after. Nothing here touches a file.
//!
//! ```toml
//! [defaults]
//! hosts-file = "hosts.txt"
//!
//! [step.config]
//! put = ["site.conf", "/etc/site.conf"]
//!
//! [step.restart]
//! after = ["config"]
//! run = "systemctl restart site"
//! batch = "10%"
//! ```
//!
//! The way of a plan, file by file: `file` reads the text, `graph` finds the order and refuses a cycle, `choice` picks steps,
//! `course` says which step may begin next and what one that fails stops. What a setting means is the caller's to know: it is a
//! flag of the command that the step's action belongs to.

mod choice;
mod course;
mod file;
mod graph;
mod problem;
mod step;

pub use choice::UnknownStep;
pub use course::{Course, Outcome};
pub use file::{MAX_NAME, MAX_PLAN, MAX_STEPS, Plan};
pub use graph::{Cycle, Graph};
pub use problem::{PlanError, Problem};
pub use step::{Action, Setting, Step, Value, Verb};
