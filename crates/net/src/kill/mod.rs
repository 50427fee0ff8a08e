//! Ends a command and looks whether it is gone: by a script in one more session of the command's own connection.
//!
//! ```text
//!   signal, with a reply --> the command has ended, or has had its time --> kill.sh in a session --> verdict
//!                     \--> nothing proves that the server runs what it is given --> not confirmed
//! ```
//!
//! A server that forces a command would run that once more in place of the script. OpenSSH refuses to signal a forced command
//! (session.c, session_signal_req), so a signal that it says it has delivered proves that there is none
//! (docs/adr/0022).

mod script;

use std::time::{Duration, Instant};

use sshoal_fleet::KillVerdict;
use sshoal_proto::{Connection, ConnectionError, Event, LocalChannel, Secret};

use script::ScriptSession;

pub use script::TEXT as KILL_SCRIPT;

/// From SIGINT until what has not ended gets SIGTERM.
const AFTER_INTERRUPT: Duration = Duration::from_secs(5);
/// How long the reply to a signal may take.
const REPLY: Duration = Duration::from_secs(5);
/// What the script may take beside the time between its signals: three seconds after SIGKILL, and a slow host.
const SCRIPT: Duration = Duration::from_secs(20);
/// How long a command that is gone may take to have its status and its last output told.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// How long a command that cannot be looked after has to end by SIGTERM.
const LEAST_GRACE: Duration = Duration::from_secs(2);

/// How commands that must end are ended.
#[derive(Clone)]
pub struct KillPlan {
    /// From SIGTERM to SIGKILL.
    pub grace: Duration,
    /// When the script may run.
    pub condition: KillCondition,
    /// Whether commands run by sudo.
    pub by_sudo: bool,
    /// The password that sudo may want.
    pub sudo_password: Option<Secret>,
    /// What the hosts call the run, if its commands outlive their connections.
    pub run: Option<String>,
}

/// When a second command may be sent to a host, to end the first one and to look after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KillCondition {
    /// Where the server has proven that it runs what it is given: OpenSSH from 7.9 on, which can signal at least one process of
    /// the command's group.
    Proven,
    /// Always: no host forces a command.
    Always,
}

impl KillPlan {
    /// The longest time from the order to end a command to the verdict, beside SIGINT's own time.
    pub fn longest(&self) -> Duration {
        self.grace.max(LEAST_GRACE) + REPLY + SCRIPT + LAST_WORDS
    }
}

/// Why a command must end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KillOrder {
    /// The user wants it: SIGINT, and more only after a while.
    Interrupt,
    /// Its time is over: SIGTERM.
    Terminate,
}

/// How far the end of a host's command is.
pub(crate) struct Killing {
    order: KillOrder,
    begun: Instant,
    stage: Stage,
}

enum Stage {
    /// The server has been asked to signal the command, and has answered or not.
    Signalled(Option<bool>),
    Script(ScriptSession),
    /// Since when.
    Over(KillVerdict, Instant),
}

impl Killing {
    /// Signals the command of `channel`.
    ///
    /// # Errors
    ///
    /// The error that ended the connection.
    pub(crate) fn begin(
        order: KillOrder,
        connection: &mut Connection,
        channel: LocalChannel,
    ) -> Result<Killing, ConnectionError> {
        let signal = match order {
            KillOrder::Interrupt => "INT",
            KillOrder::Terminate => "TERM",
        };
        connection.ask_to_signal(channel, signal)?;
        Ok(Killing {
            order,
            begun: Instant::now(),
            stage: Stage::Signalled(None),
        })
    }

    pub(crate) fn order(&self) -> KillOrder {
        self.order
    }

    /// Takes the events that are about it; `input` is what the range of [`Event::Data`] is a range of.
    pub(crate) fn handle(&mut self, event: Event, input: &[u8]) -> Option<Event> {
        match (&mut self.stage, event) {
            (Stage::Signalled(answer), Event::SignalAnswered { delivered, .. }) => {
                *answer = Some(delivered);
                None
            }
            (_, Event::SignalAnswered { .. }) => None,
            (Stage::Script(session), event) => session.handle(event, input),
            (_, event) => Some(event),
        }
    }

    /// Does what there is to do. `has_ended`: the command has, and there is no more output.
    ///
    /// # Errors
    ///
    /// The error that ended the connection.
    pub(crate) fn advance(
        &mut self,
        plan: &KillPlan,
        connection: &mut Connection,
        has_ended: bool,
    ) -> Result<(), ConnectionError> {
        let now = Instant::now();
        match &mut self.stage {
            Stage::Signalled(answer) => {
                let is_time = match self.order {
                    KillOrder::Interrupt => now >= self.begun + AFTER_INTERRUPT,
                    KillOrder::Terminate => answer.is_some() || now >= self.begun + REPLY,
                };
                if has_ended || is_time {
                    let answer = *answer;
                    self.look(plan, connection, answer)?;
                }
                Ok(())
            }
            Stage::Script(session) => {
                session.advance(connection)?;
                if let Some(verdict) = session.verdict() {
                    self.stage = Stage::Over(verdict, now);
                } else if now >= session.begun() + plan.grace + SCRIPT {
                    self.decide("the host gave no answer in time");
                }
                Ok(())
            }
            Stage::Over(..) => Ok(()),
        }
    }

    /// Runs the script, if the server is known to run what it is given.
    fn look(
        &mut self,
        plan: &KillPlan,
        connection: &mut Connection,
        answer: Option<bool>,
    ) -> Result<(), ConnectionError> {
        let proof = Proof::of(connection, answer);
        match (plan.condition, proof) {
            (KillCondition::Always, _) | (_, Proof::Runs) => {
                let told_group = proof == Proof::Runs && self.order == KillOrder::Terminate;
                let session = ScriptSession::begin(plan, told_group, connection)?;
                self.stage = Stage::Script(session);
            }
            (KillCondition::Proven, Proof::Refused) => self.decide(
                "the server did not pass the signal on, and passes none on to a forced command; --kill-where always looks there, too",
            ),
            (KillCondition::Proven, Proof::None) => self.decide(
                "this server does not tell whether it runs what it is given or a forced command; --kill-where always looks there, \
                 too",
            ),
        }
        Ok(())
    }

    fn decide(&mut self, why: &str) {
        self.stage = Stage::Over(KillVerdict::NotConfirmed(why.to_owned()), Instant::now());
    }

    /// Nobody waits for more of it.
    pub(crate) fn give_up(&mut self, why: &str) {
        if !self.is_over() {
            self.decide(why);
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over(..))
    }

    /// Whether the session is not waited for any more although it has not ended.
    pub(crate) fn has_left(&self) -> bool {
        self.is_over() && self.wake().is_some_and(|at| Instant::now() >= at)
    }

    /// When to be looked after at the latest.
    pub(crate) fn wake(&self) -> Option<Instant> {
        Some(match &self.stage {
            Stage::Signalled(_) => match self.order {
                KillOrder::Interrupt => self.begun + AFTER_INTERRUPT,
                KillOrder::Terminate => self.begun + REPLY,
            },
            Stage::Script(session) => session.wake(),
            Stage::Over(_, since) => match self.order {
                KillOrder::Interrupt => *since + LAST_WORDS,
                KillOrder::Terminate => (*since + LAST_WORDS).max(self.begun + LEAST_GRACE),
            },
        })
    }

    /// What is known of the command now.
    pub(crate) fn verdict(&self) -> KillVerdict {
        match &self.stage {
            Stage::Over(verdict, _) => verdict.clone(),
            _ => KillVerdict::NotConfirmed(
                "the connection was lost before the host had answered".to_owned(),
            ),
        }
    }
}

/// What the reply to a signal tells of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Proof {
    /// It runs what it is given.
    Runs,
    /// It has refused the signal.
    Refused,
    None,
}

impl Proof {
    fn of(connection: &Connection, answer: Option<bool>) -> Proof {
        let profile = connection.server_profile();
        let is_openssh = profile.is_some_and(|profile| is_openssh(&profile.identification));
        match answer {
            // Others signal whatever runs there: Dropbear (svr-chansession.c, sessionsignal).
            Some(true) if is_openssh => Proof::Runs,
            Some(false) => Proof::Refused,
            _ => Proof::None,
        }
    }
}

/// Whether the identification string is that of OpenSSH for a Unix.
fn is_openssh(identification: &str) -> bool {
    let software = identification.splitn(3, '-').nth(2).unwrap_or_default();
    let version = software.strip_prefix("OpenSSH_");
    version.is_some_and(|version| version.starts_with(|c: char| c.is_ascii_digit()))
}
