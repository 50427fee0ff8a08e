//! Private key files.

mod openssh;
mod pem;

use crate::public_key::PublicKey;
use crate::sign::PrivateKey;

use pem::Armor;

/// Why a private key file is of no use as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyFileError {
    /// It needs a passphrase, and none was given.
    #[error("the private key is encrypted: a passphrase is needed")]
    Encrypted,
    /// The passphrase does not open it.
    #[error("wrong passphrase for the private key")]
    WrongPassphrase,
    /// A form, a key or a cipher that this crate does not read.
    #[error("{0}")]
    Unsupported(String),
    /// Not a private key, or a damaged one.
    #[error("not a private key file, or a damaged one: {0}")]
    Malformed(&'static str),
}

/// Reads the one key of a file.
pub(crate) fn parse(file: &[u8], passphrase: Option<&[u8]>) -> Result<PrivateKey, KeyFileError> {
    let armor = Armor::read(file)?;
    match armor.label() {
        openssh::LABEL => openssh::parse(armor.body(), passphrase),
        _ => pem::parse(&armor, passphrase),
    }
}

/// The public key that stands in clear in an encrypted or plain file of OpenSSH's format; PEM files have none
/// that could be read without the passphrase.
pub(crate) fn public_key(file: &[u8]) -> Option<PublicKey> {
    let armor = Armor::read(file).ok()?;
    match armor.label() {
        openssh::LABEL => openssh::public_key(armor.body()),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
