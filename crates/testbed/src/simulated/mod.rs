//! Thousands of simulated hosts in one process.
//!
//! Each has its own address in 127.0.0.0/8, its own ed25519 key, and a handful of
//! commands; any may be faulty. They speak SSH by russh's server, not by sshoal's own code, so that
//! a misunderstanding of the protocol cannot hide in both ends.
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
