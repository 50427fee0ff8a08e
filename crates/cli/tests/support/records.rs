//! What `--json` says (docs/json.md), as far as tests ask.

use std::collections::BTreeMap;

use serde::Deserialize;

/// All of a run's objects.
pub(crate) struct Records {
    pub(crate) hosts: Vec<HostRecord>,
    pub(crate) summary: Summary,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct HostRecord {
    pub(crate) host: String,
    pub(crate) transport: Option<String>,
    pub(crate) transport_reason: Option<String>,
    pub(crate) outcome: String,
    pub(crate) exit_status: Option<u32>,
    pub(crate) signal: Option<String>,
    pub(crate) failure: Option<String>,
    pub(crate) detail: Option<String>,
    pub(crate) fate: String,
    pub(crate) attempts: u32,
    pub(crate) warm: Option<bool>,
    pub(crate) times_us: Times,
    pub(crate) stdout: Option<String>,
    pub(crate) stderr: Option<String>,
    pub(crate) kill: Option<String>,
    pub(crate) kill_detail: Option<String>,
}

/// Microseconds.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Times {
    pub(crate) connect: Option<u64>,
    pub(crate) login: Option<u64>,
    pub(crate) command: Option<u64>,
    pub(crate) total: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) struct Summary {
    pub(crate) hosts: usize,
    pub(crate) ok: usize,
    pub(crate) exited: usize,
    pub(crate) signalled: usize,
    pub(crate) failed: usize,
    pub(crate) not_started: usize,
    pub(crate) interrupted: bool,
    pub(crate) exit_status: i32,
    pub(crate) elapsed_us: u64,
}

impl Records {
    /// None if the closing object is missing: the output is cut off.
    pub(super) fn parse(text: &str) -> Option<Records> {
        let mut lines: Vec<&str> = text.lines().collect();
        let summary = serde_json::from_str(lines.pop()?).ok()?;
        // `show` begins with what is known of the run.
        lines.retain(|line| !line.starts_with(r#"{"type":"run","#));
        let host = |line: &str| serde_json::from_str(line).expect(line);
        Some(Records {
            hosts: lines.into_iter().map(host).collect(),
            summary,
        })
    }

    /// The hosts by name; each is there once.
    pub(crate) fn by_name(self) -> BTreeMap<String, HostRecord> {
        let count = self.hosts.len();
        let by_name: BTreeMap<_, _> = self
            .hosts
            .into_iter()
            .map(|record| (record.host.clone(), record))
            .collect();
        assert_eq!(by_name.len(), count, "a host has two records");
        by_name
    }
}

impl HostRecord {
    pub(crate) fn is_ok(&self) -> bool {
        self.outcome == "ok"
    }

    /// The kind of failure; nothing for `ok` and `not-started`.
    pub(crate) fn failure(&self) -> &str {
        self.failure.as_deref().unwrap_or("")
    }

    /// Whether it is claimed that the command did not run.
    pub(crate) fn claims_no_run(&self) -> bool {
        ["not-sent", "proven-discarded"].contains(&self.fate.as_str())
    }
}
