//! What a test has to say even when it passes.

use std::io::{self, Write as _};

/// Prints past the test harness, which would keep back what `print!` says in a test that passes.
pub fn say(text: &str) {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes()).unwrap();
    stdout.flush().unwrap();
}
