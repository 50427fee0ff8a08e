//! What the client says in authentication: RFC 4252 sections 5 to 8, OpenSSH's host-bound public keys.

use sshoal_wire::{AuthMethod, ServiceRequest, UserauthDialect, UserauthRequest};

use super::Attempt;
use crate::connection::{Connection, Login};
use crate::error::ConnectionError;
use crate::event::{AuthenticationFailure, Event, SignatureRequest};
use crate::pipelining::Pipelining;
use crate::settings::{Credential, PublicKeyCredential, SignatureAlgorithm, Signer, pipelining};

/// RFC 4252 section 4: the service name of authentication itself.
pub(super) const SERVICE: &[u8] = b"ssh-userauth";
/// RFC 4252 section 5: the service to start after authentication.
const NEXT_SERVICE: &[u8] = b"ssh-connection";

impl Connection {
    pub(in crate::connection) fn request_service(&mut self) -> Result<(), ConnectionError> {
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

    pub(super) fn attempt(&mut self, credential: Credential) -> Result<(), ConnectionError> {
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

    pub(super) fn sign(
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

    pub(super) fn send_signed(
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

    /// Gives `use_method` the public key method: host-bound where the server knows it and nobody objects (PROTOCOL).
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
        let method = match established.hostbound && self.settings.binds_to_host_key {
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

    /// The best algorithm of this key that the server takes (RFC 8308 section 3.1). If it lists none of them, the
    /// best is tried all the same: OpenSSH 7.2 to 7.4 list nothing but RSA.
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
