//! AddKeysToAgent: a key from a file that has served is added to OpenSSH's agent.

#![allow(clippy::unwrap_used)]

#[allow(dead_code, reason = "other tests add keys by hand")]
#[path = "login/agent_process.rs"]
mod agent_process;
mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use agent_process::Agent;
use sshoal_testbed::sshd::{RealSshd, SshdSpec};
use support::program::{Ended, Running};
use support::{Shoal, wait_until};

/// What is run, with a program that answers every question with `answer`.
fn run(shoal: &Shoal<RealSshd>, agent: &Agent, choice: &str, answer: &str) -> Ended {
    let askpass = shoal.file("askpass");
    fs::write(&askpass, format!("#!/bin/sh\necho {answer}\n")).unwrap();
    fs::set_permissions(&askpass, fs::Permissions::from_mode(0o700)).unwrap();
    let choice = format!("AddKeysToAgent={choice}");
    let mut command = shoal.command(&["-o", &choice, "-o", "BatchMode=no", "true"]);
    command
        .env("SSH_AUTH_SOCK", agent.socket())
        .env("SSH_ASKPASS", &askpass)
        .env("SSH_ASKPASS_REQUIRE", "force");
    Running::start(&mut command).wait().expect(0)
}

/// How many keys the agent holds.
fn keys(agent: &Agent) -> usize {
    let mut command = Command::new("ssh-add");
    let output = command
        .arg("-L")
        .env("SSH_AUTH_SOCK", agent.socket())
        .output();
    let lines = String::from_utf8(output.unwrap().stdout).unwrap();
    lines
        .lines()
        .filter(|line| line.starts_with("ssh-ed25519"))
        .count()
}

/// Whether the agent signs with the account's key, with nobody there to confirm it.
fn signs(shoal: &Shoal<RealSshd>, agent: &Agent) -> bool {
    let public = shoal.file("id_ed25519.pub");
    let made = Command::new("ssh-keygen")
        .args(["-yf", &shoal.file("id_ed25519")])
        .output();
    fs::write(&public, made.unwrap().stdout).unwrap();
    let mut command = Command::new("ssh-add");
    command
        .args(["-T", &public])
        .env("SSH_AUTH_SOCK", agent.socket());
    command.output().unwrap().status.success()
}

#[test]
fn a_key_that_has_served_is_added_once_whatever_the_number_of_hosts() {
    let shoal = Shoal::real(&SshdSpec::new(5));
    let agent = Agent::start();
    run(&shoal, &agent, "no", "");
    assert_eq!(keys(&agent), 0);
    for _ in 0..2 {
        run(&shoal, &agent, "yes", "");
        assert_eq!(keys(&agent), 1);
    }
    assert!(signs(&shoal, &agent));
}

#[test]
fn an_encrypted_key_is_added_with_its_passphrase_taken_off() {
    let shoal = Shoal::real(&SshdSpec::new(2));
    let key = shoal.file("id_ed25519");
    let encrypted = Command::new("ssh-keygen")
        .args(["-q", "-p", "-N", "secret", "-f", &key])
        .status();
    assert!(encrypted.unwrap().success());
    let agent = Agent::start();
    run(&shoal, &agent, "yes", "secret");
    assert_eq!(keys(&agent), 1);
    // Now it serves without.
    run(&shoal, &agent, "yes", "wrong");
}

#[test]
fn the_agent_asks_for_each_use_of_a_key_that_is_to_be_confirmed_and_forgets_one_after_its_time() {
    let shoal = Shoal::real(&SshdSpec::new(1));
    let agent = Agent::start();
    run(&shoal, &agent, "confirm", "");
    assert_eq!((keys(&agent), signs(&shoal, &agent)), (1, false));
    let agent = Agent::start();
    run(&shoal, &agent, "1", "");
    wait_until("the agent has forgotten the key", || keys(&agent) == 0);
}

#[test]
fn with_ask_the_user_decides() {
    let shoal = Shoal::real(&SshdSpec::new(3));
    let agent = Agent::start();
    run(&shoal, &agent, "ask", "no");
    assert_eq!(keys(&agent), 0);
    run(&shoal, &agent, "ask", "yes");
    assert_eq!(keys(&agent), 1);
}

#[test]
fn what_cannot_be_added_is_said_and_hinders_nothing() {
    let shoal = Shoal::real(&SshdSpec::new(2));
    let mut agent = Agent::start();
    agent.kill();
    let said = run(&shoal, &agent, "yes", "").stderr();
    assert_eq!(
        said.matches("is not added to the ssh-agent").count(),
        1,
        "{said}"
    );
}
