//! AddKeysToAgent: a key from a file that has logged somebody in is added to the agent (`maybe_add_key_to_agent`,
//! sshconnect2.c), once a run.
//!
//! The observer's thread does it: it may ask the user, it may wait for the agent without any host waiting for it, and it is
//! done before the run is over.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use sshoal_agent::{Constraints, MAX_MESSAGE_LEN, add_identity, is_added};
use sshoal_crypto::{PrivateKey, fingerprint_sha256};

use crate::observer::Observer;

/// How long the agent may take for an answer: nobody is asked for one.
const PATIENCE: Duration = Duration::from_secs(5);
/// SSH_AGENTC_REQUEST_IDENTITIES, with its length.
const REQUEST_IDENTITIES: [u8; 5] = [0, 0, 0, 1, 11];

/// A key to be added.
pub(crate) struct KeyAddition {
    /// The agent's socket.
    pub(crate) socket: String,
    /// The key's file, which becomes the comment of a key that has none.
    pub(crate) path: String,
    pub(crate) private: Arc<PrivateKey>,
    pub(crate) constraints: Constraints,
    /// Whether the user is asked first.
    pub(crate) asks: bool,
}

impl KeyAddition {
    /// Adds the key, unless the agent has it, and says what hinders it.
    pub(crate) fn perform(
        &self,
        observer: &mut impl Observer,
        wanted: &dyn Fn() -> bool,
    ) -> io::Result<()> {
        let fingerprint = fingerprint_sha256(self.private.public_blob());
        let shown = format!("{} ({fingerprint})", self.path);
        let Some(form) = self.private.agent_form() else {
            return observer.notice(&format!(
                "{shown} is not added to the agent: it is not in OpenSSH's own format; ssh-keygen -p -f {} rewrites it",
                self.path
            ));
        };
        if self.asks && !self.is_allowed(&shown, observer, wanted)? {
            return Ok(());
        }
        match self.add(form) {
            Ok(()) => Ok(()),
            Err(error) => observer.notice(&format!(
                "{shown} is not added to the ssh-agent at {}: {error}; check it with ssh-add -l",
                self.socket
            )),
        }
    }

    fn is_allowed(
        &self,
        shown: &str,
        observer: &mut impl Observer,
        wanted: &dyn Fn() -> bool,
    ) -> io::Result<bool> {
        let answer = observer.ask(&format!("Add key {shown} to agent? (yes/no) "), wanted)?;
        Ok(answer.is_some_and(|answer| {
            let word = answer.expose().trim_ascii();
            word.is_empty() || word.eq_ignore_ascii_case(b"yes") || word.eq_ignore_ascii_case(b"y")
        }))
    }

    fn add(&self, form: &[u8]) -> io::Result<()> {
        let mut agent = UnixStream::connect(&self.socket)?;
        agent.set_read_timeout(Some(PATIENCE))?;
        agent.set_write_timeout(Some(PATIENCE))?;
        let blob = self.private.public_blob();
        let held = ask(&mut agent, &REQUEST_IDENTITIES)?;
        if held.windows(blob.len()).any(|octets| octets == blob) {
            return Ok(());
        }
        let comment = match self.private.comment() {
            "" => &self.path,
            comment => comment,
        };
        let request = add_identity(form, comment, self.constraints);
        match is_added(&ask(&mut agent, &request)?) {
            true => Ok(()),
            false => Err(io::Error::other("it refused")),
        }
    }
}

/// A request with its length, and the answer without.
fn ask(agent: &mut UnixStream, request: &[u8]) -> io::Result<Vec<u8>> {
    agent.write_all(request)?;
    let mut length = [0; 4];
    agent.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length) as usize;
    if length > MAX_MESSAGE_LEN {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut answer = vec![0; length];
    agent.read_exact(&mut answer)?;
    Ok(answer)
}
