//! The binary packet protocol: RFC 4253 section 6. Octets in both directions, one half each.
//!
//! Packets of a connection that is shared are bare (PROTOCOL.mux section 9): a length, no padding, a payload. Whoever shares it
//! protects them on their way to the server.

use std::ops::Range;

use sshoal_crypto::{CryptoError, MAX_PACKET, Opener, Sealer};
use sshoal_wire::message_name;

/// packet_length and padding_length.
const HEADER: usize = 5;
/// The least packet_length of a bare packet: OpenSSH's shortest payload is of 4 octets (packet.c, `ssh_packet_read_poll2_mux`).
const LEAST_BARE: usize = 5;
/// An output buffer that was emptied of at least this much is kept: more of a bulk transfer is on its way, and
/// memory of this size would come fresh from the kernel each time. Any other is given back, so that idle
/// connections stay small.
const BULK: usize = 64 * 1024;
/// Octets of padding that are drawn together: those of a login.
const NOISE: usize = 96;
/// Octets at the front of the buffer that may have left before what is behind them is moved up.
const SLACK: usize = 4096;

/// The sending half: messages become packets in one growing buffer.
pub(crate) struct Outgoing {
    /// `None`: packets are bare.
    sealer: Option<Sealer>,
    sequence: u32,
    noise: Noise,
    buffer: Vec<u8>,
    /// Octets at the front of `buffer` that have left.
    left: usize,
    /// Octets that have left since the connection began.
    total_left: u64,
    used: Usage,
}

/// What one direction's keys have been used for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) packets: u32,
    pub(crate) bytes: u64,
}

impl Usage {
    fn count(&mut self, octets: usize) {
        self.packets = self.packets.saturating_add(1);
        self.bytes = self.bytes.saturating_add(octets as u64);
    }
}

/// Random octets for padding. A few at a time cost as much as many.
struct Noise {
    random: fn(&mut [u8]),
    octets: [u8; NOISE],
    /// How many at the front of `octets` were not used yet.
    left: usize,
}

impl Noise {
    fn fill(&mut self, padding: &mut [u8]) {
        if padding.len() > NOISE {
            return (self.random)(padding);
        }
        if padding.len() > self.left {
            (self.random)(&mut self.octets);
            self.left = NOISE;
        }
        self.left -= padding.len();
        padding.copy_from_slice(&self.octets[self.left..][..padding.len()]);
    }
}

impl Outgoing {
    pub(crate) fn new(identification: &str, random: fn(&mut [u8])) -> Self {
        let mut buffer = Vec::with_capacity(2048);
        buffer.extend_from_slice(identification.as_bytes());
        buffer.extend_from_slice(b"\r\n");
        Outgoing::with(Some(Sealer::plain()), buffer, random)
    }

    /// For bare packets.
    pub(crate) fn bare(random: fn(&mut [u8])) -> Self {
        Outgoing::with(None, Vec::new(), random)
    }

    fn with(sealer: Option<Sealer>, buffer: Vec<u8>, random: fn(&mut [u8])) -> Self {
        Outgoing {
            sealer,
            sequence: 0,
            noise: Noise {
                random,
                octets: [0; NOISE],
                left: 0,
            },
            buffer,
            left: 0,
            total_left: 0,
            used: Usage::default(),
        }
    }

    /// Seals one message written by `encode`; returns its packet sequence number.
    pub(crate) fn seal(&mut self, encode: impl FnOnce(&mut Vec<u8>)) -> Result<u32, CryptoError> {
        let start = self.buffer.len();
        self.buffer.extend_from_slice(&[0; HEADER]);
        encode(&mut self.buffer);
        let payload = self.buffer.len() - start - HEADER;
        if let Some(number) = self.buffer.get(start + HEADER) {
            // Without its length, which with a password in it would be the password's.
            tracing::debug!(message = message_name(*number), "sent");
        }
        let sealer = self.sealer.as_ref();
        let padding = sealer.map_or(0, |sealer| sealer.padding_len(payload));
        let padding_start = self.buffer.len();
        self.buffer.resize(padding_start + padding, 0);
        self.noise.fill(&mut self.buffer[padding_start..]);
        // Both fit: messages are limited to a few times 32 KiB, padding to 255.
        let packet_length = (1 + payload + padding) as u32;
        self.buffer[start..start + 4].copy_from_slice(&packet_length.to_be_bytes());
        self.buffer[start + 4] = padding as u8;
        if let Some(sealer) = &mut self.sealer {
            sealer.seal(self.sequence, &mut self.buffer, start)?;
        }
        self.used.count(self.buffer.len() - start);
        let sequence = self.sequence;
        self.sequence = self.sequence.wrapping_add(1);
        Ok(sequence)
    }

    /// New keys from the next packet on; strict key exchange restarts the numbering.
    pub(crate) fn rekey(&mut self, sealer: Sealer, restart_sequence: bool) {
        self.sealer = Some(sealer);
        self.used = Usage::default();
        if restart_sequence {
            self.sequence = 0;
        }
    }

    /// Whether packets are bare.
    pub(crate) fn is_bare(&self) -> bool {
        self.sealer.is_none()
    }

    pub(crate) fn pending(&self) -> &[u8] {
        &self.buffer[self.left..]
    }

    pub(crate) fn transmitted(&mut self, octets: usize) {
        let octets = octets.min(self.pending().len());
        self.left += octets;
        self.total_left += octets as u64;
        if self.left == self.buffer.len() {
            match self.buffer.len() >= BULK {
                true => self.buffer.clear(),
                false => self.buffer = Vec::new(),
            }
            self.left = 0;
        } else if self.left >= SLACK {
            self.move_up();
        }
    }

    /// Throws away what is queued: nothing more will leave, and nothing more can be sealed, because the
    /// server would miss packets.
    pub(crate) fn abandon(&mut self) {
        self.buffer = Vec::new();
        self.left = 0;
    }

    /// Moves what is queued to the front, if no more has to be moved than has left: a peer that reads
    /// slowly cannot make the buffer grow for ever.
    fn move_up(&mut self) {
        if self.left >= self.buffer.len() - self.left {
            self.buffer.drain(..self.left);
            self.left = 0;
        }
    }

    /// Octets that have left since the beginning.
    pub(crate) fn total_left(&self) -> u64 {
        self.total_left
    }

    /// Where the outgoing stream ends when all that is queued will have left.
    pub(crate) fn end(&self) -> u64 {
        self.total_left + (self.buffer.len() - self.left) as u64
    }

    /// Gives room for `octets` more without growing step by step.
    pub(crate) fn reserve(&mut self, octets: usize) {
        self.move_up();
        self.buffer.reserve(octets);
    }

    pub(crate) fn used(&self) -> Usage {
        self.used
    }
}

/// The receiving half: packets opened in place.
pub(crate) struct Incoming {
    /// `None`: packets are bare.
    opener: Option<Opener>,
    sequence: u32,
    used: Usage,
}

/// One opened packet.
pub(crate) struct Packet {
    /// Octets of input it took.
    pub(crate) taken: usize,
    /// Where its payload lies in the input.
    pub(crate) payload: Range<usize>,
    /// Its packet sequence number (RFC 4253 section 6.4).
    pub(crate) sequence: u32,
}

impl Incoming {
    pub(crate) fn new() -> Self {
        Incoming::with(Some(Opener::plain()))
    }

    /// For bare packets.
    pub(crate) fn bare() -> Self {
        Incoming::with(None)
    }

    fn with(opener: Option<Opener>) -> Self {
        Incoming {
            opener,
            sequence: 0,
            used: Usage::default(),
        }
    }

    /// Opens the packet at the front of `input`, if it is there whole.
    pub(crate) fn open(&mut self, input: &mut [u8]) -> Result<Option<Packet>, CryptoError> {
        let opened = match &mut self.opener {
            Some(opener) => open(opener, self.sequence, input)?,
            None => open_bare(input)?,
        };
        let Some((taken, payload)) = opened else {
            return Ok(None);
        };
        let sequence = self.sequence;
        self.sequence = self.sequence.wrapping_add(1);
        self.used.count(taken);
        Ok(Some(Packet {
            taken,
            payload,
            sequence,
        }))
    }

    /// New keys from the next packet on; strict key exchange restarts the numbering.
    pub(crate) fn rekey(&mut self, opener: Opener, restart_sequence: bool) {
        self.opener = Some(opener);
        self.used = Usage::default();
        if restart_sequence {
            self.sequence = 0;
        }
    }

    pub(crate) fn used(&self) -> Usage {
        self.used
    }
}

/// A packet at the front, how long it is and where its payload lies; `None` if it is not there whole.
type Opened = Option<(usize, Range<usize>)>;

fn open(opener: &mut Opener, sequence: u32, input: &mut [u8]) -> Result<Opened, CryptoError> {
    let head = opener.head_len();
    if input.len() < head {
        return Ok(None);
    }
    let taken = opener.packet_len(sequence, &input[..head])?;
    let Some(packet) = input.get_mut(..taken) else {
        return Ok(None);
    };
    let payload = opener.open(sequence, packet)?;
    Ok(Some((taken, payload)))
}

fn open_bare(input: &[u8]) -> Result<Opened, CryptoError> {
    let Some((length, rest)) = input.split_first_chunk::<4>() else {
        return Ok(None);
    };
    let packet_length = u32::from_be_bytes(*length);
    let len = match usize::try_from(packet_length) {
        Ok(len @ LEAST_BARE..=MAX_PACKET) => len,
        _ => return Err(CryptoError::PacketLength { packet_length }),
    };
    match rest.get(..len) {
        None => Ok(None),
        Some([0, ..]) => Ok(Some((4 + len, HEADER..4 + len))),
        Some(_) => Err(CryptoError::Padding),
    }
}
