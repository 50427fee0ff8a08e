//! What a run says: live lines, gathered output, JSON Lines, files, progress, summary.
//!
//! [`Reporter`] is given the output and the results of all hosts and writes to two injected [`Sink`]s. Bytes
//! from a host reach a terminal only sanitised; files and pipes get them untouched (invariant 6).
//!
//! ```text
//! handle_output -> outdir                          HOST.out, HOST.err
//!              \-> lines  -> console               as they come: whole lines, "host: line"
//!              \-> kept   -> gather, diff, json    in memory, then in the spill file, until host or run ends
//! handle_result -> tally -> summary, exit_status
//!              \-> json  -> last_run               results for --retry-failed
//! tick          -> console, progress
//! ```
//!
//! The JSON schema is documented in docs/json.md, the exit status in docs/exit-status.md.

mod capture;
mod console;
mod diff;
mod exit_status;
mod gather;
mod host;
mod json;
mod kept;
mod killed;
mod last_run;
mod lines;
mod options;
mod outdir;
mod process;
mod progress;
#[cfg(test)]
mod recorded;
mod reporter;
mod result_line;
mod sanitise;
mod spill;
mod summary;
mod transferred;

pub use console::{Sink, Stream, Terminal};
pub use diff::MAX_DIFF;
pub use exit_status::{
    BROKEN_PIPE, COMMAND_FAILED, Counts, CutShort, ExitPolicy, HOST_FAILED, INTERRUPTED, OK,
    OUTPUT_FAILED, SIGNALLED, UNKNOWN_STATUS, USAGE, exit_status, remote_status, signal_status,
};
pub use host::{Host, Way};
pub use json::{SCHEMA_VERSION, dry_run_record, target_options};
pub use kept::MAX_KEPT;
pub use last_run::{
    LastRunError, PastEnding, PastHost, last_run_id, last_run_path, parse_last_run, read_last_run,
};
pub use lines::MAX_LINE;
pub use options::{Layout, Options, Verbosity};
pub use outdir::file_names;
pub use process::color_wanted;
pub use reporter::{Reporter, RunEnd};
pub use sanitise::{push_visible, push_visible_lines, visible};
pub use summary::{Example, FailureGroup, Reason, Summary};
pub use transferred::{Moving, Transferred};
