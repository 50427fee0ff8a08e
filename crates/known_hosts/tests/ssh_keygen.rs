//! Against `ssh-keygen -F`, `-R` and `-H`, the reference for which lines apply to a host and how
//! files are edited: 5,000 generated cases, and no difference but these.
//!
//! | ssh-keygen | sshoal | reason |
//! | --- | --- | --- |
//! | `-F` finds lines whose base64 is damaged | they are problems, and grant nothing | `-F` does not look at keys; ssh itself skips these lines |
//! | `-F` overlooks damaged `@revoked` lines | what can be read of them stays in force | caution (see `revocation.rs`) |
//! | a tab behind `@revoked` makes `-F` skip the line | the revocation is in force | caution |
//! | `-F Name` finds no hashed `name` | letters of either case are the same | ssh makes names lowercase before it looks |
//! | `-H` takes any field that begins with `\|` for a hashed name | a malformed one is broken | `-R` and `-F` do so too |
//! | `-R` and `-H` change nothing in a file with a broken line | they do their work, keep the line and report it | a stale host must be removable |
//! | `-R` and `-H` add the line feed that the last line lacks, and drop what follows a NUL | bytes that are not to be changed stay | |
//! | `-H` drops the names behind an empty one: `a,,b` | only the empty one is dropped | a host would be forgotten |
//! | a type may be called by its short name, `ED25519` | such lines are broken | ssh itself skips these lines |
//! | 9.2 reads on behind a line of a single word | the line is broken | a bug that was mended in 10.1 |
#![allow(clippy::unwrap_used)]

mod generate;

use std::collections::VecDeque;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use generate::{Content, Random, file, name};
use sshoal_known_hosts::{HostName, KnownHosts, edit};
use tempfile::TempDir;

/// Where the random content begins; another number gives other files.
const SEED: u64 = 20_261_121;

struct Oracle {
    directory: TempDir,
}

impl Oracle {
    fn new() -> Oracle {
        let directory = tempfile::tempdir().unwrap();
        Oracle { directory }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("known_hosts")
    }

    fn write(&self, content: &[u8]) {
        fs::write(self.path(), content).unwrap();
    }

    fn run(&self, arguments: &[&str]) -> (bool, String) {
        let mut command = Command::new("ssh-keygen");
        command.args(arguments).arg("-f").arg(self.path());
        let output = command.output();
        let output = output.expect("ssh-keygen is installed (openssh-client)");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.success(), text)
    }

    /// The lines that `ssh-keygen -F` names.
    fn find(&self, host: &str) -> Vec<usize> {
        let (_, text) = self.run(&["-F", host]);
        let numbers = text
            .lines()
            .filter_map(|line| line.split_once(" found: line "));
        numbers
            .map(|(_, rest)| rest.split(' ').next().unwrap().parse().unwrap())
            .collect()
    }

    /// The content after an edit; `None` if ssh-keygen refuses the file.
    fn edit(&self, content: &[u8], arguments: &[&str]) -> Option<Vec<u8>> {
        self.write(content);
        let (done, _) = self.run(arguments);
        done.then(|| fs::read(self.path()).unwrap())
    }

    /// Hashed host fields of some names.
    fn hashed_names(&self, random: &mut Random) -> Vec<String> {
        let key = "ssh-ed25519 AAAA";
        let lines: Vec<String> = (0..60)
            .map(|_| format!("{} {key}\n", name(random)))
            .collect();
        let hashed = self.edit(lines.concat().as_bytes(), &["-H"]).unwrap();
        let hashed = String::from_utf8(hashed).unwrap();
        hashed
            .lines()
            .map(|line| line.split(' ').next().unwrap().to_string())
            .collect()
    }
}

fn host(written: &str) -> HostName<'_> {
    let rest = written.strip_prefix('[');
    match rest.and_then(|rest| rest.split_once("]:")) {
        Some((name, port)) => HostName::with_port(name, port.parse().unwrap()),
        None => HostName::new(written),
    }
}

/// The content with the line feed at its end that ssh-keygen always writes.
fn ended(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if bytes.last().is_some_and(|&last| last != b'\n') {
        bytes.push(b'\n');
    }
    bytes
}

/// The content without the lines of these numbers.
fn without(content: &str, lines: &[usize]) -> String {
    let kept = content.split_inclusive('\n').enumerate();
    let kept = kept.filter(|(index, _)| !lines.contains(&(index + 1)));
    kept.map(|(_, line)| line).collect()
}

#[test]
fn the_lines_of_a_host_are_those_of_ssh_keygen_f() {
    let (oracle, mut random) = (Oracle::new(), Random(SEED));
    let pool = oracle.hashed_names(&mut random);
    let (mut found, mut problems) = (0, 0);
    for case in 0..100 {
        let content = Content {
            lines: 5 + random.below(80),
            broken: if case % 3 == 0 { 10 } else { 0 },
            hashed: case % 2 == 0,
        };
        let content = file(&mut random, content, &pool);
        oracle.write(content.as_bytes());
        let known = KnownHosts::parse(vec![("known_hosts".into(), content.clone().into())]);
        let broken: Vec<usize> = known
            .problems()
            .iter()
            .map(|problem| problem.line)
            .collect();
        for _ in 0..20 {
            let name = name(&mut random).to_lowercase();
            let mut expected = oracle.find(&name);
            let matches = known.lookup(&host(&name));
            let mut lines: Vec<usize> = matches.iter().map(|entry| entry.location().line).collect();
            let all = lines.len();
            // The first rows of the list of differences: such a line is a problem, or has a tab.
            let tab = |line: usize| {
                content
                    .lines()
                    .nth(line - 1)
                    .unwrap()
                    .contains("@revoked\t")
            };
            expected.retain(|line| !broken.contains(line));
            lines.retain(|&line| !broken.contains(&line) && !tab(line));
            assert_eq!(lines, expected, "case {case}: {name} in\n{content}");
            found += lines.len();
            problems += all - lines.len();
        }
    }
    assert!(found > 4000 && problems < found / 5, "{found} {problems}");
}

#[test]
fn a_host_is_forgotten_as_by_ssh_keygen_r() {
    let (oracle, mut random) = (Oracle::new(), Random(SEED + 1));
    let pool = oracle.hashed_names(&mut random);
    let (mut removed, mut refused) = (0, 0);
    for case in 0..1500 {
        let content = Content {
            lines: random.below(40),
            broken: if case % 4 == 0 { 5 } else { 0 },
            hashed: case % 2 == 0,
        };
        let content = file(&mut random, content, &pool);
        let name = name(&mut random).to_lowercase();
        let ours = edit::forget(content.as_bytes(), &[host(&name)]);
        let theirs = oracle.edit(content.as_bytes(), &["-R", &name]);
        assert_eq!(
            theirs.is_none(),
            !ours.broken.is_empty(),
            "case {case}:\n{content}"
        );
        let (ours, theirs) = match theirs {
            Some(theirs) => (ours, theirs),
            None => {
                refused += 1;
                let content = without(&content, &ours.broken);
                let ours = edit::forget(content.as_bytes(), &[host(&name)]);
                (
                    ours,
                    oracle.edit(content.as_bytes(), &["-R", &name]).unwrap(),
                )
            }
        };
        assert_eq!(
            ended(&ours.bytes),
            ended(&theirs),
            "case {case}: {name} in\n{content}"
        );
        removed += ours.removed.len();
    }
    assert!(removed > 1000 && refused > 100, "{removed} {refused}");
}

/// The salts of hashed names in `after` that are not in `before`, in their order.
fn salts(before: &str, after: &[u8]) -> VecDeque<[u8; 20]> {
    let after = String::from_utf8_lossy(after);
    let fields = after
        .lines()
        .filter_map(|line| line.trim_start().split([' ', '\t']).next());
    let new = fields.filter(|field| field.starts_with("|1|") && !before.contains(*field));
    let salt = |field: &str| STANDARD.decode(field.split('|').nth(2).unwrap()).unwrap();
    new.map(|field| salt(field).try_into().unwrap()).collect()
}

#[test]
fn names_are_hashed_as_by_ssh_keygen_h() {
    let (oracle, mut random) = (Oracle::new(), Random(SEED + 2));
    let pool = oracle.hashed_names(&mut random);
    let (mut hashed, mut refused) = (0, 0);
    for case in 0..1500 {
        let content = Content {
            lines: random.below(30),
            broken: if case % 5 == 0 { 5 } else { 0 },
            hashed: case % 2 == 0,
        };
        let content = file(&mut random, content, &pool);
        let broken = edit::hash(content.as_bytes(), &mut || [0; 20]).broken;
        let mut theirs = oracle.edit(content.as_bytes(), &["-H"]);
        let malformed = |line: usize| content.lines().nth(line - 1).unwrap().contains("|1|AAAA|");
        let refusing = broken.iter().any(|&line| !malformed(line));
        assert_eq!(theirs.is_none(), refusing, "case {case}:\n{content}");
        let content = without(&content, &broken);
        if !broken.is_empty() {
            refused += usize::from(refusing);
            theirs = oracle.edit(content.as_bytes(), &["-H"]);
        }
        let theirs = theirs.unwrap();
        let mut salts = salts(&content, &theirs);
        hashed += salts.len();
        let ours = edit::hash(content.as_bytes(), &mut || salts.pop_front().unwrap());
        assert_eq!(
            ended(&ours.bytes),
            ended(&theirs),
            "case {case}:\n{content}"
        );
        assert!(salts.is_empty());
    }
    assert!(hashed > 10_000 && refused > 50, "{hashed} {refused}");
}

/// Rows of the list of differences that the generated files do not hold.
#[test]
fn the_differences_are_as_listed() {
    let oracle = Oracle::new();
    let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGFiY2RlZmdoaWprbG1ub3BxcnN0dXZ3eHl6MDEyMzQ1";
    let lookup = |content: &str, name: &str| {
        let known = KnownHosts::parse(vec![(String::new(), content.into())]);
        known.lookup(&host(name)).len()
    };
    let find = |content: &str, name: &str| {
        oracle.write(content.as_bytes());
        oracle.find(name).len()
    };
    let damaged = format!("a {key}!\n");
    assert_eq!((find(&damaged, "a"), lookup(&damaged, "a")), (1, 0));
    let revoked = format!("@revoked a {key}!\n@Revoked a {key}\n");
    assert_eq!((find(&revoked, "a"), lookup(&revoked, "a")), (1, 2));
    let plain = format!("name {key}\n");
    let hashed = oracle.edit(plain.as_bytes(), &["-H"]).unwrap();
    let hashed = String::from_utf8(hashed).unwrap();
    assert_eq!((find(&hashed, "name"), lookup(&hashed, "name")), (1, 1));
    assert_eq!((find(&hashed, "Name"), lookup(&hashed, "Name")), (0, 1));
    let short = plain.replace("ssh-ed25519", "ED25519");
    assert_eq!((find(&short, "name"), lookup(&short, "name")), (1, 0));

    let list = format!("a,,b {key}\n");
    let theirs = oracle.edit(list.as_bytes(), &["-H"]).unwrap();
    let ours = edit::hash(list.as_bytes(), &mut || [1; 20]).bytes;
    let lines = |bytes: &[u8]| bytes.iter().filter(|&&c| c == b'\n').count();
    assert_eq!((lines(&theirs), lines(&ours)), (1, 2));

    let unended = format!("# x\0y\nb {key}\na {key}\n#");
    let theirs = oracle.edit(unended.as_bytes(), &["-R", "a"]).unwrap();
    let ours = edit::forget(unended.as_bytes(), &[HostName::new("a")]).bytes;
    assert_eq!(theirs, format!("# x\nb {key}\n#\n").into_bytes());
    assert_eq!(ours, format!("# x\0y\nb {key}\n#").into_bytes());
}
