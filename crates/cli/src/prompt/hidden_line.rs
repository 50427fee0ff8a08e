//! A line that is typed and not shown, edited as the terminal would edit it.

use sshoal_net::Secret;
use zeroize::Zeroizing;

/// Longest line, octets: room beforehand, so that growing leaves no copies behind.
const MAX_LINE: usize = 1024;

/// The octets by which the user edits, from the terminal's settings (termios(3), c_cc).
#[derive(Debug, Clone, Copy)]
pub(super) struct EditingKeys {
    /// VERASE: takes the last character back.
    pub(super) erase: u8,
    /// VKILL: takes the whole line back.
    pub(super) kill: u8,
    /// VINTR: Ctrl-C.
    pub(super) interrupt: u8,
    /// VEOF: Ctrl-D.
    pub(super) end: u8,
}

/// What has become of the line.
pub(super) enum Typed {
    /// It goes on.
    More,
    Line(Secret),
    Interrupted,
    Ended,
}

/// A line on its way.
pub(super) struct HiddenLine {
    octets: Zeroizing<Vec<u8>>,
    keys: EditingKeys,
}

impl HiddenLine {
    pub(super) fn new(keys: EditingKeys) -> Self {
        HiddenLine {
            octets: Zeroizing::new(Vec::with_capacity(MAX_LINE)),
            keys,
        }
    }

    pub(super) fn handle(&mut self, octet: u8) -> Typed {
        match octet {
            b'\n' | b'\r' => {
                let line = std::mem::replace(&mut self.octets, Zeroizing::new(Vec::new()));
                return Typed::Line(Secret::new(line.to_vec()));
            }
            octet if octet == self.keys.interrupt => return Typed::Interrupted,
            octet if octet == self.keys.end && self.octets.is_empty() => return Typed::Ended,
            octet if octet == self.keys.end => {}
            octet if octet == self.keys.kill => self.octets.clear(),
            // Backspace and Delete both, whichever of them the terminal calls its own.
            octet if octet == self.keys.erase || matches!(octet, 0x08 | 0x7f) => self.erase(),
            octet if self.octets.len() < MAX_LINE => self.octets.push(octet),
            _ => {}
        }
        Typed::More
    }

    /// Takes a whole character back: of UTF-8, the octets that continue it go with the one that begins it.
    fn erase(&mut self) {
        while let Some(octet) = self.octets.pop() {
            if octet & 0xc0 != 0x80 {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: EditingKeys = EditingKeys {
        erase: 0x7f,
        kill: 0x15,
        interrupt: 0x03,
        end: 0x04,
    };

    fn typed(octets: &[u8]) -> Typed {
        let mut line = HiddenLine::new(KEYS);
        for octet in octets {
            match line.handle(*octet) {
                Typed::More => {}
                end => return end,
            }
        }
        Typed::More
    }

    fn line(octets: &[u8]) -> Vec<u8> {
        match typed(octets) {
            Typed::Line(secret) => secret.expose().to_vec(),
            _ => panic!("no line came of {octets:?}"),
        }
    }

    #[test]
    fn a_line_is_edited_with_the_terminals_keys() {
        assert_eq!(line(b"secret\n"), b"secret");
        assert_eq!(line(b"wrong\x15right\r"), b"right");
        assert_eq!(line(b"secreX\x7ft\n"), b"secret");
        assert_eq!(line(b"\x7f\x7fa\n"), b"a");
        assert_eq!(line("pü\x7fu\n".as_bytes()), b"pu");
        assert_eq!(line(b"\n"), b"");
    }

    #[test]
    fn interrupt_and_end_are_told_apart() {
        assert!(matches!(typed(b"sec\x03"), Typed::Interrupted));
        assert!(matches!(typed(b"\x04"), Typed::Ended));
        assert_eq!(line(b"sec\x04ret\n"), b"secret");
    }

    #[test]
    fn a_line_has_a_greatest_length() {
        let mut long = vec![b'a'; 2 * MAX_LINE];
        long.push(b'\n');
        assert_eq!(line(&long).len(), MAX_LINE);
    }
}
