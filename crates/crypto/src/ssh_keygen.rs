//! Keys, signatures and certificates of OpenSSH's own making, for tests.

#![allow(clippy::unwrap_used)]

use std::path::PathBuf;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::public_key::PublicKey;

/// A directory in which ssh-keygen works.
pub(crate) struct SshKeygen {
    directory: TempDir,
}

/// Kind and size of every key that this crate signs with.
pub(crate) const KINDS: [(&str, &str); 6] = [
    ("ed25519", "256"),
    ("ecdsa", "256"),
    ("ecdsa", "384"),
    ("ecdsa", "521"),
    ("rsa", "2048"),
    ("rsa", "3072"),
];

impl SshKeygen {
    pub(crate) fn new() -> Self {
        SshKeygen {
            directory: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    pub(crate) fn write(&self, name: &str, content: &[u8]) {
        std::fs::write(self.path(name), content).unwrap();
    }

    /// Runs ssh-keygen here; says whether it succeeded.
    pub(crate) fn run(&self, arguments: &[&str]) -> bool {
        let mut command = Command::new("ssh-keygen");
        command.current_dir(self.directory.path()).args(arguments);
        command
            .stdin(Stdio::null())
            .output()
            .unwrap()
            .status
            .success()
    }

    /// Makes a key pair and returns the private file.
    pub(crate) fn key(&self, name: &str, (kind, bits): (&str, &str), more: &[&str]) -> Vec<u8> {
        let mut arguments = vec!["-q", "-t", kind, "-b", bits, "-f", name, "-C", "a comment"];
        if !more.contains(&"-N") {
            arguments.extend(["-N", ""]);
        }
        arguments.extend(more);
        assert!(self.run(&arguments), "{arguments:?}");
        self.read(name)
    }

    /// The key in a `.pub` file.
    pub(crate) fn public(&self, name: &str) -> PublicKey {
        let line = String::from_utf8(self.read(&format!("{name}.pub"))).unwrap();
        PublicKey::from_openssh_line(&line).unwrap().0
    }
}
