//! What to change, and `--fix`: a script to review, with backups and a way back. Nothing here changes anything.
//!
//! The script holds words of ours and the host's name only. What a host has said of itself is never put into it. It changes nothing
//! for a mere suspicion, nor where something else looks the same: that stands in it as a comment.

use std::fmt::Write as _;

use crate::diagnosis::{Certainty, Diagnosis, Finding};
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
    /// The same, unless the host goes by clients' names.
    SshdWithoutNames,
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

    /// The same of a keyword without which sshd knows no client by its name.
    pub(crate) const fn sshd_without_names(line: &'static str) -> Fix {
        Fix {
            change: Change::SshdWithoutNames,
            ..Fix::sshd(line)
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

    /// What else the change may do.
    pub(crate) fn beware(&self) -> Option<&'static str> {
        matches!(self.change, Change::SshdWithoutNames).then_some(
            "before the change: without UseDNS sshd knows no client by its name (from= of keys, Match Host, AllowUsers)",
        )
    }

    /// Whether lines of sshd_config are changed.
    pub(crate) fn is_of_sshd(&self) -> bool {
        matches!(self.change, Change::Sshd | Change::SshdWithoutNames)
    }

    /// The file that a script backs up before it changes it.
    fn backed_up(&self) -> Option<&'static str> {
        match self.change {
            Change::ByHand => None,
            Change::Ssh => Some(SSH_CONFIG),
            _ => self.file.starts_with('/').then_some(self.file),
        }
    }
}

const SSH_CONFIG: &str = "\"$HOME/.ssh/config\"";
const OTHER_SSHD_CONFIG: &str = "the file that this sshd was started with (-f)";

/// The functions of the script: those that any has, those that some changes call, and what calls its parts.
const HEAD: &str = include_str!("fix/head.sh");
const SSHD: &str = include_str!("fix/sshd.sh");
const NAMES: &str = include_str!("fix/names.sh");
const PAM: &str = include_str!("fix/pam.sh");
const TAIL: &str = include_str!("fix/tail.sh");
/// What calls those for PAM's files.
const EDIT_PAM: &str = "edit_pam ";

/// The script of `--fix` for all findings of a host; it is for a POSIX shell.
pub fn script(diagnosis: &Diagnosis) -> String {
    let host = comment(&diagnosis.host);
    let steps: Vec<Step> = diagnosis
        .all_findings()
        .map(|finding| Step::of(finding, diagnosis))
        .collect();
    let mut out = format!("#!/bin/sh\n# What would make logins to {host} faster.\n{HEAD}");
    for (functions, is_called) in [
        (SSHD, any(&steps, Fix::is_of_sshd)),
        (NAMES, any(&steps, |fix| fix.beware().is_some())),
        (PAM, any(&steps, |fix| is_of_pam(&fix.change))),
    ] {
        if is_called {
            out.push_str(functions);
        }
    }
    for (name, place) in [("here", Place::Here), ("host", Place::Host)] {
        let of_place = steps.iter().filter(|step| step.fix().place == place);
        let of_place: Vec<&Step> = of_place.collect();
        push_apply(&mut out, name, &of_place, &diagnosis.host);
        push_undo(&mut out, name, &of_place);
    }
    out.push_str(TAIL);
    out
}

/// A finding, and why and where a human is to make its change, if the script does not.
struct Step<'a> {
    finding: &'a Finding,
    left: Option<(String, &'static str)>,
}

impl Step<'_> {
    fn of<'a>(finding: &'a Finding, diagnosis: &Diagnosis) -> Step<'a> {
        let fix = &finding.cause.fix;
        let alternatives = finding.alternatives.join(", ");
        let is_of_others = fix.is_of_sshd() && diagnosis.sshd_config.is_some();
        let by_hand = matches!(fix.change, Change::ByHand)
            || (matches!(fix.change, Change::Ssh) && pattern(&diagnosis.host).is_none());
        let left = match finding.certainty {
            _ if !alternatives.is_empty() => {
                Some((format!("by hand, once it is not {alternatives}"), fix.file))
            }
            Certainty::Suspected => Some(("by hand, once it is known".to_owned(), fix.file)),
            _ if is_of_others => Some(("by hand".to_owned(), OTHER_SSHD_CONFIG)),
            _ => by_hand.then(|| ("by hand".to_owned(), fix.file)),
        };
        Step { finding, left }
    }

    fn fix(&self) -> &'static Fix {
        &self.finding.cause.fix
    }
}

/// Whether the script itself changes anything of this kind.
fn any(steps: &[Step], is_it: fn(&Fix) -> bool) -> bool {
    let mut made = steps.iter().filter(|step| step.left.is_none());
    made.any(|step| is_it(step.fix()))
}

fn is_of_pam(change: &Change) -> bool {
    matches!(change, Change::Commands(commands) if commands.starts_with(EDIT_PAM))
}

fn push_apply(out: &mut String, name: &str, steps: &[&Step], host: &str) {
    let mut made = steps.iter().filter(|step| step.left.is_none());
    let of_sshd = made.any(|step| step.fix().is_of_sshd());
    let _ = write!(out, "\n{name}() {{\n");
    if of_sshd {
        out.push_str("    check_sshd\n");
    }
    for step in steps {
        let (finding, fix) = (step.finding, step.fix());
        let _ = write!(
            out,
            "    # {}: {}, {}\n    # expected saving: {}\n",
            finding.cause.id,
            finding.cause.title,
            finding.certainty.name(),
            words::time(finding.saving),
        );
        if let Some((how, file)) = &step.left {
            let _ = writeln!(out, "    # {how}, in {file}:");
            for line in fix.line.lines() {
                let _ = writeln!(out, "    #   {line}");
            }
            continue;
        }
        if matches!(fix.change, Change::Ssh) {
            let _ = writeln!(out, "    have {SSH_CONFIG}");
        }
        if let Some(file) = fix.backed_up() {
            let _ = writeln!(out, "    backup {file}");
        }
        push_change(out, fix, host);
    }
    if of_sshd {
        out.push_str("    reload_sshd\n");
    }
    out.push_str("    :\n}\n");
}

fn push_change(out: &mut String, fix: &Fix, host: &str) {
    let prepend = format!("prepend {} <<'LINES'\n{}\nLINES\n", fix.file, fix.line);
    match fix.change {
        Change::Sshd => {
            let _ = write!(out, "    {prepend}");
        }
        Change::SshdWithoutNames => {
            let left = format!("left out, for what is named above: {}", fix.line);
            let _ = write!(
                out,
                "    if goes_by_names >&2; then\n        echo '{left}' >&2\n    else\n        {prepend}    fi\n"
            );
        }
        Change::Ssh => push_host_block(out, fix.line, host),
        Change::Commands(commands) => {
            let _ = writeln!(out, "    {commands}");
        }
        Change::ByHand => {}
    }
}

/// Lines before the first Host apply to all hosts: they do so afterwards, too.
fn push_host_block(out: &mut String, lines: &str, host: &str) {
    let pattern = pattern(host).unwrap_or_default();
    let _ = write!(out, "    prepend {SSH_CONFIG} <<'LINES'\nHost {pattern}\n");
    for line in lines.lines() {
        let _ = writeln!(out, "    {line}");
    }
    out.push_str("Host *\nLINES\n");
}

fn push_undo(out: &mut String, name: &str, steps: &[&Step]) {
    let _ = write!(out, "\nnote_{name}() {{\n");
    let made = || steps.iter().filter(|step| step.left.is_none());
    for file in made().filter_map(|step| step.fix().backed_up()) {
        let _ = writeln!(out, "    note {file}");
    }
    let _ = write!(out, "    :\n}}\n\nundo_{name}() {{\n");
    let mut done: Vec<&str> = Vec::new();
    let mut reload = ":";
    for step in made() {
        let fix = step.fix();
        if let Some(file) = fix.backed_up().filter(|file| !done.contains(file)) {
            let _ = writeln!(out, "    restore {file}");
            done.push(file);
        }
        let _ = writeln!(
            out,
            "    # {}: {}",
            step.finding.cause.id,
            fix.undo.replace('\n', "; ")
        );
        if fix.is_of_sshd() {
            reload = "reload_sshd";
        }
    }
    out.push_str("    :\n}\n");
    let _ = write!(out, "\nreload_{name}() {{\n    {reload}\n}}\n");
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

#[cfg(test)]
#[path = "fix_lock_tests.rs"]
mod lock_tests;
