//! What a conversation with a program on the host is made of: octets for its standard input, and the lines that it says.

/// The longest line that is listened to: of a longer one its beginning is enough to know what it is.
const LONGEST_LINE: usize = 256;

/// Octets for a program on the host, until they have left.
#[derive(Debug, Default)]
pub(crate) struct ToHost {
    octets: Vec<u8>,
    /// Octets that have left.
    left: usize,
}

impl ToHost {
    /// Octets that follow those before.
    pub(crate) fn put(&mut self, octets: &[u8]) {
        self.octets.extend_from_slice(octets);
    }

    /// What `write` appends; returns how many octets that is.
    pub(crate) fn put_by(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> u64 {
        let before = self.octets.len();
        write(&mut self.octets);
        (self.octets.len() - before) as u64
    }

    /// Those that have not left.
    pub(crate) fn waiting(&self) -> &[u8] {
        &self.octets[self.left..]
    }

    /// So many of them have left.
    pub(crate) fn transmitted(&mut self, octets: usize) {
        self.left += octets;
        // Those behind are moved once at the most for each that has left.
        if self.left * 2 >= self.octets.len() {
            self.octets.drain(..self.left);
            self.left = 0;
        }
    }

    /// Leaves out what has not left.
    pub(crate) fn clear(&mut self) {
        self.octets.clear();
        self.left = 0;
    }
}

/// Lines out of what a program on the host says, in the pieces in which it comes.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// The last line, as far as it has come.
    line: Vec<u8>,
}

impl Lines {
    /// Takes octets off the front of `input`, up to the end of a line; returns that line without its end, or at least its
    /// beginning. `None` once all that came is taken.
    pub(crate) fn next(&mut self, input: &mut &[u8]) -> Option<Vec<u8>> {
        let Some(end) = input.iter().position(|&octet| octet == b'\n') else {
            self.keep(input);
            *input = &[];
            return None;
        };
        self.keep(&input[..end]);
        *input = &input[end + 1..];
        Some(std::mem::take(&mut self.line))
    }

    fn keep(&mut self, part: &[u8]) {
        let room = LONGEST_LINE - self.line.len();
        self.line.extend_from_slice(&part[..part.len().min(room)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_put_together_and_no_longer_than_the_limit() {
        let mut lines = Lines::default();
        let mut input = &b"half"[..];
        assert_eq!(lines.next(&mut input), None);
        let long = [&b" a line\n\n"[..], &[b'x'; 1000], b"\nrest"].concat();
        let mut input = &long[..];
        assert_eq!(lines.next(&mut input).as_deref(), Some(&b"half a line"[..]));
        assert_eq!(lines.next(&mut input).as_deref(), Some(&b""[..]));
        let cut = lines.next(&mut input).unwrap_or_default();
        assert_eq!((cut.len(), input), (LONGEST_LINE, &b"rest"[..]));
        assert_eq!(lines.next(&mut input), None);
        assert!(input.is_empty());
    }

    #[test]
    fn what_has_left_is_not_sent_again() {
        let mut out = ToHost::default();
        out.put(b"one");
        assert_eq!(out.put_by(|out| out.extend_from_slice(b"three")), 5);
        for octets in [1, 2, 3] {
            out.transmitted(octets);
        }
        assert_eq!(out.waiting(), b"ee");
        out.put(b"!");
        assert_eq!(out.waiting(), b"ee!");
        out.clear();
        assert_eq!(out.waiting(), b"");
    }
}
