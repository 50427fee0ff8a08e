//! OpenSSH's ssh_config (ssh_config(5)): parsed once, resolved for each host.
//!
//! A [`Loader`] asks for files and glob expansions and is handed them; it touches nothing itself.
//! What it makes of them is a [`Config`], from which [`Config::resolve`] derives the settings of
//! one host in microseconds: first value wins, and every value carries the [`Origin`] it came
//! from. What only the system knows (`Match exec`, addresses, names) it asks as a [`Question`].
//! [`Resolved::dump`] says it all in the words of `ssh -G`. Where releases of OpenSSH differ, the
//! newest one's rules hold.

mod address;
mod algorithms;
mod canonicalize;
mod condition;
mod config;
mod dump;
mod environment;
mod error;
mod expand;
mod forward;
mod jump;
mod keyword;
mod line;
mod loader;
mod network;
mod origin;
mod pass;
mod pattern;
mod proxy;
mod question;
mod resolve;
mod resolved;
mod slots;
mod value;

pub use algorithms::{AlgorithmSpec, EmptyAlgorithmList};
pub use config::{Config, Query};
pub use dump::{Implemented, Names, ShownSetting};
pub use environment::Environment;
pub use error::{LoadError, Problem, ResolveError, Unresolved};
pub use expand::Piece;
pub use jump::Hop;
pub use keyword::keywords;
pub use loader::{Loader, Need, Root, Supply};
pub use origin::{Origin, Setting};
pub use question::{Answers, IncludeRequest, Lookup, Question};
pub use resolve::check_names;
pub use resolved::{
    Algorithms, Authentication, Connection, HostKeys, OtherSetting, Proxy, Resolved, Session,
};
pub use value::words::{
    AddressFamily, CanonicalizeHostname, LogLevel, PubkeyAuthentication, RequestTty, SessionType,
    StrictHostKeyChecking, YesNoAsk,
};
pub use value::{AddKeys, AddKeysToAgent, ForwardAgent, IdentityAgent, RekeyLimit};
