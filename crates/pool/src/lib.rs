//! Warm connections: the hosts of a run stay logged in to, and every program that knows OpenSSH's ControlPath shares them.
//!
//! A [`Pool`] is a user's, and there is one: whoever holds the [`Lock`] of his [`Folder`]. Each `up` is a [`Round`] in it, what
//! a run's connections are kept for ([`Keeper`](sshoal_net::Keeper)). In the folder each host has a socket that speaks
//! OpenSSH's multiplexing protocol (`sshoal-mux`), and the pool has one of its own, at which it is asked how it is, to end, or
//! to keep more ([`Ask`]).
//!
//! ```text
//!   sshoal up --control--> Conversation --> Performer: a run --> Round --> Host
//!   passenger (ssh -S) --socket--> passenger task <--seat--> dock: one connection, served where the run performs its host
//!                                       |                      ^
//!                                       +--> Host: which connection has room for another session; a further one; when
//!                                            it is logged in to, and when again
//! ```
//!
//! A run of sshoal's own is a guest: it has the commands of all its hosts performed over one socket for each of the pool's
//! threads (`sshoal-warm`), with a seat for each. A transfer is a sharer: for each of its hosts it has a socket of its own, and
//! speaks the connection protocol as a passenger in proxy mode does.
//!
//! All of a host happens in the thread of its connection; a passenger that does not read, or dies, holds up its own seat only.

mod alarm;
mod back_off;
mod control;
mod conversation;
mod deck;
mod dock;
mod entry;
mod folder;
mod forward;
mod guest;
mod host;
mod limits;
mod metrics;
mod metrics_socket;
mod modes;
mod passenger;
mod pool;
mod proxied;
mod proxy;
mod receive;
mod round;
mod seat;
mod session;
mod socket_file;
mod stdio;

pub use control::{
    Alarm, Ask, AskError, HostStatus, Shared, State, Status, ask, board, find, share,
};
pub use conversation::{Answering, Caller, Conversation, Settled, Tell};
pub use entry::{Member, Seating, Terms};
pub use folder::{Folder, FolderError, Lock};
pub use forward::{MAX_FORWARDED, MAX_FORWARDS};
pub use limits::Limits;
pub use metrics::{MetricsError, prometheus};
pub use pool::{Hold, MAX_CONNECTIONS, MAX_PASSENGERS, Performer, Pool, Visitor};
pub use round::{Round, TakenIn};
