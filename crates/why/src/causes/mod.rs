//! The causes of slow logins, as data. **To add one, add an entry to the file of its place**, with the evidence that it needs, the
//! way its cost is reckoned, and what to change; and a test with evidence that shows it, in `diagnosis_tests.rs`.
//!
//! ```text
//! load       the host's processors, disks and memory          all phases of the server
//! local      this machine's configuration, keys and agent      P0, P5, P7
//! network    names, addresses, packets                         P1 to P5
//! admission  before sshd speaks, and which keys it has         P3, P5
//! identity   who logs in: names, keys, PAM's account           P6 to P8; the home P7 to P10, behind the session
//! session    PAM's session, the shell                          P9, P10
//! ```
//!
//! Three things are never blamed, for none of them makes a login slow: TCP's slow start (a login fits into the first window),
//! rekeying, and PAM's close_session, which runs when the client has long had its answer. sshd's own padding and its re-execution
//! are subtracted before anything is judged (`reckoning.rs`).

mod admission;
mod identity;
mod load;
mod local;
mod network;
mod session;

pub(crate) use session::motd_time;

use std::fmt;

use crate::cost::Cost;
use crate::evidence::{Phase, Tier};
use crate::fix::Fix;
use crate::signs::{Answer, Case, Sign};
use crate::words;

/// One cause of slow logins.
pub struct Cause {
    /// Its name in JSON and on the command line.
    pub id: &'static str,
    /// What is wrong, in a few words.
    pub title: &'static str,
    /// Where it costs time.
    pub phases: &'static [Phase],
    /// The lowest tier that can tell it from others; where that is [`Tier::Root`] it is suspected at best without a trace.
    pub tier: Tier,
    /// Which logins pay for it.
    pub payer: Payer,
    /// What of the machine it uses up, for the report on resources.
    pub resource: Resource,
    pub(crate) signs: &'static [Sign],
    pub(crate) cost: Cost,
    /// What to change.
    pub fix: Fix,
    /// Where this is known from.
    pub source: &'static str,
}

impl fmt::Debug for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cause").field(&self.id).finish()
    }
}

/// Which logins pay for a cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Payer {
    /// Those of every client: it is the host's. Judged by ours, or by ssh's if there is none of ours.
    Everyone,
    /// It depends on the client: judged by each.
    Each,
    /// ssh's alone.
    Ssh,
}

/// What a login waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource {
    /// Processors.
    Cpu,
    /// Memory.
    Memory,
    /// Files and what they hold.
    Files,
    /// Disks.
    BlockIo,
    /// The network, name servers included.
    Network,
    /// Other programs, which wait for something themselves.
    Programs,
}

/// What stands in the identification string of one server alone.
const OPENSSH: &str = "OpenSSH";

/// The phases in which the server works.
pub(crate) const SERVER: &[Phase] = &[
    Phase::Banner,
    Phase::KeyExchangeInit,
    Phase::KeyExchange,
    Phase::FirstRequest,
    Phase::KeyProbe,
    Phase::SignedRequest,
    Phase::ChannelOpen,
    Phase::FirstOutput,
];

/// Whether the server is one that has sshd's configuration and does what sshd does.
fn of_openssh(case: &Case) -> Answer {
    let Some(identification) = case.evidence.identification.as_deref() else {
        return Answer::Unknown("the server's version is not known".to_owned());
    };
    let words = format!("the server is {}", words::foreign(identification));
    if identification.contains(OPENSSH) {
        Answer::Yes(words)
    } else {
        Answer::No(words)
    }
}

/// OpenSSH's version: `SSH-2.0-OpenSSH_9.2p1 Debian-2` is (9, 2).
pub(crate) fn version(identification: &str) -> Option<(u32, u32)> {
    let (_, version) = identification.split_once(OPENSSH)?;
    let (major, rest) = version.strip_prefix('_')?.split_once('.')?;
    let minor: String = rest.chars().take_while(char::is_ascii_digit).collect();
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// All causes, in the order in which they take what is lost, as long as they are known equally well.
pub fn all() -> impl Iterator<Item = &'static Cause> {
    let files: [&'static [Cause]; 8] = [
        load::STARVED,
        local::CAUSES,
        network::CAUSES,
        admission::CAUSES,
        identity::CAUSES,
        session::CAUSES,
        identity::HOME,
        load::CONTENDED,
    ];
    files.into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_has_a_name_of_its_own_phases_a_fix_and_a_source() {
        let mut names: Vec<&str> = all().map(|cause| cause.id).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        for cause in all() {
            let id = cause.id;
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(id.chars().all(plain), "{id}");
            assert!(!cause.phases.is_empty() && cause.phases.is_sorted(), "{id}");
            assert!(!cause.source.is_empty() && !cause.title.is_empty(), "{id}");
            assert!(
                !cause.fix.file.is_empty() && !cause.fix.line.is_empty(),
                "{id}"
            );
            assert!(!cause.fix.undo.is_empty(), "{id}");
        }
    }

    #[test]
    fn versions_are_those_of_openssh() {
        assert_eq!(version("SSH-2.0-OpenSSH_9.2p1 Debian-2"), Some((9, 2)));
        assert_eq!(version("SSH-2.0-OpenSSH_10.5"), Some((10, 5)));
        assert_eq!(version("SSH-2.0-dropbear_2022.83"), None);
        assert_eq!(version("SSH-2.0-OpenSSH_"), None);
    }

    #[test]
    fn what_never_makes_a_login_slow_is_no_cause() {
        for cause in all() {
            for innocent in ["slow start", "rekey", "close_session", "re-exec"] {
                assert!(
                    !cause.title.to_lowercase().contains(innocent),
                    "{}",
                    cause.id
                );
            }
        }
    }
}
