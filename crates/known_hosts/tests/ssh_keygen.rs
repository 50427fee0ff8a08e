//! Against `ssh-keygen -F`, the reference for which lines apply to a host.
#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sshoal_known_hosts::{HostName, KnownHosts};

/// Where the file's random content begins; another number gives another file.
const SEED: u64 = 20_261_121;

/// SplitMix64: the same file every time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn pick<'a>(&mut self, items: &[&'a str]) -> &'a str {
        items[self.below(items.len() as u64) as usize]
    }
}

fn key(seed: u64) -> String {
    let mut blob = b"\0\0\0\x0bssh-ed25519\0\0\0\x20".to_vec();
    blob.extend([seed as u8; 32]);
    format!("ssh-ed25519 {}", STANDARD.encode(blob))
}

fn name(random: &mut Random) -> String {
    let name = format!(
        "{}{}",
        random.pick(&["web", "DB", "a", "node-"]),
        random.below(4)
    );
    let name = format!("{name}{}", random.pick(&["", ".example.com", ".B.org"]));
    match random.below(6) {
        0 => format!("[{name}]:2222"),
        1 => format!("10.0.0.{}", random.below(4)),
        2 => format!("2001:db8::{}", random.below(4)),
        _ => name,
    }
}

fn field(random: &mut Random, wild: bool) -> String {
    let item = |random: &mut Random| match random.below(if wild { 8 } else { 5 }) {
        5 => format!(
            "{}*{}",
            random.pick(&["", "!"]),
            random.pick(&["", ".example.com", "1"])
        ),
        6 => random
            .pick(&["web?", "a?.*", "[*]:2222", "!web1*", "*,!a*", "10.0.0.?"])
            .to_string(),
        7 => format!("!{}", name(random)),
        _ => name(random),
    };
    let count = 1 + random.below(3);
    (0..count)
        .map(|_| item(random))
        .collect::<Vec<_>>()
        .join(",")
}

fn file(random: &mut Random, wild: bool) -> String {
    let mut text = String::from("# a comment\n\n");
    for index in 0..150 {
        let marker = match random.below(if wild { 10 } else { u64::MAX }) {
            0 => "@revoked ",
            1 => "@cert-authority ",
            _ => "",
        };
        let comment = random.pick(&["", " me@there", "  # two words", "\r"]);
        let _ = writeln!(
            text,
            "{marker}{} {}{comment}",
            field(random, wild),
            key(index)
        );
    }
    text.push_str("broken\n@what is this\n|1|x|y ssh-ed25519 AAAA\n");
    text
}

/// The lines that `ssh-keygen -F` names.
fn oracle(file: &Path, host: &str) -> Vec<usize> {
    let output = Command::new("ssh-keygen")
        .arg("-F")
        .arg(host)
        .arg("-f")
        .arg(file)
        .output();
    let output = output.expect("ssh-keygen is installed (openssh-client)");
    let text = String::from_utf8(output.stdout).unwrap();
    let numbers = text
        .lines()
        .filter_map(|line| line.split_once(" found: line "));
    numbers
        .map(|(_, rest)| rest.split(' ').next().unwrap().parse().unwrap())
        .collect()
}

fn compare(directory: &Path, content: &str, random: &mut Random) -> usize {
    let path = directory.join("known_hosts");
    let known = KnownHosts::parse(vec![("known_hosts".into(), content.into())]);
    let mut found = 0;
    for _ in 0..120 {
        let host = name(random).to_lowercase();
        let expected = oracle(&path, &host);
        let (name, port) = match host
            .strip_prefix('[')
            .and_then(|rest| rest.split_once("]:"))
        {
            Some((name, port)) => (name, port.parse().unwrap()),
            None => (host.as_str(), 22),
        };
        let matches = known.lookup(&HostName::with_port(name, port));
        let lines: Vec<usize> = matches.iter().map(|entry| entry.location().line).collect();
        assert_eq!(lines, expected, "{host} in {}", path.display());
        found += lines.len();
    }
    found
}

#[test]
fn plain_and_wild_lines_apply_as_ssh_keygen_says() {
    let directory = tempfile::tempdir().unwrap();
    let mut random = Random(SEED);
    let content = file(&mut random, true);
    std::fs::write(directory.path().join("known_hosts"), &content).unwrap();
    assert!(compare(directory.path(), &content, &mut random) > 1000);
}

#[test]
fn hashed_lines_apply_as_ssh_keygen_says() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("known_hosts");
    let mut random = Random(SEED);
    // ssh-keygen refuses to hash a file with broken lines.
    let content = file(&mut random, false);
    let (content, _) = content.split_once("broken").unwrap();
    std::fs::write(&path, content).unwrap();
    let status = Command::new("ssh-keygen")
        .args(["-q", "-H", "-f"])
        .arg(&path)
        .status()
        .unwrap();
    assert!(status.success());
    let hashed = std::fs::read_to_string(&path).unwrap();
    assert!(hashed.matches("|1|").count() > 150);
    assert!(compare(directory.path(), &hashed, &mut random) > 100);
}
