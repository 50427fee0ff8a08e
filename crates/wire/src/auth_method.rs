//! The method-specific part of USERAUTH_REQUEST.

use std::fmt;

use crate::{DecodeError, Decoder, Problem, Put, UserauthRequest};

/// How a user asks to be authenticated (RFC 4252, section 5, `method name` and what follows it).
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum AuthMethod<'a> {
    /// `none`: asks which methods there are (RFC 4252, section 5.2).
    None,
    /// `publickey` (RFC 4252, section 7).
    PublicKey {
        /// `public key algorithm name`: the signature algorithm, such as `rsa-sha2-512`.
        algorithm: &'a [u8],
        /// `public key blob`, which may be a certificate.
        key: &'a [u8],
        /// The signature over [`UserauthRequest::put_signed_data`]; without it the request is a probe.
        signature: Option<&'a [u8]>,
    },
    /// `publickey-hostbound-v00@openssh.com` (OpenSSH's PROTOCOL, 3.1): the signature covers the host key too.
    HostboundPublicKey {
        /// `public key algorithm name`
        algorithm: &'a [u8],
        /// `public key blob`
        key: &'a [u8],
        /// As in [`PublicKey`](Self::PublicKey).
        signature: Option<&'a [u8]>,
        /// `server host key`: the blob that the initial key exchange verified.
        host_key: &'a [u8],
    },
    /// `password` (RFC 4252, section 8).
    Password {
        /// The password, as UTF-8.
        password: &'a [u8],
        /// The password to change it to, in answer to USERAUTH_PASSWD_CHANGEREQ.
        new_password: Option<&'a [u8]>,
    },
    /// `keyboard-interactive` (RFC 4256, section 3.1).
    KeyboardInteractive {
        /// Deprecated by the RFC; empty.
        language_tag: &'a [u8],
        /// A hint which sub-methods the user prefers; usually empty.
        submethods: &'a [u8],
    },
}

const NONE: &str = "none";
const PUBLIC_KEY: &str = "publickey";
const HOSTBOUND: &str = "publickey-hostbound-v00@openssh.com";
const PASSWORD: &str = "password";
const KEYBOARD_INTERACTIVE: &str = "keyboard-interactive";

impl<'a> AuthMethod<'a> {
    /// The method's name on the wire.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::None => NONE,
            Self::PublicKey { .. } => PUBLIC_KEY,
            Self::HostboundPublicKey { .. } => HOSTBOUND,
            Self::Password { .. } => PASSWORD,
            Self::KeyboardInteractive { .. } => KEYBOARD_INTERACTIVE,
        }
    }

    pub(crate) fn decode(decoder: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        let name = decoder.field("method_name").string()?;
        if name == NONE.as_bytes() {
            Ok(Self::None)
        } else if name == PUBLIC_KEY.as_bytes() {
            let signed = decoder.field("has_signature").boolean()?;
            Ok(Self::PublicKey {
                algorithm: decoder.field("algorithm").string()?,
                key: decoder.field("key").string()?,
                signature: decode_signature(decoder, signed)?,
            })
        } else if name == HOSTBOUND.as_bytes() {
            let signed = decoder.field("has_signature").boolean()?;
            Ok(Self::HostboundPublicKey {
                algorithm: decoder.field("algorithm").string()?,
                key: decoder.field("key").string()?,
                host_key: decoder.field("host_key").string()?,
                signature: decode_signature(decoder, signed)?,
            })
        } else if name == PASSWORD.as_bytes() {
            let changing = decoder.field("changing").boolean()?;
            let password = decoder.field("password").string()?;
            let new_password = match changing {
                true => Some(decoder.field("new_password").string()?),
                false => None,
            };
            Ok(Self::Password {
                password,
                new_password,
            })
        } else if name == KEYBOARD_INTERACTIVE.as_bytes() {
            Ok(Self::KeyboardInteractive {
                language_tag: decoder.field("language_tag").string()?,
                submethods: decoder.field("submethods").string()?,
            })
        } else {
            Err(decoder.error(Problem::UnknownName))
        }
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.put_string(self.name().as_bytes());
        match *self {
            Self::None => {}
            Self::PublicKey { signature, .. } | Self::HostboundPublicKey { signature, .. } => {
                self.put_key(out, signature.is_some());
                if let Some(signature) = signature {
                    out.put_string(signature);
                }
            }
            Self::Password {
                password,
                new_password,
            } => {
                out.put_boolean(new_password.is_some());
                out.put_string(password);
                if let Some(new_password) = new_password {
                    out.put_string(new_password);
                }
            }
            Self::KeyboardInteractive {
                language_tag,
                submethods,
            } => {
                out.put_string(language_tag);
                out.put_string(submethods);
            }
        }
    }

    /// The fields of the public key methods that a signature covers.
    fn put_key(&self, out: &mut Vec<u8>, has_signature: bool) {
        if let Self::PublicKey { algorithm, key, .. }
        | Self::HostboundPublicKey { algorithm, key, .. } = *self
        {
            out.put_boolean(has_signature);
            out.put_string(algorithm);
            out.put_string(key);
        }
        if let Self::HostboundPublicKey { host_key, .. } = *self {
            out.put_string(host_key);
        }
    }
}

fn decode_signature<'a>(
    decoder: &mut Decoder<'a>,
    signed: bool,
) -> Result<Option<&'a [u8]>, DecodeError> {
    match signed {
        true => decoder.field("signature").string().map(Some),
        false => Ok(None),
    }
}

/// Shows the method's name only: the rest may be a password.
impl fmt::Debug for AuthMethod<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl UserauthRequest<'_> {
    /// Appends what a public key's signature covers (RFC 4252, section 7): the session identifier, then the request
    /// up to its signature, with `has_signature` set even if the signature is still to be made.
    ///
    /// For the methods of public keys; the others sign nothing.
    pub fn put_signed_data(&self, session_id: &[u8], out: &mut Vec<u8>) {
        out.put_string(session_id);
        out.put_u8(Self::NUMBER);
        out.put_string(self.user_name);
        out.put_string(self.service_name);
        out.put_string(self.method.name().as_bytes());
        self.method.put_key(out, true);
    }
}
