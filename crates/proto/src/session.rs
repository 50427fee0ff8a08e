//! A session's requests (RFC 4254 section 6), and what is known of its command.

use sshoal_wire::{ChannelRequest, Put};

use crate::channels::RemoteChannel;
use crate::fate::ExecFate;

/// What a session runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// "exec": octets for the user's shell (RFC 4254 section 6.5).
    Exec(Vec<u8>),
    /// "shell": an interactive login.
    Shell,
    /// "subsystem", for example "sftp".
    Subsystem(String),
}

/// A pseudo-terminal (RFC 4254 section 6.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pty {
    /// TERM.
    pub term: String,
    /// Columns in characters.
    pub columns: u32,
    /// Rows in characters.
    pub rows: u32,
    /// Encoded terminal modes (RFC 4254 section 8); empty for the server's own.
    pub modes: Vec<u8>,
}

/// Everything a session asks for before it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRequest {
    /// Environment variables; servers silently ignore those they do not allow (AcceptEnv).
    pub environment: Vec<(Vec<u8>, Vec<u8>)>,
    /// A pseudo-terminal, if wanted.
    pub pty: Option<Pty>,
    /// What to run.
    pub command: Command,
    /// Whether processes on the host may talk to the user's agent (auth-agent-req@openssh.com).
    pub forward_agent: bool,
    /// Whether standard input will come. If not, its end travels with the command.
    pub standard_input: bool,
}

impl SessionRequest {
    /// Only a command, with nothing on its standard input.
    pub fn exec(command: impl Into<Vec<u8>>) -> Self {
        SessionRequest {
            environment: Vec::new(),
            pty: None,
            command: Command::Exec(command.into()),
            forward_agent: false,
            standard_input: false,
        }
    }

    /// Octets this request takes on the wire at most, near enough to reserve room.
    pub(crate) fn size(&self) -> usize {
        let environment: usize = self
            .environment
            .iter()
            .map(|(name, value)| name.len() + value.len() + 64)
            .sum();
        let command = match &self.command {
            Command::Exec(line) => line.len(),
            Command::Shell => 0,
            Command::Subsystem(name) => name.len(),
        };
        environment + command + 256
    }

    /// The requests before the command, each as one message: "auth-agent-req@openssh.com", "pty-req" and "env".
    pub(crate) fn preparations(&self, to: RemoteChannel) -> Vec<Vec<u8>> {
        let agent = self.forward_agent.then_some("auth-agent-req@openssh.com");
        let agent = agent.map(|name| request(to, name, false, &[]));
        let pty = self.pty.iter().map(|pty| {
            let mut data = Vec::new();
            data.put_string(pty.term.as_bytes());
            for number in [pty.columns, pty.rows, 0, 0] {
                data.put_u32(number);
            }
            data.put_string(&pty.modes);
            request(to, "pty-req", true, &data)
        });
        let environment = self.environment.iter().map(|(name, value)| {
            let mut data = Vec::new();
            data.put_string(name);
            data.put_string(value);
            request(to, "env", false, &data)
        });
        agent.into_iter().chain(pty).chain(environment).collect()
    }

    /// The request that starts the command.
    pub(crate) fn start(&self, to: RemoteChannel) -> Vec<u8> {
        let mut data = Vec::new();
        let name = match &self.command {
            Command::Exec(line) => {
                data.put_string(line);
                "exec"
            }
            Command::Shell => "shell",
            Command::Subsystem(subsystem) => {
                data.put_string(subsystem.as_bytes());
                "subsystem"
            }
        };
        request(to, name, true, &data)
    }
}

/// One CHANNEL_REQUEST as octets.
pub(crate) fn request(to: RemoteChannel, name: &str, want_reply: bool, data: &[u8]) -> Vec<u8> {
    let mut message = Vec::with_capacity(data.len() + name.len() + 16);
    ChannelRequest {
        recipient_channel: to.number(),
        request_type: name.as_bytes(),
        want_reply,
        data,
    }
    .encode(&mut message);
    message
}

/// How far a session's command has come: the home of [`ExecFate`].
///
/// ```text
///   Waiting --sent--> InFlight --CHANNEL_SUCCESS, data, exit--> Started
///      ^                 |
///      +----UNIMPLEMENTED named it, after failed authentication; DISCONNECT in place of success
///                        +--OPEN_FAILURE, CHANNEL_FAILURE--> Refused
/// ```
#[derive(Debug)]
pub(crate) enum Progress {
    /// Nothing has been asked for yet: the session is a spare one.
    Spare,
    /// The request is not on its way; `discarded` if it once was and was proven to be thrown away.
    Waiting {
        request: Box<SessionRequest>,
        discarded: bool,
    },
    /// The request is queued or sent.
    InFlight {
        /// Kept for as long as it might have to be sent again.
        request: Box<SessionRequest>,
        /// Where the starting request is; `None` while a rekeying holds it back.
        sent: Option<Position>,
    },
    /// Confirmed by the server.
    Started,
    /// Refused by the server.
    Refused,
}

/// Where in the outgoing stream a message is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Position {
    /// Its packet sequence number.
    pub(crate) sequence: u32,
    /// Octets of the stream up to and with its last one.
    pub(crate) end: u64,
}

impl Progress {
    /// The command leaves for channel `to`: its requests, and the one that starts it. `None` if it does not wait.
    pub(crate) fn take_off(&mut self, to: RemoteChannel) -> Option<(Vec<Vec<u8>>, Vec<u8>)> {
        match std::mem::replace(self, Progress::Refused) {
            Progress::Waiting { request, .. } => {
                let messages = (request.preparations(to), request.start(to));
                *self = Progress::InFlight {
                    request,
                    sent: None,
                };
                Some(messages)
            }
            other => {
                *self = other;
                None
            }
        }
    }

    /// What may be said about the command when `left` octets of the outgoing stream have left.
    pub(crate) fn fate(&self, left: u64) -> ExecFate {
        match self {
            Progress::Waiting {
                discarded: true, ..
            }
            | Progress::Refused => ExecFate::ProvenDiscarded,
            Progress::Spare
            | Progress::Waiting {
                discarded: false, ..
            } => ExecFate::NotSent,
            Progress::InFlight { sent, .. } => match sent {
                // A packet is authenticated as a whole: without its last octet the server cannot open it.
                Some(position) if position.end <= left => ExecFate::MayHaveRun,
                _ => ExecFate::NotSent,
            },
            Progress::Started => ExecFate::Ran,
        }
    }

    /// Whether the command is queued, and not all of it has left.
    pub(crate) fn is_queued(&self, left: u64) -> bool {
        matches!(self, Progress::InFlight { sent: Some(position), .. } if position.end > left)
    }
}
