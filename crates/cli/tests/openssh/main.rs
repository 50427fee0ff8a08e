//! Hosts that go by the installed ssh: the fan-out's tests, as far as ssh itself lets them pass.
//!
//! Where it does not, `differences.rs` says how hosts end otherwise, and why.

#![allow(clippy::unwrap_used)]

#[allow(dead_code)] // used in part
#[path = "../login/agent_process.rs"]
mod agent_process;
#[path = "../support/mod.rs"]
mod support;

mod choice;
mod differences;
mod ends;
mod fate;
mod faults;
mod host_keys;
mod interrupt;
mod sessions;

/// Has every host go by ssh; and the key exchange be a quick one, for old releases' first choice takes 80 ms.
const BY_SSH: [&str; 4] = [
    "--transport",
    "openssh",
    "-o",
    "KexAlgorithms=curve25519-sha256",
];

/// These arguments, by ssh.
fn by_ssh<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [&BY_SSH[..], arguments].concat()
}
