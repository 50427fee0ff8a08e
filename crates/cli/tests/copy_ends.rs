//! How `sshoal put` and `get` end before their time, with real sshd: what is removed, what is told.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::io::{self, PipeWriter, Write};
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use sshoal_testbed::sshd::{Layout, RealSshd, SshdSpec};
use support::copying::{Barred, SmallDisk, command, listing, parts, real, sshoal, text, write};
use support::program::{Ended, Running};
use support::{Shoal, descendants, noise, shared_folder, wait_until};

/// What `--json` says, a value for each object.
fn objects(ended: &Ended) -> Vec<Value> {
    let text = ended.stdout();
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// `sshoal put` of standard input, which stays open.
fn put_input(shoal: &Shoal<RealSshd>, to: &Path) -> (Running, PipeWriter) {
    let (reader, writer) = io::pipe().unwrap();
    let mut putting = command(shoal, &["put", "--json", "-", text(to)]);
    putting.stdin(reader);
    (Running::start(&mut putting), writer)
}

#[test]
fn ctrl_c_does_not_wait_for_standard_input_that_says_nothing() {
    let shoal = real(SshdSpec::new(1));
    let target = shared_folder();
    let (running, mut input) = put_input(&shoal, &target.path().join("input"));
    input.write_all(&noise(700_000)).unwrap();
    wait_until("some of it has arrived", || {
        let listing = listing(target.path());
        listing
            .values()
            .any(|(_, _, octets)| octets.len() > 200_000)
    });
    running.interrupt();
    let ended = running.wait().expect(130);
    assert_eq!(listing(target.path()).len(), 0);
    let host = &objects(&ended)[0];
    let detail = host["detail"].as_str().unwrap();
    assert_eq!(host["failure"], "transfer", "{host}");
    assert!(
        detail.contains("interrupted before it was whole"),
        "{detail}"
    );
    drop(input);
}

/// More hosts than have room for what they read ahead.
#[test]
fn standard_input_that_says_nothing_keeps_no_host_from_beginning() {
    const HOSTS: u32 = 5;
    let mut spec = SshdSpec::new(HOSTS);
    spec.layout = Layout::Shared;
    let shoal = real(spec);
    let target = shared_folder();
    let to = target.path().join("input");
    let (running, mut input) = put_input(&shoal, &to);
    wait_until("all hosts have begun", || {
        parts(target.path()).len() == HOSTS as usize
    });
    input.write_all(b"text").unwrap();
    drop(input);
    running.wait().expect(0);
    assert_eq!(fs::read(&to).unwrap(), b"text");
    assert_eq!(listing(target.path()).len(), 1);
}

#[test]
fn what_fails_does_not_wait_for_standard_input_that_says_nothing() {
    let target = shared_folder();
    let Some(_disk) = SmallDisk::mount(target.path(), "1m") else {
        return;
    };
    let shoal = real(SshdSpec::new(1));
    let (running, mut input) = put_input(&shoal, &target.path().join("input"));
    // It may end before it has read all of that.
    let _ = input.write_all(&noise(3_000_000));
    let ended = running.wait().expect(3);
    let host = &objects(&ended)[0];
    let detail = host["detail"].as_str().unwrap();
    assert!(detail.contains("no space left"), "{detail}");
    assert_eq!(listing(target.path()).len(), 0);
    drop(input);
}

/// Nothing tells them from /dev/null any more once a program runs, and an empty file would be put in place.
#[test]
fn standard_streams_that_carry_nothing_are_told_of_before_a_host_is_asked() {
    let shoal = real(SshdSpec::new(1));
    let target = shared_folder();
    let to = target.path().join("input");
    fs::write(&to, "old").unwrap();
    let (config, hosts, path) = (shoal.file("ssh_config"), shoal.file("hosts"), text(&to));
    let shell = |command: &str, words: &str| {
        let line = format!("exec sshoal {command} -F {config} -f {hosts} {words}");
        Running::start(&mut shoal.user.shell(&line)).wait()
    };
    let input = ["standard input cannot be sent", "(< FILE)"];
    let output = ["standard output cannot take what is fetched", "(> FILE)"];
    for (command, words, why, all) in [
        ("put", format!("- {path} <&-"), "it is closed", input),
        (
            "put",
            format!("- {path} <&- >&- 2>&-"),
            "it is closed",
            input,
        ),
        (
            "put",
            format!("- {path} 0>/dev/null"),
            "for writing alone",
            input,
        ),
        ("put", format!("- {path} </"), "it is a folder", input),
        ("get", format!("{path} - >&-"), "it is closed", output),
        (
            "get",
            format!("{path} - 1</dev/null"),
            "for reading alone",
            output,
        ),
    ] {
        let ended = shell(command, &words).expect(2);
        // Standard error has been closed as well in one of them.
        if !words.ends_with("2>&-") {
            ended.says(&[why, all[0], all[1]]);
        }
    }
    let ended = shell("run", "--stdin - cat <&-").expect(2);
    ended.says(&["cannot read standard input from -: it is closed"]);
    assert_eq!(shoal.hosts.logins(), 0);
    assert_eq!(fs::read(&to).unwrap(), b"old");
    // What is open and empty is an empty file.
    for input in ["</dev/null", "<>/dev/null"] {
        fs::write(&to, "old").unwrap();
        shell("put", &format!("- {path} {input}")).expect(0);
        assert_eq!(fs::read(&to).unwrap(), b"");
    }
    shell("get", &format!("{path} - 1<>/dev/null")).expect(0);
}

/// Whether the test was started so that a signal is ignored, as by nohup(1): then so it is in what it starts.
fn is_ignored(signal: Signal) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = u64::from_str_radix(mask.unwrap().trim(), 16).unwrap();
    mask & (1 << (signal.as_raw() - 1)) != 0
}

#[test]
fn sigterm_and_sighup_leave_no_part_on_either_side() {
    let shoal = real(SshdSpec::new(1));
    let dir = shared_folder();
    let big = dir.path().join("big");
    write(&big, &noise(20_000_000), 0o644);
    let target = shared_folder();
    let back = dir.path().join("back");
    let words = [
        ["put", "--limit", "1M", text(&big), text(target.path())],
        ["get", "--limit", "1M", text(&big), text(&back)],
    ];
    for (signal, status) in [(Signal::TERM, 143), (Signal::HUP, 129)] {
        if is_ignored(signal) {
            println!("{signal:?} is not tried: it is ignored here");
            continue;
        }
        for (words, folder) in words.iter().zip([target.path(), back.as_path()]) {
            let running = Running::start(&mut command(&shoal, words));
            wait_until("the part is there", || {
                folder.exists() && !parts(folder).is_empty()
            });
            // A shell and the kernel send it, each for itself.
            kill_process(running.pid(), signal).unwrap();
            kill_process(running.pid(), signal).unwrap();
            let ended = running.wait().expect(status);
            assert_eq!(parts(folder), Vec::<Vec<u8>>::new(), "{}", ended.stderr());
            ended.says(&["interrupted"]);
        }
    }
    assert_eq!(listing(target.path()).len(), 0);
}

/// A terminal that is gone takes no more, and SIGHUP is not the only one to say so.
#[test]
fn an_output_that_fails_leaves_no_part() {
    let shoal = real(SshdSpec::new(1));
    let dir = tempfile::tempdir().unwrap();
    write(&dir.path().join("big"), &noise(20_000_000), 0o644);
    write(&dir.path().join("small"), b"small", 0o644);
    let target = shared_folder();
    fs::create_dir(target.path().join("small")).unwrap();
    let (config, hosts) = (shoal.file("ssh_config"), shoal.file("hosts"));
    let (from, to) = (text(dir.path()), text(target.path()));
    let line = format!(
        "exec sshoal put -F {config} -f {hosts} --limit 1M {from}/big {from}/small {to} 2>/dev/full"
    );
    Running::start(&mut shoal.user.shell(&line))
        .wait()
        .expect(74);
    assert_eq!(parts(target.path()), Vec::<Vec<u8>>::new());
}

/// Kills all that serves the host.
fn kill_sessions(shoal: &Shoal<RealSshd>) {
    for process in descendants(shoal.hosts.pid(0).as_raw_nonzero().get()) {
        // It may have ended with its parent.
        let _ = kill_process(Pid::from_raw(process).unwrap(), Signal::KILL);
    }
}

#[test]
fn what_has_arrived_at_a_host_that_is_lost_is_told() {
    let shoal = real(SshdSpec::new(1));
    let dir = tempfile::tempdir().unwrap();
    let names = ["first", "second", "third"].map(|name| dir.path().join(name));
    for (name, octets) in names.iter().zip([1_000_000, 1_000_001, 20_000_000]) {
        write(name, &noise(octets), 0o644);
    }
    let target = shared_folder();
    let mut words = vec!["put", "--json", "--limit", "1M"];
    words.extend(names.iter().map(|name| text(name)));
    words.push(text(target.path()));
    let running = Running::start(&mut command(&shoal, &words));
    let is_there = |name: &str| target.path().join(name).exists();
    let much_of_third = || {
        let entries = fs::read_dir(target.path()).unwrap();
        let mut entries = entries.map(|entry| entry.unwrap());
        entries.any(|entry| {
            let is_part = entry.file_name().as_encoded_bytes().starts_with(b".third");
            // It is there until the end.
            is_part && entry.metadata().unwrap().len() > 2_000_000
        })
    };
    wait_until("two are there, and much of the third", || {
        is_there("first") && is_there("second") && much_of_third()
    });
    let _barred = Barred::new(&shoal);
    kill_sessions(&shoal);
    let ended = running.wait().expect(3);
    let [host, summary] = &objects(&ended)[..] else {
        panic!("{}", ended.stdout());
    };
    assert_eq!(host["failure"], "lost");
    assert_eq!(host["fate"], "ran");
    for object in [host, summary] {
        let moved = &object["transfer"];
        assert!(moved["octets"].as_u64() >= Some(3_000_000), "{object}");
        assert_eq!(
            (moved["done"].as_u64(), moved["failed"].as_u64()),
            (Some(2), Some(0))
        );
    }
    // Of a command nothing is said: it was none.
    for member in ["detail", "remedy"] {
        let text = host[member].as_str().unwrap();
        assert!(!text.contains("command"), "{text}");
    }
    assert!(
        host["remedy"]
            .as_str()
            .unwrap()
            .contains("run the same again")
    );
}

#[test]
fn a_copy_that_takes_too_long_is_told_as_a_copy() {
    let shoal = real(SshdSpec::new(1));
    let dir = tempfile::tempdir().unwrap();
    let big = dir.path().join("big");
    write(&big, &noise(20_000_000), 0o644);
    let target = shared_folder();
    let to = text(target.path());
    let ended = sshoal(
        &shoal,
        &["put", "--json", "-u", "1", "--limit", "1M", text(&big), to],
    )
    .expect(3);
    let host = &objects(&ended)[0];
    assert_eq!(host["failure"], "command-timeout");
    assert_eq!(host["detail"], "not everything was copied within 1s");
    let remedy = host["remedy"].as_str().unwrap();
    assert!(
        remedy.contains("-u") && !remedy.contains("command"),
        "{remedy}"
    );
    assert_eq!(listing(target.path()).len(), 0);
}

/// No more than 1 MiB has room here.
#[test]
fn standard_input_that_cannot_be_kept_is_told_with_the_folder_and_what_to_do() {
    let shoal = real(SshdSpec::new(1));
    let target = shared_folder();
    let to = target.path().join("input");
    fs::write(&to, "old").unwrap();
    let put = format!(
        "sshoal put -F {} -f {} - {}",
        shoal.file("ssh_config"),
        shoal.file("hosts"),
        to.display()
    );
    let line = format!("head -c 40000000 /dev/zero | (trap '' XFSZ; ulimit -f 2048; exec {put})");
    let full = Running::start(&mut shoal.user.shell(&line)).wait();
    full.expect(74).says(&[
        "cannot keep standard input in a temporary file in /tmp",
        "set TMPDIR",
        "to do: free space there, or run it with TMPDIR set to",
    ]);
    assert_eq!(fs::read(&to).unwrap(), b"old");
    assert_eq!(listing(target.path()).len(), 1);
    let line = format!("TMPDIR=/no/such/folder exec {put}");
    let nowhere = Running::start(&mut shoal.user.shell(&line)).wait();
    nowhere
        .expect(2)
        .says(&["standard input", "/no/such/folder", "TMPDIR"]);
}

/// It is a failure of that host, with `scp` as the remedy.
#[test]
fn a_host_that_goes_by_ssh_fails_and_the_others_are_copied_to() {
    let shoal = real(SshdSpec::new(2));
    let config = shoal.file("ssh_config");
    let required = format!("Host {}\n    PKCS11Provider /lib/none.so\n", shoal.name(0));
    let rest = fs::read_to_string(&config).unwrap();
    fs::write(&config, format!("{required}{rest}")).unwrap();
    let target = shared_folder();
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("source");
    fs::write(&source, "contents").unwrap();
    let to = target.path().join("file");
    let words = ["put", "--json", text(&source), text(&to)];
    let ended = sshoal(&shoal, &words).expect(3);
    let hosts = objects(&ended);
    let by_ssh = hosts.iter().find(|it| it["host"] == shoal.name(0)).unwrap();
    assert_eq!(by_ssh["failure"], "transfer", "{by_ssh}");
    assert_eq!(by_ssh["transport"], "openssh");
    let detail = by_ssh["detail"].as_str().unwrap();
    assert!(detail.contains("PKCS11Provider"), "{detail}");
    assert!(by_ssh["remedy"].as_str().unwrap().contains("scp"));
    assert_eq!(fs::read(&to).unwrap(), b"contents");
    let got = dir.path().join("got");
    let ended = sshoal(&shoal, &["get", text(&to), text(&got)]).expect(3);
    ended.says(&[&shoal.name(0), "goes by ssh", "use scp"]);
    assert_eq!(fs::read_dir(&got).unwrap().count(), 1);
    assert_eq!(
        fs::read(got.join(shoal.name(1)).join("file")).unwrap(),
        b"contents"
    );
    // Nobody is left: nothing is begun.
    let words = ["put", "-x", &shoal.name(1), text(&source), text(&to)];
    sshoal(&shoal, &words)
        .expect(2)
        .says(&["goes by ssh", "PKCS11Provider"]);
}
