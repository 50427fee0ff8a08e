//! Asks servers for their host keys and goes no further: nobody is logged in, and nothing is trusted by it.
//!
//! A server shows one key a connection, of a type that the client takes, so that a connection is made for each type, one
//! after the other (as ssh-keyscan does, which makes them at once and so meets MaxStartups sooner).

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use sshoal_fleet::{Failure, FailureKind};
use sshoal_proto::{Connection, ConnectionError, Event, ExecFate, Opening};
use tokio::runtime::Builder;
use tokio::task::{JoinSet, LocalSet};

use crate::dial::{self, LookupTurn};
use crate::drive::{Answer, Broken, Drive};
use crate::failures;
use crate::link::LinkError;
use crate::plan::Endpoint;

/// What servers have keys of, each with the algorithms that show it.
const KINDS: [&[&str]; 3] = [
    &["ssh-ed25519"],
    &[
        "ecdsa-sha2-nistp256",
        "ecdsa-sha2-nistp384",
        "ecdsa-sha2-nistp521",
    ],
    &["rsa-sha2-512", "rsa-sha2-256"],
];

/// What a server has shown.
#[derive(Debug, Default)]
pub struct FetchedKeys {
    /// Blobs of keys that the server has proved to hold.
    pub keys: Vec<Vec<u8>>,
    /// Why there may be more.
    pub failure: Option<Failure>,
}

/// Fetches the host keys of all hosts, `at_once` of them at a time, in their order. A connection that takes longer than
/// `patience` is given up, and its host with it. Jump hosts and ProxyCommand are not used.
///
/// # Errors
///
/// The operating system gave no timer or event queue.
pub fn fetch_host_keys(
    hosts: Vec<Endpoint>,
    at_once: usize,
    patience: Duration,
) -> io::Result<Vec<FetchedKeys>> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let fetched = LocalSet::new().block_on(&runtime, fetch_all(hosts, at_once, patience));
    // A name lookup that does not end is left behind.
    runtime.shutdown_background();
    Ok(fetched)
}

async fn fetch_all(hosts: Vec<Endpoint>, at_once: usize, patience: Duration) -> Vec<FetchedKeys> {
    let buffer = Rc::new(RefCell::new(Vec::new()));
    let mut fetched: Vec<FetchedKeys> = Vec::new();
    fetched.resize_with(hosts.len(), FetchedKeys::default);
    let mut waiting = hosts.into_iter().enumerate();
    let mut running = JoinSet::new();
    loop {
        while running.len() < at_once.max(1)
            && let Some((number, host)) = waiting.next()
        {
            let buffer = buffer.clone();
            running.spawn_local(async move { (number, fetch(&host, patience, &buffer).await) });
        }
        match running.join_next().await {
            None => return fetched,
            Some(Ok((number, keys))) => fetched[number] = keys,
            Some(Err(error)) => std::panic::resume_unwind(error.into_panic()),
        }
    }
}

async fn fetch(host: &Endpoint, patience: Duration, buffer: &RefCell<Vec<u8>>) -> FetchedKeys {
    let mut fetched = FetchedKeys::default();
    let turn = LookupTurn::awaited(host).await;
    let addresses = match within(patience, dial::look_up(host, turn)).await {
        Ok(addresses) => addresses,
        Err(failure) => {
            fetched.failure = Some(failure);
            return fetched;
        }
    };
    for kind in KINDS {
        let wanted = host.trust.algorithms.iter().copied();
        let algorithms: Vec<&str> = wanted.filter(|name| kind.contains(name)).collect();
        if algorithms.is_empty() {
            continue;
        }
        match within(patience, key(host, &addresses, algorithms, buffer)).await {
            Ok(key) => fetched.keys.extend(key),
            Err(failure) => {
                fetched.failure = Some(failure);
                return fetched;
            }
        }
    }
    fetched
}

async fn within<T>(
    patience: Duration,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let late = |_| {
        let detail = format!("no host key within {patience:?}");
        Err(Failure::new(FailureKind::LoginTimeout, detail))
    };
    tokio::time::timeout(patience, work)
        .await
        .unwrap_or_else(late)
}

/// The key that the server shows for one of the algorithms; `None` if it has none of them.
async fn key(
    host: &Endpoint,
    addresses: &[SocketAddr],
    algorithms: Vec<&'static str>,
    buffer: &RefCell<Vec<u8>>,
) -> Result<Option<Vec<u8>>, Failure> {
    let link = dial::connect(addresses, &host.tcp).await?;
    let opening = Opening {
        user: host.user.clone(),
        host_key_algorithms: algorithms,
        guess_key_exchange: false,
    };
    let connection = Connection::new(host.settings.clone(), opening, Instant::now())
        .map_err(|error| Failure::new(FailureKind::NoCommonAlgorithm, error.to_string()))?;
    let mut drive = Drive::new(connection, link);
    let mut onlooker = Onlooker::default();
    loop {
        drive.flush();
        if onlooker.key.is_some() {
            return Ok(onlooker.key);
        }
        if let Err(broken) = poll_fn(|context| drive.poll(context, buffer, &mut onlooker)).await {
            return none_or_failure(broken, &drive.connection);
        }
    }
}

fn none_or_failure(broken: Broken, connection: &Connection) -> Result<Option<Vec<u8>>, Failure> {
    match broken {
        Broken::Connection(ConnectionError::NoCommonAlgorithm {
            purpose: "host key algorithm",
            ..
        }) => Ok(None),
        Broken::Connection(error) => {
            Err(failures::connection(&error, ExecFate::NotSent, connection))
        }
        Broken::Link(LinkError::Io(error)) => {
            Err(failures::stream(&error, ExecFate::NotSent, connection))
        }
        Broken::Link(LinkError::Jump(failure)) => Err(failure),
    }
}

/// Looks at the host key, and refuses it.
#[derive(Default)]
struct Onlooker {
    key: Option<Vec<u8>>,
}

impl Answer for Onlooker {
    fn answer(&mut self, connection: &mut Connection, event: Event, _: &[u8]) {
        if let Event::HostKey(question) = event {
            self.key = Some(question.blob);
            connection.refuse_host_key();
        }
    }

    fn is_settled(&self) -> bool {
        self.key.is_some()
    }
}
