//! Faults at a place in a connection's byte stream.

use serde::{Deserialize, Serialize};

/// An end that a connection comes to at a certain place of one of its two streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    /// Which of the host's two streams is counted.
    pub side: Side,
    /// What happens there.
    pub action: Action,
    /// Where it happens.
    pub at: Position,
}

/// One of the host's two byte streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Side {
    /// What the host sends.
    Output,
    /// What the host receives.
    Input,
}

/// What the host does at a [`Position`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Action {
    /// Closes with a TCP RST. The bytes before the cut have been sent.
    Reset,
    /// Closes its sending side with a FIN and ignores what it still receives.
    Close,
    /// On [`Side::Output`]: works on and sends no more. On [`Side::Input`]: reads and ignores.
    Silence,
}

/// A place in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Position {
    /// After this many bytes, the version line included.
    Byte(u64),
    /// After this many bytes more than had passed when the host accepted the authentication. In the
    /// output USERAUTH_SUCCESS comes after that moment; in the input the accepted request before it.
    AfterAuthentication(u64),
    /// After this many binary packets (RFC 4253, 6). The host then offers AES-GCM alone, the cipher
    /// whose packet lengths can be read in passing (RFC 5647, 7.3).
    Message(u64),
}
