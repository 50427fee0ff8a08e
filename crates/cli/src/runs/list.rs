//! `sshoal runs`: which runs are kept, and how far each is.

use std::fmt::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use sshoal_fleet::HostId;
use sshoal_journal::run::{HostState, Left, RunId};
use sshoal_net::{KnownRun, ReadError, known_runs, read_run, result_of, runs_folder};
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
struct Row {
    r#type: &'static str,
    version: u32,
    run: String,
    command: String,
    began_ms: u64,
    state: &'static str,
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
    if args.prune {
        let removed = prune::prune(&folder, &args.keep)?;
        say(format!("{removed} journals were removed"));
    }
    let mut rows = Vec::new();
    for id in known_runs(&folder)? {
        match row(id) {
            Ok(row) => rows.push(row),
            // It was removed meanwhile, or is of another release: the others are of use all the same.
            Err(error) => say(error),
        }
    }
    match args.json {
        true => {
            let mut text = String::new();
            for row in &rows {
                text.push_str(&serde_json::to_string(row)?);
                text.push('\n');
            }
            print(text.as_bytes())
        }
        false => print(table(&rows).as_bytes()),
    }
}

fn row(id: RunId) -> Result<Row, ReadError> {
    let run = read_run(id, |_| {})?;
    let states = run.state.states.iter().enumerate();
    let ended = states.filter(|(_, state)| state.left() == Left::Nothing);
    let is_ok = |(host, state): (usize, &HostState)| {
        result_of(HostId(host as u32), state).outcome.is_success()
    };
    let (ok, failed) = ended.fold((0, 0), |(ok, failed), ended| match is_ok(ended) {
        true => (ok + 1, failed),
        false => (ok, failed + 1),
    });
    Ok(Row {
        r#type: "run",
        version: SCHEMA_VERSION,
        run: id.to_string(),
        command: command(&run),
        began_ms: run.state.plan.at_ms,
        state: state(&run),
        hosts: run.state.hosts.len(),
        ok,
        failed,
        may_have_run: run.state.count(Left::MaybeRan),
        not_run: run.state.count(Left::ToRun),
        has_output: run.state.plan.keeps_output,
    })
}

/// How far a run is, in a word.
pub(super) fn state(run: &KnownRun) -> &'static str {
    match run.state.ended {
        _ if run.is_on => "running",
        Some((_, 0)) => "ended",
        Some(_) => "interrupted",
        None => "killed",
    }
}

/// The command line, as a shell takes it.
pub(super) fn command(run: &KnownRun) -> String {
    let words = sitting::arguments(&run.state);
    let words: Vec<Vec<u8>> = words
        .iter()
        .skip(1)
        .map(|word| quoted(word.as_encoded_bytes()))
        .collect();
    String::from_utf8_lossy(&words.join(&b' ')).into_owned()
}

/// A line a run, with columns as wide as they need to be.
fn table(rows: &[Row]) -> String {
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
