//! Journals of runs: where they are, how one is written while its run is on, and how it is read afterwards.
//!
//! A run's journal is a file of its own, locked by the process that carries the run out. What goes into it is the `journal`
//! crate's affair; here it is decided when. Before a command leaves its [`Intent`] is written: in one write(2) with
//! [`Durability::Write`], so that it is there whatever becomes of this process, and on the disk with [`Durability::Sync`], for
//! as many hosts at a time as wait. Results and output are written a batch at a time, before the observer hears of them.

mod boot;
mod endings;
mod folder;
mod intent;
mod read;
mod sync;
mod writer;

pub use endings::{ending_of, result_of, verdict_of};
pub use folder::{FindError, find_run, known_runs, remove_run, run_is_on, run_path, runs_folder};
pub(crate) use intent::Intent;
pub use read::{KnownRun, ReadError, read_run};
pub use writer::{Durability, NewRun, RunJournal};
