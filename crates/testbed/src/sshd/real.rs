//! Running servers.

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::{self, Write};
use std::net::{SocketAddrV4, TcpListener};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Pid;
use tempfile::TempDir;
use thiserror::Error;

use super::account::{self, AccountError};
use super::config::Config;
use super::key_files::{KeyType, KeygenError, generate};
use super::listener::{Listener, NotListening};
use super::process_tree::kill_trees;
use super::spec::{Layout, SshdSpec};
use crate::addresses::{AddressError, host_addresses};
use crate::client_files::{ClientFiles, known_hosts_name};
use crate::descriptors::{DescriptorError, allow_descriptors};

/// How long servers may take to listen: two hundred on a busy machine need a few seconds.
const START_DEADLINE: Duration = Duration::from_secs(30);
/// Addresses that one sshd listens on (sshd.c, MAX_LISTEN_SOCKS).
const ADDRESSES_A_SERVER: usize = 16;
/// Free ports to try: what is free on one address may be taken on another.
const PORT_ATTEMPTS: u32 = 8;
/// sshd's own folder for unprivileged processes, which distributions make at boot.
const PRIVSEP_DIR: &str = "/run/sshd";

/// Servers that run until this is dropped, which ends their sessions, too.
#[derive(Debug)]
pub struct RealSshd {
    dir: TempDir,
    user: String,
    addresses: Vec<SocketAddrV4>,
    hosts_a_server: usize,
    key_types: Vec<KeyType>,
    servers: Vec<Listener>,
}

/// Why servers did not start.
#[derive(Debug, Error)]
pub enum SshdError {
    /// No host at all.
    #[error("at least one host is needed")]
    NoHosts,
    /// The addresses do not fit.
    #[error(transparent)]
    Addresses(#[from] AddressError),
    /// Too many log files and processes.
    #[error(transparent)]
    Descriptors(#[from] DescriptorError),
    /// There is no account to log in as.
    #[error(transparent)]
    Account(#[from] AccountError),
    /// A key could not be made.
    #[error(transparent)]
    Keygen(#[from] KeygenError),
    /// A file or process could not be made.
    #[error("{what}: {source}")]
    System {
        /// What was being done, or to which file.
        what: String,
        /// What the system said.
        source: io::Error,
    },
    /// Another program has the port on one of the addresses.
    #[error("port {0} is taken on one of the addresses: choose another, or 0 for any")]
    PortTaken(u16),
    /// The server ended. Its log says why.
    #[error("sshd ended at once: {log}")]
    Ended {
        /// The whole log.
        log: String,
    },
    /// The server did not say that it listens.
    #[error("sshd did not listen within {} seconds: {log}", START_DEADLINE.as_secs())]
    Late {
        /// The log so far.
        log: String,
    },
}

impl RealSshd {
    /// Starts the servers. When this returns, all of them listen.
    ///
    /// # Errors
    /// [`SshdError`] says what is missing; nothing is left running then.
    pub fn start(spec: &SshdSpec) -> Result<RealSshd, SshdError> {
        if spec.hosts == 0 {
            return Err(SshdError::NoHosts);
        }
        let ips = host_addresses(spec.base, spec.hosts)?;
        allow_descriptors(u64::from(spec.hosts) + 64)?;
        make_privsep_dir().map_err(at(PRIVSEP_DIR))?;
        let mut real = RealSshd {
            dir: make_dir()?,
            user: account::key_account()?,
            addresses: ips.into_iter().map(|ip| SocketAddrV4::new(ip, 0)).collect(),
            hosts_a_server: match spec.layout {
                Layout::Separate => 1,
                Layout::Shared => ADDRESSES_A_SERVER,
            },
            key_types: spec.host_keys.clone(),
            servers: Vec::new(),
        };
        real.make_keys(spec.layout)?;
        real.listen(spec)?;
        Ok(real)
    }

    /// Every host's address, by index.
    pub fn addresses(&self) -> &[SocketAddrV4] {
        &self.addresses
    }

    /// The user name to log in with.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The private key file that is authorised from the start.
    pub fn identity_path(&self) -> PathBuf {
        self.dir.path().join("id_ed25519")
    }

    /// The folder of all the fixture's files, which goes with it.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The private host key file of `host` of one of the specified types.
    pub fn host_key_path(&self, host: usize, key_type: KeyType) -> PathBuf {
        self.key_path(host / self.hosts_a_server, key_type)
    }

    /// The process number of the server of `host`.
    ///
    /// # Panics
    /// When there is no such host.
    pub fn pid(&self, host: usize) -> Pid {
        self.servers[host / self.hosts_a_server].pid()
    }

    /// The log of the server of `host` so far, at level VERBOSE if no line says otherwise.
    ///
    /// # Panics
    /// When there is no such host.
    pub fn log(&self, host: usize) -> String {
        self.servers[host / self.hosts_a_server].log()
    }

    /// Logins that the servers have accepted, counted in their logs.
    pub fn logins(&self) -> usize {
        self.servers
            .iter()
            .map(|server| accepted_logins(&server.log()))
            .sum()
    }

    /// Lets one more key in: `line` as in authorized_keys, options included (sshd(8)).
    ///
    /// # Errors
    /// What the system said.
    pub fn authorize(&self, line: &str) -> io::Result<()> {
        OpenOptions::new()
            .append(true)
            .open(self.authorized_keys())?
            .write_all(format!("{}\n", line.trim_end()).as_bytes())
    }

    /// The known_hosts lines of all hosts, one for each type of host key.
    ///
    /// # Errors
    /// When a public key's file cannot be read.
    pub fn known_hosts(&self) -> io::Result<String> {
        let mut lines = String::new();
        for (host, address) in self.addresses.iter().enumerate() {
            for &key_type in &self.key_types {
                let path = self.host_key_path(host, key_type).with_extension("pub");
                let key = fs::read_to_string(path)?;
                lines += &format!("{} {}\n", known_hosts_name(*address), key.trim_end());
            }
        }
        Ok(lines)
    }

    /// What a client needs to reach the hosts.
    ///
    /// # Errors
    /// When a key's file cannot be read.
    pub fn client_files(&self) -> io::Result<ClientFiles> {
        Ok(ClientFiles {
            addresses: self.addresses.clone(),
            known_hosts: self.known_hosts()?,
            identity: fs::read_to_string(self.identity_path())?,
            user: self.user.clone(),
        })
    }

    fn authorized_keys(&self) -> PathBuf {
        self.dir.path().join("authorized_keys")
    }

    fn key_path(&self, server: usize, key_type: KeyType) -> PathBuf {
        // make_keys makes one set for all servers of many addresses.
        let set = if self.hosts_a_server == 1 { server } else { 0 };
        let name = format!("host_{set}_{}", key_type.file_part());
        self.dir.path().join(name)
    }

    fn make_keys(&self, layout: Layout) -> Result<(), SshdError> {
        let sets = match layout {
            Layout::Separate => self.addresses.len(),
            Layout::Shared => 1,
        };
        for set in 0..sets {
            for &key_type in &self.key_types {
                generate(&self.key_path(set, key_type), key_type, "")?;
            }
        }
        let identity = self.identity_path();
        generate(&identity, KeyType::Ed25519, "")?;
        let authorized = self.authorized_keys();
        fs::copy(identity.with_extension("pub"), &authorized)
            .and_then(|_| fs::set_permissions(&authorized, Permissions::from_mode(0o644)))
            .map_err(at(&authorized.to_string_lossy()))
    }

    /// Starts all servers on the specified port or, if that is 0, on free ones until one is free on
    /// all addresses.
    fn listen(&mut self, spec: &SshdSpec) -> Result<(), SshdError> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            let port = match spec.port {
                0 => free_port(self.addresses[0]).map_err(at("a free port"))?,
                port => port,
            };
            self.addresses
                .iter_mut()
                .for_each(|address| address.set_port(port));
            match self.listen_on(spec, port) {
                Err(SshdError::PortTaken(_)) if spec.port == 0 && attempt < PORT_ATTEMPTS => {
                    self.stop();
                }
                result => return result,
            }
        }
    }

    fn listen_on(&mut self, spec: &SshdSpec, port: u16) -> Result<(), SshdError> {
        let has_penalties = version(&spec.program)? >= (9, 8);
        for (server, addresses) in self.addresses.chunks(self.hosts_a_server).enumerate() {
            let keys: Vec<PathBuf> = self
                .key_types
                .iter()
                .map(|&key_type| self.key_path(server, key_type))
                .collect();
            let ips: Vec<_> = addresses.iter().map(|address| *address.ip()).collect();
            let text = Config {
                addresses: &ips,
                port,
                host_keys: &keys,
                authorized_keys: &self.authorized_keys(),
                lines: &spec.lines,
                has_penalties,
            }
            .text();
            let config = self.dir.path().join(format!("sshd_config_{server}"));
            fs::write(&config, text).map_err(at(&config.to_string_lossy()))?;
            let log = self.dir.path().join(format!("log_{server}"));
            let listener = Listener::start(&spec.program, &config, log, addresses.to_vec())
                .map_err(at(&spec.program.to_string_lossy()))?;
            self.servers.push(listener);
        }
        let deadline = Instant::now() + START_DEADLINE;
        for server in &mut self.servers {
            server.wait(deadline).map_err(|problem| match problem {
                NotListening::AddressInUse => SshdError::PortTaken(port),
                NotListening::Ended => SshdError::Ended { log: server.log() },
                NotListening::Late => SshdError::Late { log: server.log() },
            })?;
        }
        Ok(())
    }

    fn stop(&mut self) {
        let pids: Vec<Pid> = self.servers.iter().map(Listener::pid).collect();
        kill_trees(&pids);
        self.servers.iter_mut().for_each(Listener::reap);
        self.servers.clear();
    }
}

impl Drop for RealSshd {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A folder that the account may look into: sshd reads authorized_keys as the user who logs in.
fn make_dir() -> Result<TempDir, SshdError> {
    let make = || {
        let dir = tempfile::Builder::new().prefix("sshoal-sshd.").tempdir()?;
        // Explicitly, whatever the umask.
        fs::set_permissions(dir.path(), Permissions::from_mode(0o755))?;
        Ok(dir)
    };
    make().map_err(at("a temporary folder"))
}

fn make_privsep_dir() -> io::Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    match DirBuilder::new().mode(0o755).create(PRIVSEP_DIR) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

fn free_port(address: SocketAddrV4) -> io::Result<u16> {
    let listener = TcpListener::bind((*address.ip(), 0))?;
    Ok(listener.local_addr()?.port())
}

/// The version of an sshd, as in `OpenSSH_9.2p1`.
pub(crate) fn version(program: &Path) -> Result<(u32, u32), SshdError> {
    let output = Command::new(program)
        .arg("-V")
        .output()
        .map_err(at(&program.to_string_lossy()))?;
    // Up to 9.2 -V is an unknown option, and the version a part of the usage.
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    parse_version(&text).ok_or_else(|| SshdError::System {
        what: format!("{} -V", program.display()),
        source: io::Error::other(format!("no OpenSSH version in '{}'", text.trim())),
    })
}

fn parse_version(text: &str) -> Option<(u32, u32)> {
    let (_, rest) = text.split_once("OpenSSH_")?;
    let (major, rest) = rest.split_once('.')?;
    let minor: String = rest.chars().take_while(char::is_ascii_digit).collect();
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Counts lines such as "Accepted publickey for root from 127.0.0.1 port 50000 ssh2: ..." (auth.c,
/// auth_log). At level VERBOSE there are others, "Accepted key ... found at ...", for each probe.
fn accepted_logins(log: &str) -> usize {
    log.lines()
        .filter(|line| line.starts_with("Accepted ") && line.contains(" for "))
        .count()
}

fn at(what: &str) -> impl FnOnce(io::Error) -> SshdError {
    move |source| SshdError::System {
        what: what.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_banners_and_usages() {
        assert_eq!(parse_version("OpenSSH_9.2, OpenSSL 3.0.19"), Some((9, 2)));
        assert_eq!(
            parse_version("unknown option -- V\nOpenSSH_8.4p1 Debian-5"),
            Some((8, 4))
        );
        assert_eq!(parse_version("OpenSSH_10.0p2"), Some((10, 0)));
        assert_eq!(parse_version("dropbear"), None);
    }
}
