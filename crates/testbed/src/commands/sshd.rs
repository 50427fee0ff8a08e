//! `sshoal-testbed sshd` and `sshoal-testbed with-sshd`.

use std::io;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use sshoal_testbed::descriptors::descriptor_limit;
use sshoal_testbed::sshd::key_files::KeyType;
use sshoal_testbed::sshd::{Layout, RealSshd, SshdSpec};

use super::CommandResult;
use super::stay::{Staying, stay};
use super::with_hosts::{WithFiles, run_with_files};

/// Start real sshd hosts and keep them until SIGINT or SIGTERM.
///
/// Writes hosts, known_hosts, id_ed25519, ssh_config and, once all listen, ready into DIR. Prints
/// the number of logins as JSON on SIGUSR1 and at the end. As root makes the account sshoal-test, if
/// missing.
#[derive(Debug, Args)]
pub(crate) struct Sshd {
    #[command(flatten)]
    hosts: RealHosts,
    /// Where to put the files that a client needs; made if missing.
    #[arg(long)]
    dir: PathBuf,
    /// End when standard input ends, too.
    #[arg(long)]
    until_eof: bool,
}

/// Start real sshd hosts, run a command, stop the hosts, and exit with the command's status.
///
/// As with-hosts, but with real servers.
#[derive(Debug, Args)]
pub(crate) struct WithSshd {
    #[command(flatten)]
    hosts: RealHosts,
    #[command(flatten)]
    with: WithFiles,
}

/// The servers to start, as arguments.
#[derive(Debug, Args)]
struct RealHosts {
    /// How many hosts.
    #[arg(long, value_name = "N")]
    hosts: u32,
    /// Their port; 0 for any free one.
    #[arg(long, default_value_t = 2222)]
    port: u16,
    /// Host i has the address BASE + 1 + i.
    #[arg(long, value_name = "ADDRESS", default_value = "127.2.0.0")]
    base: Ipv4Addr,
    /// One server for 16 addresses, and the same keys for all, in place of one for each.
    #[arg(long)]
    shared: bool,
    /// A type of host key that every server has.
    #[arg(long = "host-key", value_name = "TYPE", default_values_t = [HostKey::Ed25519])]
    host_keys: Vec<HostKey>,
    /// A line for sshd_config(5), such as 'MaxSessions 1'.
    #[arg(short = 'o', long = "line", value_name = "LINE")]
    lines: Vec<String>,
    /// The sshd to run.
    #[arg(long, value_name = "PATH", default_value = "/usr/sbin/sshd")]
    program: PathBuf,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum HostKey {
    Ed25519,
    Ecdsa256,
    Ecdsa384,
    Ecdsa521,
    Rsa,
}

impl std::fmt::Display for HostKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let value = self.to_possible_value();
        f.write_str(value.as_ref().map_or("", |value| value.get_name()))
    }
}

impl From<HostKey> for KeyType {
    fn from(key: HostKey) -> KeyType {
        match key {
            HostKey::Ed25519 => KeyType::Ed25519,
            HostKey::Ecdsa256 => KeyType::EcdsaNistP256,
            HostKey::Ecdsa384 => KeyType::EcdsaNistP384,
            HostKey::Ecdsa521 => KeyType::EcdsaNistP521,
            HostKey::Rsa => KeyType::Rsa2048,
        }
    }
}

impl RealHosts {
    fn spec(self) -> SshdSpec {
        SshdSpec {
            hosts: self.hosts,
            base: self.base,
            port: self.port,
            layout: match self.shared {
                true => Layout::Shared,
                false => Layout::Separate,
            },
            host_keys: self.host_keys.into_iter().map(KeyType::from).collect(),
            lines: self.lines,
            program: self.program,
        }
    }
}

impl Sshd {
    pub(crate) fn run(self) -> CommandResult {
        let mut running = Stay {
            servers: RealSshd::start(&self.hosts.spec())?,
            dir: self.dir,
        };
        stay(self.until_eof, &mut running)?;
        Ok(ExitCode::SUCCESS)
    }
}

impl WithSshd {
    pub(crate) fn run(self) -> CommandResult {
        let soft_limit = descriptor_limit();
        let servers = RealSshd::start(&self.hosts.spec())?;
        let counters = self.with.counters;
        let status = run_with_files(self.with, &servers.client_files()?, soft_limit)?;
        if counters {
            eprintln!("{}", report(&servers));
        }
        Ok(status)
    }
}

struct Stay {
    servers: RealSshd,
    dir: PathBuf,
}

impl Staying for Stay {
    fn announce(&mut self) -> io::Result<()> {
        self.servers.client_files()?.write(&self.dir)
    }

    fn report(&mut self) -> io::Result<String> {
        Ok(report(&self.servers))
    }
}

fn report(servers: &RealSshd) -> String {
    serde_json::json!({ "logins": servers.logins() }).to_string()
}
