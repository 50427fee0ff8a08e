//! Lists as `-w` and `-x` take them.

use crate::{Target, TargetError, TargetProblem, target::expand_spec};

/// One element of a list, ranges expanded.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Item {
    /// A host.
    Target(Target),
    /// A file to read, `^path`: the caller reads it and puts [`crate::parse_file`]'s targets in its place.
    File(String),
}

/// Parses a list: items separated by commas or spaces, in order, duplicates kept (see [`crate::distinct`]).
///
/// # Errors
/// The first item that is not understood, quoted, with what to write instead. An empty list is no error here.
pub fn parse_list(list: &str) -> Result<Vec<Item>, TargetError> {
    let mut items = Vec::new();
    let mut targets = Vec::new();
    for spec in split_items(list, |c| c == ',' || c.is_whitespace()) {
        if let Some(path) = spec.strip_prefix('^') {
            if path.is_empty() {
                return Err(TargetError::new(spec, TargetProblem::EmptyFile));
            }
            items.extend(targets.drain(..).map(Item::Target));
            items.push(Item::File(path.to_owned()));
            continue;
        }
        expand_spec(spec, &mut targets)?;
        if items.len() + targets.len() > crate::MAX_TARGETS {
            return Err(TargetError::new(spec, TargetProblem::TooMany));
        }
    }
    items.extend(targets.into_iter().map(Item::Target));
    Ok(items)
}

/// Splits at separators outside brackets and drops empty parts.
pub(crate) fn split_items(
    list: &str,
    separates: impl Fn(char) -> bool,
) -> impl Iterator<Item = &str> {
    let mut inside_brackets = false;
    list.split(move |c| {
        match c {
            '[' => inside_brackets = true,
            ']' => inside_brackets = false,
            _ => {}
        }
        !inside_brackets && separates(c)
    })
    .filter(|item| !item.is_empty())
}
