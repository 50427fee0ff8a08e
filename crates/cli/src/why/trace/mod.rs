//! `--trace`: one more login, followed on the host by its kernel. A second connection carries the tracer there and runs it, as
//! root if it can (`control`); as soon as it says that it is ready, the login under test is made and timed as all the others are.

mod control;
mod facts;
mod listening;

use std::sync::mpsc;
use std::time::Instant;

use sshoal_net::Secret;
use sshoal_targets::Target;
use sshoal_trace::{Traced, Wanted};
use sshoal_why::{Evidence, Tier};

use super::args::WhyArgs;
use super::logins::{self, Logins, Performed};
use crate::watch::Watch;
use control::Control;
use listening::{Listening, Said};

/// What the login under test runs: it says by which ports the server knows it (sshd(8), SSH_CONNECTION).
const COMMAND: &[u8] = b"echo $SSH_CONNECTION";
/// The same where processes are looked at from outside: it stays until it has been seen.
const LASTING_COMMAND: &[u8] = b"echo $SSH_CONNECTION; sleep 1; :";
/// By which waits are told, too.
const BEST: &str = "tracefs";

/// Octets of what the login under test says that are kept: a line, behind what its shell may say.
const MAX_OUTPUT: usize = 64 * 1024;

/// Why there is no trace.
pub(super) enum Untraced {
    /// In words.
    Because(String),
    /// A signal has ended all; with this exit status.
    CutShort(u8),
}

impl From<String> for Untraced {
    fn from(words: String) -> Untraced {
        Untraced::Because(words)
    }
}

/// Follows one login to a host that `label` names.
///
/// # Errors
///
/// There is no trace of it, and why.
pub(super) fn follow(
    args: &WhyArgs,
    target: &Target,
    label: &str,
    password: Option<&Secret>,
) -> Result<Traced, Untraced> {
    let mut control = Control::start(args, target, label, password)?;
    control.arm(label)?;
    let clock = control.clock()?;
    let (said, heard) = mpsc::channel();
    let watch = Watch::new(format!("{label}: traced"));
    let observer = Listening::new(watch, said, MAX_OUTPUT);
    let login = Logins {
        repeat: 1,
        command: match control.by() == BEST {
            true => COMMAND,
            false => LASTING_COMMAND,
        },
        errands: &[],
        with_ssh: false,
        password: password.cloned(),
    };
    let targets = [target.clone()];
    let performed = logins::perform(args, &targets, login, observer);
    let failure = match performed.map_err(|error| error.to_string())? {
        Performed::CutShort(status) => return Err(Untraced::CutShort(status)),
        Performed::Done(done, _) => done.into_iter().find_map(|done| done.failure),
    };
    if let Some(failure) = failure {
        let words = format!("the login that was to be traced failed: {}", failure.detail);
        return Err(Untraced::Because(words));
    }
    let mut output = Vec::new();
    let mut first = None;
    for said in heard {
        if let Said::Output(at, octets) = said {
            first.get_or_insert(at);
            output.extend(octets);
        }
    }
    let no_root = control.no_root.take();
    let recording = control.end()?;
    let wanted = Wanted {
        ports: ports(&String::from_utf8_lossy(&output)),
        until: first.map(|at: Instant| clock.of_host(at)),
    };
    let mut traced =
        Traced::of(recording, wanted).map_err(|error| Untraced::Because(error.to_string()))?;
    if let Some(why) = no_root {
        traced.means.refused.insert(0, ("root".to_owned(), why));
    }
    Ok(traced)
}

/// The server's port and the client's, of "CLIENT PORT SERVER PORT".
fn ports(line: &str) -> Option<(u16, u16)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [.., _, client, _, server] = words[..] else {
        return None;
    };
    Some((server.parse().ok()?, client.parse().ok()?))
}

/// Adds what a trace says to what was measured; or why there is none.
pub(super) fn learn(traced: &Result<Traced, String>, evidence: &mut Evidence) {
    match traced {
        Ok(traced) => {
            facts::learn(traced, &mut evidence.facts);
            if traced.tells_time() {
                evidence.tier = Tier::Root;
            } else {
                let by = traced.means.title();
                let reasons = traced.means.refused.iter();
                let reasons = reasons.map(|(way, why)| format!("{way}: {why}"));
                let reasons = reasons.collect::<Vec<_>>().join("; ");
                let note = format!("a login was followed by {by} only ({reasons})");
                evidence.tier_notes.push(note);
            }
        }
        Err(why) => evidence.tier_notes.push(format!("no trace: {why}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_stand_behind_whatever_the_shell_says() {
        assert_eq!(ports("10.0.0.9 51000 10.0.0.1 22\n"), Some((22, 51000)));
        assert_eq!(ports("hello\n::1 51000 ::1 2222\n"), Some((2222, 51000)));
        assert_eq!(ports("\n"), None);
        assert_eq!(ports("a b c d"), None);
    }
}
