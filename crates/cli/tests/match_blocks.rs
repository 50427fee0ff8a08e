//! `Match` of ssh_config(5), as a run knows what it asks for.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;

use sshoal_testbed::sshd::{RealSshd, SshdSpec};
use support::Shoal;

/// Real hosts with these lines before their own.
fn shoal(hosts: u32, lines: &str) -> Shoal<RealSshd> {
    let shoal = Shoal::real(&SshdSpec::new(hosts).line("AcceptEnv A_*"));
    let stock = fs::read_to_string(shoal.file("ssh_config")).unwrap();
    let lines = lines.replace("DIR", shoal.dir.path().to_str().unwrap());
    fs::write(
        shoal.file("ssh_config"),
        format!("{lines}\nMatch all\n{stock}"),
    )
    .unwrap();
    shoal
}

#[track_caller]
fn says(shoal: &Shoal<RealSshd>, arguments: &[&str], expected: &str) {
    let all = [&["--json"][..], arguments].concat();
    let records = shoal.run(&all).expect(0).records();
    assert_eq!(records.hosts[0].stdout.as_deref(), Some(expected));
}

#[test]
fn the_command_the_session_and_the_tag_are_those_of_the_run() {
    let lines = "\
Match command \"echo fine*\" sessiontype exec tagged \"\"
    SetEnv A_IS=plain
Match command \"echo fine*\" tagged blue
    SetEnv A_IS=blue
Match sessiontype shell
    SetEnv A_IS=wrong
Match version OpenSSH_* localnetwork 127.0.0.0/8 !localnetwork 203.0.113.0/24
    SetEnv A_IS=other
";
    let shoal = shoal(1, lines);
    says(&shoal, &["echo fine $A_IS"], "fine plain\n");
    says(&shoal, &["--tag", "blue", "echo fine $A_IS"], "fine blue\n");
    says(
        &shoal,
        &["-o", "Tag=blue", "echo fine $A_IS"],
        "fine blue\n",
    );
    says(&shoal, &["echo $A_IS"], "other\n");
}

#[test]
fn exec_runs_once_for_each_command_line_and_all_hosts_are_asked_for_at_once() {
    // Each of the first ones waits until the last has begun, so that they never end one after the other.
    let lines = "\
Match exec \"touch DIR/begun.%h; echo x >>DIR/count; until test -e DIR/begun.127.2.0.8; do sleep 0.02; done\"
    SetEnv A_IS=%h
Match exec \"echo x >>DIR/once; exit 1\"
    SetEnv A_IS=wrong
";
    let shoal = shoal(8, lines);
    assert_eq!(shoal.name(7), "127.2.0.8");
    let records = shoal.run(&["--json", "echo $A_IS"]).expect(0).records();
    for record in &records.hosts {
        assert_eq!(record.stdout, Some(format!("{}\n", record.host)));
    }
    let lines = |file| {
        fs::read_to_string(shoal.file(file))
            .unwrap()
            .lines()
            .count()
    };
    assert_eq!((lines("count"), lines("once")), (8, 1));
}

#[test]
fn a_command_that_a_signal_ends_refuses_the_host() {
    let shoal = shoal(1, "Match exec \"kill -9 $$\"\n    User nobody\n");
    let run = shoal.run(&["true"]).expect(2);
    run.says(&["Match exec", "ended abnormally", "ssh_config:1"]);
}
