//! Stories of a client and a server joined in memory: logins, rejected keys, rekeying, channels, and
//! servers that break every rule. No socket, no clock but the story's own.

#![allow(clippy::unwrap_used, reason = "tests")]
#![allow(unreachable_pub, reason = "modules of one program")]

mod agent_channels;
mod arrivals;
mod channels;
mod exec_fate;
mod forwarded;
mod guesses;
mod host_keys;
mod hostile_channels;
mod hostile_floods;
mod hostile_key_exchange;
mod hostile_messages;
mod keepalive;
mod login;
mod low_water;
mod memory;
mod methods;
mod negotiation;
mod rejected;
mod rekey;
mod shared;
mod support;
