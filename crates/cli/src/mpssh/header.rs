//! What mpssh.py prints before the hosts' lines and behind them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// The version whose output this is.
pub(super) const VERSION: &str = "1.2";

/// What the header tells.
pub(super) struct Header<'a> {
    pub(super) hosts: usize,
    pub(super) command: &'a OsStr,
    pub(super) user: &'a str,
    /// Sessions at a time.
    pub(super) sessions: usize,
    /// With `-v`: the ssh that is started where one is, and its flags.
    pub(super) ssh: Option<(PathBuf, &'a [String])>,
}

impl Header<'_> {
    pub(super) fn lines(&self) -> Vec<u8> {
        let mut out = format!(
            "MPSSH.py - Mass parallel SSH in Python (Version {VERSION})\n(c) 2013 Ivan Zahariev <famzah>\n\n  \
             [*] read ({}) hosts from the list\n  [*] executing \"",
            self.hosts
        )
        .into_bytes();
        out.extend_from_slice(self.command.as_bytes());
        out.extend_from_slice(format!("\" as user \"{}\"\n", self.user).as_bytes());
        if let Some((program, flags)) = &self.ssh {
            let flags: Vec<String> = flags.iter().map(|flag| python_literal(flag)).collect();
            let (program, flags) = (program.display(), flags.join(", "));
            let lines = format!("  [*] SSH binary : {program}\n  [*] SSH options: [{flags}]\n");
            out.extend_from_slice(lines.as_bytes());
        }
        let sessions = self.sessions;
        let last = format!("  [*] spawning {sessions} parallel SSH sessions\n\n");
        out.extend_from_slice(last.as_bytes());
        out
    }
}

/// How hosts ended.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    /// Exit code 0.
    pub(super) ok: usize,
    /// Another one, that of the command.
    pub(super) non_ok: usize,
    /// 255, which is ssh's own.
    pub(super) ssh_failed: usize,
}

impl Counts {
    pub(super) fn all(&self) -> usize {
        self.ok + self.non_ok + self.ssh_failed
    }

    pub(super) fn line(&self) -> String {
        let Counts {
            ok,
            non_ok,
            ssh_failed,
        } = self;
        let all = self.all();
        format!(
            "\n  Done. {all} hosts processed (ok/non-ok/ssh-failed = {ok}/{non_ok}/{ssh_failed}).\n"
        )
    }
}

/// A text as Python's repr() has it.
fn python_literal(text: &str) -> String {
    let quote = match text.contains('\'') && !text.contains('"') {
        true => '"',
        false => '\'',
    };
    let mut out = String::from(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => out.extend(['\\', c]),
            ' ' => out.push(c),
            c if c.is_control() || c.is_whitespace() => match u32::from(c) {
                code @ ..0x100 => out.push_str(&format!("\\x{code:02x}")),
                code => out.push_str(&format!("\\u{code:04x}")),
            },
            c => out.push(c),
        }
    }
    out.push(quote);
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn header(ssh: Option<(PathBuf, &[String])>) -> String {
        let header = Header {
            hosts: 2,
            command: OsStr::new("echo \"a\""),
            user: "me",
            sessions: 1,
            ssh,
        };
        String::from_utf8(header.lines()).unwrap()
    }

    #[test]
    fn the_header_is_that_of_mpssh_py() {
        let before = "MPSSH.py - Mass parallel SSH in Python (Version 1.2)\n\
                      (c) 2013 Ivan Zahariev <famzah>\n\n  \
                      [*] read (2) hosts from the list\n  \
                      [*] executing \"echo \"a\"\" as user \"me\"\n";
        let after = "  [*] spawning 1 parallel SSH sessions\n\n";
        assert_eq!(header(None), format!("{before}{after}"));
        let flags = ["-o A=1".to_owned(), "-i it's".to_owned()];
        let more = "  [*] SSH binary : /bin/ssh\n  [*] SSH options: ['-o A=1', \"-i it's\"]\n";
        assert_eq!(
            header(Some((PathBuf::from("/bin/ssh"), &flags))),
            format!("{before}{more}{after}")
        );
    }

    #[test]
    fn literals_are_those_of_python() {
        for (text, literal) in [
            ("a b", "'a b'"),
            ("it's", "\"it's\""),
            ("it's \"so\"", "'it\\'s \"so\"'"),
            ("\\ \n\r\t\x1b\x7f", "'\\\\ \\n\\r\\t\\x1b\\x7f'"),
            ("ä\u{a0}\u{2028}", "'ä\\xa0\\u2028'"),
        ] {
            assert_eq!(python_literal(text), literal);
        }
    }

    #[test]
    fn the_closing_line_is_that_of_mpssh_py() {
        let counts = Counts {
            ok: 3,
            non_ok: 2,
            ssh_failed: 1,
        };
        let line = "\n  Done. 6 hosts processed (ok/non-ok/ssh-failed = 3/2/1).\n";
        assert_eq!(counts.line(), line);
    }
}
