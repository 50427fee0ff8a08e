//! What a server answers: draft-ietf-secsh-filexfer-02 section 7, PROTOCOL section 4.

use std::ops::Deref;

use sshoal_wire::{Decoder, Problem};

use super::packets::printable;
use super::request::Expected;
use super::{Attributes, Limits, SftpError};
use crate::path::MAX_PATH;

pub(super) const VERSION: u8 = 2;
const STATUS: u8 = 101;
const HANDLE: u8 = 102;
const DATA: u8 = 103;
const NAME: u8 = 104;
const ATTRS: u8 = 105;
const EXTENDED_REPLY: u8 = 201;
/// The longest handle (draft section 6.2), octets.
const MAX_HANDLE: usize = 256;
/// Octets of a server's message that are kept.
const MAX_MESSAGE: usize = 512;

/// What a server answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// SSH_FXP_STATUS.
    Status(Status),
    /// SSH_FXP_HANDLE.
    Handle(Handle),
    /// SSH_FXP_DATA.
    Data(Data),
    /// SSH_FXP_NAME.
    Names(Vec<Name>),
    /// SSH_FXP_ATTRS.
    Attributes(Attributes),
    /// The reply to limits@openssh.com.
    Limits(Limits),
    /// The reply to statvfs@openssh.com.
    Filesystem(FilesystemStatus),
    /// The reply to users-groups-by-id@openssh.com.
    Accounts(AccountNames),
}

/// Names of users and groups in the order in which they were asked for, empty where there is none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccountNames {
    /// Users.
    pub users: Vec<Vec<u8>>,
    /// Groups.
    pub groups: Vec<Vec<u8>>,
}

/// An open file or folder of the server's; good on its own channel only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handle(Vec<u8>);

impl Handle {
    pub(crate) fn octets(&self) -> &[u8] {
        &self.0
    }
}

/// What an operation came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The code.
    pub code: StatusCode,
    /// The server's words, made printable; often only the code's name.
    pub message: String,
}

/// SSH_FX_ codes of version 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusCode {
    /// SSH_FX_OK.
    Ok,
    /// SSH_FX_EOF.
    Eof,
    /// SSH_FX_NO_SUCH_FILE.
    NoSuchFile,
    /// SSH_FX_PERMISSION_DENIED.
    PermissionDenied,
    /// SSH_FX_FAILURE: everything for which version 3 has no code of its own.
    Failure,
    /// SSH_FX_OP_UNSUPPORTED.
    Unsupported,
    /// Any other.
    Other(u32),
}

impl From<u32> for StatusCode {
    fn from(code: u32) -> Self {
        match code {
            0 => StatusCode::Ok,
            1 => StatusCode::Eof,
            2 => StatusCode::NoSuchFile,
            3 => StatusCode::PermissionDenied,
            4 => StatusCode::Failure,
            8 => StatusCode::Unsupported,
            other => StatusCode::Other(other),
        }
    }
}

/// Octets of a file, in the packet that they came in: nothing is copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Data {
    packet: Vec<u8>,
    from: usize,
}

impl Deref for Data {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.packet[self.from..]
    }
}

impl From<Vec<u8>> for Data {
    fn from(packet: Vec<u8>) -> Self {
        Data { packet, from: 0 }
    }
}

/// A name, by READDIR within its folder, by others a whole path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// Octets of the server's choice: check before use.
    pub name: Vec<u8>,
    /// What is known of it.
    pub attributes: Attributes,
}

/// What statvfs(3) says of a file system, as far as failures are explained by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilesystemStatus {
    /// Octets that the user may still write.
    pub available: u64,
    /// Files that the user may still make.
    pub files_available: u64,
    /// Files that there can be; 0 where they are not counted.
    pub files: u64,
    /// Whether it is mounted for reading only.
    pub read_only: bool,
}

/// The type of a packet, its request, and where its fields begin.
pub(super) fn head(packet: &[u8]) -> Result<(u8, u32), SftpError> {
    let mut fields = Decoder::named("SFTP packet", packet);
    let kind = fields.field("type").u8()?;
    Ok((kind, fields.field("request-id").u32()?))
}

impl Reply {
    /// Reads a packet that answers `request`.
    pub(super) fn decode(
        packet: Vec<u8>,
        request: &'static str,
        expected: Expected,
    ) -> Result<Reply, SftpError> {
        let (kind, _) = head(&packet)?;
        let body = &packet[5..];
        match (kind, expected) {
            (STATUS, _) => status(body),
            (HANDLE, Expected::Handle) => handle(body),
            (DATA, Expected::Data { at_most }) => data(packet, at_most),
            (NAME, Expected::Names) => names(body),
            (ATTRS, Expected::Attributes) => {
                let mut fields = Decoder::named("SSH_FXP_ATTRS", body);
                Ok(Reply::Attributes(Attributes::decode(&mut fields)?))
            }
            (EXTENDED_REPLY, Expected::Limits) => limits(body),
            (EXTENDED_REPLY, Expected::Filesystem) => filesystem(body),
            (EXTENDED_REPLY, Expected::Accounts) => account_names(body),
            _ => Err(SftpError::WrongReply { request, kind }),
        }
    }
}

fn status(body: &[u8]) -> Result<Reply, SftpError> {
    let mut fields = Decoder::named("SSH_FXP_STATUS", body);
    let code = fields.field("error/status code").u32()?.into();
    // Some servers of version 3 leave the message out.
    let message = match fields.unread() {
        [] => &b""[..],
        _ => fields.field("error message").string()?,
    };
    let message = printable(&message[..message.len().min(MAX_MESSAGE)]);
    Ok(Reply::Status(Status { code, message }))
}

fn handle(body: &[u8]) -> Result<Reply, SftpError> {
    let mut fields = Decoder::named("SSH_FXP_HANDLE", body);
    let handle = fields.field("handle").string()?;
    if handle.len() > MAX_HANDLE {
        let problem = Problem::TooLong {
            len: handle.len(),
            limit: MAX_HANDLE,
        };
        return Err(fields.error(problem).into());
    }
    fields.finish()?;
    Ok(Reply::Handle(Handle(handle.to_vec())))
}

fn data(mut packet: Vec<u8>, asked: u32) -> Result<Reply, SftpError> {
    let mut fields = Decoder::named("SSH_FXP_DATA", &packet[5..]);
    let sent = fields.field("data").string()?.len();
    if sent > asked as usize {
        return Err(SftpError::TooMuchData { sent, asked });
    }
    packet.truncate(9 + sent);
    Ok(Reply::Data(Data { packet, from: 9 }))
}

fn names(body: &[u8]) -> Result<Reply, SftpError> {
    let mut fields = Decoder::named("SSH_FXP_NAME", body);
    let count = fields.field("count").u32()?;
    let mut names = Vec::new();
    // A name takes twelve octets at least: no more can come than the packet holds, whatever it claims.
    for _ in 0..count {
        let name = fields.field("filename").string()?;
        if name.len() > MAX_PATH {
            return Err(fields
                .error(Problem::TooLong {
                    len: name.len(),
                    limit: MAX_PATH,
                })
                .into());
        }
        fields.field("longname").string()?;
        let attributes = Attributes::decode(&mut fields)?;
        names.push(Name {
            name: name.to_vec(),
            attributes,
        });
    }
    Ok(Reply::Names(names))
}

fn limits(body: &[u8]) -> Result<Reply, SftpError> {
    let mut fields = Decoder::named("limits@openssh.com", body);
    let packet = fields.field("max-packet-length").u64()?;
    let read = fields.field("max-read-length").u64()?;
    let write = fields.field("max-write-length").u64()?;
    // max-open-handles follows; 0 means no limit that is known.
    let handles = fields.field("max-open-handles").u64()?;
    Ok(Reply::Limits(Limits::told(packet, read, write, handles)))
}

/// PROTOCOL section 4.13: a string of names, each a string, of users, and one of groups.
fn account_names(body: &[u8]) -> Result<Reply, SftpError> {
    let mut fields = Decoder::named("users-groups-by-id@openssh.com", body);
    // No more can come than the packet holds.
    let mut list = |name| -> Result<Vec<Vec<u8>>, SftpError> {
        let mut list = Decoder::named(
            "users-groups-by-id@openssh.com",
            fields.field(name).string()?,
        );
        let mut names = Vec::new();
        while !list.unread().is_empty() {
            names.push(list.field("name").string()?.to_vec());
        }
        Ok(names)
    };
    let users = list("usernames")?;
    let groups = list("groupnames")?;
    Ok(Reply::Accounts(AccountNames { users, groups }))
}

fn filesystem(body: &[u8]) -> Result<Reply, SftpError> {
    let mut fields = Decoder::named("statvfs@openssh.com", body);
    let mut numbers = [0; 11];
    for number in &mut numbers {
        *number = fields.field("number").u64()?;
    }
    let [
        _,
        fragment,
        _,
        _,
        available,
        files,
        _,
        files_available,
        _,
        flags,
        _,
    ] = numbers;
    Ok(Reply::Filesystem(FilesystemStatus {
        available: available.saturating_mul(fragment),
        files_available,
        files,
        read_only: flags & 1 != 0,
    }))
}
