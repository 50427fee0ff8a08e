//! ssh-agent's messages (RFC 9987, and OpenSSH's PROTOCOL.agent), as a client without I/O.
//!
//! An [`AgentConnection`] turns requests into bytes for the agent's socket and the agent's bytes into one [`Event`]
//! a request. Whoever owns the socket moves the bytes; this crate knows neither sockets nor time.
//!
//! ```
//! use sshoal_agent::{AgentConnection, Answer};
//!
//! let mut agent = AgentConnection::new();
//! let request = agent.request_identities()?;
//! let written = agent.poll_transmit().map_or(0, <[u8]>::len); // and written to the socket
//! agent.transmitted(written);
//! // Read from the socket: the agent holds one key, with the comment "me".
//! agent.handle_input(b"\0\0\0\x4b\x0c\0\0\0\x01\0\0\0\x33\0\0\0\x0bssh-ed25519\0\0\0\x20")?;
//! agent.handle_input(&[7; 32])?;
//! agent.handle_input(b"\0\0\0\x0bme@my.house")?;
//! let event = agent.poll_event().expect("the agent has answered");
//! assert_eq!(event.request, request);
//! assert!(matches!(event.outcome, Ok(Answer::Identities(keys)) if keys[0].comment == "me@my.house"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod addition;
mod answer;
mod connection;
mod error;
mod identity;
mod key_type;
mod request;

pub use addition::{Constraints, add_identity, is_added};
pub use answer::Answer;
pub use connection::{AgentConnection, Event, MAX_REQUESTS, RequestId};
pub use error::{ConnectionError, RequestError, SubmitError};
pub use identity::{Identity, MAX_IDENTITIES};
pub use key_type::{Algorithm, KEY_TYPES, KeyType};
pub use request::{MAX_MESSAGE_LEN, SessionBind};
