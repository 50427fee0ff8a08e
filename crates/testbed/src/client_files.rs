//! The files with which a client reaches a set of hosts: the same layout for simulated and real ones.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::net::SocketAddrV4;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// What a client must know of a set of hosts, all of which listen on one port.
#[derive(Clone, Debug)]
pub struct ClientFiles {
    /// Every host's address, in the order of their indices.
    pub addresses: Vec<SocketAddrV4>,
    /// The text of the known_hosts file.
    pub known_hosts: String,
    /// The client's private key in OpenSSH's format, which every host accepts.
    pub identity: String,
    /// The user name to log in with.
    pub user: String,
}

impl ClientFiles {
    /// Writes `hosts` (an address a line), `known_hosts`, `id_ed25519` (mode 0600), `ssh_config` and,
    /// last of all, `ready` into `dir`, which is made if missing.
    ///
    /// `ssh -F dir/ssh_config ADDRESS` logs in with nothing else given. A `ready` left by an earlier
    /// run goes first, so that whoever waits for it never sees half of the files.
    ///
    /// # Errors
    /// The first failure to write, with the path in its message.
    pub fn write(&self, dir: &Path) -> io::Result<()> {
        fs::create_dir_all(dir).map_err(|error| at(dir, &error))?;
        let dir = dir.canonicalize().map_err(|error| at(dir, &error))?;
        let ready = dir.join("ready");
        match fs::remove_file(&ready) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(at(&ready, &error));
            }
            _ => {}
        }
        let hosts: String = self
            .addresses
            .iter()
            .map(|address| format!("{}\n", address.ip()))
            .collect();
        replace(&dir.join("hosts"), &hosts, 0o644)?;
        replace(&dir.join("known_hosts"), &self.known_hosts, 0o644)?;
        replace(&dir.join("id_ed25519"), &self.identity, 0o600)?;
        replace(&dir.join("ssh_config"), &self.ssh_config(&dir), 0o644)?;
        replace(&ready, &format!("{}\n", self.addresses.len()), 0o644)
    }

    fn ssh_config(&self, dir: &Path) -> String {
        let port = self.addresses.first().map_or(22, SocketAddrV4::port);
        let dir = dir.display();
        format!(
            "Host *\n\
             \x20   User {user}\n\
             \x20   Port {port}\n\
             \x20   IdentityFile \"{dir}/id_ed25519\"\n\
             \x20   IdentitiesOnly yes\n\
             \x20   UserKnownHostsFile \"{dir}/known_hosts\"\n\
             \x20   GlobalKnownHostsFile /dev/null\n\
             \x20   StrictHostKeyChecking yes\n\
             \x20   BatchMode yes\n",
            user = self.user,
        )
    }
}

/// A known_hosts line's name for `address`: bare on port 22, `[address]:port` elsewhere (sshd(8),
/// SSH_KNOWN_HOSTS FILE FORMAT).
pub(crate) fn known_hosts_name(address: SocketAddrV4) -> String {
    match address.port() {
        22 => address.ip().to_string(),
        port => format!("[{}]:{port}", address.ip()),
    }
}

/// Writes a new file with exactly this mode, in place of any that was there.
fn replace(path: &PathBuf, text: &str, mode: u32) -> io::Result<()> {
    let write = || {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(path)?
            .write_all(text.as_bytes())
    };
    write().map_err(|error| at(path, &error))
}

fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
