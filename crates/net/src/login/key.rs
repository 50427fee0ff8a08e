//! Keys that users log in with: their public half, what is known of it in this run, and who signs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use sshoal_agent::KeyType;
use sshoal_crypto::{PrivateKey, PublicKey, UserCertificate, fingerprint_sha256};
use tokio::sync::watch;
use zeroize::Zeroizing;

/// A public key or certificate. One value a key and run, so that what one host taught serves the others.
pub(crate) struct UserKey {
    pub(crate) key_type: &'static KeyType,
    /// As it travels in USERAUTH_REQUEST.
    pub(crate) blob: Vec<u8>,
    /// The plain key: of a certificate, the one inside.
    pub(crate) plain: Vec<u8>,
    /// How people know it: a file's path, or an agent's comment.
    pub(crate) label: String,
    /// Bits of an RSA key.
    pub(crate) rsa_bits: Option<usize>,
    pub(crate) standing: Standing,
}

impl UserKey {
    /// `None` for blobs of a type that nothing can be made of.
    pub(crate) fn new(blob: &[u8], label: impl Into<String>) -> Option<Self> {
        let key_type = KeyType::of_blob(blob).ok()??;
        let plain = match key_type.certificate {
            true => UserCertificate::parse(blob).ok()?.public_key().to_vec(),
            false => blob.to_vec(),
        };
        let inner = PublicKey::parse(&plain).ok()?;
        let is_rsa = inner.key_type() == "ssh-rsa";
        Some(UserKey {
            key_type,
            blob: blob.to_vec(),
            label: label.into(),
            rsa_bits: inner.bits().filter(|_| is_rsa),
            plain,
            standing: Standing::default(),
        })
    }

    /// Label and fingerprint, for messages.
    pub(crate) fn shown(&self) -> String {
        format!("{} ({})", self.label, fingerprint_sha256(&self.plain))
    }
}

/// What this run has seen of a key. Hosts read and write it without waiting for each other: it only guides.
#[derive(Default)]
pub(crate) struct Standing {
    accepted: AtomicU32,
    refused: AtomicU32,
    signs_unasked: AtomicBool,
    added: AtomicBool,
}

/// Where a key that nobody named stands in the order, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    Accepted,
    Untried,
    Refused,
}

impl Standing {
    pub(crate) fn rank(&self) -> Rank {
        match (
            self.accepted.load(Ordering::Relaxed),
            self.refused.load(Ordering::Relaxed),
        ) {
            (0, 0) => Rank::Untried,
            (0, _) => Rank::Refused,
            _ => Rank::Accepted,
        }
    }

    pub(crate) fn accepted(&self) {
        self.accepted.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether nobody has taken it upon himself yet to add the key to the agent: true once.
    pub(crate) fn is_to_be_added(&self) -> bool {
        !self.added.swap(true, Ordering::Relaxed)
    }

    /// Whether the agent has signed with it without asking anybody.
    pub(crate) fn signs_unasked(&self) -> bool {
        self.signs_unasked.load(Ordering::Relaxed)
    }

    pub(crate) fn signed_unasked(&self) {
        self.signs_unasked.store(true, Ordering::Relaxed);
    }
}

/// A private key file that was configured or has one of the usual names.
pub(crate) struct KeyFile {
    pub(crate) key: Arc<UserKey>,
    pub(crate) secret: SecretHalf,
    /// KEY-cert.pub beside it.
    pub(crate) certificate: Option<Arc<UserKey>>,
    /// Named by the user, not only found in its usual place.
    pub(crate) named: bool,
}

/// The private half of a key file.
#[derive(Clone)]
pub(crate) enum SecretHalf {
    /// In memory.
    Held(Arc<PrivateKey>),
    /// In memory, encrypted.
    Locked(Arc<LockedKey>),
    /// Not in the file: a public key, or the handle of a FIDO key. The agent may have it.
    Elsewhere,
}

/// An encrypted private key. Its passphrase is asked for at most once a run, whoever needs it.
pub(crate) struct LockedKey {
    pub(crate) path: String,
    pub(crate) file: Zeroizing<Vec<u8>>,
    outcome: watch::Sender<Option<Unlocked>>,
}

/// The key, or why it stays locked.
pub(crate) type Unlocked = Result<Arc<PrivateKey>, String>;

impl LockedKey {
    pub(crate) fn new(path: &str, file: Zeroizing<Vec<u8>>) -> Self {
        LockedKey {
            path: path.to_owned(),
            file,
            outcome: watch::Sender::new(None),
        }
    }

    pub(crate) fn settle(&self, outcome: Unlocked) {
        self.outcome.send_replace(Some(outcome));
    }

    /// How it was settled, if it was.
    pub(crate) fn unlocked(&self) -> Option<Unlocked> {
        self.outcome.borrow().clone()
    }

    /// Waits until the user has answered.
    pub(crate) async fn wait(&self) -> Unlocked {
        let mut outcome = self.outcome.subscribe();
        let settled = outcome.wait_for(Option::is_some).await;
        // The sender is a field of this value, so it cannot have gone.
        settled
            .ok()
            .and_then(|outcome| outcome.clone())
            .unwrap_or_else(|| Err(format!("{} was not unlocked", self.path)))
    }
}
