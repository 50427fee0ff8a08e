//! SOCKS as a dynamic forward speaks it (`-D`): versions 4, 4a and 5, without authentication and for connections alone, as in
//! OpenSSH's channels.c (`channel_decode_socks4`, `channel_decode_socks5`). Version 5 is RFC 1928.
//!
//! ```
//! use sshoal_mux::{Destination, Socks};
//!
//! let mut socks = Socks::new();
//! // SOCKS 4a: connect, port 80, an address that says that a name follows, no user, the name.
//! let destination = socks.handle_input(b"\x04\x01\x00\x50\x00\x00\x00\x01\x00localhost\x00rest")?;
//! let wanted = Destination { host: "localhost".to_owned(), port: 80 };
//! assert_eq!(destination, Some(wanted));
//! socks.answer(true);
//! assert_eq!(socks.take_output(), [0, 90, 0, 0, 0, 0, 0, 0]);
//! assert_eq!(socks.into_rest(), b"rest");
//! # Ok::<(), sshoal_mux::SocksError>(())
//! ```

use std::net::{Ipv4Addr, Ipv6Addr};

/// Most octets of a handshake that wait for their rest: a SOCKS 4a request with the longest user and name.
pub const MAX_HANDSHAKE: usize = 9 + 2 * MAX_TEXT;
/// Longest user, and longest name, of SOCKS 4: as channels.c has it.
const MAX_TEXT: usize = 1024;

/// CONNECT, the only command, in all versions.
const CONNECT: u8 = 1;
/// SOCKS 5: no authentication, and that none is acceptable.
const NO_AUTHENTICATION: u8 = 0;
const NOTHING_ACCEPTABLE: u8 = 0xff;
/// SOCKS 5: replies.
const SUCCEEDED: u8 = 0;
const REFUSED: u8 = 5;
const NO_SUCH_COMMAND: u8 = 7;
const NO_SUCH_ADDRESS_TYPE: u8 = 8;
/// SOCKS 4: replies.
const GRANTED: u8 = 90;
const REJECTED: u8 = 91;

/// Where a client of a dynamic forward wants to go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// A name or an address.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// Why a client of a dynamic forward is served no further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SocksError {
    /// Neither SOCKS 4 nor 5.
    #[error("version {0} of SOCKS is not spoken here")]
    Version(u8),
    /// It wants to be asked for a user or a password.
    #[error("the client insists on authentication")]
    Authentication,
    /// BIND or UDP ASSOCIATE.
    #[error("SOCKS command {0} is not served, but CONNECT alone")]
    Command(u8),
    /// An address that is no IPv4, no IPv6 and no name.
    #[error("SOCKS address type {0} is not known")]
    AddressType(u8),
    /// A name that is no text.
    #[error("the name of the destination is no text")]
    Name,
    /// No end within [`MAX_HANDSHAKE`].
    #[error("the handshake has more than {MAX_HANDSHAKE} octets")]
    Length,
}

/// The handshake of one connection.
#[derive(Debug, Default)]
pub struct Socks {
    input: Vec<u8>,
    output: Vec<u8>,
    state: State,
}

/// How far it is.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    ExpectVersion,
    /// SOCKS 5, whose client may begin.
    ExpectRequest5,
    /// The destination is known, to a client of this version.
    Asked(u8),
}

impl Socks {
    /// A client that has just connected.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes what the client has sent; returns where it wants to go as soon as it has said so, once.
    ///
    /// # Errors
    /// It does not follow the protocol, or wants what is not served. What [`take_output`](Self::take_output) has is still for it.
    pub fn handle_input(&mut self, octets: &[u8]) -> Result<Option<Destination>, SocksError> {
        self.input.extend_from_slice(octets);
        if self.state == State::ExpectVersion {
            match self.input.first() {
                Some(4) => return self.read_request4(),
                Some(5) => self.read_methods()?,
                Some(&version) => return Err(SocksError::Version(version)),
                None => {}
            }
        }
        if self.state == State::ExpectRequest5 {
            return self.read_request5();
        }
        Ok(None)
    }

    /// Tells the client whether it is connected.
    pub fn answer(&mut self, is_connected: bool) {
        match (self.state, is_connected) {
            (State::Asked(4), true) => self.reply4(GRANTED),
            (State::Asked(4), false) => self.reply4(REJECTED),
            (State::Asked(_), true) => self.reply5(SUCCEEDED),
            (State::Asked(_), false) => self.reply5(REFUSED),
            _ => {}
        }
    }

    /// What the client is to be sent now.
    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }

    /// What came behind the handshake.
    #[must_use]
    pub fn into_rest(self) -> Vec<u8> {
        self.input
    }

    /// Version 4: version, command, port, address, user, and for 4a a name.
    fn read_request4(&mut self) -> Result<Option<Destination>, SocksError> {
        let Some((head, texts)) = self.input.split_first_chunk::<8>() else {
            return Ok(None);
        };
        let [_, command, high, low, address @ ..] = *head;
        let Some(user) = text_length(texts)? else {
            return Ok(None);
        };
        let mut len = head.len() + user + 1;
        // 4a: "0.0.0.x" with x nonzero.
        let is_named = address[..3] == [0, 0, 0] && address[3] != 0;
        let host = match is_named {
            false => Ipv4Addr::from(address).to_string(),
            true => {
                let name = &texts[user + 1..];
                let Some(end) = text_length(name)? else {
                    return Ok(None);
                };
                len += end + 1;
                text(&name[..end])?
            }
        };
        if command != CONNECT {
            self.reply4(REJECTED);
            return Err(SocksError::Command(command));
        }
        self.input.drain(..len);
        self.state = State::Asked(4);
        let port = u16::from_be_bytes([high, low]);
        Ok(Some(Destination { host, port }))
    }

    /// Version 5, first message: which methods of authentication the client knows.
    fn read_methods(&mut self) -> Result<(), SocksError> {
        let [_, number, rest @ ..] = self.input.as_slice() else {
            return Ok(());
        };
        let Some(methods) = rest.get(..usize::from(*number)) else {
            return Ok(());
        };
        if !methods.contains(&NO_AUTHENTICATION) {
            self.output.extend([5, NOTHING_ACCEPTABLE]);
            return Err(SocksError::Authentication);
        }
        self.input.drain(..2 + usize::from(*number));
        self.output.extend([5, NO_AUTHENTICATION]);
        self.state = State::ExpectRequest5;
        Ok(())
    }

    /// Version 5, second message: version, command, a zero, address, port.
    fn read_request5(&mut self) -> Result<Option<Destination>, SocksError> {
        let [version, command, _, kind, rest @ ..] = self.input.as_slice() else {
            return Ok(None);
        };
        let (version, command, kind) = (*version, *command, *kind);
        if version != 5 {
            return Err(SocksError::Version(version));
        }
        if command != CONNECT {
            self.reply5(NO_SUCH_COMMAND);
            return Err(SocksError::Command(command));
        }
        let (before, len) = match (kind, rest.first()) {
            (1, _) => (0, 4),
            (3, Some(len)) => (1, usize::from(*len)),
            (3, None) => return Ok(None),
            (4, _) => (0, 16),
            _ => {
                self.reply5(NO_SUCH_ADDRESS_TYPE);
                return Err(SocksError::AddressType(kind));
            }
        };
        let Some([address @ .., high, low]) = rest.get(before..before + len + 2) else {
            return Ok(None);
        };
        let host = match (<[u8; 4]>::try_from(address), <[u8; 16]>::try_from(address)) {
            (Ok(octets), _) if kind == 1 => Ipv4Addr::from(octets).to_string(),
            (_, Ok(octets)) if kind == 4 => Ipv6Addr::from(octets).to_string(),
            _ => text(address)?,
        };
        let port = u16::from_be_bytes([*high, *low]);
        self.input.drain(..4 + before + len + 2);
        self.state = State::Asked(5);
        Ok(Some(Destination { host, port }))
    }

    fn reply4(&mut self, code: u8) {
        self.output.extend([0, code, 0, 0, 0, 0, 0, 0]);
    }

    /// The address that was bound is not told, as in OpenSSH.
    fn reply5(&mut self, code: u8) {
        self.output.extend([5, code, 0, 1, 0, 0, 0, 0, 0, 0]);
    }
}

/// How long the text at the front is, which a zero ends; `None` if that has not come.
fn text_length(octets: &[u8]) -> Result<Option<usize>, SocksError> {
    let end = octets.iter().position(|octet| *octet == 0);
    match end.unwrap_or(octets.len()) > MAX_TEXT {
        true => Err(SocksError::Length),
        false => Ok(end),
    }
}

/// A name without a zero in it.
fn text(octets: &[u8]) -> Result<String, SocksError> {
    let name = std::str::from_utf8(octets).map_err(|_| SocksError::Name)?;
    match name.is_empty() || name.contains('\0') {
        true => Err(SocksError::Name),
        false => Ok(name.to_owned()),
    }
}

#[cfg(test)]
mod tests;
