//! Keys by `ssh-keygen`: an implementation that is not ours.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The kinds of keys that hosts and users have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyType {
    /// `ssh-ed25519` (RFC 8709).
    Ed25519,
    /// `ecdsa-sha2-nistp256` (RFC 5656).
    EcdsaP256,
    /// `ecdsa-sha2-nistp384` (RFC 5656).
    EcdsaP384,
    /// `ecdsa-sha2-nistp521` (RFC 5656).
    EcdsaP521,
    /// `ssh-rsa`, 2048 bits, signing with `rsa-sha2-256` or `rsa-sha2-512` (RFC 8332).
    Rsa,
}

impl KeyType {
    /// Every kind.
    pub const ALL: [KeyType; 5] = [
        KeyType::Ed25519,
        KeyType::EcdsaP256,
        KeyType::EcdsaP384,
        KeyType::EcdsaP521,
        KeyType::Rsa,
    ];

    /// The name in a public key's line and blob.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            KeyType::Ed25519 => "ssh-ed25519",
            KeyType::EcdsaP256 => "ecdsa-sha2-nistp256",
            KeyType::EcdsaP384 => "ecdsa-sha2-nistp384",
            KeyType::EcdsaP521 => "ecdsa-sha2-nistp521",
            KeyType::Rsa => "ssh-rsa",
        }
    }

    /// The host-key algorithms, as KEXINIT names them, that a key of this kind serves.
    #[must_use]
    pub fn signature_algorithms(self) -> &'static [&'static str] {
        match self {
            KeyType::Ed25519 => &["ssh-ed25519"],
            KeyType::EcdsaP256 => &["ecdsa-sha2-nistp256"],
            KeyType::EcdsaP384 => &["ecdsa-sha2-nistp384"],
            KeyType::EcdsaP521 => &["ecdsa-sha2-nistp521"],
            KeyType::Rsa => &["rsa-sha2-512", "rsa-sha2-256"],
        }
    }

    fn ssh_keygen_arguments(self) -> [&'static str; 4] {
        match self {
            KeyType::Ed25519 => ["-t", "ed25519", "-b", "256"],
            KeyType::EcdsaP256 => ["-t", "ecdsa", "-b", "256"],
            KeyType::EcdsaP384 => ["-t", "ecdsa", "-b", "384"],
            KeyType::EcdsaP521 => ["-t", "ecdsa", "-b", "521"],
            KeyType::Rsa => ["-t", "rsa", "-b", "2048"],
        }
    }
}

/// Whom a certificate is for (PROTOCOL.certkeys).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject<'a> {
    /// The host of this name.
    Host(&'a str),
    /// The user of this name.
    User(&'a str),
}

/// Certifies the key pair `key` (its private file) by the private key `authority`. `validity` is as `ssh-keygen -V`
/// takes it; for ever if not given. Returns the certificate's path, `key` with `-cert.pub` added.
///
/// # Errors
/// When `ssh-keygen` is missing or refuses.
pub fn certify(
    authority: &Path,
    key: &Path,
    subject: Subject<'_>,
    validity: Option<&str>,
) -> io::Result<PathBuf> {
    let mut command = Command::new("ssh-keygen");
    command
        .args(["-q", "-I", "sshoal-interop", "-s"])
        .arg(authority);
    match subject {
        Subject::Host(name) => command.args(["-h", "-n", name]),
        Subject::User(name) => command.args(["-n", name]),
    };
    if let Some(validity) = validity {
        command.args(["-V", validity]);
    }
    run(command.arg(key.with_extension("pub")))?;
    let mut path = key.as_os_str().to_owned();
    path.push("-cert.pub");
    Ok(path.into())
}

/// Makes an unencrypted key pair in OpenSSH's format: `dir/name` and `dir/name.pub`. Returns the private key's path.
///
/// # Errors
/// When `ssh-keygen` is missing or refuses.
pub fn generate_key(dir: &Path, name: &str, key_type: KeyType) -> io::Result<PathBuf> {
    let path = dir.join(name);
    let mut command = Command::new("ssh-keygen");
    command.args(["-q", "-N", "", "-C", name, "-f"]).arg(&path);
    run(command.args(key_type.ssh_keygen_arguments()))?;
    Ok(path)
}

fn run(ssh_keygen: &mut Command) -> io::Result<()> {
    let output = ssh_keygen
        .stdin(Stdio::null())
        .output()
        .map_err(|error| io::Error::new(error.kind(), format!("ssh-keygen: {error}")))?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(io::Error::other(format!("ssh-keygen: {said}")))
        }
    }
}
