//! The host file: a host a line, as mpssh.py reads it; with the users, ports and labels of the C program's.

use std::path::Path;
use std::str;

use sshoal_targets::Target;

use crate::hosts::{self, HostsError};

/// A line of the file that names a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Listed {
    /// The line, which is what output calls the host.
    pub(super) line: String,
    pub(super) target: Target,
}

/// Why there is no list of hosts.
#[derive(Debug, thiserror::Error)]
pub(super) enum ListError {
    #[error(transparent)]
    File(#[from] HostsError),
    #[error(
        "{path}:{number}: the line is no UTF-8 text; a host file has a host's name on each line"
    )]
    NoText { path: String, number: usize },
}

/// The hosts of a file, in its order; one that is listed twice is run on twice.
pub(super) fn read(path: &Path, label: Option<&str>) -> Result<Vec<Listed>, ListError> {
    let contents = hosts::contents(path)?;
    match str::from_utf8(&contents) {
        Ok(text) => Ok(listed(text, label)),
        Err(error) => {
            let before = &contents[..error.valid_up_to()];
            Err(ListError::NoText {
                path: path.display().to_string(),
                number: before.split(|octet| *octet == b'\n').count(),
            })
        }
    }
}

/// Lines end as Python's text files have it: LF, CR LF or CR.
fn listed(text: &str, label: Option<&str>) -> Vec<Listed> {
    let mut under: Option<&str> = None;
    let mut hosts = Vec::new();
    for line in text.split(['\n', '\r']).map(str::trim) {
        if let Some(begun) = line.strip_prefix('%') {
            under = Some(begun);
            continue;
        }
        // As in the C program, what stands before all labels belongs to each.
        let is_meant = label.is_none() || under.is_none() || label == under;
        if is_meant && !line.is_empty() && !line.starts_with('#') {
            hosts.push(Listed {
                line: line.to_owned(),
                target: target(line),
            });
        }
    }
    hosts
}

/// `user@host:port`. mpssh.py leaves a line to ssh, which knows nobody by such a name, so that none is lost by this.
fn target(line: &str) -> Target {
    let (user, host) = match line.rsplit_once('@') {
        Some((user, host)) if !user.is_empty() => (Some(user.to_owned()), host),
        _ => (None, line),
    };
    let (name, port) = name_and_port(host);
    Target {
        user,
        port,
        ..Target::named(name)
    }
}

/// An address of IPv6 with a port stands in brackets.
fn name_and_port(host: &str) -> (&str, Option<u16>) {
    if let Some((address, port)) = host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        match port.strip_prefix(':').map(str::parse) {
            Some(Ok(port)) => return (address, Some(port)),
            None if port.is_empty() => return (address, None),
            _ => return (host, None),
        }
    }
    match host
        .split_once(':')
        .map(|(name, port)| (name, port.parse()))
    {
        Some((name, Ok(port))) if port > 0 => (name, Some(port)),
        _ => (host, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str, label: Option<&str>) -> Vec<String> {
        let hosts = listed(text, label).into_iter();
        hosts.map(|host| host.line).collect()
    }

    #[test]
    fn blank_lines_and_comments_are_left_out_and_names_trimmed() {
        let text = "# all\n\n  web1 \r\n\tweb2\t\n#web3\n  # web4\rdb1\nweb1";
        assert_eq!(lines(text, None), ["web1", "web2", "db1", "web1"]);
    }

    #[test]
    fn a_label_chooses_its_hosts_and_those_before_all_labels() {
        let text = "gate\n%web\nweb1\nweb2\n%db\ndb1\n%web\nweb3\n";
        assert_eq!(lines(text, None), ["gate", "web1", "web2", "db1", "web3"]);
        assert_eq!(lines(text, Some("web")), ["gate", "web1", "web2", "web3"]);
        assert_eq!(lines(text, Some("mail")), ["gate"]);
    }

    #[test]
    fn a_line_may_have_a_user_and_a_port() {
        for (line, user, name, port) in [
            ("web1", None, "web1", None),
            ("root@web1", Some("root"), "web1", None),
            ("web1:2222", None, "web1", Some(2222)),
            ("a@dom@web1:22", Some("a@dom"), "web1", Some(22)),
            ("::1", None, "::1", None),
            ("fe80::1:22", None, "fe80::1:22", None),
            ("[::1]:22", None, "::1", Some(22)),
            ("[::1]", None, "::1", None),
            ("web1:ssh", None, "web1:ssh", None),
            ("web1:0", None, "web1:0", None),
            ("web[1-3]", None, "web[1-3]", None),
            ("@web1", None, "@web1", None),
        ] {
            let expected = Target {
                user: user.map(str::to_owned),
                port,
                ..Target::named(name)
            };
            assert_eq!(target(line), expected, "{line}");
        }
    }
}
