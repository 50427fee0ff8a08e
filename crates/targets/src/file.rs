//! Files of targets, `-f FILE` and `^FILE`.

use crate::{Target, TargetError, TargetProblem, list::split_items, target::expand_spec};

/// UTF-8's byte order mark, which editors on Windows put first.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Parses a file: a target spec a line, or several with commas; `#` begins a comment; blank lines, CRLF and
/// a byte order mark are skipped. `label` names the file in errors. Duplicates are kept.
///
/// # Errors
/// The first line that is not understood, as `label:line`, with what to write instead.
pub fn parse_file(label: &str, contents: &[u8]) -> Result<Vec<Target>, TargetError> {
    let contents = contents.strip_prefix(BYTE_ORDER_MARK).unwrap_or(contents);
    let mut targets = Vec::new();
    for (index, line) in contents.split(|byte| *byte == b'\n').enumerate() {
        parse_line(line, &mut targets).map_err(|error| error.at(label, index + 1))?;
    }
    Ok(targets)
}

fn parse_line(line: &[u8], targets: &mut Vec<Target>) -> Result<(), TargetError> {
    let Ok(line) = std::str::from_utf8(line) else {
        return Err(TargetError::new(
            &String::from_utf8_lossy(line),
            TargetProblem::NotUtf8,
        ));
    };
    let specs = line.split('#').next().unwrap_or_default();
    for spec in split_items(specs, |c| c == ',') {
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
    Ok(())
}
