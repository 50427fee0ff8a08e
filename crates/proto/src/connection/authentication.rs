//! User authentication: RFC 4252, RFC 4256, OpenSSH's host-bound public keys.

use std::time::Instant;

use sshoal_wire::{
    AuthMethod, Counted, NameList, ServiceRequest, UserauthDialect, UserauthInfoRequest,
    UserauthInfoResponse, UserauthRequest,
};

use super::{Connection, Login};
use crate::error::{ConnectionError, Misbehaviour};
use crate::event::{AuthenticationFailure, Event, Prompt, SignatureRequest};
use crate::pipelining::Pipelining;
use crate::secret::Secret;
use crate::settings::{Credential, PublicKeyCredential, SignatureAlgorithm, Signer, pipelining};

const SERVICE: &[u8] = b"ssh-userauth";
const NEXT_SERVICE: &[u8] = b"ssh-connection";

/// The authentication, by what it awaits.
pub(super) struct Authentication {
    service_accepted: bool,
    attempt: Attempt,
}

#[allow(
    clippy::enum_variant_names,
    reason = "states are named by what they expect"
)]
enum Attempt {
    /// The caller's next credential.
    ExpectCredential,
    /// SERVICE_ACCEPT, before the credential may be sent.
    ExpectService(Credential),
    /// The caller's signature by this key.
    ExpectSignature(Box<PublicKeyCredential>, SignatureAlgorithm),
    /// USERAUTH_PK_OK, or failure.
    ExpectPkOk(Box<PublicKeyCredential>, SignatureAlgorithm),
    /// Success or failure of a method.
    ExpectResult(UserauthDialect),
    /// The caller's answers to prompts.
    ExpectAnswers,
    /// The attempt failed, and a command travelled with it: UNIMPLEMENTED must name the command before
    /// another attempt may carry it again.
    ExpectDiscard(AuthenticationFailure),
}

impl Authentication {
    pub(super) fn new() -> Self {
        Authentication {
            service_accepted: false,
            attempt: Attempt::ExpectCredential,
        }
    }

    pub(super) fn awaits_service(&self) -> bool {
        !self.service_accepted
    }

    pub(super) fn dialect(&self) -> UserauthDialect {
        match &self.attempt {
            Attempt::ExpectResult(dialect) => *dialect,
            _ => UserauthDialect::PublicKey,
        }
    }
}

// What the caller answers.
impl Connection {
    /// Tries a credential; asked for by [`Event::AuthenticationNeeded`]. Does nothing if none was asked for.
    ///
    /// Where the server and the credential allow it, sessions opened before this travel in the same flight.
    ///
    /// # Errors
    ///
    /// The error that ended the connection, or a key of our own that cannot sign.
    pub fn authenticate(&mut self, credential: Credential) -> Result<(), ConnectionError> {
        self.check()?;
        let merged = self.merges_flights();
        let Login::Authenticating(authentication) = &mut self.login else {
            return Ok(());
        };
        if !matches!(authentication.attempt, Attempt::ExpectCredential) {
            return Ok(());
        }
        if !merged && authentication.awaits_service() {
            authentication.attempt = Attempt::ExpectService(credential);
            return Ok(());
        }
        let result = self.attempt(credential);
        result.map_err(|error| self.fail(error))
    }

    /// The signature blob for [`Event::SignatureNeeded`].
    ///
    /// # Errors
    ///
    /// The error that ended the connection.
    pub fn provide_signature(&mut self, signature: &[u8]) -> Result<(), ConnectionError> {
        self.check()?;
        let Login::Authenticating(authentication) = &mut self.login else {
            return Ok(());
        };
        match std::mem::replace(&mut authentication.attempt, Attempt::ExpectCredential) {
            Attempt::ExpectSignature(key, algorithm) => {
                let result = self.send_signed(&key, &algorithm, signature);
                result.map_err(|error| self.fail(error))
            }
            other => {
                authentication.attempt = other;
                Ok(())
            }
        }
    }

    /// There will be no signature (the agent refused): the caller may [`authenticate`](Self::authenticate)
    /// with something else.
    pub fn withhold_signature(&mut self) {
        if let Login::Authenticating(authentication) = &mut self.login
            && matches!(authentication.attempt, Attempt::ExpectSignature(..))
        {
            authentication.attempt = Attempt::ExpectCredential;
        }
    }

    /// There will be no answers: the caller may [`authenticate`](Self::authenticate) with something else,
    /// which ends the conversation (RFC 4252 section 5.1).
    pub fn withhold_answers(&mut self) {
        if let Login::Authenticating(authentication) = &mut self.login
            && matches!(authentication.attempt, Attempt::ExpectAnswers)
        {
            authentication.attempt = Attempt::ExpectCredential;
        }
    }

    /// Answers for [`Event::PromptsToAnswer`], one for each prompt.
    ///
    /// # Errors
    ///
    /// The error that ended the connection.
    pub fn answer_prompts(&mut self, answers: &[Secret]) -> Result<(), ConnectionError> {
        self.check()?;
        let Login::Authenticating(authentication) = &mut self.login else {
            return Ok(());
        };
        if !matches!(authentication.attempt, Attempt::ExpectAnswers) {
            return Ok(());
        }
        authentication.attempt = Attempt::ExpectResult(UserauthDialect::KeyboardInteractive);
        let responses: Vec<&[u8]> = answers.iter().map(Secret::expose).collect();
        // Room beforehand: growing would leave copies of the answers behind.
        self.outgoing.reserve(
            responses
                .iter()
                .map(|answer| answer.len() + 8)
                .sum::<usize>()
                + 512,
        );
        let result = self.send(|out| {
            UserauthInfoResponse {
                responses: Counted::from(&responses),
            }
            .encode(out)
        });
        result.map_err(|error| self.fail(error))
    }
}

// Sending.
impl Connection {
    pub(super) fn request_service(&mut self) -> Result<(), ConnectionError> {
        self.send(|out| {
            ServiceRequest {
                service_name: SERVICE,
            }
            .encode(out)
        })?;
        self.tell(Event::AuthenticationNeeded(None));
        Ok(())
    }

    pub(super) fn merges_flights(&self) -> bool {
        self.server
            .as_ref()
            .is_ok_and(|server| pipelining(&self.settings, server) == Pipelining::Exec)
    }

    fn attempt(&mut self, credential: Credential) -> Result<(), ConnectionError> {
        match credential {
            Credential::None => self.request(
                AuthMethod::None,
                Attempt::ExpectResult(UserauthDialect::PublicKey),
            ),
            Credential::Password(password) => {
                let method = AuthMethod::Password {
                    password: password.expose(),
                    new_password: None,
                };
                self.outgoing.reserve(password.expose().len() + 1024);
                self.request(method, Attempt::ExpectResult(UserauthDialect::Password))
            }
            Credential::KeyboardInteractive => {
                let method = AuthMethod::KeyboardInteractive {
                    language_tag: b"",
                    submethods: b"",
                };
                self.request(
                    method,
                    Attempt::ExpectResult(UserauthDialect::KeyboardInteractive),
                )
            }
            Credential::PublicKey(key) => self.attempt_key(key),
        }
    }

    fn request(&mut self, method: AuthMethod<'_>, next: Attempt) -> Result<(), ConnectionError> {
        let user = std::mem::take(&mut self.opening.user);
        let request = UserauthRequest {
            user_name: user.as_bytes(),
            service_name: NEXT_SERVICE,
            method,
        };
        let result = self.send(|out| request.encode(out));
        self.opening.user = user;
        self.login.expect(next);
        result
    }

    fn attempt_key(&mut self, key: PublicKeyCredential) -> Result<(), ConnectionError> {
        let Some(algorithm) = self.signature_algorithm(&key).cloned() else {
            self.tell(Event::AuthenticationNeeded(Some(
                AuthenticationFailure::default(),
            )));
            return Ok(());
        };
        if key.probe {
            let blob = key.blob.clone();
            let method = AuthMethod::PublicKey {
                algorithm: algorithm.request.as_bytes(),
                key: &blob,
                signature: None,
            };
            return self.request(
                method,
                Attempt::ExpectPkOk(Box::new(key), algorithm.clone()),
            );
        }
        self.sign(Box::new(key), algorithm)
    }

    fn sign(
        &mut self,
        key: Box<PublicKeyCredential>,
        algorithm: SignatureAlgorithm,
    ) -> Result<(), ConnectionError> {
        let mut data = Vec::with_capacity(512);
        self.with_key_method(&key, &algorithm, None, |user_name, method, session_id| {
            UserauthRequest {
                user_name,
                service_name: NEXT_SERVICE,
                method,
            }
            .put_signed_data(session_id, &mut data);
        });
        match &key.signer {
            Signer::Held(private) => {
                let signature = private.sign(&algorithm.signature, &data)?;
                self.send_signed(&key, &algorithm, &signature)
            }
            Signer::External => {
                let request = SignatureRequest {
                    algorithm: algorithm.signature.clone(),
                    key: key.blob.clone(),
                    data,
                };
                self.tell(Event::SignatureNeeded(request));
                if let Login::Authenticating(authentication) = &mut self.login {
                    authentication.attempt = Attempt::ExpectSignature(key, algorithm);
                }
                Ok(())
            }
        }
    }

    fn send_signed(
        &mut self,
        key: &PublicKeyCredential,
        algorithm: &SignatureAlgorithm,
        signature: &[u8],
    ) -> Result<(), ConnectionError> {
        let mut message = Vec::with_capacity(512);
        self.with_key_method(key, algorithm, Some(signature), |user_name, method, _| {
            UserauthRequest {
                user_name,
                service_name: NEXT_SERVICE,
                method,
            }
            .encode(&mut message);
        });
        self.send(|out| out.extend_from_slice(&message))?;
        self.login
            .expect(Attempt::ExpectResult(UserauthDialect::PublicKey));
        match key.pipeline && self.merges_flights() {
            true => self.open_session_ahead(),
            false => Ok(()),
        }
    }

    /// Gives `use_method` the public key method: host-bound where the server knows it (PROTOCOL section 3.1).
    fn with_key_method(
        &self,
        key: &PublicKeyCredential,
        algorithm: &SignatureAlgorithm,
        signature: Option<&[u8]>,
        use_method: impl FnOnce(&[u8], AuthMethod<'_>, &[u8]),
    ) {
        let Some(established) = self.established.as_deref() else {
            return;
        };
        let (algorithm, blob) = (algorithm.request.as_bytes(), key.blob.as_slice());
        let method = match established.hostbound {
            true => AuthMethod::HostboundPublicKey {
                algorithm,
                key: blob,
                signature,
                host_key: &established.host_key,
            },
            false => AuthMethod::PublicKey {
                algorithm,
                key: blob,
                signature,
            },
        };
        use_method(
            self.opening.user.as_bytes(),
            method,
            &established.session_id,
        );
    }

    /// The best algorithm of this key that the server takes (RFC 8308 section 3.1).
    fn signature_algorithm<'a>(
        &self,
        key: &'a PublicKeyCredential,
    ) -> Option<&'a SignatureAlgorithm> {
        let known = self
            .established
            .as_deref()
            .and_then(|established| established.signature_algorithms.as_deref());
        let accepted = |algorithm: &&SignatureAlgorithm| {
            known.is_none_or(|list| {
                list.split(',')
                    .any(|name| name == algorithm.signature || name == algorithm.request)
            })
        };
        key.algorithms
            .iter()
            .find(accepted)
            .or(key.algorithms.first())
    }
}

// The server's answers.
impl Connection {
    pub(super) fn handle_service_accept(&mut self, service: &[u8]) -> Result<(), ConnectionError> {
        let Login::Authenticating(authentication) = &mut self.login else {
            return Ok(());
        };
        if service != SERVICE {
            return Err(Misbehaviour::WrongService(crate::error::printable(service)).into());
        }
        authentication.service_accepted = true;
        match std::mem::replace(&mut authentication.attempt, Attempt::ExpectCredential) {
            Attempt::ExpectService(credential) => self.attempt(credential),
            other => {
                authentication.attempt = other;
                Ok(())
            }
        }
    }

    pub(super) fn handle_userauth_failure(
        &mut self,
        methods: NameList<'_>,
        partial_success: bool,
    ) -> Result<(), ConnectionError> {
        let Login::Authenticating(authentication) = &mut self.login else {
            return Ok(());
        };
        if !matches!(
            authentication.attempt,
            Attempt::ExpectResult(_) | Attempt::ExpectPkOk(..)
        ) {
            return Err(Misbehaviour::UnaskedReply {
                message: "USERAUTH_FAILURE",
            }
            .into());
        }
        let failure = AuthenticationFailure {
            methods: methods.iter().map(str::to_owned).collect(),
            partial_success,
        };
        if self.command_in_flight().is_some() {
            self.login.expect(Attempt::ExpectDiscard(failure));
            return Ok(());
        }
        self.login.expect(Attempt::ExpectCredential);
        self.tell(Event::AuthenticationNeeded(Some(failure)));
        Ok(())
    }

    /// UNIMPLEMENTED: proof that a command which travelled with a failed authentication was thrown away.
    pub(super) fn handle_unimplemented(&mut self, sequence: u32) -> Result<(), ConnectionError> {
        let Login::Authenticating(authentication) = &mut self.login else {
            return Ok(());
        };
        let Attempt::ExpectDiscard(failure) = &mut authentication.attempt else {
            return Ok(());
        };
        let failure = std::mem::take(failure);
        let Some((channel, in_flight)) = self.command_in_flight() else {
            return Ok(());
        };
        if in_flight != sequence {
            self.login.expect(Attempt::ExpectDiscard(failure));
            return Ok(());
        }
        self.take_back(channel);
        self.login.expect(Attempt::ExpectCredential);
        self.tell(Event::AuthenticationNeeded(Some(failure)));
        Ok(())
    }

    pub(super) fn handle_userauth_success(&mut self, now: Instant) -> Result<(), ConnectionError> {
        let Login::Authenticating(authentication) = &self.login else {
            return Ok(());
        };
        if !matches!(authentication.attempt, Attempt::ExpectResult(_)) {
            return Err(Misbehaviour::UnaskedReply {
                message: "USERAUTH_SUCCESS",
            }
            .into());
        }
        self.login = Login::Authenticated;
        self.keepalive.heard(now);
        self.tell(Event::Authenticated);
        self.open_waiting_channels()
    }

    pub(super) fn handle_pk_ok(&mut self, offered: &[u8]) -> Result<(), ConnectionError> {
        let Login::Authenticating(authentication) = &mut self.login else {
            return Ok(());
        };
        match std::mem::replace(&mut authentication.attempt, Attempt::ExpectCredential) {
            Attempt::ExpectPkOk(key, algorithm) if key.blob == offered => self.sign(key, algorithm),
            Attempt::ExpectPkOk(..) => Err(Misbehaviour::WrongPkOk.into()),
            _ => Err(Misbehaviour::UnaskedReply {
                message: "USERAUTH_PK_OK",
            }
            .into()),
        }
    }

    pub(super) fn handle_password_change(&mut self, prompt: &[u8]) -> Result<(), ConnectionError> {
        self.login.expect(Attempt::ExpectCredential);
        self.tell(Event::PasswordExpired {
            prompt: prompt.to_vec(),
        });
        Ok(())
    }

    pub(super) fn handle_info_request(
        &mut self,
        request: &UserauthInfoRequest<'_>,
    ) -> Result<(), ConnectionError> {
        self.login.expect(Attempt::ExpectAnswers);
        let prompts = request.prompts.iter().map(|prompt| Prompt {
            text: prompt.prompt.to_vec(),
            echo: prompt.echo,
        });
        let event = Event::PromptsToAnswer {
            name: request.name.to_vec(),
            instruction: request.instruction.to_vec(),
            prompts: prompts.collect(),
        };
        self.tell(event);
        Ok(())
    }
}

impl Login {
    /// Moves the authentication to what it awaits next.
    fn expect(&mut self, next: Attempt) {
        if let Login::Authenticating(authentication) = self {
            authentication.attempt = next;
        }
    }
}
