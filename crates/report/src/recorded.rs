//! Sinks that remember, for tests.

use std::{
    io::{self, Write},
    sync::{Arc, Mutex, PoisonError},
};

use crate::{Sink, Terminal};

/// What was written to a sink. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Recorded(Arc<Mutex<Record>>);

#[derive(Default)]
struct Record {
    bytes: Vec<u8>,
    writes: usize,
    /// How many bytes are taken, and how writing fails then.
    room: Option<(usize, io::ErrorKind)>,
}

impl Recorded {
    /// Takes `room` bytes, then fails as a pipe does whose reader has gone.
    pub(crate) fn closing_after(room: usize) -> Recorded {
        Recorded::failing_after(room, io::ErrorKind::BrokenPipe)
    }

    /// Takes `room` bytes, then fails in this way.
    pub(crate) fn failing_after(room: usize, kind: io::ErrorKind) -> Recorded {
        let recorded = Recorded::default();
        recorded.record(|record| record.room = Some((room, kind)));
        recorded
    }

    fn record<T>(&self, change: impl FnOnce(&mut Record) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn file(&self) -> Sink {
        Sink::file(self.clone())
    }

    pub(crate) fn terminal(&self, color: bool) -> Sink {
        Sink::terminal(
            self.clone(),
            Terminal {
                color,
                size: Box::new(|| (60, 24)),
            },
        )
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.record(|record| record.bytes.clone())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.bytes()).expect("the test writes text")
    }

    pub(crate) fn writes(&self) -> usize {
        self.record(|record| record.writes)
    }
}

impl Write for Recorded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.record(|record| {
            let mut count = bytes.len();
            if let Some((room, kind)) = record.room {
                count = count.min(room - record.bytes.len());
                if count == 0 && !bytes.is_empty() {
                    return Err(kind.into());
                }
            }
            record.bytes.extend_from_slice(&bytes[..count]);
            record.writes += 1;
            Ok(count)
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
