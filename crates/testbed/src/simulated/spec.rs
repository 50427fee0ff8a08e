//! What to simulate.

use std::net::Ipv4Addr;
use std::time::Duration;

use super::fault::{Fault, FaultRule};
use super::listen::Door;

/// The hosts to simulate. [`SimulationSpec::new`] gives healthy ones; change the fields at will.
#[derive(Clone, Debug)]
pub struct SimulationSpec {
    /// How many.
    pub hosts: u32,
    /// Host `i` is at `base + 1 + i`, in 127.0.0.0/8.
    pub base: Ipv4Addr,
    /// The port of every host; 0 for any free one.
    pub port: u16,
    /// From which all keys are derived.
    pub seed: u64,
    /// Added to each direction of every connection, so that a round trip takes twice this longer.
    pub latency: Duration,
    /// What is wrong with which hosts.
    pub faults: Vec<FaultRule>,
    /// The version line that hosts send (RFC 4253, 4.2), without its CR LF.
    pub version: String,
    /// A password that hosts accept beside the client's key.
    pub password: Option<String>,
    /// Bytes in one direction after which a host begins to rekey; None for russh's own limit.
    pub rekey_bytes: Option<u64>,
    /// Threads that serve the hosts, each with hosts of its own.
    pub threads: usize,
}

impl SimulationSpec {
    /// `hosts` healthy hosts from 127.1.0.1 on, on any free port, served by one thread.
    pub fn new(hosts: u32) -> SimulationSpec {
        SimulationSpec {
            hosts,
            base: Ipv4Addr::new(127, 1, 0, 0),
            port: 0,
            seed: 0,
            latency: Duration::ZERO,
            faults: Vec::new(),
            version: "SSH-2.0-sshoal_testbed".to_owned(),
            password: None,
            rekey_bytes: None,
            threads: 1,
        }
    }

    /// The same with one more rule.
    #[must_use]
    pub fn fault(mut self, rule: FaultRule) -> SimulationSpec {
        self.faults.push(rule);
        self
    }

    /// Of two rules about the same host's socket the later one counts.
    pub(super) fn door(&self, host: u32) -> Door {
        self.faults
            .iter()
            .rev()
            .filter(|rule| rule.concerns(host))
            .find_map(|rule| match rule.fault() {
                Fault::Refuse => Some(Door::None),
                Fault::ConnectHang => Some(Door::Stuck),
                _ => None,
            })
            .unwrap_or(Door::Open)
    }
}
