//! A session on the host that writes a device: dd(1), once for each segment of what comes on its standard input.
//!
//! ```text
//! we:    the path, what it is        BLOCK COUNT SEEK HOW, octets, BLOCK COUNT SEEK HOW, octets ... end
//! host:        "sshoal-ready HOW"                   "sshoal-written"       "sshoal-written"  "sshoal-end STATUS"
//! ```
//!
//! dd needs iflag=fullblock: of a pipe it would otherwise write whatever came at once, 64 KiB or less, and a disk would read
//! before it writes. Where dd knows it not, the host says nothing, and everything goes over SFTP.

use super::segments::Segment;
use crate::conversation::{Lines, ToHost};

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SessionStage {
    /// The host has been told which device.
    Greeted,
    /// It takes segments.
    Ready,
    /// It has been told that there are no more.
    Complete,
    /// Nothing more goes to it.
    Over,
}

/// What the host has said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Word {
    /// It takes segments.
    Ready,
    /// What is at the path is not the device that the kernel calls so.
    Other,
    /// One segment more has been written.
    Written,
    /// All is on the medium.
    End,
    /// dd could not write: its words, and the whole blocks of this segment that it has written.
    Failed(String, u64),
}

/// The session, as far as we see it.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) stage: SessionStage,
    /// Whether the host's dd goes past the kernel's memory.
    pub(crate) is_direct: bool,
    out: ToHost,
    lines: Lines,
    /// What dd has said last of an error.
    words: String,
    /// Blocks that dd counts as written.
    blocks: u64,
}

/// What is run on the host, by whatever shell the account has. It reads the path, then the device's numbers as stat(1) shows
/// them and the size of a block to try with: an open with nothing written shows whether dd knows the flags, and the device
/// takes O_DIRECT. What did not go past the kernel's memory is brought to the medium with each segment, and the device's own
/// memory is emptied at the end.
pub(crate) fn command() -> String {
    "exec sh -c 'LC_ALL=C; export LC_ALL; IFS= read -r d; read -r n p; cd; \
     case $(stat -Lc %t:%T \"$d\" 2>/dev/null) in \"\"|\"$n\") ;; *) echo sshoal-other; exit 3;; esac; \
     t() { dd if=/dev/null of=\"$d\" bs=$p count=0 conv=notrunc iflag=fullblock \"$@\" 2>/dev/null; }; \
     if t oflag=direct; then f=direct; elif t; then f=plain; else exit 3; fi; echo sshoal-ready $f; \
     while read -r b c s m; do case $b in end) \
     dd if=/dev/null of=\"$d\" bs=$p count=0 conv=notrunc,fsync 2>&1; echo sshoal-end $?; exit;; esac; \
     case $f$m in directdirect) o=\"oflag=direct conv=notrunc\";; *) o=conv=notrunc,fsync;; esac; \
     dd of=\"$d\" bs=$b count=$c seek=$s iflag=fullblock $o 2>&1; r=$?; \
     case $r in 0) echo sshoal-written;; *) echo sshoal-failed $r; exit 1;; esac; done'"
        .to_owned()
}

/// Whether a path can be told on a line.
pub(crate) fn is_tellable(path: &[u8]) -> bool {
    !path.contains(&b'\n')
}

impl Session {
    /// A session for the device at this path, which has these numbers as far as is known.
    pub(crate) fn new(path: &[u8], number: Option<(u32, u32)>, physical: u64) -> Session {
        // A relative path must not be an option.
        let prefix: &[u8] = if path.starts_with(b"/") { b"" } else { b"./" };
        let number = match number {
            Some((major, minor)) => format!("{major:x}:{minor:x}"),
            None => "unknown".to_owned(),
        };
        let mut out = ToHost::default();
        out.put(prefix);
        out.put(path);
        out.put(format!("\n{number} {physical}\n").as_bytes());
        Session {
            stage: SessionStage::Greeted,
            is_direct: false,
            out,
            lines: Lines::default(),
            words: String::new(),
            blocks: 0,
        }
    }

    /// Announces a segment, whose octets follow.
    pub(crate) fn announce(&mut self, segment: &Segment) {
        let Segment {
            block, count, seek, ..
        } = segment;
        let how = if segment.is_direct { "direct" } else { "plain" };
        let line = format!("{block} {count} {seek} {how}\n");
        self.out.put(line.as_bytes());
    }

    /// Octets of a segment.
    pub(crate) fn put(&mut self, octets: &[u8]) {
        self.out.put(octets);
    }

    /// Nothing follows.
    pub(crate) fn complete(&mut self) {
        self.out.put(b"end\n");
        self.stage = SessionStage::Complete;
    }

    /// Leaves out what has not been sent: the host finds no end, and stops.
    pub(crate) fn cut(&mut self) {
        self.out.clear();
        self.stage = SessionStage::Over;
    }

    /// Octets for the host.
    pub(crate) fn transmit(&self) -> &[u8] {
        self.out.waiting()
    }

    /// So many of them have left.
    pub(crate) fn transmitted(&mut self, octets: usize) {
        self.out.transmitted(octets);
    }

    /// Takes what the host says; returns what it means.
    pub(crate) fn hear(&mut self, mut input: &[u8]) -> Vec<Word> {
        let mut words = Vec::new();
        while let Some(line) = self.lines.next(&mut input) {
            words.extend(self.word(&line));
        }
        words
    }

    fn word(&mut self, line: &[u8]) -> Option<Word> {
        let line = String::from_utf8_lossy(line);
        let line = line.trim();
        let mut fields = line.split(' ');
        match (self.stage, fields.next()?, fields.next()) {
            (SessionStage::Greeted, "sshoal-ready", how) => {
                self.is_direct = how == Some("direct");
                self.stage = SessionStage::Ready;
                Some(Word::Ready)
            }
            (SessionStage::Greeted, "sshoal-other", _) => Some(Word::Other),
            (SessionStage::Greeted | SessionStage::Over, ..) => None,
            (_, "sshoal-written", _) => {
                (self.words, self.blocks) = (String::new(), 0);
                Some(Word::Written)
            }
            (SessionStage::Complete, "sshoal-end", Some("0")) => {
                self.stage = SessionStage::Over;
                Some(Word::End)
            }
            (_, "sshoal-failed" | "sshoal-end", _) => {
                let words = match self.words.as_str() {
                    "" => "its dd failed without a word".to_owned(),
                    words => words.to_owned(),
                };
                Some(Word::Failed(words, self.blocks))
            }
            // "3+1 records out": whole blocks, and partial ones.
            (_, count, Some("records")) if line.ends_with("out") => {
                let whole = count.split('+').next().and_then(|whole| whole.parse().ok());
                self.blocks = whole.unwrap_or(0);
                None
            }
            (_, "dd:", _) => {
                self.words = line.chars().filter(|it| !it.is_control()).collect();
                None
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready() -> Session {
        let mut session = Session::new(b"/dev/sdb", Some((8, 16)), 4096);
        assert_eq!(session.transmit(), b"/dev/sdb\n8:10 4096\n");
        let words = session.hear(b"Welcome!\nsshoal-written\nsshoal-rea");
        assert_eq!(words, [], "a start-up file may greet");
        assert_eq!(session.hear(b"dy direct\n"), [Word::Ready]);
        session
    }

    #[test]
    fn segments_are_confirmed_one_by_one_and_the_end_is_another_word() {
        let mut session = ready();
        assert!(session.is_direct);
        let written =
            b"64+0 records in\n64+0 records out\n67108864 bytes copied, 1 s\nsshoal-written\n";
        assert_eq!(session.hear(written), [Word::Written]);
        assert_eq!(
            session.hear(b"sshoal-end 0\n"),
            [Word::Failed("its dd failed without a word".to_owned(), 0)],
            "nobody has told it that this is the end"
        );
        session.complete();
        let end = b"0+0 records in\n0+0 records out\nsshoal-end 0\n";
        assert_eq!(session.hear(end), [Word::End]);
    }

    #[test]
    fn a_failure_says_how_far_dd_came() {
        let mut session = ready();
        let failed = b"dd: error writing \x1b'/dev/sdb': No space left on device\n\
            13+0 records in\n12+0 records out\nsshoal-failed 1\n";
        let words = "dd: error writing '/dev/sdb': No space left on device".to_owned();
        assert_eq!(session.hear(failed), [Word::Failed(words, 12)]);
    }

    #[test]
    fn what_is_cut_says_nothing_more() {
        let mut session = ready();
        session.put(b"octets");
        session.cut();
        assert_eq!(session.transmit(), b"");
        assert_eq!(session.hear(b"sshoal-written\nsshoal-end 0\n"), []);
    }

    #[test]
    fn a_path_is_no_option_and_no_second_line() {
        let session = Session::new(b"-of", None, 512);
        assert_eq!(session.transmit(), b"./-of\nunknown 512\n");
        assert!(is_tellable(b"/dev/a b'\"$(x)") && !is_tellable(b"/dev/a\nb"));
    }
}
