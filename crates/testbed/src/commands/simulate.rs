//! `sshoal-testbed simulate`.

use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use sshoal_testbed::simulated::SimulationSpec;
use sshoal_testbed::simulated::fault::FaultRule;

use super::CommandResult;
use super::running::Running;
use super::stay::{Staying, stay};

/// Start simulated hosts and keep them until SIGINT or SIGTERM.
///
/// Writes hosts, known_hosts, id_ed25519, ssh_config and, once all listen, ready into DIR. Prints
/// counters as JSON on SIGUSR1 and at the end.
#[derive(Debug, Args)]
#[command(after_long_help = FAULTS)]
pub(crate) struct Simulate {
    #[command(flatten)]
    hosts: SimulatedHosts,
    /// Where to put the files that a client needs; made if missing.
    #[arg(long)]
    dir: PathBuf,
    /// End when standard input ends, too.
    #[arg(long)]
    until_eof: bool,
}

/// What `--help` says of faults. [`sshoal_testbed::simulated::fault::Fault`] says more.
pub(super) const FAULTS: &str = "\
Faults:
  refuse, connect-hang                           in place of a connection
  silent-after-connect, garbage-banner,
  endless-banner, max-startups, not-allowed      in place of SSH
  wrong-host-key, changed-host-key:CONNECTIONS,
  unknown-host-key, revoked-host-key             as known_hosts would see it
  auth-denied                                    whatever the key or password
  reset-at:P, close-at:P, silent-at:P            after so much of the host's output
  reset-input-at:P, close-input-at:P,
  silent-input-at:P                              after so much of its input
  silent-after-message:N                         silent-at:message+N
  slow-output:BYTES_A_SECOND, latency:MS         from login on; each way
  flood[:BYTES], exit-signal:NAME, never-close   of every command
A position P is N (bytes), auth+N (bytes after authentication) or message+N (binary packets).
HOSTS is 3, 10-19, 1,4-6 or *. With @N only the first N connections to each host suffer.";

/// The hosts to simulate, as arguments.
#[derive(Debug, Args)]
pub(super) struct SimulatedHosts {
    /// How many hosts.
    #[arg(long, value_name = "N")]
    hosts: u32,
    /// Their port; 0 for any free one.
    #[arg(long, default_value_t = 2222)]
    port: u16,
    /// Host i has the address BASE + 1 + i.
    #[arg(long, value_name = "ADDRESS", default_value = "127.1.0.0")]
    base: Ipv4Addr,
    /// From which all keys are derived.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Delay of each direction of every connection; connect(2) itself is not delayed.
    #[arg(long, value_name = "MS", default_value_t = 0)]
    latency_ms: u64,
    /// What is wrong with which hosts, such as 10-19=silent-after-connect or 20=reset-at:1234@1.
    #[arg(long = "fault", value_name = "HOSTS=FAULT[@N]")]
    faults: Vec<FaultRule>,
    /// A file of faults, one a line; empty lines and lines beginning with # are skipped.
    #[arg(long, value_name = "FILE")]
    faults_from: Option<PathBuf>,
    /// The version line that hosts send.
    #[arg(
        long,
        value_name = "SSH-2.0-...",
        default_value = "SSH-2.0-sshoal_testbed"
    )]
    version_line: String,
    /// A password that hosts accept beside the key.
    #[arg(long)]
    password: Option<String>,
    /// Bytes in one direction after which a host rekeys.
    #[arg(long, value_name = "N")]
    rekey_bytes: Option<u64>,
    /// Threads that serve the hosts.
    #[arg(long, default_value_t = 1)]
    threads: usize,
}

impl SimulatedHosts {
    pub(super) fn spec(self) -> Result<SimulationSpec, String> {
        let mut faults = Vec::new();
        if let Some(path) = &self.faults_from {
            let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
            faults = fault_lines(&text).map_err(|e| format!("{}: {e}", path.display()))?;
        }
        faults.extend(self.faults);
        Ok(SimulationSpec {
            hosts: self.hosts,
            first: 0,
            base: self.base,
            port: self.port,
            seed: self.seed,
            latency: Duration::from_millis(self.latency_ms),
            faults,
            version: self.version_line,
            password: self.password,
            rekey_bytes: self.rekey_bytes,
            threads: self.threads,
        })
    }
}

fn fault_lines(text: &str) -> Result<Vec<FaultRule>, String> {
    (1..)
        .zip(text.lines().map(str::trim))
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(number, line)| {
            line.parse()
                .map_err(|error| format!("line {number}: {error}"))
        })
        .collect()
}

impl Simulate {
    pub(crate) fn run(self) -> CommandResult {
        let mut simulate = Stay {
            running: Running::start(&self.hosts.spec()?)?,
            dir: self.dir,
        };
        stay(self.until_eof, &mut simulate)?;
        Ok(ExitCode::SUCCESS)
    }
}

struct Stay {
    running: Running,
    dir: PathBuf,
}

impl Staying for Stay {
    fn announce(&mut self) -> io::Result<()> {
        self.running.client_files().write(&self.dir)
    }

    fn report(&mut self) -> io::Result<String> {
        Ok(self.running.report()?.line())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_faults_may_have_comments_and_names_the_wrong_line() {
        let rules = fault_lines("# bad hosts\n\n3=refuse\n 4-5=auth-denied\n").expect("valid");
        assert_eq!(rules.len(), 2);
        let problem = fault_lines("3=refuse\n4=explode\n").expect_err("no such fault");
        assert!(problem.starts_with("line 2:"), "{problem}");
    }
}
