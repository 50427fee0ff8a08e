//! Runs that are kept: each has an identifier and a journal, by which it is listed, shown again and gone on with.
//!
//! [`Sitting`] is what a run knows of its journal while it is prepared; `net` writes it while the run is on.

mod args;
mod list;
mod prune;
mod reads;
mod resume;
mod show;
mod sitting;

pub(crate) use args::{Journal, JournalArgs, ResumeArgs, RunsArgs, ShowArgs};
pub(crate) use list::run as list;
pub(crate) use reads::Reads;
pub(crate) use resume::run as resume;
pub(crate) use show::run as show;
pub(crate) use sitting::{Further, Sitting, arguments, target};
