//! A traced login as lines of text: what its time went to, and its processes as a tree with bars.

use std::collections::BTreeSet;

use crate::sums::Traced;
use crate::tree::{Process, ProcessId};

/// Processes that are shown: those with the longest times, and who made them.
const MAX_SHOWN: usize = 40;
/// Programs and calls that are listed.
const MAX_LISTED: usize = 8;
/// Files that are named, for each reason.
const MAX_FILES: usize = 4;
/// Characters of a text of the host's.
const MAX_FOREIGN: usize = 200;
/// Columns of a process's name, with what it is indented by.
const NAME: usize = 34;
/// Columns of the two times behind a bar.
const TIMES: usize = 24;
/// The least columns of a bar.
const LEAST_BAR: usize = 10;
/// Steps by which children are indented, at most.
const MAX_INDENT: usize = 8;

/// How the lines are to look.
#[derive(Debug, Clone, Copy)]
pub struct TextOptions {
    /// Columns.
    pub width: usize,
    /// Whether block characters may be used.
    pub unicode: bool,
}

/// The lines, each with its end. Foreign text in them is made visible.
pub fn text(traced: &Traced, options: TextOptions) -> String {
    let mut out = String::new();
    for line in head(traced).into_iter().chain(sums(traced)) {
        wrapped(&line, options.width, &mut out);
    }
    tree(traced, options, &mut out);
    out
}

fn head(traced: &Traced) -> Vec<String> {
    let root = traced.login.root;
    let all = traced.processes().count();
    let before = traced.processes_until_output();
    let forks = traced
        .processes()
        .filter(|(id, it)| it.is_fork() && *id != root);
    let mut lines = vec![format!(
        "Trace (by {}): {} on the host, {before} processes until the first output, {all} in all, {} of them forks that ran \
         no program",
        visible(traced.means.title()),
        time(traced.login.wall()),
        forks.count(),
    )];
    let notes = traced.means.notes();
    lines.extend(notes.iter().map(|note| format!("  {}", visible(note))));
    if !traced.login.is_matched {
        let words = "  its connection could not be told by its ports; it was the only login";
        lines.push(words.to_owned());
    }
    if traced.lost > 0 {
        lines.push(format!(
            "  {} records were lost: times may be others' than is told, and nothing is proven by them",
            traced.lost
        ));
    }
    lines
}

fn sums(traced: &Traced) -> Vec<String> {
    let titles = [
        ("cpu", "working"),
        ("contention", "waiting for a processor"),
        ("storage", "disks"),
        ("timer", "timers"),
        ("client", "the client"),
        ("network", "network"),
        ("program", "other programs"),
        ("unexplained", "unexplained"),
    ];
    if !traced.tells_time() {
        return Vec::new();
    }
    let parts = titles.map(|(name, title)| format!("{title} {}", time(traced.share(name))));
    let whole = time(traced.login.wall());
    let mut lines = vec![format!("  {whole} = {}", parts.join(" + "))];
    let calls = traced.calls.iter().map(|call| {
        let about = call.about.as_ref().map(|about| format!(" {about}"));
        let about = about.unwrap_or_default();
        let name = format!("{} {}{about}", call.probe.module, call.probe.function);
        (name, call.to - call.from)
    });
    let mut calls: Vec<_> = calls.collect();
    calls.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
    let least = traced.login.wall() / 100;
    for (title, all) in [
        ("by program", traced.by_program()),
        ("waited for", traced.outside()),
        ("PAM and name service", calls),
    ] {
        let worth = all.into_iter().filter(|(_, time)| *time > least);
        let worth = worth.take(MAX_LISTED);
        let worth = worth.map(|(name, taken)| format!("{} {}", visible(&name), time(taken)));
        let worth: Vec<String> = worth.collect();
        if !worth.is_empty() {
            lines.push(format!("  {title}: {}", worth.join(", ")));
        }
    }
    lines.extend(files(traced));
    lines
}

/// The files that were opened: how many, and those that took long or were opened often.
fn files(traced: &Traced) -> Vec<String> {
    let opened: u64 = traced.processes().map(|(_, process)| process.opened).sum();
    let mut files = traced.files();
    if files.is_empty() {
        return Vec::new();
    }
    let named: u64 = files.iter().map(|file| file.times).sum();
    let longest = files.iter().take(MAX_FILES).map(|file| {
        let path = visible(&file.path);
        format!("{path} {}", time(file.time))
    });
    let longest: Vec<String> = longest.collect();
    let longest = longest.join(", ");
    files.sort_by_key(|file| std::cmp::Reverse(file.times));
    let often = files.iter().take(MAX_FILES);
    let often = often.map(|file| format!("{} {} times", visible(&file.path), file.times));
    let often: Vec<String> = often.collect();
    vec![
        format!(
            "  files: {opened} opened, {named} of them by name; those that took the longest: {longest}"
        ),
        format!("  opened most often: {}", often.join(", ")),
    ]
}

/// A line in as many as it takes, the further ones indented.
fn wrapped(line: &str, width: usize, out: &mut String) {
    let indent = line.len() - line.trim_start().len();
    let mut column = indent;
    out.push_str(&" ".repeat(indent));
    for (place, word) in line.split_whitespace().enumerate() {
        let length = word.chars().count();
        if place > 0 && column + 1 + length > width {
            out.push('\n');
            column = indent + 2;
            out.push_str(&" ".repeat(column));
        } else if place > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
    }
    out.push('\n');
}

fn tree(traced: &Traced, options: TextOptions, out: &mut String) {
    let until = traced.login.end;
    let mut longest: Vec<(u64, ProcessId)> = traced
        .processes()
        .filter(|(_, process)| process.born <= until)
        .map(|(id, process)| (lived(process, until).max(traced.with_children(id)), id))
        .collect();
    longest.sort_by_key(|(time, id)| (std::cmp::Reverse(*time), *id));
    let mut shown = BTreeSet::new();
    for (_, id) in longest.iter().take(MAX_SHOWN) {
        let mut next = Some(*id);
        while let Some(at) = next.filter(|at| shown.insert(*at)) {
            next = match at == traced.login.root {
                true => None,
                false => traced.tree.process(at).parent,
            };
        }
    }
    let bar = options.width.saturating_sub(NAME + TIMES).max(LEAST_BAR);
    let path = if traced.tells_time() {
        "of it path"
    } else {
        ""
    };
    out.push_str(format!("  {:NAME$}{:bar$}{:>11}{path:>11}", "process", "", "lived").trim_end());
    out.push('\n');
    branch(traced, options, (traced.login.root, 0, bar), &shown, out);
    let rest = longest.len().saturating_sub(shown.len());
    if rest > 0 {
        out.push_str(&format!("  and {rest} shorter ones (--json has all)\n"));
    }
}

/// A process and, below it, those that it made.
fn branch(
    traced: &Traced,
    options: TextOptions,
    (root, _, bar): (ProcessId, usize, usize),
    shown: &BTreeSet<ProcessId>,
    out: &mut String,
) {
    // Not by recursion: how deep the tree is, is the host's choice.
    let mut waiting = vec![(root, 0)];
    while let Some((id, depth)) = waiting.pop() {
        line(traced, options, (id, depth, bar), out);
        let made = shown
            .iter()
            .rev()
            .filter(|child| **child != root && traced.tree.process(**child).parent == Some(id));
        waiting.extend(made.map(|child| (*child, depth + 1)));
    }
}

fn line(
    traced: &Traced,
    options: TextOptions,
    (id, depth, columns): (ProcessId, usize, usize),
    out: &mut String,
) {
    let process = traced.tree.process(id);
    let (begin, end) = (traced.login.begin, traced.login.end);
    let until = process.ended.unwrap_or(end).min(end);
    let wall = traced.login.wall().max(1);
    let column = |at: u64| {
        let place = u128::from(at.saturating_sub(begin)) * columns as u128 / u128::from(wall);
        usize::try_from(place).unwrap_or(columns).min(columns)
    };
    let first = column(process.born).min(columns.saturating_sub(1));
    let length = column(until).saturating_sub(first).max(1);
    let mark = if options.unicode { "█" } else { "#" };
    let bar = format!("{}{}", " ".repeat(first), mark.repeat(length));
    let fork = if process.is_fork() && id != traced.login.root {
        " (fork)"
    } else {
        ""
    };
    let name = format!(
        "{}{} {}{fork}",
        "  ".repeat(depth.min(MAX_INDENT)),
        visible(process.title_at(end)),
        process.pid
    );
    let name: String = name.chars().take(NAME - 1).collect();
    let pad = columns - (first + length).min(columns);
    let path = match traced.tells_time() {
        true => time(traced.with_children(id)),
        false => String::new(),
    };
    let line = format!(
        "  {name:NAME$}{bar}{}{:>11}{path:>11}",
        " ".repeat(pad),
        time(lived(process, end)),
    );
    out.push_str(line.trim_end());
    out.push('\n');
}

fn lived(process: &Process, until: u64) -> u64 {
    let end = process.ended.unwrap_or(until).min(until);
    end.saturating_sub(process.born)
}

/// Nanoseconds for a reader.
fn time(nanoseconds: u64) -> String {
    let ms = nanoseconds as f64 / 1e6;
    match ms {
        _ if ms >= 10_000.0 => format!("{:.1} s", ms / 1e3),
        _ if ms >= 100.0 => format!("{ms:.0} ms"),
        _ => format!("{ms:.1} ms"),
    }
}

/// What a host has named, on a terminal: nothing in it steers that, or turns the direction of what is written.
fn visible(text: &str) -> String {
    let plain = |c: char| match c {
        '\u{61c}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}'
        | '\u{feff}' => '?',
        _ if c.is_control() => '?',
        _ => c,
    };
    text.chars().take(MAX_FOREIGN).map(plain).collect()
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
