//! Which servers to start.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use super::key_files::KeyType;

/// Debian's and most others' place. sshd insists on an absolute path, since it executes itself anew.
const SSHD: &str = "/usr/sbin/sshd";

/// The servers to start. [`SshdSpec::new`] gives stock ones; change the fields at will.
#[derive(Clone, Debug)]
pub struct SshdSpec {
    /// How many hosts, that is, addresses.
    pub hosts: u32,
    /// Host `i` is at `base + 1 + i`, in 127.0.0.0/8.
    pub base: Ipv4Addr,
    /// The port of every host; 0 for any free one.
    pub port: u16,
    /// Which hosts share a server.
    pub layout: Layout,
    /// The types of host key that each server has, in the order of its HostKey lines.
    pub host_keys: Vec<KeyType>,
    /// Lines for sshd_config(5), each in place of the fixture's own line with that keyword, if there
    /// is one; Match blocks come last. LogLevel must not be under INFO, for the log tells when a
    /// server listens.
    pub lines: Vec<String>,
    /// The absolute path of the sshd to run.
    pub program: PathBuf,
}

/// Which hosts share a server process and its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Each host is a process of its own, with keys of its own.
    Separate,
    /// As few processes as sshd allows, with 16 addresses each (sshd.c, MAX_LISTEN_SOCKS), all with
    /// the same keys.
    Shared,
}

impl SshdSpec {
    /// `hosts` separate servers from 127.2.0.1 on, on any free port, each with an ed25519 key.
    pub fn new(hosts: u32) -> SshdSpec {
        SshdSpec {
            hosts,
            base: Ipv4Addr::new(127, 2, 0, 0),
            port: 0,
            layout: Layout::Separate,
            host_keys: vec![KeyType::Ed25519],
            lines: Vec::new(),
            program: PathBuf::from(SSHD),
        }
    }

    /// The same with one more line for sshd_config(5).
    #[must_use]
    pub fn line(mut self, line: impl Into<String>) -> SshdSpec {
        self.lines.push(line.into());
        self
    }
}
