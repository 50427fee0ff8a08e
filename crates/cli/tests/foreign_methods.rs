//! Ways of logging in that only ssh itself has: switched on they hinder nothing, and a failure names them.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::process::Command;

use sshoal_testbed::sshd::{RealSshd, SshdSpec};
use support::Shoal;
use support::program::Running;

/// A server that takes them all, and a key that it does not know.
fn shoal() -> Shoal<RealSshd> {
    let spec = SshdSpec::new(1)
        .line("GSSAPIAuthentication yes")
        .line("HostbasedAuthentication yes");
    Shoal::real(&spec)
}

fn replace_key(shoal: &Shoal<RealSshd>) {
    let key = shoal.file("id_ed25519");
    fs::remove_file(&key).unwrap();
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f", &key])
        .status();
    assert!(made.unwrap().success());
}

#[test]
fn what_is_merely_switched_on_hinders_nothing() {
    let shoal = shoal();
    let options =
        ["GSSAPIAuthentication", "HostbasedAuthentication"].map(|key| format!("{key}=yes"));
    let mut command = shoal.command(&["-o", &options[0], "-o", &options[1], "true"]);
    command.env("KRB5CCNAME", "FILE:/dev/null");
    Running::start(&mut command).wait().expect(0);
}

#[test]
fn where_nothing_else_serves_the_failure_names_the_method_that_the_server_takes() {
    let shoal = shoal();
    replace_key(&shoal);
    let said = |option: &str, cache: &str| {
        let mut command = shoal.command(&["-o", option, "true"]);
        command.env("KRB5CCNAME", cache);
        Running::start(&mut command).wait().expect(3).stderr()
    };
    let gssapi = "ssh itself: it takes GSSAPI";
    let with_ticket = said("GSSAPIAuthentication=yes", "FILE:/dev/null");
    assert!(with_ticket.contains(gssapi), "{with_ticket}");
    let without = said("GSSAPIAuthentication=yes", "FILE:/nonexistent");
    assert!(!without.contains(gssapi), "{without}");
    let hostbased = said("HostbasedAuthentication=yes", "FILE:/nonexistent");
    assert!(
        hostbased.contains("ssh itself: it takes host-based"),
        "{hostbased}"
    );
    let native = |option: &str| {
        let mut command = shoal.command(&["--transport", "native", "-o", option, "true"]);
        Running::start(&mut command).wait().expect(3).stderr()
    };
    let token = native("PKCS11Provider=/lib/token.so");
    assert!(
        token.contains("PKCS11Provider /lib/token.so (command line)"),
        "{token}"
    );
}
