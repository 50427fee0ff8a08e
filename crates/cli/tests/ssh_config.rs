//! Keywords of ssh_config(5) that change what a run does.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::net::Ipv4Addr;
use std::process::Command;

use sshoal_testbed::sshd::SshdSpec;
use support::Shoal;
use support::program::Running;

#[test]
fn set_env_and_send_env_reach_the_command() {
    let mut spec = SshdSpec::new(1);
    spec.lines = vec!["AcceptEnv A_* B".to_owned()];
    let shoal = Shoal::real(&spec);
    let mut command = shoal.command(&[
        "-o",
        "SendEnv=A_* UNSET",
        "-o",
        "SetEnv=A_BOTH=set B=\"two words\" NOT_ACCEPTED=x",
        "--json",
        "echo $A_SENT/$A_BOTH/$B/$NOT_ACCEPTED",
    ]);
    command.env("A_SENT", "sent").env("A_BOTH", "sent");
    let records = Running::start(&mut command).wait().expect(0).records();
    assert_eq!(
        records.hosts[0].stdout.as_deref(),
        Some("sent/set/two words/\n")
    );
}

#[test]
fn connections_come_from_the_address_and_of_the_family_that_are_asked_for() {
    let shoal = Shoal::real(&SshdSpec::new(1));
    let from = Ipv4Addr::new(127, 77, 0, 1);
    let bind = format!("BindAddress={from}");
    let records = shoal
        .run(&["-o", &bind, "--json", "echo ${SSH_CLIENT%% *}"])
        .expect(0)
        .records();
    assert_eq!(records.hosts[0].stdout, Some(format!("{from}\n")));
    for (options, failure, words) in [
        (["-o", "AddressFamily=inet6"], "resolve", "AddressFamily"),
        (["-o", "BindAddress=::1"], "unreachable", "BindAddress"),
    ] {
        let arguments = [&options[..], &["--json", "true"]].concat();
        let records = shoal.run(&arguments).expect(3).records();
        let record = &records.hosts[0];
        assert_eq!(record.failure(), failure, "{record:?}");
        assert!(
            record.detail.as_ref().unwrap().contains(words),
            "{record:?}"
        );
    }
}

#[test]
fn revoked_host_keys_are_refused_by_whatever_file_and_a_file_that_is_not_there_refuses_all() {
    let shoal = Shoal::real(&SshdSpec::new(2));
    let known = fs::read_to_string(shoal.file("known_hosts")).unwrap();
    let key = known.lines().next().unwrap().split_once(' ').unwrap().1;
    let (list, krl) = (shoal.file("revoked"), shoal.file("krl"));
    fs::write(&list, format!("{key}\n")).unwrap();
    let made = Command::new("ssh-keygen")
        .args(["-q", "-k", "-f", &krl, &list])
        .status();
    assert!(made.unwrap().success());
    for file in [&list, &krl] {
        for strict in ["yes", "no"] {
            let revoked = format!("RevokedHostKeys={file}");
            let strict = format!("StrictHostKeyChecking={strict}");
            let options = ["-o", &revoked, "-o", &strict, "--json", "true"];
            let records = shoal.run(&options).expect(3).records().by_name();
            assert_eq!(records[&shoal.name(0)].failure(), "host-key-revoked");
            assert!(records[&shoal.name(1)].is_ok());
        }
    }
    for (file, words) in [("/nonexistent", "No such file"), ("/etc/passwd", "line 1")] {
        let revoked = format!("RevokedHostKeys={file}");
        let said = shoal.run(&["-o", &revoked, "true"]).expect(2);
        said.says(&[file, "RevokedHostKeys", words]);
    }
}

#[test]
fn connect_timeout_is_each_hosts_own_and_the_flag_goes_before_it() {
    let shoal = Shoal::simulated(1, &["0=connect-hang"]);
    let said = |arguments: &[&str]| {
        let arguments = [arguments, &["--json", "true"]].concat();
        let records = shoal.run(&arguments).expect(3).records();
        assert_eq!(records.hosts[0].failure(), "connect-timeout");
        records.hosts[0].detail.clone().unwrap()
    };
    let timeout = ["-o", "ConnectTimeout=1"];
    let detail = said(&timeout);
    assert!(detail.contains("within 1s"), "{detail}");
    let detail = said(&[&timeout[..], &["--connect-timeout", "2"]].concat());
    assert!(detail.contains("within 2s"), "{detail}");
}
