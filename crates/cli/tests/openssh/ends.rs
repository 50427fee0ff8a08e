//! How commands end by ssh, and what comes of their output and input.

use std::fs;

use sshoal_testbed::sshd::SshdSpec;

use crate::by_ssh;
use crate::support::program::Running;
use crate::support::{Shoal, write_program};

#[test]
fn a_status_is_the_command_s_even_if_it_is_the_one_that_ssh_fails_with() {
    let shoal = Shoal::real(&SshdSpec::new(3));
    let last = shoal.name(2);
    let line = format!("case %h in *1) exit 0;; *2) exit 7;; esac; exit 255 # {last}");
    let by_name = shoal
        .run(&by_ssh(&["--json", &line]))
        .expect(1)
        .records()
        .by_name();
    let outcome = |host| {
        let record = &by_name[&shoal.name(host)];
        (record.outcome.as_str(), record.fate.as_str())
    };
    assert_eq!(outcome(0), ("ok", "ran"));
    assert_eq!(outcome(1), ("exit", "ran"));
    assert_eq!(outcome(2), ("exit", "ran"));
    shoal.run(&by_ssh(&["-S", &line])).expect(255);
}

#[test]
fn output_is_the_command_s_octet_for_octet_and_nothing_of_ssh_s_stands_in_it() {
    let spec = SshdSpec::new(2);
    let banner = tempfile::NamedTempFile::new().unwrap();
    fs::write(banner.path(), "Keep out\n").unwrap();
    let shoal = Shoal::real(&spec.line(format!("Banner {}", banner.path().display())));
    // More than a pipe holds, with a line of ssh's own among it, and no line feed at its end.
    let line = "seq 1 60000; printf 'debug1: Sending command: x\\r\\nend'; seq 60001 60010 >&2; \
                printf '\\0\\377' >&2";
    let native = shoal
        .run(&["--outdir", &shoal.file("native"), line])
        .expect(0);
    let by = shoal
        .run(&by_ssh(&["-v", "--outdir", &shoal.file("by-ssh"), line]))
        .expect(0);
    for host in 0..2 {
        for end in ["out", "err"] {
            let file = |folder: &str| {
                fs::read(format!("{}/{}.{end}", shoal.file(folder), shoal.name(host))).unwrap()
            };
            assert!(file("native") == file("by-ssh"), "{end} of host {host}");
        }
    }
    let sorted = |text: String| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(native.stdout()), sorted(by.stdout()));
    let said = by.stderr();
    assert_eq!(said.matches("banner: Keep out").count(), 2, "{said}");
    assert!(!by.stderr().contains("debug1: A"), "{}", by.stderr());
}

#[test]
fn standard_input_is_given_to_all_and_nothing_is_read_without_it() {
    let shoal = Shoal::real(&SshdSpec::new(3));
    let text: String = (0..200_000).map(|number| format!("{number}\n")).collect();
    let file = shoal.file("input");
    fs::write(&file, &text).unwrap();
    let sums = shoal.run(&by_ssh(&["--stdin", &file, "--json", "cksum"]));
    let records = sums.expect(0).records();
    let expected = std::process::Command::new("cksum")
        .stdin(fs::File::open(&file).unwrap())
        .output()
        .unwrap();
    for record in &records.hosts {
        assert_eq!(record.stdout.as_ref().unwrap().as_bytes(), expected.stdout);
    }
    // Whoever reads only a part of it is no failure.
    let arguments = by_ssh(&["--stdin", &file, "head -n 1"]);
    assert_eq!(shoal.run(&arguments).expect(0).stdout().lines().count(), 3);
    shoal.run(&by_ssh(&["test -z \"$(cat)\""])).expect(0);
    // A loop around it keeps its lines.
    let line = format!(
        "printf '1\\n2\\n' | while read n; do $RUN {} true; echo $n; done",
        by_ssh(&[]).join(" ")
    );
    let looped = Running::start(&mut shoal.shell(&line)).wait().expect(0);
    assert_eq!(looped.stdout(), "1\n2\n");
}

#[test]
fn a_script_travels_whole_and_a_long_command_line_hides_no_end() {
    let shoal = Shoal::real(&SshdSpec::new(1));
    let script = shoal.file("check.sh");
    let filling = "# a line of filling that nobody reads\n".repeat(2500);
    fs::write(
        &script,
        format!("#!/bin/sh\n{filling}echo \"$0 $1\"; exit 3\n"),
    )
    .unwrap();
    let arguments = by_ssh(&["--json", "--script", &script, "a b"]);
    let record = shoal.run(&arguments).expect(1).records().hosts.remove(0);
    assert_eq!(record.stdout.as_deref(), Some("check.sh a b\n"));
    assert_eq!((record.failure(), record.fate.as_str()), ("exit", "ran"));
}

#[test]
fn a_program_that_never_says_anything_is_told_of_when_its_time_is_up() {
    let shoal = Shoal::real(&SshdSpec::new(1));
    let (program, number) = (shoal.file("silent"), shoal.file("number"));
    write_program(
        &program,
        format!("#!/bin/sh\necho $$ > {number}\nexec sleep 3600\n"),
    );
    let arguments = by_ssh(&["--ssh", &program, "--json", "true"]);
    let record = shoal.run(&arguments).expect(3).records().hosts.remove(0);
    // Nobody knows what it has done.
    assert_eq!(
        (record.failure(), record.fate.as_str()),
        ("lost", "may-have-run")
    );
    let detail = record.detail.unwrap();
    assert!(
        detail.starts_with("ssh said nothing within 10s"),
        "{detail}"
    );
    let number = fs::read_to_string(&number).unwrap();
    let process = format!("/proc/{}", number.trim());
    assert!(!fs::exists(process).unwrap(), "it was left running");
}

#[test]
fn a_session_that_the_server_refuses_is_told_as_such() {
    let shoal = Shoal::real(&SshdSpec::new(1).line("MaxSessions 0"));
    let record = shoal
        .run(&by_ssh(&["--json", "true"]))
        .expect(3)
        .records()
        .hosts
        .remove(0);
    assert_eq!(record.failure(), "channel-refused", "{record:?}");
    assert!(record.claims_no_run(), "{record:?}");
}

#[test]
fn a_name_that_is_none_and_algorithms_that_nobody_shares_have_their_kinds() {
    let shoal = Shoal::real(&SshdSpec::new(1).line("Ciphers aes256-gcm@openssh.com"));
    let name = "no-such-host.invalid";
    let record = shoal.run_on(name, &by_ssh(&["--json", "true"]));
    assert_eq!(record.expect(3).records().hosts[0].failure(), "resolve");
    let cipher = by_ssh(&["-o", "Ciphers=aes128-ctr", "--json", "true"]);
    let record = shoal.run(&cipher).expect(3).records().hosts.remove(0);
    assert_eq!(record.failure(), "no-common-algorithm", "{record:?}");
    assert_eq!(record.fate, "not-sent");
}
