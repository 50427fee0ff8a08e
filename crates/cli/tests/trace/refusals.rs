//! Where nothing can be traced, the report says why and is that of the other tiers.

use std::ffi::OsString;
use std::fs;
use std::process::Command;

use serde_json::Value;
use sshoal_testbed::slow::Injection;
use sshoal_testbed::sshd::{RealSshd, SshdSpec};
use sshoal_trace::Frame;

use crate::logins::Host;
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

/// A tracer that is started in mounts of its own, which these lines of a shell have changed; by `last`, a program and its flags.
fn started_among(mounts: &str, last: &str) -> Tracer {
    let shell = Shell::new("true");
    let mut command = Command::new("unshare");
    let line = format!("{mounts}\nexec {last} \"$@\"");
    command.args(["--mount", "sh", "-ec", &line, "sh"]);
    Tracer::start_by(&mut command, shell.pid())
}

#[test]
fn the_root_of_a_container_is_told_to_trace_on_its_host() {
    if !may_trace() {
        return;
    }
    let mounts = "mount -t tmpfs none /run\n: >/run/.containerenv";
    let last = "setpriv --bounding-set=-sys_admin --inh-caps=-sys_admin";
    let (kind, words) = refused(started_among(mounts, last));
    assert_eq!(kind, "not-permitted", "{words}");
    assert!(
        words.contains("container") && words.contains("trace on its host"),
        "{words}"
    );
}

#[test]
fn a_kernel_without_tracefs_is_told_of() {
    if !may_trace() {
        return;
    }
    let mounts = "umount -l /sys/kernel/tracing 2>/dev/null || :\n\
                  umount -l /sys/kernel/debug 2>/dev/null || :\n\
                  mount -t tmpfs none /mnt\n\
                  grep -v tracefs /proc/filesystems >/mnt/filesystems\n\
                  mount --bind /mnt/filesystems /proc/filesystems";
    let (kind, words) = refused(started_among(mounts, "env"));
    assert_eq!(kind, "no-tracefs", "{words}");
    assert!(words.contains("this kernel has no tracefs"), "{words}");
}

/// What `why --trace` says of a host that it cannot trace on.
#[track_caller]
fn untraced(host: &Host) -> String {
    let words = ["--trace", "--repeat", "1", "--no-ssh", "--json"];
    let ended = Running::start(&mut host.why(&words)).wait().expect(0);
    let found: Value = serde_json::from_str(&ended.stdout()).unwrap();
    assert_eq!(found["tier"], "no-root");
    assert!(found["trace"].is_null());
    found["tier_notes"].to_string()
}

#[test]
fn a_host_without_room_is_told_of_and_nothing_is_left_there() {
    if !may_trace() {
        return;
    }
    let Some(host) = Host::start(&Injection::several("motd:20").unwrap()) else {
        return;
    };
    let folders = ["/run", "/dev/shm", "/tmp", "/var/tmp"];
    // What sshd and PAM need there stays. The tracer has some hundred KiB.
    host.enter(
        "mount -t tmpfs -o size=256k,mode=755 none /mnt
         cp -a /run/sshd /run/sshoal-slow /run/utmp /mnt/
         mount --no-mtab --move /mnt /run
         for folder in /dev/shm /tmp /var/tmp; do mount --no-mtab -t tmpfs -o size=64k,mode=1777 none $folder; done",
    );
    let notes = untraced(&host);
    assert!(notes.contains("no folder there with room"), "{notes}");
    for folder in folders {
        let left = fs::read_dir(host.path(folder)).unwrap();
        let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
        let is_ours = |name: &OsString| name.to_string_lossy().starts_with("sshoal.");
        assert!(!left.iter().any(is_ours), "{folder}: {left:?}");
    }
}

#[test]
fn a_host_without_sudo_is_told_of() {
    if !may_trace() {
        return;
    }
    let Some(host) = Host::start(&Injection::several("motd:20").unwrap()) else {
        return;
    };
    host.enter("for sudo in $(command -v -p sudo); do mount --bind /dev/null \"$sudo\"; done");
    let notes = untraced(&host);
    let words = "no trace: it takes root there, and there is no sudo";
    assert!(notes.contains(words), "{notes}");
}

#[test]
fn without_root_and_without_sudo_s_password_the_other_tiers_report() {
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
    assert!(
        notes.contains("no trace: sudo wants a password there: there is no terminal"),
        "{notes}"
    );
    assert!(found["trace"].is_null());
}
