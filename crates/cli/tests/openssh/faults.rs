//! T14 by ssh: each host in trouble ends in its right kind, and the others well.

use sshoal_testbed::simulated::SimulationSpec;

use crate::by_ssh;
use crate::differences::DIFFERENCES;
use crate::support::Shoal;

/// Healthy hosts beside those in trouble.
const HEALTHY: usize = 8;
/// `slow-output:200` takes longer for it than a command may.
const OUTPUT: usize = 20_000;

/// Faults and their ends that are the same by both transports: tests/faults.rs has them for native hosts.
const SAME: &[(&str, &str, &str)] = &[
    ("refuse", "refused", "not-sent"),
    ("connect-hang", "connect-timeout", "not-sent"),
    ("silent-after-connect", "login-timeout", "not-sent"),
    ("silent-after-message:3", "login-timeout", "not-sent"),
    ("reset-at:200", "throttled", "not-sent"),
    ("close-at:message+1", "closed", "not-sent"),
    ("garbage-banner", "protocol", "not-sent"),
    ("endless-banner", "protocol", "not-sent"),
    ("wrong-host-key", "host-key-changed", "not-sent"),
    ("changed-host-key:1", "host-key-changed", "not-sent"),
    ("unknown-host-key", "host-key-unknown", "not-sent"),
    ("revoked-host-key", "host-key-revoked", "not-sent"),
    ("auth-denied", "auth-denied", "not-sent"),
    ("max-startups", "throttled", "not-sent"),
    ("not-allowed", "throttled", "not-sent"),
    ("exit-signal:KILL", "signal", "ran"),
];

#[test]
fn each_host_in_trouble_ends_in_its_kind_and_the_others_well() {
    let differing = DIFFERENCES
        .iter()
        .map(|other| (other.fault, other.failure[1], other.fate[1]));
    let ways: Vec<(&str, &str, &str)> = SAME.iter().copied().chain(differing).collect();
    let mut spec = SimulationSpec::new((ways.len() + HEALTHY) as u32);
    spec.base = [127, 33, 0, 0].into();
    for (host, (fault, _, _)) in ways.iter().enumerate() {
        spec.faults.push(format!("{host}={fault}").parse().unwrap());
    }
    let shoal = Shoal::simulate(&spec);
    // Who is to change its key shows the known one once.
    let is_changing = |(fault, ..): &(&str, &str, &str)| fault.starts_with("changed-host-key");
    let changing = ways.iter().position(is_changing).unwrap();
    shoal.run_on(&shoal.name(changing), &["true"]).expect(0);
    let line = format!("yes-bytes {OUTPUT}");
    let deadlines = ["--connect-timeout=20", "--login-timeout=30", "--timeout=30"];
    let arguments = [&deadlines[..], &["--json", &line]].concat();
    let records = shoal.run(&by_ssh(&arguments)).expect(3).records();
    let summary = records.summary;
    assert_eq!((summary.ok, summary.not_started), (HEALTHY, 0));
    let by_name = records.by_name();
    let mut wrong = Vec::new();
    for (host, (fault, failure, fate)) in ways.iter().enumerate() {
        let record = &by_name[&shoal.name(host)];
        let attempts = match *failure {
            // A timer, a back-off or a second try.
            "throttled" | "closed" | "refused" => record.attempts > 1,
            _ => record.attempts == 1,
        };
        if (record.failure(), record.fate.as_str()) != (*failure, *fate) || !attempts {
            wrong.push(format!("{fault}: {record:?}"));
        }
    }
    for host in ways.len()..ways.len() + HEALTHY {
        let record = &by_name[&shoal.name(host)];
        assert!(record.is_ok(), "{record:?}");
        assert_eq!(record.stdout.as_ref().unwrap().len(), OUTPUT);
        assert_eq!(record.transport.as_deref(), Some("openssh"));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
