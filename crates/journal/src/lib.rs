//! Which segments of which files are proven to be where they are to go: a journal's octets, and their replay. Nothing here
//! touches a file.
//!
//! ```text
//! journal: "sshoal J" version(u32)  record*
//! record:  length(u32) CRC-32(u32) body          the sum is over the length and the body
//! body:    1 BEGAN     file(u32) key(string) identity(string)
//!          2 PROVEN    file(u32) count(u32) (start(u64) end(u64))*
//!          3 ENDED     file(u32)
//! ```
//!
//! Numbers are big-endian, strings have their length before them. A key is what the file is called at its target, an identity what
//! tells this version of its source from others; both are the caller's, and compared octet by octet. What was proven of another
//! identity counts for nothing: BEGAN once more, and all that stood before it of this key is forgotten. What has ended is in place or given up: it makes room, the longest known first, when another file begins
//! and there is none. A journal is only appended to. Whoever was killed, or lost
//! power, in the middle of a record leaves a torn tail: replay ends where the first record does not add up, and what stood
//! behind it was never relied upon. A journal that is missing, too large, of another version or no journal at all proves
//! nothing, and what proves nothing is transferred again.

mod checksum;
mod frame;
mod record;
pub mod run;
mod segments;
mod state;

pub use segments::{MAX_SEGMENTS, Segments};
pub use state::{Journal, JournalError, MAX_FILES, MAX_IDENTITY, MAX_JOURNAL, MAX_KEY};
