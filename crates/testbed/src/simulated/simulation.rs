//! A running simulation.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use super::counters::Totals;
use super::entrance::serve;
use super::host::{Host, Shared};
use super::listen::{Door, Sockets, open_all};
use super::meter::Traffic;
use super::spec::SimulationSpec;
use crate::addresses::AddressError;
use crate::client_files::ClientFiles;
use crate::descriptors::{DescriptorError, allow_descriptors};

/// Descriptors beside the hosts' sockets: the standard three, epoll, timers, a file or two.
const OTHER_DESCRIPTORS: u64 = 64;

/// Hosts that are up until this is dropped.
#[derive(Debug)]
pub struct Simulation {
    hosts: Vec<Arc<Host>>,
    client_files: ClientFiles,
    shared: Arc<Shared>,
    /// Stop when dropped.
    _workers: Vec<Worker>,
}

/// Why a simulation did not start.
#[derive(Debug, Error)]
pub enum SimulationError {
    /// No host at all, or no thread.
    #[error("a simulation needs at least one {0}")]
    Nothing(&'static str),
    /// The addresses do not fit.
    #[error(transparent)]
    Addresses(#[from] AddressError),
    /// Too many sockets.
    #[error(transparent)]
    Descriptors(#[from] DescriptorError),
    /// A socket could not be opened.
    #[error("cannot listen on {address}: {source}; is another simulation running?")]
    Listen {
        /// The host's address.
        address: SocketAddrV4,
        /// What the system said.
        source: io::Error,
    },
    /// A thread or its runtime could not be started.
    #[error("cannot start a thread for the hosts: {0}")]
    Thread(#[source] io::Error),
}

impl Simulation {
    /// Starts the hosts. When this returns, all of them listen.
    ///
    /// Needs no async runtime and may be called inside one: hosts run on threads of their own.
    ///
    /// # Errors
    /// [`SimulationError`] says what is missing; nothing is left running then.
    pub fn start(spec: &SimulationSpec) -> Result<Simulation, SimulationError> {
        if spec.hosts == 0 {
            return Err(SimulationError::Nothing("host"));
        }
        if spec.threads == 0 {
            return Err(SimulationError::Nothing("thread"));
        }
        let addresses = spec.addresses()?;
        allow_descriptors(Simulation::descriptors(spec.hosts))?;
        let doors: Vec<(Ipv4Addr, Door)> = spec
            .indices()
            .zip(addresses)
            .map(|(index, ip)| (ip, spec.door(index)))
            .collect();
        let (port, sockets) = open_all(&doors, spec.port)
            .map_err(|(address, source)| SimulationError::Listen { address, source })?;

        let shared = Arc::new(Shared::new(spec));
        let hosts: Vec<Arc<Host>> = spec
            .indices()
            .map(|index| Arc::new(Host::new(index, &spec.faults, Arc::clone(&shared))))
            .collect();
        let workers = start_workers(&hosts, sockets, spec.threads)?;
        Ok(Simulation {
            client_files: spec.client_files(port)?,
            hosts,
            shared,
            _workers: workers,
        })
    }

    /// Descriptors that so many hosts need: a listener and a connection each, and a few more.
    pub fn descriptors(hosts: u32) -> u64 {
        u64::from(hosts) * 2 + OTHER_DESCRIPTORS
    }

    /// Every host's address, by index.
    pub fn addresses(&self) -> &[SocketAddrV4] {
        &self.client_files.addresses
    }

    /// What a client needs to reach the hosts.
    pub fn client_files(&self) -> &ClientFiles {
        &self.client_files
    }

    /// What has happened so far on all hosts.
    pub fn totals(&self) -> Totals {
        self.shared.counters.totals()
    }

    /// The value of `host`'s counter `key`, as `count-read` prints it.
    ///
    /// # Panics
    /// When there is no such host.
    pub fn count(&self, host: usize, key: &str) -> u64 {
        self.hosts[host].count_read(key)
    }

    /// The bytes of the last connection to `host` that came to SSH, or None without one.
    ///
    /// # Panics
    /// When there is no such host.
    pub fn last_traffic(&self, host: usize) -> Option<Traffic> {
        self.hosts[host].last_connection().map(|m| m.traffic())
    }
}

/// A thread that serves some of the hosts, until told to stop or dropped.
#[derive(Debug)]
struct Worker {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Dropping the sender is the sign to stop.
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            // A panic there has been reported by the panic hook.
            let _ = thread.join();
        }
    }
}

/// Deals the hosts out to `threads` threads.
fn start_workers(
    hosts: &[Arc<Host>],
    sockets: Vec<Sockets>,
    threads: usize,
) -> Result<Vec<Worker>, SimulationError> {
    let mut shares: Vec<Vec<(Arc<Host>, Sockets)>> = Vec::new();
    shares.resize_with(threads.min(hosts.len()), Vec::new);
    let count = shares.len();
    for (index, pair) in hosts.iter().cloned().zip(sockets).enumerate() {
        shares[index % count].push(pair);
    }
    shares
        .into_iter()
        .map(|share| start_worker(share).map_err(SimulationError::Thread))
        .collect()
}

fn start_worker(share: Vec<(Arc<Host>, Sockets)>) -> io::Result<Worker> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (stop, stopped) = oneshot::channel::<()>();
    let thread = thread::Builder::new()
        .name("simulated hosts".to_owned())
        .spawn(move || {
            runtime.block_on(async {
                let _stuck: Vec<_> = share.into_iter().filter_map(open_door).collect();
                // Ends when the sender is dropped.
                let _ = stopped.await;
            });
        })?;
    Ok(Worker {
        stop: Some(stop),
        thread: Some(thread),
    })
}

/// Starts to serve a host, and returns what must be kept for one that is not served.
fn open_door((host, sockets): (Arc<Host>, Sockets)) -> Option<Sockets> {
    match sockets {
        Sockets::Open(listener) => {
            let listener = TcpListener::from_std(listener)
                .expect("a new listener on a running reactor can be registered");
            tokio::spawn(serve(host, listener));
            None
        }
        kept => Some(kept),
    }
}
