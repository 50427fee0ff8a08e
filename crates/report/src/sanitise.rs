//! Bytes from a host made harmless for a terminal (invariant 6). Pipes and files never come here.

use std::io::Write as _;

/// Whether a terminal might act on `c`, or show the text around it out of order, instead of printing it:
/// control characters (C0, DEL, C1) but the tab, and what steers bidirectional text ("Trojan source").
pub(crate) fn steers_terminal(c: char) -> bool {
    match c {
        '\t' => false,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            true
        }
        _ => c.is_control(),
    }
}

/// Appends a line (without its newline) as a terminal may show it: what is not text becomes visible,
/// `\xNN` for a byte and `\u{NNNN}` for a character. Tabs stay.
pub fn push_visible(line: &[u8], out: &mut Vec<u8>) {
    if line.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\t')) {
        out.extend_from_slice(line);
        return;
    }
    for chunk in line.utf8_chunks() {
        for c in chunk.valid().chars() {
            push_visible_char(c, out);
        }
        for byte in chunk.invalid() {
            push_escaped_byte(*byte, out);
        }
    }
}

/// Appends several lines as a terminal may show them. The CR of a CR LF is dropped.
pub fn push_visible_lines(text: &[u8], out: &mut Vec<u8>) {
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        match line.strip_suffix(b"\n") {
            Some(line) => {
                push_visible(line.strip_suffix(b"\r").unwrap_or(line), out);
                out.push(b'\n');
            }
            None => push_visible(line, out),
        }
    }
}

/// Text of one line made visible, for what a peer said inside a message of ours.
pub fn visible(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    push_visible(text.as_bytes(), &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

fn push_visible_char(c: char, out: &mut Vec<u8>) {
    match u8::try_from(c) {
        Ok(byte) if byte.is_ascii() && steers_terminal(c) => push_escaped_byte(byte, out),
        _ if steers_terminal(c) => out.extend(c.escape_unicode().map(|escaped| escaped as u8)),
        _ => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
    }
}

fn push_escaped_byte(byte: u8, out: &mut Vec<u8>) {
    write!(out, "\\x{byte:02x}").expect("writing to a Vec cannot fail");
}

#[cfg(test)]
mod tests {
    use super::visible;
    use proptest::prelude::*;

    fn shown(line: &[u8]) -> String {
        let mut out = Vec::new();
        super::push_visible(line, &mut out);
        String::from_utf8(out).expect("what is shown is text")
    }

    #[test]
    fn text_stays_and_the_rest_becomes_visible() {
        assert_eq!(shown("tab\tä€ 漢字 \\".as_bytes()), "tab\tä€ 漢字 \\");
        assert_eq!(shown(b"\x1b[2J\x07\0\x7f\r"), r"\x1b[2J\x07\x00\x7f\x0d");
        assert_eq!(shown(b"caf\xe9 \x9b1m"), r"caf\xe9 \x9b1m");
        assert_eq!(
            visible("\u{9b}1m \u{202e}evil\u{2069}"),
            r"\u{9b}1m \u{202e}evil\u{2069}"
        );
    }

    proptest! {
        #[test]
        fn nothing_that_steers_a_terminal_passes(line: Vec<u8>) {
            let steering = shown(&line).chars().find(|c| super::steers_terminal(*c));
            prop_assert_eq!(steering, None);
        }
    }
}
