//! Reads a command line as a shell would, as far as it means the same without one: plain words and quotes.
//!
//! Whatever is not certain is the shell's. POSIX, Shell Command Language, 2.2 (quoting) and 2.3 (tokens); dash and bash
//! agree on everything that is accepted here.

use crate::names;

/// Longer lines are the shell's: near the kernel's limit of one argument (128 KiB) it may refuse what we would take.
pub const MAX_LINE_BYTES: usize = 64 * 1024;

/// Unquoted, these stand for themselves wherever they are in a word. Letters and digits do, too.
const PLAIN: &[u8] = b"_-./,:+@%^=";

/// Why a line is the shell's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeedsShell {
    /// It is longer than [`MAX_LINE_BYTES`].
    TooLong,
    /// There is no word in it.
    Empty,
    /// This byte means something to a shell where it stands, or may in some locale.
    Byte(u8),
    /// A quote is not closed.
    OpenQuote,
    /// The command is no plain name: an assignment, a job, an option, nothing at all.
    Command,
    /// The command is a builtin or a reserved word of a shell.
    Builtin,
}

/// The words of a line: the first is the command, and there is one. Quotes are gone.
pub fn words(line: &[u8]) -> Result<Vec<Vec<u8>>, NeedsShell> {
    if line.len() > MAX_LINE_BYTES {
        return Err(NeedsShell::TooLong);
    }
    let words = split(line)?;
    let command = words.first().ok_or(NeedsShell::Empty)?;
    let begins_like_one = command
        .first()
        .is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'/'));
    if !begins_like_one || command.contains(&b'=') {
        return Err(NeedsShell::Command);
    }
    if names::keeps_for_itself(command) {
        return Err(NeedsShell::Builtin);
    }
    Ok(words)
}

/// Where the reading of a word stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    Blanks,
    Word,
    SingleQuotes,
    DoubleQuotes,
}

fn split(line: &[u8]) -> Result<Vec<Vec<u8>>, NeedsShell> {
    let mut words: Vec<Vec<u8>> = Vec::new();
    let mut word = Vec::new();
    let mut within = Within::Blanks;
    // Newlines around a command change nothing; one between two words would end the command.
    for byte in trimmed(line).iter().copied() {
        within = match (within, byte) {
            (Within::SingleQuotes, b'\'') | (Within::DoubleQuotes, b'"') => Within::Word,
            (Within::SingleQuotes, _) if is_text(byte) => {
                word.push(byte);
                within
            }
            (Within::DoubleQuotes, _) if is_text(byte) && !matches!(byte, b'$' | b'`' | b'\\') => {
                word.push(byte);
                within
            }
            (Within::Blanks, b' ' | b'\t') => Within::Blanks,
            (Within::Word, b' ' | b'\t') => {
                words.push(std::mem::take(&mut word));
                Within::Blanks
            }
            (Within::Blanks | Within::Word, b'\'') => Within::SingleQuotes,
            (Within::Blanks | Within::Word, b'"') => Within::DoubleQuotes,
            (Within::Blanks | Within::Word, _) if is_plain(byte) => {
                word.push(byte);
                Within::Word
            }
            _ => return Err(NeedsShell::Byte(byte)),
        };
    }
    match within {
        Within::Blanks => {}
        Within::Word => words.push(word),
        Within::SingleQuotes | Within::DoubleQuotes => return Err(NeedsShell::OpenQuote),
    }
    Ok(words)
}

fn trimmed(line: &[u8]) -> &[u8] {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n');
    let begin = line.iter().position(|byte| !is_space(byte));
    let end = line.iter().rposition(|byte| !is_space(byte));
    match (begin, end) {
        (Some(begin), Some(end)) => line.get(begin..=end).unwrap_or_default(),
        _ => &[],
    }
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || PLAIN.contains(&byte)
}

/// What stands for itself in single quotes. Other control characters some shells use for themselves, and bytes beyond
/// ASCII may be a blank, or half a character, in some locale.
fn is_text(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\t' | b'\n')
}

#[cfg(test)]
#[path = "line_tests.rs"]
mod tests;
