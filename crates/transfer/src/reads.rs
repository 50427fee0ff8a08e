//! How a folder's names are asked for: several READDIRs at once, each of which brings a hundred names or so. On a long way a
//! folder of many names would otherwise cost a round trip for each hundred.
//!
//! Two at first, so that a small folder costs no more requests than one by one, and a round trip less: its names, and its end.
//! Their answers may come in any order: a folder has been listed when all of them are there. A server that bears only one at a
//! time is asked one at a time.

use crate::Trouble;
use crate::sftp::{Name, Reply, StatusCode};

/// READDIRs of one folder that are asked for at once, at first, and at the most once they have brought names.
const FIRST_READS: usize = 2;
pub(crate) const MOST_READS: usize = 8;

/// How far the reading of a folder is.
#[derive(Default)]
pub(crate) struct Reads {
    /// Without an answer.
    pub(crate) unanswered: usize,
    /// How many have brought names.
    answered: usize,
    /// Whether the server has refused one of several, and why: they are asked for one by one from then on.
    refused: Option<Trouble>,
    /// Whether no more are asked for, and why if that is not the folder's end.
    pub(crate) end: Option<Option<Trouble>>,
}

impl Reads {
    /// How many more are asked for now, and whether one at a time.
    pub(crate) fn ask(&mut self) -> (usize, bool) {
        let most = self.most();
        let more = most.saturating_sub(self.unanswered);
        self.unanswered += more;
        (more, most == 1)
    }

    /// The names that an answer has brought.
    pub(crate) fn take(&mut self, is_alone: bool, reply: Reply) -> Vec<Name> {
        self.unanswered -= 1;
        match reply {
            Reply::Names(names) if !names.is_empty() => {
                self.answered += 1;
                return names;
            }
            Reply::Status(status) if status.code == StatusCode::Eof => self.reach_end(is_alone),
            Reply::Status(status) => {
                self.fail(is_alone, Trouble::remote("listing the folder", &status));
            }
            _ => self.stop(Some(Trouble::BadName(String::new()))),
        }
        Vec::new()
    }

    /// How many may be asked for at once.
    fn most(&self) -> usize {
        match self.refused {
            Some(_) => 1,
            None => (FIRST_READS + self.answered).min(MOST_READS),
        }
    }

    /// Nothing more is asked for. The first reason is the one that counts.
    pub(crate) fn stop(&mut self, trouble: Option<Trouble>) {
        self.end.get_or_insert(trouble);
    }

    /// One has failed. It need not be the folder's fault if others were asked for at the same time: it is tried once more.
    fn fail(&mut self, is_alone: bool, trouble: Trouble) {
        if is_alone {
            self.stop(Some(trouble));
        } else {
            self.refused.get_or_insert(trouble);
        }
    }

    /// The server says that this is the folder's end. If it has refused another one meanwhile, names may be missing.
    fn reach_end(&mut self, is_alone: bool) {
        let trouble = self.refused.take().filter(|_| !is_alone);
        self.stop(trouble);
    }
}
