//! Keywords of ssh_config(5) about what is run, and how the connection for it is made.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::net::TcpListener;

use sshoal_testbed::sshd::SshdSpec;
use support::Shoal;
use support::program::Running;

#[test]
fn a_remote_command_is_run_where_none_is_typed_and_refused_beside_one() {
    let shoal = Shoal::real(&SshdSpec::new(2));
    let remote = ["-o", "RemoteCommand=echo I am %h"];
    let records = shoal.run(&[&remote[..], &["--json"]].concat());
    for record in &records.expect(0).records().hosts {
        assert_eq!(record.stdout, Some(format!("I am {}\n", record.host)));
    }
    let dry = shoal.run(&[&remote[..], &["--dry-run"]].concat()).expect(0);
    let expected = format!("echo I am {}", shoal.name(1));
    assert!(dry.stdout().contains(&expected), "{}", dry.stdout());
    let both = shoal.run(&[&remote[..], &["true"]].concat()).expect(2);
    both.says(&["RemoteCommand"]);
    shoal.run(&[]).expect(2).says(&["no command was given"]);
    let config = fs::read_to_string(shoal.file("ssh_config")).unwrap();
    let only = format!("Host {}\n  RemoteCommand true\n{config}", shoal.name(0));
    fs::write(shoal.file("ssh_config"), only).unwrap();
    let name = shoal.name(1);
    let run = shoal.run(&[]).expect(2);
    run.says(&[&name, "no RemoteCommand for this host"]);
}

#[test]
fn a_terminal_is_asked_for_by_force_only() {
    let shoal = Shoal::real(&SshdSpec::new(2));
    for (value, expected) in [
        ("no", "not"),
        ("auto", "not"),
        ("yes", "not"),
        ("force", "tty"),
    ] {
        let tty = format!("RequestTTY={value}");
        let command = "if test -t 1; then echo tty; else echo not; fi";
        let records = shoal
            .run(&["-o", &tty, "--json", command])
            .expect(0)
            .records();
        for record in &records.hosts {
            assert_eq!(
                record.stdout.as_deref().unwrap().trim(),
                expected,
                "{value}"
            );
        }
    }
}

#[test]
fn sessions_that_run_no_command_are_refused() {
    let shoal = Shoal::real(&SshdSpec::new(1));
    for kind in ["none", "subsystem"] {
        let session = format!("SessionType={kind}");
        let run = shoal.run(&["-o", &session, "sftp"]).expect(2);
        run.says(&[&session.replace('=', " "), "command line", "ssh itself"]);
    }
}

#[test]
fn connections_come_from_an_interface_and_from_the_address_of_a_name() {
    let shoal = Shoal::real(&SshdSpec::new(1));
    for option in ["BindInterface=lo", "BindAddress=localhost"] {
        let command = "echo ${SSH_CLIENT%% *}";
        let records = shoal.run(&["-o", option, "-o", "AddressFamily=inet", "--json", command]);
        let records = records.expect(0).records();
        assert_eq!(records.hosts[0].stdout.as_deref(), Some("127.0.0.1\n"));
    }
    for option in ["BindInterface=absent0", "BindAddress=256.0.0.1"] {
        let (keyword, value) = option.split_once('=').unwrap();
        let run = shoal.run(&["-o", option, "true"]).expect(2);
        run.says(&[keyword, value, "command line"]);
    }
}

#[test]
fn a_host_that_refuses_is_tried_as_often_as_connection_attempts_says() {
    let port = {
        let listener = TcpListener::bind("127.2.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let first = Shoal::real(&SshdSpec::new(1));
    let mut command = first.configured(&["-w", "127.2.0.1", "-o", "ConnectionAttempts=200"]);
    let port_option = format!("Port={port}");
    command.args(["-o", &port_option, "-o", "StrictHostKeyChecking=no"]);
    command.args(["--connect-timeout", "200", "--json", "true"]);
    let run = Running::start(&mut command);
    let later = Shoal::real(&SshdSpec {
        port,
        ..SshdSpec::new(1)
    });
    let records = run.wait().expect(3).records();
    // It was there in the end, but the account's key is the other server's.
    assert_eq!(records.hosts[0].failure(), "auth-denied");
    assert_eq!(records.hosts[0].attempts, 1);
    drop(later);
}
