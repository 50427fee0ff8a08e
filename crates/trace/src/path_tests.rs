//! What the path says of logins that are known.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;
use crate::fixtures::{ASLEEP, DEEP, HARD, Host, LISTENER, RUNNABLE, SOFT, ZOMBIE, login};
use crate::login::Wanted;
use crate::sums::Traced;

const US: u64 = 1000;

fn traced(host: &Host) -> Traced {
    let ports = Some((22, 40000));
    host.traced(Wanted {
        ports,
        ..Wanted::default()
    })
    .unwrap()
}

/// Times in microseconds, who, and what for.
fn told(host: &Host) -> Vec<(u64, u64, u32, &'static str)> {
    let traced = traced(host);
    let each = traced.pieces.iter().map(|piece| {
        let pid = traced.tree.process(piece.process).pid;
        (piece.from / US, piece.to / US, pid, piece.kind.name())
    });
    each.collect()
}

#[test]
fn a_login_that_waits_for_nothing_is_work() {
    let wanted = [
        (100, 101, 150, "contention"),
        (101, 810, 150, "cpu"),
        // The server sleeps since 815, and the shell works since it was forked.
        (810, 815, 150, "cpu"),
        (815, 900, 190, "cpu"),
        (900, 902, 150, "contention"),
        (902, 1000, 150, "cpu"),
    ];
    let mut joined = wanted.to_vec();
    joined[1].1 = 815;
    joined.remove(2);
    assert_eq!(told(&login(|_| {})), joined);
}

#[test]
fn a_wait_for_a_child_is_what_the_child_does() {
    // A script of PAM's sleeps: a timer ends that, the script's end wakes the server.
    let host = login(|host| {
        host.fork(110 * US, 150, 160)
            .switch(112 * US, 150, ASLEEP, 160)
            .exec(115 * US, 160, "/etc/update-motd.d/10-slow")
            .switch(120 * US, 160, ASLEEP, 0)
            .wake(700 * US, 0, HARD, 160)
            .switch(703 * US, 0, RUNNABLE, 160)
            .exit(705 * US, 160)
            .wake(706 * US, 160, 0, 150)
            .switch(707 * US, 160, ZOMBIE, 150);
    });
    let found = told(&host);
    let wanted = [
        (100, 101, 150, "contention"),
        (101, 112, 150, "cpu"),
        (112, 120, 160, "cpu"),
        (120, 700, 160, "timer"),
        (700, 703, 160, "contention"),
        (703, 706, 160, "cpu"),
        (706, 707, 150, "contention"),
    ];
    assert_eq!(found[..wanted.len()], wanted);
    let traced = traced(&host);
    // Others had the processor before it went on: that is not its own.
    assert_eq!(
        traced.motd_scripts(),
        [("/etc/update-motd.d/10-slow".to_owned(), 591 * US)]
    );
}

#[test]
fn interrupts_and_others_are_leaves() {
    let wait = |state: u64, by: u32, flags: u8| {
        let host = login(|host| {
            host.switch(200 * US, 150, state, 0)
                .wake(500 * US, by, flags, 150)
                .switch(501 * US, 0, RUNNABLE, 150);
        });
        let found = told(&host);
        *found.iter().find(|(from, ..)| *from == 200).unwrap()
    };
    for (state, by, flags, kind) in [
        (ASLEEP, 0, HARD, "timer"),
        (ASLEEP, 9999, SOFT, "network"),
        (DEEP, 0, SOFT, "storage"),
        (DEEP, 9999, HARD, "storage"),
        (DEEP, 8, 0, "storage"),
        (ASLEEP, 7, 0, "program"),
        (DEEP, 7, 0, "program"),
        (ASLEEP, 0, 0, "unexplained"),
    ] {
        assert_eq!(
            wait(state, by, flags),
            (200, 500, 150, kind),
            "{state} {by} {flags}"
        );
    }
}

#[test]
fn what_is_not_known_is_unexplained() {
    // It is gone from the processor, and back without anybody having woken it.
    let host = login(|host| {
        host.switch(200 * US, 150, ASLEEP, 0)
            .switch(500 * US, 0, RUNNABLE, 150);
    });
    let found = told(&host);
    assert!(found.contains(&(200, 500, 150, "unexplained")), "{found:?}");
}

#[test]
fn two_that_wake_each_other_end_somewhere() {
    let host = login(|host| {
        host.fork(110 * US, 150, 160)
            .switch(120 * US, 150, ASLEEP, 160)
            .wake(120 * US, 150, 0, 160)
            .switch(130 * US, 160, ASLEEP, 0)
            .wake(600 * US, 150, 0, 160)
            .wake(600 * US, 160, 0, 150)
            .switch(601 * US, 0, RUNNABLE, 150);
    });
    check(&traced(&host));
}

/// The pieces lie one behind the other, and are the whole.
#[track_caller]
fn check(traced: &Traced) {
    let mut until = traced.login.begin;
    for piece in &traced.pieces {
        assert_eq!(piece.from, until);
        assert!(piece.to > piece.from);
        until = piece.to;
    }
    assert_eq!(until, traced.login.end);
    let shares: u64 = traced.shares().iter().map(|share| share.time).sum();
    assert_eq!(shares, traced.login.wall());
    assert_eq!(traced.with_children(ProcessId(0)), traced.login.wall());
    for (id, process) in traced.tree.processes() {
        assert!(process.parent.is_none_or(|parent| parent < id));
    }
}

proptest! {
    #[test]
    fn whatever_happens_the_pieces_add_up(
        events in prop::collection::vec((110_u64..800, 0_u8..8, 148_u32..156, 148_u32..156, 0_u64..4), 0..120),
    ) {
        let mut events = events;
        events.sort_unstable();
        let host = login(|host| {
            for (at, kind, one, other, state) in events {
                let at = at * US;
                match kind {
                    0 => host.fork(at, one, other),
                    1 => host.thread(at, one, other),
                    2 => host.wake(at, one, [0, HARD, SOFT, 0][state as usize], other),
                    3 => host.exit(at, one.max(151)),
                    4 => host.exec(at, one.max(151), "/bin/x"),
                    5 => host.fork(at, LISTENER, one.max(151)),
                    _ => host.switch(at, one, [RUNNABLE, ASLEEP, DEEP, ZOMBIE][state as usize], other),
                };
            }
        });
        if let Ok(traced) = host.traced(Wanted { ports: Some((22, 40000)), ..Wanted::default() }) {
            check(&traced);
        }
    }
}
