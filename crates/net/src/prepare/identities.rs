//! Private keys: read once, one passphrase prompt for the whole run.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use rustix::process::getuid;
use sshoal_crypto::{KeyFileError, PrivateKey};
use sshoal_proto::Secret;
use sshoal_ssh_config::{Authentication, PubkeyAuthentication};

use crate::plan::Identity;

/// Asks the user for a passphrase.
pub trait AskPassphrase {
    /// The passphrase of `path`, or `None` if nobody can be asked. `again` after a wrong one.
    fn ask(&mut self, path: &str, again: bool) -> Option<Secret>;
}

/// Nobody can be asked.
pub struct NoPassphrase;

impl AskPassphrase for NoPassphrase {
    fn ask(&mut self, _path: &str, _again: bool) -> Option<Secret> {
        None
    }
}

/// Why a private key that was asked for cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// It cannot be read.
    #[error("cannot read the private key {path}: {error}")]
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
    /// It is encrypted and there is no passphrase.
    #[error(
        "the private key {path} is encrypted; run on a terminal to be asked for its passphrase, or use ssh-agent"
    )]
    Encrypted {
        /// The file.
        path: String,
    },
    /// The passphrase was wrong too often.
    #[error("wrong passphrase for the private key {path}")]
    WrongPassphrase {
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
}

/// How often a passphrase is asked for (NumberOfPasswordPrompts' default).
const PROMPTS: usize = 3;

/// Keys by file, so that each is read and decrypted once.
pub(super) struct Keyring {
    passphrases: Box<dyn AskPassphrase>,
    /// The passphrase that worked last: often it opens the other keys as well.
    last: Option<Secret>,
    keys: HashMap<String, Option<Arc<PrivateKey>>>,
    sets: HashMap<Vec<String>, Arc<[Identity]>>,
}

impl Keyring {
    pub(super) fn new(passphrases: Box<dyn AskPassphrase>) -> Self {
        Keyring {
            passphrases,
            last: None,
            keys: HashMap::new(),
            sets: HashMap::new(),
        }
    }

    /// The identities of a host's settings, in order. Default files need not exist, named ones must be usable.
    pub(super) fn identities(
        &mut self,
        settings: &Authentication,
    ) -> Result<Arc<[Identity]>, IdentityError> {
        if settings.pubkey_authentication.value == PubkeyAuthentication::No {
            return Ok(Arc::default());
        }
        let paths: Vec<String> = settings
            .identity_files
            .iter()
            .map(|setting| setting.value.clone())
            .collect();
        if let Some(known) = self.sets.get(&paths) {
            return Ok(known.clone());
        }
        let mut identities = Vec::new();
        for setting in &settings.identity_files {
            let key = self.key(&setting.value, setting.is_configured())?;
            identities.extend(key.map(Identity::Key));
        }
        let identities: Arc<[Identity]> = identities.into();
        self.sets.insert(paths, identities.clone());
        Ok(identities)
    }

    fn key(
        &mut self,
        path: &str,
        required: bool,
    ) -> Result<Option<Arc<PrivateKey>>, IdentityError> {
        if let Some(known) = self.keys.get(path) {
            return Ok(known.clone());
        }
        let key = match self.load(path) {
            Ok(key) => Some(Arc::new(key)),
            Err(IdentityError::Unreadable { error, .. })
                if !required && error.kind() == io::ErrorKind::NotFound =>
            {
                None
            }
            // A default key that nobody can unlock now is skipped, as ssh in batch mode does.
            Err(IdentityError::Encrypted { .. }) if !required => None,
            Err(error) => return Err(error),
        };
        self.keys.insert(path.to_owned(), key.clone());
        Ok(key)
    }

    fn load(&mut self, path: &str) -> Result<PrivateKey, IdentityError> {
        let unreadable = |error| IdentityError::Unreadable {
            path: path.to_owned(),
            error,
        };
        let metadata = fs::metadata(path).map_err(unreadable)?;
        let mode = metadata.mode() & 0o777;
        if metadata.uid() == getuid().as_raw() && mode & 0o077 != 0 {
            return Err(IdentityError::Permissions {
                path: path.to_owned(),
                mode,
            });
        }
        let file = zeroize::Zeroizing::new(fs::read(path).map_err(unreadable)?);
        let passphrase = self.last.as_ref().map(Secret::expose);
        match PrivateKey::parse(&file, passphrase) {
            Ok(key) => Ok(key),
            Err(KeyFileError::Encrypted | KeyFileError::WrongPassphrase) => {
                self.unlock(path, &file)
            }
            Err(error) => Err(IdentityError::Unusable {
                path: path.to_owned(),
                error,
            }),
        }
    }

    fn unlock(&mut self, path: &str, file: &[u8]) -> Result<PrivateKey, IdentityError> {
        for prompt in 0..PROMPTS {
            let Some(passphrase) = self.passphrases.ask(path, prompt > 0) else {
                return Err(IdentityError::Encrypted {
                    path: path.to_owned(),
                });
            };
            match PrivateKey::parse(file, Some(passphrase.expose())) {
                Ok(key) => {
                    self.last = Some(passphrase);
                    return Ok(key);
                }
                Err(KeyFileError::WrongPassphrase) => {}
                Err(error) => {
                    return Err(IdentityError::Unusable {
                        path: path.to_owned(),
                        error,
                    });
                }
            }
        }
        Err(IdentityError::WrongPassphrase {
            path: path.to_owned(),
        })
    }
}
