//! Thousands of simulated hosts in one process.
//!
//! Each has its own address in 127.0.0.0/8, its own ed25519 key, and a handful of commands; any may
//! be faulty ([`fault::Fault`]). They speak SSH by russh's server, not by sshoal's own code, so that a
//! misunderstanding of the protocol cannot hide in both ends. russh numbers channels from 2, so a
//! client that guesses the first channel's number, as it may with sshd, must not do so here.
//!
//! | command | does |
//! | --- | --- |
//! | `true`, `false`, `exit N` | ends with that status |
//! | `echo WORDS`, `echo WORDS >&2` | prints the words; no quoting |
//! | `hostname`, `uptime` | print `sim` and the host's index, and as many days |
//! | `sleep S` | waits S seconds |
//! | `yes-bytes N` | prints N bytes of `yes` |
//! | `slow N MS` | prints the numbers 1 to N, one every MS milliseconds |
//! | `cat`, `wc -c` | copies, or counts, standard input |
//! | `kill-self SIGNAL` | ends by that signal |
//! | `count KEY`, `count-read KEY` | increment, or read, the host's counter KEY |
//!
//! Anything else ends with status 127 and a message. A signal (RFC 4254, 6.9) ends what runs.
//!
//! A connection's way: `listen` opens the sockets, `entrance` accepts and does what comes before
//! SSH, `stream` carries the bytes and ends or slows them, `session` authenticates and starts
//! commands, `command` and `job` run them.
//!
//! ```
//! use sshoal_testbed::simulated::{Simulation, SimulationSpec};
//!
//! let mut spec = SimulationSpec::new(3);
//! spec.faults.push("1=reset-at:auth+100".parse()?);
//! let simulation = Simulation::start(&spec)?;
//! assert_eq!(simulation.addresses().len(), 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod behaviour;
mod command;
mod counters;
mod entrance;
pub mod fault;
mod host;
mod job;
mod keys;
mod listen;
mod meter;
mod session;
mod simulation;
mod spec;
mod stream;

pub use counters::Totals;
pub use meter::Traffic;
pub use simulation::{Simulation, SimulationError};
pub use spec::SimulationSpec;
