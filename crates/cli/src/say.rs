//! What is said beside the output.

use std::fmt::Display;
use std::io::{self, Write};

use sshoal_report::push_visible_lines;

/// Says something on standard error. If that is closed or full, nobody is told; what is done and the exit status stay
/// the same.
pub(crate) fn say(text: impl Display) {
    let _ = writeln!(
        io::stderr(),
        "{}",
        visible_lines(&format!("sshoal: {text}"))
    );
}

/// Lines for people, in which names of hosts, files and users may stand: none of them steers the terminal.
pub(crate) fn visible_lines(text: &str) -> String {
    let mut shown = Vec::with_capacity(text.len());
    push_visible_lines(text.as_bytes(), &mut shown);
    String::from_utf8_lossy(&shown).into_owned()
}
