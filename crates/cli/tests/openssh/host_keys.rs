//! Hosts that are not trusted: the same failure by ssh as natively, and nothing of the user's sent to them.

use std::fs;

use sshoal_testbed::sshd::SshdSpec;
use sshoal_testbed::sshd::key_files::{KeyType, generate};

use crate::BY_SSH;
use crate::support::{Shoal, wait_until};

/// What sshd logs when a client has told it a user's name (auth2.c, input_userauth_request).
const NAMED: &str = "userauth-request for user";

#[test]
fn a_host_that_is_not_trusted_ends_as_natively_and_hears_nothing_of_the_user() {
    let shoal = Shoal::real(&SshdSpec::new(1).line("LogLevel DEBUG1"));
    let truth = fs::read_to_string(shoal.file("known_hosts")).unwrap();
    let name = truth.split(' ').next().unwrap();
    let other = shoal.dir.path().join("other");
    generate(&other, KeyType::Ed25519, "").unwrap();
    let other = fs::read_to_string(other.with_extension("pub")).unwrap();
    let revoked: String = truth
        .lines()
        .map(|line| format!("@revoked {line}\n"))
        .collect();
    let mut left = 0;
    for (known, kind) in [
        (format!("{name} {other}"), "host-key-changed"),
        (String::new(), "host-key-unknown"),
        (revoked, "host-key-revoked"),
    ] {
        let file = shoal.file("known");
        fs::write(&file, known).unwrap();
        let file = format!("UserKnownHostsFile={file}");
        let strict = [
            "-o",
            &file,
            "-o",
            "GlobalKnownHostsFile=none",
            "-o",
            "StrictHostKeyChecking=yes",
        ];
        for transport in [&[][..], &BY_SSH] {
            let arguments = [transport, &strict, &["--json", "true"]].concat();
            let record = shoal.run(&arguments).expect(3).records().hosts.remove(0);
            assert_eq!(record.failure(), kind, "{record:?}");
            assert_eq!(
                (record.fate.as_str(), record.attempts),
                ("not-sent", 1),
                "{record:?}"
            );
            left += 1;
            wait_until("sshd has seen the client leave", || {
                let log = shoal.hosts.log(0);
                let ends = [
                    "Connection closed by",
                    "Connection reset by",
                    "Received disconnect from",
                ];
                ends.iter()
                    .map(|end| log.matches(end).count())
                    .sum::<usize>()
                    >= left
            });
            let log = shoal.hosts.log(0);
            assert!(!log.contains(NAMED), "{kind}, {transport:?}: {log}");
        }
    }
    // It would have been seen.
    for transport in [&[][..], &BY_SSH] {
        let before = shoal.hosts.log(0).matches(NAMED).count();
        shoal.run(&[transport, &["true"]].concat()).expect(0);
        wait_until("sshd has heard of the user", || {
            shoal.hosts.log(0).matches(NAMED).count() > before
        });
    }
}
