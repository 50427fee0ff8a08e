//! JSON Lines, schema in docs/json.md: one object for each host as it ends, one for the run at its end.

use std::{
    io::{self, Write},
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD, write::EncoderWriter};
use serde::Serialize;
use serde_json::{Map, Value};
use sshoal_fleet::{Fate, HostResult, Outcome, PhaseTimes};
use sshoal_targets::Target;

use crate::{Host, Summary, Way, kept::Kept, sanitise::steers_terminal, spill::Spill};

/// The schema's version, in every object. It grows when a member changes its meaning or goes; new members
/// may appear at any time.
pub const SCHEMA_VERSION: u32 = 1;

/// Which host an object is about. The order is that of the documentation.
#[derive(Serialize)]
struct Head<'a> {
    r#type: &'static str,
    version: u32,
    host: &'a str,
    target: String,
    user: Option<&'a str>,
    port: Option<u16>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    options: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    transport: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    transport_reason: Option<Option<&'a str>>,
}

/// A host's object but its output.
#[derive(Serialize)]
struct HostRecord<'a> {
    #[serde(flatten)]
    head: Head<'a>,
    outcome: &'static str,
    exit_status: Option<u32>,
    signal: Option<&'a str>,
    core_dumped: Option<bool>,
    failure: Option<&'static str>,
    detail: Option<&'a str>,
    remedy: Option<&'a str>,
    fate: &'static str,
    attempts: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    warm: Option<bool>,
    times_us: Times,
}

/// What would be done on a host.
#[derive(Serialize)]
struct DryRunRecord<'a> {
    #[serde(flatten)]
    head: Head<'a>,
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    warm: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    batch: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    what: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    what_base64: Option<String>,
}

/// Microseconds of each phase; null for a phase that was not entered.
#[derive(Serialize)]
struct Times {
    lookup: Option<u64>,
    connect: Option<u64>,
    login: Option<u64>,
    key_exchange: Option<u64>,
    authentication: Option<u64>,
    session: Option<u64>,
    command: Option<u64>,
    waited: u64,
    total: Option<u64>,
}

/// The closing object.
#[derive(Serialize)]
struct SummaryRecord {
    r#type: &'static str,
    version: u32,
    hosts: usize,
    ok: usize,
    exited: usize,
    signalled: usize,
    failed: usize,
    not_started: usize,
    interrupted: bool,
    exit_status: u8,
    elapsed_us: u64,
}

impl<'a> Head<'a> {
    fn of(kind: &'static str, host: &'a Host) -> Head<'a> {
        Head {
            r#type: kind,
            version: SCHEMA_VERSION,
            host: &host.label,
            target: host.target.to_string(),
            user: host.user.as_deref(),
            port: host.port,
            options: target_options(&host.target),
            transport: host.way.as_ref().map(|way| way.transport),
            transport_reason: host.way.as_ref().map(|way| way.why.as_deref()),
        }
    }
}

/// What a run is called.
#[derive(Serialize)]
struct RunRecord<'a> {
    r#type: &'static str,
    version: u32,
    run: &'a str,
}

/// The object that names a run in its result file, without the newline.
pub(crate) fn run_record(run: &str) -> Vec<u8> {
    serialise(&RunRecord {
        r#type: "run",
        version: SCHEMA_VERSION,
        run,
    })
}

/// A host's object as text on one line, without the newline.
pub(crate) fn host_record(host: &Host, result: &HostResult) -> Vec<u8> {
    let mut record = HostRecord {
        head: Head::of("host", host),
        outcome: "ok",
        exit_status: None,
        signal: None,
        core_dumped: None,
        failure: result.outcome.failure_kind().map(|kind| kind.name()),
        detail: None,
        remedy: None,
        fate: fate_name(Fate::Ran),
        attempts: result.attempts,
        warm: native(host).map(|_| result.times.is_warm()),
        times_us: Times::from(&result.times),
    };
    match &result.outcome {
        Outcome::Exit(status) => {
            record.exit_status = Some(*status);
            record.outcome = if *status == 0 { "ok" } else { "exit" };
        }
        Outcome::Signal {
            name,
            core_dumped,
            message,
        } => {
            record.outcome = "signal";
            record.signal = Some(name);
            record.core_dumped = Some(*core_dumped);
            record.detail = Some(message.as_str()).filter(|message| !message.is_empty());
        }
        Outcome::Failed { failure, fate } => {
            record.outcome = "failed";
            record.detail = Some(&failure.detail);
            record.remedy = Some(&failure.remedy);
            record.fate = fate_name(*fate);
        }
        Outcome::NotStarted => {
            record.outcome = "not-started";
            record.fate = fate_name(Fate::NotSent);
        }
    }
    serialise(&record)
}

/// What would be done on a host, which is connected to by this `name` in the batch of that number, from 1, if there are batches; as
/// text on one line, without the newline.
pub fn dry_run_record(host: &Host, name: Option<&str>, batch: Option<u32>, what: &[u8]) -> Vec<u8> {
    let text = std::str::from_utf8(what).ok();
    serialise(&DryRunRecord {
        head: Head::of("dry-run", host),
        name,
        warm: native(host).map(|way| way.is_warm),
        batch,
        what: text,
        what_base64: text.is_none().then(|| STANDARD.encode(what)),
    })
}

/// How the host is reached, if it is by a connection of our own.
fn native(host: &Host) -> Option<&Way> {
    host.way.as_ref().filter(|way| way.why.is_none())
}

/// What a host file or an inventory said of a host, by keyword; a list where it said several things.
pub fn target_options(target: &Target) -> Map<String, Value> {
    let mut members = Map::new();
    for (keyword, value) in &target.options {
        let value = Value::from(value.as_str());
        match members.get_mut(keyword) {
            None => drop(members.insert(keyword.clone(), value)),
            Some(Value::Array(values)) => values.push(value),
            Some(first) => *first = Value::Array(vec![first.take(), value]),
        }
    }
    members
}

/// The options of a host's object, in the order of their keywords.
pub(crate) fn read_options(members: Map<String, Value>) -> Vec<(String, String)> {
    let mut options = Vec::new();
    for (keyword, value) in members {
        let values = match value {
            Value::Array(values) => values,
            one => vec![one],
        };
        let texts = values.iter().filter_map(Value::as_str);
        options.extend(texts.map(|text| (keyword.clone(), text.to_owned())));
    }
    options
}

/// The closing object as text on one line, without the newline.
pub(crate) fn summary_record(summary: &Summary) -> Vec<u8> {
    let counts = summary.counts;
    serialise(&SummaryRecord {
        r#type: "summary",
        version: SCHEMA_VERSION,
        hosts: summary.hosts(),
        ok: counts.ok,
        exited: counts.exited,
        signalled: counts.signalled,
        failed: counts.failed,
        not_started: counts.not_started,
        interrupted: summary.interrupted,
        exit_status: summary.exit_status,
        elapsed_us: micros(summary.elapsed),
    })
}

/// Writes a host's object with its output as members `stdout` and `stderr`, and a newline. Only a bounded
/// part of the output is in memory at a time.
pub(crate) fn write_with_output(
    record: &[u8],
    [stdout, stderr]: &[Kept; 2],
    spill: &Spill,
    out: &mut impl Write,
) -> io::Result<()> {
    let without_brace = record.strip_suffix(b"}").unwrap_or(record);
    out.write_all(without_brace)?;
    write_output("stdout", stdout, spill, out)?;
    write_output("stderr", stderr, spill, out)?;
    out.write_all(b"}\n")
}

/// `"NAME": text`, or `"NAME_base64"` when the bytes are no UTF-8; then `"NAME_dropped"` if there was more.
fn write_output(name: &str, kept: &Kept, spill: &Spill, out: &mut impl Write) -> io::Result<()> {
    let mut is_text = true;
    kept.capture.for_each_text_block(spill, |block| {
        is_text &= std::str::from_utf8(block).is_ok();
        Ok(())
    })?;
    if is_text {
        write!(out, ",\"{name}\":\"")?;
        let mut escaped = Vec::new();
        kept.capture.for_each_text_block(spill, |block| {
            escaped.clear();
            push_escaped(&String::from_utf8_lossy(block), &mut escaped);
            out.write_all(&escaped)
        })?;
    } else {
        write!(out, ",\"{name}_base64\":\"")?;
        let mut encoder = EncoderWriter::new(&mut *out, &STANDARD);
        io::copy(&mut kept.capture.reader(spill), &mut encoder)?;
        encoder.finish()?;
    }
    out.write_all(b"\"")?;
    if kept.dropped > 0 {
        write!(out, ",\"{name}_dropped\":{}", kept.dropped)?;
    }
    Ok(())
}

/// Appends text as it stands inside a JSON string (RFC 8259 section 7). What a terminal might act on is
/// escaped too, so that JSON is safe to look at.
fn push_escaped(text: &str, out: &mut Vec<u8>) {
    push_replacing(
        text,
        |c| matches!(c, '"' | '\\' | '\t') || steers_terminal(c),
        out,
    );
}

/// Appends text with some characters escaped. Most text is plain: it is copied in runs.
fn push_replacing(text: &str, escapes: impl Fn(char) -> bool, out: &mut Vec<u8>) {
    let mut rest = text;
    while let Some(at) = rest.find(&escapes) {
        let (plain, from) = rest.split_at(at);
        out.extend_from_slice(plain.as_bytes());
        let mut behind = from.chars();
        match behind.next() {
            Some('"') => out.extend_from_slice(b"\\\""),
            Some('\\') => out.extend_from_slice(b"\\\\"),
            Some('\n') => out.extend_from_slice(b"\\n"),
            Some('\r') => out.extend_from_slice(b"\\r"),
            Some('\t') => out.extend_from_slice(b"\\t"),
            // All that steers a terminal is in the Basic Multilingual Plane: four digits are enough.
            Some(c) => out.extend_from_slice(format!("\\u{:04x}", u32::from(c)).as_bytes()),
            None => {}
        }
        rest = behind.as_str();
    }
    out.extend_from_slice(rest.as_bytes());
}

/// In JSON text, what steers a terminal can only stand inside strings: there it is escaped.
fn serialise(record: &impl Serialize) -> Vec<u8> {
    let text =
        serde_json::to_string(record).expect("the records have string keys and plain values only");
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return text.into_bytes();
    }
    let mut out = Vec::with_capacity(text.len());
    push_replacing(&text, steers_terminal, &mut out);
    out
}

impl From<&PhaseTimes> for Times {
    fn from(times: &PhaseTimes) -> Times {
        Times {
            lookup: times.lookup.map(micros),
            connect: times.connect.map(micros),
            login: times.login.map(micros),
            key_exchange: times.key_exchange.map(micros),
            authentication: times.authentication.map(micros),
            session: times.session.map(micros),
            command: times.command.map(micros),
            waited: micros(times.waited),
            total: times.total.map(micros),
        }
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

fn fate_name(fate: Fate) -> &'static str {
    match fate {
        Fate::NotSent => "not-sent",
        Fate::ProvenDiscarded => "proven-discarded",
        Fate::MayHaveRun => "may-have-run",
        Fate::Ran => "ran",
    }
}

#[cfg(test)]
mod tests;
