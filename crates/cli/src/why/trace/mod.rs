//! `--trace`: further logins, followed on the host by its kernel. A second connection carries the tracer there and runs it, as
//! root if it can (`control`); as soon as it says that it is ready, the logins under test are made and timed as all the others are.

mod control;
mod facts;
mod listening;

use std::net::IpAddr;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use sshoal_fleet::HostId;
use sshoal_net::Secret;
use sshoal_targets::Target;
use sshoal_trace::{Traced, TracedError, Wanted};
use sshoal_why::{Client, Evidence, Phase, Span, Tier};

use super::args::WhyArgs;
use super::logins::{self, Done, Following, Logins, Performed};
use super::ours;
use crate::watch::Watch;
use control::{Clock, Control};
use listening::{Listening, Said};

/// What the login under test runs: it says by which ports the server knows it (sshd(8), SSH_CONNECTION).
const COMMAND: &[u8] = b"echo $SSH_CONNECTION";
/// The same where processes are looked at from outside: it stays until it has been seen.
const LASTING_COMMAND: &[u8] = b"echo $SSH_CONNECTION; sleep 1; :";
/// By which waits are told, too.
const BEST: &str = "tracefs";

/// Octets of what the login under test says that are kept: a line, behind what its shell may say.
const MAX_OUTPUT: usize = 64 * 1024;

/// So many logins are followed where each takes no longer than this: others disturb one more than another, and the least that something
/// takes is its own.
const LOGINS: u32 = 3;
const QUICK: Duration = Duration::from_secs(1);

/// How many logins to a host are to be followed, by what is known of it. They are told from one another by what they say.
pub(super) fn count(evidence: &Evidence) -> u32 {
    let ours = evidence.logins.iter().filter(|it| it.by == Client::Sshoal);
    let longest = ours.map(|login| login.spans.iter().map(|span| span.duration).sum());
    let is_quick = longest
        .max()
        .is_some_and(|longest: Duration| longest <= QUICK);
    let is_told = evidence.facts.yes("host.forced_command") == Some(false);
    match is_quick && is_told {
        true => LOGINS,
        false => 1,
    }
}

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

/// Follows so many logins to a host that `label` names.
///
/// # Errors
///
/// There is no trace of any, and why.
pub(super) fn follow(
    args: &WhyArgs,
    target: &Target,
    label: &str,
    count: u32,
    password: Option<&Secret>,
) -> Result<Traces, Untraced> {
    let mut control = Control::start(args, target, label, password)?;
    control.arm(label)?;
    let clock = control.clock()?;
    let (said, heard) = mpsc::channel();
    let watch = Watch::new(format!("{label}: traced"));
    let observer = Listening::new(watch, said, MAX_OUTPUT);
    let (repeat, command) = match control.by() == BEST {
        // Where connections are not told, one login is known by being the only one.
        true if control.lacks("connections") => (1, COMMAND),
        true => (count, COMMAND),
        // Whoever merely lived so long is not told what it took.
        false => (1, LASTING_COMMAND),
    };
    let login = Logins {
        repeat,
        command,
        following: &Following::default(),
        with_ssh: false,
        password: password.cloned(),
    };
    let targets = [target.clone()];
    let performed = logins::perform(args, &targets, login, observer);
    let done = match performed.map_err(|error| error.to_string())? {
        Performed::CutShort(status) => return Err(Untraced::CutShort(status)),
        Performed::Done(done, _) => done,
    };
    let mut logins: Vec<Heard> = done.iter().map(|_| Heard::default()).collect();
    for said in heard {
        if let Said::Output(HostId(number), at, octets) = said
            && let Some(login) = logins.get_mut(number as usize)
        {
            login.first.get_or_insert(at);
            login.output.extend(octets);
        }
    }
    let no_root = control.no_root.take();
    let recording = control.end()?;
    let each = done.into_iter().zip(logins).map(|(done, heard)| {
        let wanted = heard.wanted(&clock);
        Outcome::of(done, || Traced::of(recording.clone(), wanted))
    });
    let mut traces = Traces::of(each)?;
    if let Some(why) = no_root {
        let refused = &mut traces.logins[0].traced.means.refused;
        refused.insert(0, ("root".to_owned(), why));
    }
    Ok(traces)
}

/// What became of a login that was to be followed.
enum Outcome {
    Followed(Box<Followed>),
    /// It failed, and why.
    Failed(String),
    /// It did not, but the trace does not tell of it, and why.
    Untold(String),
    /// It was not made, since one before it failed.
    NotMade,
}

impl Outcome {
    fn of(done: Done, trace: impl FnOnce() -> Result<Traced, TracedError>) -> Outcome {
        match done.failure {
            Some(_) if done.timed.marks.is_empty() => Outcome::NotMade,
            Some(failure) => Outcome::Failed(failure.detail),
            None => match trace() {
                Ok(traced) => Outcome::Followed(Box::new(Followed {
                    phases: phases(&ours::apart(&done.timed).spans, traced.login.end),
                    traced,
                })),
                Err(error) => Outcome::Untold(error.to_string()),
            },
        }
    }
}

/// The logins to a host that were followed.
pub(super) struct Traces {
    /// That in the middle first; it is the one that is shown.
    logins: Vec<Followed>,
    /// What became of the others that were to be followed.
    notes: Vec<String>,
}

impl Traces {
    /// # Errors
    ///
    /// No login can be shown, and why.
    fn of(outcomes: impl Iterator<Item = Outcome>) -> Result<Traces, String> {
        let (mut logins, mut failed, mut untold) = (Vec::new(), Vec::new(), Vec::new());
        let mut behind = "";
        for outcome in outcomes {
            match outcome {
                Outcome::Followed(login) => logins.push(*login),
                Outcome::Failed(why) => failed.push(why),
                Outcome::Untold(why) => untold.push(why),
                Outcome::NotMade => behind = "; none was made after that",
            }
        }
        if logins.is_empty() {
            let failed = failed.first();
            let failed = failed.map(|why| format!("the login that was to be traced failed: {why}"));
            let why = failed.or_else(|| untold.first().cloned());
            return Err(why.unwrap_or_else(|| "no login was made".to_owned()));
        }
        let made = logins.len() + failed.len() + untold.len();
        let of_made = |count| format!("{count} of {made} logins that were followed");
        let mut notes = Vec::new();
        if let Some(why) = failed.first() {
            notes.push(format!("{} failed: {why}{behind}", of_made(failed.len())));
        }
        if let Some(why) = untold.first() {
            notes.push(format!("{} cannot be shown: {why}", of_made(untold.len())));
        }
        logins.sort_by_key(|login| login.traced.login.wall());
        let middle = logins.len() / 2;
        logins[..=middle].rotate_right(1);
        Ok(Traces { logins, notes })
    }

    /// The one that is shown.
    pub(super) fn shown(self) -> Option<Traced> {
        self.logins.into_iter().next().map(|login| login.traced)
    }
}

/// A login that was followed.
struct Followed {
    traced: Traced,
    phases: Vec<Lasted>,
}

/// From when to when a phase lasted, by the host's clock.
type Lasted = (Phase, [u64; 2]);

/// A login's phases by the host's clock, by which its first output went out then: what the client has heard it was told as much earlier.
fn phases(spans: &[Span], output: u64) -> Vec<Lasted> {
    let last = spans.iter().rfind(|span| span.phase == Phase::FirstOutput);
    let Some(whole) = last.map(|last| last.start + last.duration) else {
        return Vec::new();
    };
    let at = |since: Duration| {
        let before = whole.saturating_sub(since).as_nanos();
        output.saturating_sub(u64::try_from(before).unwrap_or(u64::MAX))
    };
    let lasted = |span: &Span| [at(span.start), at(span.start + span.duration)];
    spans
        .iter()
        .map(|span| (span.phase, lasted(span)))
        .collect()
}

/// What a login under test has said.
#[derive(Default)]
struct Heard {
    /// When its first output came.
    first: Option<Instant>,
    output: Vec<u8>,
}

impl Heard {
    fn wanted(&self, clock: &Clock) -> Wanted {
        let connection = connection(&String::from_utf8_lossy(&self.output));
        let (ports, client) = connection.unzip();
        Wanted {
            ports,
            client: client.flatten(),
            until: self.first.map(|at| clock.of_host(at)),
        }
    }
}

/// The server's port and the client's, and the client's address, of "CLIENT PORT SERVER PORT".
fn connection(line: &str) -> Option<((u16, u16), Option<IpAddr>)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [.., address, client, _, server] = words[..] else {
        return None;
    };
    // Behind an address of one link alone stands which one.
    let address = address.split('%').next().unwrap_or_default();
    let ports = (server.parse().ok()?, client.parse().ok()?);
    Some((ports, address.parse().ok()))
}

/// Adds what the traces of a host say to what was measured; or why there is none.
pub(super) fn learn(traces: &mut Result<Traces, String>, evidence: &mut Evidence) {
    match traces {
        Ok(Traces { logins, notes }) => {
            // Per cent of the last 10 s in which somebody waited for a disk.
            if let Some(pressure) = evidence.facts.number("host.pressure.io") {
                let of_others = pressure / 100.0;
                let each = logins.iter_mut();
                each.for_each(|it| it.traced.shares_disks(of_others));
            }
            let Some((followed, others)) = logins.split_first() else {
                return;
            };
            evidence.tier_notes.append(notes);
            facts::learn(followed, others, &mut evidence.facts);
            let traced = &followed.traced;
            if traced.lost > 0 {
                let note = format!("{} records of the trace were lost", traced.lost);
                evidence.tier_notes.push(note);
            }
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
    use sshoal_why::{Facts, Login};

    use super::*;

    #[test]
    fn quick_logins_that_can_be_told_apart_are_followed_more_than_once() {
        let of = |milliseconds, is_forced: Option<bool>| {
            let mut facts = Facts::default();
            if let Some(is_forced) = is_forced {
                facts.insert("host.forced_command", is_forced);
            }
            let span = Span {
                phase: Phase::Banner,
                start: Duration::ZERO,
                duration: Duration::from_millis(milliseconds),
                detail: String::new(),
            };
            count(&Evidence {
                host: String::new(),
                address: None,
                identification: None,
                tier: Tier::NoRoot,
                tier_notes: Vec::new(),
                round_trips: Vec::new(),
                logins: vec![Login {
                    by: Client::Sshoal,
                    spans: vec![span],
                    failure: None,
                }],
                facts,
            })
        };
        assert_eq!(of(300, Some(false)), LOGINS);
        assert_eq!(of(1_500, Some(false)), 1);
        assert_eq!(of(300, Some(true)), 1);
        assert_eq!(of(300, None), 1);
    }

    #[test]
    fn where_no_login_can_be_shown_the_first_reason_is_told() {
        let why = |outcomes: Vec<Outcome>| Traces::of(outcomes.into_iter()).err();
        let untold = || Outcome::Untold("no command was run".to_owned());
        let failed = || Outcome::Failed("no answer".to_owned());
        assert_eq!(why(vec![untold()]).as_deref(), Some("no command was run"));
        let of_login = Some("the login that was to be traced failed: no answer");
        assert_eq!(why(vec![failed(), Outcome::NotMade]).as_deref(), of_login);
        assert_eq!(why(vec![untold(), failed()]).as_deref(), of_login);
    }

    #[test]
    fn phases_end_with_the_output() {
        let span = |phase, start, duration| Span {
            phase,
            start: Duration::from_nanos(start),
            duration: Duration::from_nanos(duration),
            detail: String::new(),
        };
        let mut spans = vec![
            span(Phase::Banner, 100, 50),
            span(Phase::FirstOutput, 150, 30),
        ];
        let wanted = [
            (Phase::Banner, [920, 970]),
            (Phase::FirstOutput, [970, 1_000]),
        ];
        assert_eq!(phases(&spans, 1_000), wanted);
        spans.pop();
        assert!(phases(&spans, 1_000).is_empty());
    }

    #[test]
    fn ports_stand_behind_whatever_the_shell_says() {
        let found = |line: &str| {
            let (ports, client) = connection(line)?;
            Some((ports, client.map(|client| client.to_string())))
        };
        let client = |address: &str| Some(address.to_owned());
        assert_eq!(
            found("10.0.0.9 51000 10.0.0.1 22\n"),
            Some(((22, 51000), client("10.0.0.9")))
        );
        assert_eq!(
            found("hello\nfe80::1%eth0 51000 fe80::2%eth0 2222\n"),
            Some(((2222, 51000), client("fe80::1")))
        );
        assert_eq!(
            found("UNKNOWN 51000 UNKNOWN 22\n"),
            Some(((22, 51000), None))
        );
        assert_eq!(found("\n"), None);
        assert_eq!(found("a b c d"), None);
    }
}
