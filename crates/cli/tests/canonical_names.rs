//! CanonicalizeHostname and its like: names completed, followed and looked up before a run begins.
//!
//! The program sees an /etc/hosts of the test's own, in a mount namespace. The resolver's files know no domains, so that
//! the names that ssh_config completes stand there with the dot that it puts at their end (resolve_host, ssh.c).

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::process::Command;

use sshoal_testbed::sshd::{RealSshd, SshdSpec};
use support::Shoal;
use support::program::{Ended, Running};

const HOSTS: &str = "\
127.0.0.1 localhost
ADDRESS0 web1.example.test web1.example.test.
ADDRESS1 web2.other.test web2.other.test.
ADDRESS1 real.example.test. alias.example.test.
ADDRESS1 real.example.test
ADDRESS0 plain
";

const CONFIG: &str = "\
CanonicalizeHostname yes
CanonicalDomains nowhere.test example.test other.test
CanonicalizePermittedCNAMEs *.example.test:*.example.test
StrictHostKeyChecking no
Match canonical host *.example.test
    SetEnv A_PASS=canonical
Match final
    SetEnv A_PASS=final
";

/// Two real hosts, known by the names above.
fn shoal() -> Shoal<RealSshd> {
    let shoal = Shoal::real(&SshdSpec::new(2).line("AcceptEnv A_*"));
    let mut hosts = HOSTS.to_owned();
    for number in 0..2 {
        hosts = hosts.replace(&format!("ADDRESS{number}"), &shoal.name(number));
    }
    fs::write(shoal.file("etc_hosts"), hosts).unwrap();
    let stock = fs::read_to_string(shoal.file("ssh_config")).unwrap();
    fs::write(
        shoal.file("ssh_config"),
        format!("{CONFIG}\nMatch all\n{stock}"),
    )
    .unwrap();
    shoal
}

/// `sshoal COMMAND` in a mount namespace with the test's names.
fn in_namespace(shoal: &Shoal<RealSshd>, arguments: &[&str]) -> Command {
    let line = "mount --bind \"$NAMES\" /etc/hosts && exec sshoal \"$@\"";
    let mut command = shoal.user.command("unshare");
    if !rustix::process::geteuid().is_root() {
        command.arg("--map-root-user");
    }
    command.args(["--mount", "sh", "-c", line, "sh"]);
    command.args(arguments);
    command.env("NAMES", shoal.file("etc_hosts"));
    command
}

fn run(shoal: &Shoal<RealSshd>, hosts: &str, arguments: &[&str]) -> Ended {
    let config = shoal.file("ssh_config");
    let all = [&["run", "-F", &config, "-w", hosts][..], arguments].concat();
    Running::start(&mut in_namespace(shoal, &all)).wait()
}

#[test]
fn short_names_are_completed_aliases_followed_and_the_second_pass_sees_the_result() {
    let shoal = shoal();
    let run = run(
        &shoal,
        "web1,web2,alias,plain",
        &["--json", "echo %n %h $A_PASS"],
    );
    let records = run.expect(0).records().by_name();
    for (name, expected) in [
        ("web1", "web1 web1.example.test canonical\n"),
        ("web2", "web2 web2.other.test final\n"),
        ("alias", "alias real.example.test canonical\n"),
        // Nothing completes it, and CanonicalizeFallbackLocal is on.
        ("plain", "plain plain final\n"),
    ] {
        assert_eq!(records[name].stdout.as_deref(), Some(expected));
    }
}

#[test]
fn aliases_that_are_not_permitted_are_not_followed() {
    let shoal = shoal();
    let config = fs::read_to_string(shoal.file("ssh_config")).unwrap();
    let changed = config.replace("*.example.test:*.example.test", "none");
    fs::write(shoal.file("ssh_config"), changed).unwrap();
    let arguments = ["--dry-run", "echo %h"];
    let said = run(&shoal, "alias", &arguments).expect(0).stdout();
    assert!(said.contains("echo alias.example.test"), "{said}");
}

#[test]
fn without_the_fallback_a_name_that_nothing_completes_ends_the_run_before_it_begins() {
    let shoal = shoal();
    let options = ["-o", "CanonicalizeFallbackLocal=no", "true"];
    let run = run(&shoal, "web1,plain", &options);
    run.expect(2)
        .says(&["plain", "could not resolve hostname plain"]);
}

#[test]
fn names_with_more_dots_than_may_be_and_addresses_stay_as_they_are() {
    let shoal = shoal();
    let address = shoal.name(0);
    let hosts = format!("a.b.web1,{address}");
    let said = run(
        &shoal,
        &hosts,
        &[
            "-o",
            "CanonicalizePermittedCNAMEs=none",
            "--dry-run",
            "echo %h",
        ],
    )
    .expect(0)
    .stdout();
    assert!(said.contains("echo a.b.web1"), "{said}");
    assert!(said.contains(&format!("echo {address}")), "{said}");
}

#[test]
fn explain_and_each_complete_names_too() {
    let shoal = shoal();
    let config = shoal.file("ssh_config");
    let explain = ["explain", "-F", &config, "web1"];
    let said = Running::start(&mut in_namespace(&shoal, &explain)).wait();
    let said = said.expect(0).stdout();
    assert!(said.contains("address       web1.example.test"), "{said}");
    let each = ["each", "-F", &config, "-w", "web[1-2]", "echo", "%h"];
    let said = Running::start(&mut in_namespace(&shoal, &each)).wait();
    let said = said.expect(0).stdout();
    for name in ["web1.example.test", "web2.other.test"] {
        assert!(said.contains(name), "{said}");
    }
}
