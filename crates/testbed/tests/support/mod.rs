//! The installed OpenSSH client, and a raw one, as the tests here use them.

#![allow(dead_code)] // each test file uses some of it

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddrV4, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use sshoal_testbed::simulated::{Simulation, SimulationSpec};
use tempfile::TempDir;

/// After so long something hangs that should not. No test's verdict depends on the number.
pub(crate) const DEADLINE: Duration = Duration::from_secs(240);

/// A simulation and the folder with its clients' files.
pub(crate) struct Hosts {
    pub(crate) simulation: Simulation,
    pub(crate) dir: TempDir,
}

/// Starts `hosts` hosts with these faults.
pub(crate) fn simulate(hosts: u32, faults: &[&str]) -> Hosts {
    let mut spec = SimulationSpec::new(hosts);
    spec.faults = faults.iter().map(|text| text.parse().unwrap()).collect();
    simulate_spec(&spec)
}

pub(crate) fn simulate_spec(spec: &SimulationSpec) -> Hosts {
    let simulation = Simulation::start(spec).unwrap();
    let dir = tempfile::tempdir().unwrap();
    simulation.client_files().write(dir.path()).unwrap();
    Hosts { simulation, dir }
}

impl Hosts {
    pub(crate) fn address(&self, host: usize) -> SocketAddrV4 {
        self.simulation.addresses()[host]
    }

    /// Runs `ssh` to a host.
    pub(crate) fn ssh(&self, host: usize, args: &[&str]) -> Output {
        ssh(self.dir.path(), &self.address(host), args)
    }

    /// Runs `ssh` to a host and returns what it said on standard error, having failed.
    pub(crate) fn ssh_fails(&self, host: usize, args: &[&str]) -> String {
        let output = self.ssh(host, args);
        assert_eq!(output.status.code(), Some(255), "{output:?}");
        text(&output.stderr)
    }

    pub(crate) fn connect(&self, host: usize) -> RawClient {
        RawClient::connect(self.address(host))
    }
}

/// `ssh`, stopped by timeout(1) should it hang.
pub(crate) fn ssh_command(dir: &Path, address: &SocketAddrV4) -> Command {
    let mut command = Command::new("timeout");
    command
        .arg(DEADLINE.as_secs().to_string())
        .args(["ssh", "-F"])
        .arg(dir.join("ssh_config"))
        .arg(address.ip().to_string())
        .stdin(Stdio::null());
    command
}

pub(crate) fn ssh(dir: &Path, address: &SocketAddrV4, args: &[&str]) -> Output {
    ssh_command(dir, address).args(args).output().unwrap()
}

/// Stops an `ssh` begun with [`ssh_command`]; timeout(1) hands the signal on.
pub(crate) fn stop(mut child: Child) {
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    child.wait().unwrap();
}

/// A program that answers what an `ssh` asks.
pub(crate) fn askpass(dir: &Path, answer: &str) -> PathBuf {
    let (lines, program) = (dir.join("askpass-lines"), dir.join("askpass"));
    fs::write(&lines, format!("#!/bin/sh\necho {answer}\n")).unwrap();
    // By a process of its own: a file that is open for writing here, if only in a fork, could not be executed.
    let mut install = Command::new("install");
    install.args(["-m", "755"]).args([&lines, &program]);
    assert!(install.status().unwrap().success());
    program
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// How a stream ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Closed,
    Reset,
}

/// A TCP client that knows no SSH.
pub(crate) struct RawClient {
    stream: TcpStream,
    /// The host's reset was met while sending; the kernel tells of it only once.
    reset: bool,
}

impl RawClient {
    pub(crate) fn connect(address: SocketAddrV4) -> RawClient {
        RawClient {
            stream: TcpStream::connect(address).unwrap(),
            reset: false,
        }
    }

    /// Sends, unless the host is quicker with its reset.
    pub(crate) fn send(mut self, bytes: &[u8]) -> RawClient {
        match self.stream.write_all(bytes) {
            Ok(()) => {}
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::ConnectionReset | ErrorKind::BrokenPipe
                ) =>
            {
                self.reset = true;
            }
            Err(error) => panic!("sending {} bytes: {error}", bytes.len()),
        }
        self
    }

    /// Tells the host that nothing more comes.
    pub(crate) fn finish(self) -> RawClient {
        // Refused when the host has reset the connection already.
        let _ = self.stream.shutdown(Shutdown::Write);
        self
    }

    /// All that the host sends until it ends the connection.
    pub(crate) fn read_all(mut self) -> (Vec<u8>, Ending) {
        self.stream.set_read_timeout(Some(DEADLINE)).unwrap();
        let mut all = Vec::new();
        let mut piece = [0; 4096];
        loop {
            match self.stream.read(&mut piece) {
                Ok(0) if self.reset => return (all, Ending::Reset),
                Ok(0) => return (all, Ending::Closed),
                Ok(length) => all.extend_from_slice(&piece[..length]),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => {
                    return (all, Ending::Reset);
                }
                Err(error) => panic!("after {} bytes: {error}", all.len()),
            }
        }
    }

    /// Exactly so many bytes.
    pub(crate) fn read(&mut self, length: usize) -> Vec<u8> {
        self.stream.set_read_timeout(Some(DEADLINE)).unwrap();
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes).unwrap();
        bytes
    }
}
