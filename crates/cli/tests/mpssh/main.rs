//! `mpssh` against real sshd: what it prints, octet for octet, and what it does besides.

#![allow(clippy::unwrap_used)]

#[path = "../support/mod.rs"]
mod support;

mod ends;
mod flags;
mod goldens;
mod ssh_program;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

use sshoal_testbed::sshd::{RealSshd, SshdSpec};
use support::Shoal;
use support::program::{Ended, Running};

/// The first lines of a run, up to the hosts'.
fn header(hosts: usize, sessions: usize, command: &str, user: &str) -> String {
    format!(
        "MPSSH.py - Mass parallel SSH in Python (Version 1.2)\n(c) 2013 Ivan Zahariev <famzah>\n\n  \
         [*] read ({hosts}) hosts from the list\n  [*] executing \"{command}\" as user \"{user}\"\n  \
         [*] spawning {sessions} parallel SSH sessions\n\n"
    )
}

/// The last lines, from behind the hosts'.
fn closing(ok: usize, non_ok: usize, failed: usize) -> String {
    let all = ok + non_ok + failed;
    format!("\n  Done. {all} hosts processed (ok/non-ok/ssh-failed = {ok}/{non_ok}/{failed}).\n")
}

/// Real hosts by the names `web1`, `web2` and so on, and some that cannot be reached.
struct Scene {
    shoal: Shoal<RealSshd>,
    program: PathBuf,
    user: String,
}

impl Scene {
    fn new(hosts: u32) -> Scene {
        Scene::of(&SshdSpec::new(hosts))
    }

    fn of(spec: &SshdSpec) -> Scene {
        let shoal = Shoal::real(spec);
        let program = shoal.dir.path().join("mpssh");
        symlink(env!("CARGO_BIN_EXE_sshoal"), &program).unwrap();
        let scene = Scene {
            user: shoal.hosts.client_files().unwrap().user,
            shoal,
            program,
        };
        let mut config = String::new();
        for host in 0..spec.hosts as usize {
            let line = format!(
                "Host web{}\n    HostName {}\n",
                host + 1,
                scene.address(host)
            );
            config.push_str(&line);
        }
        let first = scene.address(0);
        config.push_str(&format!(
            "Host refused\n    HostName {first}\n    Port 1\n\
             Host denied\n    HostName {first}\n    PubkeyAuthentication no\n"
        ));
        let usual = fs::read_to_string(scene.shoal.file("ssh_config")).unwrap();
        fs::write(scene.config(), config + &usual).unwrap();
        scene
    }

    fn address(&self, host: usize) -> String {
        self.shoal.name(host)
    }

    fn config(&self) -> String {
        self.shoal.file("mpssh_config")
    }

    /// A file with these lines.
    fn list(&self, lines: &str) -> String {
        let path = self.shoal.file("list");
        fs::write(&path, lines).unwrap();
        path
    }

    /// `mpssh` with these arguments and nothing else.
    fn plain(&self, arguments: &[&str]) -> Command {
        let mut command = self.shoal.user.command(&self.program);
        command.args(arguments);
        command
    }

    /// `mpssh` on these hosts, without a pause.
    fn command(&self, hosts: &str, arguments: &[&str]) -> Command {
        let (config, list) = (format!("F{}", self.config()), self.list(hosts));
        let usual = ["-d", "0", "-u", &self.user, "-O", &config, "-f", &list];
        self.plain(&[&usual, arguments].concat())
    }

    /// The same, to its end.
    fn run(&self, hosts: &str, arguments: &[&str]) -> Ended {
        Running::start(&mut self.command(hosts, arguments)).wait()
    }
}
