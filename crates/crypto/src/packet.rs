//! Packet protection: RFC 4253 section 6, one packet at a time, in place.
//!
//! ```text
//!                   packet_length  padding_length || payload || padding   tag
//! plain                clear                     clear                    none
//! GCM                  clear, authenticated      encrypted                16
//! chacha20-poly1305    encrypted by itself       encrypted                16
//! CTR, MAC-etm         clear, authenticated      encrypted, MAC of it     20 to 64
//! CTR, MAC             encrypted                 encrypted, MAC of clear  20 to 64
//! ```
//!
//! The sizes below are those of packet_length's value: everything after it but the tag.

mod counter_mode;
mod gcm;
mod opener;
mod protection;
mod sealer;

pub use opener::Opener;
pub use sealer::Sealer;

/// The largest packet_length that is accepted: OpenSSH's `PACKET_MAX_SIZE`, octets.
pub const MAX_PACKET: usize = 256 * 1024;
/// packet_length: a u32.
const LENGTH_LEN: usize = 4;
/// packet_length and padding_length.
const HEADER_LEN: usize = LENGTH_LEN + 1;
/// RFC 4253 section 6: "There MUST be at least four bytes of padding."
const MIN_PADDING: usize = 4;
/// padding_length and the least padding, as OpenSSH checks (packet.c).
const MIN_PACKET: usize = 1 + MIN_PADDING;
/// Octets of an AEAD tag.
const AEAD_TAG_LEN: usize = 16;

/// Why a packet cannot be sealed or opened. After one of these the connection cannot go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CryptoError {
    /// Keys of another size than the algorithms want, or a MAC missing or out of place: a caller's mistake.
    #[error("keys do not fit cipher and MAC")]
    Keys,
    /// RFC 4253 section 6.1: out of the range that is accepted. Often a sign that the other side lost
    /// step, or that its first octets were not SSH at all.
    #[error("a packet length of {packet_length}; {MIN_PACKET} to {MAX_PACKET} are accepted")]
    PacketLength {
        /// As received.
        packet_length: u32,
    },
    /// RFC 4253 section 6: the length must be a multiple of the cipher's block.
    #[error("a packet length of {packet_length}, not aligned to the cipher's {block_len} octets")]
    Alignment {
        /// As received.
        packet_length: u32,
        /// Of the cipher in use.
        block_len: usize,
    },
    /// Not exactly the octets that `packet_len` announced.
    #[error("a packet of {found} octets was given where {expected} were announced")]
    Size {
        /// By `packet_len`.
        expected: usize,
        /// Given.
        found: usize,
    },
    /// MAC or tag do not match.
    #[error("corrupted packet: its MAC is wrong; the data was damaged or altered on its way")]
    Corrupt,
    /// RFC 4253 section 6: under four octets of padding, or more than the packet has, or no payload.
    #[error("a packet with impossible padding")]
    Padding,
    /// The buffer to seal holds no packet.
    #[error("no whole packet to seal")]
    Unsealable,
}

/// Which octets are padded to a multiple of what.
#[derive(Clone, Copy)]
struct Alignment {
    block_len: usize,
    /// Whether packet_length's own four octets count.
    counts_length: bool,
}

impl Alignment {
    fn padding_len(self, payload_len: usize) -> usize {
        let counted = payload_len + if self.counts_length { HEADER_LEN } else { 1 };
        let padding = self.block_len - counted % self.block_len;
        if padding < MIN_PADDING {
            padding + self.block_len
        } else {
            padding
        }
    }

    /// Octets of the whole packet without its tag.
    fn checked(self, packet_length: [u8; LENGTH_LEN]) -> Result<usize, CryptoError> {
        let packet_length = u32::from_be_bytes(packet_length);
        let length = packet_length as usize;
        if !(MIN_PACKET..=MAX_PACKET).contains(&length) {
            return Err(CryptoError::PacketLength { packet_length });
        }
        let counted = length + if self.counts_length { LENGTH_LEN } else { 0 };
        if !counted.is_multiple_of(self.block_len) {
            return Err(CryptoError::Alignment {
                packet_length,
                block_len: self.block_len,
            });
        }
        Ok(LENGTH_LEN + length)
    }
}

#[cfg(test)]
mod tests;
