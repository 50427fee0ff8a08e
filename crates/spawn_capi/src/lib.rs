//! The C ABI of sshoal-spawn.
//!
//! `ffi` is the boundary and holds all unsafe code; `noshell` and `split` are what popen_noshell's functions mean. The
//! interface is described in `include/sshoal_spawn.h`, `include/popen_noshell.h` and the manual page.

pub mod ffi;
mod noshell;
mod split;
