//! SSH messages to bytes and back.
//!
//! [`messages`] holds one table of all messages a client sends or receives: number, name, sender,
//! the phases in which a client may receive it, its source and its fields. Structs, decoding, encoding,
//! names and phase checks all follow from that table.
//!
//! Decoding borrows from the packet and allocates nothing. A peer controls every byte, so every
//! decoder is bounded by its input, every count has a named limit, and bytes after the last field are an error.
//!
//! ```
//! use sshoal_wire::{Dialect, Message, ServiceAccept};
//!
//! let mut payload = Vec::new();
//! ServiceAccept { service_name: b"ssh-userauth" }.encode(&mut payload);
//! assert_eq!(
//!     Message::decode(&payload, Dialect::default()),
//!     Ok(Message::ServiceAccept(ServiceAccept { service_name: b"ssh-userauth" })),
//! );
//! ```

#[macro_use]
mod table;

mod auth_method;
mod counted;
mod decode;
mod dialect;
mod encode;
pub mod messages;
mod name_list;
mod phase;
pub mod reason;

#[cfg(test)]
mod tests;

pub use auth_method::AuthMethod;
pub use counted::{Counted, Element, Extension, Items, MAX_EXTENSIONS, MAX_PROMPTS, Prompt};
pub use decode::{DecodeError, Decoder, MAX_MPINT_LEN, Problem};
pub use dialect::{Dialect, KexDialect, UserauthDialect};
pub use encode::Put;
pub use messages::*;
pub use name_list::{MAX_NAME_LIST_LEN, NameList};
pub use phase::{Phase, PhaseSet, allowed};
