//! Why a login is slow, and what to change: what was measured is judged, and reported. Pure: values in, values out, no clock,
//! no file, no socket. Measuring is the caller's part.
//!
//! ```text
//! Evidence --> reckoning    each phase: round trips, padding, usual work, and what is lost beyond them
//!          --> causes       a table; signs (tests of facts and phases) and a way to reckon the cost, as data
//!          --> Diagnosis    findings with their cost, a verdict on each cause and resource, the rest unexplained
//!          --> report::{text, json, html, chrome_trace}, fix_script, Fleet (many hosts)
//! ```
//!
//! A login in which nothing is lost beyond noise has no finding. Whatever is lost and explained by no cause is told as
//! unexplained: the shares of each phase add up to it.

mod causes;
mod cost;
mod diagnosis;
mod evidence;
mod fix;
#[cfg(test)]
mod fixtures;
pub mod fleet;
mod ledger;
mod padding;
mod reckoning;
pub mod report;
mod resources;
mod signs;
mod timeline;
mod words;

pub use causes::{Cause, Payer, Resource, all as causes};
pub use diagnosis::{Certainty, Diagnosis, Finding, Status, Verdict};
pub use evidence::{Client, Evidence, Fact, Facts, Login, Phase, Span, Tier};
pub use fix::{Fix, Place, script as fix_script};
pub use fleet::Fleet;
pub use reckoning::Sample;
pub use resources::ResourceVerdict;
pub use timeline::{Part, Share, Stage, Timeline};
