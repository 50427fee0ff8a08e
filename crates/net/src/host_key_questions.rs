//! StrictHostKeyChecking ask: the unknown keys of a run's hosts are gathered, shown in one prompt, and answered together.
//!
//! ```text
//!   login: UnknownKey -> hangs up; the fleet holds the host -> add -> put: one prompt of the observer's
//!                                                                      |
//!   the host starts anew, its key accepted <- yes <- answered <--------+-> no: the host has failed
//! ```
//!
//! A held host has no connection: a person may compare fingerprints for longer than a server waits for a login. Known
//! hosts go on meanwhile.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use sshoal_crypto::{PublicKey, fingerprint_sha256};
use sshoal_fleet::{Failure, FailureKind, HostId, JumpId, Progress};
use sshoal_targets::fold;
use tokio::sync::{mpsc, oneshot};

use crate::observer::Confirmation;
use crate::plan::{Endpoint, RunPlan};
use crate::trust::UnknownKey;
use crate::worker::Report;

/// How long a prompt waits for further hosts, where some have not shown their keys yet.
const GATHERED_FOR: Duration = Duration::from_secs(3);
/// How long the user may think about a prompt.
const ANSWER_PATIENCE: Duration = Duration::from_secs(600);

/// Who waits for an answer.
pub(crate) enum Asker {
    /// A host, which the fleet holds.
    Host(HostId),
    /// A jump host, whose login goes on with the answer.
    Jump(JumpId, oneshot::Sender<Result<(), Failure>>),
}

/// An unknown key, and who waits for the answer.
pub(crate) struct HostKeyQuestion {
    pub(crate) asker: Asker,
    pub(crate) unknown: Box<UnknownKey>,
}

impl HostKeyQuestion {
    pub(crate) fn endpoint<'p>(&self, plan: &'p RunPlan) -> &'p Endpoint {
        match self.asker {
            Asker::Host(host) => plan.endpoint(host),
            Asker::Jump(jump, _) => plan.jump(jump),
        }
    }

    /// Jump hosts first, then hosts in the order of the run.
    fn turn(&self) -> (bool, u32) {
        match self.asker {
            Asker::Host(host) => (true, host.0),
            Asker::Jump(jump, _) => (false, jump.0),
        }
    }
}

/// The questions of a run.
#[derive(Default)]
pub(crate) struct HostKeyQuestions {
    waiting: Vec<HostKeyQuestion>,
    /// When the first of those came.
    since: Option<Instant>,
    /// Those that the user sees now.
    put: Vec<HostKeyQuestion>,
    withdrawn: Arc<AtomicBool>,
}

/// One prompt, for the observer's thread.
pub(crate) struct HostKeyPrompt {
    /// Whole lines.
    pub(crate) text: String,
    /// The fingerprint, if there is but one: typed, it is a yes.
    pub(crate) fingerprint: Option<String>,
    answer_by: Instant,
    withdrawn: Arc<AtomicBool>,
    answers: mpsc::UnboundedSender<Report>,
}

impl HostKeyPrompt {
    /// Whether the answer is still of use.
    pub(crate) fn is_wanted(&self) -> bool {
        !self.withdrawn.load(Ordering::Relaxed) && Instant::now() < self.answer_by
    }

    /// Gives the answer. Without a coordinator nobody waits for it.
    pub(crate) fn answer(&self, answer: Confirmation) {
        let _ = self.answers.send(Report::HostKeysAnswered(answer));
    }
}

impl HostKeyQuestions {
    pub(crate) fn add(&mut self, question: HostKeyQuestion, now: Instant) {
        self.since.get_or_insert(now);
        self.waiting.push(question);
    }

    /// When the next prompt is due: at once if no host is still on its way to show its key, or behind a jump host that
    /// is asked about; else a while after the first question.
    pub(crate) fn due(&self, progress: &Progress) -> Option<Instant> {
        let since = self.since.filter(|_| self.put.is_empty())?;
        let Progress {
            waiting,
            backing_off,
            lookup,
            connect,
            login,
            ..
        } = progress;
        let all_are_here = waiting + backing_off + lookup + connect + login == 0;
        let mut askers = self.waiting.iter().map(|question| &question.asker);
        let is_jump = askers.any(|asker| matches!(asker, Asker::Jump(..)));
        match all_are_here || is_jump {
            true => Some(since),
            false => Some(since + GATHERED_FOR),
        }
    }

    /// The next prompt, if it is due.
    pub(crate) fn put(
        &mut self,
        now: Instant,
        progress: &Progress,
        plan: &RunPlan,
        answers: &mpsc::UnboundedSender<Report>,
    ) -> Option<HostKeyPrompt> {
        self.due(progress).filter(|due| *due <= now)?;
        self.since = None;
        self.put = std::mem::take(&mut self.waiting);
        self.put.sort_by_key(HostKeyQuestion::turn);
        let (text, fingerprint) = text(&self.put, plan);
        Some(HostKeyPrompt {
            text,
            fingerprint,
            answer_by: now + ANSWER_PATIENCE,
            withdrawn: self.withdrawn.clone(),
            answers: answers.clone(),
        })
    }

    /// The user has answered: those who were asked about.
    pub(crate) fn answered(&mut self) -> Vec<HostKeyQuestion> {
        std::mem::take(&mut self.put)
    }

    /// The run is being ended: nothing is asked any more.
    pub(crate) fn withdraw(&mut self) {
        self.withdrawn.store(true, Ordering::Relaxed);
        (self.waiting, self.put, self.since) = (Vec::new(), Vec::new(), None);
    }
}

/// What a host fails with if its key was not accepted.
pub(crate) fn not_accepted(unknown: &UnknownKey, answer: &Confirmation) -> Failure {
    let unknown = &unknown.detail;
    match answer {
        Confirmation::Unanswered => Failure::new(
            FailureKind::HostKeyUnknown,
            format!("{unknown}; nobody answered whether to accept it"),
        ),
        Confirmation::Nobody(why) => nobody(unknown, why),
        Confirmation::Yes | Confirmation::No => Failure::new(
            FailureKind::HostKeyUnknown,
            format!("{unknown}, and you did not accept it"),
        ),
    }
}

/// What a host fails with if there is nobody to ask.
pub(crate) fn nobody(unknown: &str, why: &str) -> Failure {
    let remedy = "run sshoal on a terminal to be asked, or add the host's key to known_hosts after checking its \
                  fingerprint; -o StrictHostKeyChecking=accept-new accepts the keys of all new hosts unseen";
    let detail = format!("{unknown}; {why}");
    Failure::with_remedy(FailureKind::HostKeyUnknown, detail, remedy)
}

/// The prompt's lines: each fingerprint once, with the folded names of its hosts; and the fingerprint, if it is the only
/// one.
fn text(questions: &[HostKeyQuestion], plan: &RunPlan) -> (String, Option<String>) {
    let labels = questions
        .iter()
        .map(|question| question.endpoint(plan).label.as_str());
    let mut text = match questions {
        [only] => {
            let label = &only.endpoint(plan).label;
            let address = only.unknown.address.map(|address| format!(" ({address})"));
            let address = address.unwrap_or_default();
            format!("The authenticity of {label}{address} can't be established.\n")
        }
        many => format!(
            "The authenticity of {} hosts can't be established: {}\n",
            many.len(),
            fold(labels)
        ),
    };
    let groups = by_key(questions, plan);
    for (key, labels) in &groups {
        let (kind, fingerprint) = (kind(key), fingerprint_sha256(key));
        text.push_str(&format!("  {kind} {fingerprint} {}\n", fold(labels)));
    }
    for (note, labels) in by_note(questions, plan) {
        text.push_str(&format!("  {}: {}\n", fold(labels), in_one_line(note)));
    }
    let fingerprint = match groups.as_slice() {
        [(key, _)] => Some(fingerprint_sha256(key)),
        _ => None,
    };
    (text, fingerprint)
}

/// A note may quote a certificate, which must draw no lines of its own.
fn in_one_line(note: &str) -> String {
    let shown = note.chars().map(|c| if c.is_control() { '?' } else { c });
    shown.collect()
}

/// The keys in the order of the hosts, each with the labels of those that have it.
fn by_key<'a>(
    questions: &'a [HostKeyQuestion],
    plan: &'a RunPlan,
) -> Vec<(&'a [u8], Vec<&'a str>)> {
    grouped(questions.iter().map(|question| {
        let label = question.endpoint(plan).label.as_str();
        (question.unknown.key.as_slice(), label)
    }))
}

/// The notes in the order of the hosts, each with the labels of those that it is about.
fn by_note<'a>(
    questions: &'a [HostKeyQuestion],
    plan: &'a RunPlan,
) -> Vec<(&'a str, Vec<&'a str>)> {
    let noted = questions.iter().flat_map(|question| {
        let label = question.endpoint(plan).label.as_str();
        let notes = question.unknown.notes.iter();
        notes.map(move |note| (note.as_str(), label))
    });
    grouped(noted)
}

/// Pairs by their first halves, in the order in which these come up.
fn grouped<'a, K: Copy + Eq + Hash>(
    pairs: impl Iterator<Item = (K, &'a str)>,
) -> Vec<(K, Vec<&'a str>)> {
    let mut places: HashMap<K, usize> = HashMap::new();
    let mut groups: Vec<(K, Vec<&str>)> = Vec::new();
    for (key, label) in pairs {
        let place = *places.entry(key).or_insert(groups.len());
        if place == groups.len() {
            groups.push((key, Vec::new()));
        }
        groups[place].1.push(label);
    }
    groups
}

/// A key's type as ssh shows it (`sshkey_type`, sshkey.c).
fn kind(blob: &[u8]) -> &'static str {
    let key = PublicKey::parse(blob);
    match key.as_ref().map_or("", |key| key.key_type()) {
        "ssh-ed25519" => "ED25519",
        "ssh-rsa" => "RSA",
        name if name.starts_with("ecdsa-") => "ECDSA",
        _ => "host key",
    }
}
