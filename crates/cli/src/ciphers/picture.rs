//! The picture: a bar for each combination and direction, drawn as SVG with nothing but text.

use std::fmt::Write as _;

use super::Report;
use super::figures::{Direction, Row};
use super::table::rounds;

const LABELS: f64 = 400.0;
const BARS: f64 = 420.0;
const FIGURES: f64 = 110.0;
const BAR: f64 = 12.0;
const GAP: f64 = 8.0;
const HEAD: f64 = 56.0;
const FOOT: f64 = 26.0;
const DOWN: &str = "#4c72b0";
const UP: &str = "#dd8452";
/// Beside a combination that should not be used.
const WEAK: &str = "#c44e52";

/// The whole file.
pub(super) fn svg(report: &Report) -> String {
    let mut rows: Vec<&Row> = report.rows.iter().collect();
    rows.retain(|row| row.down.is_some() || row.up.is_some());
    let rate = |row: &Row| row.rate().unwrap_or_default();
    rows.sort_by(|one, other| rate(other).total_cmp(&rate(one)));
    let directions = rows.iter().flat_map(|row| [&row.down, &row.up]).flatten();
    let longest = directions.map(|it| it.rate).fold(1.0, f64::max);
    let width = LABELS + BARS + FIGURES;
    let height = HEAD + rows.len() as f64 * (2.0 * BAR + GAP) + FOOT;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n"
    );
    let title = format!(
        "{}: throughput by cipher and MAC, memory to memory, MB/s",
        report.host
    );
    words(&mut out, 8.0, 20.0, "start", "#222", &title);
    for (left, colour, name) in [
        (LABELS, DOWN, "from the host"),
        (LABELS + 130.0, UP, "to the host"),
    ] {
        bar(&mut out, left, 34.0, 12.0, colour);
        words(&mut out, left + 17.0, 45.0, "start", "#222", name);
    }
    let mut top = HEAD;
    for row in rows {
        let colour = match row.pair.weakness() {
            Some(_) => WEAK,
            None => "#222",
        };
        let label = format!("{} ({})", row.pair.name(), row.by.name());
        words(
            &mut out,
            LABELS - 8.0,
            top + BAR + 4.0,
            "end",
            colour,
            &label,
        );
        one_way(&mut out, top, row.down.as_ref(), longest, DOWN);
        one_way(&mut out, top + BAR, row.up.as_ref(), longest, UP);
        top += 2.0 * BAR + GAP;
    }
    let foot = format!(
        "{}, medians; red: should not be used any more",
        rounds(report.rounds)
    );
    words(&mut out, 8.0, top + 12.0, "start", "#666", &foot);
    out.push_str("</svg>\n");
    out
}

fn one_way(out: &mut String, top: f64, direction: Option<&Direction>, longest: f64, colour: &str) {
    let Some(direction) = direction else { return };
    let length = (direction.rate / longest * BARS).max(1.0);
    bar(out, LABELS, top, length, colour);
    let figure = format!("{:.1}", direction.rate / 1e6);
    words(
        out,
        LABELS + length + 6.0,
        top + 10.0,
        "start",
        "#222",
        &figure,
    );
}

fn bar(out: &mut String, left: f64, top: f64, length: f64, colour: &str) {
    let height = BAR - 1.0;
    // A String takes all that is written.
    let _ = writeln!(
        out,
        "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{length:.1}\" height=\"{height}\" fill=\"{colour}\"/>"
    );
}

fn words(out: &mut String, left: f64, top: f64, anchor: &str, colour: &str, text: &str) {
    let _ = writeln!(
        out,
        "<text x=\"{left:.1}\" y=\"{top:.1}\" text-anchor=\"{anchor}\" fill=\"{colour}\">{}</text>",
        escaped(text)
    );
}

/// As text of XML, without what XML cannot carry.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            character if character.is_control() => out.push('?'),
            character => out.push(character),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_from_a_server_are_no_markup() {
        assert_eq!(escaped("a<b>&\u{1b}c"), "a&lt;b&gt;&amp;?c");
    }
}
