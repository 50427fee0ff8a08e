//! A server for tests, the client's caller, and the pair of both joined in memory.
//!
//! ```text
//!   pair.rs    carries octets, turns the clock,        policy.rs    what a server is and does
//!              answers the client's questions          sshd.rs      it hears, and logs users in
//!                                                      sessions.rs  channels, and process.rs behind them
//!                                                      kex.rs       its key exchange
//!                                                      packets.rs   its packets, in order or not
//! ```
//!
//! The server is written from the RFCs and shares nothing with the crate under test but messages and
//! ciphers. Left to itself it behaves as OpenSSH does, counts the commands that it runs, and panics
//! where the client breaks the protocol. A story may also speak for it: any message, any octets, at any time.

mod kex;
mod keys;
mod packets;
mod pair;
mod policy;
mod process;
mod sessions;
mod sshd;

pub use keys::key;
pub use packets::Packets;
pub use pair::{Pair, held, logged_in, opening, settings};
pub use policy::{Guess, Policy};
pub use process::pattern;
