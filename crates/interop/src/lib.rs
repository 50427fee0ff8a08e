//! Other people's SSH servers, started for a test and stopped with it.
//!
//! ```no_run
//! use sshoal_interop::{KeyType, Options, Server, Software};
//!
//! let server = Server::start(Software::Go, &Options {
//!     host_keys: vec![KeyType::Ed25519],
//!     authorized_keys: std::fs::read_to_string("id_ed25519.pub")?,
//!     ..Options::default()
//! })?;
//! println!("{} offers {:?}", server.address(), server.offers().kex_algorithms);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Every server listens on a loopback address of its own, has host keys of its own, accepts the user keys it is
//! given and runs commands with `/bin/sh`, so that one command line means the same everywhere. Nothing on the
//! machine is changed. What a server can do is not written down here but read from its SSH_MSG_KEXINIT:
//! see [`Offers`].
//!
//! `make setup` installs the programs and builds those that have to be built; russh runs in this process.
//!
//! The client's tests against all of them are in `tests/client`.

mod account;
mod keys;
mod offers;
mod process;
mod russh_server;
mod server;
mod software;

pub use keys::{KeyType, Subject, certify, generate_key};
pub use offers::{Offers, OffersError};
pub use server::{Server, StartError};
pub use software::{Options, Software};
