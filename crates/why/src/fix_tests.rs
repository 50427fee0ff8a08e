//! The script of fixes: what it backs up and changes, and the way back.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::evidence::{Client, Evidence, Fact, Phase};
use crate::fixtures::{clean_no_root, ms, slow, slow_of};

fn slow_host() -> Evidence {
    let mut evidence = clean_no_root(0.05);
    slow(&mut evidence, Phase::FirstRequest, 11_000.0);
    evidence.facts.insert("host.sshd_config.UseDNS", "yes");
    evidence
        .facts
        .insert("host.getent_hosts.time", ms(10_000.0));
    slow(&mut evidence, Phase::ChannelOpen, 800.0);
    evidence.facts.insert("host.motd_scripts.time", ms(800.0));
    slow(&mut evidence, Phase::SignedRequest, 300.0);
    slow_of(&mut evidence, Client::Ssh, Phase::FirstRequest, 500.0);
    evidence
        .facts
        .insert("login.methods", "publickey,gssapi-with-mic");
    evidence
}

fn script_of(evidence: &Evidence) -> String {
    script(&Diagnosis::of(evidence))
}

/// The lines of a function of the script.
fn function<'a>(script: &'a str, name: &str) -> &'a str {
    let (_, rest) = script.split_once(&format!("\n{name}() {{\n")).unwrap();
    rest.split_once("\n}\n").unwrap().0
}

#[test]
fn the_host_s_part_backs_up_changes_and_checks() {
    let script = script_of(&slow_host());
    let host = function(&script, "host");
    let places: Vec<usize> = [
        "backup /etc/ssh/sshd_config",
        "prepend /etc/ssh/sshd_config <<'LINES'\nUseDNS no\nLINES\n",
        "backup /etc/pam.d/sshd",
        "edit /etc/pam.d/sshd '",
        "# by hand, in /etc/pam.d/sshd",
        "reload_sshd",
    ]
    .iter()
    .map(|words| {
        host.find(words)
            .unwrap_or_else(|| panic!("{words}: {host}"))
    })
    .collect();
    assert!(places.is_sorted(), "{host}");
    assert!(function(&script, "undo_host").contains("restore /etc/ssh/sshd_config"));
    assert!(script.contains("sshd -t"));
}

#[test]
fn lines_for_ssh_config_stand_in_a_block_of_the_host() {
    let script = script_of(&slow_host());
    let here = function(&script, "here");
    assert!(
        here.contains("Host web1\n    GSSAPIAuthentication no\nHost *\nLINES"),
        "{here}"
    );
    assert!(function(&script, "undo_here").contains("restore \"$HOME/.ssh/config\""));
}

#[test]
fn a_clean_login_changes_nothing() {
    let script = script_of(&clean_no_root(0.05));
    for name in ["here", "host", "undo_here", "undo_host"] {
        assert_eq!(function(&script, name).trim(), ":", "{name}");
    }
}

#[test]
fn nothing_that_a_host_says_gets_into_the_script() {
    let foreign = "$(reboot)`reboot`';reboot;\nLINES\nreboot";
    let mut evidence = slow_host();
    let names: Vec<String> = evidence
        .facts
        .iter()
        .filter(|(_, fact)| matches!(fact, Fact::Text(_)))
        .map(|(name, _)| name.to_owned())
        .collect();
    for name in names {
        evidence.facts.insert(name, foreign);
    }
    evidence.facts.insert("host.sshd_config.UseDNS", "yes");
    evidence.identification = Some(format!("SSH-2.0-OpenSSH_9.2 {foreign}"));
    assert!(!script_of(&evidence).contains("reboot"));
}

#[test]
fn a_strange_name_of_a_host_stays_a_comment() {
    let mut evidence = slow_host();
    evidence.host = "web1\nreboot $(reboot)".to_owned();
    let script = script_of(&evidence);
    for line in script.lines().filter(|line| line.contains("reboot")) {
        assert!(line.trim_start().starts_with('#'), "{line}");
    }
    assert!(!function(&script, "here").contains("prepend"));
}

#[test]
fn a_pattern_is_a_plain_name_without_the_user() {
    assert_eq!(pattern("me@web1.example.org"), Some("web1.example.org"));
    assert_eq!(pattern("*"), None);
    assert_eq!(pattern("-oProxyCommand=x"), None);
    assert_eq!(pattern("a b"), None);
}
