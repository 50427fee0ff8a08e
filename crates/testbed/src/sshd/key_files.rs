//! Keys and certificates made by the installed ssh-keygen: nobody's code but OpenSSH's.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use thiserror::Error;

/// A type of key that ssh-keygen makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyType {
    /// ssh-ed25519.
    Ed25519,
    /// ecdsa-sha2-nistp256.
    EcdsaNistP256,
    /// ecdsa-sha2-nistp384.
    EcdsaNistP384,
    /// ecdsa-sha2-nistp521.
    EcdsaNistP521,
    /// ssh-rsa with 2,048 bits: making 3,072 takes three times as long and tests nothing more.
    Rsa2048,
}

/// ssh-keygen did not make what it was asked for.
#[derive(Debug, Error)]
#[error("ssh-keygen could not make {}: {problem}", path.display())]
pub struct KeygenError {
    /// The file that was to be made.
    pub path: PathBuf,
    /// What ssh-keygen or the system said.
    pub problem: String,
}

impl KeyType {
    /// ssh-keygen's `-t`, and `-b` where a type has sizes.
    fn arguments(self) -> &'static [&'static str] {
        match self {
            KeyType::Ed25519 => &["-t", "ed25519"],
            KeyType::EcdsaNistP256 => &["-t", "ecdsa", "-b", "256"],
            KeyType::EcdsaNistP384 => &["-t", "ecdsa", "-b", "384"],
            KeyType::EcdsaNistP521 => &["-t", "ecdsa", "-b", "521"],
            KeyType::Rsa2048 => &["-t", "rsa", "-b", "2048"],
        }
    }

    /// The end of a file name, as in sshd's stock `ssh_host_ed25519_key`.
    pub(super) fn file_part(self) -> &'static str {
        match self {
            KeyType::Ed25519 => "ed25519",
            KeyType::EcdsaNistP256 => "ecdsa256",
            KeyType::EcdsaNistP384 => "ecdsa384",
            KeyType::EcdsaNistP521 => "ecdsa521",
            KeyType::Rsa2048 => "rsa",
        }
    }
}

/// Makes a key pair, `path` and `path`.pub, with `passphrase` or, if that is empty, unencrypted.
///
/// # Errors
/// What ssh-keygen said.
pub fn generate(path: &Path, key_type: KeyType, passphrase: &str) -> Result<(), KeygenError> {
    let mut command = Command::new("ssh-keygen");
    command
        .args(["-q", "-N", passphrase, "-C", "sshoal-testbed", "-f"])
        .arg(path)
        .args(key_type.arguments());
    run(command, path)
}

/// What a certificate says beside its key (PROTOCOL.certkeys).
#[derive(Clone, Copy, Debug)]
pub struct Certified<'a> {
    /// For a host, not for a user.
    pub host: bool,
    /// The key id, which servers log.
    pub key_id: &'a str,
    /// Host or user names; none for all.
    pub principals: &'a [&'a str],
    /// As ssh-keygen's `-V`, such as `always:forever` or `-2w:-1w`.
    pub validity: &'a str,
}

/// Certifies the public key `key`.pub by the private key `ca`. The certificate is `key`-cert.pub, the
/// path returned.
///
/// # Errors
/// What ssh-keygen said.
pub fn certify(ca: &Path, key: &Path, certified: Certified<'_>) -> Result<PathBuf, KeygenError> {
    let sibling = |end: &str| {
        let mut name = key.as_os_str().to_owned();
        name.push(end);
        PathBuf::from(name)
    };
    let mut command = Command::new("ssh-keygen");
    command.args(["-q", "-I", certified.key_id, "-V", certified.validity]);
    if certified.host {
        command.arg("-h");
    }
    if !certified.principals.is_empty() {
        command.args(["-n", &certified.principals.join(",")]);
    }
    command.arg("-s").arg(ca).arg(sibling(".pub"));
    let certificate = sibling("-cert.pub");
    run(command, &certificate)?;
    Ok(certificate)
}

fn run(mut command: Command, path: &Path) -> Result<(), KeygenError> {
    let result: io::Result<Output> = command.stdin(Stdio::null()).output();
    let problem = match result {
        Ok(output) if output.status.success() => return Ok(()),
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        Err(error) => error.to_string(),
    };
    Err(KeygenError {
        path: path.to_owned(),
        problem,
    })
}
