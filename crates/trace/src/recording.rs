//! All that the tracer has told, put together: records of all processors in the order of time.

use std::collections::{BTreeMap, HashMap};

use thiserror::Error;

use crate::format::Format;
use crate::frames::{Armed, Frame};
use crate::page::{self, Page};
use crate::record::{Record, What};
use crate::told;

/// Most descriptions of events: ours, and two for each probe.
const MAX_FORMATS: usize = 1024;
/// Most probes.
const MAX_PROBES: usize = 256;
/// Most records: some hundred are those of a usual login, a few thousand those of one with a hundred processes.
const MAX_RECORDS: usize = 1_000_000;
/// Most pages: as many as all processors have in a minute, if none of them is ever full.
const MAX_PAGES: usize = 65_536;
/// Most names of processes, and most counters.
const MAX_NAMES: usize = 65_536;
const MAX_COUNTERS: usize = 64;
/// Longest text of any of these.
const MAX_TEXT: usize = 256;

/// A trace that is whole.
#[derive(Debug, Clone, Default)]
pub struct Recording {
    formats: HashMap<u16, Format>,
    data_offset: Option<usize>,
    pages: Vec<(u16, Vec<u8>)>,
    /// What was told where there are no pages.
    told: Vec<Record>,
    armed: Option<Armed>,
    end: Option<String>,
    /// What probes there are, by number.
    pub probes: Vec<Probe>,
    /// What the host's counters grew by, meanwhile.
    pub samples: Sample,
    before: Option<Sample>,
    /// Names of processes, as far as they are known otherwise.
    pub names: BTreeMap<u32, String>,
    /// Records that the kernel or we could not keep.
    pub lost: u64,
}

/// A function that is probed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Probe {
    /// The library: `pam_motd.so`, `libc`.
    pub module: String,
    /// The function.
    pub function: String,
}

/// Counters of the whole host, by name.
pub type Sample = BTreeMap<String, u64>;

/// Why there is no trace.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RecordingError {
    /// The tracer says so.
    #[error("{1}")]
    Refused(String, String),
    /// It has not come to its end.
    #[error("the tracer ended before it was asked to")]
    Cut,
    /// The login is not in it as a whole, since nobody ended it in time.
    #[error("the login took longer than a tracer waits for one (30 s)")]
    Late,
    /// The same, since there was no more room.
    #[error("more was recorded than a tracer keeps: there is too much going on on the host")]
    Full,
    /// Nothing was recorded.
    #[error("nothing was recorded")]
    Empty,
}

impl Recording {
    /// Takes a frame.
    ///
    /// # Errors
    ///
    /// The tracer says that there is no trace.
    pub fn take(&mut self, frame: Frame) -> Result<(), RecordingError> {
        match frame {
            Frame::Armed(armed) => self.armed = Some(armed),
            Frame::Clock(_) => {}
            Frame::End(why) => self.end = Some(why),
            Frame::Format(text) => {
                let format = Format::parse(&text);
                if let Some(format) = format.filter(|_| self.formats.len() < MAX_FORMATS) {
                    self.formats.insert(format.id, format);
                }
            }
            Frame::PageHeader(text) => self.data_offset = Some(page::data_offset(&text)),
            Frame::Page(..) if self.pages.len() >= MAX_PAGES => {
                self.lost = self.lost.saturating_add(1);
            }
            Frame::Page(processor, page) => self.pages.push((processor, page)),
            Frame::Told(text) => {
                let room = MAX_RECORDS - self.told.len().min(MAX_RECORDS);
                let lines = text.lines().count() as u64;
                self.lost = self.lost.saturating_add(lines.saturating_sub(room as u64));
                let records = text.lines().take(room).flat_map(told::records);
                self.told.extend(records);
            }
            Frame::Probes(text) => self.take_probes(&text),
            Frame::Samples(text) => self.take_samples(&text),
            Frame::Names(text) => {
                let pairs = text.lines().filter_map(|line| line.trim().split_once(' '));
                let pairs = pairs.filter_map(|(pid, name)| Some((pid.parse().ok()?, short(name))));
                let room = MAX_NAMES - self.names.len().min(MAX_NAMES);
                self.names.extend(pairs.take(room));
            }
            Frame::Lost(text) => {
                let numbers = text.lines().flat_map(|line| line.split(' ').skip(1));
                let numbers = numbers.filter_map(|number| number.parse::<u64>().ok());
                self.lost = numbers.fold(self.lost, u64::saturating_add);
            }
            Frame::Failed(kind, words) => return Err(RecordingError::Refused(kind, words)),
        }
        Ok(())
    }

    fn take_probes(&mut self, text: &str) {
        for line in text.lines() {
            let mut words = line.split(' ');
            let number = words.next().and_then(|number| number.parse::<usize>().ok());
            let Some(number) = number.filter(|number| *number < MAX_PROBES) else {
                continue;
            };
            if self.probes.len() <= number {
                self.probes.resize(number + 1, Probe::default());
            }
            self.probes[number] = Probe {
                module: short(words.next().unwrap_or_default()),
                function: short(words.next().unwrap_or_default()),
            };
        }
    }

    fn take_samples(&mut self, text: &str) {
        let pairs = text.lines().filter_map(|line| line.split_once(' '));
        let pairs = pairs.filter_map(|(name, number)| Some((short(name), number.parse().ok()?)));
        let sample: Sample = pairs.take(MAX_COUNTERS).collect();
        match &self.before {
            None => self.before = Some(sample),
            Some(before) => {
                let grown = sample.into_iter().filter_map(|(name, after)| {
                    let grown = after.saturating_sub(*before.get(&name)?);
                    Some((name, grown))
                });
                self.samples = grown.collect();
            }
        }
    }

    /// When it was ready, and what it follows; `None` as long as it is not.
    pub fn armed(&self) -> Option<&Armed> {
        self.armed.as_ref()
    }

    /// Why it ended, once it has: `asked`, `late`, `full`.
    pub fn end(&self) -> Option<&str> {
        self.end.as_deref()
    }

    /// Why what was recorded may lack the end of the login, if it may.
    pub(crate) fn may_lack_the_end(&self) -> Option<RecordingError> {
        match self.end() {
            Some("late") => Some(RecordingError::Late),
            Some("full") => Some(RecordingError::Full),
            _ => None,
        }
    }

    /// All records in the order of time, and what is followed.
    ///
    /// # Errors
    ///
    /// There are none, or it has not come to its end.
    pub fn records(&mut self) -> Result<(u32, Vec<Record>), RecordingError> {
        let followed = match (&self.armed, &self.end) {
            (Some(armed), Some(_)) => armed.followed,
            _ => return Err(RecordingError::Cut),
        };
        let data = self.data_offset.unwrap_or(page::USUAL_DATA);
        let mut records = std::mem::take(&mut self.told);
        for (_, octets) in &self.pages {
            let Some(page) = Page::new(octets, data) else {
                continue;
            };
            self.lost = self.lost.saturating_add(page.has_gap.into());
            for (at, record) in page {
                let id = record.first_chunk().map(|id| u16::from_le_bytes(*id));
                let format = id.and_then(|id| self.formats.get(&id));
                match format.and_then(|format| Record::read(at, record, format)) {
                    Some(_) if records.len() >= MAX_RECORDS => {
                        self.lost = self.lost.saturating_add(1);
                    }
                    Some(record) => records.push(record),
                    None => {}
                }
            }
        }
        if records.is_empty() {
            return Err(RecordingError::Empty);
        }
        // Those of one processor are in order already.
        records.sort_by_key(|record| record.at);
        for record in &records {
            if let What::Switch {
                from,
                from_name,
                to,
                to_name,
                ..
            } = &record.what
            {
                for (pid, name) in [(from, from_name), (to, to_name)] {
                    if self.names.len() < MAX_NAMES {
                        self.names.entry(*pid).or_insert_with(|| name.clone());
                    }
                }
            }
        }
        Ok((followed, records))
    }
}

fn short(text: &str) -> String {
    text.chars().take(MAX_TEXT).collect()
}

#[cfg(test)]
#[path = "recording_tests.rs"]
mod tests;
