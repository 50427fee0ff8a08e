//! Symbolic links, then owners, modes and times of folders.

use super::walk::LAST_LINKS;
use super::{Asked, Download, DownloadNeed, Item, Stage};
use crate::Trouble;
use crate::owners::Owner;
use crate::path::MAX_PATH;
use crate::sftp::{Attributes, Reply, Request};
use crate::trouble::shown;

/// Links, or folders, under way at a time.
const AT_A_TIME: usize = 64;

/// The path of a folder here, what it was like on the host, and whether it has failed.
pub(super) type EndingFolder = (Box<[u8]>, Attributes, bool);

impl Download {
    /// Makes links that cannot wait for the end: they are too many, or too long.
    pub(super) fn make_spare_links(&mut self) {
        while self.linking < AT_A_TIME
            && (self.links.len() > LAST_LINKS || self.held.now() > self.limits.held / 2)
            && let Some(item) = self.links.pop()
        {
            self.make_link(item);
        }
    }

    pub(super) fn make_links(&mut self) {
        while self.linking < AT_A_TIME
            && let Some(item) = self.links.pop()
        {
            self.make_link(item);
        }
        if self.open == 0 {
            self.stage = Stage::Deleting;
        }
    }

    fn make_link(&mut self, item: Item) {
        self.open += 1;
        self.linking += 1;
        let owner = self.owner_here(&item.remote, &item.attributes);
        let Item { remote, local, .. } = item;
        let path = remote.clone();
        let asked = Asked::Link {
            remote,
            local,
            owner,
        };
        self.ask(Request::Readlink { path: &path }, asked);
    }

    fn link_has_ended(&mut self) {
        self.open -= 1;
        self.linking -= 1;
    }

    pub(super) fn handle_link(
        &mut self,
        remote: Vec<u8>,
        path: Vec<u8>,
        owner: Owner,
        reply: Reply,
    ) {
        let target = match reply {
            Reply::Names(mut names) if names.len() == 1 => names.remove(0).name,
            Reply::Status(status) => {
                self.link_has_ended();
                return self.failed(remote, Trouble::remote("reading the link", &status));
            }
            _ => Vec::new(),
        };
        if target.is_empty() || target.len() >= MAX_PATH || target.contains(&0) {
            self.link_has_ended();
            return self.failed(remote, Trouble::BadName(shown(&target)));
        }
        let need = DownloadNeed::Link {
            path,
            target,
            owner,
        };
        self.needs.push_back(need);
    }

    pub(super) fn handle_linked(&mut self, path: Vec<u8>, linked: Result<bool, String>) {
        self.link_has_ended();
        match linked {
            Ok(unchanged) => self.done(path, unchanged),
            Err(error) => {
                let doing = "making the link";
                self.failed(path, Trouble::Local { doing, error });
            }
        }
    }

    /// The innermost come last in the list of those that were listed to their end, or near to it: what is done in a folder
    /// changes its time, and what it gets may forbid to go into it, so the longest paths go first.
    pub(super) fn finish_folders(&mut self) {
        if self.open == 0 {
            self.folders.sort_by_key(|(path, ..)| depth(path));
        }
        while self.open < AT_A_TIME
            && let Some((path, ..)) = self.folders.last()
            && (self.open == 0 || depth(path) == self.depth)
            && let Some((path, attributes, has_failed)) = self.folders.pop()
        {
            if has_failed {
                self.failed_folders.push(path.to_vec());
            }
            self.depth = depth(&path);
            self.open += 1;
            let owner = self.owner_here(&path, &attributes);
            let preserve = self.plan.preserve;
            self.needs.push_back(DownloadNeed::FinishFolder {
                path: path.into_vec(),
                owner,
                mode: attributes.permissions().filter(|_| preserve),
                times: attributes.times.filter(|_| preserve),
            });
        }
        if self.open == 0 {
            self.end();
        }
    }

    pub(super) fn handle_folder_finished(&mut self, path: Vec<u8>, finished: Result<(), String>) {
        self.open -= 1;
        let mut failed = self.failed_folders.iter();
        let failed = failed.position(|failed| *failed == path);
        match finished {
            Ok(()) if failed.is_some() => {}
            Ok(()) => self.done(path, false),
            Err(error) => {
                let doing = "setting mode and times of the folder";
                self.failed(path, Trouble::Local { doing, error });
            }
        }
        if let Some(failed) = failed {
            self.failed_folders.swap_remove(failed);
        }
    }
}

fn depth(path: &[u8]) -> usize {
    match path {
        b"" => 0,
        path => 1 + path.iter().filter(|&&octet| octet == b'/').count(),
    }
}
