//! Private keys and certificates in files, each read once. Nobody is asked for a passphrase here.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use rustix::process::getuid;
use sshoal_crypto::{KeyFileError, PrivateKey, PublicKey};
use zeroize::Zeroizing;

use crate::login::{LockedKey, SecretHalf, UserKey};

/// Largest key or certificate file, octets (authfile.c, MAX_KEY_FILE_SIZE).
const MAX_FILE: u64 = 1024 * 1024;

/// Why a key or certificate file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// It cannot be read.
    #[error("cannot read the key file {path}: {error}")]
    Unreadable {
        /// The file.
        path: String,
        /// Why.
        error: io::Error,
    },
    /// Others may read it: ssh refuses such keys too (authfile.c, sshkey_perm_ok).
    #[error("the private key {path} is open to others (mode {mode:04o}); run: chmod 600 {path}")]
    Permissions {
        /// The file.
        path: String,
        /// Its permission bits.
        mode: u32,
    },
    /// It is encrypted in a form that hides its public half too, and there is no file with that half.
    #[error(
        "the private key {path} is encrypted and its public half is not known; \
         write it beside: ssh-keygen -y -f {path} > {path}.pub"
    )]
    PublicUnknown {
        /// The file.
        path: String,
    },
    /// It is no private key, or of a kind that is not supported.
    #[error("the private key {path} cannot be used: {error}")]
    Unusable {
        /// The file.
        path: String,
        /// Why.
        error: KeyFileError,
    },
    /// It holds no certificate.
    #[error(
        "{path} holds no user certificate that can be used; sign one with: ssh-keygen -s CA_KEY -I ID KEY.pub"
    )]
    NoCertificate {
        /// The file.
        path: String,
    },
}

impl IdentityError {
    /// Whether the file is simply not there.
    pub(super) fn is_absent(&self) -> bool {
        matches!(self, IdentityError::Unreadable { error, .. } if error.kind() == io::ErrorKind::NotFound)
    }
}

/// What a key file holds.
#[derive(Clone)]
pub(super) struct KeyFileContent {
    pub(super) key: Arc<UserKey>,
    pub(super) secret: SecretHalf,
}

/// Files by path.
#[derive(Default)]
pub(super) struct KeyFiles {
    keys: HashMap<String, KeyFileContent>,
    certificates: HashMap<String, Arc<UserKey>>,
}

impl KeyFiles {
    /// The key of an IdentityFile: a private key, or a public one whose private half the agent has.
    pub(super) fn key(&mut self, path: &str) -> Result<KeyFileContent, IdentityError> {
        if let Some(known) = self.keys.get(path) {
            return Ok(known.clone());
        }
        let content = read_key(path)?;
        self.keys.insert(path.to_owned(), content.clone());
        Ok(content)
    }

    /// A certificate file.
    pub(super) fn certificate(&mut self, path: &str) -> Result<Arc<UserKey>, IdentityError> {
        if let Some(known) = self.certificates.get(path) {
            return Ok(known.clone());
        }
        let certificate = read_public(path)?
            .filter(|key| key.key_type.certificate)
            .ok_or_else(|| IdentityError::NoCertificate {
                path: path.to_owned(),
            })?;
        let certificate = Arc::new(certificate);
        self.certificates
            .insert(path.to_owned(), certificate.clone());
        Ok(certificate)
    }
}

fn read_key(path: &str) -> Result<KeyFileContent, IdentityError> {
    let file = match read(path) {
        Ok(file) => file,
        // Only the public half is here: the agent may have the other (sshkey_load_public looks there too).
        Err(error) if error.is_absent() => return public_beside(path)?.ok_or(error),
        Err(error) => return Err(error),
    };
    if let Some(key) = public_key(&file, path) {
        return Ok(elsewhere(key));
    }
    check_permissions(path)?;
    match PrivateKey::parse(&file, None) {
        Ok(private) => held(path, private),
        Err(KeyFileError::Encrypted) => locked(path, file),
        Err(error) => {
            let is_security_key = |key: &UserKey| key.key_type.security_key;
            match PublicKey::from_private_key_file(&file)
                .and_then(|public| UserKey::new(public.blob(), path))
                .filter(is_security_key)
            {
                Some(key) => Ok(elsewhere(key)),
                None => Err(IdentityError::Unusable {
                    path: path.to_owned(),
                    error,
                }),
            }
        }
    }
}

fn held(path: &str, private: PrivateKey) -> Result<KeyFileContent, IdentityError> {
    let key = UserKey::new(private.public_blob(), path).ok_or_else(|| IdentityError::Unusable {
        path: path.to_owned(),
        error: KeyFileError::Unsupported("keys of its type are not supported".to_owned()),
    })?;
    Ok(KeyFileContent {
        key: Arc::new(key),
        secret: SecretHalf::Held(Arc::new(private)),
    })
}

/// An encrypted key. OpenSSH's format shows its public half; for others KEY.pub is looked at.
fn locked(path: &str, file: Zeroizing<Vec<u8>>) -> Result<KeyFileContent, IdentityError> {
    let inside = PublicKey::from_private_key_file(&file)
        .and_then(|public| UserKey::new(public.blob(), path))
        .map(Arc::new);
    let key = match inside {
        Some(key) => key,
        None => {
            let beside = public_beside(path)?;
            let unknown = || IdentityError::PublicUnknown {
                path: path.to_owned(),
            };
            beside.ok_or_else(unknown)?.key
        }
    };
    // A FIDO key's handle may be encrypted too; what signs is the authenticator, through the agent.
    let secret = match key.key_type.security_key {
        true => SecretHalf::Elsewhere,
        false => SecretHalf::Locked(Arc::new(LockedKey::new(path, file))),
    };
    Ok(KeyFileContent { key, secret })
}

fn public_beside(path: &str) -> Result<Option<KeyFileContent>, IdentityError> {
    match read(&format!("{path}.pub")) {
        Ok(file) => Ok(public_key(&file, path).map(elsewhere)),
        Err(error) if error.is_absent() => Ok(None),
        Err(error) => Err(error),
    }
}

fn elsewhere(key: UserKey) -> KeyFileContent {
    KeyFileContent {
        key: Arc::new(key),
        secret: SecretHalf::Elsewhere,
    }
}

fn read_public(path: &str) -> Result<Option<UserKey>, IdentityError> {
    Ok(public_key(&read(path)?, path))
}

/// The first public key or certificate of a `.pub` file.
fn public_key(file: &[u8], label: &str) -> Option<UserKey> {
    let text = std::str::from_utf8(file).ok()?;
    let mut lines = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let (key, _) = PublicKey::from_openssh_line(lines.next()?).ok()?;
    UserKey::new(key.blob(), label)
}

fn read(path: &str) -> Result<Zeroizing<Vec<u8>>, IdentityError> {
    let unreadable = |error| IdentityError::Unreadable {
        path: path.to_owned(),
        error,
    };
    let length = fs::metadata(path).map_err(unreadable)?.len();
    if length > MAX_FILE {
        let error = io::Error::other(format!("it is longer than {MAX_FILE} octets"));
        return Err(unreadable(error));
    }
    fs::read(path).map(Zeroizing::new).map_err(unreadable)
}

fn check_permissions(path: &str) -> Result<(), IdentityError> {
    let metadata = fs::metadata(path).map_err(|error| IdentityError::Unreadable {
        path: path.to_owned(),
        error,
    })?;
    let mode = metadata.mode() & 0o777;
    match metadata.uid() == getuid().as_raw() && mode & 0o077 != 0 {
        true => Err(IdentityError::Permissions {
            path: path.to_owned(),
            mode,
        }),
        false => Ok(()),
    }
}
