//! An ssh-agent of OpenSSH's, its keys, and clients with a socket each.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use sshoal_agent::{AgentConnection, Answer, RequestError, RequestId, SubmitError};
use sshoal_crypto::PublicKey;
use tempfile::TempDir;

/// A running ssh-agent in a folder of its own; ends with this value.
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
        let stdout = process.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        assert!(line.starts_with("SSH_AUTH_SOCK="), "{line:?}");
        Self { process, folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A new key in a file, named in its comment. `options` are ssh-keygen's.
    pub(crate) fn new_key(&self, name: &str, options: &[&str]) -> Vec<u8> {
        let path = self.path(name);
        run(Command::new("ssh-keygen")
            .args(["-q", "-N", "", "-C", name, "-f"])
            .arg(&path)
            .args(options));
        self.public_key(name)
    }

    /// The public key blob that `ssh-keygen` wrote.
    pub(crate) fn public_key(&self, name: &str) -> Vec<u8> {
        let line = std::fs::read_to_string(self.path(name).with_extension("pub")).unwrap();
        PublicKey::from_openssh_line(&line)
            .unwrap()
            .0
            .blob()
            .to_vec()
    }

    /// A user certificate for the key, made by the key `ca`; `ssh-add` adds it with the key.
    pub(crate) fn certify(&self, name: &str, ca: &str) {
        run(Command::new("ssh-keygen")
            .args(["-q", "-I", "test", "-n", "me", "-s"])
            .arg(self.path(ca))
            .arg(self.path(name).with_extension("pub")));
    }

    pub(crate) fn ssh_add(&self, options: &[&str], name: &str) {
        run(Command::new("ssh-add")
            .env("SSH_AUTH_SOCK", self.path("socket"))
            .current_dir(self.folder.path())
            .arg("-q")
            .args(options)
            .arg(name));
    }

    pub(crate) fn connect(&self) -> Client {
        Client::connect(&self.path("socket"))
    }

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

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
}

/// An [`AgentConnection`] and its socket.
pub(crate) struct Client {
    socket: UnixStream,
    pub(crate) agent: AgentConnection,
}

impl Client {
    fn connect(path: &Path) -> Self {
        let socket = UnixStream::connect(path).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        Self {
            socket,
            agent: AgentConnection::new(),
        }
    }

    /// Submits a request and moves bytes until it has ended.
    pub(crate) fn ask(
        &mut self,
        submit: impl FnOnce(&mut AgentConnection) -> Result<RequestId, SubmitError>,
    ) -> Result<Answer, RequestError> {
        let request = submit(&mut self.agent).unwrap();
        loop {
            if let Some(event) = self.agent.poll_event() {
                assert_eq!(event.request, request);
                return event.outcome;
            }
            self.move_bytes();
        }
    }

    fn move_bytes(&mut self) {
        if let Some(bytes) = self.agent.poll_transmit() {
            match self.socket.write(bytes) {
                Ok(len) => self.agent.transmitted(len),
                Err(error) if error.kind() == ErrorKind::BrokenPipe => self.agent.handle_close(),
                Err(error) => panic!("{error}"),
            }
            return;
        }
        // Few bytes at a time: answers come in pieces.
        let mut buffer = [0; 100];
        match self.socket.read(&mut buffer) {
            Ok(0) => self.agent.handle_close(),
            Ok(len) => self.agent.handle_input(&buffer[..len]).unwrap(),
            Err(error) => panic!("the agent does not answer: {error}"),
        }
    }

    /// Sends a message as it is and expects SSH_AGENT_SUCCESS.
    pub(crate) fn send_raw(&mut self, message: &[u8]) {
        let length = u32::try_from(message.len()).unwrap();
        self.socket.write_all(&length.to_be_bytes()).unwrap();
        self.socket.write_all(message).unwrap();
        let mut answer = [0; 5];
        self.socket.read_exact(&mut answer).unwrap();
        assert_eq!(answer, [0, 0, 0, 1, 6]);
    }
}
