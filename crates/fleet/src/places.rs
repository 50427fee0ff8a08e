//! A number of places that hosts take and give back.

use crate::line::Line;

/// Places of one limit, and the line of hosts waiting for one.
#[derive(Debug)]
pub(crate) struct Places {
    limit: u32,
    taken: u32,
    pub(crate) line: Line,
}

impl Places {
    pub(crate) fn new(limit: u32) -> Places {
        Places {
            limit,
            taken: 0,
            line: Line::new(),
        }
    }

    pub(crate) fn has_room(&self) -> bool {
        self.taken < self.limit
    }

    pub(crate) fn take(&mut self) {
        self.taken += 1;
    }

    pub(crate) fn give_back(&mut self) {
        self.taken -= 1;
    }
}
