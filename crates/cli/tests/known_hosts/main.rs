//! `sshoal known-hosts` beside ssh and ssh-keygen.

#![allow(clippy::unwrap_used)]

mod edits;
mod lookup;
mod split;
#[path = "../support/mod.rs"]
mod support;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use sshoal_testbed::simulated::SimulationSpec;
use sshoal_testbed::sshd::{RealSshd, SshdSpec};
use support::program::{Ended, Running};
use support::{Shoal, User};

const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB";
const OTHER: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIC";

/// `sshoal known-hosts` with a user's `~/.ssh/known_hosts`.
struct Desk {
    user: User,
}

impl Desk {
    fn new(known_hosts: &str) -> Desk {
        let user = User::new();
        fs::create_dir(user.home().join(".ssh")).unwrap();
        let desk = Desk { user };
        fs::write(desk.known_hosts(), known_hosts).unwrap();
        desk
    }

    fn known_hosts(&self) -> PathBuf {
        self.user.home().join(".ssh/known_hosts")
    }

    fn text(&self) -> String {
        fs::read_to_string(self.known_hosts()).unwrap()
    }

    fn run(&self, arguments: &[&str]) -> Ended {
        let mut command = self.user.command(env!("CARGO_BIN_EXE_sshoal"));
        Running::start(command.arg("known-hosts").args(arguments)).wait()
    }

    fn keygen(&self, arguments: &[&str], file: &Path) -> Output {
        let mut command = Command::new("ssh-keygen");
        command
            .args(arguments)
            .arg("-f")
            .arg(file)
            .output()
            .unwrap()
    }
}

/// Lines of all kinds; the last one has no end.
fn lines_of_all_kinds() -> String {
    format!(
        "# mine\nweb1,10.0.0.1 {KEY} comment\n[git.example.com]:7999 {KEY}\n*.example.com {OTHER}\n\
         @revoked web1 {OTHER}\n\nWEB2 {KEY}\nweb3 {KEY}"
    )
}

/// ssh to the first host, with these lines of configuration before the hosts' own.
fn ssh(shoal: &Shoal<RealSshd>, lines: &str) -> Output {
    let config = shoal.file("own_config");
    let own = fs::read_to_string(shoal.file("ssh_config")).unwrap();
    fs::write(&config, format!("{lines}\n{own}")).unwrap();
    let mut command = shoal.user.command("ssh");
    command
        .args(["-F", &config, &shoal.name(0), "true"])
        .output()
        .unwrap()
}

#[test]
fn fetch_prints_what_ssh_keyscan_prints_and_names_who_shows_nothing() {
    let shoal = Shoal::real(&SshdSpec::new(3));
    let desk = Desk::new("");
    let address = |host: usize| shoal.hosts.addresses()[host];
    let config = shoal.file("ssh_config");
    let hosts = [shoal.name(0), shoal.name(1)].join(",");
    let fetch = ["fetch", "-F", &config, "-p", "2", &hosts];
    let fetched = desk.run(&fetch).expect(0);
    let lines = |text: &str| {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.map(str::to_owned).collect::<BTreeSet<_>>()
    };
    let mut scan = Command::new("ssh-keyscan");
    scan.args([
        "-p",
        &address(0).port().to_string(),
        "-t",
        "rsa,ecdsa,ed25519",
    ]);
    let scanned = scan.args([shoal.name(0), shoal.name(1)]).output().unwrap();
    let scanned = lines(&String::from_utf8(scanned.stdout).unwrap());
    assert!(scanned.len() >= 2, "{scanned:?}");
    assert_eq!(lines(&fetched.stdout()), scanned);
    // As known_hosts writes them.
    let written = |host: usize| format!("[{}]:{}", shoal.name(host), address(host).port());
    let hosts = [written(0), written(1)].join(",");
    let again = desk.run(&["fetch", "-F", "none", &hosts]).expect(0);
    assert_eq!(lines(&again.stdout()), scanned);
    fetched.says(&["SHA256:"]);
    // Nothing was trusted by it.
    assert_eq!(desk.text(), "");
    let gone = format!("{hosts},127.250.0.1");
    let fetch = ["fetch", "-F", &config, "-o", "HashKnownHosts=yes", &gone];
    let fetched = desk.run(&fetch).expect(3).says(&["127.250.0.1: refused"]);
    assert!(fetched.stdout().lines().all(|line| line.starts_with("|1|")));
    assert_eq!(fetched.stdout().lines().count(), scanned.len());
    let fetch = ["fetch", "-F", &config, "-o", "ProxyJump=gate", &hosts];
    desk.run(&fetch).expect(2).says(&["behind a jump host"]);
}

#[test]
fn a_host_that_hangs_costs_fetch_its_own_time_alone() {
    let mut spec = SimulationSpec::new(20);
    spec.base = [127, 33, 0, 0].into();
    spec.faults = vec!["3=connect-hang".parse().unwrap()];
    let shoal = Shoal::simulate(&spec);
    let desk = Desk::new("");
    let config = shoal.file("ssh_config");
    let hosts = shoal.file("hosts");
    let fetch = ["fetch", "-F", &config, "-i", &hosts, "-u", "3"];
    let fetched = desk
        .run(&fetch)
        .expect(3)
        .says(&[&shoal.name(3), "within 3s"]);
    assert_eq!(fetched.stdout().lines().count(), 19);
    let known = shoal.hosts.client_files().known_hosts.clone();
    let known: BTreeSet<&str> = known.lines().collect();
    for line in fetched.stdout().lines() {
        assert!(known.iter().any(|known| known.starts_with(line)), "{line}");
    }
}

#[test]
fn files_and_names_that_were_meant_and_are_not_there_are_mistakes() {
    let desk = Desk::new(&lines_of_all_kinds());
    for command in ["split", "check"] {
        desk.run(&[command, "-f", "/no/such/file"])
            .expect(2)
            .says(&["cannot read /no/such/file"]);
    }
    desk.run(&["lookup", "web1", "-f", "/no/such/file"])
        .expect(0);
    let list = desk.user.home().join("list");
    fs::write(&list, "web1 # a comment\n\n../web2\n").unwrap();
    let list = list.to_str().unwrap();
    desk.run(&["split", "--input-file", list])
        .expect(2)
        .says(&["list:3: ", "../web2"]);
    for name in ["../single", "..", ""] {
        desk.run(&["split", "--dot-ssh-output-dir", name])
            .expect(2)
            .says(&["--dot-ssh-output-dir"]);
    }
    let ssh = desk.user.home().join(".ssh");
    assert_eq!(fs::read_dir(ssh).unwrap().count(), 1, "nothing was written");
}
