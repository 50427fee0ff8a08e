//! What was measured, for people.

use std::fmt::Write as _;

use sshoal_net::TrialWay;
use sshoal_report::push_visible;

use super::Report;
use super::advice::{Advice, ROUNDS, Verdict, WINS};
use super::figures::{Direction, Row};
use super::kex::{Kex, KexAdvice};
use super::pairs::{By, Pair};

/// The whole text.
pub(super) fn text(report: &Report) -> String {
    let mut text = head(report);
    text.push_str(&pairs(report));
    if !report.kex.is_empty() {
        text.push_str(&kex(&report.kex));
    }
    for advice in &report.advice {
        text.push_str(&recommended(report, advice));
    }
    if report.advice.is_empty() {
        text.push_str(
            "\nNothing is recommended: what was measured is weak, decrypts before it checks, or has failed.\n",
        );
    }
    if let Some(advice) = &report.kex_advice {
        text.push_str(&recommended_kex(report, advice));
    }
    if report.remembered {
        text.push_str("\nRemembered: sshoal run, put and get offer this server its fastest first, unless Ciphers or MACs are set.\n");
    }
    text.push_str(&weak(report));
    text
}

fn head(report: &Report) -> String {
    let way = match report.way {
        TrialWay::Exec => "by dd and cat on the host",
        TrialWay::Sftp => "by SFTP, since the host runs no commands",
    };
    format!(
        "{}: {}; {} of {} either way, memory to memory, {way}\n",
        report.host,
        shown(&report.server.identification),
        rounds(report.rounds),
        size(report.octets),
    )
}

/// `3 rounds`, `1 round`
pub(super) fn rounds(rounds: u32) -> String {
    format!("{rounds} round{}", if rounds == 1 { "" } else { "s" })
}

/// What a server says, made harmless.
fn shown(text: &str) -> String {
    let mut out = Vec::new();
    push_visible(text.as_bytes(), &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

fn size(octets: u64) -> String {
    match octets >> 20 {
        0 => format!("{} KiB", octets >> 10),
        mebioctets => format!("{mebioctets} MiB"),
    }
}

/// Fastest first.
fn sorted(rows: &[Row]) -> Vec<&Row> {
    let mut rows: Vec<&Row> = rows.iter().collect();
    let rate = |row: &Row| row.rate().unwrap_or_default();
    rows.sort_by(|one, other| rate(other).total_cmp(&rate(one)));
    rows
}

fn pairs(report: &Report) -> String {
    let mut table = vec![
        [
            "cipher",
            "MAC",
            "by",
            "from it",
            "to it",
            "CPU here",
            "CPU there",
            "",
        ]
        .map(str::to_owned),
        ["", "", "", "MB/s", "MB/s", "s/GB", "s/GB", ""].map(str::to_owned),
    ];
    for row in sorted(&report.rows) {
        table.push([
            row.pair.cipher.clone(),
            row.pair.mac.clone().unwrap_or_else(|| "-".to_owned()),
            row.by.name().to_owned(),
            megaoctets(row.down.as_ref()),
            megaoctets(row.up.as_ref()),
            cost(row, |direction| direction.client_cpu),
            cost(row, |direction| direction.server_cpu),
            remark(report, row),
        ]);
    }
    aligned(&table, 3)
}

/// `812 ±3%`
fn megaoctets(direction: Option<&Direction>) -> String {
    match direction {
        None => "-".to_owned(),
        Some(it) => format!("{:.1} ±{:.0}%", it.rate / 1e6, it.spread() * 100.0),
    }
}

/// Down and up.
fn cost(row: &Row, which: impl Fn(&Direction) -> Option<f64>) -> String {
    let one = |direction: &Option<Direction>| match direction.as_ref().and_then(&which) {
        None => "-".to_owned(),
        Some(seconds) => format!("{seconds:.2}"),
    };
    format!("{} {}", one(&row.down), one(&row.up))
}

fn remark(report: &Report, row: &Row) -> String {
    let mut remarks = Vec::new();
    let is_best =
        |advice: &&Advice| advice.is_change() && advice.by == row.by && *advice.best() == row.pair;
    if report.advice.iter().any(|advice| is_best(&advice)) {
        remarks.push("recommended".to_owned());
    }
    if let Some(why) = row.pair.weakness() {
        remarks.push(format!("weak: {why}"));
    }
    remarks.extend(row.failure.as_deref().map(shown));
    remarks.join("; ")
}

fn kex(found: &[Kex]) -> String {
    let mut found: Vec<&Kex> = found.iter().collect();
    found.sort_by_key(|kex| (kex.time.is_none(), kex.time));
    let mut table =
        vec![["key exchange", "by", "takes", "CPU of a login here", ""].map(str::to_owned)];
    for kex in found {
        let milliseconds = |time: Option<std::time::Duration>| match time {
            None => "-".to_owned(),
            Some(time) => format!("{:.2} ms", time.as_secs_f64() * 1e3),
        };
        table.push([
            kex.name.clone(),
            kex.by.name().to_owned(),
            milliseconds(kex.time),
            milliseconds(kex.login_cpu),
            kex.failure.as_deref().map(shown).unwrap_or_default(),
        ]);
    }
    aligned(&table, 2)
}

/// Columns as wide as they must be; from `right` on figures stand at their right edge, but for the last, which is text.
fn aligned<const N: usize>(table: &[[String; N]], right: usize) -> String {
    let mut widths = [0; N];
    for row in table {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::from("\n");
    for row in table {
        let mut line = String::new();
        for (number, (cell, width)) in row.iter().zip(widths).enumerate() {
            // A String takes all that is written.
            let _ = match number >= right && number + 1 < N {
                true => write!(line, "{cell:>width$}  "),
                false => write!(line, "{cell:<width$}  "),
            };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn recommended(report: &Report, advice: &Advice) -> String {
    let best = advice.best().name();
    let has_ssh = report.advice.iter().any(|advice| advice.by == By::Ssh);
    let client = client(advice.by);
    let why = match (&advice.verdict, &advice.usual, advice.gain) {
        (Verdict::Usual, ..) => {
            return format!(
                "\nNothing to change for {client}: it takes the best anyhow, {best}.\n"
            );
        }
        (Verdict::Unsure(pair, gain), ..) => return unsure(report, client, &best, pair, *gain),
        (Verdict::Cheaper(part), Some(usual), _) => format!(
            "as fast as what it takes by itself, {}, for {part:.2} of the CPU",
            usual.name()
        ),
        (_, Some(usual), Some(gain)) => {
            format!("{gain:.2} x what it takes by itself, {}", usual.name())
        }
        _ => "what it would take by itself was not measured".to_owned(),
    };
    match advice.by {
        By::Native if has_ssh => format!("\nsshoal itself: {best}, {why}.\n"),
        By::Native => format!("\nRecommended: {best}, {why}.\n{}", lines(report, advice)),
        By::Ssh => format!(
            "\nRecommended for ssh: {best}, {why}. In ssh_config:\n{}",
            lines(report, advice)
        ),
    }
}

/// Where something else was faster, and it is not certain to be.
fn unsure(report: &Report, client: &str, usual: &str, pair: &Pair, gain: f64) -> String {
    let why = match report.rounds {
        1 => "one round does not tell how much they differ".to_owned(),
        _ => format!("it was not in {WINS} rounds of {ROUNDS} when both were tried again"),
    };
    let pair = pair.name();
    format!(
        "\nFor {client} nothing is to be gained that this measurement could tell: {pair} was {gain:.2} x {usual}, which is what \
         it takes by itself, and {why} (--rounds, --seconds).\n"
    )
}

fn recommended_kex(report: &Report, advice: &KexAdvice) -> String {
    let KexAdvice { by, usual, better } = advice;
    let client = client(*by);
    match better {
        Some(better) if *by == By::Native => format!(
            "\nFor {client} the key exchange {} takes {:.1} ms a login less than what it takes by itself, {usual}: -o KexAlgorithms={}\n",
            better.name,
            better.saved.as_secs_f64() * 1e3,
            better.list.join(",")
        ),
        None if report.rounds == 1 => format!(
            "\nOne round does not tell which key exchange is faster for {client} than the one that it takes by itself, {usual} (--rounds).\n"
        ),
        Some(better) => format!(
            "\nRecommended for {client}: the key exchange {}, {:.1} ms a login less than what it takes by itself, {usual}. In ssh_config:\n{}",
            better.name,
            better.saved.as_secs_f64() * 1e3,
            indented(&advice.lines(&report.name))
        ),
        None => {
            let safe = match advice.is_hybrid() {
                true => " that a quantum computer could not undo either",
                false => "",
            };
            format!(
                "\nNo key exchange{safe} was certain to be faster for {client} than the one it takes by itself, {usual}.\n"
            )
        }
    }
}

fn client(by: By) -> &'static str {
    match by {
        By::Ssh => "ssh",
        By::Native => "sshoal itself",
    }
}

fn lines(report: &Report, advice: &Advice) -> String {
    indented(&advice.lines(&report.name))
}

fn indented(lines: &[String]) -> String {
    let lines = lines.iter().map(|line| format!("    {line}\n"));
    format!("\n{}", lines.collect::<String>())
}

fn weak(report: &Report) -> String {
    if report.weak.is_empty() {
        return String::new();
    }
    let mut text = String::from("\nThe server offers what it should not any more:\n");
    for weak in &report.weak {
        let name = shown(&weak.name);
        // A String takes all that is written.
        let _ = writeln!(
            text,
            "    {} {name}: {} ({} in its sshd_config)",
            weak.kind, weak.why, weak.keyword
        );
    }
    text
}
