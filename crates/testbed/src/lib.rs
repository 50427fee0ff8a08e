//! Real sshd instances, simulated hosts, a delay line and faults, for tests and demonstrations.
//!
//! * [`sshd`]: stock OpenSSH servers on 127.x.y.z with their own keys and configuration.
//! * [`simulated`]: thousands of hosts in one process, on russh's server, with faults by host.

pub mod simulated;
pub mod sshd;
