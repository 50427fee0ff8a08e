//! What has come of batches: stored, found unchanged, put in place.

use super::stream::{Heard, Stage, State};
use super::{SmallNeed, SmallNumber, SmallPart, Wanted, Way};
use crate::Trouble;
use crate::download::{Download, DownloadEvent};
use crate::sftp::Reply;

impl Download {
    /// Takes what came on a stream.
    pub(super) fn hear_stream(&mut self, number: usize, mut input: &[u8]) {
        let mut files = Vec::new();
        while !input.is_empty() {
            match self.small.streams[number].hear(&mut input) {
                Ok(Some(Heard::Ready)) => self.fill_batch(number),
                Ok(Some(Heard::File(file, data))) => {
                    files.push(self.part_of(
                        SmallNumber {
                            stream: number,
                            file,
                        },
                        data,
                    ));
                }
                Ok(None) => {}
                // What has not come goes over SFTP.
                Err(_) => {
                    self.small.streams[number].cut();
                    self.close_stream(number);
                }
            }
        }
        if !files.is_empty() {
            self.small.needs.push_back(SmallNeed::Store { files });
        }
    }

    fn part_of(&mut self, number: SmallNumber, data: Vec<u8>) -> SmallPart {
        let stream = &mut self.small.streams[number.stream];
        stream.held += data.len();
        stream.storing += 1;
        self.small.storing += 1;
        let item = &stream.files[number.file].0.item;
        let (remote, path) = (item.remote.clone(), item.local.clone());
        let attributes = item.attributes;
        let preserve = self.plan.preserve;
        SmallPart {
            number,
            owner: self.owner_here(&remote, &attributes),
            path,
            mode: attributes.mode.map_or(0o644, |mode| mode & 0o777),
            kept: (
                attributes.permissions().filter(|_| preserve),
                attributes.times.filter(|_| preserve),
            ),
            data,
        }
    }

    pub(super) fn handle_stored(&mut self, number: SmallNumber, stored: Result<(), String>) {
        let stream = &mut self.small.streams[number.stream];
        self.small.storing -= 1;
        stream.storing -= 1;
        let (wanted, state) = &mut stream.files[number.file];
        let octets = wanted.size();
        stream.held -= octets as usize;
        match stored {
            Ok(()) if self.interrupted => {
                self.small.to_discard.push(wanted.item.local.clone());
                *state = State::Told;
            }
            Ok(()) => {
                *state = State::Stored;
                self.tally.octets += octets;
                self.events.push_back(DownloadEvent::Moved(octets));
                self.small_has_left(octets);
            }
            Err(error) => {
                *state = State::Told;
                let path = wanted.item.remote.clone();
                self.small_has_left(octets);
                let doing = "writing";
                self.failed(path, Trouble::Local { doing, error });
            }
        }
        self.settle_stream(number.stream);
    }

    /// Nothing more comes of a stream.
    pub(super) fn close_stream(&mut self, number: usize) {
        let stream = &mut self.small.streams[number];
        match stream.stage {
            Stage::Opening | Stage::Greeted => {
                stream.stage = Stage::Over;
                self.not_taken();
            }
            Stage::Asked => {
                stream.stage = Stage::Closed;
                self.settle_stream(number);
            }
            Stage::Closed | Stage::Over => {}
        }
    }

    /// A stream that was never ready is one too many, or the first that shows that there can be none.
    fn not_taken(&mut self) {
        match self.small.open() {
            0 => {
                let why = "the host runs no tar for this account";
                self.stop_asking((!self.small.has_worked).then_some(why));
            }
            others => self.small.most = others,
        }
    }

    /// All that has come is stored: it is put in place, or looked at again first, and the rest goes over SFTP.
    fn settle_stream(&mut self, number: usize) {
        let stream = &mut self.small.streams[number];
        if stream.stage != Stage::Closed || stream.storing > 0 {
            return;
        }
        stream.stage = Stage::Over;
        let is_well = stream.tells_changes && stream.status == Some(0) && !stream.is_cut;
        let is_cut = stream.is_cut;
        let files = std::mem::take(&mut stream.files);
        let was_asked = !files.is_empty();
        let mut has_come = false;
        for (wanted, state) in files {
            match state {
                State::Told => has_come = true,
                State::Stored => {
                    has_come = true;
                    match is_well {
                        true => self.place_small(wanted),
                        false => self.small.to_check.push_back(wanted),
                    }
                }
                State::Asked | State::Other | State::Storing => self.fetch_alone(wanted),
            }
        }
        self.small.has_worked |= has_come;
        if self.small.way == Way::Open && (is_cut || was_asked && !has_come) {
            self.stop_asking(Some("tar on the host did not send what was listed"));
        }
    }

    fn place_small(&mut self, wanted: Wanted) {
        let id = self.id();
        let path = wanted.item.local.clone();
        self.small.to_place.push_back((id, path));
        self.small.placing.insert(id, wanted.item);
    }

    /// What the file is now, that has come.
    pub(in crate::download) fn handle_small_seen_again(&mut self, id: u64, reply: &Reply) {
        let Some(wanted) = self.small.checking.remove(&id) else {
            return;
        };
        let then = wanted.item.attributes;
        match reply {
            Reply::Attributes(now)
                if (now.size, now.modified()) == (then.size, then.modified()) =>
            {
                self.place_small(wanted);
            }
            // Over SFTP it is fetched as it is now, or told what is wrong with it.
            _ => {
                self.left += wanted.size();
                let files = vec![(id, wanted.item.local.clone())];
                self.small.clearing.insert(id, wanted.item);
                self.small.needs.push_back(SmallNeed::Clear { files });
            }
        }
    }

    pub(super) fn handle_placed(&mut self, id: u64, placed: Result<(), String>) {
        let Some(item) = self.small.placing.remove(&id) else {
            return;
        };
        match placed {
            Ok(()) => self.done(item.local, false),
            Err(error) => {
                self.small.to_discard.push(item.local);
                let doing = "putting it in place";
                self.failed(item.remote, Trouble::Local { doing, error });
            }
        }
    }

    /// What has its name keeps it, all else goes.
    pub(in crate::download) fn interrupt_small(&mut self) {
        let small = &mut self.small;
        small.way = Way::Closed;
        small.octets_left = 0;
        small.found.clear();
        small.looks.clear();
        small.ready.iter_mut().for_each(|ready| ready.clear());
        small.ready_octets = 0;
        let checked = small.checking.drain().map(|(_, wanted)| wanted);
        let mut unwanted: Vec<Wanted> = checked.collect();
        unwanted.extend(small.to_check.drain(..));
        for stream in &mut small.streams {
            stream.cut();
            stream.stage = Stage::Over;
            for (wanted, state) in &stream.files {
                if *state == State::Stored {
                    small.to_discard.push(wanted.item.local.clone());
                }
            }
        }
        let paths = unwanted.into_iter().map(|wanted| wanted.item.local);
        small.to_discard.extend(paths);
        for (id, path) in small.to_place.drain(..) {
            small.placing.remove(&id);
            small.to_discard.push(path);
        }
    }
}
