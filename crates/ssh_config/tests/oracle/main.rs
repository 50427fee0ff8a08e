//! Against `ssh -G`, the reference for what a configuration means.
//!
//! Both read the same files with `-F`, both are asked about the same host: every line of `ssh -G`
//! must be the same, and so must the exit status. The differences that are meant are listed in
//! differences.rs, each with its reason; every one of them must occur.
#![allow(clippy::unwrap_used)]

mod differences;
mod generate;
mod handwritten;
mod lines;
mod ssh;
mod sshoal;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use differences::DIFFERENCES;
use ssh::Ssh;
use sshoal::Outcome;

/// Keyword in lowercase to values, as `ssh -G` prints them.
type Settings = BTreeMap<String, Vec<String>>;

/// Cases that are compared.
const CASES: usize = 5_000;
/// For so many of them every keyword must say something else than without a line.
const TIMES: usize = 50;
/// What ssh exits with if it refuses.
const REFUSED: i32 = 255;

/// One question to both: options, files by name (the first is the one given with `-F`), a host
/// with user, port and command.
#[derive(Clone, Debug, Default)]
struct Case {
    options: Vec<String>,
    files: Vec<(String, String)>,
    host: String,
    user: Option<String>,
    port: Option<u16>,
    command: Vec<String>,
}

/// What both agree on.
enum Agreement {
    Resolved {
        settings: Settings,
        /// Reasons of the differences that occurred.
        reasons: BTreeSet<&'static str>,
    },
    Refused,
    /// Not compared.
    NeedsNetwork,
}

/// Asks both: what they agree on, or how they differ.
fn check(ssh: &Ssh, case: &Case) -> Result<Agreement, String> {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path().to_str().unwrap();
    for (name, content) in &case.files {
        std::fs::write(directory.path().join(name), content.replace("@DIR@", at)).unwrap();
    }
    let ours = sshoal::resolve(ssh, directory.path(), case);
    if let Outcome::NeedsNetwork = ours {
        return Ok(Agreement::NeedsNetwork);
    }
    let theirs = ssh.ask(directory.path(), case);
    match (ours, theirs.status) {
        (Outcome::Refused(_), Some(REFUSED)) => Ok(Agreement::Refused),
        (Outcome::Resolved(ours), Some(0)) => {
            if theirs.settings.len() < 50 {
                return Err(format!("ssh -G said too little: {case:#?}"));
            }
            compare(case, &theirs.settings, ours)
        }
        (Outcome::Refused(why), status) => Err(format!(
            "ssh exits with {status:?}, sshoal refuses: {why}: {case:#?}"
        )),
        (_, status) => Err(format!(
            "ssh exits with {status:?}, sshoal does not: {}: {case:#?}",
            theirs.errors
        )),
    }
}

fn compare(case: &Case, theirs: &Settings, ours: Settings) -> Result<Agreement, String> {
    let mut reasons = BTreeSet::new();
    let keywords: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
    for keyword in keywords {
        let (our, their) = (ours.get(keyword), theirs.get(keyword));
        if our == their {
            continue;
        }
        match differences::reason(keyword, theirs, &ours) {
            Some(difference) => reasons.insert(difference.reason),
            None => return Err(format!("{keyword}: {our:?}, with ssh {their:?}: {case:#?}")),
        };
    }
    Ok(Agreement::Resolved {
        settings: ours,
        reasons,
    })
}

fn assert_none(differences: Vec<String>) {
    assert!(
        differences.is_empty(),
        "{} differ:\n{}",
        differences.len(),
        differences[..differences.len().min(5)].join("\n")
    );
}

#[test]
fn handwritten_cases_agree_with_ssh() {
    let ssh = Ssh::new();
    let mut failures = Vec::new();
    for case in handwritten::cases() {
        match check(&ssh, &case) {
            Err(failure) => failures.push(failure),
            Ok(Agreement::NeedsNetwork) => failures.push(format!("needs the network: {case:#?}")),
            Ok(_) => {}
        }
    }
    assert_none(failures);
}

/// What became of many cases.
#[derive(Default)]
struct Tally {
    /// What we say without a line: who passes a line over says no more.
    defaults: Settings,
    compared: usize,
    refused: usize,
    skipped: usize,
    failures: Vec<String>,
    /// How often a keyword said something else than without a line.
    changed: BTreeMap<String, usize>,
    reasons: BTreeSet<&'static str>,
}

impl Tally {
    fn new(ssh: &Ssh) -> Tally {
        let nothing = Case {
            files: vec![("config".into(), String::new())],
            host: "h".into(),
            ..Case::default()
        };
        match check(ssh, &nothing) {
            Ok(Agreement::Resolved { settings, .. }) => Tally {
                defaults: settings,
                ..Tally::default()
            },
            _ => panic!("an empty configuration is resolved"),
        }
    }

    fn count(&mut self, ssh: &Ssh, case: &Case) {
        match check(ssh, case) {
            Err(failure) => self.failures.push(failure),
            Ok(Agreement::NeedsNetwork) => {
                self.skipped += 1;
                return;
            }
            Ok(Agreement::Refused) => self.refused += 1,
            Ok(Agreement::Resolved { settings, reasons }) => {
                self.reasons.extend(reasons);
                for (keyword, values) in settings {
                    let default = match keyword.as_str() {
                        "hostname" => Some(vec![case.host.clone()]),
                        "channeltimeout" | "obscurekeystroketiming" | "warnweakcrypto" => continue,
                        _ => self.defaults.get(&keyword).cloned(),
                    };
                    if default.as_ref() != Some(&values) {
                        *self.changed.entry(keyword).or_default() += 1;
                    }
                }
            }
        }
        self.compared += 1;
    }

    fn add(&mut self, other: Tally) {
        self.compared += other.compared;
        self.refused += other.refused;
        self.skipped += other.skipped;
        self.failures.extend(other.failures);
        self.reasons.extend(other.reasons);
        for (keyword, times) in other.changed {
            *self.changed.entry(keyword).or_default() += times;
        }
    }
}

/// Half of the generated cases, so that two processors can share them.
fn tally(half: usize) -> Tally {
    let ssh = Ssh::new();
    let mut tally = Tally::new(&ssh);
    for case in generate::cases().skip(half).step_by(2) {
        tally.count(&ssh, &case);
        if tally.compared >= CASES / 2 || tally.failures.len() > 20 {
            break;
        }
    }
    tally
}

#[test]
fn generated_cases_agree_with_ssh() {
    let mut sum = Tally::default();
    std::thread::scope(|scope| {
        let halves = [0, 1].map(|half| scope.spawn(move || tally(half)));
        for half in halves {
            sum.add(half.join().unwrap());
        }
    });
    assert_none(sum.failures);
    assert!(sum.compared >= CASES, "only {} compared", sum.compared);
    assert!(sum.skipped < CASES / 10, "{} not compared", sum.skipped);
    // Some must be wrong, and not too many.
    assert!(
        (CASES / 20..CASES / 3).contains(&sum.refused),
        "{} refused",
        sum.refused
    );
    for keyword in lines::KEYWORDS {
        let times = sum.changed.get(*keyword).copied().unwrap_or_default();
        assert!(times >= TIMES, "{keyword} was set in {times} cases only");
    }
    let unused: Vec<&str> = DIFFERENCES
        .iter()
        .map(|row| row.reason)
        .filter(|reason| !sum.reasons.contains(reason))
        .collect();
    assert_eq!(unused, [] as [&str; 0], "differences that did not occur");
}

#[test]
fn every_keyword_of_the_reference_is_counted() {
    let ssh = Ssh::new();
    for keyword in ssh.defaults.keys().filter(|keyword| *keyword != "host") {
        assert!(lines::KEYWORDS.contains(&keyword.as_str()), "{keyword}");
    }
    for (keyword, _) in lines::LINES {
        let keyword = keyword.to_lowercase();
        assert!(lines::KEYWORDS.contains(&keyword.as_str()), "{keyword}");
    }
}

/// The comparison itself can fail.
#[test]
fn a_wrong_answer_is_seen() {
    let ssh = Ssh::new();
    let case = Case {
        files: vec![("config".into(), "Port 2\n".into())],
        host: "h".into(),
        ..Case::default()
    };
    let theirs = ssh.ask(Path::new("/nonexistent"), &case);
    assert_eq!(theirs.status, Some(REFUSED), "the file is not there");
    let Ok(Agreement::Resolved { settings, .. }) = check(&ssh, &case) else {
        panic!("a port is valid");
    };
    let mut wrong = settings.clone();
    wrong.insert("port".into(), vec!["3".into()]);
    assert!(compare(&case, &settings, wrong).is_err());
}
