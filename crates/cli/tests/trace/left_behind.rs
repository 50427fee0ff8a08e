//! What a tracer leaves: nothing, however it ends.

use std::fs;

use rustix::process::{Pid, Signal, geteuid, kill_process};
use serde_json::Value;
use sshoal_testbed::slow::Injection;

use crate::logins::{Host, started_tracers};
use crate::may_trace;
use crate::support::program::Running;
use crate::support::wait_until;
use crate::tracer::{Shell, Tracer, View};

#[test]
fn a_tracer_that_ends_takes_its_instance_and_its_probes_away() {
    if !may_trace() {
        return;
    }
    let (view, shell) = (View::new(), Shell::new("true"));
    let mut tracer = Tracer::start(shell.pid()).arm();
    let name = view.instance(&tracer.mark()).unwrap();
    assert!(view.has_probes(&name), "of the shell's C library at least");
    tracer.end();
    assert_eq!(view.instance(&name), None);
    assert!(!view.has_probes(&name));
}

#[test]
fn a_tracer_that_is_killed_has_its_watcher_take_them_away() {
    if !may_trace() {
        return;
    }
    let (view, shell) = (View::new(), Shell::new("true"));
    let mut tracer = Tracer::start(shell.pid()).arm();
    let name = view.instance(&tracer.mark()).unwrap();
    tracer.kill();
    wait_until("its instance has gone", || view.instance(&name).is_none());
    wait_until("its probes have gone", || !view.has_probes(&name));
}

#[test]
fn what_ends_a_session_ends_the_tracer_and_not_its_watcher() {
    if !may_trace() {
        return;
    }
    let (view, shell) = (View::new(), Shell::new("true"));
    let mut tracer = Tracer::start(shell.pid()).arm();
    let name = view.instance(&tracer.mark()).unwrap();
    let watcher = tracer.watcher();
    // It leads a session of its own: neither a terminal's end nor a group's is its own.
    let stat = fs::read_to_string(format!("/proc/{}/stat", watcher.as_raw_nonzero())).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    let own = watcher.as_raw_nonzero().to_string();
    assert_eq!(fields[2..4], [own.as_str(), own.as_str()]);
    for signal in [Signal::HUP, Signal::INT, Signal::TERM] {
        kill_process(watcher, signal).unwrap();
    }
    tracer.kill();
    wait_until("its instance has gone", || view.instance(&name).is_none());
    wait_until("its probes have gone", || !view.has_probes(&name));
}

#[test]
fn what_a_tracer_and_its_watcher_leave_the_next_one_takes_away() {
    if !may_trace() {
        return;
    }
    let (view, shell) = (View::new(), Shell::new("true"));
    let living = Tracer::start(shell.pid()).arm();
    let mut tracer = Tracer::start(shell.pid()).arm();
    let name = view.instance(&tracer.mark()).unwrap();
    kill_process(tracer.watcher(), Signal::KILL).unwrap();
    tracer.kill();
    let _next = Tracer::start(shell.pid()).arm();
    assert_eq!(view.instance(&name), None);
    assert!(!view.has_probes(&name));
    // The living are left alone.
    assert!(view.instance(&living.mark()).is_some());
}

#[test]
fn a_tracer_that_does_without_tracefs_makes_nothing_that_could_be_left() {
    if !may_trace() {
        return;
    }
    let (view, shell) = (View::new(), Shell::new("true"));
    for without in ["tracefs", "tracefs,proc-connector"] {
        let mut tracer = Tracer::start_without(shell.pid(), without).arm();
        assert_eq!(view.instance(&tracer.mark()), None);
        assert!(tracer.files().is_empty(), "{:?}", tracer.files());
        // No watcher either.
        let pid = tracer.pid().as_raw_nonzero();
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
        assert_eq!(children, "");
        tracer.kill();
    }
}

#[test]
fn a_tracer_whose_reader_has_stopped_ends_all_the_same_and_nothing_is_left() {
    if !may_trace() {
        return;
    }
    // More than a pipe holds.
    let run = "i=0; while [ $i -lt 200 ]; do /bin/true; i=$((i + 1)); done";
    let (view, mut shell) = (View::new(), Shell::new(run));
    let mut tracer = Tracer::start_for(shell.pid(), 8).arm();
    let name = view.instance(&tracer.mark()).unwrap();
    shell.go();
    tracer.ask_to_end();
    // Nobody reads what it says from here on.
    assert!(!tracer.wait().success());
    wait_until("its instance has gone", || view.instance(&name).is_none());
    wait_until("its probes have gone", || !view.has_probes(&name));
}

/// Once there is this file, a login that is traced goes on.
const GO: &str = "/run/sshoal-slow/go";
/// Of update-motd.d: stands still if a tracer runs on this host, and no other host's tracer counts.
const HOLD: &str = r#"#!/bin/sh
for exe in /proc/[0-9]*/exe; do
    case $(readlink "$exe") in
    /run/sshoal.*/tracer*)
        if [ "${exe%exe}root/run/sshoal-slow" -ef /run/sshoal-slow ]; then
            while [ ! -e /run/sshoal-slow/go ]; do sleep 0.1; done
        fi
        ;;
    esac
done
"#;

/// A client whose traced login stands still, with its host, and its tracer and that one's watcher.
fn held(words: &[&str]) -> Option<(Host, Running, Vec<u32>)> {
    let host = Host::start(&Injection::several("motd:20").unwrap())?;
    host.replace("/etc/update-motd.d/50-status", HOLD);
    let usual = ["--trace", "--repeat", "1", "--no-ssh"];
    let mut client = Running::start(host.why(&usual).args(words));
    let mut tracers = Vec::new();
    wait_until("tracer and watcher run there", || {
        assert!(client.is_running());
        tracers = started_tracers(&host);
        tracers.len() == 2
    });
    Some((host, client, tracers))
}

/// Waits until a host is as it was.
#[track_caller]
fn nothing_is_left(host: &Host, view: &View, tracers: &[u32]) {
    wait_until("both have ended", || started_tracers(host).is_empty());
    let is_left = |pid: &u32| view.instance(&format!("-{pid}-")).is_some();
    assert!(!tracers.iter().any(is_left));
    wait_until("no folder of theirs is left", || {
        ["/run", "/dev/shm", "/tmp", "/var/tmp"]
            .iter()
            .all(|folder| {
                let left = fs::read_dir(host.path(folder)).unwrap();
                let mut left = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
                !left.any(|name| name.starts_with("sshoal."))
            })
    });
}

#[test]
fn a_client_that_is_interrupted_ends_as_such_and_leaves_nothing_on_the_host() {
    if !may_trace() {
        return;
    }
    let Some((host, client, tracers)) = held(&[]) else {
        return;
    };
    client.interrupt();
    host.write(GO, "");
    client.wait().expect(130);
    nothing_is_left(&host, &View::new(), &tracers);
}

#[test]
fn what_hangs_on_the_host_ends_with_the_client() {
    if !geteuid().is_root() {
        return;
    }
    let Some(host) = Host::start(&Injection::several("motd:20").unwrap()) else {
        return;
    };
    // By root it is run in each login, by the user when it is timed.
    let seconds = 1_000_000 + std::process::id();
    let hangs = format!("#!/bin/sh\n[ \"$(id -u)\" = 0 ] || sleep {seconds}\n");
    host.replace("/etc/update-motd.d/50-status", &hangs);
    let mut client = Running::start(&mut host.why(&["--repeat", "1", "--no-ssh"]));
    let sleeps = || {
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let mut lines = processes.filter_map(|it| fs::read(it.path().join("cmdline")).ok());
        lines.any(|line| line == format!("sleep\0{seconds}\0").as_bytes())
    };
    wait_until("it hangs", || {
        assert!(client.is_running());
        sleeps()
    });
    kill_process(client.pid(), Signal::KILL).unwrap();
    wait_until("it has ended", || !sleeps());
}

#[test]
fn a_tracer_that_is_killed_on_the_host_is_told_of_and_the_other_tiers_report() {
    if !may_trace() {
        return;
    }
    let Some((host, client, tracers)) = held(&["--json"]) else {
        return;
    };
    // The watcher has the other one for its parent.
    let parent = |pid: u32| {
        let line = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let fields = line.rsplit_once(") ").unwrap().1;
        fields.split(' ').nth(1).unwrap().parse::<u32>().unwrap()
    };
    let is_watcher = |pid: &&u32| tracers.contains(&parent(**pid));
    let watcher = *tracers.iter().find(is_watcher).unwrap();
    let tracer = tracers.iter().find(|pid| **pid != watcher).unwrap();
    let tracer = Pid::from_raw(i32::try_from(*tracer).unwrap()).unwrap();
    kill_process(tracer, Signal::KILL).unwrap();
    host.write(GO, "");
    let ended = client.wait().expect(0);
    let found: Value = serde_json::from_str(&ended.stdout()).unwrap();
    assert_eq!(found["tier"], "no-root");
    let notes = found["tier_notes"].to_string();
    let words = "no trace: the tracer ended before its time";
    assert!(notes.contains(words), "{notes}");
    nothing_is_left(&host, &View::new(), &tracers);
}

#[test]
fn a_client_that_is_killed_leaves_nothing_on_the_host() {
    if !may_trace() {
        return;
    }
    let Some((host, client, tracers)) = held(&[]) else {
        return;
    };
    let view = View::new();
    let is_left = |pid: &u32| view.instance(&format!("-{pid}-")).is_some();
    wait_until("there is an instance", || tracers.iter().any(is_left));
    kill_process(client.pid(), Signal::KILL).unwrap();
    nothing_is_left(&host, &view, &tracers);
}
