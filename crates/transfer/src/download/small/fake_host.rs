//! A host whose tar does what it is told, well or badly, and a machine that files come to.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use super::*;
use crate::fake_server::{FakeServer, MODIFIED, Node};
use crate::tar::{put_end, put_file};
use crate::{Begun, DownloadNeed, Fetched, LocalFile};

/// What a host does with streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Host {
    /// Greets first, as shells' start-up files do, and sends what is asked for, with GNU's tar.
    Sends,
    /// The same with a tar that does not tell of files that changed.
    SendsBlindly,
    /// Opens none.
    Refuses,
    /// Takes one at a time.
    TakesOne,
    /// Never gets ready.
    Waits,
    /// Sees other files: of the same names and sizes.
    SeesOthers,
    /// Sees nothing.
    SeesNothing,
    /// Cannot read one file, and says so by its status.
    LacksOne,
    /// Sends what was not asked for, too, under names that lead elsewhere, and files twice.
    IsHostile,
    /// Breaks off in the middle.
    BreaksOff,
    /// Sends what is no archive.
    Babbles,
    /// Sends without end.
    Floods,
    /// One file has changed when it is looked at again.
    Changes,
}

pub(super) fn contents(number: usize) -> Vec<u8> {
    vec![number as u8; 1 + number * 37 % 3000]
}

/// A folder with small files, one that is large and one that is empty.
pub(super) fn server(files: usize) -> FakeServer {
    let mut server = FakeServer::with(&[
        (b"/srv", Node::Folder),
        (b"/srv/large", Node::File(vec![1; 200_000])),
        (b"/srv/empty", Node::File(Vec::new())),
    ]);
    for number in 0..files {
        let path = format!("/srv/f{number}").into_bytes();
        server.nodes.insert(path, Node::File(contents(number)));
    }
    server
}

/// The archive of what was asked for.
pub(super) fn archive(host: Host, names: &[u8], server: &FakeServer) -> Vec<u8> {
    let mut out = Vec::new();
    if host == Host::Babbles {
        return b"tar: command not found\n".repeat(50);
    }
    if host == Host::IsHostile {
        for name in [&b"../../etc/passwd"[..], b"/etc/passwd", b"srv", b"unasked"] {
            put_file(&mut out, name, 0o644, MODIFIED, b"evil");
        }
    }
    for name in names
        .split(|&octet| octet == 0)
        .filter(|name| !name.is_empty())
    {
        let path = [b"/", name.strip_prefix(b"./").unwrap()].concat();
        let is_lost = match host {
            Host::SeesNothing => true,
            Host::LacksOne => path == b"/srv/f7",
            Host::BreaksOff => out.len() > 50_000,
            _ => false,
        };
        if is_lost {
            continue;
        }
        let contents = server.file(&path).unwrap();
        let modified = match host {
            Host::SeesOthers => MODIFIED + 1,
            _ => MODIFIED,
        };
        put_file(&mut out, name, 0o644, modified, contents);
        if host == Host::IsHostile {
            put_file(&mut out, name, 0o644, MODIFIED, &vec![0; contents.len()]);
        }
    }
    if host == Host::BreaksOff {
        out.truncate(out.len().saturating_sub(700));
        return out;
    }
    if host == Host::Floods {
        // What nobody asked for, in an archive that is sound.
        for _ in 0..20 {
            put_file(&mut out, b"more", 0o644, MODIFIED, &vec![0; 1 << 20]);
        }
    }
    let written = out.len() as u64;
    put_end(&mut out, written);
    out
}

/// This machine.
#[derive(Clone, Default)]
pub(super) struct Here {
    pub(super) files: BTreeMap<Vec<u8>, (Vec<u8>, bool)>,
    pub(super) parts: BTreeMap<Vec<u8>, Vec<u8>>,
    pub(super) open: BTreeMap<LocalFile, (Vec<u8>, Vec<u8>)>,
    /// Files that cannot be written.
    pub(super) is_full_for: Vec<Vec<u8>>,
}

impl Here {
    pub(super) fn fetch(&mut self, need: DownloadNeed) -> Option<Fetched> {
        Some(match need {
            DownloadNeed::Folder { id, .. } => Fetched::Folder { id, made: Ok(()) },
            DownloadNeed::Begin { file, path, .. } => {
                self.open.insert(file, (path, Vec::new()));
                let begun = Ok(Begun::Ready(Default::default()));
                Fetched::Begun { file, begun }
            }
            DownloadNeed::Write {
                file,
                channel,
                offset,
                data,
            } => {
                let octets = data.len();
                if let Some((_, contents)) = self.open.get_mut(&file) {
                    contents.resize(contents.len().max(offset as usize + octets), 0);
                    contents[offset as usize..][..octets].copy_from_slice(&data);
                }
                Fetched::Written {
                    file,
                    channel,
                    octets,
                    written: Ok(()),
                }
            }
            DownloadNeed::Finish { file, .. } => {
                let (path, contents) = self.open.remove(&file).unwrap();
                self.files.insert(path, (contents, false));
                let finished = Ok(());
                Fetched::Finished { file, finished }
            }
            DownloadNeed::Discard { file } => {
                self.open.remove(&file);
                return None;
            }
            DownloadNeed::FinishFolder { path, .. } => Fetched::FolderFinished {
                path,
                finished: Ok(()),
            },
            DownloadNeed::Link { .. } | DownloadNeed::Delete { .. } => unreachable!(),
            DownloadNeed::Compare { .. }
            | DownloadNeed::Touch { .. }
            | DownloadNeed::Hash { .. } => unreachable!("nothing is to be hashed"),
            DownloadNeed::Accounts { .. } => unreachable!("owners are not kept"),
        })
    }

    pub(super) fn fetch_small(&mut self, need: SmallNeed) -> Option<FetchedSmall> {
        Some(match need {
            SmallNeed::Look { id, files } => {
                let seen = files.iter().map(|look| {
                    let there = self.files.get(&look.path);
                    Ok(there.is_some_and(|(it, _)| it.len() as u64 == look.like.0))
                });
                let seen = seen.collect();
                FetchedSmall::Seen { id, seen }
            }
            SmallNeed::Store { files } => {
                let stored = files.into_iter().map(|part| {
                    let is_full = self.is_full_for.contains(&part.path);
                    if !is_full {
                        assert!(self.parts.insert(part.path, part.data).is_none());
                    }
                    let stored = if is_full {
                        Err("no space".to_owned())
                    } else {
                        Ok(())
                    };
                    (part.number, stored)
                });
                FetchedSmall::Stored(stored.collect())
            }
            SmallNeed::Place { files } => {
                let placed = files.into_iter().map(|(id, path)| {
                    let contents = self.parts.remove(&path).unwrap();
                    self.files.insert(path, (contents, true));
                    (id, Ok(()))
                });
                FetchedSmall::Placed(placed.collect())
            }
            SmallNeed::Clear { files } => {
                let cleared = files.into_iter().map(|(id, path)| {
                    assert!(self.parts.remove(&path).is_some(), "{path:?}");
                    id
                });
                FetchedSmall::Cleared(cleared.collect())
            }
            SmallNeed::Discard { paths } => {
                for path in paths {
                    assert!(self.parts.remove(&path).is_some(), "{path:?}");
                }
                return None;
            }
        })
    }
}
