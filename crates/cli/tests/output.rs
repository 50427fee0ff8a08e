//! What comes out: whatever bytes the hosts send, whoever reads them, however slowly.

#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use sshoal_testbed::sshd::{Layout, RealSshd, SshdSpec};
use support::program::{Ended, Running};
use support::{Shoal, shared_folder};

/// Real hosts, which run whatever /bin/sh understands.
fn real(hosts: u32) -> Shoal<RealSshd> {
    let mut spec = SshdSpec::new(hosts);
    spec.layout = Layout::Shared;
    Shoal::real(&spec)
}

/// The lines of a run's output behind each host's name.
fn by_host(output: &[u8]) -> BTreeMap<String, Vec<&[u8]>> {
    let mut lines: BTreeMap<String, Vec<&[u8]>> = BTreeMap::new();
    for line in output
        .strip_suffix(b"\n")
        .unwrap()
        .split(|byte| *byte == b'\n')
    {
        let colon = line
            .windows(2)
            .position(|two| two == b": ")
            .expect("each line has a prefix");
        let name = String::from_utf8(line[..colon].to_vec()).unwrap();
        lines.entry(name).or_default().push(&line[colon + 2..]);
    }
    lines
}

#[test]
fn lines_written_in_pieces_by_many_hosts_come_out_whole() {
    let shoal = real(6);
    let script = "i=0; while [ $i -lt 300 ]; do printf 'begun '; printf 'and '; echo ended $i; i=$((i+1)); done";
    let ended = shoal.run(&[script]).expect(0);
    let lines = by_host(&ended.stdout);
    assert_eq!(lines.len(), 6);
    for (name, lines) in lines {
        let expected = (0..300).map(|number| format!("begun and ended {number}"));
        assert!(
            lines.into_iter().eq(expected.map(String::into_bytes)),
            "{name}"
        );
    }
}

#[test]
fn a_last_line_without_an_end_gets_one_and_streams_stay_apart() {
    let shoal = real(2);
    let ended = shoal
        .run(&["printf one; printf 'two' >&2; exit 0"])
        .expect(0);
    let names = [shoal.name(0), shoal.name(1)];
    for (stream, word) in [(ended.stdout(), "one"), (ended.stderr(), "two")] {
        let mut lines: Vec<&str> = stream.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, names.clone().map(|name| format!("{name}: {word}")));
        assert!(stream.ends_with('\n'));
    }
}

#[test]
fn lines_of_ten_megabytes_are_not_torn() {
    const LENGTH: usize = 10_000_000;
    let shoal = real(3);
    let line = format!("head -c {LENGTH} /dev/zero | tr '\\0' x; echo; echo short");
    let ended = shoal.run(&[&line]).expect(0);
    let lines = by_host(&ended.stdout);
    assert_eq!(lines.len(), 3);
    for (name, lines) in lines {
        assert_eq!(lines.len(), 2, "{name}");
        assert!(
            lines[0].len() == LENGTH && lines[0].iter().all(|byte| *byte == b'x'),
            "{name}"
        );
        assert_eq!(lines[1], b"short");
    }
}

/// Every byte but the newline, with escape sequences among them.
fn any_bytes() -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..=255).filter(|byte| *byte != b'\n').collect();
    bytes.extend_from_slice(b"\x1b[31mred\x1b]0;title\x07\xc3\xa4\xe2\x82\n");
    bytes
}

/// A file with these bytes, that the hosts can print.
fn printed(bytes: &[u8]) -> (tempfile::TempDir, String) {
    let folder = shared_folder();
    let file = folder.path().join("bytes");
    fs::write(&file, bytes).unwrap();
    let line = format!("cat {}", file.display());
    (folder, line)
}

#[test]
fn a_pipe_gets_every_byte_as_it_is() {
    let shoal = real(1);
    let bytes = any_bytes();
    let (_folder, line) = printed(&bytes);
    let ended = shoal.run(&[&line]).expect(0);
    let expected = [format!("{}: ", shoal.name(0)).as_bytes(), &bytes].concat();
    assert!(ended.stdout == expected, "{:?}", ended.stdout());
}

/// The same on a terminal, by script(1); what the terminal got.
fn on_a_terminal(shoal: &Shoal<RealSshd>, options: &str, line: &str) -> Ended {
    let mut command: Command = shoal.shell("exec script -qec \"$RUN $OPTIONS '$LINE'\" /dev/null");
    command
        .env("OPTIONS", options)
        .env("LINE", line)
        .env("TERM", "dumb");
    Running::start(&mut command).wait()
}

#[test]
fn a_terminal_gets_control_characters_made_visible() {
    let shoal = real(1);
    let (_folder, line) = printed(b"\x1b[31mred\x07\x9b1m \xff \xc3\xa4\tend\x0b\n");
    let ended = on_a_terminal(&shoal, "-q", &line).expect(0);
    // The terminal itself makes CR LF of the newline.
    let expected = format!(
        "{}: \\x1b[31mred\\x07\\x9b1m \\xff ä\tend\\x0b\r\n",
        shoal.name(0)
    );
    assert_eq!(ended.stdout(), expected);
}

#[test]
fn a_terminal_gets_progress_that_leaves_nothing_of_the_hosts_behind() {
    let shoal = real(2);
    let (_folder, line) = printed(&any_bytes());
    let ended = on_a_terminal(&shoal, "", &line).expect(0);
    let shown = ended.stdout();
    assert!(shown.contains("2 of 2 hosts ok"), "{shown:?}");
    for (index, _) in shown.match_indices('\x1b') {
        let sequence = &shown[index..];
        assert!(
            sequence.starts_with("\x1b[K"),
            "only lines are erased: {sequence:?}"
        );
    }
    let stray = |c: char| c.is_control() && !['\x1b', '\r', '\n', '\t'].contains(&c);
    assert_eq!(shown.find(stray), None, "{shown:?}");
}

#[test]
fn dshbak_folds_what_comes_out() {
    let shoal = real(4);
    let (last, count) = (shoal.name(3), 4);
    let line = format!("$RUN 'test %h = {last} && echo odd || echo even' | dshbak -c");
    let ended = Running::start(&mut shoal.shell(&line)).wait().expect(0);
    let names: Vec<String> = (0..count).map(|host| shoal.name(host)).collect();
    let rule = "-".repeat(16);
    let expected = [
        format!("{rule}\n{}\n{rule}\neven\n", folded(&names[..3])),
        format!("{rule}\n{last}\n{rule}\nodd\n"),
    ];
    let mut parts = expected.clone();
    parts.reverse();
    let found = ended.stdout();
    assert!(
        [expected.concat(), parts.concat()].contains(&found),
        "{found}"
    );
}

/// `127.2.0.[1-3]` for the names of hosts that follow each other.
fn folded(names: &[String]) -> String {
    let (before, first) = names[0].rsplit_once('.').unwrap();
    let (_, last) = names.last().unwrap().rsplit_once('.').unwrap();
    format!("{before}.[{first}-{last}]")
}

fn names(shoal: &Shoal<RealSshd>, hosts: usize) -> Vec<String> {
    (0..hosts).map(|host| shoal.name(host)).collect()
}

#[test]
fn gathered_output_stands_once_under_folded_names() {
    let shoal = real(4);
    let names = names(&shoal, 4);
    let line = format!("test %h = {} && echo odd || echo even", names[3]);
    let ended = shoal.run(&["-b", &line]).expect(0);
    let rule = "-".repeat(15);
    let expected = format!(
        "{rule}\n{} (3)\n{rule}\neven\n{rule}\n{}\n{rule}\nodd\n",
        folded(&names[..3]),
        names[3]
    );
    assert_eq!(ended.stdout(), expected);
}

#[test]
fn differences_are_shown_against_the_most_common_output() {
    let shoal = real(4);
    let names = names(&shoal, 4);
    let line = format!("echo same; test %h = {} && echo odd || echo even", names[3]);
    let ended = shoal.run(&["--diff", &line]).expect(0);
    let expected = format!(
        "--- {} (3)\n+++ {}\n@@ -1,2 +1,2 @@\n same\n-even\n+odd\n",
        folded(&names[..3]),
        names[3]
    );
    assert_eq!(ended.stdout(), expected);
}

#[test]
fn outdir_has_each_stream_of_each_host_to_the_byte() {
    let shoal = real(2);
    let bytes = any_bytes();
    let (folder, line) = printed(&bytes);
    let dir = folder.path().join("made");
    let outdir = format!("--outdir={}", dir.display());
    shoal
        .run(&[&outdir, &format!("{line}; printf said >&2")])
        .expect(0);
    for name in names(&shoal, 2) {
        let file = |end: &str| fs::read(dir.join(format!("{name}.{end}"))).unwrap();
        assert!(file("out") == bytes, "{name}");
        assert_eq!(file("err"), b"said");
    }
}

#[test]
fn json_has_the_bytes_too() {
    let shoal = real(1);
    let bytes = any_bytes();
    let (_folder, line) = printed(&bytes);
    let ended = shoal.run(&["--json", &line]).expect(0);
    let record: serde_json::Value =
        serde_json::from_str(ended.stdout().lines().next().unwrap()).unwrap();
    let text = record["stdout_base64"].as_str().unwrap();
    let mut decode = Command::new("base64");
    decode.arg("-d").stdin(file_with(text.as_bytes()));
    assert!(decode.output().unwrap().stdout == bytes);
    assert_eq!(record["stderr"], "");
}

fn file_with(bytes: &[u8]) -> fs::File {
    use std::io::{Seek, Write};
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file.rewind().unwrap();
    file
}

#[test]
fn exit_statuses_are_those_of_the_documentation() {
    let shoal = Shoal::simulated(3, &["2=refuse"]);
    let good = format!("{},{}", shoal.name(0), shoal.name(1));
    let all = format!("{good},{}", shoal.name(2));
    for (hosts, arguments, status) in [
        (&good, vec!["true"], 0),
        (&good, vec!["exit", "7"], 1),
        (&good, vec!["kill-self", "TERM"], 1),
        (&all, vec!["true"], 3),
        (&all, vec!["exit", "7"], 3),
        (&good, vec!["-S", "true"], 0),
        (&good, vec!["-S", "exit", "7"], 7),
        (&good, vec!["-S", "exit", "300"], 255),
        (&good, vec!["-S", "kill-self", "TERM"], 128 + 15),
        (&all, vec!["-S", "true"], 255),
        (&good, vec!["--no-such-option", "true"], 2),
    ] {
        let found = shoal.run_on(hosts, &arguments);
        assert_eq!(
            found.status.code(),
            Some(status),
            "{arguments:?}: {}",
            found.stderr()
        );
    }
}

#[test]
fn quiet_says_nothing_of_its_own_and_a_clean_run_in_a_pipe_neither() {
    let shoal = Shoal::simulated(3, &["2=refuse"]);
    let quiet = shoal.run(&["-q", "hostname"]).expect(3);
    assert_eq!(quiet.stderr(), "");
    assert_eq!(by_host(&quiet.stdout).len(), 2);
    let clean = shoal.run_on(&shoal.name(0), &["hostname"]).expect(0);
    assert_eq!(
        (clean.stdout(), clean.stderr()),
        (format!("{}: sim0\n", shoal.name(0)), String::new())
    );
    let told = shoal.run(&["hostname"]).expect(3).says(&[
        "2 of 3 hosts ok",
        "refused: ",
        &shoal.name(2),
        "to do: ",
    ]);
    assert_eq!(by_host(&told.stdout).len(), 2);
}

#[test]
fn banners_are_shown_to_those_who_ask_for_more_made_visible_bounded_and_apart() {
    let dir = tempfile::tempdir().unwrap();
    let banner = dir.path().join("banner");
    let text = format!(
        "Mind\x1b[2J the gap\nauthorised only\n{}last",
        "long\n".repeat(2000)
    );
    fs::write(&banner, text).unwrap();
    let shoal = Shoal::real(&SshdSpec::new(1).line(format!("Banner {}", banner.display())));
    let shown = format!("sshoal: {}: banner: ", shoal.name(0));

    let usual = shoal.run(&["echo out"]).expect(0);
    assert!(!usual.stderr().contains("banner"), "{}", usual.stderr());
    for layout in [&["-v"][..], &["-v", "--json"]] {
        let ended = shoal.run(&[layout, &["echo out"]].concat()).expect(0);
        let said = ended.stderr();
        assert!(
            said.contains(&format!("{shown}Mind\\x1b[2J the gap\n")),
            "{said}"
        );
        assert!(
            said.contains(&format!("{shown}authorised only\n")),
            "{said}"
        );
        let octets: usize = said
            .lines()
            .filter_map(|line| line.strip_prefix(&shown))
            .map(|line| line.len() + 1)
            .sum();
        assert!((4000..4200).contains(&octets), "{octets} octets are shown");
        assert!(!ended.stdout().contains("gap"), "{}", ended.stdout());
        assert!(ended.stdout().contains("out"));
    }
}

#[test]
fn twice_verbose_traces_messages_by_host_and_connection_and_thrice_phases_without_contents() {
    let shoal = Shoal::real(&SshdSpec::new(2));
    let plain = shoal.run(&["-v", "echo secret-word"]).expect(0);
    assert!(!plain.stderr().contains("KEXINIT"), "{}", plain.stderr());
    let traced = shoal.run(&["-vv", "echo secret-word"]).expect(0).stderr();
    for host in 0..2 {
        let span = format!(
            "host{{name=\"{}\"}}:connection{{from=127.",
            shoal.name(host)
        );
        for message in ["sent NEWKEYS", "received USERAUTH_SUCCESS"] {
            let said = |line: &str| line.contains(&span) && line.contains(message);
            assert_eq!(
                traced.lines().filter(|line| said(line)).count(),
                1,
                "{message}: {traced}"
            );
        }
    }
    assert!(
        !traced.contains("secret-word") && !traced.contains("entered"),
        "{traced}"
    );
    let all = shoal.run(&["-vvv", "true"]).expect(0).stderr();
    assert!(all.contains("entered phase=connect"), "{all}");
}
