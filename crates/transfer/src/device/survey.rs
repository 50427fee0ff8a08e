//! What SFTP does not say of a block device, its size above all, read over SFTP from the kernel's own files: sysfs(5) and
//! proc(5). So it works for accounts without a shell, and nothing is read of the device.

use super::facts::Device;
use crate::path::file_name;
use crate::sftp::{Attributes, Handle, Open, Reply, Request};

/// Octets that one of these files may have; what is longer (a host with thousands of mounts) is cut.
const LONGEST: usize = 1024 * 1024;
/// Octets asked for at a time.
const READ: u32 = 32 * 1024;

/// What is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fact {
    Size,
    ReadOnly,
    Number,
    Physical,
    Logical,
    /// The same of the disk that a partition is on.
    DiskPhysical,
    DiskLogical,
    Mounts,
    Swaps,
}

impl Fact {
    const ALL: [Fact; 9] = [
        Fact::Size,
        Fact::ReadOnly,
        Fact::Number,
        Fact::Physical,
        Fact::Logical,
        Fact::DiskPhysical,
        Fact::DiskLogical,
        Fact::Mounts,
        Fact::Swaps,
    ];

    fn path(self, name: &[u8]) -> Vec<u8> {
        let of_device: &[u8] = match self {
            Fact::Size => b"size",
            Fact::ReadOnly => b"ro",
            Fact::Number => b"dev",
            Fact::Physical => b"queue/physical_block_size",
            Fact::Logical => b"queue/logical_block_size",
            Fact::DiskPhysical => b"../queue/physical_block_size",
            Fact::DiskLogical => b"../queue/logical_block_size",
            Fact::Mounts => return b"/proc/self/mountinfo".to_vec(),
            Fact::Swaps => return b"/proc/swaps".to_vec(),
        };
        [b"/sys/class/block/", name, b"/", of_device].concat()
    }
}

/// What a request was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SurveyStep {
    Name,
    Open(Fact),
    Read(Fact),
    /// The answer does not matter.
    Close,
}

/// Something to ask the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Question {
    Realpath(Vec<u8>),
    Open(Vec<u8>),
    Read(Handle, u64),
    Close(Handle),
}

impl Question {
    pub(crate) fn request(&self) -> Request<'_> {
        match self {
            Question::Realpath(path) => Request::Realpath { path },
            Question::Open(path) => Request::Open {
                path,
                how: Open::Read,
                attributes: Attributes::default(),
            },
            Question::Read(handle, offset) => Request::Read {
                handle,
                offset: *offset,
                len: READ,
            },
            Question::Close(handle) => Request::Close { handle },
        }
    }
}

/// One device's survey.
#[derive(Debug)]
pub(crate) struct Survey {
    facts: &'static [Fact],
    files: Vec<File>,
    questions: Vec<(SurveyStep, Question)>,
    /// Questions without an answer.
    open: usize,
    /// What the kernel calls it.
    name: Vec<u8>,
}

#[derive(Debug)]
struct File {
    fact: Fact,
    handle: Option<Handle>,
    text: Vec<u8>,
}

impl Survey {
    /// Finds out everything about the device at this path.
    pub(crate) fn whole(path: &[u8]) -> Survey {
        Survey::begin(path, &Fact::ALL)
    }

    /// Finds out only how large it is.
    pub(crate) fn size_only(path: &[u8]) -> Survey {
        Survey::begin(path, &[Fact::Size])
    }

    fn begin(path: &[u8], facts: &'static [Fact]) -> Survey {
        Survey {
            facts,
            files: Vec::new(),
            questions: vec![(SurveyStep::Name, Question::Realpath(path.to_vec()))],
            open: 0,
            name: Vec::new(),
        }
    }

    /// The next thing to ask; each is to be answered by [`handle`](Self::handle).
    pub(crate) fn poll_question(&mut self) -> Option<(SurveyStep, Question)> {
        let question = self.questions.pop()?;
        self.open += 1;
        Some(question)
    }

    /// Whether everything has been asked and answered.
    pub(crate) fn is_over(&self) -> bool {
        self.open == 0 && self.questions.is_empty()
    }

    pub(crate) fn handle(&mut self, step: SurveyStep, reply: Reply) {
        self.open -= 1;
        match (step, reply) {
            (SurveyStep::Name, Reply::Names(names)) if !names.is_empty() => {
                self.name = file_name(&names[0].name).to_vec();
                // What stands for nothing in a folder is asked for in vain.
                for &fact in self.facts {
                    let question = Question::Open(fact.path(&self.name));
                    self.questions.push((SurveyStep::Open(fact), question));
                }
            }
            (SurveyStep::Open(fact), Reply::Handle(handle)) => {
                self.files.push(File {
                    fact,
                    handle: Some(handle.clone()),
                    text: Vec::new(),
                });
                let question = Question::Read(handle, 0);
                self.questions.push((SurveyStep::Read(fact), question));
            }
            (SurveyStep::Read(fact), reply) => self.handle_read(fact, reply),
            _ => {}
        }
    }

    fn handle_read(&mut self, fact: Fact, reply: Reply) {
        let mut files = self.files.iter_mut();
        let Some(file) = files.find(|file| file.fact == fact) else {
            return;
        };
        let Some(handle) = file.handle.clone() else {
            return;
        };
        if let Reply::Data(data) = reply
            && !data.is_empty()
            && file.text.len() < LONGEST
        {
            file.text.extend_from_slice(&data);
            let question = Question::Read(handle, file.text.len() as u64);
            return self.questions.push((SurveyStep::Read(fact), question));
        }
        file.handle = None;
        self.questions
            .push((SurveyStep::Close, Question::Close(handle)));
    }

    /// What was found.
    pub(crate) fn device(&self) -> Device {
        let text = |fact| {
            let mut files = self.files.iter();
            let file = files.find(|file: &&File| file.fact == fact);
            file.map_or(&b""[..], |file| file.text.as_slice())
        };
        let number =
            |fact| -> Option<u64> { std::str::from_utf8(text(fact)).ok()?.trim().parse().ok() };
        let either = |own, disk| number(own).or_else(|| number(disk));
        let own_number = String::from_utf8_lossy(text(Fact::Number));
        Device {
            name: self.name.clone(),
            // Units of 512 octets, whatever the device's blocks are (Documentation/ABI/stable/sysfs-block).
            size: number(Fact::Size).and_then(|units| units.checked_mul(512)),
            is_read_only: number(Fact::ReadOnly) == Some(1),
            number: own_number
                .trim()
                .split_once(':')
                .and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?))),
            physical: either(Fact::Physical, Fact::DiskPhysical),
            logical: either(Fact::Logical, Fact::DiskLogical),
            mounts: text(Fact::Mounts).to_vec(),
            swaps: text(Fact::Swaps).to_vec(),
        }
    }
}
