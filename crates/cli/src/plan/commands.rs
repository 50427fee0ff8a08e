//! From steps to command lines of sshoal, which its own parser looks at before anything runs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{CommandFactory, Parser};
use sshoal_plan::{Plan, Setting, Step, Value, Verb};

use super::PlanFileError;
use crate::args::{Cli, Command};
use crate::runs::Journal;
use crate::{defaults, rolling};

/// Flags that a plan as a whole has, or that need somebody who types.
const REFUSED: [&str; 10] = [
    "help",
    "version",
    "dry-run",
    "json",
    "quiet",
    "verbose",
    "tty",
    "retry-failed",
    "of",
    "ask-pass",
];
/// Settings that say which hosts are meant: where a step has one, those of the defaults stand back.
const HOSTS: [&str; 5] = ["hosts", "group", "all", "hosts-file", "hosts-from"];

/// What a step comes to.
pub(super) struct StepCommand {
    /// The arguments of sshoal, before those that the plan's own flags add.
    flags: Vec<String>,
    /// What stands behind the flags.
    words: Vec<String>,
    /// How many hosts there are.
    pub(super) hosts: usize,
    /// Whether sudo's password is needed.
    pub(super) sudo: bool,
    /// Whether it has succeeded though some hosts have failed (`max-failures`).
    pub(super) lets_fail: bool,
}

impl StepCommand {
    /// The arguments of sshoal, with more flags.
    pub(super) fn arguments<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
        let flags = self.flags.iter().map(String::as_str);
        let words = self.words.iter().map(String::as_str);
        let flags = flags.chain(more.iter().copied());
        flags.chain(["--"]).chain(words).collect()
    }
}

/// The command of each step, in the order of the file; the first that could not run is an error.
pub(super) fn of_all(path: &Path, plan: &Plan) -> Result<Vec<StepCommand>, PlanFileError> {
    let commands = Commands {
        path,
        plan,
        cli: Cli::command(),
    };
    commands.check_defaults()?;
    let steps = plan.steps().iter();
    steps.map(|step| commands.command(step)).collect()
}

struct Commands<'a> {
    path: &'a Path,
    plan: &'a Plan,
    cli: clap::Command,
}

impl Commands<'_> {
    fn has_flag(&self, command: &str, key: &str) -> bool {
        let command = self.cli.find_subcommand(command);
        command.is_some_and(|command| {
            let mut arguments = command.get_arguments();
            arguments.any(|argument| argument.get_long() == Some(key) && !argument.is_hide_set())
        })
    }

    /// A default must be a setting of some kind of step.
    fn check_defaults(&self) -> Result<(), PlanFileError> {
        let is_action = |key: &str| Verb::ALL.iter().any(|verb| verb.key() == key);
        let is_known = |key: &str| {
            Verb::ALL
                .iter()
                .any(|verb| self.has_flag(verb.command(), key))
        };
        for Setting { key, line, .. } in self.plan.defaults() {
            let what = match () {
                () if REFUSED.contains(&key.as_str()) || is_action(key) => refusal(key),
                () if !is_known(key) => format!("no kind of step has a setting {key}"),
                () => continue,
            };
            return Err(PlanFileError::Wrong {
                path: self.path.to_owned(),
                line: *line,
                what: format!("defaults: {what}"),
            });
        }
        Ok(())
    }

    fn command(&self, step: &Step) -> Result<StepCommand, PlanFileError> {
        let verb = step.action.verb;
        for Setting { key, line, .. } in &step.settings {
            let what = match () {
                () if REFUSED.contains(&key.as_str()) => refusal(key),
                () if !self.has_flag(verb.command(), key) => {
                    format!("a step with {} has no setting {key}", verb.key())
                }
                () => continue,
            };
            return Err(PlanFileError::of_step(self.path, step, *line, what));
        }
        let defaults = self.plan.defaults().iter();
        let defaults = defaults.filter(|default| self.counts(default, step));
        let settings = defaults.chain(&step.settings).flat_map(flags);
        let command = std::iter::once(verb.command().to_owned());
        let mut flags: Vec<String> = command.chain(settings).collect();
        let mut words = step.action.words.clone();
        if verb == Verb::Script {
            flags.push(format!("--script={}", words.remove(0)));
        }
        let mut command = StepCommand {
            flags,
            words,
            hosts: 0,
            sudo: false,
            lets_fail: false,
        };
        self.look_at(step, &mut command)?;
        Ok(command)
    }

    /// Whether a default says something of a step that the step does not say itself.
    fn counts(&self, default: &Setting, step: &Step) -> bool {
        let has = |key: &str| step.settings.iter().any(|setting| setting.key == key);
        let is_of_hosts = HOSTS.contains(&default.key.as_str());
        let is_said = match is_of_hosts {
            true => HOSTS.iter().any(|key| has(key)),
            false => has(&default.key),
        };
        !is_said && self.has_flag(step.action.verb.command(), &default.key)
    }

    /// Has the program's own parser read the command, and finds its hosts.
    fn look_at(&self, step: &Step, command: &mut StepCommand) -> Result<(), PlanFileError> {
        let wrong = |line, what: String| PlanFileError::of_step(self.path, step, line, what);
        let typed = ["sshoal"].into_iter().chain(command.arguments(&[]));
        let typed: Vec<OsString> = typed.map(OsString::from).collect();
        let typed =
            defaults::with_defaults(typed).map_err(|error| wrong(step.line, error.to_string()))?;
        let parsed = Cli::try_parse_from(typed).map_err(|error| {
            let text = error.to_string();
            let said = text.lines().next().unwrap_or_default();
            let said = said.trim_start_matches("error: ").to_owned();
            wrong(blamed(step, &said), said)
        })?;
        let (hosts, rolling, stdin) = match &parsed.command {
            Command::Run(args) => {
                command.sudo = args.sudo;
                if let Err(what) = args.kill.check() {
                    return Err(wrong(step.line, what.to_owned()));
                }
                if args.journal.journal == Journal::Off
                    && (args.journal.record || args.detach.detach)
                {
                    let what = "journal is off, and record and detach need it";
                    return Err(wrong(step.line, what.to_owned()));
                }
                (&args.hosts, &args.rolling, args.stdin.as_slice())
            }
            Command::Each(args) => (&args.hosts, &args.rolling, args.stdin.as_slice()),
            Command::Put(args) => {
                let sources = args
                    .paths
                    .split_last()
                    .map_or(&[][..], |(_, sources)| sources);
                (&args.options.hosts, &args.options.rolling, sources)
            }
            Command::Get(args) => (&args.options.hosts, &args.options.rolling, &[][..]),
            _ => return Ok(()),
        };
        let is_input = |path: &PathBuf| path.as_path() == Path::new("-");
        if stdin.iter().chain(&hosts.file).any(is_input) {
            let what = "the steps of a plan share no standard input; name a file";
            return Err(wrong(step.action.line, what.to_owned()));
        }
        let batched = rolling::targets(hosts, rolling)
            .map_err(|error| wrong(step.line, error.to_string()))?;
        command.hosts = batched.targets.len();
        command.lets_fail = rolling.lets_fail();
        Ok(())
    }
}

fn refusal(key: &str) -> String {
    format!("{key} cannot be set here")
}

/// The line of the setting that the parser's words are about, or that of the step.
fn blamed(step: &Step, said: &str) -> usize {
    let is_named = |setting: &&Setting| said.contains(&format!("--{}", setting.key));
    let setting = step.settings.iter().find(is_named);
    setting.map_or(step.line, |setting| setting.line)
}

/// The flags that a setting stands for.
fn flags(setting: &Setting) -> Vec<String> {
    let key = &setting.key;
    let with = |text: &String| format!("--{key}={text}");
    match &setting.value {
        Value::Given(true) => vec![format!("--{key}")],
        Value::Given(false) => Vec::new(),
        Value::Text(text) => vec![with(text)],
        Value::Texts(texts) => texts.iter().map(with).collect(),
    }
}
