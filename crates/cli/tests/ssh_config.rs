//! Keywords of ssh_config(5) that change what a run does.

#![allow(clippy::unwrap_used)]

mod support;

use std::net::Ipv4Addr;

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
