//! Real sshd instances, simulated hosts, a delay line and faults, for tests and demonstrations.
//!
//! * [`sshd`]: stock OpenSSH servers on 127.x.y.z with their own keys and configuration.
//! * [`simulated`]: thousands of hosts in one process, on russh's server, with faults by host.
//! * [`slow`]: stock OpenSSH servers whose login is slow for a known reason.
//!
//! The first two kinds write the same [`client_files`], so that one command line serves either.
//!
//! [`delay_line`] is a link with delay, rate and loss between two network namespaces, to put any of them behind.

pub mod addresses;
pub mod client_files;
pub mod delay_line;
pub mod descriptors;
pub mod simulated;
pub mod slow;
pub mod sshd;
