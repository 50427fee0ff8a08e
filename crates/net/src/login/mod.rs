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

mod denial;
mod key;
mod order;
mod plan;
mod prompts;
mod signing;

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use sshoal_fleet::{Failure, FailureKind};
use sshoal_proto::{
    AuthenticationFailure, Connection, Credential, Prompt, PublicKeyCredential, Secret,
    SignatureRequest, Signer,
};

pub use plan::LoginPlan;

pub(crate) use key::{KeyFile, LockedKey, SecretHalf, UserKey};
pub(crate) use plan::Method;

use crate::plan::{HostPlan, RunPlan};
use denial::{Denial, End};
use order::{Candidate, KeySigner, candidates};
use prompts::Asked;
use signing::{Signing, Work, WorkDone};

/// The longest wait for an agent: a person may have to answer its question (`ssh-add -c`).
const LONGEST_PATIENCE: Duration = Duration::from_secs(30);

/// What a login wants done by others.
pub(crate) enum Wish {
    /// Wait at [`Gate::Signature`](sshoal_fleet::Gate::Signature), then call [`Login::handle_admitted`].
    ReachGate,
    /// Give the place at the gate back.
    LeaveGate,
    /// Tell the user.
    Say(String),
    /// Ask the user for the key's passphrase, and settle the key.
    Unlock(Arc<LockedKey>),
}

/// One host's login, from the first question to the last credential.
pub(crate) struct Login<'a> {
    plan: &'a Arc<LoginPlan>,
    /// Whom to log in where, for messages.
    user: &'a str,
    label: &'a str,
    /// How long the agent may take for an answer that needs nobody's touch.
    patience: Duration,
    /// The run's password, if there is one and this host may have it.
    password: Option<&'a Secret>,
    password_state: PasswordState,
    keys: VecDeque<Candidate>,
    /// Whether `keys` lacks nothing that the agent could add.
    keys_complete: bool,
    /// Blobs of keys that were offered.
    offered: Vec<Arc<UserKey>>,
    /// What the server judges now.
    offer: Offer,
    /// Methods that can continue; `None` until the server has said so.
    methods: Option<Vec<String>>,
    /// A credential was right, but did not suffice.
    several: bool,
    /// Interactive methods that were tried since a credential was last accepted.
    tried: Vec<Method>,
    step: Step,
    holds_gate: bool,
    wishes: VecDeque<Wish>,
    denial: Denial,
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
    pub(crate) fn new(host: &'a HostPlan, run: &'a RunPlan) -> Self {
        let found = candidates(&host.login, None);
        Login {
            plan: &host.login,
            user: &host.user,
            label: &host.label,
            patience: patience(run.deadlines.login),
            password: run.password.as_ref(),
            password_state: PasswordState::Unsent,
            keys: found.keys.into(),
            keys_complete: found.complete,
            offered: Vec::new(),
            offer: Offer::Nothing,
            methods: None,
            several: false,
            tried: Vec::new(),
            step: Step::Idle,
            holds_gate: false,
            wishes: VecDeque::new(),
            denial: Denial::default(),
        }
    }

    /// The host's key is not the one that is known, and the user wants to go on all the same: the server may be
    /// anybody, and gets no password (sshconnect.c, check_host_key).
    pub(crate) fn withhold_password(&mut self) {
        if self.password.take().is_some() {
            self.denial.note(
                "the password was not sent, because the host key is not the one that is known"
                    .to_owned(),
            );
        }
    }

    /// Whether more than one credential was asked for.
    pub(crate) fn took_several(&self) -> bool {
        self.several
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
            (Asked::NewPassword, _) => return Err(self.password_expired()),
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

    /// [`Event::Authenticated`](sshoal_proto::Event::Authenticated).
    pub(crate) fn handle_authenticated(&mut self) {
        self.settle_offer(true);
    }

    /// Goes on with what does not depend on the server. Ready when something has changed.
    pub(crate) fn poll_work(
        &mut self,
        context: &mut Context<'_>,
        connection: &mut Connection,
    ) -> Poll<Result<(), Failure>> {
        let Step::Working(work) = &mut self.step else {
            return Poll::Pending;
        };
        let done = ready!(work.as_mut().poll(context));
        self.step = Step::Idle;
        Poll::Ready(self.take_up(connection, done))
    }

    fn take_up(&mut self, connection: &mut Connection, done: WorkDone) -> Result<(), Failure> {
        match done {
            WorkDone::Listed => {
                self.list_rest();
                return self.choose(connection);
            }
            WorkDone::TurnToTouch(signing) => {
                self.wishes.push_back(Wish::Say(format!(
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

    /// The server wants a new password.
    pub(crate) fn password_expired(&self) -> Failure {
        let detail = format!(
            "logging in as {}: the server asks for a new password",
            self.user
        );
        Failure::new(FailureKind::PasswordExpired, detail)
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

// Choosing.
impl Login<'_> {
    /// Takes note of what the server made of the last credential.
    fn settle_offer(&mut self, accepted: bool) {
        match std::mem::replace(&mut self.offer, Offer::Nothing) {
            Offer::Nothing | Offer::None => {}
            Offer::Key(candidate) => match accepted {
                true => candidate.key.standing.accepted(),
                false => {
                    candidate.key.standing.refused();
                    self.denial.refused(&candidate.key);
                }
            },
            Offer::KeyboardInteractive | Offer::Password => {
                if self.password_state == PasswordState::Sent {
                    self.password_state = match accepted {
                        true => PasswordState::Unsent,
                        false => PasswordState::Refused,
                    };
                }
            }
        }
    }

    /// Tries the next credential, begins to find it out, or gives up.
    fn choose(&mut self, connection: &mut Connection) -> Result<(), Failure> {
        let plan = self.plan;
        let ours = plan.methods.iter().copied();
        for method in ours
            .filter(|method| self.server_takes(*method))
            .collect::<Vec<_>>()
        {
            let goes_on = match method {
                Method::PublicKey => self.choose_key(connection),
                Method::KeyboardInteractive => self.choose_keyboard_interactive(connection),
                Method::Password => self.choose_password(connection),
            };
            if goes_on {
                return Ok(());
            }
        }
        if self.methods.is_none() && matches!(self.offer, Offer::Nothing) {
            self.ask_for_methods(connection);
            return Ok(());
        }
        Err(self.denied())
    }

    fn server_takes(&self, method: Method) -> bool {
        let methods = self.methods.as_deref();
        methods.is_none_or(|names| names.iter().any(|name| name == method.name()))
    }

    /// "none" tells the methods at no cost in attempts (auth2.c), and lets in where nothing is asked for.
    fn ask_for_methods(&mut self, connection: &mut Connection) {
        self.offer = Offer::None;
        drop(connection.authenticate(Credential::None));
    }

    fn choose_key(&mut self, connection: &mut Connection) -> bool {
        if self.keys.is_empty() && !self.keys_complete {
            match self
                .plan
                .agent
                .as_ref()
                .and_then(|agent| agent.known_keys())
            {
                Some(_) => self.list_rest(),
                None => {
                    self.step = Step::Working(signing::list(self.plan, self.patience));
                    return true;
                }
            }
        }
        let Some(candidate) = self.keys.pop_front() else {
            return false;
        };
        self.offered.push(candidate.key.clone());
        let probe = self.wants_probe(&candidate);
        let signs_at_once = matches!(candidate.signer, KeySigner::Agent(_)) && !probe;
        self.offer = Offer::Key(candidate);
        if signs_at_once && !self.holds_gate {
            // Only now is it known how the agent treats the key: the signatures of the hosts before are made.
            self.wishes.push_back(Wish::ReachGate);
            self.step = Step::GateToOffer;
        } else {
            self.present_key(connection, probe);
        }
        true
    }

    /// Adds the keys that depend on the agent's.
    fn list_rest(&mut self) {
        let keys = match self
            .plan
            .agent
            .as_ref()
            .and_then(|agent| agent.known_keys())
        {
            Some(Ok(keys)) => keys,
            Some(Err(trouble)) => {
                self.denial.no_agent(trouble);
                &[]
            }
            None => &[],
        };
        self.keys = candidates(self.plan, Some(keys)).keys.into();
        let offered = &self.offered;
        self.keys
            .retain(|candidate| !offered.iter().any(|key| key.blob == candidate.key.blob));
        self.keys_complete = true;
    }

    /// A probe costs a round trip and sshd's delay; it spares a person a touch or a passphrase, and the agent a
    /// signature by a key that is probably not the right one.
    fn wants_probe(&self, candidate: &Candidate) -> bool {
        match &candidate.signer {
            KeySigner::Held(_) => false,
            KeySigner::Locked(_) => true,
            KeySigner::Agent(_) => {
                let is_expected = candidate.named
                    || candidate.key.standing.rank() == key::Rank::Accepted
                    || (self.keys.is_empty() && self.keys_complete);
                candidate.waits_for_touch() || !is_expected
            }
        }
    }

    fn present_key(&mut self, connection: &mut Connection, probe: bool) {
        let Offer::Key(candidate) = &self.offer else {
            return;
        };
        let (signer, pipeline) = match &candidate.signer {
            KeySigner::Held(private) => (Signer::Held(private.clone()), true),
            KeySigner::Locked(_) => (Signer::External, true),
            KeySigner::Agent(_) => {
                let unasked = candidate.key.standing.signs_unasked();
                (Signer::External, unasked && !candidate.waits_for_touch())
            }
        };
        let credential = PublicKeyCredential {
            blob: candidate.key.blob.clone(),
            algorithms: candidate.algorithms.clone(),
            signer,
            probe,
            // Where one credential did not suffice, the next may not either.
            pipeline: pipeline && !self.several,
        };
        drop(connection.authenticate(Credential::PublicKey(credential)));
    }

    fn choose_keyboard_interactive(&mut self, connection: &mut Connection) -> bool {
        let is_tried = self.tried.contains(&Method::KeyboardInteractive);
        if is_tried || !self.may_send_password() {
            return false;
        }
        self.offer_after_methods(connection, Offer::KeyboardInteractive);
        true
    }

    fn choose_password(&mut self, connection: &mut Connection) -> bool {
        if !self.may_send_password() {
            return false;
        }
        self.offer_after_methods(connection, Offer::Password);
        true
    }

    fn may_send_password(&self) -> bool {
        self.password.is_some() && self.password_state == PasswordState::Unsent
    }

    /// Offers a method that is about the password, once the server has said that it takes it.
    fn offer_after_methods(&mut self, connection: &mut Connection, offer: Offer) {
        if self.methods.is_none() {
            return self.ask_for_methods(connection);
        }
        let credential = match (&offer, self.password) {
            (Offer::Password, Some(password)) => {
                self.password_state = PasswordState::Sent;
                Credential::Password(password.clone())
            }
            _ => {
                self.tried.push(Method::KeyboardInteractive);
                Credential::KeyboardInteractive
            }
        };
        self.offer = offer;
        drop(connection.authenticate(credential));
    }

    fn sign(&mut self, connection: &Connection, request: SignatureRequest) {
        let Offer::Key(candidate) = &self.offer else {
            return;
        };
        if let KeySigner::Locked(locked) = &candidate.signer
            && locked.is_first_wanted()
        {
            self.wishes.push_back(Wish::Unlock(locked.clone()));
        }
        let signing = Signing::new(candidate, self.plan, self.patience, connection, request);
        self.step = Step::Working(match candidate.waits_for_touch() {
            true => signing.wait_for_turn(self.plan.touch.clone()),
            false => signing.start(),
        });
    }

    fn denied(&self) -> Failure {
        self.denial.failure(&End {
            user: self.user,
            plan: self.plan,
            methods: self.methods.as_deref(),
            password: self.password,
            password_state: self.password_state,
        })
    }

    /// The failure of a login that the server cut off, with the words it `said` about too many attempts.
    pub(crate) fn cut_off(&self, said: &str) -> Failure {
        let last = match &self.offer {
            Offer::Key(candidate) => Some(candidate.key.as_ref()),
            _ => None,
        };
        self.denial.too_many(self.user, said, last)
    }
}
