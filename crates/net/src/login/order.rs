//! Which keys are tried, in which order, and who signs with each.
//!
//! OpenSSH's order (sshconnect2.c, pubkey_prepare) with three differences, each of which saves a fleet round trips
//! and attempts (MaxAuthTries): keys that the user named come before keys that the agent merely holds; a certificate
//! comes before its own key; and keys that nobody named are ordered by what other hosts of the run made of them.

use std::sync::Arc;

use sshoal_crypto::PrivateKey;
use sshoal_proto::SignatureAlgorithm;

use super::key::{LockedKey, SecretHalf, UserKey};
use super::plan::LoginPlan;

/// A key to try.
#[derive(Clone)]
pub(crate) struct Candidate {
    pub(crate) key: Arc<UserKey>,
    /// What it may sign with, best first; at least one.
    pub(crate) algorithms: Vec<SignatureAlgorithm>,
    pub(crate) signer: KeySigner,
    /// Named by the user.
    pub(crate) named: bool,
}

impl Candidate {
    /// Whether a person must touch a security key for each signature.
    pub(crate) fn waits_for_touch(&self) -> bool {
        self.key.key_type.security_key
    }
}

/// Who signs.
#[derive(Clone)]
pub(crate) enum KeySigner {
    /// This process, at once.
    Held(Arc<PrivateKey>),
    /// This process, when the user has given the passphrase.
    Locked(Arc<LockedKey>),
    /// The agent, which knows the key by this blob.
    Agent(Vec<u8>),
}

/// Keys to try, as far as they are known.
pub(crate) struct Candidates {
    pub(crate) keys: Vec<Candidate>,
    /// Whether these are all. If not, the agent's keys decide what follows.
    pub(crate) complete: bool,
}

/// The keys of a plan in order. `agent_keys` is `None` while the agent has not been asked: the answer is then what
/// can be said without it, so that an agent is not asked in vain.
pub(crate) fn candidates(plan: &LoginPlan, agent_keys: Option<&[Arc<UserKey>]>) -> Candidates {
    let agent_keys = match plan.agent {
        Some(_) => agent_keys,
        None => Some(&[][..]),
    };
    let mut order = Order {
        plan,
        agent_keys,
        keys: Vec::new(),
    };
    let complete = order.add_named() && order.add_others();
    Candidates {
        keys: order.keys,
        complete,
    }
}

struct Order<'a> {
    plan: &'a LoginPlan,
    agent_keys: Option<&'a [Arc<UserKey>]>,
    keys: Vec<Candidate>,
}

/// What became of the search for a key's signer.
enum Found {
    Signer(KeySigner),
    Nobody,
    /// The agent might, or might know better.
    AskAgent,
}

impl Order<'_> {
    /// Keys and certificates that the user named, in the order given; false if the agent must be asked first.
    fn add_named(&mut self) -> bool {
        let plan = self.plan;
        let files = plan.files.iter().filter(|file| file.named);
        let named = files.flat_map(|file| file.certificate.iter().chain([&file.key]));
        plan.certificates
            .iter()
            .chain(named)
            .all(|key| self.add(key, true))
    }

    /// All other keys: those in files of the usual names that the agent holds, the agent's others, and the files
    /// that it does not hold.
    fn add_others(&mut self) -> bool {
        let plan = self.plan;
        let usual: Vec<&Arc<UserKey>> = plan
            .files
            .iter()
            .filter(|file| !file.named)
            .flat_map(|file| file.certificate.iter().chain([&file.key]))
            .collect();
        if self.agent_keys.is_none() && !plan.identities_only {
            return false;
        }
        let agent_keys = self.agent_keys.unwrap_or_default();
        let in_agent =
            |key: &&Arc<UserKey>| agent_keys.iter().any(|theirs| theirs.blob == key.blob);
        let (held, not_held): (Vec<&Arc<UserKey>>, Vec<&Arc<UserKey>>) =
            usual.into_iter().partition(in_agent);
        let agents_own = agent_keys.iter().filter(|_| !plan.identities_only);
        let mut others: Vec<&Arc<UserKey>> =
            held.into_iter().chain(agents_own).chain(not_held).collect();
        others.sort_by_key(|key| key.standing.rank());
        others.into_iter().all(|key| self.add(key, false))
    }

    fn add(&mut self, key: &Arc<UserKey>, named: bool) -> bool {
        let algorithms = self.plan.algorithms_of(key);
        let is_there = self.keys.iter().any(|have| have.key.blob == key.blob);
        if is_there || algorithms.is_empty() {
            return true;
        }
        match self.signer(key) {
            Found::Signer(signer) => self.keys.push(Candidate {
                key: key.clone(),
                algorithms,
                signer,
                named,
            }),
            Found::Nobody => {}
            Found::AskAgent => return false,
        }
        true
    }

    /// A key in memory signs fastest; then the agent, which asks for no passphrase; then an encrypted file.
    fn signer(&self, key: &UserKey) -> Found {
        let secrets = || {
            let files = self.plan.files.iter();
            files
                .filter(|file| file.key.plain == key.plain)
                .map(|file| &file.secret)
        };
        let held = secrets().find_map(|secret| match secret {
            SecretHalf::Held(private) => Some(private.clone()),
            SecretHalf::Locked(locked) => locked.unlocked().and_then(Result::ok),
            SecretHalf::Elsewhere => None,
        });
        if let Some(private) = held {
            return Found::Signer(KeySigner::Held(private));
        }
        let Some(agent_keys) = self.agent_keys else {
            return Found::AskAgent;
        };
        // A certificate from a file is signed for by its plain key (sshconnect2.c, sign_and_send_pubkey).
        let theirs = [&key.blob, &key.plain]
            .into_iter()
            .find(|blob| agent_keys.iter().any(|theirs| theirs.blob == **blob));
        if let Some(blob) = theirs {
            return Found::Signer(KeySigner::Agent(blob.clone()));
        }
        let locked = secrets().find_map(|secret| match secret {
            SecretHalf::Locked(locked) if self.plan.may_ask && locked.unlocked().is_none() => {
                Some(locked.clone())
            }
            _ => None,
        });
        match locked {
            Some(locked) => Found::Signer(KeySigner::Locked(locked)),
            None => Found::Nobody,
        }
    }
}

#[cfg(test)]
#[path = "order_tests.rs"]
mod tests;
