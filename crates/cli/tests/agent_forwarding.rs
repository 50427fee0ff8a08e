//! ForwardAgent: processes on the hosts use the keys of the user's agent, with OpenSSH's agent and sshd.

#![allow(clippy::unwrap_used)]

#[path = "login/agent_process.rs"]
mod agent_process;
#[path = "login/fake_agent.rs"]
#[allow(dead_code)]
mod fake_agent;
mod support;

use std::fs;
use std::path::Path;
use std::process::Command;

use agent_process::Agent;
use fake_agent::{FakeAgent, Manner};
use sshoal_testbed::sshd::{RealSshd, SshdSpec};
use support::Shoal;
use support::program::{Ended, Running};

/// Hosts, and an agent with the account's key.
fn shoal(hosts: u32) -> (Shoal<RealSshd>, Agent) {
    let shoal = Shoal::real(&SshdSpec::new(hosts));
    let agent = Agent::holding(&[Path::new(&shoal.file("id_ed25519"))]);
    (shoal, agent)
}

fn run(shoal: &Shoal<RealSshd>, agent: &Agent, arguments: &[&str]) -> Ended {
    let mut command = shoal.command(arguments);
    command.env("SSH_AUTH_SOCK", agent.socket());
    Running::start(&mut command).wait()
}

/// The fingerprint of the account's key.
fn fingerprint(shoal: &Shoal<RealSshd>) -> String {
    let output = Command::new("ssh-keygen")
        .args(["-lf", &shoal.file("id_ed25519")])
        .output()
        .unwrap();
    let line = String::from_utf8(output.stdout).unwrap();
    line.split(' ').nth(1).unwrap().to_owned()
}

/// A line that logs in from a host to host `to` with nothing but the forwarded agent.
fn onward(shoal: &Shoal<RealSshd>, to: usize) -> String {
    let address = shoal.hosts.addresses()[to];
    let user = &shoal.hosts.client_files().unwrap().user;
    format!(
        "ssh -F none -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null \
         -o LogLevel=ERROR -p {} {user}@{} echo arrived",
        address.port(),
        address.ip()
    )
}

#[test]
fn keys_are_listed_and_used_from_every_host() {
    let (shoal, agent) = shoal(3);
    let line = format!("ssh-add -l && {}", onward(&shoal, 2));
    let records = run(&shoal, &agent, &["-A", "--json", &line])
        .expect(0)
        .records();
    let fingerprint = fingerprint(&shoal);
    for record in &records.hosts {
        let said = record.stdout.as_deref().unwrap();
        assert!(
            said.contains(&fingerprint) && said.ends_with("arrived\n"),
            "{said}"
        );
    }
}

#[test]
fn nothing_is_forwarded_unless_it_is_asked_for() {
    let (shoal, agent) = shoal(1);
    let line = "echo ${SSH_AUTH_SOCK:-none}";
    let socket = |options: &[&str]| {
        let arguments = [options, &["--json", line]].concat();
        let records = run(&shoal, &agent, &arguments).expect(0).records();
        records.hosts[0].stdout.clone().unwrap()
    };
    assert_eq!(socket(&[]), "none\n");
    assert_eq!(socket(&["-o", "ForwardAgent=no"]), "none\n");
    assert_ne!(socket(&["-o", "ForwardAgent=yes"]), "none\n");
    // With no agent there is nothing to forward.
    assert_eq!(socket(&["-o", "IdentityAgent=none", "-A"]), "none\n");
}

#[test]
fn an_agent_of_its_own_may_be_forwarded() {
    let (shoal, agent) = shoal(1);
    let empty = Agent::start();
    let own = format!("ForwardAgent={}", agent.socket().display());
    let run = run(&shoal, &empty, &["-o", &own, "--json", "ssh-add -l"]);
    let said = run.expect(0).records().hosts[0].stdout.clone().unwrap();
    assert!(said.contains(&fingerprint(&shoal)), "{said}");
}

#[test]
fn a_key_that_is_meant_for_one_host_goes_no_further() {
    let (shoal, agent) = shoal(2);
    let (first, second) = (shoal.hosts.addresses()[0], shoal.hosts.addresses()[1]);
    let restricted = Agent::start();
    let named = |address: std::net::SocketAddrV4| format!("[{}]:{}", address.ip(), address.port());
    let known = shoal.file("known_hosts");
    let key = shoal.file("id_ed25519");
    restricted.add(Path::new(&key), &["-H", &known, "-h", &named(first)]);
    // The account's key is in a file, too, which serves the first login.
    let line = onward(&shoal, 1);
    let to = [&shoal.name(0), "--json", &line];
    let mut command = shoal.configured(&["-A", "-w", to[0], to[1], to[2]]);
    command.env("SSH_AUTH_SOCK", restricted.socket());
    let records = Running::start(&mut command).wait().expect(1).records();
    assert_eq!(records.hosts[0].stdout.as_deref(), Some(""));
    // A key for that way, too, does arrive.
    let both = Agent::start();
    let hop = format!("{}>{}", named(first), named(second));
    both.add(
        Path::new(&key),
        &["-H", &known, "-h", &named(first), "-h", &hop],
    );
    let mut command = shoal.configured(&["-A", "-w", to[0], to[1], to[2]]);
    command.env("SSH_AUTH_SOCK", both.socket());
    let records = Running::start(&mut command).wait().expect(0).records();
    assert_eq!(records.hosts[0].stdout.as_deref(), Some("arrived\n"));
    drop(agent);
}

#[test]
fn no_host_can_take_the_keys_away_and_many_may_ask_at_once() {
    let (shoal, agent) = shoal(4);
    let line = "ssh-add -D 2>/dev/null && echo gone; \
                for i in 1 2 3 4 5 6 7 8 9 10; do ssh-add -l & done; wait";
    let records = run(&shoal, &agent, &["-A", "--json", line])
        .expect(0)
        .records();
    let fingerprint = fingerprint(&shoal);
    for record in &records.hosts {
        let said = record.stdout.as_deref().unwrap();
        assert!(!said.contains("gone"), "{said}");
        assert_eq!(said.matches(&fingerprint).count(), 10, "{said}");
    }
}

#[test]
fn a_host_that_asks_for_much_holds_one_turn_at_the_agent() {
    const REQUESTS: usize = 10;
    let shoal = Shoal::real(&SshdSpec::new(2));
    let key = shoal.file("id_ed25519");
    let agent = FakeAgent::start(Path::new(&key), Manner::TakesItsTime);
    // The login itself is done with the key's file.
    let line = format!(
        "t=$(mktemp -d); echo '{}' >$t/key.pub; cd $t; for i in $(seq {REQUESTS}); do \
         echo x | ssh-keygen -q -Y sign -f key.pub -n test 2>$i.err >$i.sig & done; wait; \
         cat *.err; grep -l BEGIN *.sig | wc -l; rm -r $t",
        agent.public_line()
    );
    let asked_by = |hosts: &str| {
        let before = agent.seen().signatures;
        let mut command = shoal.configured(&["-A", "-w", hosts, "--json", &line]);
        command.env("SSH_AUTH_SOCK", agent.socket());
        let records = Running::start(&mut command).wait().expect(0).records();
        for record in &records.hosts {
            assert_eq!(record.stdout.as_deref(), Some("10\n"));
        }
        agent.seen().signatures - before
    };
    assert_eq!(asked_by(&shoal.name(0)), REQUESTS);
    assert_eq!(agent.seen().signatures_at_once, 1, "one host, one turn");
    let both = [shoal.name(0), shoal.name(1)].join(",");
    assert_eq!(asked_by(&both), 2 * REQUESTS);
    assert!(
        agent.seen().signatures_at_once <= 2,
        "and another for another"
    );
}

#[test]
fn a_host_with_a_changed_key_gets_no_agent() {
    let (shoal, agent) = shoal(2);
    let known = fs::read_to_string(shoal.file("known_hosts")).unwrap();
    let lines: Vec<&str> = known.lines().collect();
    let (name, _) = lines[0].split_once(' ').unwrap();
    let (_, other_key) = lines[1].split_once(' ').unwrap();
    let swapped = format!("{name} {other_key}\n{}\n", lines[1]);
    fs::write(shoal.file("known_hosts"), swapped).unwrap();
    let options = [
        "-A",
        "-o",
        "StrictHostKeyChecking=no",
        "--json",
        "echo ${SSH_AUTH_SOCK:-none}",
    ];
    let records = run(&shoal, &agent, &options).expect(0).records().by_name();
    assert_eq!(records[&shoal.name(0)].stdout.as_deref(), Some("none\n"));
    assert_ne!(records[&shoal.name(1)].stdout.as_deref(), Some("none\n"));
}

#[test]
fn an_agent_that_is_gone_answers_nobody_and_the_command_ends() {
    let (shoal, mut agent) = shoal(1);
    agent.kill();
    let run = run(&shoal, &agent, &["-A", "--json", "ssh-add -l; echo $?"]);
    let said = run.expect(0).records().hosts[0].stdout.clone().unwrap();
    assert!(!said.contains(&fingerprint(&shoal)), "{said}");
}
