//! KnownHostsCommand beside ssh: the same program, asked the same, and the same made of what it prints.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use sshoal_testbed::sshd::key_files::KeyType;
use sshoal_testbed::sshd::{RealSshd, SshdSpec};
use support::Shoal;
use support::program::{Ended, Running};

/// All tokens that mean something here, and some that are filled in for every command.
const ARGUMENTS: &str = r#"%H %I %t %f %K %h %p %n %r 100%% "two words" ${HOME}/%%I"#;

/// A server, and a program that notes what it was asked and prints known_hosts lines.
struct Bench {
    shoal: Shoal<RealSshd>,
}

impl Bench {
    fn new() -> Bench {
        let mut spec = SshdSpec::new(1);
        spec.host_keys = vec![KeyType::Ed25519, KeyType::EcdsaNistP256];
        Bench {
            shoal: Shoal::real(&spec),
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.shoal.dir.path().join(name)
    }

    /// The lines of the server's keys.
    fn lines(&self) -> Vec<String> {
        let text = fs::read_to_string(self.shoal.file("known_hosts")).unwrap();
        text.lines().map(|line| format!("{line}\n")).collect()
    }

    /// The option that has a program print these lines and end with this status.
    fn command(&self, lines: &str, status: u8) -> String {
        let (program, answers, log) = (self.file("program"), self.file("lines"), self.file("log"));
        fs::write(&answers, lines).unwrap();
        let script = format!(
            "#!/bin/sh\nfor word; do printf '%s|' \"$word\"; done >>{log}\necho >>{log}\ncat {answers}\n\
             echo it complains >&2\nexit {status}\n",
            log = log.display(),
            answers = answers.display()
        );
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        format!("KnownHostsCommand={} {ARGUMENTS}", program.display())
    }

    /// Takes what the program was asked.
    fn asked(&self) -> Vec<String> {
        let text = fs::read_to_string(self.file("log")).unwrap_or_default();
        fs::write(self.file("log"), "").unwrap();
        text.lines().map(str::to_owned).collect()
    }

    fn run(&self, program: &str, options: &[&str]) -> Ended {
        let known = self.file("judged");
        let name = self.shoal.name(0);
        let mut command = match program {
            "ssh" => self.shoal.user.command("ssh"),
            _ => self.shoal.user.run(&["-w", &name]),
        };
        command.args(["-F", &self.shoal.file("ssh_config"), "-o"]);
        command.arg(format!("UserKnownHostsFile={}", known.display()));
        for option in options {
            command.args(["-o", option]);
        }
        if program == "ssh" {
            command.arg(name);
        }
        Running::start(command.arg("true")).wait()
    }

    /// Both programs with this known_hosts and these options: whether they logged in, what was left of known_hosts, and
    /// what the command was asked, which must all be the same.
    #[track_caller]
    fn both(&self, known_hosts: &str, options: &[&str]) -> (bool, String, Vec<String>) {
        let ends = ["ssh", "sshoal"].map(|program| {
            fs::write(self.file("judged"), known_hosts).unwrap();
            let accepted = self.run(program, options).status.success();
            let left = fs::read_to_string(self.file("judged")).unwrap();
            (accepted, left, self.asked())
        });
        let [theirs, ours] = ends;
        assert_eq!(theirs, ours);
        ours
    }
}

#[test]
fn the_program_is_asked_as_ssh_asks_it_and_what_it_prints_is_trusted() {
    let bench = Bench::new();
    let [ed25519, ecdsa] = [0, 1].map(|line| bench.lines()[line].clone());
    let command = bench.command(&ed25519, 0);
    let (accepted, left, asked) = bench.both("# mine\n", &[&command]);
    assert!(accepted);
    assert_eq!((left.as_str(), asked.len()), ("# mine\n", 2));
    assert!(asked[0].contains("|ORDER|NONE|NONE|NONE|"), "{asked:?}");
    assert!(
        asked[1].contains("|HOSTNAME|ssh-ed25519|SHA256:"),
        "{asked:?}"
    );
    assert!(asked[1].contains("|100%|two words|"), "{asked:?}");
    // The order of algorithms follows it: of two keys, the one that is known is asked for.
    // ssh looks for it by the bare name then.
    let (_, key) = ecdsa.split_once(' ').unwrap();
    let command = bench.command(&format!("{ecdsa}{} {key}", bench.shoal.name(0)), 0);
    let (accepted, _, asked) = bench.both("", &[&command]);
    assert!(
        accepted && asked[1].contains("|ecdsa-sha2-nistp256|"),
        "{asked:?}"
    );
    let alias = ["HostKeyAlias=web1.example.com", &command];
    let (accepted, _, asked) = bench.both("", &alias);
    assert!(
        !accepted && asked[1].starts_with("web1.example.com|"),
        "{asked:?}"
    );
}

#[test]
fn its_lines_count_as_those_of_files_do_but_nothing_is_recorded_for_them() {
    let bench = Bench::new();
    let line = bench.lines()[0].clone();
    let (name, key) = line.split_once(' ').unwrap();
    let other =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB\n";
    let address = bench.shoal.name(0);
    let only = "HostKeyAlgorithms=ssh-ed25519";
    let new = "StrictHostKeyChecking=accept-new";
    let learns = "UpdateHostKeys=yes";
    let cases: [(&str, String, &[&str], bool); 8] = [
        ("", String::new(), &[only], false),
        ("", String::new(), &[only, new], true),
        ("", line.clone(), &[only, new, learns], true),
        ("", format!("{name} {other}"), &[only, new], false),
        ("", format!("{line}@revoked * {key}"), &[only, new], false),
        ("", format!("{address} {key}"), &[only], false),
        ("what is this\n", format!("broken\n{line}"), &[only], true),
        (&line, String::new(), &[only], true),
    ];
    for (known_hosts, lines, options, accepted) in cases {
        let command = bench.command(&lines, 0);
        let options = [options, &[command.as_str()]].concat();
        let (found, ..) = bench.both(known_hosts, &options);
        assert_eq!(found, accepted, "{lines:?} {options:?}");
    }
}

#[test]
fn a_program_that_fails_refuses_the_host_and_one_that_is_not_there_says_nothing() {
    let bench = Bench::new();
    let line = bench.lines()[0].clone();
    let command = bench.command(&line, 3);
    let (accepted, ..) = bench.both(&line, &[&command]);
    assert!(!accepted);
    fs::write(bench.file("judged"), &line).unwrap();
    bench.run("sshoal", &[&command]).expect(3).says(&[
        "host-key-unknown",
        "KnownHostsCommand",
        "it complains",
        "exit status: 3",
    ]);
    bench.asked();
    for nothing in ["/no/such/program %H", "relative %H", "none"] {
        let command = format!("KnownHostsCommand={nothing}");
        assert!(bench.both(&line, &[&command]).0, "{nothing}");
    }
    // What it cannot be asked is said before anything is begun.
    bench
        .run("sshoal", &["KnownHostsCommand=/bin/cat %z"])
        .expect(2)
        .says(&["KnownHostsCommand", "%z"]);
}
