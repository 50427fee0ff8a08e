//! libsshoal_preload: `popen` and `system` for programs that cannot be built again, by LD_PRELOAD.
//!
//! A command line that means the same without a shell is executed at once; every other one goes to /bin/sh, which is
//! started fast. What "means the same" is: `line` reads the words, `names` knows which ones a shell keeps for itself,
//! `surroundings` what else could change their meaning, `lookup` finds the program where the shell would, `shells` knows
//! what shells do to what they start. `start` puts them together, `streams` remembers what popen has opened, `ffi` is the
//! boundary and holds all unsafe code. What a user sees is in docs/preload.md.

#[cfg(not(any(test, feature = "fuzzing")))]
pub mod ffi;
pub mod line;
#[cfg(not(any(test, feature = "fuzzing")))]
mod lookup;
mod names;
#[cfg(not(feature = "fuzzing"))]
mod shells;
#[cfg(not(any(test, feature = "fuzzing")))]
mod start;
#[cfg(not(any(test, feature = "fuzzing")))]
mod streams;
#[cfg(not(feature = "fuzzing"))]
mod surroundings;
