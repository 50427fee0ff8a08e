//! What a passenger asks for (PROTOCOL.mux sections 2 to 9).

use sshoal_wire::{DecodeError, Decoder, Problem};

use crate::forward::{Forward, Place};

/// Most variables of a session's environment, as mux.c has it.
pub const MAX_VARIABLES: usize = 4096;

/// MUX_MSG_HELLO; ours has the same number.
pub(crate) const HELLO: u32 = 0x0000_0001;
pub(crate) const NEW_SESSION: u32 = 0x1000_0002;
pub(crate) const ALIVE_CHECK: u32 = 0x1000_0004;
pub(crate) const TERMINATE: u32 = 0x1000_0005;
pub(crate) const OPEN_FWD: u32 = 0x1000_0006;
pub(crate) const CLOSE_FWD: u32 = 0x1000_0007;
pub(crate) const NEW_STDIO_FWD: u32 = 0x1000_0008;
pub(crate) const STOP_LISTENING: u32 = 0x1000_0009;
pub(crate) const PROXY: u32 = 0x1000_000f;

/// "To disable the use of an escape character, 'escape char' may be set to 0xffffffff" (section 2).
const NO_ESCAPE: u32 = u32::MAX;

/// A request, with the descriptors that came with it.
#[derive(Debug, PartialEq, Eq)]
pub enum Request<D> {
    /// Who are you (`-O check`, and before every session)? Answer: [`Reply::Alive`](crate::Reply::Alive).
    AliveCheck,
    /// The connection is to end (`-O exit`).
    Terminate,
    /// Nobody else is to be served (`-O stop`).
    StopListening,
    /// From the answer [`Reply::Proxy`](crate::Reply::Proxy) on, the passenger sends SSH packets (`-O proxy`).
    Proxy,
    /// A session, with standard input, output and error.
    NewSession(Box<NewSession>, [D; 3]),
    /// Standard input and output become a connection made by the server (`-W`).
    StdioForward(StdioForward, [D; 2]),
    /// A forward (`-L`, `-R`, `-D`, `-O forward`).
    OpenForward(Forward),
    /// The end of one (`-O cancel`).
    CloseForward(Forward),
}

/// What a session asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSession {
    /// A pseudo-terminal is wanted: its modes and its size are those of standard input.
    pub want_tty: bool,
    /// X11 forwarding is wanted.
    pub want_x11: bool,
    /// Forwarding of the agent is wanted.
    pub want_agent: bool,
    /// The command is a subsystem's name.
    pub is_subsystem: bool,
    /// The octet that begins the user's own commands (`~`), if there is one.
    pub escape: Option<u8>,
    /// TERM; may be empty.
    pub term: String,
    /// What to run; empty for the user's shell.
    pub command: Vec<u8>,
    /// Names and values, as the passenger's SendEnv and SetEnv have chosen them.
    pub environment: Vec<(Vec<u8>, Vec<u8>)>,
}

/// Where a stdio forward goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StdioForward {
    /// The place that the server connects to.
    pub to: Place,
}

/// A request of which everything but its descriptors is there.
#[derive(Debug)]
pub(crate) enum Announced {
    /// Nothing else comes with it.
    Whole(Request<std::convert::Infallible>),
    NewSession(Box<NewSession>),
    StdioForward(StdioForward),
    /// A number that this side does not know.
    Unknown,
}

impl Announced {
    /// Reads what follows the request's identifier.
    pub(crate) fn decode(number: u32, fields: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(match number {
            NEW_SESSION => Announced::NewSession(Box::new(NewSession::decode(fields)?)),
            NEW_STDIO_FWD => Announced::StdioForward(StdioForward::decode(fields)?),
            ALIVE_CHECK => Announced::Whole(Request::AliveCheck),
            TERMINATE => Announced::Whole(Request::Terminate),
            STOP_LISTENING => Announced::Whole(Request::StopListening),
            PROXY => Announced::Whole(Request::Proxy),
            OPEN_FWD => Announced::Whole(Request::OpenForward(Forward::decode(fields)?)),
            CLOSE_FWD => Announced::Whole(Request::CloseForward(Forward::decode(fields)?)),
            _ => {
                fields.rest();
                Announced::Unknown
            }
        })
    }
}

impl NewSession {
    fn decode(fields: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        fields.field("reserved").string()?;
        let want_tty = flag(fields, "want tty flag")?;
        let want_x11 = flag(fields, "want X11 forwarding flag")?;
        let want_agent = flag(fields, "want agent flag")?;
        let is_subsystem = flag(fields, "subsystem flag")?;
        let escape = match fields.field("escape char").u32()? {
            NO_ESCAPE => None,
            // mux.c passes its `int` on, and a filter compares it with octets.
            other => u8::try_from(other).ok(),
        };
        let term = fields.field("terminal type").string()?;
        let term = text(term).ok_or_else(|| fields.error(Problem::UnknownName))?;
        let command = fields.field("command").string()?.to_vec();
        // OpenSSH's server ends the whole connection in which a string has a NUL (sshbuf_get_cstring).
        if command.contains(&0) || term.contains('\0') {
            return Err(fields.error(Problem::UnknownName));
        }
        let mut environment = Vec::new();
        while !fields.unread().is_empty() {
            let pair = fields.field("environment string").string()?;
            if environment.len() >= MAX_VARIABLES {
                return Err(fields.error(Problem::TooMany {
                    count: MAX_VARIABLES as u32 + 1,
                    limit: MAX_VARIABLES as u32,
                }));
            }
            environment.extend(variable(pair));
        }
        Ok(NewSession {
            want_tty,
            want_x11,
            want_agent,
            is_subsystem,
            escape,
            term,
            command,
            environment,
        })
    }
}

impl StdioForward {
    fn decode(fields: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        fields.field("reserved").string()?;
        let to = Place::decode(fields, "connect host", "connect port")?;
        Ok(StdioForward { to })
    }
}

fn flag(fields: &mut Decoder<'_>, name: &'static str) -> Result<bool, DecodeError> {
    fields.field(name).u32().map(|number| number != 0)
}

/// Text without the octet 0.
fn text(octets: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(octets).ok()?;
    (!text.contains('\0')).then(|| text.to_owned())
}

/// `NAME=VALUE`; anything else is passed over, as mux.c does.
fn variable(pair: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let at = pair.iter().position(|octet| *octet == b'=')?;
    let (name, value) = (&pair[..at], &pair[at + 1..]);
    (!name.is_empty() && !pair.contains(&0)).then(|| (name.to_vec(), value.to_vec()))
}
