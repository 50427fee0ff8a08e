//! Against `ssh -G`, the reference for what a configuration means.
//!
//! Both read the same files with `-F`; for every keyword that has a field the values must agree,
//! and so must the answer whether the configuration is valid at all.
#![allow(clippy::unwrap_used)]

mod dump;
mod generate;
mod handwritten;
mod ssh;

use std::collections::BTreeMap;
use std::path::Path;

use sshoal_ssh_config::{Config, LoadError, Loader, Need, Query, Supply};

use ssh::Ssh;

/// Keyword to values, as `ssh -G` prints them.
type Settings = BTreeMap<String, Vec<String>>;

/// One question to both: options, files by name (the first is the one given with `-F`), a host
/// with user and port.
#[derive(Clone, Debug, Default)]
struct Case {
    options: Vec<String>,
    files: Vec<(String, String)>,
    host: String,
    user: Option<String>,
    port: Option<u16>,
}

/// What sshoal makes of a case whose files lie in `directory`; `None` if it refuses it.
fn resolve(ssh: &Ssh, directory: &Path, case: &Case) -> Option<Settings> {
    let file = directory.join(&case.files[0].0);
    let config = load(ssh, &case.options, file.to_str().unwrap()).ok()?;
    let query = Query {
        host: &case.host,
        user: case.user.as_deref(),
        port: case.port,
    };
    let resolved = config.resolve(&query).ok()?;
    Some(dump::settings(&resolved, ssh))
}

fn load(ssh: &Ssh, options: &[String], file: &str) -> Result<Config, LoadError> {
    let mut loader = Loader::new(options, Some(file), ssh.environment.clone());
    while let Some(need) = loader.poll_need() {
        loader.handle_supply(match need {
            Need::File { path, .. } => std::fs::read(path).map_or(Supply::Absent, Supply::Content),
            // The cases include files by their names.
            Need::Glob { pattern } => Supply::Paths(vec![pattern]),
        });
    }
    loader.finish()
}

/// Asks both: what they agree on (`None` if both refuse), or how they differ.
fn check(ssh: &Ssh, case: &Case) -> Result<Option<Settings>, String> {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path().to_str().unwrap();
    for (name, content) in &case.files {
        std::fs::write(directory.path().join(name), content.replace("@DIR@", at)).unwrap();
    }
    let expected = ssh.settings(directory.path(), case);
    let got = resolve(ssh, directory.path(), case);
    match (&got, &expected) {
        (Some(got), Some(expected)) => {
            for (keyword, values) in got {
                let theirs = expected.get(keyword).cloned().unwrap_or_default();
                if values != &theirs && !is_no_difference(keyword, &theirs, got) {
                    return Err(format!(
                        "{keyword}: {values:?}, with ssh {theirs:?}: {case:#?}"
                    ));
                }
            }
        }
        (None, None) => {}
        (Some(_), None) => return Err(format!("only ssh refuses {case:#?}")),
        (None, Some(_)) => return Err(format!("only sshoal refuses {case:#?}")),
    }
    Ok(got)
}

/// Differences that are ssh's own affair.
fn is_no_difference(keyword: &str, theirs: &[String], ours: &Settings) -> bool {
    match keyword {
        // Debian's ssh asks for a sign of life every 300 s by default if BatchMode is on.
        "serveraliveinterval" => theirs == ["300"] && ours["batchmode"] == ["yes"],
        // ssh prints a path although an earlier "no" holds, and forwards nothing.
        "forwardagent" => theirs[0].starts_with(['/', '$']) && ours[keyword] == ["no"],
        _ => false,
    }
}

fn assert_none(differences: Vec<String>) {
    assert!(
        differences.is_empty(),
        "{} differ:\n{}",
        differences.len(),
        differences.join("\n")
    );
}

#[test]
fn handwritten_cases_agree_with_ssh() {
    let ssh = Ssh::new();
    let cases = handwritten::cases();
    assert_none(
        cases
            .iter()
            .filter_map(|case| check(&ssh, case).err())
            .collect(),
    );
}

#[test]
fn generated_cases_agree_with_ssh() {
    let ssh = Ssh::new();
    let mut refused = 0;
    let mut changed: BTreeMap<String, usize> = BTreeMap::new();
    let empty = Case {
        files: vec![("config".into(), "\n".into())],
        host: "h".into(),
        ..Case::default()
    };
    let defaults = check(&ssh, &empty)
        .unwrap()
        .expect("an empty file is valid");
    let mut differences = Vec::new();
    for case in generate::cases() {
        match check(&ssh, &case) {
            Err(difference) => differences.push(difference),
            Ok(None) => refused += 1,
            Ok(Some(settings)) => {
                for (keyword, values) in settings {
                    if !values.is_empty() && defaults.get(&keyword) != Some(&values) {
                        *changed.entry(keyword).or_default() += 1;
                    }
                }
            }
        }
    }
    assert_none(differences);
    // The cases must have something to say about every keyword, and some must be wrong.
    for keyword in defaults.keys().filter(|keyword| *keyword != "host") {
        let times = changed.get(keyword).copied().unwrap_or_default();
        assert!(times >= 5, "{keyword} was set in {times} cases only");
    }
    assert!(refused > 10, "only {refused} cases were refused");
}
