//! Differences: the most common output is the reference, the others are shown as unified diffs against it.

use std::{
    io::{self, Read as _, Write as _},
    time::Instant,
};

use similar::TextDiff;

use crate::{
    console::{Console, Stream},
    gather::Group,
    sanitise::push_visible,
    spill::Spill,
};

/// Outputs longer than this are only said to differ, in bytes: a diff holds both in memory, line by line.
pub const MAX_DIFF: u64 = 4 * 1024 * 1024;

const RED: &[u8] = b"\x1b[31m";
const GREEN: &[u8] = b"\x1b[32m";
const CYAN: &[u8] = b"\x1b[36m";
const PLAIN: &[u8] = b"\x1b[0m";

/// Writes a unified diff for every group but the first, to standard output. From `deadline` on, diffs are
/// still right, but no longer as short as they could be.
pub(crate) fn write_diffs(
    groups: Vec<Group>,
    labels: &[String],
    deadline: Instant,
    console: &mut Console,
    spill: &Spill,
) -> io::Result<()> {
    let Some((reference, others)) = groups.split_first() else {
        return Ok(());
    };
    let reference_name = reference.name(labels);
    let reference_text = read(reference, spill)?;
    for other in others {
        let name = other.name(labels);
        let texts = reference_text.as_ref().zip(read(other, spill)?);
        let diff = match texts {
            Some((old, new)) => unified(old, &new, deadline)?,
            None => format!(
                "sshoal: too long to compare: {} bytes and {} bytes\n",
                reference.content.len(),
                other.content.len()
            )
            .into_bytes(),
        };
        let header = format!("--- {reference_name}\n+++ {name}\n");
        write_diff(header.as_bytes(), console)?;
        write_diff(&diff, console)?;
    }
    Ok(())
}

/// A group's text, unless it is longer than [`MAX_DIFF`].
fn read(group: &Group, spill: &Spill) -> io::Result<Option<Vec<u8>>> {
    if group.content.len() > MAX_DIFF {
        return Ok(None);
    }
    let mut text = Vec::new();
    group.content.reader(spill).read_to_end(&mut text)?;
    Ok(Some(text))
}

/// The hunks of a unified diff with three lines of context, bytes untouched.
fn unified(old: &[u8], new: &[u8], deadline: Instant) -> io::Result<Vec<u8>> {
    let (old, new) = (lines(old), lines(new));
    let diff = TextDiff::configure()
        .deadline(deadline)
        .diff_slices(&old, &new);
    let mut out = Vec::new();
    for hunk in diff.unified_diff().iter_hunks() {
        hunk.to_writer(&mut out)?;
    }
    Ok(out)
}

/// Cut at newlines only: the diffing crate would also cut at a lone CR.
fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n')
        .map(|line| line.strip_suffix(b"\n").unwrap_or(line))
        .collect()
}

/// Writes lines of a diff, sanitised and coloured as the stream wants.
fn write_diff(text: &[u8], console: &mut Console) -> io::Result<()> {
    let stream = Stream::Stdout;
    let (terminal, color) = (console.is_terminal(stream), console.color(stream));
    if !terminal {
        return console.writer(stream).write_all(text);
    }
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let shade = match line.first() {
            Some(b'-') => RED,
            Some(b'+') => GREEN,
            Some(b'@') => CYAN,
            _ => PLAIN,
        };
        let out = console.text(stream)?;
        if color {
            out.extend_from_slice(shade);
        }
        push_visible(line, out);
        if color {
            out.extend_from_slice(PLAIN);
        }
        out.push(b'\n');
        console.written()?;
    }
    Ok(())
}
