//! Any command line: reading it ends without a panic; what is accepted has no byte that means something to a shell outside
//! of quotes, and its words, quoted anew, are read as the same words.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sshoal_preload::line::{NeedsShell, words};

/// What is left of a line when its quotes are taken out with what is in them: the simplest reading there is.
fn outside_of_quotes(line: &[u8]) -> Vec<u8> {
    let mut outside = Vec::new();
    let mut rest = line;
    while let Some((first, after)) = rest.split_first() {
        rest = match first {
            b'\'' | b'"' => {
                let end = after.iter().position(|byte| byte == first);
                let end = end.expect("an accepted line closes its quotes");
                &after[end + 1..]
            }
            _ => {
                outside.push(*first);
                after
            }
        };
    }
    outside
}

fuzz_target!(|line: &[u8]| {
    let Ok(read) = words(line) else { return };
    assert!(!read.is_empty() && !read[0].is_empty());
    for byte in outside_of_quotes(line) {
        assert!(!b"|&;<>()$`\\*?[]{}#~!\0".contains(&byte) && byte < 0x7f);
    }
    let quoted: Vec<Vec<u8>> = read
        .iter()
        .map(|word| {
            let parts: Vec<&[u8]> = word.split(|byte| *byte == b'\'').collect();
            [b"'", parts.join(&b"'\"'\"'"[..]).as_slice(), b"'"].concat()
        })
        .collect();
    let again = quoted.join(&b' ');
    // Quoting makes a line longer, and nothing else.
    let reread = words(&again);
    assert!(reread == Ok(read) || reread == Err(NeedsShell::TooLong));
});
