//! Signatures that take time: the agent's, and those of keys that a passphrase must unlock.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use sshoal_fleet::Failure;
use sshoal_proto::{Connection, SignatureRequest};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::answer::Shown;
use super::key::{LockedKey, UserKey};
use super::order::{Candidate, KeySigner};
use super::plan::LoginPlan;
use crate::agent::{Agent, Session, Signature, SignatureOrder, Trouble};

/// An agent that takes longer for a signature may have asked somebody (`ssh-add -c`): no person is as fast.
const UNASKED: Duration = Duration::from_millis(500);

/// Something that goes on besides the connection.
pub(super) type Work = Pin<Box<dyn Future<Output = WorkDone>>>;

/// What has been done.
pub(super) enum WorkDone {
    /// The agent's keys are known, or will never be.
    Listed,
    /// It is this signature's turn to be waited for with a touch.
    TurnToTouch(Signing),
    Signed(Result<Vec<u8>, Unsigned>),
    /// The host key that was shown, with what KnownHostsCommand says of the host.
    Consulted(Result<Box<Shown>, Failure>),
}

/// Why there is no signature.
pub(super) enum Unsigned {
    Agent(Trouble),
    /// The key stays locked.
    Locked(String),
}

/// Asks the agent for its keys.
pub(super) fn list(plan: &Arc<LoginPlan>, patience: Duration) -> Work {
    let agent = plan.agent.clone();
    Box::pin(async move {
        if let Some(agent) = agent {
            // Good or bad, the agent remembers the answer.
            let _ = agent.keys(patience).await;
        }
        WorkDone::Listed
    })
}

/// A signature to be made.
pub(super) struct Signing {
    pub(super) key: Arc<UserKey>,
    by: By,
    /// The turn, of a key that waits for a touch.
    turn: Option<OwnedSemaphorePermit>,
}

enum By {
    Agent(Arc<Agent>, SignatureOrder, Option<Duration>),
    Unlocking(Arc<LockedKey>, SignatureRequest),
    Nobody,
}

impl Signing {
    pub(super) fn new(
        candidate: &Candidate,
        plan: &LoginPlan,
        patience: Duration,
        connection: &Connection,
        request: SignatureRequest,
    ) -> Self {
        let by = match (&candidate.signer, &plan.agent) {
            (KeySigner::Locked(locked), _) => By::Unlocking(locked.clone(), request),
            (KeySigner::Agent(blob), Some(agent)) => {
                let order = order(blob, connection, request);
                // A touch is waited for until the login's own deadline.
                let patience = (!candidate.waits_for_touch()).then_some(patience);
                order.map_or(By::Nobody, |order| {
                    By::Agent(agent.clone(), order, patience)
                })
            }
            _ => By::Nobody,
        };
        Signing {
            key: candidate.key.clone(),
            by,
            turn: None,
        }
    }

    /// Waits until no other security key of the run waits for its touch.
    pub(super) fn wait_for_turn(mut self, touch: Arc<Semaphore>) -> Work {
        Box::pin(async move {
            // The semaphore is never closed.
            self.turn = touch.acquire_owned().await.ok();
            WorkDone::TurnToTouch(self)
        })
    }

    /// Has it made.
    pub(super) fn start(self) -> Work {
        Box::pin(async move {
            let result = match self.by {
                By::Agent(agent, order, patience) => {
                    let signed = agent.sign(order, patience).await;
                    signed
                        .map(|signature| take(signature, &self.key))
                        .map_err(Unsigned::Agent)
                }
                By::Unlocking(locked, request) => sign_unlocked(&locked, &request).await,
                By::Nobody => Err(Unsigned::Locked(format!(
                    "nobody signs with {}",
                    self.key.label
                ))),
            };
            drop(self.turn);
            WorkDone::Signed(result)
        })
    }
}

/// Notes how the agent treats the key.
fn take(signature: Signature, key: &UserKey) -> Vec<u8> {
    if signature.took < UNASKED {
        key.standing.signed_unasked();
    }
    signature.blob
}

/// What to ask the agent for; `None` before the session has an identifier, when no signature is asked for.
fn order(
    blob: &[u8],
    connection: &Connection,
    request: SignatureRequest,
) -> Option<SignatureOrder> {
    let (host_key, proof) = connection.host_key_proof()?;
    let known = sshoal_agent::KeyType::of_blob(blob).ok()??;
    let algorithm = known
        .algorithms
        .iter()
        .find(|algorithm| algorithm.signature == request.algorithm)?;
    Some(SignatureOrder {
        key: blob.to_vec(),
        algorithm: algorithm.name.to_owned(),
        data: request.data,
        session: Session {
            host_key: host_key.to_vec(),
            session_id: connection.session_id()?.to_vec(),
            proof: proof.to_vec(),
        },
    })
}

async fn sign_unlocked(
    locked: &LockedKey,
    request: &SignatureRequest,
) -> Result<Vec<u8>, Unsigned> {
    let private = locked.wait().await.map_err(Unsigned::Locked)?;
    private
        .sign(&request.algorithm, &request.data)
        .map_err(|error| Unsigned::Locked(error.to_string()))
}
