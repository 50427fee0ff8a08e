//! A sans-I/O SSH client: one connection, from the identification string to the last channel.
//!
//! [`Connection`] owns no socket and reads no clock. Bytes go in by [`Connection::handle_input`],
//! answers and commands by its other methods; bytes, questions and results come out of
//! [`Connection::poll_transmit`], [`Connection::poll_event`] and [`Connection::poll_timeout`].
//!
//! ```text
//!   bytes from the server                                             bytes to the server
//!        |                                                                     ^
//!  identification  ->  Incoming: open  ->  wire: decode  ->  phase table       |
//!                                                               |              |
//!             key_exchange / authentication / channels  <-------+    Outgoing: seal
//!                              |                                               ^
//!                              +--- events (questions, data ranges) ; messages-+
//! ```
//!
//! Two facts of the protocol shape this crate. A command whose bytes may have reached the server must
//! never be sent twice: [`ExecFate`] says what is known, and nothing else decides a retry. And each
//! round trip saved is saved on every host: [`Pipelining`] says which flights may be merged for which
//! server.
//!
//! Sources: RFC 4250 to 4254, 8308 (EXT_INFO), 8332 (RSA with SHA-2), OpenSSH's PROTOCOL
//! (strict key exchange, host-bound public keys, ping).

#[cfg(all(feature = "fuzzing", not(debug_assertions)))]
compile_error!("the feature `fuzzing` switches encryption off: it is for fuzz targets only");

/// Whether packets stay plain after NEWKEYS and signatures of host keys are taken for good, so that a
/// fuzzer gets past the key exchange. Only with the feature `fuzzing`, which no build without debug
/// assertions accepts.
const CRYPTO_IS_OFF: bool = cfg!(feature = "fuzzing");

mod channels;
mod connection;
mod error;
mod event;
mod fate;
mod identification;
mod negotiation;
mod pipelining;
mod secret;
mod session;
mod settings;
mod transport;

pub use channels::{LocalChannel, Stream};
pub use connection::{Arrival, Connection, ServerLists, ServerProfile, Unspoken};
pub use error::{ConnectionError, Misbehaviour, Phase};
pub use event::{AuthenticationFailure, Event, HostKeyQuestion, Prompt, SignatureRequest};
pub use fate::ExecFate;
pub use identification::Identification;
pub use pipelining::Pipelining;
pub use secret::Secret;
pub use session::{Command, Pty, SessionRequest};
pub use settings::{
    Credential, Opening, PublicKeyCredential, RekeyLimits, Settings, SettingsError,
    SignatureAlgorithm, Signer,
};
