//! What to simulate, and what clients must know of it.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use russh::keys::PrivateKey;
use russh::keys::ssh_key::LineEnding;
use serde::{Deserialize, Serialize};

use super::fault::{Fault, FaultRule};
use super::keys::{self, Purpose};
use super::listen::Door;
use crate::addresses::{AddressError, host_addresses};
use crate::client_files::{ClientFiles, known_hosts_name};

/// The user name in the clients' ssh_config; simulated hosts accept any.
const USER: &str = "sshoal-test";

/// The hosts to simulate. [`SimulationSpec::new`] gives healthy ones; change the fields at will.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SimulationSpec {
    /// How many.
    pub hosts: u32,
    /// The index of the first: 0 unless several processes share a simulation.
    pub first: u32,
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
            first: 0,
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

    /// What clients need to reach these hosts when they listen on `port`.
    ///
    /// # Errors
    /// When the hosts' addresses do not fit into 127.0.0.0/8.
    pub fn client_files(&self, port: u16) -> Result<ClientFiles, AddressError> {
        let addresses: Vec<SocketAddrV4> = self
            .addresses()?
            .into_iter()
            .map(|ip| SocketAddrV4::new(ip, port))
            .collect();
        let known_hosts = self
            .indices()
            .zip(&addresses)
            .filter_map(|(index, address)| self.known_hosts_line(index, *address))
            .collect();
        let identity = self
            .client_key()
            .to_openssh(LineEnding::LF)
            .expect("an unencrypted ed25519 key always has a text form")
            .to_string();
        Ok(ClientFiles {
            addresses,
            known_hosts,
            identity,
            user: USER.to_owned(),
        })
    }

    pub(super) fn indices(&self) -> impl Iterator<Item = u32> + use<> {
        self.first..self.first.saturating_add(self.hosts)
    }

    /// The addresses of the hosts of [`SimulationSpec::indices`].
    pub(super) fn addresses(&self) -> Result<Vec<Ipv4Addr>, AddressError> {
        let before = u32::from(self.base).saturating_add(self.first);
        host_addresses(Ipv4Addr::from(before), self.hosts)
    }

    pub(super) fn client_key(&self) -> PrivateKey {
        keys::derive(self.seed, Purpose::Client, 0)
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

    fn known_hosts_line(&self, host: u32, address: SocketAddrV4) -> Option<String> {
        let has = |fault: &Fault| {
            self.faults
                .iter()
                .any(|rule| rule.fault() == fault && rule.concerns(host))
        };
        if has(&Fault::UnknownHostKey) {
            return None;
        }
        let marker = match has(&Fault::RevokedHostKey) {
            true => "@revoked ",
            false => "",
        };
        let key = keys::derive(self.seed, Purpose::Host, host)
            .public_key()
            .to_openssh()
            .expect("an ed25519 key always has a text form");
        Some(format!("{marker}{} {key}\n", known_hosts_name(address)))
    }
}
