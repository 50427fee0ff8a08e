//! The end of a file: looked at again and put in place, or given up without a trace.

use super::files::{File, FileStep, Stage};
use super::{Download, DownloadNeed, LocalFile};
use crate::Trouble;
use crate::sftp::{Attributes, Handle, Request};

impl Download {
    pub(super) fn handle_stat_again(&mut self, file: LocalFile, now: &Attributes) {
        let Some(it) = self
            .files
            .get_mut(&file)
            .filter(|it| it.stage == Stage::StatAgain)
        else {
            return;
        };
        match it.is_still(now) {
            true => self.verify(file),
            false => self.fail_file(file, Trouble::Changed),
        }
    }

    pub(super) fn handle_stat_further(&mut self, file: LocalFile, now: &Attributes) {
        if self.files.get(&file).is_some_and(|it| !it.is_still(now)) {
            self.fail_file(file, Trouble::Changed);
        }
    }

    /// Puts it in place.
    pub(super) fn finish_here(&mut self, file: LocalFile) {
        let Some(it) = self.files.get_mut(&file) else {
            return;
        };
        it.stage = Stage::FinishHere;
        let preserve = self.plan.preserve;
        let (size, opened) = (it.octets, it.opened);
        // As it was listed: of that owner the name is known.
        let listed = it.item.attributes;
        let remote = it.item.remote.clone();
        let need = DownloadNeed::Finish {
            file,
            size,
            owner: self.owner_here(&remote, &listed),
            mode: opened.permissions().filter(|_| preserve),
            times: opened.times.filter(|_| preserve),
        };
        self.needs.push_back(need);
        self.close_remote(file);
    }

    pub(super) fn handle_finished(&mut self, file: LocalFile, finished: Result<(), String>) {
        match finished {
            Ok(()) => self.end_file(file, Some(false)),
            Err(error) => {
                let doing = "putting it in place";
                self.fail_file(file, Trouble::Local { doing, error });
            }
        }
    }

    /// Gives a file up: what there is of it goes, and what was there before stays.
    pub(super) fn fail_file(&mut self, file: LocalFile, trouble: Trouble) {
        let Some(it) = self.files.get_mut(&file) else {
            return;
        };
        let is_too_late = it.stage == Stage::FinishHere && trouble == Trouble::Interrupted;
        if it.stage == Stage::CleanUp || is_too_late {
            return;
        }
        // Its beginning is under way here, and is waited for as a write is.
        if it.stage == Stage::BeginHere && trouble == Trouble::Interrupted {
            it.writing = 1;
        }
        it.stage = Stage::CleanUp;
        it.trouble = Some(trouble);
        if it.begun {
            self.needs.push_back(DownloadNeed::Discard { file });
        }
        self.close_remote(file);
        self.go_on(file);
    }

    pub(super) fn close_remote(&mut self, file: LocalFile) {
        let Some(it) = self.files.get_mut(&file) else {
            return;
        };
        let readers = it.readers.iter_mut();
        let handles: Vec<(usize, Handle)> = readers
            .filter_map(|reader| Some((reader.channel, reader.handle.take()?)))
            .collect();
        for (channel, handle) in handles {
            self.ask_file(
                channel,
                file,
                FileStep::Close,
                Request::Close { handle: &handle },
            );
        }
    }

    /// `unchanged`: it is in place; `None`: it has failed.
    pub(super) fn end_file(&mut self, file: LocalFile, unchanged: Option<bool>) {
        let Some(it) = self.files.remove(&file) else {
            return;
        };
        self.channels[it.channel].files -= 1;
        match (unchanged, it.trouble) {
            (Some(unchanged), _) => self.done(it.item.local, unchanged),
            (None, Some(trouble)) => {
                let size = it.item.attributes.size.unwrap_or(0);
                self.left = self.left.saturating_sub(size.saturating_sub(it.octets));
                self.failed(it.item.remote, trouble);
            }
            (None, None) => {}
        }
    }
}

impl File {
    /// Whether what is looked at is the file that was opened first, as far as can be seen.
    fn is_still(&self, now: &Attributes) -> bool {
        let then = &self.opened;
        // What has no size, as files of /proc, has no telling time either.
        self.item.is_device()
            || then.size.unwrap_or(0) == 0
            || (then.size, then.modified()) == (now.size, now.modified())
    }
}
