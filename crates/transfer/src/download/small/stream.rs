//! One batch: a session on the host that is told names and sends an archive.
//!
//! ```text
//! Opening -> Greeted -> Asked -> Closed -> Over
//!    we: where           names, EOF
//!    host:       "sshoal-ready"  archive, status, close
//! ```
//!
//! What the host says before it is ready is not for us: a shell's start-up files may greet. An account that runs another
//! program whatever is asked (ForceCommand) never says that it is ready, and gets no names.

use std::collections::HashMap;

use super::{Base, Wanted};
use crate::conversation::{Lines, ToHost};
use crate::sftp::Attributes;
use crate::tar::{Entry, Piece, Reader, TarError};

/// What the host says before it takes names, and what follows if its tar tells by its status of files that changed.
const READY: &[u8] = b"sshoal-ready ";
const TELLS_CHANGES: &[u8] = b"changes";
/// Octets of a batch's archive beyond twice what is expected: files may have grown, and tar fills its records.
const SLACK: u64 = 16 * 1024 * 1024;
/// What an archive has beside a file's contents and name, at most: headers, times and owners in records, what fills blocks.
const BESIDE: u64 = 4096;

/// What is run on the host, by whatever shell the account has. It reads a line, the folder that names are relative to, and
/// then names, each with a zero behind it, so that any name can be told: xargs(1) makes arguments of them, for as many
/// archives as it takes. GNU's tar would take backslashes in them for its own, and would send the contents of only one of
/// several names of a file.
pub(super) const COMMAND: &str = "exec sh -c 'LC_ALL=C; export LC_ALL; unset TAR_OPTIONS; IFS= read -r d; \
     cd; cd \"$d\" && command -v tar >/dev/null && command -v xargs >/dev/null || exit 3; o=; c=; \
     case $(tar --help 2>&1) in *--no-unquote*--hard-dereference*) o=\"--no-unquote --hard-dereference\"; c=changes;; esac; \
     echo sshoal-ready $c.; exec xargs -0 tar $o -cf - --'";

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Nothing has been said.
    Opening,
    /// The host has been told where.
    Greeted,
    /// It has been told names, and sends an archive.
    Asked,
    /// Nothing more comes, but what has come is still being stored.
    Closed,
    Over,
}

/// How far a file of a batch is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Asked,
    /// It is in the archive, and not as it was listed.
    Other,
    Storing,
    Stored,
    /// It has been told what became of it.
    Told,
}

/// A session and its batch.
pub(super) struct Stream {
    pub(super) stage: Stage,
    pub(super) base: Base,
    pub(super) files: Vec<(Wanted, State)>,
    /// Octets of contents that wait for this machine's disk.
    pub(super) held: usize,
    /// Files that do.
    pub(super) storing: usize,
    /// Whether its status tells of files that changed.
    pub(super) tells_changes: bool,
    pub(super) status: Option<u32>,
    pub(super) has_eof: bool,
    /// Whether nothing that comes is taken any more.
    pub(super) is_cut: bool,
    places: HashMap<Vec<u8>, usize>,
    out: ToHost,
    lines: Lines,
    reader: Reader,
    /// The file that is being read.
    current: Option<(usize, Vec<u8>)>,
    /// Octets that may still come.
    allowed: u64,
}

/// What has come.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// The host takes names.
    Ready,
    /// A file of the batch, and all of it.
    File(usize, Vec<u8>),
}

/// Why a stream is given up.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Breach {
    Malformed(TarError),
    TooMuch,
}

impl Stream {
    pub(super) fn new() -> Stream {
        Stream {
            stage: Stage::Opening,
            base: Base::Root,
            files: Vec::new(),
            held: 0,
            storing: 0,
            tells_changes: false,
            status: None,
            has_eof: false,
            is_cut: false,
            places: HashMap::new(),
            out: ToHost::default(),
            lines: Lines::default(),
            reader: Reader::default(),
            current: None,
            allowed: 0,
        }
    }

    /// Tells the host what names will be relative to.
    pub(super) fn greet(&mut self, base: Base) {
        self.base = base;
        self.out.put(match base {
            Base::Home => b".\n",
            Base::Root => b"/\n",
        });
        self.stage = Stage::Greeted;
    }

    /// Asks for files.
    pub(super) fn ask(&mut self, files: Vec<Wanted>) {
        self.allowed = SLACK;
        for (number, wanted) in files.iter().enumerate() {
            // A name must be no option, nor, for BSD's tar, an archive.
            for part in [&b"./"[..], &wanted.name, b"\0"] {
                self.out.put(part);
            }
            self.allowed += 2 * (wanted.size() + wanted.name.len() as u64 + BESIDE);
            self.places.insert(wanted.name.clone(), number);
        }
        self.files = files.into_iter().map(|it| (it, State::Asked)).collect();
        self.stage = Stage::Asked;
    }

    /// Takes nothing more.
    pub(super) fn cut(&mut self) {
        self.is_cut = true;
        self.current = None;
        self.out.clear();
    }

    /// Octets for the host.
    pub(super) fn transmit(&self) -> &[u8] {
        self.out.waiting()
    }

    /// So many of them have left.
    pub(super) fn transmitted(&mut self, octets: usize) {
        self.out.transmitted(octets);
    }

    /// Takes what the host says, from the front of `input`, up to the next thing that is to be done; `None` once that is
    /// empty.
    pub(super) fn hear(&mut self, input: &mut &[u8]) -> Result<Option<Heard>, Breach> {
        if self.stage == Stage::Greeted {
            return Ok(self.hear_word(input));
        }
        if self.stage != Stage::Asked || self.is_cut {
            *input = &[];
            return Ok(None);
        }
        let before = input.len();
        let mut heard = None;
        while heard.is_none()
            && let Some(piece) = self.reader.next(input).map_err(Breach::Malformed)?
        {
            heard = self.take_piece(piece);
        }
        let came = (before - input.len()) as u64;
        self.allowed = self.allowed.checked_sub(came).ok_or(Breach::TooMuch)?;
        Ok(heard)
    }

    /// Lines until the host is ready.
    fn hear_word(&mut self, input: &mut &[u8]) -> Option<Heard> {
        while let Some(line) = self.lines.next(input) {
            if let Some(word) = line.strip_prefix(READY) {
                self.tells_changes = word.starts_with(TELLS_CHANGES);
                return Some(Heard::Ready);
            }
        }
        None
    }

    /// Returns a file once it is whole.
    fn take_piece(&mut self, piece: Piece<'_>) -> Option<Heard> {
        match piece {
            Piece::Entry(entry) => {
                self.begin_file(&entry);
                None
            }
            Piece::Contents(contents) => {
                let (file, data) = self.current.as_mut()?;
                data.extend_from_slice(contents);
                if (data.len() as u64) < self.files[*file].0.size() {
                    return None;
                }
                let (file, data) = self.current.take()?;
                self.files[file].1 = State::Storing;
                Some(Heard::File(file, data))
            }
        }
    }

    /// A file is read if it was asked for, has not come yet, and is what was listed.
    fn begin_file(&mut self, entry: &Entry) {
        self.current = None;
        let mut name = entry.name.as_slice();
        while let Some(rest) = name.strip_prefix(b"./") {
            name = rest;
        }
        let Some(&file) = self.places.get(name) else {
            return;
        };
        let (wanted, state) = &mut self.files[file];
        if *state != State::Asked {
            return;
        }
        match is_like(entry, &wanted.item.attributes) {
            true => self.current = Some((file, Vec::with_capacity(entry.size as usize))),
            false => *state = State::Other,
        }
    }
}

/// Whether a file in an archive is the one that was listed, as far as both tell.
fn is_like(entry: &Entry, listed: &Attributes) -> bool {
    let owner = |(user, group): (u32, u32)| (user.into(), group.into());
    entry.is_regular
        && Some(entry.size) == listed.size
        // SFTP has 32 bits of it.
        && Some(entry.modified as u32) == listed.modified()
        && listed.permissions().is_none_or(|mode| mode == entry.mode)
        && listed.owner.is_none_or(|it| owner(it) == entry.owner)
}
