//! What is told of a download: each thing that is done, failures up to a limit, the end.

use super::{Download, DownloadEvent, Stage};
use crate::Trouble;

impl Download {
    pub(super) fn done(&mut self, path: Vec<u8>, unchanged: bool) {
        match unchanged {
            true => self.tally.unchanged += 1,
            false => self.tally.done += 1,
        }
        self.events
            .push_back(DownloadEvent::Done { path, unchanged });
    }

    pub(super) fn failed(&mut self, path: Vec<u8>, trouble: Trouble) {
        self.tally.failed += 1;
        if self.told < self.limits.told {
            self.told += 1;
            self.events
                .push_back(DownloadEvent::Failed { path, trouble });
        }
    }

    pub(super) fn end(&mut self) {
        if self.stage == Stage::Ended {
            return;
        }
        self.stage = Stage::Ended;
        let more = self.tally.failed - self.told as u64;
        if more > 0 {
            self.events.push_back(DownloadEvent::Failed {
                path: Vec::new(),
                trouble: Trouble::More(more),
            });
        }
        self.events.push_back(DownloadEvent::Ended);
    }
}
