//! User authentication: RFC 4252, RFC 4256, OpenSSH's host-bound public keys.

mod answers;
mod requests;

use sshoal_wire::{Counted, UserauthDialect, UserauthInfoResponse};

use super::{Connection, Login};
use crate::error::{ConnectionError, Misbehaviour};
use crate::event::AuthenticationFailure;
use crate::secret::Secret;
use crate::settings::{Credential, PublicKeyCredential, SignatureAlgorithm};

/// Most refusals, prompts and other answers of the server before it lets the user in or the caller gives
/// up. OpenSSH's server allows six attempts (MaxAuthTries); an agent may hold dozens of keys.
const MAX_ROUNDS: u32 = 256;
/// Most octets of banners in one login. OpenSSH sends one (auth2.c, `userauth_banner`), PAM a few lines.
const MAX_BANNERS: usize = 256 * 1024;
/// What a banner costs beside its octets.
const BANNER_OVERHEAD: usize = 64;

/// The authentication, by what it awaits.
pub(super) struct Authentication {
    service_accepted: bool,
    attempt: Attempt,
    /// Answers to attempts so far.
    rounds: u32,
    /// Octets of banners so far, each counted with [`BANNER_OVERHEAD`].
    banners: usize,
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
            rounds: 0,
            banners: 0,
        }
    }

    /// Counts an answer of the server's.
    fn count_round(&mut self) -> Result<(), Misbehaviour> {
        self.rounds += 1;
        match self.rounds <= MAX_ROUNDS {
            true => Ok(()),
            false => Err(Misbehaviour::Flood {
                what: "rounds of authentication",
                limit: MAX_ROUNDS as usize,
            }),
        }
    }

    fn count_banner(&mut self, octets: usize) -> Result<(), Misbehaviour> {
        self.banners = self.banners.saturating_add(octets + BANNER_OVERHEAD);
        match self.banners <= MAX_BANNERS {
            true => Ok(()),
            false => Err(Misbehaviour::Flood {
                what: "octets of banners",
                limit: MAX_BANNERS,
            }),
        }
    }

    pub(super) fn awaits_service(&self) -> bool {
        !self.service_accepted
    }

    /// Whether the server owes SERVICE_ACCEPT and then an answer to a request that travelled with ours for the service.
    pub(super) fn awaits_service_and_answer(&self) -> bool {
        let asked = matches!(
            self.attempt,
            Attempt::ExpectResult(_) | Attempt::ExpectPkOk(..)
        );
        asked && self.awaits_service()
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
    /// Tries a credential; asked for by [`Event::AuthenticationNeeded`](crate::Event::AuthenticationNeeded). Does
    /// nothing if none was asked for.
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

    /// The signature blob for [`Event::SignatureNeeded`](crate::Event::SignatureNeeded).
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

    /// Answers for [`Event::PromptsToAnswer`](crate::Event::PromptsToAnswer), one for each prompt.
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

impl Login {
    /// Moves the authentication to what it awaits next.
    fn expect(&mut self, next: Attempt) {
        if let Login::Authenticating(authentication) = self {
            authentication.attempt = next;
        }
    }
}
