//! Words as a POSIX shell cuts them, without its expansions: what Python's `shlex` does for groups.conf and for
//! Ansible's INI inventories.

/// A quote that is opened and not closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UnclosedQuote;

/// Splits at spaces outside quotes. A backslash takes the meaning from the next character, in double quotes only
/// from `"` and `\`; `#` at the start of a word begins a comment.
pub(crate) fn words(text: &str) -> Result<Vec<String>, UnclosedQuote> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '#' if word.is_none() => break,
            c if c.is_whitespace() => words.extend(word.take()),
            quote @ ('"' | '\'') => {
                let word = word.get_or_insert_default();
                read_quoted(quote, &mut characters, word)?;
            }
            '\\' => word.get_or_insert_default().extend(characters.next()),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Ok(words)
}

fn read_quoted(
    quote: char,
    characters: &mut std::str::Chars<'_>,
    word: &mut String,
) -> Result<(), UnclosedQuote> {
    loop {
        match characters.next().ok_or(UnclosedQuote)? {
            end if end == quote => return Ok(()),
            '\\' if quote == '"' => {
                let escaped = characters.next().ok_or(UnclosedQuote)?;
                if !matches!(escaped, '"' | '\\') {
                    word.push('\\');
                }
                word.push(escaped);
            }
            other => word.push(other),
        }
    }
}
