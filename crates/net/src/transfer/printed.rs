//! Fetched files as a command's output: one after the other, each from its beginning.

use std::collections::{BTreeMap, VecDeque};

use sshoal_journal::Segments;
use sshoal_transfer::{Begun, Fetched, LocalFile};

/// Files whose contents go to the observer.
#[derive(Debug, Default)]
pub(super) struct Printed {
    /// Where in the file that is printed now the next octets belong.
    at: u64,
    /// What came before its turn. Bounded by what a download may have in flight.
    early: BTreeMap<u64, Vec<u8>>,
    /// What is confirmed when the observer has taken it.
    unconfirmed: VecDeque<Fetched>,
}

impl Printed {
    /// A file begins.
    pub(super) fn begin(&mut self, file: LocalFile) -> Fetched {
        self.at = 0;
        self.early.clear();
        let begun = Ok(Begun::Ready(Segments::default()));
        Fetched::Begun { file, begun }
    }

    /// Takes octets; returns those whose turn it is.
    pub(super) fn write(
        &mut self,
        file: LocalFile,
        channel: usize,
        offset: u64,
        data: &[u8],
    ) -> Vec<u8> {
        self.unconfirmed.push_back(Fetched::Written {
            file,
            channel,
            octets: data.len(),
            written: Ok(()),
        });
        self.early.insert(offset, data.to_vec());
        let mut due = Vec::new();
        while let Some(data) = self.early.remove(&self.at) {
            self.at += data.len() as u64;
            due.extend_from_slice(&data);
        }
        due
    }

    /// The observer has taken everything.
    pub(super) fn confirm(&mut self) -> Option<Fetched> {
        self.unconfirmed.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_are_printed_in_their_order() {
        let mut printed = Printed::default();
        let file = LocalFile(1);
        printed.begin(file);
        assert_eq!(printed.write(file, 0, 3, b"de"), b"");
        assert_eq!(printed.write(file, 0, 0, b"abc"), b"abcde");
        printed.begin(LocalFile(2));
        assert_eq!(printed.write(LocalFile(2), 0, 0, b"x"), b"x");
    }
}
