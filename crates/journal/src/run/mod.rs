//! What a run was to do, and how far it came: a journal's octets, and their replay. Nothing here touches a file.
//!
//! ```text
//! journal: "sshoal R" version(u32)  record*
//! record:  length(u32) CRC-32(u32) body          as in a transfer's journal
//! body:    1 PLAN      what is to be done
//!          2 ARGUMENT  a word of the command line        3 FILE, 4 ONCE  what it reads
//!          5 HOSTS     the next hosts                    6 PLANNED       the plan is whole
//!          7 BEGAN     a process begins                 12 ENDED         it has come to its end
//!          8 SENT      commands are about to leave       9 UNSENT        one is proven not to have run
//!         10 RESULT    a host has ended                 11 OUTPUT        what a command has written
//!         13 KILLED    whether a command is gone        14 STATUS        what the process exits with
//! ```
//!
//! The fields of each are in docs/run-journal.md. Two rules make it of use. SENT is written before the first octet of a command
//! leaves, so that a host without it is known not to have run its command. And replay ends where the first record does
//! not add up: what stood behind it was never relied upon.

mod id;
mod reader;
mod record;
mod state;

pub use id::{NoRunId, RunId};
pub use reader::{RunJournalError, RunReader, VERSION};
pub use record::{
    Boot, Ending, FileIdentity, HostEnding, Known, MAX_OUTPUT, MAX_RECORD, Plan, PlannedHost,
    RunRecord, Verdict, put_hosts, put_output, put_sent,
};
pub use state::{HostState, Left, RunState};

#[cfg(test)]
mod tests;
