//! One login as the host's kernel saw it. Pure: octets in, values out, no clock, no file, no socket. The octets come from the
//! tracer (crate `sshoal-tracer`), a program on the host: all of it is foreign, and all that it can make grow has a limit.
//!
//! ```text
//! octets --> Frames     a letter, a length, a content
//!        --> Recording  formats of events, pages of the kernel's ring buffer, or lines --> records in the order of time
//!        --> Tree       processes and threads, forks without exec among them; each thread running, runnable or blocked
//!        --> Login      one connection's processes, from its fork to the first octet of output
//!        --> Path       walked back from there: who ran, who waited for what; its pieces add up to the wall time
//!        --> Traced     sums by resource, program and PAM module; text, JSON, events for Perfetto
//! ```

#[cfg(test)]
mod fixtures;
mod format;
mod frames;
mod login;
mod means;
mod page;
mod path;
mod record;
mod recording;
mod report;
mod segments;
mod sums;
mod told;
mod tree;

pub use frames::{Armed, Frame, Frames, MAX_OCTETS, StreamError};
pub use login::{Login, LoginError, Wanted};
pub use means::Means;
pub use path::{Kind, Piece, path};
pub use record::{Left, Peer, Record, Waking, What};
pub use recording::{Probe, Recording, RecordingError, Sample};
pub use report::{TextOptions, events, json, text};
pub use segments::{Segment, State, Waker};
pub use sums::{Call, FileUse, Share, Traced, TracedError};
pub use tree::{OpenedFile, Process, ProcessId, Program, Thread, ThreadId, Tree};
