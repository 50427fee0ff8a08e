//! A block device as a source: its size is not what the server says (that is 0) but what the kernel tells elsewhere. All else is
//! as with a file, but that its time says nothing of its contents: it is always fetched, and from its beginning.

use super::{Asked, Download, DownloadEvent, Item};
use crate::device::{Survey, SurveyStep};
use crate::sftp::{FileType, Reply};

impl Item {
    pub(super) fn is_device(&self) -> bool {
        self.attributes.file_type() == FileType::BlockDevice
    }
}

impl Download {
    /// Finds out how large a device is that the user has named.
    pub(super) fn survey_device(&mut self, item: Item) {
        let id = self.id();
        let survey = Survey::size_only(&item.remote);
        self.surveys.insert(id, (item, survey));
        self.go_on_surveying(id);
    }

    pub(super) fn handle_device(&mut self, id: u64, step: SurveyStep, reply: Reply) {
        self.open -= 1;
        if let Some((_, survey)) = self.surveys.get_mut(&id) {
            survey.handle(step, reply);
        }
        self.go_on_surveying(id);
    }

    fn go_on_surveying(&mut self, id: u64) {
        let Some((_, survey)) = self.surveys.get_mut(&id) else {
            return;
        };
        while let Some((step, question)) = survey.poll_question() {
            self.open += 1;
            let asked = Asked::Device { id, step };
            self.channels[0].client.request(question.request(), asked);
        }
        if !survey.is_over() {
            return;
        }
        if let Some((mut item, survey)) = self.surveys.remove(&id)
            && !self.interrupted
        {
            // Without a size it is read until its end.
            item.attributes.size = Some(survey.device().size.unwrap_or(0));
            self.take_device(item);
        }
    }

    /// A device of which the size is known.
    pub(super) fn take_device(&mut self, item: Item) {
        if let Some(item) = self.await_owner(item) {
            let size = item.attributes.size.unwrap_or(0);
            self.left = self.left.saturating_add(size);
            self.events.push_back(DownloadEvent::Found(size));
            self.queue.push_back(item);
        }
    }
}
