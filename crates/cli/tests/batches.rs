//! `run`, `put` and `get` in batches.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::Path;

use sshoal_testbed::sshd::SshdSpec;
use support::copying::{real, sshoal, text};
use support::{Shoal, shared_folder};

#[test]
fn a_run_goes_batch_by_batch_and_ends_after_too_many_failures() {
    let shoal = Shoal::simulated(6, &["2=auth-denied"]);
    let words = [
        "--json",
        "--batch",
        "2",
        "--max-failures",
        "0",
        "count runs",
    ];
    let records = shoal.run(&words).expect(3).records().by_name();
    let counts: Vec<_> = (0..6).map(|host| shoal.hosts.count(host, "runs")).collect();
    // The fourth may have got as far as the third or not.
    assert_eq!((&counts[..3], &counts[4..]), (&[1, 1, 0][..], &[0, 0][..]));
    for host in 4..6 {
        assert_eq!(records[&shoal.name(host)].outcome, "not-started");
    }
}

#[test]
fn a_dry_run_tells_the_batch_of_each_host() {
    let shoal = Shoal::simulated(5, &[]);
    let canary = shoal.name(3);
    let words = ["--dry-run", "--canary", &canary, "--batch", "50%", "true"];
    let shown = shoal.run(&words).expect(0).stdout();
    let batches: Vec<(String, &str)> = shown
        .lines()
        .map(|line| {
            let mut parts = line.split(": ");
            (parts.next().unwrap().to_owned(), parts.next().unwrap())
        })
        .collect();
    let expected = [(3, 1), (0, 2), (1, 2), (2, 2), (4, 3)];
    let expected = expected.map(|(host, batch)| (shoal.name(host), format!("batch {batch}")));
    let expected = expected
        .each_ref()
        .map(|(host, batch)| (host.clone(), batch.as_str()));
    assert_eq!(batches, expected);
    assert_eq!(shoal.hosts.totals().connections, 0);
}

#[test]
fn files_come_from_a_canary_first_and_from_no_other_if_that_fails() {
    let shoal = real(SshdSpec::new(3));
    let there = shared_folder();
    let file = there.path().join("file");
    fs::write(&file, "contents").unwrap();
    let canary = shoal.name(1);
    let into = shoal.file("fetched");
    let get = |path: &Path| sshoal(&shoal, &["get", "--canary", &canary, text(path), &into]);
    get(&there.path().join("missing"))
        .expect(3)
        .says(&["1 host has failed", "2 not started"]);
    get(&file).expect(0);
    for host in 0..3 {
        let fetched = Path::new(&into).join(shoal.name(host)).join("file");
        assert_eq!(fs::read_to_string(fetched).unwrap(), "contents");
    }
}
