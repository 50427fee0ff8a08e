//! A line taken apart into its keyword and its arguments.

/// What `strdelim` (misc.c) skips.
const BLANKS: [char; 4] = [' ', '\t', '\r', '\n'];

/// What is wrong when [`split_arguments`] finds nothing.
pub(crate) const OPEN_QUOTE: &str = "a quotation mark is not closed";

/// A line that is neither empty nor a comment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct KeywordLine {
    /// The keyword in lowercase.
    pub(crate) keyword: String,
    /// All that follows the keyword and its separator.
    pub(crate) rest: String,
}

/// Splits the keyword off; `Ok(None)` for empty lines and comments
/// (`process_config_line_depth`, readconf.c).
pub(crate) fn split_keyword(line: &str) -> Result<Option<KeywordLine>, String> {
    let line = line.trim_end_matches([' ', '\t', '\r', '\n', '\u{c}']);
    let Some((mut keyword, mut rest)) = next_token(line) else {
        return Ok(None);
    };
    if keyword.is_empty() {
        match rest.as_deref().and_then(next_token) {
            Some(second) => (keyword, rest) = second,
            None => return Ok(None),
        }
    }
    if keyword.is_empty() || keyword.starts_with('#') {
        return Ok(None);
    }
    let keyword = keyword.to_ascii_lowercase();
    let rest = rest
        .unwrap_or_default()
        .trim_start_matches(BLANKS)
        .to_string();
    if rest.is_empty() {
        return Err(format!("no argument after the keyword {keyword}"));
    }
    Ok(Some(KeywordLine { keyword, rest }))
}

/// `strdelim` (misc.c): a token ends at blanks or at one `=`; double quotes hold it together.
/// `None` when a quote is not closed; the rest is `None` when the line ended with the token.
fn next_token(text: &str) -> Option<(String, Option<String>)> {
    let Some(end) = text.find([' ', '\t', '\r', '\n', '"', '=']) else {
        return Some((text.to_string(), None));
    };
    let (token, rest) = text.split_at(end);
    if let Some(quoted) = rest.strip_prefix('"') {
        let (inside, after) = quoted.split_once('"')?;
        return Some((
            format!("{token}{inside}"),
            Some(after.trim_start_matches(BLANKS).into()),
        ));
    }
    let at_equals = rest.starts_with('=');
    let mut rest = rest[1..].trim_start_matches(BLANKS);
    if !at_equals && let Some(after) = rest.strip_prefix('=') {
        rest = after.trim_start_matches(BLANKS);
    }
    Some((token.to_string(), Some(rest.to_string())))
}

/// `argv_split` (misc.c) with comments: single and double quotes hold arguments together, `\`
/// escapes quotes, itself and, outside quotes, a blank; `#` at the start of an argument ends the
/// line. `None` when a quote is not closed.
pub(crate) fn split_arguments(text: &str) -> Option<Vec<String>> {
    split(text, true)
}

/// The same without comments: a command's arguments may begin with `#`.
pub(crate) fn split_command(text: &str) -> Option<Vec<String>> {
    split(text, false)
}

fn split(text: &str, has_comments: bool) -> Option<Vec<String>> {
    let mut arguments = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(&first) = chars.peek() {
        if first == ' ' || first == '\t' {
            chars.next();
            continue;
        }
        if first == '#' && has_comments {
            break;
        }
        let mut argument = String::new();
        let mut quote = None;
        while let Some(c) = chars.next() {
            match c {
                '\\' => match chars.peek() {
                    Some(&next)
                        if matches!(next, '\'' | '"' | '\\')
                            || (quote.is_none() && next == ' ') =>
                    {
                        argument.push(next);
                        chars.next();
                    }
                    _ => argument.push(c),
                },
                ' ' | '\t' if quote.is_none() => break,
                '"' | '\'' if quote.is_none() => quote = Some(c),
                c if quote == Some(c) => quote = None,
                c => argument.push(c),
            }
        }
        if quote.is_some() {
            return None;
        }
        arguments.push(argument);
    }
    Some(arguments)
}

#[cfg(test)]
mod tests;
