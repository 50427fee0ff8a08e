//! `sshoal status` and `sshoal down`.

use std::fmt::Write as _;
use std::thread;
use std::time::{Duration, Instant};

use sshoal_pool::{Ask, AskError, Folder, HostStatus, State, Status, ask, prometheus};
use sshoal_targets::labels;

use super::args::{DownArgs, StatusArgs};
use crate::args::HostArgs;
use crate::hosts;
use crate::manual;
use crate::say::visible_lines;

/// Nothing is kept (docs/warm.md).
const NOTHING: u8 = 1;

/// How long hosts may take to end, if others have been added meanwhile.
const PATIENCE: Duration = Duration::from_secs(10);
/// How soon is looked again.
const GLANCE: Duration = Duration::from_millis(20);

/// A name that `down` was given and nobody has.
#[derive(Debug, thiserror::Error)]
#[error("{0}: no connection to it is kept; `sshoal status` lists the hosts as they were named")]
struct NotKept(String);

/// Shows how the connections are; returns the exit status.
pub(crate) fn status(args: &StatusArgs) -> Result<u8, Box<dyn std::error::Error>> {
    let status = match ask(&Folder::of_user()?, &Ask::Status) {
        Ok(status) => Some(status),
        Err(AskError::NoPool) => None,
        Err(error) => return Err(error.into()),
    };
    let text = match &status {
        status if args.json => {
            let mut line = serde_json::to_string(status)?;
            line.push('\n');
            line
        }
        None if args.prometheus => String::new(),
        None => format!("{}\n", AskError::NoPool),
        Some(status) if args.prometheus => prometheus(status),
        Some(status) => table(status),
    };
    Ok(match (manual::print(text.as_bytes()), status) {
        (sshoal_report::OK, None) => NOTHING,
        (printed, _) => printed,
    })
}

/// Ends connections; returns the exit status.
pub(crate) fn down(args: &DownArgs) -> Result<u8, Box<dyn std::error::Error>> {
    let folder = Folder::of_user()?;
    let wanted = match args.lists.is_empty() {
        true => Vec::new(),
        false => labels(&hosts::targets(&HostArgs {
            list: args.lists.clone(),
            ..HostArgs::default()
        })?),
    };
    let kept = ask(&folder, &Ask::Status)?.hosts;
    let is_kept = |name: &&String| !kept.iter().any(|host| host.host == **name);
    if let Some(name) = wanted.iter().find(is_kept) {
        return Err(NotKept(name.clone()).into());
    }
    let goes_on = |host: &HostStatus| host.state != State::Down && !wanted.contains(&host.host);
    let ends_all = wanted.is_empty() || !kept.iter().any(goes_on);
    match ask(&folder, &Ask::Down { hosts: wanted }) {
        // It has just ended by itself.
        Ok(_) | Err(AskError::NoPool) => {}
        Err(error) => return Err(error.into()),
    }
    match ends_all {
        true => wait_for_end(&folder),
        false => Ok(0),
    }
}

/// Waits until the process is gone; or until another `up` has had it keep hosts meanwhile.
fn wait_for_end(folder: &Folder) -> Result<u8, Box<dyn std::error::Error>> {
    let give_up = Instant::now() + PATIENCE;
    while !folder.is_free()? {
        if let Ok(status) = ask(folder, &Ask::Status)
            && status.hosts.iter().any(|host| host.state != State::Down)
            && Instant::now() > give_up
        {
            break;
        }
        thread::sleep(GLANCE);
    }
    Ok(0)
}

/// A line about all, then a line a host, with columns as wide as they need to be.
fn table(status: &Status) -> String {
    let mut rows = vec![
        [
            "host",
            "state",
            "for",
            "connections",
            "sessions",
            "in all",
            "round trip",
            "sent",
            "received",
        ]
        .map(str::to_owned),
    ];
    rows.extend(status.hosts.iter().map(row));
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
    let details = std::iter::once(None).chain(status.hosts.iter().map(|host| host.detail.as_ref()));
    let mut text = String::new();
    for (row, detail) in rows.iter().zip(details) {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            // Writing to a string cannot fail.
            let _ = write!(line, "{cell:<width$}  ");
        }
        line.push_str(detail.map_or("", String::as_str));
        text.push_str(&visible_lines(line.trim_end()));
        text.push('\n');
    }
    text.push_str(&sums(status));
    text
}

/// What the process takes, and may take.
fn sums(status: &Status) -> String {
    let limits = &status.limits;
    let of = |limit: Option<String>| limit.map_or(String::new(), |limit| format!(" of {limit}"));
    let connections = of(limits.connections.map(|limit| limit.to_string()));
    let memory = of(limits.memory.map(octets));
    let refused = match status.refused {
        0 => String::new(),
        refused => format!(", {refused} refused"),
    };
    format!(
        "process {}: {}{connections} connections{refused}, {}{memory} of memory\n",
        status.pid,
        status.connections,
        octets(status.memory_octets)
    )
}

fn row(host: &HostStatus) -> [String; 9] {
    [
        host.host.clone(),
        host.state.name().to_owned(),
        age(Duration::try_from_secs_f64(host.age_seconds).unwrap_or_default()),
        host.connections.to_string(),
        host.sessions.to_string(),
        host.sessions_in_all.to_string(),
        match host.round_trip_ms.or(host.connect_ms) {
            Some(time) => format!("{time:.1} ms"),
            None => "-".to_owned(),
        },
        octets(host.octets_sent),
        octets(host.octets_received),
    ]
}

/// `3 s`, `4 min`, `5 h`, `6 d`.
pub(crate) fn age(age: Duration) -> String {
    match age.as_secs() {
        seconds @ 0..=119 => format!("{seconds} s"),
        seconds @ 120..=7_199 => format!("{} min", seconds / 60),
        seconds @ 7_200..=172_799 => format!("{} h", seconds / 3_600),
        seconds => format!("{} d", seconds / 86_400),
    }
}

/// In the largest unit of which there are two at least.
fn octets(octets: u64) -> String {
    match octets {
        0..=1_999 => format!("{octets} B"),
        2_000..=1_999_999 => format!("{} kB", octets / 1_000),
        2_000_000..=1_999_999_999 => format!("{} MB", octets / 1_000_000),
        octets => format!("{} GB", octets / 1_000_000_000),
    }
}
