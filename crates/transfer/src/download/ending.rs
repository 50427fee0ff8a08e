//! Symbolic links, then owners, modes and times of folders.

use super::{Asked, Download, DownloadNeed, Item, Stage};
use crate::Trouble;
use crate::owners::Owner;
use crate::path::MAX_PATH;
use crate::sftp::{Reply, Request};

/// Links, or folders, under way at a time.
const AT_A_TIME: usize = 64;

impl Download {
    pub(super) fn make_links(&mut self) {
        while self.open < AT_A_TIME
            && let Some(item) = self.links.pop()
        {
            self.open += 1;
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
        if self.open == 0 {
            self.stage = Stage::Folders;
        }
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
                self.open -= 1;
                return self.failed(remote, Trouble::remote("reading the link", &status));
            }
            _ => Vec::new(),
        };
        if target.is_empty() || target.len() >= MAX_PATH || target.contains(&0) {
            self.open -= 1;
            let shown = String::from_utf8_lossy(&target).into_owned();
            return self.failed(remote, Trouble::BadName(shown));
        }
        let need = DownloadNeed::Link {
            path,
            target,
            owner,
        };
        self.needs.push_back(need);
    }

    pub(super) fn handle_linked(&mut self, path: Vec<u8>, linked: Result<bool, String>) {
        self.open -= 1;
        match linked {
            Ok(unchanged) => self.done(path, unchanged),
            Err(error) => {
                let doing = "making the link";
                self.failed(path, Trouble::Local { doing, error });
            }
        }
    }

    /// The innermost come last in the list of those that were listed to their end, or near to it: what is done in a folder
    /// changes its time, so the longest paths go first.
    pub(super) fn finish_folders(&mut self) {
        if self.open == 0 {
            self.folders.sort_by_key(|(path, _)| depth(path));
        }
        while self.open < AT_A_TIME
            && let Some((path, attributes)) = self.folders.last().cloned()
        {
            self.folders.pop();
            self.open += 1;
            let owner = self.owner_here(&path, &attributes);
            let preserve = self.plan.preserve;
            self.needs.push_back(DownloadNeed::FinishFolder {
                path,
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
        match finished {
            Ok(()) => self.done(path, false),
            Err(error) => {
                let doing = "setting mode and times of the folder";
                self.failed(path, Trouble::Local { doing, error });
            }
        }
    }
}

fn depth(path: &[u8]) -> usize {
    match path {
        b"" => 0,
        path => 1 + path.iter().filter(|&&octet| octet == b'/').count(),
    }
}
