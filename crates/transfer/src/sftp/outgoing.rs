//! What waits for a channel: requests, and between them octets of files, which are shared and not copied.

use std::collections::{VecDeque, vec_deque};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use sshoal_wire::Put;

/// Octets of a file that several channels or hosts may have to send. What they are in is the caller's: a buffer that is
/// used again when the last of them is done with it.
pub type SharedOctets = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// Requests that are kept together: what has left of them is given back when all of them have.
const TOGETHER: usize = 16 * 1024;

/// Octets in their order.
#[derive(Default)]
pub(super) struct Outgoing {
    pieces: VecDeque<Piece>,
    len: usize,
}

enum Piece {
    /// Requests, and how many octets at the front have left.
    Requests(Vec<u8>, usize),
    /// What is still to leave of a file's octets.
    Contents(SharedOctets, Range<usize>),
}

impl Piece {
    fn octets(&self) -> &[u8] {
        match self {
            Piece::Requests(octets, left) => &octets[*left..],
            Piece::Contents(octets, range) => &(**octets).as_ref()[range.clone()],
        }
    }
}

impl Outgoing {
    /// Octets that wait.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// What waits, in pieces.
    pub(super) fn pieces(&self) -> Pieces<'_> {
        Pieces(self.pieces.iter())
    }

    /// Appends what `encode` does.
    pub(super) fn push_request(&mut self, encode: impl FnOnce(&mut Vec<u8>)) {
        let has_room = |piece: &&mut Piece| matches!(piece, Piece::Requests(octets, _) if octets.len() < TOGETHER);
        if self.pieces.back_mut().filter(has_room).is_none() {
            self.pieces.push_back(Piece::Requests(Vec::new(), 0));
        }
        if let Some(Piece::Requests(octets, _)) = self.pieces.back_mut() {
            let before = octets.len();
            encode(octets);
            self.len += octets.len() - before;
        }
    }

    /// Appends octets of a file.
    pub(super) fn push_contents(&mut self, octets: SharedOctets, range: Range<usize>) {
        self.len += range.len();
        self.pieces.push_back(Piece::Contents(octets, range));
    }

    /// So many octets have left.
    pub(super) fn transmitted(&mut self, mut octets: usize) {
        self.len -= octets;
        while let Some(front) = self.pieces.front_mut() {
            let len = front.octets().len();
            if octets < len {
                match front {
                    Piece::Requests(_, left) => *left += octets,
                    Piece::Contents(_, range) => range.start += octets,
                }
                return;
            }
            octets -= len;
            self.pieces.pop_front();
        }
    }

    /// Nothing more leaves.
    pub(super) fn clear(&mut self) {
        self.pieces.clear();
        self.len = 0;
    }
}

impl fmt::Debug for Outgoing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} octets", self.len)
    }
}

/// What waits for a channel, in its order.
#[derive(Clone)]
pub struct Pieces<'a>(vec_deque::Iter<'a, Piece>);

impl<'a> Iterator for Pieces<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        self.0.next().map(Piece::octets)
    }
}

/// SSH_FXP_INIT (draft section 4).
pub(super) fn greeting(version: u32) -> Outgoing {
    let mut outgoing = Outgoing::default();
    outgoing.push_request(|out| {
        out.put_u32(5);
        out.put_u8(1);
        out.put_u32(version);
    });
    outgoing
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However they are taken, octets leave once and in their order.
    #[test]
    fn requests_and_contents_leave_in_their_order() {
        for step in [1, 3, 1000] {
            let mut outgoing = Outgoing::default();
            let contents: SharedOctets = Arc::new(b"0123456789".to_vec());
            outgoing.push_request(|out| out.extend_from_slice(b"ab"));
            outgoing.push_request(|out| out.extend_from_slice(b"cd"));
            outgoing.push_contents(contents.clone(), 2..7);
            outgoing.push_contents(contents.clone(), 0..0);
            outgoing.push_request(|out| out.extend_from_slice(b"ef"));
            let mut left = Vec::new();
            while outgoing.len() > 0 {
                let waiting = outgoing.pieces().collect::<Vec<_>>().concat();
                assert_eq!(waiting.len(), outgoing.len());
                let sent = &waiting[..waiting.len().min(step)];
                left.extend_from_slice(sent);
                outgoing.transmitted(sent.len());
            }
            assert_eq!(left, b"abcd23456ef");
            assert_eq!(outgoing.pieces().count(), 0);
            assert_eq!(Arc::strong_count(&contents), 1, "it is given back");
        }
    }
}
