//! Files of targets, `-f FILE` and `^FILE`.

use crate::{
    Target, TargetError, TargetProblem,
    options::{apply_option, is_keyword},
    target::{expand_spec, split_specs},
    words::words,
};

/// UTF-8's byte order mark, which editors on Windows put first.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Parses a file: a target spec a line, or several with commas; `#` begins a comment; blank lines, CRLF and
/// a byte order mark are skipped. Behind its targets a line may hold options of ssh_config as `keyword=value`
/// (`web[1-9] User=root Port=2222 IdentityFile="my key"`), which then hold for each of them. `label` names the
/// file in errors. Duplicates are kept.
///
/// # Errors
/// The first line that is not understood, as `label:line`, with what to write instead.
pub fn parse_file(label: &str, contents: &[u8]) -> Result<Vec<Target>, TargetError> {
    let mut targets = Vec::new();
    for (number, line) in lines(contents) {
        parse_line(line, &mut targets).map_err(|error| error.at(label, number))?;
    }
    Ok(targets)
}

/// The lines of a text file and their numbers, without byte order mark and line ends.
pub(crate) fn lines(contents: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let contents = contents.strip_prefix(BYTE_ORDER_MARK).unwrap_or(contents);
    let lines = contents.split(|byte| *byte == b'\n').enumerate();
    lines.map(|(index, line)| (index + 1, line.strip_suffix(b"\r").unwrap_or(line)))
}

/// A line as text.
pub(crate) fn utf8(line: &[u8]) -> Result<&str, TargetError> {
    std::str::from_utf8(line)
        .map_err(|_| TargetError::new(&String::from_utf8_lossy(line), TargetProblem::NotUtf8))
}

fn parse_line(line: &[u8], targets: &mut Vec<Target>) -> Result<(), TargetError> {
    let line = utf8(line)?;
    let text = line.split('#').next().unwrap_or_default();
    let options_at = options_at(text);
    let new = targets.len();
    for spec in split_specs(&text[..options_at]) {
        let spec = spec.trim();
        if spec.starts_with('^') {
            return Err(TargetError::new(spec, TargetProblem::NestedFile));
        }
        if spec.contains(char::is_whitespace) {
            return Err(TargetError::new(spec, TargetProblem::Space));
        }
        if !spec.is_empty() {
            expand_spec(spec, targets)?;
        }
    }
    if options_at == text.len() {
        return Ok(());
    }
    // Quotes may hold a '#'.
    let options = &line[options_at..];
    let wrong = |problem| TargetError::new(options, problem);
    let options = words(options).map_err(|_| wrong(TargetProblem::UnclosedQuote))?;
    for option in &options {
        let (keyword, value) = option
            .split_once('=')
            .ok_or_else(|| TargetError::new(option, TargetProblem::Space))?;
        for target in &mut targets[new..] {
            apply_option(target, keyword, value)
                .map_err(|problem| TargetError::new(option, problem))?;
        }
    }
    Ok(())
}

/// Where the first `keyword=value` behind a space begins; the length when there is none.
fn options_at(text: &str) -> usize {
    let is_option = |word: &str| {
        let keyword = word.split_once('=').map_or("", |(keyword, _)| keyword);
        is_keyword(keyword)
    };
    let words = text
        .match_indices(char::is_whitespace)
        .map(|(at, space)| at + space.len());
    let hosts_at = text.len() - text.trim_start().len();
    words
        .filter(|at| *at > hosts_at)
        .find(|at| {
            is_option(text[*at..].split_whitespace().next().unwrap_or_default())
                && !text[*at..].starts_with(char::is_whitespace)
        })
        .unwrap_or(text.len())
}
