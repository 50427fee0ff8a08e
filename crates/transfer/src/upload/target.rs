//! Where things go on this host. The same command gives the same result whether it runs for the first time or again, as
//! with rsync(1):
//!
//! - One file: the target, or into it if it is a folder.
//! - Folders, several sources, or a target with a slash at its end: into that folder, which is made if it is not there.
//!   A source with a slash at its end has no name of its own: what is in it goes into the target.

use super::closed::Place;
use super::{Asked, Phase, Upload};
use crate::path::{join, parent, without_slashes};
use crate::sftp::{Attributes, Extension, FileType, Reply, Request, StatusCode};
use crate::{Remote, Trouble};

const MAKING: &str = "making the target's folder";

/// How far the search is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TargetStep {
    Expand,
    Look,
    Make,
    /// Somebody else may have made it meanwhile. Why it was refused.
    LookAgain(Remote),
    /// The same, and what the file system may have to do with it.
    Explain(Remote),
}

impl Upload {
    /// Begins the search.
    pub(super) fn find_target(&mut self) {
        if self.interrupted {
            self.phase = Phase::Ended;
            return;
        }
        // Begun already.
        if self.next > 0 {
            return;
        }
        self.next = 1;
        let plan = self.plan.clone();
        match plan.target.as_slice() {
            // Paths that do not begin with a slash begin at the user's home.
            b"" | b"~" | b"~/" => self.look_at_target(b"./".to_vec()),
            [b'~', b'/', below @ ..] => self.look_at_target(below.to_vec()),
            [b'~', ..] if self.channels[0].client.has(Extension::ExpandPath) => {
                let path = &plan.target;
                self.ask(
                    Request::ExpandPath { path },
                    Asked::Target(TargetStep::Expand),
                );
            }
            [b'~', ..] => {
                let why = Remote::Unsupported("~user (expand-path@openssh.com)".to_owned());
                self.no_target(Trouble::Remote {
                    doing: "looking for the home folder",
                    why,
                });
            }
            path => self.look_at_target(path.to_vec()),
        }
    }

    fn look_at_target(&mut self, path: Vec<u8>) {
        let path = match without_slashes(&path) {
            b"" => b".".to_vec(),
            path => path.to_vec(),
        };
        let request = Request::Stat { path: &path };
        self.ask(request, Asked::Target(TargetStep::Look));
        self.roots = vec![path];
    }

    pub(super) fn handle_target(&mut self, step: TargetStep, reply: Reply) {
        let into_folder = self.plan.goes_into_folder();
        match (step, reply) {
            (TargetStep::Expand, Reply::Names(names)) if !names.is_empty() => {
                let slash = if self.plan.target.ends_with(b"/") {
                    &b"/"[..]
                } else {
                    b""
                };
                self.look_at_target([&names[0].name, slash].concat());
            }
            (TargetStep::Look, Reply::Attributes(there)) => {
                let is_folder = there.file_type() == FileType::Folder;
                if there.file_type() == FileType::BlockDevice && !into_folder {
                    return self.begin_device();
                }
                match into_folder && !is_folder {
                    true => self.no_target(Trouble::NoFolderThere),
                    false => self.settle_target(is_folder),
                }
                if is_folder {
                    self.note_closed(Place::Target, &there);
                }
            }
            // There is nothing yet that could be surplus.
            (TargetStep::Look, Reply::Status(status))
                if status.code == StatusCode::NoSuchFile && self.plan.only_tells() =>
            {
                self.phase = Phase::Ended;
            }
            (TargetStep::Look, Reply::Status(status))
                if status.code == StatusCode::NoSuchFile && into_folder =>
            {
                let path = self.roots[0].clone();
                let attributes = Attributes {
                    mode: Some(0o777),
                    ..Attributes::default()
                };
                let request = Request::Mkdir {
                    path: &path,
                    attributes,
                };
                self.ask(request, Asked::Target(TargetStep::Make));
            }
            (TargetStep::Look, Reply::Status(status)) if status.code == StatusCode::NoSuchFile => {
                match is_for_devices(&self.roots[0]) {
                    true => self.no_target(Trouble::NoDevice),
                    false => self.settle_target(false),
                }
            }
            (TargetStep::Make, Reply::Status(status)) if status.code == StatusCode::Ok => {
                self.settle_target(true);
            }
            (TargetStep::Make, Reply::Status(status)) if status.code == StatusCode::Failure => {
                let path = self.roots[0].clone();
                let request = Request::Stat { path: &path };
                let step = TargetStep::LookAgain(Remote::of(&status));
                self.ask(request, Asked::Target(step));
            }
            (TargetStep::LookAgain(_), Reply::Attributes(there))
                if there.file_type() == FileType::Folder =>
            {
                self.settle_target(true);
                self.note_closed(Place::Target, &there);
            }
            // It was not there after all, and making it has failed.
            (TargetStep::LookAgain(why), Reply::Status(status))
                if status.code == StatusCode::NoSuchFile =>
            {
                match self.may_explain(0, &why) {
                    true => {
                        let path = parent(&self.roots[0]).to_vec();
                        let request = Request::Statvfs { path: &path };
                        self.ask(request, Asked::Target(TargetStep::Explain(why)));
                    }
                    false => self.target_not_made(why),
                }
            }
            (TargetStep::Explain(why), Reply::Filesystem(filesystem)) => {
                self.target_not_made(why.explained(&filesystem));
            }
            (TargetStep::Explain(why), _) => self.target_not_made(why),
            (step, Reply::Status(status)) => {
                let doing = match step {
                    TargetStep::Expand => "looking for the home folder",
                    TargetStep::Look => "looking at the target",
                    TargetStep::Make | TargetStep::LookAgain(_) | TargetStep::Explain(_) => MAKING,
                };
                self.no_target(Trouble::remote(doing, &status));
            }
            _ => self.no_target(Trouble::NoFolderThere),
        }
    }

    fn target_not_made(&mut self, why: Remote) {
        self.no_target(Trouble::Remote { doing: MAKING, why });
    }

    /// Whether the file system may tell more of a reason than the server has told.
    pub(super) fn may_explain(&self, channel: usize, why: &Remote) -> bool {
        matches!(why, Remote::Said(_)) && self.channels[channel].client.has(Extension::Statvfs)
    }

    /// Every root's place is known.
    fn settle_target(&mut self, into: bool) {
        let base = self.roots[0].clone();
        self.roots = match into {
            true => {
                self.small.base = base.clone();
                let roots = self.plan.roots.iter();
                roots.map(|root| join(&base, &root.name)).collect()
            }
            false => vec![base],
        };
        self.next = 0;
        self.phase = match self.plan.only_tells() {
            true => Phase::Deleting,
            false => Phase::Hashes,
        };
    }

    /// Nothing can go anywhere.
    fn no_target(&mut self, trouble: Trouble) {
        let path = match (&trouble, self.roots.first()) {
            (
                Trouble::Remote {
                    why: Remote::Missing,
                    ..
                },
                Some(path),
            ) => parent(path).to_vec(),
            (_, Some(path)) => path.clone(),
            (_, None) => self.plan.target.clone(),
        };
        self.tally.failed += self.plan.entries.len().saturating_sub(1) as u64;
        self.failed(path, trouble);
        self.phase = Phase::Ended;
    }
}

/// Whether a file there would be one that only stands where a device was meant. Shared memory (shm_overview(7)) holds files.
fn is_for_devices(path: &[u8]) -> bool {
    path.starts_with(b"/dev/") && !path.starts_with(b"/dev/shm/")
}
