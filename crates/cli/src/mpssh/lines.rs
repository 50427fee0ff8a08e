//! Lines as mpssh.py prints them: the host, a sign for the kind of line, the text.

use std::borrow::Cow;
use std::io::{self, IsTerminal};

use sshoal_report::{color_wanted, push_visible, push_visible_lines, visible};

/// What a line is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    /// Standard output.
    Out,
    /// Standard error, ssh's own words among it.
    Err,
    /// A command that ended with 0.
    Good,
    /// One that did not, and whatever else is wrong.
    Bad,
}

impl Sign {
    /// Without and with colour.
    fn text(self) -> [&'static str; 2] {
        match self {
            Sign::Out => ["->", "\x1b[1;32m->\x1b[0;39m"],
            Sign::Err => ["=>", "\x1b[1;31m=>\x1b[0;39m"],
            Sign::Good => ["=:", "\x1b[1;32m=:\x1b[0;39m"],
            Sign::Bad => ["=:", "\x1b[1;31m=:\x1b[0;39m"],
        }
    }
}

/// How lines look in one run.
pub(super) struct Form {
    /// The hosts' names as they are shown, all equally long.
    names: Vec<String>,
    max_line: usize,
    /// Whether what does not print is left out.
    strips: bool,
    /// Whether a terminal shows the lines.
    terminal: bool,
    color: bool,
}

impl Form {
    /// For our own standard output.
    pub(super) fn new<'a>(
        hosts: impl Iterator<Item = &'a str> + Clone,
        max_line: usize,
        strips: bool,
    ) -> Form {
        let terminal = io::stdout().is_terminal();
        let [no_color, term] = ["NO_COLOR", "TERM"].map(std::env::var_os);
        Form {
            color: color_wanted(terminal, no_color.as_deref(), term.as_deref()),
            ..Form::plain(hosts, max_line, strips, terminal)
        }
    }

    pub(super) fn plain<'a>(
        hosts: impl Iterator<Item = &'a str> + Clone,
        max_line: usize,
        strips: bool,
        terminal: bool,
    ) -> Form {
        let shown = |host: &'a str| match terminal {
            true => Cow::Owned(visible(host)),
            false => Cow::Borrowed(host),
        };
        let hosts = hosts.map(shown);
        let width = hosts.clone().map(|host| host.chars().count()).max();
        let width = width.unwrap_or_default();
        Form {
            names: hosts.map(|host| format!("{host:<width$}")).collect(),
            max_line,
            strips,
            terminal,
            color: false,
        }
    }

    pub(super) fn hosts(&self) -> usize {
        self.names.len()
    }

    /// Whole lines of ours, as they are shown: they hold a command and a user's name.
    pub(super) fn shown<'a>(&self, lines: &'a [u8]) -> Cow<'a, [u8]> {
        if !self.terminal {
            return Cow::Borrowed(lines);
        }
        let mut shown = Vec::with_capacity(lines.len());
        push_visible_lines(lines, &mut shown);
        Cow::Owned(shown)
    }

    /// Appends what a host says. Returns how many octets were left out since they do not print.
    pub(super) fn push(&self, host: usize, sign: Sign, text: &[u8], out: &mut Vec<u8>) -> usize {
        let mut left_out = 0;
        for line in lines(text) {
            // An empty line is one, too.
            let parts = line.chunks(self.max_line);
            for part in parts.chain(line.is_empty().then_some(line)) {
                out.extend_from_slice(self.names[host].as_bytes());
                out.push(b' ');
                out.extend_from_slice(sign.text()[usize::from(self.color)].as_bytes());
                out.push(b' ');
                left_out += self.push_part(part, out);
                out.push(b'\n');
            }
        }
        left_out
    }

    fn push_part(&self, part: &[u8], out: &mut Vec<u8>) -> usize {
        let printing: Vec<u8> = match self.strips {
            true => part.iter().copied().filter(prints).collect(),
            false => part.to_vec(),
        };
        match self.terminal {
            true => push_visible(&printing, out),
            false => out.extend_from_slice(&printing),
        }
        part.len() - printing.len()
    }
}

/// Whether mpssh.py lets an octet pass: no control character of ASCII but the tab.
fn prints(octet: &u8) -> bool {
    *octet == b'\t' || !octet.is_ascii_control()
}

/// The lines of a text as Python's bytes.splitlines() has them: they end with LF, CR LF or CR, and what follows the last
/// end is a line if there is any of it.
fn lines(mut text: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let is_end = |octet: &u8| matches!(octet, b'\n' | b'\r');
        let line = match text.iter().position(is_end) {
            None if text.is_empty() => return None,
            None => std::mem::take(&mut text),
            Some(at) => {
                let line = &text[..at];
                let end = if text[at..].starts_with(b"\r\n") {
                    2
                } else {
                    1
                };
                text = &text[at + end..];
                line
            }
        };
        Some(line)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn form(max_line: usize, strips: bool, terminal: bool) -> Form {
        Form::plain(["a", "höst"].into_iter(), max_line, strips, terminal)
    }

    fn pushed(form: &Form, text: &[u8]) -> (String, usize) {
        let mut out = Vec::new();
        let left_out = form.push(0, Sign::Out, text, &mut out);
        (String::from_utf8(out).unwrap(), left_out)
    }

    #[test]
    fn names_are_padded_to_the_longest_by_characters() {
        assert_eq!(pushed(&form(80, true, false), b"x").0, "a    -> x\n");
        let mut out = Vec::new();
        form(80, true, false).push(1, Sign::Bad, b"x", &mut out);
        assert_eq!(out, "höst =: x\n".as_bytes());
    }

    #[test]
    fn a_text_is_split_as_python_splits_it() {
        for (text, expected) in [
            (&b""[..], &[][..]),
            (b"\n", &[""]),
            (b"\n\nlala", &["", "", "lala"]),
            (b"lala\n\n\n", &["lala", "", ""]),
            (b"a\r\nb\rc\n\rd\r", &["a", "b", "c", "", "d"]),
            (b"a\x0bb\x0cc", &["a\x0bb\x0cc"]),
        ] {
            let found = lines(text).map(|line| std::str::from_utf8(line).unwrap());
            assert_eq!(found.collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn lines_are_broken_by_octets_before_anything_is_left_out() {
        let (out, left_out) = pushed(
            &form(4, true, false),
            b"ab\x01cdef\n\x01\x02\x03\x04\n12345678",
        );
        let lines = ["abc", "def", "", "1234", "5678"];
        assert_eq!(out, lines.map(|line| format!("a    -> {line}\n")).concat());
        assert_eq!(left_out, 5);
    }

    #[test]
    fn only_control_characters_are_left_out_and_not_the_tab() {
        let all: Vec<u8> = (0..=0xff)
            .filter(|octet| !b"\r\n".contains(octet))
            .collect();
        let mut out = Vec::new();
        assert_eq!(
            form(1000, true, false).push(0, Sign::Out, &all, &mut out),
            30
        );
        let kept: Vec<u8> = [9].into_iter().chain(32..127).chain(128..=255).collect();
        assert_eq!(out, [b"a    -> ", kept.as_slice(), b"\n"].concat());
        out.clear();
        assert_eq!(
            form(1000, false, false).push(0, Sign::Out, &all, &mut out),
            0
        );
        assert_eq!(out, [b"a    -> ", all.as_slice(), b"\n"].concat());
    }

    #[test]
    fn a_terminal_is_never_steered() {
        let steering = b"\x1b[2J\xc2\x9b1m\x9b";
        let (out, left_out) = pushed(&form(80, false, true), steering);
        assert_eq!(
            (out.as_str(), left_out),
            ("a    -> \\x1b[2J\\u{9b}1m\\x9b\n", 0)
        );
        let (out, left_out) = pushed(&form(80, true, true), steering);
        assert_eq!((out.as_str(), left_out), ("a    -> [2J\\u{9b}1m\\x9b\n", 1));
        let of_us = b"executing \"\x1b[2J\n\xe2\x80\xae\"\n";
        assert_eq!(
            form(80, true, true).shown(of_us).as_ref(),
            b"executing \"\\x1b[2J\n\\u{202e}\"\n"
        );
        assert_eq!(form(80, true, false).shown(of_us).as_ref(), of_us);
        let names = ["\x1b]0;x\x07", "b"];
        let mut out = Vec::new();
        let named = Form::plain(names.into_iter(), 80, true, true);
        named.push(0, Sign::Out, b"x", &mut out);
        named.push(1, Sign::Out, b"x", &mut out);
        // The names are as long as they are shown.
        assert_eq!(out, b"\\x1b]0;x\\x07 -> x\nb            -> x\n");
        let mut out = Vec::new();
        Form::plain(names.into_iter(), 80, true, false).push(1, Sign::Out, b"x", &mut out);
        assert_eq!(out, b"b      -> x\n");
    }
}
