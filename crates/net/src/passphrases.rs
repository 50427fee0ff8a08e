//! Passphrases of key files: asked for once a run, by the thread that owns the terminal.

use std::io;
use std::sync::Arc;

use sshoal_crypto::{KeyFileError, PrivateKey};
use sshoal_proto::Secret;

use crate::login::LockedKey;
use crate::observer::Observer;

/// How often a passphrase is asked for (readconf.c, NumberOfPasswordPrompts).
const PROMPTS: usize = 3;

/// What was learnt from earlier questions.
#[derive(Default)]
pub(crate) struct Passphrases {
    /// The passphrase that worked last: often it opens the other keys as well.
    last: Option<Secret>,
}

impl Passphrases {
    /// Unlocks the key, or settles that it stays locked, the first time it is asked to. Returns when the user has answered, or when nobody wants
    /// the answer any more.
    pub(crate) fn unlock(
        &mut self,
        key: &LockedKey,
        observer: &mut impl Observer,
        wanted: &dyn Fn() -> bool,
    ) -> io::Result<()> {
        if key.unlocked().is_some() {
            return Ok(());
        }
        let last = self.last.as_ref().map(Secret::expose);
        if let Some(Ok(private)) =
            last.map(|passphrase| PrivateKey::parse(&key.file, Some(passphrase)))
        {
            key.settle(Ok(Arc::new(private)));
            return Ok(());
        }
        for prompt in 0..PROMPTS {
            let question = match prompt {
                0 => format!("Enter passphrase for key '{}': ", key.path),
                _ => format!("Bad passphrase, try again for '{}': ", key.path),
            };
            let Some(passphrase) = observer.ask(&question, wanted)? else {
                key.settle(Err(format!("there was no passphrase for {}", key.path)));
                return Ok(());
            };
            match PrivateKey::parse(&key.file, Some(passphrase.expose())) {
                Ok(private) => {
                    self.last = Some(passphrase);
                    key.settle(Ok(Arc::new(private)));
                    return Ok(());
                }
                Err(KeyFileError::WrongPassphrase) => {}
                Err(error) => {
                    key.settle(Err(format!("{} cannot be used: {error}", key.path)));
                    return Ok(());
                }
            }
        }
        key.settle(Err(format!("wrong passphrase for {}", key.path)));
        Ok(())
    }
}
