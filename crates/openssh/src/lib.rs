//! The installed `ssh` as a transport, for hosts that the native one cannot reach.
//!
//! One process a host and session:
//!
//! ```text
//!   CommandLine --> Ssh (started by sshoal-spawn) --> stdout, stderr     the command's
//!                            |  log (-E)
//!                            v
//!                           Log  --> Progress: how far it is, for deadlines and limits
//!                            |
//!                            v  exit status
//!                       Log::end --> End: exit, signal, or a failure with its kind and the command's fate
//! ```
//!
//! ssh tells two kinds of things on its standard error: its own words and those of the remote command. Nothing marks
//! which are which, so its own are taken aside: `-E` has them written into a pipe of ours, at LogLevel DEBUG1. `-v`
//! would do the same for the level, but also keeps the standard error of a ControlPersist master open (ssh.c,
//! `control_persist_detach`). What can be read there, and nothing else, decides what became of a host: in which phase it
//! is, which kind of failure it met, and whether its command may have run.
//!
//! Nothing here waits for a host: who performs it (`sshoal-net`) reads the pipes and keeps the deadlines.

mod arguments;
mod ask_pass;
mod log;
mod process;
mod verdict;
mod words;

pub use arguments::{CommandLine, HostKeyChecking};
pub use ask_pass::{AskPass, PASSWORD_VARIABLE, answer};
pub use log::{Log, Progress, farewell};
pub use process::{Input, Ssh, Surroundings};
pub use verdict::End;
pub use words::{WordError, check_words};
