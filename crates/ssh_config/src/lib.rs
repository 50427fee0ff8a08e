//! OpenSSH's ssh_config (ssh_config(5)): parsed once, resolved for each host.
//!
//! A [`Loader`] asks for files and glob expansions and is handed them; it touches nothing itself.
//! What it makes of them is a [`Config`], from which [`Config::resolve`] derives the settings of
//! one host in microseconds: first value wins, and every value carries the [`Origin`] it came
//! from. Where releases of OpenSSH differ, the newest one's rules hold.

mod address;
mod algorithms;
mod condition;
mod config;
mod environment;
mod error;
mod expand;
mod jump;
mod keyword;
mod line;
mod loader;
mod origin;
mod pass;
mod pattern;
mod resolve;
mod resolved;
mod slots;
mod value;

pub use algorithms::{AlgorithmSpec, EmptyAlgorithmList};
pub use config::{Config, Query};
pub use environment::Environment;
pub use error::{LoadError, Problem, ResolveError};
pub use jump::Hop;
pub use loader::{Loader, Need, Root, Supply};
pub use origin::{Origin, Setting};
pub use resolved::{
    Algorithms, Authentication, Connection, HostKeys, OtherSetting, Proxy, Resolved, Session,
};
pub use value::{
    AddressFamily, ForwardAgent, IdentityAgent, LogLevel, PubkeyAuthentication, RekeyLimit,
    RequestTty, StrictHostKeyChecking,
};
