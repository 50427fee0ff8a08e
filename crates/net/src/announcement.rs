//! What a script that has a command outlive its connection says first: that it is what the host runs, and nothing else is.
//!
//! A host with a forced command (ForceCommand in sshd_config(5), command= in authorized_keys) runs that, whatever was sent; asked
//! again, it would run it again.

use sshoal_proto::Stream;

/// Waits for the mark on both streams, and takes it out of what they say.
pub(crate) struct Announcement {
    mark: Vec<u8>,
    streams: [Awaited; 2],
    /// Whether the session has ended without it.
    pub(crate) was_missed: bool,
}

/// One stream.
#[derive(Default)]
struct Awaited {
    has_come: bool,
    /// What may be the beginning of the mark.
    held: Vec<u8>,
}

/// What is to be shown of what has come.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    /// Not the script's: what a shell says when it begins, or a forced command.
    pub(crate) before: Vec<u8>,
    /// Behind the mark; `None` as long as it has not come.
    pub(crate) behind: Option<Vec<u8>>,
    /// Octets of the mark, which nobody is shown.
    pub(crate) dropped: usize,
}

impl Announcement {
    pub(crate) fn new(mark: &[u8]) -> Announcement {
        Announcement {
            mark: mark.to_vec(),
            streams: Default::default(),
            was_missed: false,
        }
    }

    /// Whether it is the script that answers.
    pub(crate) fn has_come(&self) -> bool {
        self.streams[0].has_come
    }

    pub(crate) fn take(&mut self, stream: Stream, octets: &[u8]) -> Told {
        let awaited = &mut self.streams[index(stream)];
        if awaited.has_come {
            return Told {
                behind: Some(octets.to_vec()),
                ..Told::default()
            };
        }
        awaited.held.extend_from_slice(octets);
        let mark = self.mark.as_slice();
        let mut parts = awaited.held.windows(mark.len().max(1));
        if let Some(at) = parts.position(|part| part == mark) {
            awaited.has_come = true;
            let mut before = std::mem::take(&mut awaited.held);
            let behind = before.split_off(at + mark.len());
            before.truncate(at);
            return Told {
                before,
                behind: Some(behind),
                dropped: mark.len(),
            };
        }
        let longest = awaited.held.len().min(mark.len());
        let begun = (0..=longest).rev().find(|&length| {
            let from = awaited.held.len() - length;
            awaited.held[from..] == mark[..length]
        });
        let held = awaited.held.len() - begun.unwrap_or(0);
        let rest = awaited.held.split_off(held);
        Told {
            before: std::mem::replace(&mut awaited.held, rest),
            ..Told::default()
        }
    }

    /// What was held back of a stream that has ended.
    pub(crate) fn rest(&mut self, stream: Stream) -> Vec<u8> {
        std::mem::take(&mut self.streams[index(stream)].held)
    }
}

fn index(stream: Stream) -> usize {
    match stream {
        Stream::Stdout => 0,
        Stream::Stderr => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_is_taken_out_wherever_pieces_end() {
        let text = b"motd sshoal-\nsshoal-a-1;out sshoal-a-1;";
        for size in 1..text.len() {
            let mut announcement = Announcement::new(b"sshoal-a-1;");
            let (mut before, mut behind) = (Vec::new(), Vec::new());
            for piece in text.chunks(size) {
                let told = announcement.take(Stream::Stdout, piece);
                before.extend(told.before);
                behind.extend(told.behind.unwrap_or_default());
            }
            assert_eq!(before, b"motd sshoal-\n");
            assert_eq!(behind, b"out sshoal-a-1;");
            assert!(announcement.has_come());
        }
    }

    #[test]
    fn what_only_begins_like_it_is_shown() {
        let mut announcement = Announcement::new(b"sshoal-a-1;");
        let told = announcement.take(Stream::Stdout, b"no sshoal-a");
        assert_eq!((told.before, told.behind), (b"no ".to_vec(), None));
        assert_eq!(announcement.rest(Stream::Stdout), b"sshoal-a");
        assert!(!announcement.has_come());
    }
}
