//! Forgetting hosts, as `ssh-keygen -R` does.

use super::lines::{View, lines};
use crate::host_name::HostName;
use crate::line::Marker;
use crate::pattern;

/// A file without some hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forgotten {
    /// The new content; the old one if nothing was removed.
    pub bytes: Vec<u8>,
    /// The lines that are gone, in their order.
    pub removed: Vec<RemovedLine>,
    /// Numbers of lines for these hosts that stay, because `@cert-authority` and `@revoked`
    /// lines are not forgotten with a host.
    pub marked: Vec<usize>,
    /// Numbers of lines that are not understood, and stay.
    pub broken: Vec<usize>,
}

/// A line that was removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemovedLine {
    /// Its number in the old content, from 1.
    pub line: usize,
    /// Its host field as it was.
    pub hosts: String,
    /// Whether it stood for further hosts, which are forgotten with it: it was a list, or had a
    /// wildcard. `ssh-keygen -R` removes such lines without saying so.
    pub others: bool,
}

/// Removes every line without a marker that applies to one of `hosts`, plain, by wildcard or
/// hashed (`known_hosts_find_delete`, ssh-keygen.c).
///
/// Costs one HMAC for each pair of a host and a hashed line.
pub fn forget(file: &[u8], hosts: &[HostName<'_>]) -> Forgotten {
    let names: Vec<String> = hosts.iter().map(HostName::written).collect();
    let names: Vec<&[u8]> = names.iter().map(String::as_bytes).collect();
    let mut forgotten = Forgotten {
        bytes: Vec::with_capacity(file.len()),
        removed: Vec::new(),
        marked: Vec::new(),
        broken: Vec::new(),
    };
    for line in lines(file) {
        match line.view {
            View::Entry(entry) if !entry.which(&names).is_empty() => {
                if entry.marker == Marker::None {
                    let several = entry.hosts.contains(&b',');
                    forgotten.removed.push(RemovedLine {
                        line: line.number,
                        hosts: String::from_utf8_lossy(entry.hosts).into_owned(),
                        others: several || !pattern::is_plain_list(entry.hosts),
                    });
                    continue;
                }
                forgotten.marked.push(line.number);
            }
            View::Broken => forgotten.broken.push(line.number),
            View::Entry(_) | View::Blank => {}
        }
        forgotten.bytes.extend(line.text);
    }
    forgotten
}
