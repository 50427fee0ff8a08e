//! Logins followed by the kernel: the tracer itself, and `sshoal why --trace` against real sshd. All of it needs root, and a kernel
//! that lets root trace.

#![allow(clippy::unwrap_used)]

#[path = "../support/mod.rs"]
mod support;

mod fallbacks;
mod left_behind;
mod logins;
mod names;
mod other_servers;
mod pages;
mod refusals;
mod tracer;

use rustix::process::geteuid;

/// Whether anything can be traced here; says so if not.
fn may_trace() -> bool {
    let kinds = std::fs::read_to_string("/proc/filesystems").unwrap();
    let is_possible = geteuid().is_root() && kinds.contains("tracefs");
    if !is_possible {
        eprintln!("not tested: only root can trace, and a kernel with tracefs");
    }
    is_possible
}
