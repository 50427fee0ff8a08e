//! The pages of `sshoal why --html` in headless Chromium: scripts/check_pages.py looks whether what they promise works.

#![allow(clippy::unwrap_used)]

mod support;

use std::process::Command;

use sshoal_testbed::sshd::{RealSshd, SshdSpec};
use support::Shoal;
use support::program::Running;

/// Writes the page of these hosts.
fn page(shoal: &Shoal<RealSshd>, hosts: &[&str], path: &str) {
    let mut command = shoal.user.command(env!("CARGO_BIN_EXE_sshoal"));
    command.arg("why").args(["-F", &shoal.file("ssh_config")]);
    command.args(["--repeat", "2", "--html", path]).args(hosts);
    Running::start(&mut command).wait().expect(0);
}

#[test]
fn pages_do_in_a_browser_what_they_promise() {
    // So that there is something to find, and a bar that is longer than the others.
    let slow = "ForceCommand sleep 0.3; eval \"$SSH_ORIGINAL_COMMAND\"";
    let shoal = Shoal::real(&SshdSpec::new(2).line(slow));
    let [host, fleet] = ["host.html", "fleet.html"].map(|name| shoal.file(name));
    page(&shoal, &[&shoal.name(0)], &host);
    let both = format!("{},{}", shoal.name(0), shoal.name(1));
    page(&shoal, &["-w", &both], &fleet);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/check_pages.py");
    let output = Command::new("python3")
        .args([script, &host, &fleet])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{errors}");
}
