//! Starts a program as fast as `vfork` does, from any thread, and says which step failed if it cannot.
//!
//! `fork` copies the page tables of its caller: the larger the program, the slower. `vfork` copies nothing, but its
//! child borrows the caller's memory and stack until it calls exec, and a signal handler, another thread or a mere
//! function return in that time ruins both. This crate has the speed of the second without its dangers:
//!
//! - the child shares memory (`CLONE_VM`) but runs on a stack of its own with a guard below it, and the calling thread
//!   sleeps (`CLONE_VFORK`) until the child has executed its program or ended;
//! - all signals are blocked while memory is shared, and no handler of the caller's is left in the child;
//! - the child makes raw system calls only: no libc, no allocation, no lock, no `errno` of the caller's;
//! - what may not happen while memory is shared (a change of user or group, which would change what others may do to
//!   the caller) is done in a forked child instead;
//! - each descriptor made here is close-on-exec from birth, and the child inherits only what it was promised.
//!
//! ```
//! use std::io::Read;
//! use sshoal_spawn::{Command, Stdio};
//!
//! let mut child = Command::new("echo").arg("hello").stdout(Stdio::pipe()).spawn()?;
//! let mut text = String::new();
//! child.stdout.take().expect("it was asked for").read_to_string(&mut text)?;
//! assert_eq!(text, "hello\n");
//! assert!(child.wait()?.success());
//!
//! let error = Command::new("/no/such/program").spawn().unwrap_err();
//! assert_eq!((error.step(), error.errno()), (sshoal_spawn::Step::Exec, 2));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The way of a start, file by file: `command` collects what is wanted, `stdio` opens files and pipes, `wiring` settles
//! the order of descriptors, `search` and `strings` write down what exec needs, `start` chooses the way, `kernel` takes
//! it (and holds all unsafe code), `steps` runs in the child, `child` waits for it.

#[cfg(feature = "tokio")]
mod asynchronous;
mod child;
mod command;
mod error;
mod kernel;
mod portable;
mod search;
mod signals;
mod start;
mod stdio;
mod steps;
mod strings;
mod wiring;
mod withheld;

pub use child::Child;
pub use command::{Command, Method};
pub use error::{SpawnError, Step};
pub use signals::SignalSet;
pub use stdio::Stdio;
pub use withheld::DescriptorSet;

/// Types of rustix that appear in this crate's functions.
pub use rustix::process::{Resource, Rlimit, Signal};
