//! Where nothing can be traced, the report says why and is that of the other tiers.

use std::process::Command;

use serde_json::Value;
use sshoal_testbed::sshd::{RealSshd, SshdSpec};
use sshoal_trace::Frame;

use crate::may_trace;
use crate::support::Shoal;
use crate::support::program::Running;
use crate::tracer::{Shell, Tracer};

/// What it says when it is not allowed to.
fn refused(mut tracer: Tracer) -> (String, String) {
    match tracer.next() {
        Some(Frame::Failed(kind, words)) => (kind, words),
        other => panic!("{other:?}"),
    }
}

#[test]
fn without_root_the_tracer_says_so() {
    if !may_trace() {
        return;
    }
    let shell = Shell::new("true");
    // Nobody may read root's folder: that is opened first.
    let open = "chmod 755 \"${1%/*}\" \"${1%/*}/..\" \"$1\"";
    let mut nobody = Command::new("sh");
    nobody.arg("-c").arg(format!(
        "{open}; exec setpriv --reuid 65534 --clear-groups \"$@\""
    ));
    nobody.arg("sh");
    let (kind, words) = refused(Tracer::start_by(&mut nobody, shell.pid()));
    assert_eq!(kind, "not-root", "{words}");
}

#[test]
fn a_root_that_may_not_mount_is_told_so() {
    if !may_trace() {
        return;
    }
    let shell = Shell::new("true");
    let mut confined = Command::new("setpriv");
    confined.args(["--bounding-set=-sys_admin", "--inh-caps=-sys_admin"]);
    let (kind, words) = refused(Tracer::start_by(&mut confined, shell.pid()));
    assert_eq!(kind, "not-permitted", "{words}");
    assert!(words.contains("tracefs cannot be mounted here"), "{words}");
}

#[test]
fn without_root_and_sudo_the_other_tiers_report() {
    if !may_trace() {
        return;
    }
    let shoal: Shoal<RealSshd> = Shoal::real(&SshdSpec::new(1));
    let mut command = shoal.user.command(env!("CARGO_BIN_EXE_sshoal"));
    let name = shoal.name(0);
    let words = ["--trace", "--repeat", "1", "--no-ssh", "--json"];
    command
        .args(["why", &name, "-F", &shoal.file("ssh_config")])
        .args(words);
    let ended = Running::start(&mut command).wait().expect(0);
    let found: Value = serde_json::from_str(&ended.stdout()).unwrap();
    assert_eq!(found["tier"], "no-root");
    let notes = found["tier_notes"].to_string();
    assert!(notes.contains("no trace: "), "{notes}");
    assert!(found["trace"].is_null());
}
