//! `sshoal explain`: values, and the lines they come from.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;

use serde_json::Value;
use support::User;
use support::program::{Ended, Running};

const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";

const CONFIG: &str = "\
Host web1
    HostName 10.0.0.1
    Port 2222
    IdentityFile ~/.ssh/fleet
    Ciphers aes128-ctr
    ProxyJump gate1,me@gate2:23
Host gate1
    User door
    HostName 10.0.0.254
Host old
    ProxyCommand nc %h %p
    KexAlgorithms diffie-hellman-group1-sha1
Host kerberos
    PreferredAuthentications gssapi-with-mic
Host *
    User fleet
    Compression yes
    GSSAPIAuthentication yes
";

fn user() -> User {
    let user = User::new();
    let ssh = user.home().join(".ssh");
    fs::create_dir(&ssh).unwrap();
    fs::write(ssh.join("config"), CONFIG).unwrap();
    let known = format!(
        "# mine\n[10.0.0.1]:2222 {KEY}\n@cert-authority *.example,10.0.0.* {KEY}\nbare {KEY}\n"
    );
    fs::write(ssh.join("known_hosts"), known).unwrap();
    user
}

fn explain(user: &User, arguments: &[&str]) -> Ended {
    let mut command = user.command(env!("CARGO_BIN_EXE_sshoal"));
    command.arg("explain").args(arguments);
    command.args(["-o", "GlobalKnownHostsFile=none"]);
    Running::start(&mut command).wait()
}

/// What is said, with `~` for the home directory.
#[track_caller]
fn said(user: &User, arguments: &[&str]) -> String {
    let text = explain(user, arguments).expect(0).stdout();
    text.replace(user.home().to_str().unwrap(), "~")
}

#[track_caller]
fn holds(text: &str, lines: &[&str]) {
    for line in lines {
        assert!(
            text.lines().any(|have| have == *line),
            "{line:?} is missing:\n{text}"
        );
    }
}

#[test]
fn each_value_comes_with_its_line() {
    let user = user();
    let text = said(&user, &["root@web1", "-o", "MACs=hmac-sha2-256"]);
    holds(
        &text,
        &[
            "root@web1",
            "  address       10.0.0.1  (~/.ssh/config:2)",
            "  port          2222  (~/.ssh/config:3)",
            "  user          root  (given with the host)",
            "  through       door@10.0.0.254:22 > me@gate2:23  (~/.ssh/config:6)",
            "  key           ~/.ssh/fleet, which is not there  (~/.ssh/config:4)",
            "  agent         none is running  (default)",
            "  known as      [10.0.0.1]:2222  (~/.ssh/config:2)",
            "  host key      ssh-ed25519  (~/.ssh/known_hosts:2)",
            "  ciphers       aes128-ctr  (~/.ssh/config:5)",
            "  MACs          hmac-sha2-256  (command line)",
            "  checking      ask  (default)",
            "  transport     native",
        ],
    );
    assert!(
        text.contains("not heeded    Compression yes  (~/.ssh/config:17)"),
        "{text}"
    );
    assert!(
        !text.contains("gssapi"),
        "merely enabled is no obstacle: {text}"
    );
}

#[test]
fn known_hosts_lines_are_those_that_apply() {
    let user = user();
    let text = said(&user, &["10.0.0.7,bare:99,nobody"]);
    holds(
        &text,
        &[
            "  host key      @cert-authority ssh-ed25519  (~/.ssh/known_hosts:3)",
            "  known as      [bare]:99  (given with the host)",
            "  host key      ssh-ed25519  (~/.ssh/known_hosts:4)",
            "  host key      unknown: no line of known_hosts",
        ],
    );
}

#[test]
fn what_cannot_be_done_natively_is_named() {
    let user = user();
    let text = said(&user, &["old", "kerberos"]);
    for words in [
        "through       ProxyCommand nc old 22  (~/.ssh/config:11)",
        "transport     openssh, for KexAlgorithms: ",
        "(~/.ssh/config:12)",
        "transport     openssh, for PreferredAuthentications gssapi-with-mic  (~/.ssh/config:14)",
    ] {
        assert!(text.contains(words), "{words:?} is missing:\n{text}");
    }
    assert!(!text.contains("transport     native"), "{text}");
    let text = said(&user, &["old", "-o", "ProxyUseFdpass=yes"]);
    let fdpass = "transport     openssh, for ProxyUseFdpass  (command line)";
    assert!(text.contains(fdpass), "{text}");
    let text = said(&user, &["old", "--transport", "native"]);
    assert!(text.contains("refused       KexAlgorithms: "), "{text}");
}

#[test]
fn what_only_ssh_has_makes_it_the_transport_and_what_neither_has_is_refused() {
    let user = user();
    let no_others = [
        "PubkeyAuthentication=no",
        "PasswordAuthentication=no",
        "KbdInteractiveAuthentication=no",
    ];
    let mut only: Vec<&str> = no_others.iter().flat_map(|option| ["-o", option]).collect();
    only.extend([
        "-o",
        "HostbasedAuthentication=yes",
        "-o",
        "GSSAPIAuthentication=no",
        "web9",
    ]);
    for (arguments, words) in [
        (
            &["-o", "PKCS11Provider=/lib/token.so", "web9"][..],
            "transport     openssh, for PKCS11Provider /lib/token.so  (command line)",
        ),
        (
            &only[..],
            "transport     openssh, for HostbasedAuthentication is the only method that is switched on  (command line)",
        ),
        (
            &["-o", "PubkeyAcceptedAlgorithms=ssh-dss", "web9"],
            "transport     openssh, for PubkeyAcceptedAlgorithms: ",
        ),
        (
            &["-o", "SessionType=none", "web9"],
            "refused       SessionType none",
        ),
        (
            &["-o", "BindInterface=absent0", "web9"],
            "refused       BindInterface absent0: ",
        ),
        (
            &["-o", "ProxyCommand=-", "web9"],
            "refused       ProxyCommand \"-\"",
        ),
    ] {
        let text = said(&user, arguments);
        assert!(text.contains(words), "{words:?} is missing:\n{text}");
        assert!(!text.contains("transport     native"), "{text}");
    }
    let text = said(
        &user,
        &[
            "-o",
            "PKCS11Provider=none",
            "-o",
            "LocalForward=80 a:80",
            "web9",
        ],
    );
    holds(&text, &["  transport     native"]);
    assert!(
        text.contains("not heeded    localforward 80 [a]:80  (command line)"),
        "{text}"
    );
}

#[test]
fn json_has_the_names_of_ssh_and_the_lines() {
    let user = user();
    let text = said(&user, &["--json", "web1", "old"]);
    let records: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let [web1, old] = records.as_slice() else {
        panic!("{text}");
    };
    assert_eq!(
        (&web1["host"], &web1["transport"]),
        (&"web1".into(), &"native".into())
    );
    let settings = web1["settings"].as_array().unwrap();
    let port = settings
        .iter()
        .find(|set| set["keyword"] == "port")
        .unwrap();
    assert_eq!(
        port,
        &serde_json::json!({"keyword": "port", "value": "2222", "origin": "file", "file": "~/.ssh/config", "line": 3})
    );
    assert_eq!(web1["known_hosts"][0]["line"], 2);
    assert_eq!(web1["way"][1], "me@gate2:23");
    assert_eq!(web1["identity_files"][0], "~/.ssh/fleet");
    assert_eq!(old["transport"], "openssh");
    assert_eq!(old["proxy_command"], "nc old 22");
    assert!(
        old["requirements"][0]["what"]
            .as_str()
            .unwrap()
            .starts_with("KexAlgorithms")
    );
}

#[test]
fn inventories_and_wrong_words_are_understood() {
    let user = user();
    let file = user.home().join("hosts");
    fs::write(&file, "db1 HostName=10.1.1.1\n").unwrap();
    let text = said(&user, &["-f", file.to_str().unwrap()]);
    holds(&text, &["  address       10.1.1.1  (given with the host)"]);
    explain(&user, &[]).expect(2).says(&["no hosts were named"]);
    explain(&user, &["-o", "Port=x", "web1"])
        .expect(2)
        .says(&["command line"]);
}
