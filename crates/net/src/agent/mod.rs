//! An ssh-agent, as the hosts of a run share it.
//!
//! Its keys are listed once. A signature gets a connection of its own, bound to the host's session
//! (PROTOCOL.agent, session-bind@openssh.com), because an agent binds a connection once and for all. A connection
//! to an agent that does not bind is kept for the next signature. How many are in flight at a time is the
//! fleet's to say ([`Gate::Signature`](sshoal_fleet::Gate::Signature)).

mod addition;
mod exchange;
mod forwarding;

use std::io;
use std::os::unix::net::UnixStream as IdleStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use sshoal_agent::{ConnectionError, RequestError, SessionBind};
use sshoal_fleet::{Failure, FailureKind};
use tokio::net::UnixStream;
use tokio::sync::{OnceCell, Semaphore};

use crate::login::UserKey;
use exchange::Exchange;

pub(crate) use addition::KeyAddition;
pub(crate) use forwarding::AgentForwarding;

/// Pause before another attempt to connect to an agent whose queue of connections is full.
const CONNECT_PAUSE: Duration = Duration::from_millis(10);
/// Connections kept for further signatures.
const MAX_IDLE: usize = 16;
/// Requests of hosts that the agent is asked at a time, in the whole run: it serves one after the other.
const FORWARDED_AT_ONCE: usize = 8;
/// Requests of one host among them: who asks for much waits for himself alone.
const FORWARDED_OF_A_HOST: usize = 1;
/// How long the agent may take over a request of a host: a person may have to confirm it, or to touch a key.
const FORWARDED_PATIENCE: Duration = Duration::from_secs(60);

/// What an agent failed to do, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trouble {
    pub(crate) detail: String,
    pub(crate) remedy: String,
}

impl Trouble {
    pub(crate) fn failure(&self, to: &str) -> Failure {
        let detail = format!("{to}: {}", self.detail);
        Failure::with_remedy(FailureKind::Agent, detail, self.remedy.as_str())
    }
}

impl From<RequestError> for Trouble {
    fn from(error: RequestError) -> Self {
        Trouble {
            detail: error.to_string(),
            remedy: error.remedy().to_owned(),
        }
    }
}

/// What a signature is for.
pub(crate) struct SignatureOrder {
    /// Key or certificate, by which the agent knows it.
    pub(crate) key: Vec<u8>,
    /// The authentication algorithm for that blob.
    pub(crate) algorithm: String,
    /// What to sign.
    pub(crate) data: Vec<u8>,
    pub(crate) session: Session,
}

/// The session that a signature logs in to.
pub(crate) struct Session {
    pub(crate) host_key: Vec<u8>,
    pub(crate) session_id: Vec<u8>,
    /// The host key's signature of it.
    pub(crate) proof: Vec<u8>,
}

/// A host that the agent is forwarded to.
struct Asker {
    session: Session,
    turns: Semaphore,
}

/// A signature, and how long the agent took.
pub(crate) struct Signature {
    pub(crate) blob: Vec<u8>,
    pub(crate) took: Duration,
}

/// An agent, by its socket.
pub(crate) struct Agent {
    socket: String,
    keys: OnceCell<Result<Vec<Arc<UserKey>>, Trouble>>,
    /// Connections that are bound to no session and have nothing in flight.
    idle: Mutex<Vec<IdleStream>>,
    /// Answers so far: tells a slow agent from a hung one.
    answers: AtomicU64,
    /// Set once the agent has let a whole patience pass without any answer to anybody.
    hung: OnceLock<Trouble>,
    /// Turns of hosts that it is forwarded to.
    forwarded: Semaphore,
}

impl Agent {
    pub(crate) fn new(socket: &str) -> Self {
        Agent {
            socket: socket.to_owned(),
            keys: OnceCell::new(),
            idle: Mutex::default(),
            answers: AtomicU64::new(0),
            hung: OnceLock::new(),
            forwarded: Semaphore::new(FORWARDED_AT_ONCE),
        }
    }

    /// Where it listens.
    pub(crate) fn socket(&self) -> &str {
        &self.socket
    }

    /// The keys that the agent holds, in its order; asked for once a run, whether it works or not.
    pub(crate) async fn keys(&self, patience: Duration) -> Result<&[Arc<UserKey>], &Trouble> {
        let keys = self.keys.get_or_init(|| self.list(patience)).await;
        keys.as_ref().map(Vec::as_slice)
    }

    /// The keys, if they have been asked for.
    pub(crate) fn known_keys(&self) -> Option<Result<&[Arc<UserKey>], &Trouble>> {
        Some(self.keys.get()?.as_ref().map(Vec::as_slice))
    }

    async fn list(&self, patience: Duration) -> Result<Vec<Arc<UserKey>>, Trouble> {
        let listing = async {
            let mut exchange = Exchange::new(self.connect().await?);
            let identities = exchange.identities().await?;
            self.keep(exchange);
            Ok(identities)
        };
        let identities = self.patiently(Some(patience), listing).await?;
        let usable = |identity: &sshoal_agent::Identity| {
            UserKey::new(&identity.key, identity.comment.as_str()).map(Arc::new)
        };
        Ok(identities.iter().filter_map(usable).collect())
    }

    /// A signature. `patience` is `None` where a person must act first.
    pub(crate) async fn sign(
        &self,
        order: SignatureOrder,
        patience: Option<Duration>,
    ) -> Result<Signature, Trouble> {
        let signing = async {
            let mut exchange = Exchange::new(self.connect().await?);
            let Session {
                host_key,
                session_id,
                proof,
            } = &order.session;
            let bind = SessionBind {
                host_key,
                session_id,
                signature: proof,
                is_forwarding: false,
            };
            let bound = match exchange.bind(bind).await {
                Ok(bound) => bound,
                // Some agents know no better answer to an extension than to hang up. Others end idle connections.
                Err(_) => {
                    exchange = Exchange::new(self.reach().await?);
                    false
                }
            };
            let asked = Instant::now();
            let blob = exchange
                .sign(&order.key, &order.algorithm, &order.data)
                .await?;
            let took = asked.elapsed();
            if !bound {
                self.keep(exchange);
            }
            Ok(Signature { blob, took })
        };
        self.patiently(patience, signing).await
    }

    /// Passes on a request that came over a session by which the agent is forwarded. The connection lasts for this one
    /// request, so that a host that keeps its own open holds nobody up; it is bound to the session, and then by
    /// `binds`, what a client on that host bound its own to. `None` if the agent gives no answer in time, which is
    /// counted from when it is asked: turns come in the order of the hosts' requests. `None`, too, if the connection
    /// does not survive the first of them.
    async fn pass_on(&self, asker: &Asker, binds: &[Vec<u8>], request: &[u8]) -> Option<Vec<u8>> {
        let session = &asker.session;
        // Neither semaphore is ever closed.
        let _own = asker.turns.acquire().await.ok();
        let _turn = self.forwarded.acquire().await.ok();
        let asking = async {
            let mut exchange = Exchange::new(self.reach().await.ok()?);
            let bind = SessionBind {
                host_key: &session.host_key,
                session_id: &session.session_id,
                signature: &session.proof,
                is_forwarding: true,
            };
            // An agent that refuses remembers that, and keeps back keys that are meant for certain hosts (ssh-agent.c,
            // session_bind_attempted). To another connection it would give them: it would take the host for this machine.
            exchange.bind(bind).await.ok()?;
            for bind in binds {
                exchange.pass_on(bind).await.ok()?;
            }
            exchange.pass_on(request).await.ok()
        };
        tokio::time::timeout(FORWARDED_PATIENCE, asking)
            .await
            .ok()
            .flatten()
    }

    /// Bounds the wait for the agent, and remembers an agent that answers nobody.
    async fn patiently<T>(
        &self,
        patience: Option<Duration>,
        work: impl Future<Output = Result<T, Trouble>>,
    ) -> Result<T, Trouble> {
        if let Some(trouble) = self.hung.get() {
            return Err(trouble.clone());
        }
        let Some(patience) = patience else {
            return work.await;
        };
        let answers = self.answers.load(Ordering::Relaxed);
        if let Ok(result) = tokio::time::timeout(patience, work).await {
            self.answers.fetch_add(1, Ordering::Relaxed);
            return result;
        }
        let trouble = self.silence(patience);
        if self.answers.load(Ordering::Relaxed) == answers {
            // Whoever asked at the same time may have been faster to notice.
            let _ = self.hung.set(trouble.clone());
        }
        Err(trouble)
    }

    fn silence(&self, patience: Duration) -> Trouble {
        Trouble {
            detail: format!(
                "the ssh-agent at {} did not answer within {} s",
                self.socket,
                patience.as_secs_f32()
            ),
            remedy: "check with `ssh-add -l` that the agent answers, and answer its question if it asks one; \
                     or name an unencrypted key with -i"
                .to_owned(),
        }
    }

    async fn connect(&self) -> Result<UnixStream, Trouble> {
        let idle = self
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        match idle.map(UnixStream::from_std) {
            Some(Ok(stream)) => Ok(stream),
            _ => self.reach().await,
        }
    }

    /// A new connection.
    async fn reach(&self) -> Result<UnixStream, Trouble> {
        loop {
            match UnixStream::connect(&self.socket).await {
                Ok(stream) => return Ok(stream),
                // unix(7): a full queue is no reason to wait in the kernel for a non-blocking socket.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    tokio::time::sleep(CONNECT_PAUSE).await;
                }
                Err(error) => {
                    return Err(Trouble {
                        detail: format!("cannot reach the ssh-agent at {}: {error}", self.socket),
                        remedy: ConnectionError::Closed.remedy().to_owned(),
                    });
                }
            }
        }
    }

    /// Keeps a connection for somebody else. One that cannot be kept is closed.
    fn keep(&self, exchange: Exchange) {
        let Ok(stream) = exchange.into_stream().into_std() else {
            return;
        };
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < MAX_IDLE {
            idle.push(stream);
        }
    }
}

#[cfg(test)]
mod tests;
