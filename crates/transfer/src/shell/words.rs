//! Calls of the host's functions, and the words in which its programs fail.

use super::replies::{FAILURE, NO_SUCH_FILE, PERMISSION_DENIED};

/// Octets that dd moves at a time: `host.sh` has it, too.
pub(super) const BLOCK: u64 = 65536;

/// One call, a line. Words that a shell would not take as they are come to it by variables, which are set before.
pub(super) struct Call<'a> {
    out: &'a mut Vec<u8>,
    /// What the line begins with.
    begin: Vec<u8>,
    line: Vec<u8>,
    variables: usize,
}

impl<'a> Call<'a> {
    pub(super) fn new(word: &str, out: &'a mut Vec<u8>) -> Self {
        Call {
            out,
            begin: format!("{word} ").into_bytes(),
            line: Vec::new(),
            variables: 0,
        }
    }

    pub(super) fn name(&mut self, name: &str) -> &mut Self {
        self.line.extend_from_slice(name.as_bytes());
        self
    }

    /// A function that is called only if its path still leads to the file that is open; of a folder that is not known.
    pub(super) fn of(&mut self, identity: Option<&str>, name: &str) -> &mut Self {
        match identity {
            Some(identity) => self.name("of").raw(identity).raw(name),
            None => self.name(name),
        }
    }

    /// A word that a shell takes as it is.
    pub(super) fn raw(&mut self, word: &str) -> &mut Self {
        self.line.push(b' ');
        self.line.extend_from_slice(word.as_bytes());
        self
    }

    pub(super) fn number(&mut self, number: u64) -> &mut Self {
        self.raw(&number.to_string())
    }

    /// A mode with a zero before it: so GNU's chmod takes away a folder's bits for set-group-ID, too.
    pub(super) fn mode(&mut self, mode: u32) -> &mut Self {
        self.raw(&format!("0{mode:04o}"))
    }

    /// A path, never taken for an option.
    pub(super) fn path(&mut self, path: &[u8]) -> &mut Self {
        match path.first() {
            Some(b'/') => self.words(path),
            _ => self.words(&[b"./", path].concat()),
        }
    }

    /// Octets as one word; without NUL, which no word has.
    pub(super) fn words(&mut self, octets: &[u8]) -> &mut Self {
        self.line.push(b' ');
        let is_plain = |&octet: &u8| matches!(octet, b' '..=b'~') && octet != b'\'';
        if octets.iter().all(is_plain) {
            self.line.push(b'\'');
            self.line.extend_from_slice(octets);
            self.line.push(b'\'');
            return self;
        }
        self.variables += 1;
        let name = format!("w{}", self.variables);
        // A command's output loses the newlines at its end.
        self.begin
            .extend_from_slice(format!("{name}=$(printf '%b_' '").as_bytes());
        for &octet in octets {
            match octet {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b' ' => {
                    self.begin.push(octet);
                }
                octet => self
                    .begin
                    .extend_from_slice(format!("\\0{octet:03o}").as_bytes()),
            }
        }
        self.begin
            .extend_from_slice(format!("'); {name}=${{{name}%_}}; ").as_bytes());
        self.line
            .extend_from_slice(format!("\"${name}\"").as_bytes());
        self
    }

    pub(super) fn end(self) {
        self.out.extend_from_slice(&self.begin);
        self.out.extend_from_slice(&self.line);
        self.out.push(b'\n');
    }
}

/// The program, a line for each of its paragraphs.
pub(super) fn put_program(word: &str, program: &str, out: &mut Vec<u8>) {
    for paragraph in program.split("\n\n") {
        let lines = paragraph.lines().filter(|line| !line.starts_with('#'));
        let line = lines.collect::<Vec<_>>().join(" ");
        if !line.is_empty() {
            out.extend_from_slice(format!("{word} ").as_bytes());
            out.extend_from_slice(line.as_bytes());
            out.push(b'\n');
        }
    }
}

/// A status' code for what a program has said, and the reason alone, which is what follows the last colon.
pub(super) fn understood(words: &str) -> (u32, &str) {
    let reason = words.trim().rsplit(": ").next().unwrap_or_default();
    let lower = reason.to_ascii_lowercase();
    let code = match () {
        () if lower.contains("no such file") || lower.contains("nonexistent") => NO_SUCH_FILE,
        () if lower.contains("permission denied") || lower.contains("not permitted") => {
            PERMISSION_DENIED
        }
        () => FAILURE,
    };
    (code, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(words: &[u8]) -> String {
        let mut out = Vec::new();
        let mut call = Call::new("word", &mut out);
        call.name("f").path(words);
        call.end();
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn words_are_quoted_and_no_option() {
        assert_eq!(line(b"/a b$(x)\\"), "word f '/a b$(x)\\'\n");
        assert_eq!(line(b"-rf"), "word f './-rf'\n");
        assert_eq!(
            line(b"/it's\n\xff"),
            "word w1=$(printf '%b_' '/it\\0047s\\0012\\0377'); w1=${w1%_}; f \"$w1\"\n"
        );
    }

    #[test]
    fn every_paragraph_is_a_line_that_ends_a_command() {
        let mut out = Vec::new();
        put_program("word", super::super::PROGRAM, &mut out);
        let text = String::from_utf8_lossy(&out).into_owned();
        for line in text.lines() {
            assert!(
                line.ends_with(';') && !line.contains('#') || line.contains("$#"),
                "{line}"
            );
        }
        assert!(text.ends_with("echo \"sshoal-lacks$lacks\";\n"));
    }

    #[test]
    fn reasons_have_their_codes() {
        for (words, code, reason) in [
            (
                "cat: write error: No space left on device",
                FAILURE,
                "No space left on device",
            ),
            (
                "sh: 1: cannot open /x: No such file",
                NO_SUCH_FILE,
                "No such file",
            ),
            (
                "sh: can't create /x/y: nonexistent directory",
                NO_SUCH_FILE,
                "nonexistent directory",
            ),
            (
                "chown: changing ownership of '/x': Operation not permitted",
                PERMISSION_DENIED,
                "Operation not permitted",
            ),
            ("", FAILURE, ""),
        ] {
            assert_eq!(understood(words), (code, reason));
        }
    }
}
