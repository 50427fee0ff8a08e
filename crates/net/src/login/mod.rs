//! Logging a user in: which credential follows which, on one connection.
//!
//! [`Login`] answers the connection's questions about authentication. It asks nobody itself: what it needs done
//! besides comes out of [`Login::poll_wish`], and what takes time (the agent's answers, a passphrase) goes on in
//! [`Login::poll_work`].
//!
//! ```text
//!   AuthenticationNeeded -> handle_needed -+-> next credential, or the failure
//!                                          +-> the agent's keys must be listed first (poll_work)
//!   SignatureNeeded -> handle_signature -> the fleet's gate (handle_admitted) -> signing (poll_work)
//!   PromptsToAnswer -> handle_prompts
//! ```
//!
//! Methods are tried in the order of PreferredAuthentications, as far as the server names them. Keys are offered in
//! the order of `order`: a key in memory signs at once; an agent's is probed first where it is one of many; an
//! encrypted one is probed before its passphrase is asked for. The password goes to a host once.

mod answer;
mod choosing;
mod denial;
mod foresight;
mod host_key;
mod key;
mod order;
mod plan;
mod prompts;
mod signing;

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use sshoal_fleet::{Failure, FailureKind, HostId};
use sshoal_proto::{AuthenticationFailure, Connection, Phase, Prompt, Secret, SignatureRequest};

pub(crate) use foresight::asks_nobody;
pub use foresight::logins_wait_for_touch;
pub use plan::LoginPlan;

pub(crate) use key::{KeyFile, LockedKey, SecretHalf, UserKey};
pub(crate) use plan::{ForeignMethod, Method};

use crate::agent::KeyAddition;
use crate::input::Input;
use crate::known_hosts::NewKeys;
use crate::plan::{Endpoint, HostTrust, RunPlan};
use crate::trust::{AddressName, UnknownKey};
use crate::worker::{Banner, Report, Worker};
use denial::Denial;
use order::{Candidate, candidates};
use prompts::Asked;
use signing::{Work, WorkDone};

/// The longest wait for an agent: a person may have to answer its question (`ssh-add -c`).
const LONGEST_PATIENCE: Duration = Duration::from_secs(30);

/// Most octets of banners that are shown of one login: two screens. A run has thousands of logins.
const MAX_BANNERS: usize = 4 * 1024;

/// What a login wants done by others.
pub(crate) enum Wish {
    /// Wait at [`Gate::Signature`](sshoal_fleet::Gate::Signature), then call [`Login::handle_admitted`].
    ReachGate,
    /// Give the place at the gate back.
    LeaveGate,
    /// Tell the user what to do.
    Demand(String),
    /// Show the user what the server says.
    Show(Banner),
    /// Add a key to the agent.
    AddKey(Arc<KeyAddition>),
    /// Ask the user for the key's passphrase, unless that has been done, and settle the key.
    Unlock(Arc<LockedKey>),
}

/// One host's login, from the first question to the last credential.
pub(crate) struct Login<'a> {
    plan: &'a Arc<LoginPlan>,
    /// How to tell that it is the right host.
    trust: &'a HostTrust,
    /// Whom to log in where, for messages.
    user: &'a str,
    label: &'a str,
    /// How long the agent may take for an answer that needs nobody's touch.
    patience: Duration,
    /// Whether the login is measured: each step is taken by itself, as ssh takes it.
    takes_each_step: bool,
    /// The run's password, if there is one and this host may have it.
    password: Option<&'a Secret>,
    password_state: PasswordState,
    /// The command reads a secret first, the password for sudo.
    feeds_secret: bool,
    keys: VecDeque<Candidate>,
    /// Whether `keys` lacks nothing that the agent could add.
    keys_complete: bool,
    /// Keys that were offered.
    offered: Vec<Arc<UserKey>>,
    /// What the server judges now.
    offer: Offer,
    /// Methods that can continue; `None` until the server has said so.
    methods: Option<Vec<String>>,
    /// A credential was right, but did not suffice.
    several: bool,
    /// Whether what the server accepted can be had again, and as often as is liked.
    is_repeatable: bool,
    /// Interactive methods that were tried since a credential was last accepted.
    tried: Vec<Method>,
    step: Step,
    holds_gate: bool,
    wishes: VecDeque<Wish>,
    /// Octets of banners that may still be shown.
    banners_left: usize,
    denial: Denial,
    /// Whether the user can be asked about an unknown host key, and the one to ask about.
    asks: bool,
    unknown_key: Option<Box<UnknownKey>>,
    /// Whether the server may tell further keys of its own, and the address that they are for as well.
    vouched: Option<Option<AddressName>>,
}

/// A credential on its way.
enum Offer {
    Nothing,
    /// "none": only to learn the methods.
    None,
    Key(Candidate),
    KeyboardInteractive,
    Password,
}

/// What became of the password on this host. It is never sent again once it was refused: accounts get locked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PasswordState {
    Unsent,
    Sent,
    Refused,
}

/// What the login waits for, besides the server.
enum Step {
    Idle,
    /// The gate, before a key is offered that the agent signs for at once.
    GateToOffer,
    /// The gate, before a signature that the server waits for.
    GateToSign(SignatureRequest),
    Working(Work),
}

impl<'a> Login<'a> {
    /// A login without a password.
    pub(crate) fn new(host: &'a Endpoint, run: &RunPlan) -> Self {
        let found = candidates(&host.login, None);
        Login {
            plan: &host.login,
            trust: &host.trust,
            user: &host.user,
            label: &host.label,
            patience: patience(run.deadlines.login),
            takes_each_step: run.timing.is_some(),
            password: None,
            password_state: PasswordState::Unsent,
            feeds_secret: false,
            keys: found.keys.into(),
            keys_complete: found.complete,
            offered: Vec::new(),
            offer: Offer::Nothing,
            methods: None,
            several: false,
            is_repeatable: false,
            tried: Vec::new(),
            step: Step::Idle,
            holds_gate: false,
            wishes: VecDeque::new(),
            banners_left: MAX_BANNERS,
            denial: Denial::default(),
            asks: run.asks,
            unknown_key: None,
            vouched: None,
        }
    }

    /// The login of one of the run's sessions: it may use the run's password, and its command reads the run's input.
    pub(crate) fn of_session(host: &'a Endpoint, run: &'a RunPlan) -> Self {
        Login {
            password: run.password.as_ref(),
            feeds_secret: run.input.as_ref().is_some_and(Input::begins_with_secret),
            ..Login::new(host, run)
        }
    }

    /// Whether the same could be done once more without asking anybody for anything.
    pub(crate) fn is_repeatable(&self) -> bool {
        self.is_repeatable && !self.several
    }

    /// Whether more than one credential was asked for.
    pub(crate) fn took_several(&self) -> bool {
        self.several
    }

    /// What the server judges now, for a reader.
    pub(crate) fn offered_now(&self) -> Option<String> {
        match &self.offer {
            Offer::Nothing => None,
            Offer::None => Some("none".to_owned()),
            Offer::Key(candidate) => Some(format!("publickey {}", candidate.key.shown())),
            Offer::KeyboardInteractive => Some("keyboard-interactive".to_owned()),
            Offer::Password => Some("password".to_owned()),
        }
    }

    /// The next thing that others are to do.
    pub(crate) fn poll_wish(&mut self) -> Option<Wish> {
        self.wishes.pop_front()
    }

    /// [`Event::AuthenticationNeeded`](sshoal_proto::Event::AuthenticationNeeded).
    pub(crate) fn handle_needed(
        &mut self,
        connection: &mut Connection,
        last: Option<AuthenticationFailure>,
    ) -> Result<(), Failure> {
        if let Some(failure) = last {
            self.settle_offer(failure.partial_success);
            if failure.partial_success {
                self.several = true;
                self.tried.clear();
            }
            self.methods = Some(failure.methods);
        }
        self.choose(connection)
    }

    /// [`Event::SignatureNeeded`](sshoal_proto::Event::SignatureNeeded).
    pub(crate) fn handle_signature(&mut self, connection: &Connection, request: SignatureRequest) {
        let waits_for_touch = match &self.offer {
            Offer::Key(candidate) => candidate.waits_for_touch(),
            _ => false,
        };
        if self.holds_gate || waits_for_touch {
            self.sign(connection, request);
        } else {
            self.wishes.push_back(Wish::ReachGate);
            self.step = Step::GateToSign(request);
        }
    }

    /// The gate is passed.
    pub(crate) fn handle_admitted(&mut self, connection: &mut Connection) {
        self.holds_gate = true;
        match std::mem::replace(&mut self.step, Step::Idle) {
            Step::GateToSign(request) => self.sign(connection, request),
            Step::GateToOffer => self.present_key(connection, false),
            other => self.step = other,
        }
    }

    /// [`Event::PromptsToAnswer`](sshoal_proto::Event::PromptsToAnswer).
    pub(crate) fn handle_prompts(
        &mut self,
        connection: &mut Connection,
        prompts: &[Prompt],
    ) -> Result<(), Failure> {
        match (prompts::asked(prompts), self.password) {
            // An error stays the connection's answer and comes back from its next call.
            (Asked::Nothing, _) => drop(connection.answer_prompts(&[])),
            (Asked::Password, Some(password)) if self.password_state == PasswordState::Unsent => {
                self.password_state = PasswordState::Sent;
                drop(connection.answer_prompts(std::slice::from_ref(password)));
            }
            (Asked::NewPassword, _) => {
                let said = prompts.first().map_or(&[][..], |prompt| &prompt.text);
                return Err(self.password_expired(said));
            }
            // A prompt again after the password, with no verdict between: PAM asks anew for a wrong one.
            (Asked::Password, _) if self.password_state == PasswordState::Sent => {
                self.password_state = PasswordState::Refused;
                connection.withhold_answers();
                return self.choose(connection);
            }
            _ => {
                if let Some(prompt) = prompts.first() {
                    self.denial.note(denial::unanswered(prompt));
                }
                connection.withhold_answers();
                return self.choose(connection);
            }
        }
        Ok(())
    }

    /// [`Event::Banner`](sshoal_proto::Event::Banner).
    pub(crate) fn handle_banner(&mut self, mut text: Vec<u8>) {
        text.truncate(self.banners_left);
        self.banners_left -= text.len();
        if !text.is_empty() {
            let from = self.label.to_owned();
            self.wishes.push_back(Wish::Show(Banner { from, text }));
        }
    }

    /// Shows what the server has said, when the login has come to its end: often it is the reason. Nothing else is
    /// wanted any more.
    pub(crate) fn show_last_banners(&mut self, worker: &Worker, of: Option<HostId>) {
        while let Some(wish) = self.poll_wish() {
            if let Wish::Show(banner) = wish {
                worker.report(Report::Banner(of, banner));
            }
        }
    }

    /// [`Event::Authenticated`](sshoal_proto::Event::Authenticated).
    pub(crate) fn handle_authenticated(&mut self) {
        self.is_repeatable = match &self.offer {
            Offer::Nothing | Offer::None => true,
            Offer::Key(candidate) => !candidate.waits_for_touch(),
            // What else was asked there may be good for once only.
            Offer::KeyboardInteractive => false,
            Offer::Password => true,
        };
        self.settle_offer(true);
    }

    /// Goes on with what does not depend on the server. Ready when something has changed.
    pub(crate) fn poll_work(
        &mut self,
        context: &mut Context<'_>,
        connection: &mut Connection,
        new_keys: &NewKeys,
    ) -> Poll<Result<(), Failure>> {
        let Step::Working(work) = &mut self.step else {
            return Poll::Pending;
        };
        let done = ready!(work.as_mut().poll(context));
        self.step = Step::Idle;
        Poll::Ready(match done {
            WorkDone::Consulted(Ok(shown)) => self.judge(connection, &shown, new_keys),
            done => self.take_up(connection, done),
        })
    }

    fn take_up(&mut self, connection: &mut Connection, done: WorkDone) -> Result<(), Failure> {
        match done {
            WorkDone::Listed => {
                self.list_rest();
                return self.choose(connection);
            }
            WorkDone::Consulted(shown) => {
                connection.refuse_host_key();
                return shown.map(drop);
            }
            WorkDone::TurnToTouch(signing) => {
                self.wishes.push_back(Wish::Demand(format!(
                    "touch the security key to log in to {}: {}",
                    self.label,
                    signing.key.shown()
                )));
                self.step = Step::Working(signing.start());
                return Ok(());
            }
            WorkDone::Signed(result) => {
                self.leave_gate();
                match result {
                    // An error stays the connection's answer and comes back from its next call.
                    Ok(signature) => drop(connection.provide_signature(&signature)),
                    Err(problem) => {
                        self.denial.unsigned(problem);
                        self.offer = Offer::Nothing;
                        connection.withhold_signature();
                        return self.choose(connection);
                    }
                }
            }
        }
        Ok(())
    }

    /// The server wants a new password, and `said` so.
    pub(crate) fn password_expired(&self, said: &[u8]) -> Failure {
        let detail = format!(
            "logging in as {}: the server asks for a new password: {}",
            self.user,
            denial::quoted(said)
        );
        Failure::new(FailureKind::PasswordExpired, detail)
    }

    /// The failure of a connection that ended `during` this phase, with what the login knows of the reason.
    pub(crate) fn explained(&self, failure: Failure, during: Phase) -> Failure {
        let last = match &self.offer {
            Offer::Key(candidate) => Some(candidate.key.as_ref()),
            _ => None,
        };
        let password = self.password_state;
        match failure.kind {
            FailureKind::AuthDenied => self.denial.too_many(self.user, &failure.detail, last),
            FailureKind::Closed if during == Phase::Authentication => {
                let denied = self.denial.hung_up(self.user, &failure.detail, password);
                denied.unwrap_or(failure)
            }
            _ => failure,
        }
    }

    fn leave_gate(&mut self) {
        if std::mem::take(&mut self.holds_gate) {
            self.wishes.push_back(Wish::LeaveGate);
        }
    }
}

/// Half of what the login may take, so that a silent agent is named and there is time left for other keys.
fn patience(deadline: Option<Duration>) -> Duration {
    deadline.map_or(LONGEST_PATIENCE, |deadline| {
        (deadline / 2).min(LONGEST_PATIENCE)
    })
}
