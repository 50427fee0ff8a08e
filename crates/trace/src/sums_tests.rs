//! What a login comes to in sums.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::fixtures::{ASLEEP, DEEP, HARD, Host, RUNNABLE, SOFT, ZOMBIE, login, recording, told};

const US: u64 = 1000;

fn traced(host: &Host) -> Traced {
    let ports = Some((22, 40000));
    host.traced(Wanted {
        ports,
        ..Wanted::default()
    })
    .unwrap()
}

#[test]
fn what_the_server_waits_for_from_the_network_is_the_client() {
    let host = login(|host| {
        host.switch(200 * US, 150, ASLEEP, 0)
            .wake(300 * US, 77, SOFT, 150)
            .switch(301 * US, 0, RUNNABLE, 150)
            .fork(400 * US, 150, 160)
            .switch(401 * US, 150, ASLEEP, 160)
            .exec(402 * US, 160, "/usr/bin/dig")
            .switch(410 * US, 160, ASLEEP, 0)
            .wake(510 * US, 77, SOFT, 160)
            .switch(511 * US, 0, RUNNABLE, 160)
            .wake(515 * US, 160, 0, 150)
            .switch(516 * US, 160, ZOMBIE, 150);
    });
    let traced = traced(&host);
    assert_eq!(traced.share("client"), 100 * US);
    assert_eq!(traced.share("network"), 100 * US);
    let programs = traced.by_program();
    let dig = programs
        .iter()
        .find(|(name, _)| name == "/usr/bin/dig")
        .unwrap();
    // From its exec until it wakes who waits for it; before, it was the server's.
    assert_eq!(dig.1, 105 * US + 8 * US);
}

#[test]
fn what_the_server_waits_for_when_it_asks_for_a_name_is_not_the_client() {
    let host = login(|host| {
        // A name server answers late, and another one never.
        for (begin, flags) in [(200, SOFT), (400, HARD)] {
            host.lookup((begin - 1) * US, 150, true)
                .switch(begin * US, 150, ASLEEP, 0)
                .wake((begin + 100) * US, 77, flags, 150)
                .switch((begin + 101) * US, 0, RUNNABLE, 150)
                .lookup((begin + 102) * US, 150, false);
        }
    });
    let traced = traced(&host);
    assert_eq!(traced.share("network"), 200 * US);
    assert_eq!((traced.share("client"), traced.share("timer")), (0, 0));
    let lasted: Vec<u64> = traced.lookups.iter().map(|it| it.to - it.from).collect();
    assert_eq!(lasted, [103 * US; 2]);
}

#[test]
fn a_login_that_a_tracer_has_not_seen_to_its_end_is_not_told_of() {
    let host = login(|_| {});
    let of = |why: &str, until: Option<u64>| {
        let ports = Some((22, 40000));
        let found = Traced::of(
            recording(&host.octets_ending(why)),
            Wanted {
                ports,
                until,
                ..Wanted::default()
            },
        );
        found.map(|traced| traced.login.wall())
    };
    // The last record is of 1,100 µs.
    assert_eq!(of("late", Some(1_050 * US)), Ok(900 * US));
    assert_eq!(of("asked", Some(2_000 * US)), Ok(900 * US));
    let late = TracedError::Recording(RecordingError::Late);
    assert_eq!(of("late", Some(2_000 * US)), Err(late.clone()));
    assert_eq!(of("late", None), Err(late));
    let full = TracedError::Recording(RecordingError::Full);
    assert_eq!(of("full", Some(2_000 * US)), Err(full));
    let refused = recording(&Host::default().fork(10, 100, 150).octets_ending("late"));
    let refused = Traced::of(refused, Wanted::default()).unwrap_err();
    assert!(refused.to_string().contains("30 s"), "{refused}");
}

#[test]
fn programs_outside_are_named() {
    let host = login(|host| {
        host.switch(200 * US, 150, ASLEEP, 0)
            .wake(600 * US, 7, 0, 150)
            .switch(601 * US, 0, RUNNABLE, 150);
    });
    let outside = traced(&host).outside();
    assert_eq!(outside, [("systemd-logind".to_owned(), 400 * US)]);
}

#[test]
fn calls_of_pam_are_timed_from_beginning_to_return() {
    let host = login(|host| {
        host.probe(200 * US, 150, true)
            // One inside of another, as a module that calls its like.
            .probe(210 * US, 150, true)
            .probe(250 * US, 150, false)
            .probe(300 * US, 150, false)
            // It returns without having begun: it began before the trace did.
            .probe(310 * US, 150, false)
            // Somebody else's.
            .probe(320 * US, 77, true)
            .probe(330 * US, 77, false);
    });
    let traced = traced(&host);
    let times: Vec<(u64, u64)> = traced
        .calls
        .iter()
        .map(|it| (it.from / US, it.to / US))
        .collect();
    assert_eq!(times, [(200, 300), (210, 250)]);
    let (whole, module, _) = traced.pam("pam_sm_open_session").unwrap();
    assert_eq!((whole, module.as_str()), (140 * US, "pam_slow.so"));
    assert_eq!(traced.pam("pam_sm_acct_mgmt"), None);
}

#[test]
fn all_of_update_motd_is_what_runs_it_waits_for() {
    let host = login(|host| {
        host.fork(110 * US, 150, 160)
            .switch(112 * US, 150, ASLEEP, 160)
            .exec(115 * US, 160, "/usr/bin/run-parts");
        for (pid, begin) in [(161, 120 * US), (162, 320 * US)] {
            host.fork(begin, 160, pid)
                .switch(begin + 5 * US, 160, ASLEEP, pid)
                .exec(begin + 10 * US, pid, &format!("/etc/update-motd.d/{pid}"))
                .exit(begin + 100 * US, pid)
                .wake(begin + 100 * US, pid, 0, 160)
                .switch(begin + 101 * US, pid, ZOMBIE, 160);
        }
        host.exit(500 * US, 160)
            .wake(500 * US, 160, 0, 150)
            .switch(501 * US, 160, ZOMBIE, 150);
    });
    let traced = traced(&host);
    // From when the server waits for run-parts to when that ends, less twice a microsecond for a processor.
    assert_eq!(traced.motd_time(), Some(386 * US));
    let scripts = traced.motd_scripts();
    assert_eq!(scripts.len(), 2);
    assert_eq!(scripts[0].1, 95 * US);
    assert_eq!(traced.processes_until_output(), 5);
}

/// A login of 900 µs with a script of update-motd.d, as it is told without tracefs.
const TOLD: &str = "fork 100000 100 150 sshd
fork 120000 150 155 sshd
exec 121000 155\t/usr/bin/run-parts\trun-parts\t/etc/update-motd.d
fork 130000 155 160 run-parts
exec 135000 160\t/etc/update-motd.d/10-slow\t/bin/sh\t/etc/update-motd.d/10-slow
exit 700000 160
exit 720000 155
fork 810000 150 190 sshd
exec 820000 190\t/usr/bin/dash\tsh\t-c\techo
ports 821000 190 22 40000 192.0.2.1
exit 950000 190
exit 1900000 150
";

#[test]
fn without_tracefs_it_is_told_who_lived_and_nothing_is_made_up() {
    let (ports, until) = (Some((22, 40000)), Some(1_000 * US));
    let octets = told("proc-connector", TOLD);
    let traced = Traced::of(
        recording(&octets),
        Wanted {
            ports,
            until,
            ..Wanted::default()
        },
    )
    .unwrap();
    let login = traced.login;
    assert!(login.is_matched && !traced.tells_time());
    // The command had ended before the client heard of it.
    assert_eq!((login.begin, login.end), (100 * US, 950 * US));
    assert_eq!(traced.tree.process(login.command).pid, 190);
    assert_eq!(traced.share("unexplained"), 850 * US);
    assert_eq!(traced.motd_time(), Some(600 * US));
    let script = "/etc/update-motd.d/10-slow".to_owned();
    assert_eq!(traced.motd_scripts(), [(script, 570 * US)]);
    let program = &traced.tree.process(login.command).programs[0];
    assert_eq!(program.arguments, ["sh", "-c", "echo"]);
    assert!(
        traced
            .processes()
            .all(|(id, _)| traced.with_children(id) == 0)
    );
    assert_eq!(traced.means.refused.len(), 1);
}

#[test]
fn a_command_that_lasts_ends_the_login_when_the_client_has_heard_of_it() {
    let until = Some(900 * US);
    let octets = told("proc", TOLD);
    let wanted = Wanted {
        until,
        ..Wanted::default()
    };
    let traced = Traced::of(recording(&octets), wanted).unwrap();
    assert_eq!(traced.login.end, 900 * US);
    assert!(!traced.login.is_matched);
    let cut = TOLD.replace("exit 950000 190\n", "");
    let unknown = Wanted::default();
    let error = Traced::of(recording(&told("proc", &cut)), unknown).unwrap_err();
    assert_eq!(error, LoginError::NoCommand.into());
}

#[test]
fn files_are_told_by_path_as_far_as_the_c_library_was_told_it() {
    let host = login(|host| {
        host.open_by_name(200 * US, 150, "/etc/passwd")
            .opened(230 * US, 150, 3)
            .open_by_name(240 * US, 150, "/etc/passwd")
            .opened(250 * US, 150, 4)
            .open_by_name(260 * US, 150, "/nowhere")
            .opened(261 * US, 150, -2)
            // The dynamic linker asks nobody.
            .open(270 * US, 150)
            .opened(280 * US, 150, 3)
            .fork(300 * US, 150, 160)
            .arguments(301 * US, 160, ["id", "-u"])
            .exec(302 * US, 160, "/usr/bin/id")
            .open_by_name(303 * US, 160, "/proc/self/status");
    });
    let traced = traced(&host);
    let files = traced.files();
    let names: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(names, ["/etc/passwd", "/nowhere", "/proc/self/status"]);
    let passwd = &files[0];
    assert_eq!((passwd.times, passwd.failed), (2, 0));
    assert_eq!((passwd.time, passwd.slowest), (40 * US, 30 * US));
    assert_eq!((files[1].failed, files[2].time), (1, 0));
    let opened: u64 = traced.processes().map(|(_, it)| it.opened).sum();
    assert_eq!(opened, 5);
    let (_, id) = traced.processes().find(|(_, it)| it.pid == 160).unwrap();
    assert_eq!(id.programs[0].arguments, ["id", "-u"]);
}

/// 150 runs a program for 99 µs.
fn runs_one(host: &mut Host, at: u64, pid: u32, file: &str) {
    host.fork(at * US, 150, pid)
        .switch((at + 1) * US, 150, ASLEEP, pid)
        .exec((at + 5) * US, pid, file)
        .exit((at + 100) * US, pid)
        .wake((at + 100) * US, pid, 0, 150)
        .switch((at + 101) * US, pid, ZOMBIE, 150);
}

#[test]
fn what_the_server_itself_runs_and_asks_for_is_told_apart_by_when() {
    let host = login(|host| {
        // libwrap's, before there is who talks with the client.
        host.lookup(110 * US, 150, true)
            .lookup(115 * US, 150, false);
        runs_one(host, 120, 160, "/bin/sh");
        host.fork(230 * US, 150, 170)
            // One within another.
            .lookup(240 * US, 150, true)
            .lookup(245 * US, 150, true)
            .lookup(250 * US, 150, false)
            .lookup(260 * US, 150, false)
            // A module of PAM's.
            .probe(270 * US, 150, true)
            .lookup(280 * US, 150, true)
            .lookup(290 * US, 150, false);
        runs_one(host, 300, 161, "/usr/bin/helper");
        host.probe(410 * US, 150, false);
        runs_one(host, 420, 162, "/usr/bin/keys");
    });
    let traced = traced(&host);
    assert_eq!(traced.spawned(), 99 * US);
    assert_eq!(traced.asked_for_keys(), (1, 99 * US));
    assert_eq!(traced.server_lookups(), 20 * US);
    assert_eq!(traced.lookups.len(), 3);
}

#[test]
fn what_others_keep_the_disks_busy_with_is_none_of_a_call_s_own() {
    let host = login(|host| {
        host.probe(190 * US, 150, true)
            .switch(200 * US, 150, DEEP, 0)
            .wake(400 * US, 77, HARD, 150)
            .switch(402 * US, 0, RUNNABLE, 150)
            .probe(410 * US, 150, false);
    });
    let mut traced = traced(&host);
    let of = |traced: &Traced| {
        (
            traced.own_of(&traced.calls[0]),
            traced.own(traced.login.root),
        )
    };
    let (call, root) = of(&traced);
    assert_eq!(call, 218 * US);
    traced.shares_disks(0.25);
    assert_eq!(of(&traced), (call - 50 * US, root - 50 * US));
    assert_eq!(traced.contended([0, 400 * US]), US);
    assert_eq!(traced.contended([401 * US, 500 * US]), US);
}
