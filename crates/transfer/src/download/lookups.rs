//! What the host is asked about before it can be fetched: what the user has named or a pattern has found, and what the server's
//! list did not say the type of. Some at a time, whatever the number.

use std::collections::VecDeque;

use super::{Asked, Download, Item};
use crate::Trouble;
use crate::sftp::{Attributes, FileType, Reply, Request};

/// Questions without an answer, at a time.
const AT_A_TIME: usize = 256;

/// What is to be asked about.
#[derive(Debug, Default)]
pub(super) struct Lookups {
    waiting: VecDeque<Lookup>,
    /// Questions without an answer.
    asked: usize,
}

#[derive(Debug)]
pub(super) enum Lookup {
    /// What the user has named, or a pattern has found.
    Source {
        item: Item,
        pattern: Option<Vec<u8>>,
    },
    /// What a folder's list has.
    Listed(Item),
}

impl Lookups {
    pub(super) fn add(&mut self, lookup: Lookup) {
        self.waiting.push_back(lookup);
    }

    /// What has not been asked about.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn interrupt(&mut self) {
        self.waiting.clear();
    }
}

impl Download {
    /// Asks while not too much is asked for.
    pub(super) fn look_up(&mut self) {
        while self.lookups.asked < AT_A_TIME
            && let Some(lookup) = self.lookups.waiting.pop_front()
        {
            self.lookups.asked += 1;
            self.open += 1;
            match lookup {
                Lookup::Source { item, pattern } => {
                    let path = item.remote.clone();
                    let asked = Asked::Source { item, pattern };
                    self.ask(Request::Stat { path: &path }, asked);
                }
                Lookup::Listed(item) => {
                    let path = item.remote.clone();
                    self.ask(Request::Lstat { path: &path }, Asked::Listed(item));
                }
            }
        }
    }

    /// A question has its answer.
    pub(super) fn looked_up(&mut self) {
        self.lookups.asked -= 1;
        self.open -= 1;
    }

    /// What a server did not say in its list.
    pub(super) fn handle_listed(&mut self, mut item: Item, reply: Reply) {
        self.looked_up();
        match reply {
            _ if self.interrupted => {}
            Reply::Attributes(attributes) => {
                item.attributes = match attributes.file_type() {
                    // A server without types has files to offer, or says of each why not.
                    FileType::Unknown => Attributes {
                        mode: Some(0o100_644),
                        ..attributes
                    },
                    _ => attributes,
                };
                self.take_item(item);
            }
            Reply::Status(status) => {
                self.failed(item.remote, Trouble::remote("looking at it", &status));
            }
            _ => self.failed(item.remote, Trouble::Special),
        }
    }
}
