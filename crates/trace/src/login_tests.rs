//! Which login it is, when it begins and when it ends.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::fixtures::{ASLEEP, Host, LISTENER, RUNNABLE, ZOMBIE, login};
use crate::sums::TracedError;

const OURS: Wanted = Wanted {
    ports: Some((22, 40000)),
    client: None,
    until: None,
};

fn found(host: &Host, wanted: Wanted) -> Result<(u32, u32, bool), TracedError> {
    let traced = host.traced(wanted)?;
    let pid = |id| traced.tree.process(id).pid;
    let login = traced.login;
    Ok((pid(login.root), pid(login.command), login.is_matched))
}

#[test]
fn it_lasts_from_the_fork_until_the_output_is_passed_on() {
    let traced = login(|_| {}).traced(OURS).unwrap();
    assert_eq!((traced.login.begin, traced.login.end), (100_000, 1_000_000));
    assert_eq!(traced.tree.thread(traced.login.last).number, 150);
    assert!(traced.login.is_matched);
}

#[test]
fn a_server_that_never_slept_while_the_command_spoke_passes_the_output_on_when_it_goes_on() {
    let mut host = Host::default();
    host.fork(100_000, LISTENER, 150)
        .switch(101_000, 0, RUNNABLE, 150)
        .fork(200_000, 150, 190)
        // It loses its processor, so that nobody has to wake it.
        .switch(210_000, 150, RUNNABLE, 190)
        .exec(220_000, 190, "/bin/sh")
        .exit(300_000, 190)
        .switch(310_000, 190, ZOMBIE, 150)
        .switch(400_000, 150, ASLEEP, 0)
        .socket(500_000, 150, 4, (22, 40000));
    let traced = host.traced(OURS).unwrap();
    assert_eq!((traced.login.begin, traced.login.end), (100_000, 400_000));
    assert_eq!(traced.tree.process(traced.login.command).pid, 190);
}

#[test]
fn of_several_logins_the_ports_tell_ours() {
    let mut host = login(|_| {});
    host.fork(120_000, LISTENER, 300)
        .switch(121_000, 0, RUNNABLE, 300)
        .fork(130_000, 300, 301)
        .exec(131_000, 301, "/bin/sh")
        .wake(132_000, 301, 0, 300);
    assert_eq!(found(&host, OURS), Ok((150, 190, true)));
    let several = LoginError::Several(2);
    assert_eq!(found(&host, Wanted::default()), Err(several.into()));
}

#[test]
fn of_several_logins_with_the_same_ports_the_address_tells_ours() {
    let mut host = login(|_| {});
    host.fork(120_000, LISTENER, 300)
        .switch(121_000, 0, RUNNABLE, 300)
        .fork(130_000, 300, 301)
        .exec(131_000, 301, "/bin/sh")
        .wake(132_000, 301, 0, 300)
        .socket_of(133_000, 300, 4, (22, 40000), [198, 51, 100, 7]);
    let at = |client: &str| Wanted {
        client: Some(client.parse().unwrap()),
        ..OURS
    };
    assert_eq!(found(&host, at("198.51.100.7")), Ok((300, 301, true)));
    assert_eq!(
        found(&host, at("::ffff:198.51.100.7")),
        Ok((300, 301, true))
    );
    let several = LoginError::Several(2);
    assert_eq!(found(&host, at("198.51.100.8")), Err(several.into()));
}

#[test]
fn the_only_login_is_ours() {
    let mut host = login(|_| {});
    // A scan of the port runs nothing.
    host.fork(120_000, LISTENER, 300);
    assert_eq!(found(&host, Wanted::default()), Ok((150, 190, false)));
}

#[test]
fn nobody_and_nothing_are_told_apart() {
    let mut host = Host::default();
    host.exit(10, 77);
    assert_eq!(found(&host, OURS), Err(LoginError::None.into()));
    host.fork(20, LISTENER, 150);
    assert_eq!(found(&host, OURS), Err(LoginError::NoCommand.into()));
}

#[test]
fn what_pam_runs_before_and_afterwards_is_not_the_command() {
    let mut host = login(|host| {
        host.fork(110_000, 150, 160)
            .exec(111_000, 160, "/usr/bin/motd")
            .wake(120_000, 160, 0, 150);
    });
    host.probe(1_200_000, 150, true)
        .fork(1_210_000, 150, 195)
        .exec(1_220_000, 195, "/usr/bin/farewell")
        .wake(1_230_000, 195, 0, 150);
    // The probe of the fixture is that of another function.
    assert_eq!(found(&host, OURS).unwrap().1, 195);
    let until = Some(1_050_000);
    assert_eq!(found(&host, Wanted { until, ..OURS }).unwrap().1, 190);
    let traced = host.traced(OURS).unwrap();
    let closes = Probe {
        module: "pam_exec.so".to_owned(),
        function: CLOSING.to_owned(),
    };
    let login = Login::find(&traced.tree, &[closes], OURS).unwrap();
    assert_eq!(traced.tree.process(login.command).pid, 190);
}

#[test]
fn what_the_server_runs_of_its_own_is_not_the_command() {
    let mut host = Host::default();
    host.fork(10, LISTENER, 1)
        .exec(20, 1, "/usr/lib/openssh/sshd-session")
        .fork(30, 1, 2)
        .exec(40, 2, "/usr/lib/openssh/sshd-auth")
        .fork(50, 1, 3)
        .fork(60, 3, 4)
        .exec(70, 4, "/bin/bash")
        .wake(80, 4, 0, 3)
        .socket(90, 1, 7, (22, 40000));
    assert_eq!(found(&host, OURS), Ok((1, 4, true)));
}
