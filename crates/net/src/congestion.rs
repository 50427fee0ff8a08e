//! Which of the kernel's congestion controls decides how fast a transfer is sent (tcp(7), TCP_CONGESTION).
//!
//! The sender decides, so this is for what goes to hosts. Linux' default, CUBIC, takes every lost segment for a queue that
//! is full: on a long way that loses one in a thousand it sends a tenth of what BBR does (docs/adr/0015).

use std::fs;
use std::io;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt::set_tcp_congestion;
use rustix::net::{AddressFamily, SocketType, socket};

use crate::link::Link;

/// What the kernel has loaded: naming another one would have it load a module.
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
/// What is chosen where nobody has.
const CHOSEN: &str = "bbr";
/// The round trip from which on it is: below that it gains nothing, and its timers cost.
const LONG: Duration = Duration::from_millis(8);

/// A congestion control other than the kernel's default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CongestionControl {
    name: String,
    /// For connections whose round trip is at least so long.
    from: Duration,
}

/// The kernel does not take a congestion control.
#[derive(Debug, thiserror::Error)]
pub enum CongestionError {
    /// There is none of this name.
    #[error("no congestion control {name:?}: this kernel has {available}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// The names of those that are loaded.
        available: String,
    },
    /// It is there, but not for this user.
    #[error(
        "this account may not use the congestion control {0:?}: as root, add it to \
         /proc/sys/net/ipv4/tcp_allowed_congestion_control"
    )]
    NotAllowed(String),
    /// It could not be tried out.
    #[error("the congestion control {name:?} cannot be used: {error}")]
    Unusable {
        /// What was asked for.
        name: String,
        /// What the kernel says.
        error: io::Error,
    },
}

impl CongestionControl {
    /// BBR on long ways, where the kernel has it and lets us; otherwise the kernel's default.
    pub fn automatic() -> Option<CongestionControl> {
        let is_there = available().split_whitespace().any(|name| name == CHOSEN);
        (is_there && try_out(CHOSEN).is_ok()).then(|| CongestionControl {
            name: CHOSEN.to_owned(),
            from: LONG,
        })
    }

    /// The one of this name, for all connections.
    ///
    /// # Errors
    ///
    /// The kernel does not have it, or does not let this account use it.
    pub fn named(name: &str) -> Result<CongestionControl, CongestionError> {
        let owned = name.to_owned();
        match try_out(name) {
            Ok(()) => Ok(CongestionControl {
                name: owned,
                from: Duration::ZERO,
            }),
            Err(Errno::NOENT) => Err(CongestionError::Unknown {
                name: owned,
                available: available().trim().to_owned(),
            }),
            Err(Errno::PERM) => Err(CongestionError::NotAllowed(owned)),
            Err(error) => Err(CongestionError::Unusable {
                name: owned,
                error: error.into(),
            }),
        }
    }

    fn is_for(&self, round_trip: Duration) -> bool {
        round_trip >= self.from
    }

    /// Has it decide on this connection, whose making took so long.
    pub(crate) fn apply(&self, link: &Link, round_trip: Duration) {
        if self.is_for(round_trip) {
            link.control_congestion_by(&self.name);
        }
    }
}

fn available() -> String {
    fs::read_to_string(AVAILABLE).unwrap_or_default()
}

/// On a connection that is never made.
fn try_out(name: &str) -> Result<(), Errno> {
    let attempt = socket(AddressFamily::INET, SocketType::STREAM, None)?;
    set_tcp_congestion(&attempt, name)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn one_that_is_there_for_everybody_is_taken() {
        let reno = CongestionControl::named("reno").unwrap();
        assert!(reno.is_for(Duration::ZERO));
    }

    #[test]
    fn what_nobody_has_asked_for_is_for_long_ways_alone() {
        // A kernel without BBR has nothing to choose.
        let Some(bbr) = CongestionControl::automatic() else {
            assert!(CongestionControl::named(CHOSEN).is_err() || !available().contains(CHOSEN));
            return;
        };
        assert!(!bbr.is_for(LONG - Duration::from_millis(1)));
        assert!(bbr.is_for(LONG));
    }

    #[test]
    fn one_that_is_not_there_is_refused_with_the_names_of_those_that_are() {
        let error = CongestionControl::named("faster").unwrap_err().to_string();
        assert!(
            error.starts_with("no congestion control \"faster\": this kernel has "),
            "{error}"
        );
        assert!(error.contains("reno"), "{error}");
    }

    #[test]
    fn a_name_that_no_kernel_takes_is_an_error_and_no_panic() {
        assert!(CongestionControl::named("").is_err());
        assert!(CongestionControl::named(&"x".repeat(300)).is_err());
        assert!(CongestionControl::named("a\0b").is_err());
    }
}
