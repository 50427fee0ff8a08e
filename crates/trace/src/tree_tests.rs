//! Who has made whom, and who does what when.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::fixtures::{ASLEEP, DEEP, Host, LISTENER, RUNNABLE, SOFT, ZOMBIE, recording};
use crate::segments::State;

fn tree(host: &Host) -> Tree {
    let (followed, records) = recording(&host.octets()).records().unwrap();
    Tree::of(followed, &records)
}

/// Numbers and parents' numbers.
fn links(tree: &Tree) -> Vec<(u32, Option<u32>)> {
    let parent = |process: &Process| Some(tree.process(process.parent?).pid);
    tree.processes()
        .map(|(_, it)| (it.pid, parent(it)))
        .collect()
}

#[test]
fn forks_without_exec_are_links_like_others() {
    let mut host = Host::default();
    host.fork(10, LISTENER, 1)
        .fork(20, 1, 2)
        .fork(30, 2, 3)
        .exec(40, 3, "/bin/true")
        .exit(50, 2);
    let tree = tree(&host);
    let wanted = [
        (LISTENER, None),
        (1, Some(LISTENER)),
        (2, Some(1)),
        (3, Some(2)),
    ];
    assert_eq!(links(&tree), wanted);
    let forks: Vec<bool> = tree.processes().map(|(_, it)| it.is_fork()).collect();
    assert_eq!(forks, [true, true, true, false]);
    assert_eq!(tree.processes[2].ended, Some(50));
    assert_eq!(tree.processes[3].title(), "true");
}

#[test]
fn what_others_make_is_none_of_them() {
    let mut host = Host::default();
    host.fork(10, LISTENER, 1).fork(20, 77, 78).fork(30, 78, 79);
    assert_eq!(tree(&host).processes.len(), 2);
}

#[test]
fn threads_belong_to_their_process_which_ends_with_the_last() {
    let mut host = Host::default();
    host.fork(10, LISTENER, 1)
        .thread(20, 1, 2)
        .fork(25, 2, 3)
        .exit(30, 1)
        .exit(40, 2);
    let tree = tree(&host);
    assert_eq!(links(&tree)[1..], [(1, Some(LISTENER)), (3, Some(1))]);
    assert_eq!(tree.processes[1].ended, Some(40));
    assert_eq!(tree.threads.len(), 4);
}

#[test]
fn a_number_that_is_used_again_is_another_process() {
    let mut host = Host::default();
    host.fork(10, LISTENER, 1)
        .exit(20, 1)
        .switch(21, 1, ZOMBIE, 0)
        .fork(30, LISTENER, 1)
        .exec(40, 1, "/bin/true");
    let tree = tree(&host);
    assert_eq!(tree.processes.len(), 3);
    assert!(tree.processes[1].is_fork());
    assert_eq!(tree.processes[2].title(), "true");
}

#[test]
fn what_a_process_opens_reads_and_connects_to_is_counted_as_its_own() {
    let mut host = Host::default();
    host.fork(10, LISTENER, 1)
        .open(20, 1)
        .open(21, 1)
        .block_io(22, 1, 4096)
        .socket(23, 1, 2, (5000, 53))
        .socket(24, 1, 1, (5000, 53))
        .open(25, 77);
    let tree = tree(&host);
    let process = &tree.processes[1];
    assert_eq!((process.opened, process.block_octets), (2, 4096));
    let [peer] = process.connections[..] else {
        panic!("{process:?}");
    };
    assert_eq!(
        (peer.address.to_string().as_str(), peer.port),
        ("127.0.0.9", 53)
    );
}

#[test]
fn a_thread_runs_would_run_or_waits() {
    let mut host = Host::default();
    host.fork(10, LISTENER, 1)
        .switch(15, 0, RUNNABLE, 1)
        .switch(20, 1, RUNNABLE, 77)
        .switch(30, 77, RUNNABLE, 1)
        .switch(40, 1, ASLEEP, 0)
        .wake(50, 7, SOFT, 1)
        .switch(55, 0, RUNNABLE, 1)
        .switch(60, 1, DEEP, 0)
        .switch(70, 0, RUNNABLE, 1);
    let tree = tree(&host);
    let found: Vec<(u64, u64, &str)> = tree.threads[1]
        .segments
        .iter()
        .map(|segment| {
            let state = match segment.state {
                State::Running => "runs",
                State::Runnable => "would",
                State::Blocked {
                    waker: Some(waker), ..
                } if waker.number == 7 => "waits for 7",
                State::Blocked {
                    deeply: true,
                    waker: None,
                } => "waits deeply",
                State::Blocked { .. } => "waits",
            };
            (segment.from, segment.to, state)
        })
        .collect();
    let wanted = [
        (10, 15, "would"),
        (15, 20, "runs"),
        (20, 30, "would"),
        (30, 40, "runs"),
        (40, 50, "waits for 7"),
        (50, 55, "would"),
        (55, 60, "runs"),
        (60, 70, "waits deeply"),
    ];
    assert_eq!(found, wanted);
}

#[test]
fn who_wakes_a_thread_on_its_way_to_sleep_has_woken_it() {
    let mut host = Host::default();
    host.fork(10, LISTENER, 1)
        .switch(15, 0, RUNNABLE, 1)
        .wake(19, 7, 0, 1)
        .switch(20, 1, ASLEEP, 0)
        .switch(30, 0, RUNNABLE, 1);
    let tree = tree(&host);
    let State::Blocked { waker, .. } = tree.threads[1].segments[2].state else {
        panic!("{:?}", tree.threads[1].segments);
    };
    assert_eq!(waker.map(|waker| waker.number), Some(7));
}

#[test]
fn who_does_something_has_the_processor_though_it_was_not_told_to_come_to_it() {
    let mut host = Host::default();
    host.fork(10, LISTENER, 1)
        .switch(12, LISTENER, ASLEEP, 1)
        .switch(20, 1, RUNNABLE, 77)
        .exec(25, 1, "/bin/true")
        // This one is told.
        .switch(90, 1, RUNNABLE, 77)
        .switch(95, 77, RUNNABLE, 1)
        // It has been woken and come, and neither is known.
        .switch(100, 1, ASLEEP, 0)
        .wake(110, 1, 0, 77)
        .switch(120, 1, RUNNABLE, 77);
    let tree = tree(&host);
    let each = tree.threads[1].segments.iter();
    let states: Vec<_> = each.map(|it| (it.from, it.to, it.state)).collect();
    let asleep = State::Blocked {
        deeply: false,
        waker: None,
    };
    let wanted = [
        (10, 12, State::Runnable),
        (12, 20, State::Running),
        (20, 25, State::Runnable),
        (25, 90, State::Running),
        (90, 95, State::Runnable),
        (95, 100, State::Running),
        (100, 110, asleep),
        (110, 120, State::Running),
    ];
    assert_eq!(states, wanted);
}
