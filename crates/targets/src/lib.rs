//! Host lists: ranges, files, exclusions, and folding names back.
//!
//! ```text
//! list  = item *( ("," / space) item )          what `-w` and `-x` take
//! item  = "^" path                              a file to be read, returned as Item::File
//!       / [ user "@" ] host [ ":" port ]
//! host  = name with brackets, each a list of numbers:  web[1-100,150]  node[001-100]  n[1-9/2]
//!       / IPv6 address, bare when no port follows:     ::1   fd00::[1-9]   [::1]:22
//! ```
//!
//! A file holds one list a line (commas, no spaces), `#` begins a comment. A number written with leading
//! zeros keeps its width. Several brackets multiply, the last one running fastest.
//!
//! This crate is pure: it reads no file. [`parse_list`] returns `^path` as [`Item::File`]; the caller reads
//! it and hands the bytes to [`parse_file`]. [`distinct`] and [`exclude`] then settle what is left, and
//! [`fold()`] writes names back in the same grammar, exactly.
//!
//! ```
//! use sshoal_targets::{Item, fold, parse_list};
//! let items = parse_list("root@web[1-3,7]:2222,^more.txt").unwrap();
//! assert_eq!(items.len(), 5);
//! assert_eq!(items[4], Item::File("more.txt".into()));
//! assert_eq!(fold(["web3", "web1", "web2", "db1"]), "db1,web[1-3]");
//! ```

mod error;
mod file;
mod fold;
mod list;
mod natural;
mod number;
mod pattern;
mod target;

pub use error::{Place, TargetError, TargetProblem};
pub use file::parse_file;
pub use fold::fold;
pub use list::{Item, parse_list};
pub use natural::natural_cmp;
pub use number::MAX_DIGITS;
pub use target::{Target, distinct, exclude, labels};

/// The most targets one list or one file may expand to. A typing error such as `web[1-1000000000]` must be
/// a sentence, not a machine without memory.
pub const MAX_TARGETS: usize = 1_000_000;

/// The longest host name accepted, in bytes (`NI_MAXHOST` is 1025 with its final zero).
pub const MAX_NAME_LEN: usize = 1024;

#[cfg(test)]
mod tests;
