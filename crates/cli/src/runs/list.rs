//! `sshoal runs`: which runs are kept, and how far each is.

use std::fmt::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use sshoal_fleet::HostId;
use sshoal_journal::run::{HostState, Left};
use sshoal_net::{KnownRun, known_runs, read_run, result_of, runs_folder};
use sshoal_report::SCHEMA_VERSION;

use super::args::RunsArgs;
use super::{prune, sitting};
use crate::manual::print;
use crate::say::{say, visible_lines};
use crate::script::quoted;

/// Characters that are shown of a command line.
const SHOWN: usize = 100;

/// A line of the list, and an object with `--json`.
#[derive(Serialize)]
pub(super) struct Row {
    r#type: &'static str,
    version: u32,
    run: String,
    command: String,
    began_ms: u64,
    state: &'static str,
    exit_status: Option<u8>,
    hosts: usize,
    ok: usize,
    failed: usize,
    may_have_run: usize,
    not_run: usize,
    has_output: bool,
}

/// Lists the runs; returns the exit status.
pub(crate) fn run(args: &RunsArgs) -> Result<u8, Box<dyn std::error::Error>> {
    let Some(folder) = runs_folder() else {
        return Err(sshoal_net::FindError::NoFolder.into());
    };
    let mut not_removed = None;
    if args.prune {
        let pruned = prune::prune(&folder, &args.keep)?;
        say(format!("{} journals were removed", pruned.removed));
        not_removed = pruned.failed;
    }
    let known = known_runs(&folder)?;
    if known.is_empty() && !args.json {
        say(format!("no run is kept in {}", folder.display()));
    }
    let mut rows = Vec::new();
    for id in known {
        match read_run(id, |_| {}) {
            Ok(run) => rows.push(Row::of(&run)),
            // It was removed meanwhile, or is of another release: the others are of use all the same.
            Err(error) => say(error),
        }
    }
    let text = match args.json {
        true => rows.iter().map(Row::line).collect::<Result<String, _>>()?,
        false => table(&rows),
    };
    let status = print(text.as_bytes());
    match not_removed {
        None => Ok(status),
        Some(error) => Err(error.into()),
    }
}

impl Row {
    pub(super) fn of(run: &KnownRun) -> Row {
        let states = run.state.states.iter().enumerate();
        let ended = states.filter(|(_, state)| state.left() == Left::Nothing);
        let is_ok = |(host, state): (usize, &HostState)| {
            result_of(HostId(host as u32), state).outcome.is_success()
        };
        let (ok, failed) = ended.fold((0, 0), |(ok, failed), ended| match is_ok(ended) {
            true => (ok + 1, failed),
            false => (ok, failed + 1),
        });
        Row {
            r#type: "run",
            version: SCHEMA_VERSION,
            run: run.id.to_string(),
            command: command(run),
            began_ms: u64::try_from(run.began().as_millis()).unwrap_or(u64::MAX),
            state: state(run),
            exit_status: run.state.status,
            hosts: run.state.hosts.len(),
            ok,
            failed,
            may_have_run: run.state.count(Left::MaybeRan),
            not_run: run.state.count(Left::ToRun),
            has_output: run.state.plan.keeps_output,
        }
    }

    /// Its object, and the end of the line.
    pub(super) fn line(&self) -> serde_json::Result<String> {
        Ok(serde_json::to_string(self)? + "\n")
    }
}

/// How far a run is, in a word.
fn state(run: &KnownRun) -> &'static str {
    match run.state.ended {
        _ if run.is_on => "running",
        // Without its plan nobody can tell what it was.
        _ if run.is_damaged || !run.state.is_planned => "damaged",
        _ if run.state.is_halted() => "halted",
        Some((_, 0)) => "ended",
        Some(_) => "interrupted",
        None => "killed",
    }
}

/// The command line, as a shell takes it.
fn command(run: &KnownRun) -> String {
    let words = sitting::arguments(&run.state);
    let words: Vec<Vec<u8>> = words
        .iter()
        .skip(1)
        .map(|word| quoted(word.as_encoded_bytes()))
        .collect();
    String::from_utf8_lossy(&words.join(&b' ')).into_owned()
}

/// A line a run, with columns as wide as they need to be; nothing of no runs.
fn table(rows: &[Row]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let head = [
        "run",
        "began",
        "state",
        "hosts",
        "ok",
        "failed",
        "may have run",
        "not run",
        "command",
    ];
    let mut lines = vec![head.map(str::to_owned)];
    lines.extend(rows.iter().map(|row| {
        let began = Duration::from_millis(row.began_ms);
        [
            row.run.clone(),
            format!("{} ago", crate::warm::age(now.saturating_sub(began))),
            row.state.to_owned(),
            row.hosts.to_string(),
            row.ok.to_string(),
            row.failed.to_string(),
            row.may_have_run.to_string(),
            row.not_run.to_string(),
            row.command.chars().take(SHOWN).collect(),
        ]
    }));
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max();
    let widths: Vec<usize> = (0..head.len())
        .map(|column| width(column).unwrap_or(0))
        .collect();
    let mut text = String::new();
    for line in &lines {
        let mut shown = String::new();
        for (cell, width) in line.iter().zip(&widths) {
            // Writing to a string cannot fail. A newline in a command must not look like another run.
            let _ = write!(shown, "{:<width$}  ", cell.replace('\n', " "));
        }
        text.push_str(&visible_lines(shown.trim_end()));
        text.push('\n');
    }
    text
}
