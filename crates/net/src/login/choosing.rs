//! Which credential comes next, and how it is presented.

use std::sync::Arc;

use sshoal_agent::Constraints;
use sshoal_fleet::Failure;
use sshoal_proto::{Connection, Credential, PublicKeyCredential, SignatureRequest, Signer};
use sshoal_ssh_config::{AddKeys, AddKeysToAgent};

use super::denial::End;
use super::key::{Rank, UserKey};
use super::order::{Candidate, KeySigner, candidates};
use super::plan::Method;
use super::signing::{self, Signing};
use crate::agent::KeyAddition;

use super::{Login, Offer, PasswordState, Step, Wish};

impl Login<'_> {
    /// Takes note of what the server made of the last credential.
    pub(super) fn settle_offer(&mut self, accepted: bool) {
        match std::mem::replace(&mut self.offer, Offer::Nothing) {
            Offer::Nothing | Offer::None => {}
            Offer::Key(candidate) => match accepted {
                true => {
                    if !self.takes_each_step {
                        candidate.key.standing.accepted();
                    }
                    self.add_to_agent(&candidate);
                }
                false => {
                    // Logins that are measured try keys in the same order each time.
                    if !self.takes_each_step {
                        candidate.key.standing.refused();
                    }
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

    /// AddKeysToAgent: a key from a file has served.
    fn add_to_agent(&mut self, candidate: &Candidate) {
        let AddKeysToAgent { choice, lifetime } = self.plan.add_keys;
        let asks = choice == AddKeys::Ask;
        let Some(agent) = &self.plan.agent else {
            return;
        };
        if choice == AddKeys::No || (asks && !self.plan.may_ask) {
            return;
        }
        let private = match &candidate.signer {
            KeySigner::Held(private) => private.clone(),
            KeySigner::Locked(locked) => match locked.unlocked() {
                Some(Ok(private)) => private,
                _ => return,
            },
            KeySigner::Agent(_) => return,
        };
        if candidate.key.standing.is_to_be_added() {
            let addition = KeyAddition {
                socket: agent.socket().to_owned(),
                path: candidate.key.label.clone(),
                private,
                constraints: Constraints {
                    lifetime,
                    confirm: choice == AddKeys::Confirm,
                },
                asks,
            };
            self.wishes.push_back(Wish::AddKey(Arc::new(addition)));
        }
    }

    /// Tries the next credential, begins to find it out, or gives up.
    pub(super) fn choose(&mut self, connection: &mut Connection) -> Result<(), Failure> {
        if self.takes_each_step && self.methods.is_none() && matches!(self.offer, Offer::Nothing) {
            self.ask_for_methods(connection);
            return Ok(());
        }
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
    pub(super) fn list_rest(&mut self) {
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
        if self.takes_each_step {
            return true;
        }
        match &candidate.signer {
            KeySigner::Held(_) => false,
            KeySigner::Locked(_) => true,
            KeySigner::Agent(_) => {
                let is_expected = candidate.named
                    || candidate.key.standing.rank() == Rank::Accepted
                    || (self.keys.is_empty() && self.keys_complete);
                candidate.waits_for_touch() || !is_expected
            }
        }
    }

    pub(super) fn present_key(&mut self, connection: &mut Connection, probe: bool) {
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
            pipeline: pipeline && self.is_expected_to_suffice(&candidate.key, probe),
        };
        drop(connection.authenticate(Credential::PublicKey(credential)));
    }

    /// Whether the command may travel with the key's signature: not with one that is likely to be refused, since it
    /// may be the last that the server allows (MaxAuthTries), and a server that hangs up leaves open what became of
    /// the command.
    fn is_expected_to_suffice(&self, key: &UserKey, is_probed: bool) -> bool {
        let is_first = self.offered.len() <= 1;
        let is_known_good = key.standing.rank() == Rank::Accepted;
        !self.several && (is_first || is_probed || is_known_good)
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

    pub(super) fn sign(&mut self, connection: &Connection, request: SignatureRequest) {
        let Offer::Key(candidate) = &self.offer else {
            return;
        };
        if let KeySigner::Locked(locked) = &candidate.signer {
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
}
