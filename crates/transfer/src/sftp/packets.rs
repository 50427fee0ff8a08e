//! Packets out of a stream of octets: draft-ietf-secsh-filexfer-02 section 3.

use super::SftpError;

/// The longest packet accepted, octets without its length: what OpenSSH's own programs bear (sftp-common.h,
/// SFTP_MAX_MSG_LENGTH).
pub const MAX_PACKET: usize = 256 * 1024;
/// Octets of what is no SFTP that are quoted.
const QUOTED: usize = 200;

/// Puts packets together from the pieces in which they come.
#[derive(Debug, Default)]
pub(crate) struct Packets {
    /// Octets of the length, and how many of them have come.
    head: [u8; 4],
    headed: usize,
    /// The packet without its length, as far as it has come.
    body: Vec<u8>,
    /// Whether a whole packet has ever come.
    any: bool,
}

impl Packets {
    /// Takes octets off the front of `input`; returns a packet as soon as one is whole.
    pub(crate) fn next(&mut self, input: &mut &[u8]) -> Result<Option<Vec<u8>>, SftpError> {
        let head = (4 - self.headed).min(input.len());
        self.head[self.headed..][..head].copy_from_slice(&input[..head]);
        self.headed += head;
        *input = &input[head..];
        if self.headed < 4 {
            return Ok(None);
        }
        let claimed = u32::from_be_bytes(self.head);
        let len = self.check(claimed, input)?;
        if self.body.is_empty() {
            self.body.reserve_exact(len);
        }
        let wanted = (len - self.body.len()).min(input.len());
        self.body.extend_from_slice(&input[..wanted]);
        *input = &input[wanted..];
        if self.body.len() < len {
            return Ok(None);
        }
        self.headed = 0;
        self.any = true;
        Ok(Some(std::mem::take(&mut self.body)))
    }

    fn check(&self, claimed: u32, input: &[u8]) -> Result<usize, SftpError> {
        match usize::try_from(claimed) {
            Ok(len) if (1..=MAX_PACKET).contains(&len) => Ok(len),
            // The first packet is VERSION, a hundred octets or so.
            _ if !self.any => Err(SftpError::NotSftp {
                said: quoted(&self.head, input),
            }),
            _ => Err(SftpError::TooLong { len: claimed }),
        }
    }
}

/// What came in place of a packet.
fn quoted(head: &[u8], rest: &[u8]) -> String {
    let all: Vec<u8> = head.iter().chain(rest).copied().take(QUOTED).collect();
    printable(&all)
}

/// Text of the server's that does nothing to a terminal.
pub(crate) fn printable(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let is_plain = |c: char| {
        !c.is_control() && !matches!(c, '\u{200e}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let shown: String = text
        .chars()
        .map(|c| if is_plain(c) { c } else { ' ' })
        .collect();
    shown.trim().to_owned()
}
