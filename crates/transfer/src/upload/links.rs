//! Symbolic and hard links: made under another name, then renamed, so that what was there is replaced in one step.

use super::owners::{NO_OWNERS, Wanted};
use super::placing::PLACING;
use super::{Asked, Kind, Phase, Upload};
use crate::part_name::old_name;
use crate::sftp::{Attributes, Dialect, Extension, FileType, Reply, Request, StatusCode};
use crate::trouble::shown;
use crate::{Remote, Trouble};

/// How far a link is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LinkStep {
    /// What is there.
    Look,
    /// What the link that is there says.
    Read,
    /// What an earlier transfer may have left is out of the way; the answer does not matter.
    Clear,
    Make,
    /// Whom the new one belongs to.
    LookAtOwner,
    Own,
    /// The same of one that is there.
    OwnThere,
    Rename,
    /// A server without posix-rename has refused that: what is there is put aside, and the link has another try. It is put
    /// back if that fails, and not needed any more (the answer does not matter) if it does not.
    SetAside,
    RenameAgain,
    PutBack,
    ClearAside,
    /// Renaming one name of a file over another of the same file does nothing (rename(2)).
    Unlink,
    Times,
}

impl Upload {
    /// Takes the server for one that speaks so: in its SFTP, links are made as it reads them.
    pub fn speak(&mut self, dialect: Dialect) {
        self.channels.speak(dialect);
    }

    pub(super) fn make_links(&mut self) {
        let plan = self.plan.clone();
        while self.next < plan.entries.len() && !self.interrupted {
            let number = self.next;
            let is_link = match plan.entries[number].kind {
                Kind::Link { .. } => true,
                Kind::HardLink { .. } => self.makes_hard_links(),
                _ => false,
            };
            if !is_link {
                self.next += 1;
                continue;
            }
            if !self.has_room() {
                return;
            }
            self.next += 1;
            let hindrance = self.hindrance(number);
            let original_failed = matches!(plan.entries[number].kind,
                Kind::HardLink { to, .. } if self.failed_files.contains(&to));
            match (hindrance, original_failed) {
                (Some(trouble), _) => self.failed(self.path(number), trouble),
                (None, true) => self.failed(self.path(number), Trouble::NoOriginal),
                (None, false) => {
                    self.links_open += 1;
                    self.ask_link(number, LinkStep::Look);
                }
            }
        }
        if self.links_open == 0 {
            self.phase = Phase::Deleting;
        }
    }

    /// Without the extension each name is a file of its own.
    pub(super) fn makes_hard_links(&self) -> bool {
        self.channels[0].client.has(Extension::Hardlink)
    }

    fn ask_link(&mut self, entry: usize, step: LinkStep) {
        self.ask_of_link(entry, step, (0, 0));
    }

    /// The same with the owner that is to be set.
    fn ask_of_link(&mut self, entry: usize, step: LinkStep, owner: (u32, u32)) {
        let plan = self.plan.clone();
        let path = self.path(entry);
        let part = self.part(&path);
        let times = Attributes {
            times: Some(plan.entries[entry].times),
            ..Attributes::default()
        };
        let original = match plan.entries[entry].kind {
            Kind::HardLink { to, .. } => self.path(to),
            _ => Vec::new(),
        };
        let replaces = self.channels[0].client.has(Extension::PosixRename);
        let request = match (step, &plan.entries[entry].kind) {
            (LinkStep::Look, _) => Request::Lstat { path: &path },
            (LinkStep::LookAtOwner, _) => Request::Lstat { path: &part },
            (LinkStep::Read, _) => Request::Readlink { path: &path },
            (LinkStep::Clear | LinkStep::Unlink, _) => Request::Remove { path: &part },
            (LinkStep::Make, Kind::Link { target }) => Request::Symlink {
                target,
                link: &part,
            },
            (LinkStep::Make, _) => Request::Hardlink {
                from: &original,
                to: &part,
            },
            (LinkStep::Rename, _) if replaces => Request::PosixRename {
                from: &part,
                to: &path,
            },
            (LinkStep::Rename | LinkStep::RenameAgain, _) => Request::Rename {
                from: &part,
                to: &path,
            },
            (LinkStep::SetAside, _) => Request::Rename {
                from: &path,
                to: &old_name(&part),
            },
            (LinkStep::PutBack, _) => Request::Rename {
                from: &old_name(&part),
                to: &path,
            },
            (LinkStep::ClearAside, _) => Request::Remove {
                path: &old_name(&part),
            },
            (LinkStep::Times, _) => Request::Lsetstat {
                path: &path,
                attributes: times,
            },
            (LinkStep::Own, _) => self.own(&part, owner),
            (LinkStep::OwnThere, _) => self.own(&path, owner),
        };
        self.ask(request, Asked::Link { entry, step });
    }

    pub(super) fn handle_link(&mut self, entry: usize, step: LinkStep, reply: Reply) {
        let plan = self.plan.clone();
        let is_ok = matches!(&reply, Reply::Status(status) if status.code == StatusCode::Ok);
        let is_symbolic = matches!(plan.entries[entry].kind, Kind::Link { .. });
        match (step, &reply) {
            (LinkStep::Look, Reply::Attributes(there)) => match there.file_type() {
                FileType::Folder => self.link_failed(entry, Trouble::FolderInTheWay),
                FileType::BlockDevice | FileType::CharacterDevice => {
                    self.link_failed(entry, Trouble::DeviceInTheWay);
                }
                FileType::Link if is_symbolic => {
                    let has = there.owner.map(|owner| (entry, owner));
                    self.link_owners.extend(has);
                    self.ask_link(entry, LinkStep::Read);
                }
                _ => self.begin_link(entry),
            },
            (LinkStep::Look, _) => self.begin_link(entry),
            (LinkStep::Read, Reply::Names(names)) => {
                let says = names.first().map(|name| name.name.as_slice());
                match &plan.entries[entry].kind {
                    Kind::Link { target } if says == Some(target) => self.link_is_there(entry),
                    _ => self.begin_link(entry),
                }
            }
            (LinkStep::Read, _) => self.begin_link(entry),
            (LinkStep::Clear, _) => {}
            (LinkStep::Make, Reply::Status(status)) if !is_ok => {
                self.link_failed(entry, Trouble::remote("making the link", status));
            }
            (LinkStep::Make, _) if is_symbolic => self.own_link(entry, None),
            (LinkStep::Make, _) => self.place_link(entry),
            (LinkStep::LookAtOwner, Reply::Attributes(part)) if part.owner.is_some() => {
                self.own_link(entry, part.owner);
            }
            (LinkStep::LookAtOwner, _) => {
                let why = Remote::Unsupported(NO_OWNERS.to_owned());
                let doing = "looking at the link's owner";
                self.ask_link(entry, LinkStep::Clear);
                self.link_failed(entry, Trouble::Remote { doing, why });
            }
            (LinkStep::Own | LinkStep::OwnThere, Reply::Status(status)) if !is_ok => {
                let trouble = self.owner(entry).refused(status);
                if step == LinkStep::Own {
                    self.ask_link(entry, LinkStep::Clear);
                }
                self.link_failed(entry, trouble);
            }
            (LinkStep::Own, _) => self.place_link(entry),
            (LinkStep::OwnThere, _) => self.link_done(entry, true),
            (LinkStep::Rename, Reply::Status(status)) if !is_ok => {
                let refusal = Trouble::remote(PLACING, status);
                match self.channels[0].client.has(Extension::PosixRename) {
                    true => self.link_not_placed(entry, refusal),
                    false => {
                        self.refused_links.insert(entry, refusal);
                        self.ask_link(entry, LinkStep::SetAside);
                    }
                }
            }
            (LinkStep::SetAside, _) if is_ok => self.ask_link(entry, LinkStep::RenameAgain),
            (LinkStep::RenameAgain, Reply::Status(status)) if !is_ok => {
                let refusal = Trouble::remote(PLACING, status);
                self.refused_links.insert(entry, refusal);
                self.ask_link(entry, LinkStep::PutBack);
            }
            (LinkStep::RenameAgain, _) => self.ask_link(entry, LinkStep::ClearAside),
            (LinkStep::SetAside | LinkStep::PutBack, _) => {
                let refusal = self.refused_links.remove(&entry);
                let name = || shown(&old_name(&self.part(&self.path(entry))));
                let refusal = refusal.filter(|_| step == LinkStep::SetAside || is_ok);
                let refusal = refusal.unwrap_or_else(|| Trouble::LeftAside { name: name() });
                self.link_not_placed(entry, refusal);
            }
            (LinkStep::Rename | LinkStep::ClearAside, _) if !is_symbolic => {
                self.ask_link(entry, LinkStep::Unlink);
            }
            // The new name is still there: both are names of one file, and were before.
            (LinkStep::Unlink, _) => self.link_done(entry, is_ok),
            (LinkStep::Rename | LinkStep::ClearAside, _)
                if plan.preserve && self.channels[0].client.has(Extension::Lsetstat) =>
            {
                self.ask_link(entry, LinkStep::Times);
            }
            // Times of a link are of use to nobody but backups: where they cannot be set it is a link all the same.
            (LinkStep::Rename | LinkStep::ClearAside | LinkStep::Times, _) => {
                self.link_done(entry, false);
            }
        }
    }

    /// It says what it is to say: it may lack its owner.
    fn link_is_there(&mut self, entry: usize) {
        let has = self.link_owners.remove(&entry);
        match self.owner(entry).missing(has) {
            Some(owner) if self.owns_links() => self.ask_of_link(entry, LinkStep::OwnThere, owner),
            _ => self.link_done(entry, true),
        }
    }

    /// Without the extension whatever is done to a link is done to what it leads to.
    fn owns_links(&self) -> bool {
        self.channels[0].client.has(Extension::Lsetstat)
    }

    /// A link is made: its owner is set before it has its name. `has`: whom it belongs to, if that has been looked at.
    fn own_link(&mut self, entry: usize, has: Option<(u32, u32)>) {
        match self.owner_of_part(entry, has) {
            Wanted::Set(owner) if self.owns_links() => {
                self.ask_of_link(entry, LinkStep::Own, owner);
            }
            Wanted::Look if self.owns_links() => self.ask_link(entry, LinkStep::LookAtOwner),
            _ => self.place_link(entry),
        }
    }

    fn place_link(&mut self, entry: usize) {
        self.ask_link(entry, LinkStep::Rename);
    }

    fn link_not_placed(&mut self, entry: usize, trouble: Trouble) {
        self.ask_link(entry, LinkStep::Clear);
        self.link_failed(entry, trouble);
    }

    fn begin_link(&mut self, entry: usize) {
        self.link_owners.remove(&entry);
        self.open_folder_of(0, entry);
        self.ask_link(entry, LinkStep::Clear);
        self.ask_link(entry, LinkStep::Make);
    }

    fn link_done(&mut self, entry: usize, unchanged: bool) {
        self.links_open -= 1;
        self.done(entry, unchanged);
    }

    fn link_failed(&mut self, entry: usize, trouble: Trouble) {
        self.links_open -= 1;
        self.failed(self.path(entry), trouble);
    }
}
