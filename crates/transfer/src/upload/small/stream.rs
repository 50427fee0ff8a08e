//! One batch of small files on its way: a session on the host whose standard input is an archive for tar(1).
//!
//! ```text
//! Opening -> Greeted -> Filling -> Complete -> Over
//!    we: where, and what proves it   archive, hashes of what is in it, EOF
//!    host:        "sshoal-ready UMASK sums"       "sshoal-end STATUS"
//! ```
//!
//! What the host says before it is ready is not for us: a shell's start-up files may greet. An account that runs another
//! program whatever is asked (ForceCommand) never says that it is ready. "sums" stands there if the host can check hashes: then
//! the archive's last file is a list of them, as sha256sum(1) reads it.

use crate::conversation::{Lines, ToHost};
use crate::hashing::{CHECKERS, FileHash};
use crate::tar;

/// What the host says before it takes an archive, and after it.
const READY: &[u8] = b"sshoal-ready ";
const END: &[u8] = b"sshoal-end ";
/// What follows the umask where hashes can be checked.
const SUMS: &[u8] = b" sums";

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Nothing has been said.
    Opening,
    /// The host has been told where.
    Greeted,
    /// It takes an archive.
    Filling,
    /// The archive has its end.
    Complete,
    Over,
}

/// A session and its batch.
pub(super) struct Stream {
    pub(super) stage: Stage,
    /// The batch, in the archive's order.
    pub(super) entries: Vec<usize>,
    /// Octets of the batch's contents, those that are being read included.
    pub(super) octets: u64,
    /// Groups of files that are being read for it.
    pub(super) reading: usize,
    /// Whether what arrives of it is to go again.
    pub(super) is_dropped: bool,
    /// Whether the host checks hashes.
    pub(super) checks: bool,
    /// The list of hashes, and its name.
    sums: Vec<u8>,
    sums_name: Vec<u8>,
    out: ToHost,
    /// Octets of the archive.
    written: u64,
    lines: Lines,
}

/// What the host has said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    /// It takes an archive.
    Ready {
        /// It makes files with this umask(2).
        umask: u32,
        /// It can check hashes.
        checks: bool,
    },
    /// Whether every file is on the disk.
    End(bool),
}

/// What is run on the host, by whatever shell the account has. It reads three lines: a folder, a file that has been made
/// there over SFTP and so proves that both see the same files, and what the list of hashes will be called. Modes are in the
/// archive as they are to be: BusyBox' tar would take the umask from them. Those of GNU and BSD do not, and make a folder that has gone
/// meanwhile by it: not for everybody. Everything is on the disk before it says so; where
/// sync(1) knows no single file system, all are brought there.
pub(super) fn command(preserve: bool, verifies: bool) -> String {
    let touch = if preserve { "" } else { "m" };
    let find = match verifies {
        true => {
            format!("for s in {CHECKERS}; do command -v ${{s%% *}} >/dev/null && break; s=; done; ")
        }
        false => String::new(),
    };
    let check = match verifies {
        true => {
            "; e=$?; if test -f \"$l\"; then test $e = 0 && { $s -c \"$l\" >/dev/null 2>&1; e=$?; }; rm -f \"$l\"; fi; test $e = 0"
        }
        false => "",
    };
    format!(
        "exec sh -c 'LC_ALL=C; export LC_ALL; IFS= read -r d; IFS= read -r p; IFS= read -r l; cd; cd \"$d\" && test -f \"$p\" \
         && command -v tar >/dev/null && command -v sync >/dev/null || exit 3; s=; {find}\
         echo sshoal-ready $(umask) ${{s:+sums}}; case $(tar --version 2>&1 </dev/null) in *GNU*|*bsdtar*) umask 077;; *) umask 0;; esac; tar -xpo{touch}f -{check} \
         && case $(sync --help 2>&1) in *-f*) sync -f .;; *) sync;; esac; echo sshoal-end $?'"
    )
}

impl Stream {
    pub(super) fn new() -> Stream {
        Stream {
            stage: Stage::Opening,
            entries: Vec::new(),
            octets: 0,
            reading: 0,
            is_dropped: false,
            checks: false,
            sums: Vec::new(),
            sums_name: Vec::new(),
            out: ToHost::default(),
            written: 0,
            lines: Lines::default(),
        }
    }

    /// Tells the host where to unpack, what is there, and what a list of hashes will be called.
    pub(super) fn greet(&mut self, folder: &[u8], proof: &[u8], sums: &[u8]) {
        // A relative path must not be looked for elsewhere (CDPATH), nor be an option.
        let prefix = if folder.starts_with(b"/") {
            &b""[..]
        } else {
            b"./"
        };
        for part in [prefix, folder, b"\n", proof, b"\n", sums, b"\n"] {
            self.out.put(part);
        }
        self.sums_name = sums.to_vec();
        self.stage = Stage::Greeted;
    }

    /// One file more, under a name below the folder, and its hash if there is one.
    pub(super) fn put(
        &mut self,
        name: &[u8],
        mode: u32,
        modified: u32,
        contents: &[u8],
        hash: Option<FileHash>,
    ) {
        if let Some(hash) = hash.filter(|_| self.checks) {
            self.sums.extend_from_slice(hash.to_string().as_bytes());
            // Nothing that a name begins with may be taken for something else.
            for part in [&b"  ./"[..], name, b"\n"] {
                self.sums.extend_from_slice(part);
            }
        }
        self.written += self
            .out
            .put_by(|out| tar::put_file(out, name, mode, modified, contents));
    }

    /// Whether hashes of what is in it are checked.
    pub(super) fn has_manifest(&self) -> bool {
        !self.sums.is_empty()
    }

    pub(super) fn complete(&mut self) {
        if self.has_manifest() {
            let (name, sums) = (&self.sums_name, &self.sums);
            self.written += self
                .out
                .put_by(|out| tar::put_file(out, name, 0o600, 0, sums));
        }
        let written = self.written;
        self.out.put_by(|out| tar::put_end(out, written));
        self.stage = Stage::Complete;
    }

    /// Leaves out what has not been sent: tar(1) finds no end.
    pub(super) fn cut(&mut self) {
        self.out.clear();
        self.is_dropped = true;
        self.stage = Stage::Complete;
    }

    /// Octets for the host.
    pub(super) fn transmit(&self) -> &[u8] {
        self.out.waiting()
    }

    /// So many of them have left.
    pub(super) fn transmitted(&mut self, octets: usize) {
        self.out.transmitted(octets);
    }

    /// Takes what the host says; returns what it means.
    pub(super) fn hear(&mut self, mut input: &[u8]) -> Vec<Word> {
        let mut words = Vec::new();
        while let Some(line) = self.lines.next(&mut input) {
            words.extend(self.word(&line));
        }
        words
    }

    fn word(&mut self, line: &[u8]) -> Option<Word> {
        let number =
            |text: &[u8], base| u32::from_str_radix(std::str::from_utf8(text).ok()?, base).ok();
        match self.stage {
            Stage::Greeted => {
                let said = line.strip_prefix(READY)?;
                let checked = said.strip_suffix(SUMS);
                let umask = number(checked.unwrap_or(said), 8)? & 0o777;
                self.stage = Stage::Filling;
                let checks = checked.is_some();
                Some(Word::Ready { umask, checks })
            }
            Stage::Filling | Stage::Complete => {
                let status = line.strip_prefix(END)?;
                // Before the archive's end it cannot be whole, whatever is said.
                Some(Word::End(
                    number(status, 10)? == 0 && self.stage == Stage::Complete,
                ))
            }
            Stage::Opening | Stage::Over => None,
        }
    }
}
