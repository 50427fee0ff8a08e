//! SFTP version 3 (draft-ietf-secsh-filexfer-02) with OpenSSH's extensions (PROTOCOL section 4), the client's side.

mod attributes;
mod client;
mod dialect;
mod flow;
mod outgoing;
mod packets;
mod reply;
mod request;

pub use attributes::{Attributes, FileType};
pub use client::{Client, Extension, Limits, MAX_PENDING};
pub use dialect::Dialect;
pub use outgoing::{Pieces, SharedOctets};
pub use packets::MAX_PACKET;
pub(crate) use packets::{Packets, printable};
pub use reply::{AccountNames, Data, FilesystemStatus, Handle, Name, Reply, Status, StatusCode};
pub use request::{Open, Request};

/// What a server sent that breaks the protocol: nothing more of the channel can be trusted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SftpError {
    /// The first octets are no SFTP packet: most often text of a shell's start-up file, or of a login shell that lets
    /// nobody in.
    #[error(
        "what came is no SFTP but {said:?}; a start-up file of the account's shell prints it, or the account has no shell \
         and the server no internal-sftp"
    )]
    NotSftp {
        /// Its beginning, made printable.
        said: String,
    },
    /// A packet longer than [`MAX_PACKET`].
    #[error("the server's SFTP packet has {len} octets, more than the {MAX_PACKET} accepted")]
    TooLong {
        /// As it claims.
        len: u32,
    },
    /// A packet that cannot be read.
    #[error(transparent)]
    Malformed(#[from] sshoal_wire::DecodeError),
    /// A version below 3 (draft section 4).
    #[error("the server speaks version {0} of SFTP; 3 is needed")]
    Version(u32),
    /// A further channel's VERSION names other extensions than the first one's.
    #[error(
        "another SFTP server answers on a further connection: its extensions are not those of the first one"
    )]
    AnotherServer,
    /// A reply that nothing was asked for.
    #[error("the server answered request {0}, which was never made")]
    Unasked(u32),
    /// A reply of a type that does not answer its request.
    #[error("the server answered {request} by a packet of type {kind}")]
    WrongReply {
        /// What was asked.
        request: &'static str,
        /// The packet's type.
        kind: u8,
    },
    /// More data than were asked for (draft section 6.4).
    #[error("the server sent {sent} octets of a file where {asked} were asked for")]
    TooMuchData {
        /// What came.
        sent: usize,
        /// What was asked for.
        asked: u32,
    },
    /// The channel ended while replies were owed.
    #[error("the server's SFTP program ended")]
    Ended,
}
