//! OpenSSH's multiplexing protocol (PROTOCOL.mux), the master's side: what a ControlPath speaks. Nothing here touches a
//! socket or a descriptor.
//!
//! A program that shares a connection, `ssh -S PATH` for example, is a passenger. One [`Passenger`] for each turns octets
//! from its socket into [`Event`]s and answers into octets. The descriptors that travel with the octets are of any type
//! `D`: they are counted and handed on, never used.
//!
//! ```text
//!   ExpectHello -> ExpectRequest <-> ExpectDescriptors       a session's three, a stdio forward's two
//!                        |
//!                        +-> ExpectVerdict -> Proxied         -O proxy: SSH packets from here on
//! ```
//!
//! Two things the text of PROTOCOL.mux leaves open were read in mux.c (OpenSSH 9.2 and 10.5): flags and ports are uint32,
//! and each descriptor comes with one octet of its own behind the message.
//!
//! ```
//! use sshoal_mux::{Event, Passenger, Reply, Request};
//!
//! let mut passenger: Passenger<u32> = Passenger::new();
//! // Hello with version 4, then an alive check with the identifier 7.
//! passenger.handle_input(&[0, 0, 0, 8, 0, 0, 0, 1, 0, 0, 0, 4], [])?;
//! passenger.handle_input(&[0, 0, 0, 8, 0x10, 0, 0, 4, 0, 0, 0, 7], [])?;
//! let Some(Event::Asked { id, request: Request::AliveCheck }) = passenger.poll_event() else {
//!     panic!("it asked whether we are alive");
//! };
//! passenger.reply(id, Reply::Alive { pid: 4711 })?;
//! assert_eq!(passenger.poll_transmit().map(<[u8]>::len), Some(12 + 16));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bodies;
mod error;
mod forward;
mod listening;
mod passenger;
mod proxy;
mod reply;
mod request;
mod socks;

pub use error::{PassengerError, ProxyError};
pub use forward::{Forward, ForwardKind, Place};
pub use listening::{Arrived, AskedGlobally, ProxiedRequest, allocated_port, opened_by};
pub use passenger::{Event, MAX_MESSAGE_LEN, MAX_OUTPUT, MAX_UNANSWERED, Passenger, RequestId};
pub use proxy::{LeftChannel, MAX_PACKET_LEN, MAX_PAYLOAD_LEN, MAX_PROXY_CHANNELS, ProxyChannels};
pub use reply::Reply;
pub use request::{MAX_VARIABLES, NewSession, Request, StdioForward};
pub use socks::{Destination, MAX_HANDSHAKE, Socks, SocksError};

/// The version of the protocol, the only one that OpenSSH has spoken since 5.6.
pub const VERSION: u32 = 4;
