//! What sshoal makes of a case.

use std::path::Path;
use std::process::{Command, Stdio};

use sshoal_ssh_config::{
    Answers, Config, LoadError, Loader, Lookup, Need, Query, Question, Resolved, Supply, Unresolved,
};

use crate::ssh::Ssh;
use crate::{Case, Settings};

/// What became of a case.
pub(crate) enum Outcome {
    /// As `ssh -G` would say it.
    Resolved(Settings),
    /// Refused, for this reason.
    Refused(String),
    /// A name server would have to be asked: nothing to compare here.
    NeedsNetwork,
}

/// Resolves a case whose files lie in `directory`.
pub(crate) fn resolve(ssh: &Ssh, directory: &Path, case: &Case) -> Outcome {
    let file = directory.join(&case.files[0].0);
    let config = match load(ssh, &case.options, file.to_str().unwrap()) {
        Ok(config) => config,
        Err(error) => return Outcome::Refused(error.to_string()),
    };
    let command = case.command.join(" ");
    let query = Query {
        host: &case.host,
        user: case.user.as_deref(),
        login: None,
        port: case.port,
        command: (!case.command.is_empty()).then_some(&command),
        tag: None,
        options: None,
    };
    let mut answers = Answers::default();
    loop {
        match config.resolve(&query, &answers) {
            Ok(resolved) => return Outcome::Resolved(settings(ssh, &resolved)),
            Err(Unresolved::Refused(error)) => return Outcome::Refused(error.to_string()),
            Err(Unresolved::Asks(question)) => {
                if !answer(ssh, question, &mut answers) {
                    return Outcome::NeedsNetwork;
                }
            }
        }
    }
}

fn load(ssh: &Ssh, options: &[String], file: &str) -> Result<Config, LoadError> {
    let loader = Loader::new(options, Some(file), ssh.environment.clone());
    supply_all(loader)
}

fn supply_all(mut loader: Loader) -> Result<Config, LoadError> {
    while let Some(need) = loader.poll_need() {
        loader.handle_supply(match need {
            Need::File { path, .. } => std::fs::read(path).map_or(Supply::Absent, Supply::Content),
            Need::Glob { pattern } => Supply::Paths(glob(&pattern)),
        });
    }
    loader.finish()
}

/// The files of a pattern whose last part may begin or end with `*`.
fn glob(pattern: &str) -> Vec<String> {
    let (directory, name) = pattern.rsplit_once('/').unwrap();
    let (start, end) = name.split_once('*').unwrap_or((name, ""));
    let is_pattern = name.contains('*');
    let Ok(entries) = std::fs::read_dir(directory) else {
        return Vec::new();
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let matches = |found: &String| match is_pattern {
        true => found.starts_with(start) && found.ends_with(end),
        false => found == name,
    };
    let found = names.filter(matches);
    let mut paths: Vec<String> = found.map(|name| format!("{directory}/{name}")).collect();
    paths.sort();
    paths
}

/// Answers a question; only of this machine's own name is it known without asking anybody.
fn answer(ssh: &Ssh, question: Question, answers: &mut Answers) -> bool {
    match question {
        Question::Exec { command } => {
            let mut shell = Command::new("/bin/sh");
            shell.env_clear().stdin(Stdio::null());
            shell.stdout(Stdio::null()).stderr(Stdio::null());
            let status = shell.args(["-c", &command]).status().unwrap().code();
            answers.exited(command, status);
        }
        Question::LocalAddresses => answers.local_addresses(Vec::new()),
        Question::Lookup { name, family } if name == "localhost" => {
            let canonical_name = Some(name.clone());
            answers.looked_up(name, family, Lookup::Found { canonical_name });
        }
        Question::Lookup { .. } => return false,
        Question::Home { user } => {
            let own = user == ssh.environment.local_user;
            answers.home(user, own.then(|| ssh.environment.home.clone()));
        }
        Question::Include(request) => {
            let config = supply_all(request.loader(ssh.environment.clone()));
            answers.included(request, config);
        }
    }
    true
}

fn settings(ssh: &Ssh, resolved: &Resolved) -> Settings {
    let mut settings = Settings::new();
    for line in ssh.with_algorithms(|algorithms| resolved.dump(algorithms)) {
        settings
            .entry(line.keyword.to_lowercase())
            .or_default()
            .push(line.value);
    }
    settings
}
