//! `sshoal explain --json` (docs/explain.md).

use serde::Serialize;
use sshoal_known_hosts::Marker;
use sshoal_net::{Explanation, KnownLine, Shortfall, Transport};
use sshoal_ssh_config::{Origin, ShownSetting};

/// A host.
#[derive(Serialize)]
struct Record<'a> {
    host: &'a str,
    transport: &'static str,
    warm: bool,
    settings: Vec<Setting<'a>>,
    identity_files: Vec<&'a str>,
    way: &'a [String],
    proxy_command: Option<&'a str>,
    known_as: &'a str,
    known_hosts: Vec<Line<'a>>,
    requirements: Vec<Reason<'a>>,
    obstacles: Vec<Reason<'a>>,
    unheeded: Vec<Reason<'a>>,
}

#[derive(Serialize)]
struct Setting<'a> {
    keyword: &'a str,
    value: &'a str,
    origin: &'static str,
    file: Option<&'a str>,
    line: Option<usize>,
}

#[derive(Serialize)]
struct Line<'a> {
    file: &'a str,
    line: usize,
    key_type: Option<&'static str>,
    marker: Option<&'static str>,
}

#[derive(Serialize)]
struct Reason<'a> {
    what: &'a str,
    origin: &'a str,
}

/// A host's object and a line feed.
pub(super) fn line(explanation: &Explanation, is_warm: bool) -> serde_json::Result<String> {
    let login = &explanation.resolved.authentication;
    let record = Record {
        host: &explanation.label,
        transport: match explanation.transport {
            Transport::OpenSsh => "openssh",
            Transport::Native | Transport::Auto => "native",
        },
        warm: is_warm,
        settings: explanation.settings.iter().map(setting).collect(),
        identity_files: login
            .identity_files
            .iter()
            .map(|file| file.value.as_str())
            .collect(),
        way: &explanation.way,
        proxy_command: explanation.proxy_command.as_deref(),
        known_as: &explanation.known_as,
        known_hosts: explanation.known_hosts.iter().map(known_line).collect(),
        requirements: reasons(&explanation.requirements),
        obstacles: reasons(&explanation.obstacles),
        unheeded: reasons(&explanation.unheeded),
    };
    Ok(serde_json::to_string(&record)? + "\n")
}

fn reasons(shortfalls: &[Shortfall]) -> Vec<Reason<'_>> {
    let reasons = shortfalls.iter();
    reasons
        .map(|Shortfall { what, origin }| Reason { what, origin })
        .collect()
}

fn setting(set: &ShownSetting) -> Setting<'_> {
    let (origin, file, line) = match &set.origin {
        Origin::Default => ("default", None, None),
        Origin::Query => ("host", None, None),
        Origin::CommandLine => ("command line", None, None),
        Origin::File { file, line } => ("file", Some(&**file), Some(*line)),
    };
    Setting {
        keyword: set.keyword,
        value: &set.value,
        origin,
        file,
        line,
    }
}

fn known_line(line: &KnownLine) -> Line<'_> {
    Line {
        file: &line.location.file,
        line: line.location.line,
        key_type: line.key_type.map(|key| key.name()),
        marker: match line.marker {
            Marker::None => None,
            Marker::CertAuthority => Some("@cert-authority"),
            Marker::Revoked => Some("@revoked"),
        },
    }
}
