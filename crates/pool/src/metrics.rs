//! How a pool is, in Prometheus' text format (version 0.0.4), and the file that it is written to.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sshoal_net::replace_shared_file;

use crate::control::{HostStatus, State, Status};

/// How often the file is written: as often as Prometheus asks node_exporter by default.
const INTERVAL: Duration = Duration::from_secs(15);

/// The states, in the order of a host's way.
const STATES: [State; 5] = [
    State::Lazy,
    State::Connecting,
    State::Up,
    State::Lost,
    State::Down,
];

/// What is told of each host: the metric's name, its type, what it is, and its value.
type HostMetric = (
    &'static str,
    &'static str,
    &'static str,
    fn(&HostStatus) -> Option<f64>,
);

const HOST_METRICS: [HostMetric; 9] = [
    (
        "sshoal_host_up",
        "gauge",
        "Whether the host is logged in to.",
        |host| Some(f64::from(u8::from(host.state == State::Up))),
    ),
    (
        "sshoal_host_state_seconds",
        "gauge",
        "Since when the host is in its state.",
        |host| Some(host.age_seconds),
    ),
    (
        "sshoal_host_connections",
        "gauge",
        "Connections to the host.",
        |host| Some(host.connections as f64),
    ),
    (
        "sshoal_host_sessions",
        "gauge",
        "Sessions that are open.",
        |host| Some(host.sessions as f64),
    ),
    (
        "sshoal_host_sessions_total",
        "counter",
        "Sessions that were opened.",
        |host| Some(host.sessions_in_all as f64),
    ),
    (
        "sshoal_host_logins_total",
        "counter",
        "How often the host was logged in to.",
        |host| Some(host.logins as f64),
    ),
    (
        "sshoal_host_round_trip_seconds",
        "gauge",
        "How long the server took to answer the last keepalive request.",
        |host| host.round_trip_ms.map(|time| time / 1000.0),
    ),
    (
        "sshoal_host_sent_bytes_total",
        "counter",
        "Octets that passengers have sent to the host.",
        |host| Some(host.octets_sent as f64),
    ),
    (
        "sshoal_host_received_bytes_total",
        "counter",
        "Octets that passengers have got from the host.",
        |host| Some(host.octets_received as f64),
    ),
];

/// The metrics as Prometheus reads them.
pub fn prometheus(status: &Status) -> String {
    let mut text = String::new();
    head(&mut text, "sshoal_hosts", "gauge", "Hosts in each state.");
    for state in STATES {
        let hosts = status.hosts.iter().filter(|host| host.state == state);
        let (name, hosts) = (state.name(), hosts.count());
        line(
            &mut text,
            &format!("sshoal_hosts{{state=\"{name}\"}}"),
            hosts as f64,
        );
    }
    let of_pool = [
        (
            "sshoal_connections",
            "gauge",
            "Connections to all hosts.",
            Some(status.connections),
        ),
        (
            "sshoal_connections_limit",
            "gauge",
            "Most connections (--max-connections).",
            status.limits.connections,
        ),
        (
            "sshoal_memory_bytes",
            "gauge",
            "Resident memory.",
            Some(status.memory_octets),
        ),
        (
            "sshoal_memory_limit_bytes",
            "gauge",
            "Memory beyond which no connection is made (--max-memory).",
            status.limits.memory,
        ),
        (
            "sshoal_refused_connections_total",
            "counter",
            "Connections that were not made because of a limit.",
            Some(status.refused),
        ),
        (
            "sshoal_alarms_total",
            "counter",
            "How often all connections were asked for a sign of life, after a sleep or a change of the network.",
            Some(status.alarms),
        ),
    ];
    for (name, kind, what, value) in of_pool {
        if let Some(value) = value {
            head(&mut text, name, kind, what);
            line(&mut text, name, value as f64);
        }
    }
    for (name, kind, what, value) in HOST_METRICS {
        let values = status
            .hosts
            .iter()
            .filter_map(|host| Some((host, value(host)?)));
        let mut values = values.peekable();
        if values.peek().is_some() {
            head(&mut text, name, kind, what);
        }
        for (host, value) in values {
            let label = escaped(&host.host);
            let socket = Path::new(&host.control_path).file_name();
            let target = escaped(&socket.unwrap_or_default().to_string_lossy());
            let series = format!("{name}{{host=\"{label}\",target=\"{target}\"}}");
            line(&mut text, &series, value);
        }
    }
    text
}

fn head(text: &mut String, name: &str, kind: &str, what: &str) {
    // Writing to a string cannot fail.
    let _ = write!(text, "# HELP {name} {what}\n# TYPE {name} {kind}\n");
}

fn line(text: &mut String, name: &str, value: f64) {
    let _ = writeln!(text, "{name} {value}");
}

/// A label's value as it stands between quotation marks.
fn escaped(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for character in value.chars() {
        match character {
            '\\' => escaped.push_str("\\\\"),
            '"' => escaped.push_str("\\\""),
            '\n' => escaped.push_str("\\n"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// Why the metrics cannot be had where the user wants them.
#[derive(Debug, thiserror::Error)]
pub enum MetricsError {
    /// The file cannot be written.
    #[error(
        "--prometheus-file {path}: {error}; it takes a file in a folder that is there and that you can write to"
    )]
    File {
        /// The file.
        path: String,
        /// What the system says.
        error: io::Error,
    },
    /// The socket cannot be made.
    #[error(
        "--prometheus-socket {path}: {error}; it takes a path in a folder that is there and that you can write to"
    )]
    Socket {
        /// The socket.
        path: String,
        /// What the system says.
        error: io::Error,
    },
    /// There is a socket, and it is in use.
    #[error(
        "--prometheus-socket {path}: another program listens there; end it, or name another path"
    )]
    InUse {
        /// The socket.
        path: String,
    },
    /// There is something else.
    #[error(
        "--prometheus-socket {path}: what is there is no socket; remove it, or name another path"
    )]
    NoSocket {
        /// The path.
        path: String,
    },
}

/// A file that is written again and again, if one was named.
#[derive(Default)]
pub(crate) struct MetricsFile(Mutex<Option<(PathBuf, Instant)>>);

impl MetricsFile {
    /// Writes into this one, now and from now on.
    pub(crate) fn write_to(&self, path: &Path, status: &Status) -> Result<(), MetricsError> {
        write(path, status).map_err(|error| MetricsError::File {
            path: path.display().to_string(),
            error,
        })?;
        *self.locked() = Some((path.to_owned(), Instant::now()));
        Ok(())
    }

    /// Writes it, if that is due; returns when the next time is.
    pub(crate) fn write_if_due(&self, status: impl FnOnce() -> Status) -> Option<Duration> {
        let mut named = self.locked();
        let (path, due) = named.as_mut()?;
        let now = Instant::now();
        if now >= *due {
            *due = now + INTERVAL;
            write_again(path, &status());
        }
        Some(due.saturating_duration_since(now))
    }

    /// How it was in the end.
    pub(crate) fn write_last(&self, status: impl FnOnce() -> Status) {
        if let Some((path, _)) = self.locked().take() {
            write_again(&path, &status());
        }
    }

    fn locked(&self) -> MutexGuard<'_, Option<(PathBuf, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whoever reads the file sees it whole: as it was, or as it is.
fn write(path: &Path, status: &Status) -> io::Result<()> {
    replace_shared_file(path, prometheus(status).as_bytes())
}

/// It could be written before: the next time it may be again.
fn write_again(path: &Path, status: &Status) {
    if let Err(error) = write(path, status) {
        tracing::warn!(path = %path.display(), %error, "the metrics cannot be written");
    }
}

#[cfg(test)]
#[path = "metrics_tests.rs"]
mod tests;
