//! What a tracer leaves: nothing, however it ends.

use std::fs;

use rustix::process::{Signal, kill_process};
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
fn a_client_that_is_killed_leaves_nothing_on_the_host() {
    if !may_trace() {
        return;
    }
    let Some(host) = Host::start(&Injection::several("motd:20").unwrap()) else {
        return;
    };
    let view = View::new();
    // The login under test is not through before the tracer has been seen.
    let script = "#!/bin/sh\nwhile [ -e /run/sshoal-slow/hold ]; do sleep 0.1; done\n";
    host.replace("/etc/update-motd.d/50-status", script);
    let mut client = Running::start(&mut host.why(&["--trace", "--repeat", "1", "--no-ssh"]));
    wait_until("tracer and watcher run there", || {
        assert!(client.is_running());
        let found = started_tracers(&host);
        if !found.is_empty() {
            host.write("/run/sshoal-slow/hold", "");
        }
        found.len() == 2
    });
    let marks = started_tracers(&host)
        .into_iter()
        .map(|pid| format!("-{pid}-"));
    let marks: Vec<String> = marks.collect();
    let is_left = |mark: &String| view.instance(mark).is_some();
    wait_until("there is an instance", || marks.iter().any(is_left));
    kill_process(client.pid(), Signal::KILL).unwrap();
    wait_until("both have ended", || started_tracers(&host).is_empty());
    assert!(!marks.iter().any(is_left));
    let left = fs::read_dir(host.path("/run")).unwrap();
    let left = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let left: Vec<String> = left.filter(|name| name.starts_with("sshoal.")).collect();
    assert_eq!(left, [""; 0]);
}
