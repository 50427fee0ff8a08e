//! Logging in, end to end: `sshoal run` against stock sshd and ssh-agent.

#![allow(clippy::unwrap_used)]

mod agent;
mod agent_process;
mod fake_agent;
mod fixture;
mod inquisitive_server;
mod keys;
mod passwords;
#[path = "../support/pty.rs"]
mod pty;
mod questions;
mod security_key;
mod terminal;
mod unlocking;
