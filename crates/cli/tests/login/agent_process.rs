//! OpenSSH's ssh-agent with a folder of its own.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// A running agent; ends with this value.
pub(crate) struct Agent {
    process: Child,
    folder: TempDir,
}

impl Agent {
    pub(crate) fn start() -> Self {
        let folder = TempDir::new().unwrap();
        let mut process = Command::new("ssh-agent")
            .arg("-D")
            .arg("-a")
            .arg(folder.path().join("socket"))
            .stdout(Stdio::piped())
            .spawn()
            .expect("ssh-agent is installed (openssh-client)");
        // It says where it listens as soon as it does.
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        assert!(line.starts_with("SSH_AUTH_SOCK="), "{line:?}");
        Agent { process, folder }
    }

    pub(crate) fn holding(keys: &[&Path]) -> Self {
        let agent = Agent::start();
        for key in keys {
            agent.add(key, &[]);
        }
        agent
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    /// `ssh-add` with these options.
    pub(crate) fn add(&self, key: &Path, options: &[&str]) {
        let output = Command::new("ssh-add")
            .env("SSH_AUTH_SOCK", self.socket())
            .arg("-q")
            .args(options)
            .arg(key)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
    }

    /// Ends it; its socket stays.
    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // It may have been killed already; then there is nothing to do.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
