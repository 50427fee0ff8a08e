//! What is said beside the output.

use std::fmt::Display;
use std::io::{self, Write};

/// Says something on standard error. If that is closed or full, nobody is told; what is done and the exit status stay
/// the same.
pub(crate) fn say(text: impl Display) {
    let _ = writeln!(io::stderr(), "sshoal: {text}");
}
