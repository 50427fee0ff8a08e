//! `--delete`: what is surplus here is deleted once everything is in place, and before folders get their times. Nothing is where
//! anything has failed.

use super::walk::too_many;
use super::{Download, DownloadEvent, DownloadNeed, DownloadPlan, Item, Stage};
use crate::Trouble;
use crate::sftp::FileType;
use crate::surplus::{Deletion, FETCHED, SurplusHere};

/// What is surplus, before anything is known of it.
pub(super) fn surplus(plan: &DownloadPlan) -> Option<SurplusHere> {
    let only_told = match plan.deletion {
        Deletion::None => return None,
        Deletion::Told => true,
        Deletion::Done => false,
    };
    Some(SurplusHere::new(plan.excludes.clone(), only_told))
}

impl Download {
    /// Whether nothing is done but to tell what is surplus.
    pub(super) fn only_tells(&self) -> bool {
        self.plan.deletion == Deletion::Told
    }

    /// The host has this, and its place here is its own.
    pub(super) fn note_fetched(&mut self, item: &Item) {
        let Some(surplus) = &mut self.surplus else {
            return;
        };
        if !surplus.note(&item.local) {
            return;
        }
        if self.has_room_to_keep(FETCHED) {
            return self.kept.keep(FETCHED);
        }
        // Nothing is deleted then.
        self.surplus = None;
        let trouble = too_many(
            "octets of what is known of things that are not to be deleted",
            self.limits.kept,
        );
        self.failed(Vec::new(), trouble);
    }

    /// The user means this: if it is a folder, what it does not have is surplus in its place here.
    pub(super) fn note_scope(&mut self, item: &Item) {
        if let Some(surplus) = &mut self.surplus
            && item.attributes.file_type() == FileType::Folder
        {
            surplus.note_folder(item.local.clone());
        }
    }

    pub(super) fn delete_surplus(&mut self) {
        let surplus = self.surplus.take().filter(|_| !self.interrupted);
        let is_whole = self.tally.failed == 0;
        match surplus.filter(|it| !it.scopes().is_empty()) {
            Some(surplus) if is_whole => {
                self.open += 1;
                let surplus = surplus.into();
                self.needs.push_back(DownloadNeed::Delete { surplus });
            }
            Some(_) => self.failed(Vec::new(), Trouble::NothingDeleted),
            None => {}
        }
        match self.only_tells() {
            _ if self.open > 0 => {}
            true => self.end(),
            false => self.stage = Stage::Folders,
        }
    }

    pub(super) fn handle_deleted(&mut self, deleted: Vec<Vec<u8>>, failed: Vec<String>) {
        self.open -= 1;
        if !self.only_tells() {
            self.tally.deleted += deleted.len() as u64;
        }
        let events = deleted.into_iter();
        self.events
            .extend(events.map(|path| DownloadEvent::Deleted { path }));
        for error in failed {
            let doing = "deleting what is surplus";
            self.failed(Vec::new(), Trouble::Local { doing, error });
        }
    }
}
