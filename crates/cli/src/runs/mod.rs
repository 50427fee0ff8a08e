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

use sshoal_journal::run::Left;
use sshoal_net::KnownRun;

pub(crate) use args::{Journal, JournalArgs, ResumeArgs, RunsArgs, ShowArgs};
pub(crate) use list::run as list;
pub(crate) use reads::Reads;
pub(crate) use resume::run as resume;
pub(crate) use show::run as show;
pub(crate) use sitting::{Further, Sitting, arguments, target};

/// What is to be said of a run that may lack records ([`KnownRun::may_lack_records`]).
pub(crate) fn doubt(run: &KnownRun) -> String {
    let hosts = match run.state.count(Left::ToRun) {
        1 => "1 host that is".to_owned(),
        hosts => format!("{hosts} hosts that are"),
    };
    format!(
        "the machine was started anew since run {} was cut off, and --journal=write survives no loss of power: the command may have run on \
         {hosts} listed as not started",
        run.id
    )
}
