//! A diagnosis for a terminal: what was found first, then where the time goes, then what was ruled out.

use std::fmt::Write as _;
use std::time::Duration;

use crate::diagnosis::{Diagnosis, Finding, Status};
use crate::evidence::{Client, Phase};
use crate::reckoning::LEAST;
use crate::timeline::{Part, Stage, Timeline};
use crate::words;

/// How text is to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextOptions {
    /// Columns of the terminal.
    pub width: usize,
    /// Whether bars may be other than ASCII.
    pub unicode: bool,
    /// Whether to colour.
    pub colour: bool,
    /// Whether to tell of each cause what has ruled it out, and not only how many there are.
    pub all_causes: bool,
}

/// Narrower terminals get lines that are too long for them.
const LEAST_WIDTH: usize = 50;

const TITLE_COLUMNS: usize = 19;
const TIME_COLUMNS: usize = 9;

/// Lines for a terminal.
pub(crate) struct Painter {
    pub(crate) out: String,
    pub(crate) options: TextOptions,
}

#[derive(Clone, Copy)]
pub(crate) enum Colour {
    Bold,
    Dim,
    Red,
    Yellow,
    Green,
}

/// The report on one host.
pub fn text(diagnosis: &Diagnosis, options: TextOptions) -> String {
    let mut painter = Painter::new(options);
    painter.head(diagnosis);
    painter.findings(diagnosis);
    for timeline in diagnosis.timelines.iter().take(1) {
        let beside = diagnosis.timelines.get(1);
        painter.waterfall(timeline, beside);
    }
    painter.resources(diagnosis);
    painter.verdicts(diagnosis);
    painter.out
}

impl Painter {
    pub(crate) fn new(options: TextOptions) -> Painter {
        Painter {
            out: String::new(),
            options: TextOptions {
                width: options.width.max(LEAST_WIDTH),
                ..options
            },
        }
    }

    pub(crate) fn coloured(&self, colour: Colour, text: &str) -> String {
        if !self.options.colour || text.is_empty() {
            return text.to_owned();
        }
        let code = match colour {
            Colour::Bold => "1",
            Colour::Dim => "2",
            Colour::Red => "31",
            Colour::Yellow => "33",
            Colour::Green => "32",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    pub(crate) fn heading(&mut self, text: &str) {
        let text = self.coloured(Colour::Bold, text);
        let _ = write!(self.out, "\n{text}\n");
    }

    /// A paragraph whose lines but the first begin further right.
    pub(crate) fn wrapped(&mut self, first: &str, indent: usize, text: &str) {
        let mut line = first.to_owned();
        let mut columns = first.chars().count();
        let mut fresh = true;
        for word in text.split_whitespace() {
            let length = word.chars().count();
            if !fresh && columns + 1 + length > self.options.width {
                let _ = writeln!(self.out, "{line}");
                line = " ".repeat(indent);
                columns = indent;
                fresh = true;
            }
            if !fresh {
                line.push(' ');
                columns += 1;
            }
            line.push_str(word);
            columns += length;
            fresh = false;
        }
        let _ = writeln!(self.out, "{}", line.trim_end());
    }

    fn head(&mut self, diagnosis: &Diagnosis) {
        let server = [&diagnosis.address, &diagnosis.identification];
        let server: Vec<String> = server
            .into_iter()
            .flatten()
            .map(|text| words::foreign(text))
            .collect();
        let mut line = words::foreign(&diagnosis.host);
        if !server.is_empty() {
            let _ = write!(line, " ({})", server.join(", "));
        }
        let mut parts: Vec<String> = Vec::new();
        for timeline in &diagnosis.timelines {
            let whose = match timeline.by {
                Client::Sshoal => "login",
                Client::Ssh => "stock ssh",
            };
            parts.push(format!("{whose} {}", words::time(timeline.total)));
        }
        if let Some(round_trip) = diagnosis.round_trip {
            parts.push(format!("round trip {}", words::time(round_trip.median)));
        }
        if parts.is_empty() {
            parts.push("no login was measured".to_owned());
        }
        self.wrapped("", 2, &format!("{line}: {}", parts.join(", ")));
        let notes: Vec<String> = diagnosis
            .tier_notes
            .iter()
            .map(|note| words::foreign(note))
            .collect();
        let notes = notes.join("; ");
        let tier = format!("{} tier", diagnosis.tier.name());
        let tier = if notes.is_empty() {
            tier
        } else {
            format!("{tier}: {notes}")
        };
        self.wrapped("", 2, &tier);
        for failure in &diagnosis.failures {
            self.wrapped(
                "",
                2,
                &format!("a login failed: {}", words::foreign(failure)),
            );
        }
    }

    fn findings(&mut self, diagnosis: &Diagnosis) {
        if diagnosis.findings.is_empty() {
            self.heading("Nothing found");
            let words = "No known cause costs this login 10 ms, or more than three times what its repetitions differ by.";
            self.wrapped("  ", 2, words);
        } else {
            self.heading("Found");
            for (at, finding) in diagnosis.findings.iter().enumerate() {
                self.finding(at + 1, finding);
            }
        }
        if let Some(timeline) = diagnosis.timelines.first() {
            self.unexplained(timeline);
        }
        if !diagnosis.ssh_findings.is_empty() {
            self.heading("Stock ssh alone pays for");
            for (at, finding) in diagnosis.ssh_findings.iter().enumerate() {
                self.finding(at + 1, finding);
            }
        }
    }

    fn unexplained(&mut self, timeline: &Timeline) {
        let mut places: Vec<String> = Vec::new();
        for stage in &timeline.stages {
            let left = stage
                .shares
                .iter()
                .find(|share| share.of == Part::Unexplained);
            if let Some(share) = left.filter(|share| share.time >= LEAST) {
                places.push(format!(
                    "{} in {}",
                    words::time(share.time),
                    stage.phase.title()
                ));
            }
        }
        let whole = words::time(timeline.unexplained);
        let line = match places.as_slice() {
            [] => format!("Unexplained: {whole}."),
            places => format!("Unexplained: {whole}, {}.", places.join(", ")),
        };
        self.wrapped("  ", 2, &line);
    }

    fn finding(&mut self, number: usize, finding: &Finding) {
        let cost = format!("{number:>3}  {:>8}", words::time(finding.cost));
        let cost = self.coloured(Colour::Red, &cost);
        let title = format!(
            "{} [{}, {}]",
            finding.cause.title,
            finding.cause.id,
            finding.certainty.name()
        );
        // The number's own columns, whatever colours it.
        let mut painter = Painter::new(self.options);
        painter.wrapped(&" ".repeat(15), 15, &title);
        let _ = writeln!(self.out, "{cost}  {}", painter.out.trim());
        for line in &finding.evidence {
            self.wrapped(&" ".repeat(15), 17, line);
        }
        let fix = &finding.cause.fix;
        let change = format!("change  {}:", fix.file);
        let change = self.coloured(Colour::Green, &change);
        let _ = writeln!(self.out, "{}{change}", " ".repeat(15));
        for line in fix.line.lines() {
            // To be copied: never wrapped.
            let _ = writeln!(self.out, "{}{line}", " ".repeat(23));
        }
        self.wrapped(&format!("{}undo    ", " ".repeat(15)), 23, fix.undo);
        let beside = finding.ssh_cost.map_or(String::new(), |cost| {
            format!(", with stock ssh {}", words::time(cost))
        });
        let saves = format!("about {} a login{beside}", words::time(finding.saving));
        self.wrapped(&format!("{}saves   ", " ".repeat(15)), 23, &saves);
    }

    fn waterfall(&mut self, timeline: &Timeline, beside: Option<&Timeline>) {
        let whose = timeline.by.name();
        self.heading("Where the time goes");
        let columns = self.bar_columns(beside.is_some());
        let head = format!("  {:TITLE_COLUMNS$}{whose:>TIME_COLUMNS$}", "");
        let ssh = if beside.is_some() {
            format!("  {:columns$} {:>TIME_COLUMNS$}", "", "ssh")
        } else {
            String::new()
        };
        let head = self.coloured(Colour::Dim, format!("{head}{ssh}").trim_end());
        let _ = writeln!(self.out, "{head}");
        for phase in Phase::ALL {
            let stage = timeline.stage(phase);
            let other = beside.and_then(|other| other.stage(phase));
            if stage.is_none() && other.is_none() {
                continue;
            }
            let bar = stage.map_or(" ".repeat(columns), |stage| {
                self.bar(stage, timeline.total, columns)
            });
            let time = |stage: Option<&Stage>| {
                stage.map_or("-".to_owned(), |stage| words::time(stage.sample.median))
            };
            let line = format!(
                "  {:TITLE_COLUMNS$}{:>TIME_COLUMNS$}  {bar}",
                phase.title(),
                time(stage)
            );
            let line = match beside {
                Some(_) => format!("{line} {:>TIME_COLUMNS$}", time(other)),
                None => line,
            };
            let _ = writeln!(self.out, "{}", line.trim_end());
        }
        self.sums(timeline);
        if let Some(beside) = beside {
            self.sums(beside);
        }
    }

    fn bar_columns(&self, has_other: bool) -> usize {
        let others = 2 + TITLE_COLUMNS + TIME_COLUMNS + 2;
        let others = if has_other {
            others + 1 + TIME_COLUMNS
        } else {
            others
        };
        self.options.width.saturating_sub(others).max(8)
    }

    /// The phase where it stands in the login, its shares one behind the other.
    fn bar(&self, stage: &Stage, total: Duration, columns: usize) -> String {
        let at = |time: Duration| {
            let part = time.as_secs_f64() / total.as_secs_f64().max(f64::MIN_POSITIVE);
            // At most `columns`, for no phase ends after the whole.
            (part * columns as f64).round() as usize
        };
        let mut bar = String::new();
        let begin = at(stage.start).min(columns.saturating_sub(1));
        bar.push_str(&" ".repeat(begin));
        let mut end = stage.start;
        let mut used = begin;
        for share in &stage.shares {
            end += share.time;
            let until = at(end).min(columns);
            let length = until.saturating_sub(used);
            used = used.max(until);
            let (mark, ascii, colour) = match share.of {
                Part::Cause(_) => ("█", "#", Colour::Red),
                Part::Unexplained => ("▓", "?", Colour::Yellow),
                Part::Network(_) => ("─", "-", Colour::Dim),
                Part::Padding | Part::Own => ("▒", "=", Colour::Dim),
            };
            let mark = if self.options.unicode { mark } else { ascii };
            bar.push_str(&self.coloured(colour, &mark.repeat(length)));
        }
        if used == begin {
            bar.push_str(if self.options.unicode { "▏" } else { "|" });
            used += 1;
        }
        bar.push_str(&" ".repeat(columns.saturating_sub(used)));
        bar
    }

    /// What the whole consists of.
    fn sums(&mut self, timeline: &Timeline) {
        let sum = |wanted: fn(Part) -> bool| -> Duration {
            let shares = timeline.stages.iter().flat_map(|stage| &stage.shares);
            shares
                .filter(|share| wanted(share.of))
                .map(|share| share.time)
                .sum()
        };
        let words = format!(
            "{}: {} = network {} + sshd's padding {} + usual work {} + causes {} + unexplained {}",
            timeline.by.name(),
            words::time(timeline.total),
            words::time(sum(|part| matches!(part, Part::Network(_)))),
            words::time(sum(|part| part == Part::Padding)),
            words::time(sum(|part| part == Part::Own)),
            words::time(sum(|part| matches!(part, Part::Cause(_)))),
            words::time(timeline.unexplained),
        );
        self.wrapped("  ", 4, &words);
    }

    fn resources(&mut self, diagnosis: &Diagnosis) {
        self.heading("Resources");
        for verdict in &diagnosis.resources {
            let status = match verdict.status {
                Status::Found => "found",
                Status::RuledOut(_) => "ruled out",
                Status::NotLookedAt(_) => "not looked at",
            };
            let first = format!("  {:10} {status:13}  ", verdict.resource.title());
            self.wrapped(&first, 28, &verdict.words);
        }
    }

    fn verdicts(&mut self, diagnosis: &Diagnosis) {
        for title in ["Not looked at", "Ruled out"] {
            let told: Vec<(&str, &str)> = diagnosis
                .verdicts
                .iter()
                .filter_map(|verdict| match (&verdict.status, title) {
                    (Status::NotLookedAt(words), "Not looked at")
                    | (Status::RuledOut(words), "Ruled out") => {
                        Some((verdict.cause.id, words.as_str()))
                    }
                    _ => None,
                })
                .collect();
            if told.is_empty() {
                continue;
            }
            self.heading(title);
            if self.options.all_causes {
                for (id, words) in told {
                    self.wrapped(&format!("  {id:24} "), 27, words);
                }
            } else {
                let names: Vec<&str> = told.iter().map(|(id, _)| *id).collect();
                self.wrapped("  ", 2, &names.join(", "));
            }
        }
    }
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
