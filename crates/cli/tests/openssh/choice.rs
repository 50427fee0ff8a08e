//! Which hosts go by ssh, and that it is said why.

use std::fs;

use sshoal_testbed::sshd::{Layout, SshdSpec};

use crate::support::Shoal;
use crate::support::program::Running;

/// Hosts with a cipher that native hosts do not have.
fn with_old_cipher(hosts: u32) -> SshdSpec {
    SshdSpec {
        layout: Layout::Shared,
        ..SshdSpec::new(hosts).line("Ciphers +3des-cbc")
    }
}

#[test]
fn hosts_that_require_ssh_go_by_it_and_the_others_natively_in_one_run() {
    let shoal = Shoal::real(&with_old_cipher(6));
    let config = fs::read_to_string(shoal.file("ssh_config")).unwrap();
    let (old, token, gssapi) = (shoal.name(1), shoal.name(3), shoal.name(4));
    let required = format!(
        "Host {old}\n  Ciphers 3des-cbc\nHost {token}\n  PKCS11Provider /nonexistent/token.so\n\
         Host {gssapi}\n  PreferredAuthentications gssapi-with-mic\n  GSSAPIAuthentication yes\n"
    );
    fs::write(shoal.file("ssh_config"), required + &config).unwrap();
    let run = shoal.run(&["--json", "echo %h"]).expect(3);
    let by_name = run.records().by_name();
    for host in 0..6 {
        let name = shoal.name(host);
        let record = &by_name[&name];
        let reason = record.transport_reason.as_deref().unwrap_or_default();
        let expected = match host {
            1 => ("openssh", "Ciphers"),
            3 => ("openssh", "PKCS11Provider /nonexistent/token.so"),
            4 => ("openssh", "PreferredAuthentications gssapi-with-mic"),
            _ => ("native", ""),
        };
        assert_eq!(record.transport.as_deref(), Some(expected.0), "{record:?}");
        assert!(reason.contains(expected.1), "{reason}");
        if host == 4 {
            // The server takes no ticket: but it is ssh that has said so.
            assert_eq!(record.failure(), "auth-denied", "{record:?}");
        } else {
            assert!(record.is_ok(), "{record:?}");
            assert_eq!(record.stdout.as_deref(), Some(format!("{name}\n").as_str()));
        }
    }
    let reason = by_name[&old].transport_reason.as_ref().unwrap();
    assert!(reason.contains("ssh_config:2"), "{reason}");
}

#[test]
fn without_ssh_such_a_host_is_refused_and_named() {
    let shoal = Shoal::real(&with_old_cipher(1));
    let arguments = ["-o", "Ciphers=3des-cbc"];
    let native = [&arguments[..], &["--transport", "native", "true"]].concat();
    shoal
        .run(&native)
        .expect(2)
        .says(&["Ciphers", &shoal.name(0)]);
    let missing = [&arguments[..], &["--ssh", "/nonexistent/ssh", "true"]].concat();
    shoal
        .run(&missing)
        .expect(3)
        .says(&["no program /nonexistent/ssh", "--ssh"]);
    shoal.run(&[&arguments[..], &["true"]].concat()).expect(0);
}

#[test]
fn a_jump_host_that_requires_ssh_takes_those_behind_it_along() {
    let shoal = Shoal::real(&SshdSpec::new(3).line("Ciphers +3des-cbc"));
    let config = fs::read_to_string(shoal.file("ssh_config")).unwrap();
    let gate = shoal.name(0);
    let required = format!("Host {gate}\n  Ciphers 3des-cbc\n");
    fs::write(shoal.file("ssh_config"), required + &config).unwrap();
    let behind = format!("{},{}", shoal.name(1), shoal.name(2));
    let records = shoal
        .run_on(&behind, &["-J", &gate, "--json", "echo ${SSH_CLIENT%% *}"])
        .expect(0)
        .records();
    for record in &records.hosts {
        assert_eq!(record.transport.as_deref(), Some("openssh"), "{record:?}");
        let reason = record.transport_reason.as_ref().unwrap();
        assert!(reason.contains(&format!("jump host {gate}")), "{reason}");
    }
    let stopped = shoal.run_on(
        &shoal.name(1),
        &[
            "-J",
            "no-such-gate.invalid",
            "--transport",
            "openssh",
            "--json",
            "true",
        ],
    );
    let record = stopped.expect(3).records().hosts.remove(0);
    assert_eq!(
        (record.failure(), record.fate.as_str()),
        ("resolve", "not-sent"),
        "{record:?}"
    );
}

#[test]
fn explain_and_dry_run_name_the_transport_and_the_reason() {
    let shoal = Shoal::real(&SshdSpec::new(1));
    let name = shoal.name(0);
    let config = shoal.file("ssh_config");
    let explain = |arguments: &[&str]| {
        let mut command = shoal.user.command(env!("CARGO_BIN_EXE_sshoal"));
        command
            .args(["explain", "-F", &config, &name])
            .args(arguments);
        Running::start(&mut command).wait().expect(0).stdout()
    };
    let plain = explain(&[]);
    assert!(plain.contains("transport     native\n"), "{plain}");
    let token = explain(&["-o", "PKCS11Provider=/lib/token.so"]);
    let expected = "transport     openssh, for PKCS11Provider /lib/token.so  (command line)";
    assert!(token.contains(expected), "{token}");
    let all = explain(&["--transport", "openssh"]);
    assert!(
        all.contains("transport     openssh  (--transport openssh)"),
        "{all}"
    );
    let json = explain(&["--json", "-o", "PKCS11Provider=/lib/token.so"]);
    assert!(json.contains("\"transport\":\"openssh\""), "{json}");
    assert!(
        json.contains("\"requirements\":[{\"what\":\"PKCS11Provider /lib/token.so\""),
        "{json}"
    );
    let dry = shoal.run(&["--transport", "openssh", "--dry-run", "uptime"]);
    let dry = dry.expect(0).stdout();
    assert!(
        dry.contains(" by ssh [--transport openssh]: uptime"),
        "{dry}"
    );
}

#[test]
fn words_for_ssh_are_passed_on_and_refused_where_no_host_goes_by_it() {
    let shoal = Shoal::real(&SshdSpec::new(1));
    shoal
        .run(&["--ssh-word", "-4", "true"])
        .expect(2)
        .says(&["--ssh-word is for hosts that go by ssh"]);
    let by_ssh = ["--transport", "openssh", "--json"];
    let with = |word: &str| {
        [&by_ssh[..], &["--ssh-word", word, "true"]]
            .concat()
            .join(" ")
    };
    let line = with("-oPort=1");
    // As typed to ssh itself, where it counts before what the configuration says.
    let arguments: Vec<&str> = line.split(' ').collect();
    let record = shoal.run(&arguments).expect(3).records().hosts.remove(0);
    assert_eq!(record.failure(), "refused", "{record:?}");
    for word in ["-q", "127.0.0.1"] {
        let arguments = ["--transport", "openssh", "--ssh-word", word, "true"];
        shoal.run(&arguments).expect(2).says(&["--ssh-word: "]);
    }
}
