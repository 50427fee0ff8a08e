//! Where tracefs is not to be had, it is said why, and the next best way is taken; where nothing can be followed, the report is
//! that of the other tiers.

use std::ffi::OsString;
use std::fs;
use std::process::Command;

use serde_json::Value;
use sshoal_testbed::slow::Injection;
use sshoal_trace::Frame;

use crate::logins::{Host, processes, ran};
use crate::may_trace;
use crate::support::program::Running;
use crate::support::write_program;
use crate::tracer::{Shell, Tracer};

/// By what it follows, and why not by tracefs.
fn refused(tracer: Tracer) -> (String, String) {
    let tracer = tracer.arm();
    let (by, refused) = (&tracer.means().by, &tracer.means().refused);
    assert_eq!(refused[0].0, "tracefs");
    (by.clone(), refused[0].1.clone())
}

/// What is left for root: the proc connector, where the kernel has it and speaks to our namespaces.
fn next_best() -> &'static str {
    let shell = Shell::new("true");
    let tracer = Tracer::start_without(shell.pid(), "tracefs").arm();
    match tracer.means().by.as_str() {
        "proc" => "proc",
        _ => "proc-connector",
    }
}

#[test]
fn where_nothing_can_be_followed_the_tracer_says_why() {
    if !may_trace() {
        return;
    }
    let shell = Shell::new("true");
    let mut tracer = Tracer::start_without(shell.pid(), "tracefs,proc-connector,proc");
    match tracer.next() {
        Some(Frame::Failed(kind, words)) => {
            assert_eq!(kind, "no-tracefs");
            assert_eq!(words, "it is not to be used");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn without_root_the_tracer_does_without_tracefs() {
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
    let (by, words) = refused(Tracer::start_by(&mut nobody, shell.pid()));
    // Since Linux 6.6 everybody may hear of processes.
    assert!(["proc", "proc-connector"].contains(&by.as_str()), "{by}");
    assert_eq!(words, "tracefs is root's alone");
}

#[test]
fn a_root_that_may_not_mount_is_told_so() {
    if !may_trace() {
        return;
    }
    let shell = Shell::new("true");
    let mut confined = Command::new("setpriv");
    confined.args(["--bounding-set=-sys_admin", "--inh-caps=-sys_admin"]);
    let (by, words) = refused(Tracer::start_by(&mut confined, shell.pid()));
    assert_eq!(by, next_best(), "{words}");
    assert!(words.contains("tracefs cannot be mounted here"), "{words}");
}

/// By what a tracer follows that is started in mounts of its own, which these lines of a shell have changed, by `last`, a program
/// and its flags; and why not by tracefs.
fn refused_among(mounts: &str, last: &str) -> (String, String) {
    let shell = Shell::new("true");
    let mut command = Command::new("unshare");
    let line = format!("{mounts}\nexec {last} \"$@\"");
    command.args(["--mount", "sh", "-ec", &line, "sh"]);
    refused(Tracer::start_by(&mut command, shell.pid()))
}

#[test]
fn the_root_of_a_container_is_told_to_trace_on_its_host() {
    if !may_trace() {
        return;
    }
    let mounts = "mount -t tmpfs none /run\n: >/run/.containerenv";
    // It has a network of its own, in which no kernel tells of processes.
    let last = "unshare --net setpriv --bounding-set=-sys_admin --inh-caps=-sys_admin";
    let (by, words) = refused_among(mounts, last);
    assert_eq!(by, "proc", "{words}");
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
    let (by, words) = refused_among(mounts, "env");
    assert_eq!(by, next_best(), "{words}");
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

/// What `why --trace` says of a host that its user follows a login on, without root.
#[track_caller]
pub(crate) fn followed_without_root(found: &Value, why: &str) {
    assert_eq!(found["tier"], "no-root");
    let trace = &found["trace"];
    let by = trace["by"].as_str().unwrap();
    assert!(["proc", "proc-connector"].contains(&by), "{by}");
    assert_eq!(trace["matched"], true);
    assert_eq!(trace["refused"][0]["by"], "root");
    let reason = trace["refused"][0]["reason"].as_str().unwrap();
    assert!(reason.starts_with(why), "{reason}");
    let notes = found["tier_notes"].to_string();
    assert!(notes.contains("a login was followed by"), "{notes}");
}

#[test]
fn on_a_host_without_sudo_the_user_looks_at_proc() {
    if !may_trace() {
        return;
    }
    let Some(host) = Host::start(&Injection::several("motd:1000").unwrap()) else {
        return;
    };
    host.enter("for sudo in $(command -v -p sudo); do mount --bind /dev/null \"$sudo\"; done");
    let found = host.followed("proc-connector");
    followed_without_root(&found, "there is no sudo");
    assert_eq!(found["trace"]["by"], "proc");
    // Root's script is seen by its name all the same, and by its command line.
    let script = "/etc/update-motd.d/50-status";
    let all = processes(&found);
    assert!(all.iter().any(|process| ran(process, script)), "{all:#?}");
}

/// A host whose sudo wants a password, and that password.
fn wanting_a_password() -> Option<(Host, &'static str)> {
    let password = "right horse";
    let host = Host::start(&Injection::several("motd:20").unwrap())?;
    host.enter(&format!(
        "grep -rl sshoal-slow /etc/sudoers /etc/sudoers.d | while read -r file; do
             sed -i 's/NOPASSWD: //' \"$file\"
         done
         echo 'sshoal-slow:{password}' | chpasswd"
    ));
    Some((host, password))
}

/// What `why --trace` finds where whoever is asked answers with these lines, one after the other, and how often that was.
fn found_by_answers(host: &Host, answers: &str) -> (Value, usize) {
    let desk = tempfile::tempdir().unwrap();
    let file = |name: &str| desk.path().join(name).display().to_string();
    let (asker, asked, lines) = (file("asker"), file("asked"), file("answers"));
    fs::write(&lines, answers).unwrap();
    let script = format!("#!/bin/sh\necho >>{asked}\nsed -n \"$(wc -l <{asked})p\" {lines}\n");
    write_program(&asker, script);
    let mut command = host.why(&["--trace", "--repeat", "1", "--no-ssh", "--json"]);
    let asks = command
        .env("SSH_ASKPASS", &asker)
        .env("SSH_ASKPASS_REQUIRE", "force");
    let ended = Running::start(asks).wait().expect(0);
    let found = serde_json::from_str(&ended.stdout()).unwrap();
    (found, fs::read_to_string(asked).unwrap().lines().count())
}

#[test]
fn without_sudo_s_password_the_user_looks_at_proc() {
    if !may_trace() {
        return;
    }
    let Some((host, password)) = wanting_a_password() else {
        return;
    };
    let found = host.followed("");
    followed_without_root(&found, "sudo wants a password there: there is no terminal");

    let (found, asked) = found_by_answers(&host, "a wrong one\nanother\na third\n");
    followed_without_root(&found, "sudo did not take the password there: ");
    assert_eq!(asked, 3);

    let (found, asked) = found_by_answers(&host, &format!("a wrong one\n{password}\n"));
    assert_eq!(found["tier"], "root", "{}", found["tier_notes"]);
    assert_eq!(found["trace"]["by"], "tracefs");
    assert_eq!(asked, 2);
}
