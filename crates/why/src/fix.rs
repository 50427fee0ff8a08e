//! What to change, and `--fix`: a script to review, with backups and a way back. Nothing here changes anything.
//!
//! The script holds words of ours and the host's name only. What a host has said of itself is never put into it.

use std::fmt::Write as _;

use crate::diagnosis::{Diagnosis, Finding};
use crate::words;

/// Where something is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// On this machine.
    Here,
    /// On the host, as root.
    Host,
}

/// What to change.
#[derive(Debug)]
pub struct Fix {
    /// Where.
    pub place: Place,
    /// In which file.
    pub file: &'static str,
    /// The exact line or lines, or the command.
    pub line: &'static str,
    /// The way back.
    pub undo: &'static str,
    change: Change,
}

/// How a script does it.
#[derive(Debug, Clone, Copy)]
enum Change {
    /// Lines put first in sshd_config, where the first value counts.
    Sshd,
    /// Lines put first in ~/.ssh/config, in a block of the host.
    Ssh,
    /// Commands.
    Commands(&'static str),
    /// What needs a human's choice stands in the script as a comment.
    ByHand,
}

impl Fix {
    /// A keyword of sshd_config, or several.
    pub(crate) const fn sshd(line: &'static str) -> Fix {
        Fix {
            place: Place::Host,
            file: "/etc/ssh/sshd_config",
            line,
            undo: "take the line out again, and systemctl reload ssh",
            change: Change::Sshd,
        }
    }

    /// A keyword of ssh_config, or several, for the host.
    pub(crate) const fn ssh(line: &'static str) -> Fix {
        Fix {
            place: Place::Here,
            file: "~/.ssh/config",
            line,
            undo: "take the line out again",
            change: Change::Ssh,
        }
    }

    /// Commands that change a file in place.
    pub(crate) const fn commands(
        place: Place,
        file: &'static str,
        line: &'static str,
        undo: &'static str,
        commands: &'static str,
    ) -> Fix {
        Fix {
            place,
            file,
            line,
            undo,
            change: Change::Commands(commands),
        }
    }

    /// What a human must do.
    pub(crate) const fn by_hand(
        place: Place,
        file: &'static str,
        line: &'static str,
        undo: &'static str,
    ) -> Fix {
        Fix {
            place,
            file,
            line,
            undo,
            change: Change::ByHand,
        }
    }

    /// The file that a script backs up before it changes it.
    fn backed_up(&self) -> Option<&'static str> {
        match self.change {
            Change::ByHand => None,
            Change::Ssh => Some("\"$HOME/.ssh/config\""),
            Change::Sshd | Change::Commands(_) => self.file.starts_with('/').then_some(self.file),
        }
    }
}

const HEAD: &str = "\
# Nothing has been changed. Read this first, change what does not suit, then:
#   sh fix.sh here         on this machine, as the user who logs in
#   sh fix.sh host         on the host, as root (copy it there)
#   sh fix.sh undo-here    puts this machine's files back
#   sh fix.sh undo-host    puts the host's files back
set -eu
umask 077

suffix=.before-sshoal

# Keeps the file as it was before the first change.
backup() {
    [ -e \"$1\" ] || : >\"$1\"
    [ -e \"$1$suffix\" ] || cp -p -- \"$1\" \"$1$suffix\"
}

# A file keeps its owner, its mode and its place: it is written, and not replaced.
write() {
    cat -- \"$1\" >\"$2\"
    rm -f -- \"$1\"
}

restore() {
    [ ! -e \"$1$suffix\" ] || write \"$1$suffix\" \"$1\"
}

# Puts standard input before what is in the file.
prepend() {
    { cat; cat -- \"$1\"; } >\"$1.new\"
    write \"$1.new\" \"$1\"
}

# Changes a file by an expression of sed.
edit() {
    sed \"$2\" \"$1\" >\"$1.new\"
    write \"$1.new\" \"$1\"
}

reload_sshd() {
    if ! sshd -t; then
        echo 'sshd does not take its configuration: it is put back' >&2
        undo_host
        exit 1
    fi
    systemctl reload ssh 2>/dev/null || systemctl reload sshd
}
";

const TAIL: &str = "
case ${1-} in
    here) here ;;
    host) host ;;
    undo-here) undo_here ;;
    undo-host) undo_host ;;
    *)
        echo \"usage: sh $0 here|host|undo-here|undo-host\" >&2
        exit 64
        ;;
esac
";

/// The script of `--fix` for all findings of a host; it is for a POSIX shell.
pub fn script(diagnosis: &Diagnosis) -> String {
    let host = comment(&diagnosis.host);
    let mut out = format!("#!/bin/sh\n# What would make logins to {host} faster.\n{HEAD}");
    let findings: Vec<&Finding> = diagnosis.all_findings().collect();
    for (name, place) in [("here", Place::Here), ("host", Place::Host)] {
        let of_place: Vec<&&Finding> = findings
            .iter()
            .filter(|finding| finding.cause.fix.place == place)
            .collect();
        push_apply(&mut out, name, &of_place, &diagnosis.host);
        push_undo(&mut out, name, &of_place);
    }
    out.push_str(TAIL);
    out
}

fn push_apply(out: &mut String, name: &str, findings: &[&&Finding], host: &str) {
    let _ = write!(out, "\n{name}() {{\n");
    let mut sshd = false;
    for finding in findings {
        let fix = &finding.cause.fix;
        let _ = write!(
            out,
            "    # {}: {}, {}\n    # expected saving: {}\n",
            finding.cause.id,
            finding.cause.title,
            finding.certainty.name(),
            words::time(finding.saving),
        );
        if let Some(file) = fix.backed_up() {
            let _ = writeln!(out, "    backup {file}");
        }
        match fix.change {
            Change::Sshd => {
                sshd = true;
                let _ = write!(
                    out,
                    "    prepend {} <<'LINES'\n{}\nLINES\n",
                    fix.file, fix.line
                );
            }
            Change::Ssh => push_host_block(out, fix.line, host),
            Change::Commands(commands) => {
                let _ = writeln!(out, "    {commands}");
            }
            Change::ByHand => {
                let _ = writeln!(out, "    # by hand, in {}:", fix.file);
                for line in fix.line.lines() {
                    let _ = writeln!(out, "    #   {line}");
                }
            }
        }
    }
    if sshd {
        out.push_str("    reload_sshd\n");
    }
    out.push_str("    :\n}\n");
}

/// Lines before the first Host apply to all hosts: they do so afterwards, too.
fn push_host_block(out: &mut String, lines: &str, host: &str) {
    let Some(pattern) = pattern(host) else {
        out.push_str("    # by hand, in ~/.ssh/config, in a block of this host:\n");
        for line in lines.lines() {
            let _ = writeln!(out, "    #   {line}");
        }
        return;
    };
    let _ = write!(
        out,
        "    prepend \"$HOME/.ssh/config\" <<'LINES'\nHost {pattern}\n"
    );
    for line in lines.lines() {
        let _ = writeln!(out, "    {line}");
    }
    out.push_str("Host *\nLINES\n");
}

fn push_undo(out: &mut String, name: &str, findings: &[&&Finding]) {
    let _ = write!(out, "\nundo_{name}() {{\n");
    let mut done: Vec<&str> = Vec::new();
    for finding in findings {
        if let Some(file) = finding
            .cause
            .fix
            .backed_up()
            .filter(|file| !done.contains(file))
        {
            let _ = writeln!(out, "    restore {file}");
            done.push(file);
        }
        let _ = writeln!(
            out,
            "    # {}: {}",
            finding.cause.id,
            finding.cause.fix.undo.replace('\n', "; ")
        );
    }
    if findings
        .iter()
        .any(|finding| matches!(finding.cause.fix.change, Change::Sshd))
    {
        out.push_str("    systemctl reload ssh 2>/dev/null || systemctl reload sshd\n");
    }
    out.push_str("    :\n}\n");
}

/// A host's name as a pattern of ssh_config, if it is one without meaning beyond itself.
fn pattern(host: &str) -> Option<&str> {
    let name = host.rsplit_once('@').map_or(host, |(_, name)| name);
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    (!name.is_empty() && !name.starts_with('-') && name.chars().all(plain)).then_some(name)
}

/// Text that stays on its line.
fn comment(text: &str) -> String {
    words::foreign(text)
}

#[cfg(test)]
#[path = "fix_tests.rs"]
mod tests;
