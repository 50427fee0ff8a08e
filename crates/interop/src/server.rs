//! A running server: started, asked what it offers, described to clients.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use sshoal_testbed::client_files::ClientFiles;
use tempfile::TempDir;
use thiserror::Error;

use crate::account::Account;
use crate::keys::{KeyType, generate_key};
use crate::offers::{Offers, OffersError};
use crate::process::Running;
use crate::software::{Command, Options, Software};

/// Longest time from the start of a server to its first answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time between two attempts at a server that is starting.
const PAUSE: Duration = Duration::from_millis(10);

/// Why a server could not be started.
#[derive(Debug, Error)]
pub enum StartError {
    /// A file or a process could not be made.
    #[error("starting {software:?}: {source}; run `make setup`: it needs {}", .software.origin())]
    Io {
        /// The server's software.
        software: Software,
        /// What failed.
        source: io::Error,
    },
    /// The server ended at once.
    #[error("{software:?} ended while it started ({}, by `make setup`); it said: {log}", .software.origin())]
    Ended {
        /// The server's software.
        software: Software,
        /// All that the server wrote.
        log: String,
    },
    /// The server runs but does not answer as an SSH server does.
    #[error("{software:?} does not answer: {source}; it said: {log}")]
    Silent {
        /// The server's software.
        software: Software,
        /// The last attempt's failure.
        source: OffersError,
        /// All that the server wrote.
        log: String,
    },
    /// This software has no switch for what was asked.
    #[error("{0:?} takes no algorithms and no rekeying limit: choose them in the client")]
    NotConfigurable(Software),
    /// This software is not set up for certificates.
    #[error("{0:?} is not set up for certificates here: only OpenSSH is")]
    NoCertificates(Software),
    /// This software cannot be told to leave the extensions of key exchange out.
    #[error("{0:?} cannot leave strict key exchange out: only russh can")]
    AlwaysStrict(Software),
}

/// A server that runs until this value is dropped, or until this process ends in whatever way.
#[derive(Debug)]
pub struct Server {
    // Before the directory, so that it is gone when its files go.
    running: Box<dyn Running>,
    _dir: TempDir,
    address: SocketAddrV4,
    user: String,
    known_hosts: String,
    offers: Offers,
}

impl Server {
    /// Starts a server of this software and waits until it answers.
    ///
    /// # Errors
    /// When a program is missing, the server ends at once or does not answer, or cannot do what the options ask.
    pub fn start(software: Software, options: &Options) -> Result<Server, StartError> {
        if !software.is_configurable() && options.names_algorithms() {
            return Err(StartError::NotConfigurable(software));
        }
        if software != Software::OpenSsh && options.authority.is_some() {
            return Err(StartError::NoCertificates(software));
        }
        if software != Software::Russh && options.plain_kex {
            return Err(StartError::AlwaysStrict(software));
        }
        let failed = |source| StartError::Io { software, source };
        let dir = TempDir::with_prefix("sshoal-interop-").map_err(failed)?;
        let account = Account::create(dir.path(), &options.authorized_keys).map_err(failed)?;
        let host_keys = make_host_keys(dir.path(), &options.host_keys).map_err(failed)?;
        let address = free_address().map_err(failed)?;
        let command = Command {
            options,
            dir: dir.path(),
            address,
            host_keys: &host_keys,
            account: &account,
        };
        let (mut running, user) = command.start(software).map_err(failed)?;
        let offers = wait_for_offers(software, running.as_mut(), address)?;
        let known_hosts = known_hosts(address, &host_keys).map_err(failed)?;
        Ok(Server {
            running,
            _dir: dir,
            address,
            user,
            known_hosts,
            offers,
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddrV4 {
        self.address
    }

    /// What it offered when it was asked right after its start.
    #[must_use]
    pub fn offers(&self) -> &Offers {
        &self.offers
    }

    /// All that the server has written so far: for a failed test's message.
    #[must_use]
    pub fn log(&self) -> String {
        self.running.log()
    }

    /// The name to log in with.
    #[must_use]
    pub fn user(&self) -> &str {
        &self.user
    }

    /// A known_hosts line for each of its host keys.
    #[must_use]
    pub fn known_hosts(&self) -> &str {
        &self.known_hosts
    }

    /// What a client needs to log in with the private key `identity` (its text, in OpenSSH's format).
    #[must_use]
    pub fn client_files(&self, identity: String) -> ClientFiles {
        ClientFiles {
            addresses: vec![self.address],
            known_hosts: self.known_hosts.clone(),
            identity,
            user: self.user.clone(),
        }
    }
}

fn make_host_keys(dir: &Path, key_types: &[KeyType]) -> io::Result<Vec<PathBuf>> {
    let make =
        |key_type: &KeyType| generate_key(dir, &format!("host_{}", key_type.name()), *key_type);
    key_types.iter().map(make).collect()
}

/// An address that no other server of this machine's tests uses, 127.(96 + pid mod 128).x.y, and a port free there.
fn free_address() -> io::Result<SocketAddrV4> {
    static COUNT: AtomicU16 = AtomicU16::new(1);
    let [third, fourth] = COUNT.fetch_add(1, Ordering::Relaxed).to_be_bytes();
    let [_, _, _, pid] = process::id().to_be_bytes();
    let ip = Ipv4Addr::new(127, 96 + pid % 128, third, fourth);
    let port = TcpListener::bind((ip, 0))?.local_addr()?.port();
    Ok(SocketAddrV4::new(ip, port))
}

/// Asks for the server's KEXINIT until it comes, which is when the server is ready.
fn wait_for_offers(
    software: Software,
    server: &mut dyn Running,
    address: SocketAddrV4,
) -> Result<Offers, StartError> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let source = match Offers::read(address) {
            Ok(offers) => return Ok(offers),
            Err(error) => error,
        };
        if !server.is_running() {
            return Err(StartError::Ended {
                software,
                log: server.log(),
            });
        }
        if Instant::now() >= deadline {
            return Err(StartError::Silent {
                software,
                source,
                log: server.log(),
            });
        }
        thread::sleep(PAUSE);
    }
}

/// A known_hosts line for each host key. The port is never 22, so the name is always in brackets.
fn known_hosts(address: SocketAddrV4, host_keys: &[PathBuf]) -> io::Result<String> {
    let name = format!("[{}]:{}", address.ip(), address.port());
    let line = |key: &PathBuf| {
        fs::read_to_string(key.with_extension("pub")).map(|public| format!("{name} {public}"))
    };
    host_keys.iter().map(line).collect()
}
