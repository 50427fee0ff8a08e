//! A host's hashing program in memory, for tests, with a hash that is none.

use crate::fake_server::FakeServer;
use crate::{FileHash, Hashing, HostHashes, Verify};

/// Unchanged files are told by their hash.
pub(crate) const CHECKSUM: Hashing = Hashing {
    compares: true,
    verifies: Verify::Never,
};

/// What has arrived is hashed at both ends, as far as this says.
pub(crate) fn verified(verifies: Verify) -> Hashing {
    Hashing {
        compares: false,
        verifies,
    }
}

/// What a host does when it is to hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hasher {
    Hashes,
    /// Has no program.
    None,
    /// Says that nothing can be read.
    SeesNothing,
    /// Says so of every second file.
    SeesHalf,
    /// Something has become of every file of more than so many octets.
    Spoils(usize),
    /// Ends when it has answered so many groups.
    Ends(usize),
}

/// A session with it.
#[derive(Default)]
pub(crate) struct FakeHasher {
    input: Vec<u8>,
    paths: Vec<Vec<u8>>,
    is_open: bool,
    is_ready: bool,
    groups: usize,
    /// Files that it was asked for.
    pub(crate) files: usize,
}

/// Tells contents apart as a hash would.
pub(crate) fn fake_hash(contents: &[u8]) -> FileHash {
    let mut octets = [0; 32];
    octets[..8].copy_from_slice(&(contents.len() as u64).to_be_bytes());
    for (at, octet) in contents.iter().enumerate() {
        let sum = &mut octets[8 + at % 24];
        *sum = sum.rotate_left(1) ^ octet;
    }
    FileHash(octets)
}

impl FakeHasher {
    /// Lets both say what they have to say.
    pub(crate) fn converse(&mut self, host: Hasher, hashes: &mut HostHashes, server: &FakeServer) {
        if hashes.wants_session() {
            hashes.opened();
            self.is_open = true;
            return;
        }
        if self.is_open && !self.is_ready {
            self.is_ready = true;
            match host {
                Hasher::None => hashes.end(),
                _ => hashes.hear(b"hello\nsshoal-ready\n"),
            }
            return;
        }
        let sent = hashes.transmit().to_vec();
        hashes.transmitted(sent.len());
        self.input.extend_from_slice(&sent);
        while let Some(end) = self.input.iter().position(|&octet| octet == b'\n') {
            let line: Vec<u8> = self.input.drain(..=end).collect();
            match &line[..end] {
                [b'.', b'/', ..] => {}
                [b'+', path @ ..] => self.paths.push(path.to_vec()),
                [b'=', path @ ..] => {
                    let escaped = path.windows(5).position(|it| it == b"\\0012");
                    let at = escaped.unwrap_or(path.len());
                    let rest = path.get(at + 5..).unwrap_or_default();
                    self.paths.push([&path[..at], b"\n", rest].concat());
                }
                _ if matches!(host, Hasher::Ends(most) if self.groups >= most) => hashes.end(),
                _ => {
                    let said = self.answer(host, server);
                    hashes.hear(said.as_bytes());
                }
            }
        }
    }

    fn answer(&mut self, host: Hasher, server: &FakeServer) -> String {
        self.groups += 1;
        let mut said = String::new();
        for path in self.paths.drain(..) {
            self.files += 1;
            let contents = server.file(&path).map(<[u8]>::to_vec);
            let contents = contents.filter(|_| server.may_read(&path));
            let is_seen = match host {
                Hasher::SeesNothing => false,
                Hasher::SeesHalf => self.files % 2 == 1,
                _ => true,
            };
            said.push_str(&match contents.filter(|_| is_seen) {
                Some(mut contents) => {
                    if matches!(host, Hasher::Spoils(most) if contents.len() > most) {
                        contents[0] ^= 1;
                    }
                    format!("{}  x\n", fake_hash(&contents))
                }
                None => "-\n".to_owned(),
            });
        }
        said + "sshoal-end\n"
    }
}
