//! Hosts whose connections `sshoal up` keeps, and the programs that share them.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use sshoal_testbed::sshd::{RealSshd, SshdSpec};

use super::program::{Ended, Running};
use super::{Shoal, wait_until};

/// Real hosts, and a folder for the sockets. What is still up ends with it.
pub(crate) struct Warm {
    pub(crate) shoal: Shoal<RealSshd>,
}

impl Warm {
    /// Hosts that are not logged in to yet.
    pub(crate) fn cold(spec: &SshdSpec) -> Warm {
        let shoal = Shoal::real(spec);
        std::fs::create_dir(shoal.dir.path().join("run")).unwrap();
        Warm { shoal }
    }

    /// Hosts that are logged in to, each once.
    pub(crate) fn up(spec: &SshdSpec) -> Warm {
        let warm = Warm::cold(spec);
        Running::start(&mut warm.up_command(&[])).wait().expect(0);
        warm
    }

    /// Any program of the user's.
    pub(crate) fn program(&self, program: &str) -> Command {
        let mut command = self.shoal.user.command(program);
        command.env("XDG_RUNTIME_DIR", self.shoal.dir.path().join("run"));
        command
    }

    pub(crate) fn sshoal(&self, arguments: &[&str]) -> Command {
        let mut command = self.program(env!("CARGO_BIN_EXE_sshoal"));
        command.args(arguments);
        command
    }

    /// `sshoal up` of all hosts.
    pub(crate) fn up_command(&self, arguments: &[&str]) -> Command {
        let (config, hosts) = (self.shoal.file("ssh_config"), self.shoal.file("hosts"));
        let mut command = self.sshoal(&["up", "-F", &config, "-f", &hosts]);
        command.args(arguments);
        command
    }

    /// `sshoal up` of some hosts.
    pub(crate) fn up_of_command(&self, hosts: &[usize]) -> Command {
        let mut command = self.sshoal(&["up", "-F", &self.shoal.file("ssh_config")]);
        command.args(hosts.iter().map(|host| self.shoal.name(*host)));
        command
    }

    /// The same, to its end.
    pub(crate) fn up_of(&self, hosts: &[usize]) -> Ended {
        Running::start(&mut self.up_of_command(hosts)).wait()
    }

    /// Stops the processes in which a host serves its connections; returns them. One that is stopped begins no other, so that
    /// none is left out, not even that of a login which has only just succeeded.
    pub(crate) fn stop(&self, host: usize) -> Vec<Pid> {
        let server = self.shoal.hosts.pid(host).as_raw_nonzero().get();
        let mut stopped = Vec::new();
        loop {
            let mut found = super::descendants(server);
            found.retain(|pid| !stopped.contains(pid));
            if found.is_empty() {
                return stopped.into_iter().filter_map(Pid::from_raw).collect();
            }
            for pid in found {
                // It may just have ended: the login's own.
                let _ = kill_process(Pid::from_raw(pid).unwrap(), Signal::STOP);
                wait_until("it has stopped", || is_stopped(pid));
                stopped.push(pid);
            }
        }
    }

    /// A host's connections break.
    pub(crate) fn cut(&self, host: usize) {
        for pid in self.stop(host) {
            // One of a pair may have ended with the other.
            let _ = kill_process(pid, Signal::KILL);
        }
    }

    /// A host's server ends, and its connections break.
    pub(crate) fn close(&self, host: usize) {
        let _ = kill_process(self.shoal.hosts.pid(host), Signal::STOP);
        self.cut(host);
        let _ = kill_process(self.shoal.hosts.pid(host), Signal::KILL);
    }

    /// `sshoal` to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        Running::start(&mut self.sshoal(arguments)).wait()
    }

    /// `sshoal status --json`; null if nothing is kept.
    pub(crate) fn status(&self) -> Value {
        let mut status = None;
        // On a busy machine an answer may take longer than it is waited for.
        wait_until("the keeper answers", || {
            let ended = self.run(&["status", "--json"]);
            status = serde_json::from_str(&ended.stdout()).ok();
            if status.is_none() {
                eprint!("{}", ended.stderr());
            }
            status.is_some()
        });
        status.unwrap()
    }

    pub(crate) fn pid(&self) -> Pid {
        let pid = self.status()["pid"].as_i64().unwrap();
        Pid::from_raw(pid as i32).unwrap()
    }

    /// The socket of a host.
    pub(crate) fn socket(&self, host: usize) -> PathBuf {
        let name = self.shoal.name(host);
        let port = self.shoal.hosts.addresses()[host].port();
        let user = self.shoal.hosts.user();
        let file = format!("{user}@{name}:{port}");
        self.shoal.dir.path().join("run/sshoal").join(file)
    }

    /// A program of OpenSSH's, or one that starts ssh, with options that name the first host's socket.
    pub(crate) fn shares(&self, program: &str) -> Command {
        let mut command = self.program(program);
        let path = format!("ControlPath={}", self.socket(0).display());
        command.args(["-F", &self.shoal.file("ssh_config"), "-o", &path]);
        command
    }

    /// `ssh` of a line on the first host.
    pub(crate) fn ssh(&self, line: &str) -> Command {
        let mut command = self.shares("ssh");
        command.args([&self.shoal.name(0), line]);
        command
    }

    /// Speaks to the first host's socket: what is sent, and all that comes until the other end closes.
    pub(crate) fn say(&self, octets: &[u8]) -> Vec<u8> {
        let mut stream = UnixStream::connect(self.socket(0)).unwrap();
        stream.write_all(octets).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        answer
    }

    /// The same, but the other end hears nothing more.
    pub(crate) fn say_half(&self, octets: &[u8]) {
        let mut stream = UnixStream::connect(self.socket(0)).unwrap();
        stream.write_all(octets).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        stream.read_to_end(&mut Vec::new()).unwrap();
    }
}

impl Drop for Warm {
    fn drop(&mut self) {
        // Waits for its end; where nothing is up, it says so.
        let _ = self.sshoal(&["down"]).output();
    }
}

/// Whether a process that was told to stop does nothing any more.
fn is_stopped(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.map_or(true, |stat| stat.contains(") T ") || stat.contains(") Z "))
}

/// Whether a process has ended, waited for or not.
pub(crate) fn has_ended(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    stat.map_or(true, |stat| stat.contains(") Z "))
}
