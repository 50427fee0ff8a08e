//! Requests and answers over one connection to an agent.

use std::io;

use sshoal_agent::{
    AgentConnection, Answer, Identity, MAX_MESSAGE_LEN, RequestError, RequestId, SessionBind,
};
use sshoal_agent::{ConnectionError, SubmitError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use super::Trouble;

/// Octets read at a time: any answer but a long list of keys.
const READ_SIZE: usize = 4096;

/// A connection with nothing in flight between two calls.
pub(super) struct Exchange {
    stream: UnixStream,
    agent: AgentConnection,
}

impl Exchange {
    pub(super) fn new(stream: UnixStream) -> Self {
        Exchange {
            stream,
            agent: AgentConnection::new(),
        }
    }

    pub(super) fn into_stream(self) -> UnixStream {
        self.stream
    }

    /// All keys; none if the agent is empty or locked.
    pub(super) async fn identities(&mut self) -> Result<Vec<Identity>, Trouble> {
        match self.ask(|agent| agent.request_identities()).await? {
            Ok(Answer::Identities(identities)) => Ok(identities),
            Ok(_) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the connection now serves this session only. An agent that refuses may still sign with keys that are
    /// not restricted to certain hosts (sshconnect2.c, get_agent_identities).
    pub(super) async fn bind(&mut self, session: SessionBind<'_>) -> Result<bool, Trouble> {
        match self.ask(|agent| agent.bind_session(session)).await? {
            Ok(_) => Ok(true),
            Err(RequestError::BindFailed | RequestError::BindRefused) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) async fn sign(
        &mut self,
        key: &[u8],
        algorithm: &str,
        data: &[u8],
    ) -> Result<Vec<u8>, Trouble> {
        match self.ask(|agent| agent.sign(key, algorithm, data)).await? {
            Ok(Answer::Signature(signature)) => Ok(signature),
            Ok(_) => Err(ConnectionError::Closed.into()),
            Err(error) => Err(error.into()),
        }
    }

    /// A request of somebody else's, as octets behind their length; the answer in the same form.
    pub(super) async fn pass_on(&mut self, request: &[u8]) -> io::Result<Vec<u8>> {
        self.stream.write_all(request).await?;
        let mut length = [0; 4];
        self.stream.read_exact(&mut length).await?;
        let body = u32::from_be_bytes(length) as usize;
        if body > MAX_MESSAGE_LEN {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut answer = length.to_vec();
        answer.resize(4 + body, 0);
        self.stream.read_exact(&mut answer[4..]).await?;
        Ok(answer)
    }

    /// One request: the outer error is the connection's, the inner one the agent's "no".
    async fn ask(
        &mut self,
        submit: impl FnOnce(&mut AgentConnection) -> Result<RequestId, SubmitError>,
    ) -> Result<Result<Answer, RequestError>, Trouble> {
        submit(&mut self.agent)?;
        if let Err(error) = self.move_octets().await {
            tracing::debug!(%error, "the connection to the agent broke");
            self.agent.handle_close();
        }
        match self.agent.poll_event() {
            Some(event) => Ok(event.outcome),
            None => Err(ConnectionError::Closed.into()),
        }
    }

    /// Until the request has ended in whatever way.
    async fn move_octets(&mut self) -> io::Result<()> {
        while let Some(octets) = self.agent.poll_transmit() {
            let written = self.stream.write(octets).await?;
            self.agent.transmitted(written);
        }
        let mut buffer = [0; READ_SIZE];
        while self.agent.is_busy() {
            match self.stream.read(&mut buffer).await? {
                0 => self.agent.handle_close(),
                // An error has ended the request, and says so in its event.
                read => drop(self.agent.handle_input(&buffer[..read])),
            }
        }
        Ok(())
    }
}

impl From<SubmitError> for Trouble {
    fn from(error: SubmitError) -> Self {
        Trouble {
            detail: error.to_string(),
            remedy: error.remedy().to_owned(),
        }
    }
}

impl From<ConnectionError> for Trouble {
    fn from(error: ConnectionError) -> Self {
        RequestError::Connection(error).into()
    }
}
