//! First-in, first-out lines of hosts that cost nothing to join or to leave.

/// Marks the end of a line.
const NONE: u32 = u32::MAX;

/// The neighbours of every host in the line it stands in. A host stands in one line at a time.
#[derive(Debug)]
pub(crate) struct Links(Vec<Link>);

#[derive(Debug, Clone, Copy)]
struct Link {
    previous: u32,
    next: u32,
}

/// One line: its first and its last host.
#[derive(Debug)]
pub(crate) struct Line {
    first: u32,
    last: u32,
}

impl Line {
    pub(crate) fn new() -> Line {
        Line {
            first: NONE,
            last: NONE,
        }
    }

    pub(crate) fn first(&self) -> Option<u32> {
        (self.first != NONE).then_some(self.first)
    }
}

impl Links {
    pub(crate) fn new(hosts: usize) -> Links {
        let alone = Link {
            previous: NONE,
            next: NONE,
        };
        Links(vec![alone; hosts])
    }

    /// Puts a host that stands in no line at the end of this one.
    pub(crate) fn join(&mut self, line: &mut Line, host: u32) {
        self.0[host as usize] = Link {
            previous: line.last,
            next: NONE,
        };
        match line.last {
            NONE => line.first = host,
            last => self.0[last as usize].next = host,
        }
        line.last = host;
    }

    /// Takes a host that stands in this line out of it, wherever it stands.
    pub(crate) fn leave(&mut self, line: &mut Line, host: u32) {
        let Link { previous, next } = self.0[host as usize];
        match previous {
            NONE => line.first = next,
            previous => self.0[previous as usize].next = next,
        }
        match next {
            NONE => line.last = previous,
            next => self.0[next as usize].previous = previous,
        }
    }
}

#[cfg(test)]
#[path = "line_tests.rs"]
mod tests;
