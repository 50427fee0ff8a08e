//! What an SFTP server would answer: draft-ietf-secsh-filexfer-02 section 7, PROTOCOL section 4.

use sshoal_wire::Put;

use super::requests::EXTENSIONS;
use super::words::understood;
use crate::sftp::Attributes;

/// Codes of SSH_FXP_STATUS.
pub(super) const OK: u32 = 0;
pub(super) const EOF: u32 = 1;
pub(super) const NO_SUCH_FILE: u32 = 2;
pub(super) const PERMISSION_DENIED: u32 = 3;
pub(super) const FAILURE: u32 = 4;
pub(super) const OP_UNSUPPORTED: u32 = 8;

/// Packets that have not been taken.
#[derive(Debug, Default)]
pub(super) struct Replies {
    octets: Vec<u8>,
}

impl Replies {
    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.octets)
    }

    /// SSH_FXP_VERSION, with what is done here as OpenSSH's extensions.
    pub(super) fn greet(&mut self) {
        let start = self.octets.len();
        self.octets.put_u32(0);
        self.octets.put_u8(2);
        self.octets.put_u32(3);
        for (name, version) in EXTENSIONS {
            self.octets.put_string(name);
            self.octets.put_string(version);
        }
        self.close_packet(start);
    }

    pub(super) fn limits(&mut self, id: u32) {
        self.reply(201, id, |out| {
            // Nothing is open on the host.
            for number in [256 * 1024, 128 * 1024, 128 * 1024, 512] {
                out.put_u64(number);
            }
        });
    }

    pub(super) fn handle(&mut self, id: u32, handle: u32) {
        self.reply(102, id, |out| out.put_string(&handle.to_be_bytes()));
    }

    pub(super) fn attributes(&mut self, id: u32, attributes: &Attributes) {
        self.reply(105, id, |out| attributes.encode(out));
    }

    /// By what a program has said.
    pub(super) fn failed(&mut self, id: u32, words: &str) {
        let (code, reason) = understood(words);
        self.status(id, code, reason);
    }

    pub(super) fn status(&mut self, id: u32, code: u32, message: &str) {
        self.reply(101, id, |out| {
            out.put_u32(code);
            out.put_string(message.as_bytes());
            out.put_string(b"");
        });
    }

    pub(super) fn reply(&mut self, kind: u8, id: u32, body: impl FnOnce(&mut Vec<u8>)) {
        let start = self.octets.len();
        self.octets.put_u32(0);
        self.octets.put_u8(kind);
        self.octets.put_u32(id);
        body(&mut self.octets);
        self.close_packet(start);
    }

    fn close_packet(&mut self, start: usize) {
        let len = (self.octets.len() - start - 4) as u32;
        self.octets[start..start + 4].copy_from_slice(&len.to_be_bytes());
    }
}
