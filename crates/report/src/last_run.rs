//! The results of the last run in a file, for `--retry-failed`. Schema: docs/json.md, without output.

use std::{
    ffi::OsStr,
    fs::{self, DirBuilder, File},
    io::{self, BufWriter, Write as _},
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use serde_json::{Map, Value};
use sshoal_fleet::FailureKind;
use sshoal_targets::{Item, Target, parse_list};
use tempfile::NamedTempFile;
use thiserror::Error;

use crate::json::{self, SCHEMA_VERSION, read_options};

/// Where the results are kept: `$XDG_STATE_HOME/sshoal/last-run.jsonl`, or under `~/.local/state`. Relative
/// values are ignored, as the XDG Base Directory Specification wants. `None` if no home is known.
pub fn last_run_path(xdg_state_home: Option<&OsStr>, home: Option<&OsStr>) -> Option<PathBuf> {
    let absolute =
        |value: Option<&OsStr>| value.map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute(xdg_state_home).or_else(|| Some(absolute(home)?.join(".local/state")))?;
    Some(state.join("sshoal/last-run.jsonl"))
}

/// Results being written, in place from the first moment on: whatever ends this program, the results of the run
/// before cannot be taken for those of the last. Until [`ResultFile::commit`] the file has no summary at its end,
/// and [`read_last_run`] refuses it.
pub(crate) struct ResultFile {
    file: BufWriter<File>,
}

impl ResultFile {
    /// Replaces `path` by a new file, readable by its owner only, in one step; missing directories are made, 0700.
    /// If that fails the file of the run before is gone, too, where it can be removed.
    pub(crate) fn begin(path: &Path, run: Option<&str>) -> io::Result<ResultFile> {
        let begun = ResultFile::replace(path).and_then(|mut file| {
            file.name(run)?;
            Ok(file)
        });
        if begun.is_err() {
            // A folder that nothing can be made in may not let go of anything either: then that is told.
            let _ = fs::remove_file(path);
        }
        begun
    }

    fn replace(path: &Path) -> io::Result<ResultFile> {
        let dir = path.parent().unwrap_or(Path::new("."));
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        let file = NamedTempFile::with_prefix_in(".last-run-", dir)?; // created with mode 0600
        let file = BufWriter::new(file.persist(path)?);
        Ok(ResultFile { file })
    }

    /// Says at once which run's results these are: its journal knows them as well, and whatever becomes of this program.
    fn name(&mut self, run: Option<&str>) -> io::Result<()> {
        let Some(run) = run else { return Ok(()) };
        self.record(&json::run_record(run))?;
        self.file.flush()
    }

    pub(crate) fn record(&mut self, line: &[u8]) -> io::Result<()> {
        self.file.write_all(line)?;
        self.file.write_all(b"\n")
    }

    /// Ends the file with the summary, by which a reader knows that it is complete.
    pub(crate) fn commit(mut self, summary: &[u8]) -> io::Result<()> {
        self.record(summary)?;
        self.file.flush()
    }
}

/// A host of the last run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastHost {
    /// The host as the user had named it.
    pub target: Target,
    /// How it ended.
    pub ending: PastEnding,
}

/// How a host of the last run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PastEnding {
    /// The command returned 0.
    Ok,
    /// It failed in this way.
    Failed(FailureKind),
    /// The run ended before its turn.
    NotStarted,
}

/// Why the last run's results cannot be used.
#[derive(Debug, Error)]
pub enum LastRunError {
    /// The file is not there or cannot be read.
    #[error(
        "cannot read the last run's results from {label}: {source}; nothing to retry before a first run"
    )]
    Read {
        /// The file.
        label: String,
        /// The reason.
        source: io::Error,
    },
    /// A line is not what this version writes.
    #[error("{label}:{line}: {why}; run once without --retry-failed to write the file anew")]
    Line {
        /// The file.
        label: String,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// The closing line is missing.
    #[error(
        "{label} has no end: the last run goes on, or was ended before it could tell how its hosts did; \
         name them with -w or -f"
    )]
    CutOff {
        /// The file.
        label: String,
    },
}

/// Reads the results of the last run.
///
/// # Errors
/// The file cannot be read or is not complete; nothing is returned of such a file.
pub fn read_last_run(path: &Path) -> Result<Vec<PastHost>, LastRunError> {
    let label = path.display().to_string();
    match fs::read(path) {
        Ok(contents) => parse_last_run(&label, &contents),
        Err(source) => Err(LastRunError::Read { label, source }),
    }
}

/// What the last run is called, if it has a journal.
///
/// # Errors
/// The file cannot be read.
pub fn last_run_id(path: &Path) -> Result<Option<String>, LastRunError> {
    let label = path.display().to_string();
    let contents = fs::read(path).map_err(|source| LastRunError::Read { label, source })?;
    let first = contents.split(|byte| *byte == b'\n').next();
    let record: Option<PastRecord> = first.and_then(|line| serde_json::from_slice(line).ok());
    Ok(record
        .filter(|record| record.r#type == "run")
        .and_then(|record| record.run))
}

/// What is read of an object.
#[derive(Deserialize)]
struct PastRecord {
    r#type: String,
    version: u32,
    #[serde(default)]
    target: String,
    #[serde(default)]
    options: Map<String, Value>,
    #[serde(default)]
    outcome: String,
    failure: Option<String>,
    run: Option<String>,
}

/// Parses a result file, or what `--json` wrote, in the order in which the hosts ended.
///
/// # Errors
/// A line that is not understood, or no summary at the end.
pub fn parse_last_run(label: &str, contents: &[u8]) -> Result<Vec<PastHost>, LastRunError> {
    let mut hosts = Vec::new();
    // What stands behind the last newline is half a line.
    let whole = contents.iter().rposition(|byte| *byte == b'\n');
    let lines = contents[..whole.unwrap_or(0)].split(|byte| *byte == b'\n');
    for (index, line) in lines.enumerate().filter(|(_, line)| !line.is_empty()) {
        let wrong = |why| LastRunError::Line {
            label: label.to_owned(),
            line: index + 1,
            why,
        };
        let record: PastRecord = serde_json::from_slice(line)
            .map_err(|error| wrong(format!("not a result: {error}")))?;
        if record.version != SCHEMA_VERSION {
            return Err(wrong(format!(
                "schema version {} instead of {SCHEMA_VERSION}",
                record.version
            )));
        }
        match record.r#type.as_str() {
            "host" => hosts.push(past_host(record).map_err(wrong)?),
            "summary" => return Ok(hosts),
            _ => {}
        }
    }
    Err(LastRunError::CutOff {
        label: label.to_owned(),
    })
}

fn past_host(record: PastRecord) -> Result<PastHost, String> {
    let items = parse_list(&record.target).map_err(|error| error.to_string())?;
    let [Item::Target(target)] = items.as_slice() else {
        return Err(format!("{:?} is not one host", record.target));
    };
    let ending = match (&record.failure, record.outcome.as_str()) {
        (Some(kind), _) => PastEnding::Failed(kind.parse().map_err(|error| format!("{error}"))?),
        (None, "ok") => PastEnding::Ok,
        (None, "not-started") => PastEnding::NotStarted,
        (None, outcome) => return Err(format!("the outcome {outcome:?} has no failure")),
    };
    Ok(PastHost {
        target: Target {
            options: read_options(record.options),
            ..target.clone()
        },
        ending,
    })
}

#[cfg(test)]
mod tests;
