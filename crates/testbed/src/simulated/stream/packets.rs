//! Counting binary packets in a byte stream without the keys.

use super::Position;

/// Message number of NEWKEYS (RFC 4253, 12).
const NEWKEYS: u8 = 21;
/// AES-GCM's authentication tag (RFC 5647, 6.2).
const TAG: u32 = 16;

/// Follows one direction of a connection whose cipher is AES-GCM, where each packet's length stays
/// readable (RFC 5647, 7.3).
#[derive(Clone, Copy, Debug)]
pub(super) struct PacketCounter {
    place: Place,
    /// NEWKEYS has passed: tags follow.
    sealed: bool,
    complete: u64,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    /// In a line of text; RFC 4253, 4.2 ends each with LF.
    Line {
        empty: bool,
        version: bool,
    },
    Length {
        bytes: u8,
        value: u32,
    },
    Body {
        passed: u32,
        left: u32,
        newkeys: bool,
    },
}

const LINE: Place = Place::Line {
    empty: true,
    version: false,
};
const LENGTH: Place = Place::Length { bytes: 0, value: 0 };

impl PacketCounter {
    pub(super) fn new() -> PacketCounter {
        PacketCounter {
            place: LINE,
            sealed: false,
            complete: 0,
        }
    }

    /// Follows `bytes`, the next of the stream.
    pub(super) fn pass(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.step(byte);
        }
    }

    /// How many of `bytes`, the next of the stream, belong to the first `packets` packets.
    pub(super) fn within(mut self, packets: u64, bytes: &[u8]) -> usize {
        for (index, &byte) in bytes.iter().enumerate() {
            if self.complete >= packets && !matches!(self.place, Place::Line { .. }) {
                return index;
            }
            self.step(byte);
        }
        bytes.len()
    }

    /// Whether the version line and `packets` packets have passed.
    pub(super) fn reached(&self, packets: u64) -> bool {
        self.complete >= packets && !matches!(self.place, Place::Line { .. })
    }

    fn step(&mut self, byte: u8) {
        self.place = match self.place {
            Place::Line { version: true, .. } if byte == b'\n' => LENGTH,
            Place::Line { .. } if byte == b'\n' => LINE,
            // Only a version line begins with an S here: a client sends no other line, and
            // simulated hosts that send other lines never come to packets.
            Place::Line { empty, version } => Place::Line {
                empty: false,
                version: version || (empty && byte == b'S'),
            },
            Place::Length { bytes: 3, value } => Place::Body {
                passed: 0,
                left: (value << 8 | u32::from(byte)).saturating_add(if self.sealed {
                    TAG
                } else {
                    0
                }),
                newkeys: false,
            },
            Place::Length { bytes, value } => Place::Length {
                bytes: bytes + 1,
                value: value << 8 | u32::from(byte),
            },
            Place::Body {
                passed,
                left,
                newkeys,
            } => self.step_in_body(byte, passed, left, newkeys),
        };
    }

    fn step_in_body(&mut self, byte: u8, passed: u32, left: u32, newkeys: bool) -> Place {
        // The body begins with padding_length, then the message number (RFC 4253, 6).
        let newkeys = newkeys || (!self.sealed && passed == 1 && byte == NEWKEYS);
        if left <= 1 {
            self.complete += 1;
            self.sealed |= newkeys;
            return LENGTH;
        }
        Place::Body {
            passed: passed + 1,
            left: left - 1,
            newkeys,
        }
    }
}

/// How far into a stream a cut is, and whether it has been reached.
#[derive(Debug)]
pub(super) struct Gate {
    at: Position,
    packets: PacketCounter,
}

impl Gate {
    pub(super) fn new(at: Position) -> Gate {
        Gate {
            at,
            packets: PacketCounter::new(),
        }
    }

    /// How many of `bytes` may pass, when `passed` have and authentication came after `login`.
    pub(super) fn admits(&self, bytes: &[u8], passed: u64, login: Option<u64>) -> usize {
        match self.end(login) {
            Some(end) => bytes
                .len()
                .min(usize::try_from(end.saturating_sub(passed)).unwrap_or(usize::MAX)),
            None => match self.at {
                Position::Message(packets) => self.packets.within(packets, bytes),
                Position::Byte(_) | Position::AfterAuthentication(_) => bytes.len(),
            },
        }
    }

    /// Records that `bytes` have passed.
    pub(super) fn pass(&mut self, bytes: &[u8]) {
        if matches!(self.at, Position::Message(_)) {
            self.packets.pass(bytes);
        }
    }

    /// Whether nothing more may pass.
    pub(super) fn is_reached(&self, passed: u64, login: Option<u64>) -> bool {
        match self.at {
            Position::Message(packets) => self.packets.reached(packets),
            Position::Byte(_) | Position::AfterAuthentication(_) => {
                self.end(login).is_some_and(|end| passed >= end)
            }
        }
    }

    /// The byte at which the stream ends, where that is known already.
    fn end(&self, login: Option<u64>) -> Option<u64> {
        match self.at {
            Position::Byte(end) => Some(end),
            Position::AfterAuthentication(more) => login.map(|login| login.saturating_add(more)),
            Position::Message(_) => None,
        }
    }
}
