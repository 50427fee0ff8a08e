//! `--dry-run`: what would be done, one line a host.

use std::io::{self, Write};

use sshoal_net::RollingPlan;
use sshoal_report::{Host, dry_run_record};

use crate::manual::status_of;
use crate::rolling;

/// What would be done on one host.
pub(crate) struct DryRun<'a> {
    pub(crate) host: &'a Host,
    /// What it is connected to by, if it is.
    pub(crate) name: Option<&'a str>,
    /// How it is reached, for people.
    pub(crate) place: String,
    /// What is done there.
    pub(crate) what: Vec<u8>,
}

impl DryRun<'_> {
    /// For people: ends of lines within it are shown as `\\n`.
    fn line(&self, batch: Option<u32>) -> Vec<u8> {
        let mut title = format!("{}: ", self.host.label);
        if let Some(batch) = batch {
            title.push_str(&format!("batch {batch}: "));
        }
        if !self.place.is_empty() {
            title.push_str(&format!("{}: ", self.place));
        }
        let line = [title.as_bytes(), &self.what].concat();
        let parts: Vec<&[u8]> = line.split(|&octet| octet == b'\n').collect();
        parts.join(&b"\\n"[..])
    }
}

/// Prints a line for each host, in the order in which they begin, as JSON Lines if `json`; returns the exit status.
pub(crate) fn print<'a>(
    json: bool,
    plan: Option<&RollingPlan>,
    hosts: impl Iterator<Item = DryRun<'a>>,
) -> u8 {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut written = (0..).zip(hosts).map(|(number, it)| {
        let batch = plan.and_then(|plan| rolling::batch_of(&plan.rolling, number));
        out.write_all(&match json {
            true => dry_run_record(it.host, it.name, batch, &it.what),
            false => it.line(batch),
        })?;
        out.write_all(b"\n")
    });
    let written = written.try_for_each(|result| result);
    status_of(written.and_then(|()| out.flush()))
}
