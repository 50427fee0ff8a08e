//! What a run and the process that keeps warm connections say to each other. Nothing here touches a socket.
//!
//! One stream carries the commands of thousands of hosts: the run sends [`Order`]s, the keeper [`News`]. Each is a frame: a
//! uint32 length, a byte for the kind, and fields in the data types of RFC 4251 section 5. Every frame says which
//! host it is about, by a number that the run chose when it started the host's command.
//!
//! ```text
//!   run                                    keeper
//!    | Start -------------------------------> |  opens a session on the host's connection
//!    | <------------------------------ Started |
//!    | Input, InputEnd ----------------------> |  at most INPUT_WINDOW octets that were not Taken
//!    | <-------------------------------- Taken |
//!    | <------------------------------- Output |  at most the channel's window that was not Consumed
//!    | Consumed -----------------------------> |
//!    | Signal, Leave ------------------------> |
//!    | <-------------------------------- Ended |  the last of that number
//! ```
//!
//! What an order means for a command that may have run, the keeper's connection alone knows: [`Fate`] says so at the end.
//!
//! ```
//! use sshoal_warm::{Frames, Order};
//!
//! let mut octets = Vec::new();
//! Order::Signal { id: 7, name: "INT" }.encode(&mut octets);
//! let mut frames = Frames::of(&octets);
//! let frame = frames.next()?.expect("it is whole");
//! assert_eq!(Order::decode(frame)?, Order::Signal { id: 7, name: "INT" });
//! assert_eq!(frames.taken(), octets.len());
//! # Ok::<(), sshoal_warm::FrameError>(())
//! ```

mod frame;
mod news;
mod order;

pub use frame::{FrameError, Frames, MAX_FRAME_LEN};
pub use news::{End, Fate, News};
pub use order::{MAX_VARIABLES, Order, Start};

/// The version of this protocol: both ends must have the same.
pub const VERSION: u32 = 1;

/// Octets of a command's input that may be under way: as many as a keeper keeps for one host that does not read.
pub const INPUT_WINDOW: usize = 64 * 1024;
