//! Stories of a client and a server joined in memory: logins, rejected keys, rekeying, channels, and
//! servers that break every rule. No socket, no clock but the story's own.

#![allow(clippy::unwrap_used, reason = "tests")]
#![allow(unreachable_pub, reason = "modules of one program")]

mod channels;
mod exec_fate;
mod guesses;
mod keepalive;
mod login;
mod methods;
mod negotiation;
mod rejected;
mod rekey;
mod support;
