//! Warm connections: the hosts of a run stay logged in to, and every program that knows OpenSSH's ControlPath shares them.
//!
//! A [`Pool`] is what a run's connections are kept for ([`Keeper`](sshoal_net::Keeper)). There is one for a user: whoever
//! holds the [`Lock`] of his [`Folder`]. In the folder each host has a socket that speaks OpenSSH's multiplexing protocol
//! (`sshoal-mux`), and the pool has one of its own, at which it is asked how it is, or to end ([`Ask`]).
//!
//! ```text
//!   passenger (ssh -S) --socket--> passenger task <--seat--> dock: one connection, served where the run performs its host
//!                                       |                      ^
//!                                       +--> Host: which connection has room for another session; a further one
//! ```
//!
//! All of a host happens in the thread of its connection; a passenger that does not read, or dies, holds up its own seat only.

mod control;
mod dock;
mod folder;
mod host;
mod modes;
mod passenger;
mod pool;
mod receive;
mod seat;
mod session;
mod stdio;

pub use control::{Ask, AskError, HostStatus, State, Status, ask};
pub use folder::{Folder, FolderError, Lock};
pub use pool::{MAX_CONNECTIONS, MAX_PASSENGERS, Member, Pool};
