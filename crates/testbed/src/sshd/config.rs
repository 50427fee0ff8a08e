//! The text of a server's sshd_config(5).

use std::fmt::Write;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

/// What a server's configuration is made of.
pub(super) struct Config<'a> {
    pub(super) addresses: &'a [Ipv4Addr],
    pub(super) port: u16,
    pub(super) host_keys: &'a [PathBuf],
    pub(super) authorized_keys: &'a Path,
    pub(super) lines: &'a [String],
    /// From 9.8 on, when there are penalties to switch off.
    pub(super) has_penalties: bool,
}

/// The fixture's own settings: what differs from stock, and why.
///
/// - No PAM, no message of the day: their work is the machine's, not sshd's, and differs everywhere.
/// - MaxStartups so high that a whole fleet may log in from this one address, and no penalties.
/// - The files are in a temporary folder, whose permissions StrictModes would not like.
const OWN: &str = "\
PidFile none
UsePAM no
PrintMotd no
PrintLastLog no
StrictModes no
KbdInteractiveAuthentication no
MaxStartups 10000
LogLevel VERBOSE
Subsystem sftp /usr/lib/openssh/sftp-server
";

impl Config<'_> {
    pub(super) fn text(&self) -> String {
        let first_match = self
            .lines
            .iter()
            .position(|line| keyword(line) == "match")
            .unwrap_or(self.lines.len());
        let (global, matching) = self.lines.split_at(first_match);

        let mut text = String::new();
        for line in global {
            text += line;
            text.push('\n');
        }
        // Writing to a String cannot fail.
        let _ = writeln!(text, "Port {}", self.port);
        for address in self.addresses {
            let _ = writeln!(text, "ListenAddress {address}");
        }
        for key in self.host_keys {
            let _ = writeln!(text, "HostKey \"{}\"", key.display());
        }
        let keys = self.authorized_keys.display();
        let _ = writeln!(text, "AuthorizedKeysFile \"{keys}\"");
        let penalties = self.has_penalties.then_some("PerSourcePenalties no");
        // Of most keywords sshd takes the first value, of MaxStartups the last, and a second
        // Subsystem of one name is an error: nothing is said twice.
        for own in OWN.lines().chain(penalties) {
            if !global.iter().any(|line| keyword(line) == keyword(own)) {
                text += own;
                text.push('\n');
            }
        }
        // Whatever follows Match belongs to it.
        for line in matching {
            text += line;
            text.push('\n');
        }
        text
    }
}

/// The keyword of a line of sshd_config(5), in lower case.
fn keyword(line: &str) -> String {
    let word = line.trim_start().split([' ', '\t', '=']).next();
    word.unwrap_or_default().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_lines_come_first_and_match_blocks_last() {
        let lines: Vec<String> = [
            "MaxStartups 2:100:2",
            "subsystem sftp internal-sftp",
            "Match User sshoal-test",
            "    ForceCommand true",
        ]
        .map(String::from)
        .into();
        let text = Config {
            addresses: &[Ipv4Addr::new(127, 2, 0, 1), Ipv4Addr::new(127, 2, 0, 2)],
            port: 2222,
            host_keys: &[PathBuf::from("/d/key")],
            authorized_keys: Path::new("/d/authorized_keys"),
            lines: &lines,
            has_penalties: false,
        }
        .text();
        assert!(text.starts_with("MaxStartups 2:100:2\n"), "{text}");
        assert!(text.ends_with("Match User sshoal-test\n    ForceCommand true\n"));
        assert_eq!(text.matches("ListenAddress 127.2.0.").count(), 2);
        for once in ["subsystem", "maxstartups"] {
            assert_eq!(text.to_lowercase().matches(once).count(), 1, "{once}");
        }
        assert!(!text.contains("PerSourcePenalties"));
    }
}
