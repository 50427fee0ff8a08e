//! The session that writes a device, as the one who serves it sees it: see `crate::device::session`.

use sshoal_journal::Segments;

use super::{DevicePut, Stage, Upload, Way};
use crate::Trouble;
use crate::device::{self, Session, SessionStage, Word};
use crate::sftp::SharedOctets;

/// Octets that have left us and may not have been written: a channel's window (channels.h, CHAN_SES_WINDOW_DEFAULT), a pipe, and
/// a block of dd's.
const ON_THE_WAY: u64 = 4 * 1024 * 1024;

/// What the session runs.
pub(in crate::upload) fn command() -> String {
    device::command()
}

impl DevicePut {
    pub(in crate::upload) fn wants_session(&self) -> bool {
        self.stage == Stage::Session && self.session.is_none() && device::is_tellable(&self.path)
    }

    pub(super) fn cannot_have_session(&self) -> bool {
        self.session.is_none() && !device::is_tellable(&self.path)
    }

    pub(in crate::upload) fn add_session(&mut self) {
        let physical = self.device.geometry().physical();
        let session = Session::new(&self.path, self.device.number, physical);
        self.session = Some(session);
    }

    pub(in crate::upload) fn transmit(&self) -> &[u8] {
        let session = self.session.as_ref();
        session.map_or(&[], |session| session.transmit())
    }

    /// Whether nothing follows what there is.
    pub(in crate::upload) fn is_complete(&self) -> bool {
        match &self.session {
            Some(session) => session.stage >= SessionStage::Complete,
            // It was given up before it began.
            None => true,
        }
    }

    pub(in crate::upload) fn is_reading(&self) -> bool {
        self.contents.is_reading() && self.stage == Stage::Write(Way::Session)
    }

    /// Whether the host has yet to say that it writes.
    pub(in crate::upload) fn awaits_ready(&self) -> bool {
        self.stage == Stage::Session && self.session.is_some()
    }

    /// Whether it is the host that is waited for.
    pub(in crate::upload) fn awaits_host(&self) -> bool {
        let is_open = matches!(self.stage, Stage::Session | Stage::Write(Way::Session));
        let session = self.session.as_ref().filter(|_| is_open);
        session.is_some_and(|session| {
            let is_told = session.stage != SessionStage::Ready || !self.segments.is_empty();
            is_told && session.transmit().is_empty() && !self.contents.is_reading()
        })
    }

    /// dd has failed when it had written so many blocks of its segment. What it wrote past the kernel's memory is on the
    /// device. What the kernel took may be lost with what failed; so may all that went past it, if it is the device's own memory
    /// that could not be emptied in the end.
    fn judge_failure(&mut self, blocks: u64) {
        let is_direct = self.session.as_ref().is_some_and(|it| it.is_direct);
        match self.segments.front() {
            Some(segment) if is_direct && segment.is_direct => {
                let octets = segment.block * blocks.min(segment.count);
                self.written.insert(segment.at()..segment.at() + octets);
            }
            None if is_direct => self.written = Segments::default(),
            _ => {}
        }
    }
}

impl Upload {
    pub(in crate::upload) fn device_transmitted(&mut self, octets: usize) {
        let Some(it) = &mut self.device else { return };
        if let Some(session) = &mut it.session {
            session.transmitted(octets);
            let waiting = session.transmit().len() as u64;
            let to = it.contents.put.saturating_sub(waiting + ON_THE_WAY);
            if it.stage == Stage::Write(Way::Session) {
                self.device_moved(to);
            }
        }
        self.advance();
    }

    /// Takes what came of the session.
    pub(in crate::upload) fn hear_device(&mut self, input: &[u8]) {
        let session = self.device.as_mut().and_then(|it| it.session.as_mut());
        let words = session.map_or_else(Vec::new, |session| session.hear(input));
        for word in words {
            self.handle_word(word);
        }
        self.advance();
    }

    fn handle_word(&mut self, word: Word) {
        let Some(it) = &mut self.device else { return };
        match (word, it.stage) {
            (Word::Ready, Stage::Session) => it.stage = Stage::Write(Way::Session),
            (Word::Other, Stage::Session) => self.fail_device(Trouble::DeviceOther),
            (Word::Written, Stage::Write(_)) => {
                if let Some(segment) = it.segments.pop_front() {
                    it.written
                        .insert(segment.at()..segment.at() + segment.len());
                    let to = it.written.octets();
                    self.device_moved(to);
                }
            }
            (Word::End, Stage::Write(_)) if it.segments.is_empty() => self.check_image(),
            (Word::End, Stage::Write(_)) => {
                self.fail_session("its dd wrote less than it was given")
            }
            (Word::Failed(words, blocks), Stage::Write(_)) => {
                it.judge_failure(blocks);
                self.fail_session(&words);
            }
            _ => {}
        }
    }

    fn fail_session(&mut self, said: &str) {
        let why = crate::Remote::Said(said.to_owned());
        let doing = "writing";
        self.fail_device(Trouble::Remote { doing, why });
    }

    /// Nothing more comes of the session, or it was refused.
    pub(in crate::upload) fn device_session_ended(&mut self) {
        let Some(it) = &mut self.device else { return };
        match it.stage {
            Stage::Session => self.do_without_session(),
            Stage::Write(Way::Session) => self.fail_session("the session ended"),
            _ => {}
        }
        self.advance();
    }

    /// The host has not said that it writes.
    pub(in crate::upload) fn give_up_device_session(&mut self) {
        self.do_without_session();
        self.advance();
    }

    /// It has been told of no octet, and so can have written none.
    fn do_without_session(&mut self) {
        if let Some(it) = &mut self.device
            && it.stage == Stage::Session
        {
            it.session = None;
            it.stage = Stage::Write(Way::Sftp);
        }
    }

    /// Gives the session what has been read.
    pub(super) fn feed_session(&mut self) {
        let Some(it) = &mut self.device else { return };
        let Some(session) = it
            .session
            .as_mut()
            .filter(|it| it.stage == SessionStage::Ready)
        else {
            return;
        };
        let geometry = it.device.geometry();
        loop {
            let announced = it.segments.back().map_or(0, |it| it.at() + it.len());
            let announced = announced.max(it.written.end());
            if it.contents.put < announced {
                let most = announced - it.contents.put;
                let put = |octets: &SharedOctets, range| session.put(&(**octets).as_ref()[range]);
                match it.contents.hand_on(most, put) {
                    Some(_) => continue,
                    None => return,
                }
            }
            if it.contents.is_over() {
                return session.complete();
            }
            // Of what ends when it ends only whole large blocks are known to be there.
            let whole = it.contents.known_to() / geometry.large() * geometry.large();
            let end = it.contents.end().unwrap_or(whole);
            let Some(segment) = geometry.next(announced, end) else {
                return;
            };
            session.announce(&segment);
            it.segments.push_back(segment);
        }
    }
}
