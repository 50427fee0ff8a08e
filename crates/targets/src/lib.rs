//! Host lists in every notation that people have: ranges, groups, genders, inventories, host files, and
//! folding names back.
//!
//! ```text
//! list     = [ "-" ] operand *( operator operand )     what -w and -x take; evaluated from left to right
//! operator = "," / space      hosts of both sides
//!          / "!"              of the left side only                "-" before an operand, from pdsh:
//!          / "&"              of either side at once               left out of the whole list
//!          / "^"              of just one side
//! operand  = "^" path                               a file
//!          / "@" [ source ":" ] group               a group, or several: @rack[1-3]; @* is all hosts
//!          / glob with * and ? / "/" regex "/"      chosen from what stands left of ! and &, else from all hosts
//!          / [ user "@" ] host [ ":" port ]
//! host     = name with brackets, each a list of numbers:  web[1-100,150]  node[001-100]  n[1-9/2]  r[1-2]n[1-4]
//!          / IPv6 address, bare when no port follows:     ::1   fd00::[1-9]   [::1]:22
//! ```
//!
//! The grammar is ClusterShell's with pdsh's `^file` and `-host`; where they part, `tests/peers/differences.rs`
//! says how and why. A number written with leading zeros keeps its width. Several brackets multiply, the last
//! one running fastest. A file holds one list of hosts a line (commas, no spaces), options behind it
//! (`Port=2222`), `#` begins a comment.
//!
//! This crate is pure: it reads no file and runs no program. [`Sources::expand`] says what is needed, and
//! the caller gets it. [`parse_list`] reads plain lists, without groups and operations. [`Genders`] and
//! [`Inventory`] bring groups, [`parse_file`], [`parse_json`] and [`parse_csv`] hosts with users, ports and
//! options. [`fold()`] writes names back in the same grammar, exactly, and as ClusterShell writes them.
//!
//! ```
//! use sshoal_targets::{Expansion, HostList, Need, Sources, Supply, fold};
//! let list = HostList::parse("web[1-3,7],^more.txt ! web2").unwrap();
//! let mut sources = Sources::default();
//! let file = Need::File { path: "more.txt".into() };
//! assert_eq!(sources.expand(&list), Ok(Expansion::Needs(vec![file.clone()])));
//! sources.handle_supply(file, Supply::Content(b"root@db1 Port=2222".to_vec()));
//! let Ok(Expansion::Targets(targets)) = sources.expand(&list) else { panic!() };
//! assert_eq!(targets[3].to_string(), "root@db1:2222");
//! assert_eq!(fold(targets.iter().map(|target| &target.name)), "db1,web[1,3,7]");
//! ```

mod error;
mod file;
mod fold;
mod genders;
mod inventory;
mod list;
mod names;
mod natural;
mod number;
mod options;
mod pattern;
mod records;
mod scan;
mod select;
mod set;
mod sources;
mod target;
mod words;
mod yaml;

pub use error::{Place, TargetError, TargetProblem};
pub use file::parse_file;
pub use fold::fold;
pub use genders::{Genders, NodeName};
pub use inventory::Inventory;
pub use list::{GroupName, HostList, Item, Operand, Operator, Term, parse_list};
pub use names::{ConfigNames, known_hosts_names, ssh_config_names};
pub use natural::natural_cmp;
pub use number::MAX_DIGITS;
pub use records::{parse_csv, parse_json};
pub use select::{Selector, pick, split};
pub use sources::{Expansion, GroupTable, Names, Need, Sources, Supply};
pub use target::{Target, distinct, exclude, labels};

/// The most targets one list or one file may expand to. A typing error such as `web[1-1000000000]` must be
/// a sentence, not a machine without memory.
pub const MAX_TARGETS: usize = if cfg!(feature = "fuzzing") {
    10_000
} else {
    1_000_000
};

/// The longest host name accepted, in bytes (`NI_MAXHOST` is 1025 with its final zero).
pub const MAX_NAME_LEN: usize = 1024;

#[cfg(test)]
mod tests;
