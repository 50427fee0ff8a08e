//! What many hosts come to: for a terminal, as JSON, and as a page with a map of hosts and phases.

use std::time::Duration;

use serde_json::{Value, json as object};

use super::{Fleet, Group, Percentiles};
use crate::report::{Painter, SCHEMA_VERSION, TextOptions, microseconds, page};
use crate::words;

/// So many hosts of a group are named, and so many outliers told.
const MAX_NAMED: usize = 8;
const MAX_OUTLIERS: usize = 20;

/// The report for a terminal.
pub fn text(fleet: &Fleet, options: TextOptions) -> String {
    let mut painter = Painter::new(options);
    let head = format!(
        "{} measured, {} not",
        counted(fleet.hosts.len()),
        fleet.unmeasured.len()
    );
    painter.wrapped("", 2, &head);
    causes(&mut painter, fleet);
    phases(&mut painter, fleet);
    outliers(&mut painter, fleet);
    if !fleet.unmeasured.is_empty() {
        painter.heading("Not measured");
        for (host, reason) in &fleet.unmeasured {
            let line = format!("{}: {}", words::foreign(host), words::foreign(reason));
            painter.wrapped("  ", 4, &line);
        }
    }
    painter.out
}

fn causes(painter: &mut Painter, fleet: &Fleet) {
    if fleet.groups.is_empty() {
        painter.heading("Nothing found");
        return;
    }
    painter.heading("Found");
    for (at, group) in fleet.groups.iter().enumerate() {
        let first = format!("{:>3}  ", at + 1);
        let line = format!(
            "{} [{}, {}]: {}, up to {} a login, {} together",
            group.cause.title,
            group.cause.id,
            group.certainty.name(),
            counted(group.hosts.len()),
            words::time(
                group
                    .hosts
                    .first()
                    .map_or(Duration::ZERO, |(_, cost)| *cost)
            ),
            words::time(group.cost),
        );
        painter.wrapped(&first, 5, &line);
        painter.wrapped("     on ", 8, &named(group));
        let fix = &group.cause.fix;
        painter.wrapped("     change ", 8, &format!("{}: {}", fix.file, fix.line));
    }
}

fn counted(hosts: usize) -> String {
    match hosts {
        1 => "1 host".to_owned(),
        hosts => format!("{hosts} hosts"),
    }
}

fn named(group: &Group) -> String {
    let names = group.hosts.iter().take(MAX_NAMED);
    let names: Vec<String> = names
        .map(|(host, cost)| format!("{} ({})", words::foreign(host), words::time(*cost)))
        .collect();
    let more = group.hosts.len().saturating_sub(MAX_NAMED);
    match more {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

fn phases(painter: &mut Painter, fleet: &Fleet) {
    painter.heading("Phases over all hosts");
    let line = |title: &str, cells: [String; 4], slowest: &str| {
        let [p50, p90, p99, max] = cells;
        format!("  {title:19}{p50:>9}{p90:>9}{p99:>9}{max:>9}  {slowest}\n")
    };
    let head = ["p50", "p90", "p99", "max"].map(str::to_owned);
    painter.out.push_str(&line("", head, "slowest"));
    let cells = |of: &Percentiles| [of.p50, of.p90, of.p99, of.max].map(words::time);
    for (phase, of) in &fleet.phases {
        let slowest = words::foreign(&of.slowest);
        painter
            .out
            .push_str(&line(phase.title(), cells(of), &slowest));
    }
    if let Some(of) = &fleet.total {
        let slowest = words::foreign(&of.slowest);
        painter
            .out
            .push_str(&line("the whole login", cells(of), &slowest));
    }
}

fn outliers(painter: &mut Painter, fleet: &Fleet) {
    if fleet.outliers.is_empty() {
        return;
    }
    painter.heading("Far off the others, the network aside");
    for outlier in fleet.outliers.iter().take(MAX_OUTLIERS) {
        let causes = match outlier.causes.as_slice() {
            [] => "unexplained".to_owned(),
            causes => causes.join(", "),
        };
        let line = format!(
            "{}: {} {}, {} in the middle: {causes}",
            words::foreign(&outlier.host),
            outlier.phase.title(),
            words::time(outlier.time),
            words::time(outlier.usual),
        );
        painter.wrapped("  ", 4, &line);
    }
    let more = fleet.outliers.len().saturating_sub(MAX_OUTLIERS);
    if more > 0 {
        painter.wrapped("  ", 4, &format!("and {more} more"));
    }
}

/// The object of all hosts; the schema is docs/json.md's, section `why`.
pub fn json(fleet: &Fleet) -> Value {
    object!({
        "type": "why-fleet",
        "version": SCHEMA_VERSION,
        "total": fleet.total.as_ref().map(percentiles),
        "phases": fleet.phases.iter().map(|(phase, of)| object!({
            "phase": phase.name(),
            "title": phase.title(),
            "over_hosts": percentiles(of),
        })).collect::<Vec<_>>(),
        "groups": fleet.groups.iter().map(|group| object!({
            "cause": group.cause.id,
            "title": group.cause.title,
            "certainty": group.certainty.name(),
            "cost_us": microseconds(group.cost),
            "file": group.cause.fix.file,
            "line": group.cause.fix.line,
            "hosts": group.hosts.iter().map(|(host, cost)| object!({
                "host": host,
                "cost_us": microseconds(*cost),
            })).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
        "outliers": fleet.outliers.iter().map(|outlier| object!({
            "host": outlier.host,
            "phase": outlier.phase.name(),
            "us": microseconds(outlier.time),
            "usual_us": microseconds(outlier.usual),
            "causes": outlier.causes,
        })).collect::<Vec<_>>(),
        "hosts": fleet.hosts.iter().map(|host| object!({
            "host": host.host,
            "by": host.by.name(),
            "total_us": microseconds(host.total),
            "causes": host.causes,
            "phases": host.phases.iter().map(|(phase, time, network)| object!({
                "phase": phase.name(),
                "us": microseconds(*time),
                "network_us": microseconds(*network),
            })).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
        "unmeasured": fleet.unmeasured.iter().map(|(host, reason)| object!({
            "host": host,
            "reason": reason,
        })).collect::<Vec<_>>(),
    })
}

fn percentiles(of: &Percentiles) -> Value {
    object!({
        "count": of.count,
        "p50_us": microseconds(of.p50),
        "p90_us": microseconds(of.p90),
        "p99_us": microseconds(of.p99),
        "max_us": microseconds(of.max),
        "slowest": of.slowest,
    })
}

/// One page that needs nothing else, with a map of hosts and phases.
pub fn html(fleet: &Fleet) -> String {
    let plain = text(
        fleet,
        TextOptions {
            width: 100,
            unicode: true,
            colour: false,
            all_causes: true,
        },
    );
    let title = format!("Logins to {} hosts", fleet.hosts.len());
    page(&title, &json(fleet), include_str!("page.js"), &plain)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::fleet::tests::fleet;

    const PLAIN: TextOptions = TextOptions {
        width: 80,
        unicode: false,
        colour: false,
        all_causes: false,
    };

    #[test]
    fn groups_stand_before_phases_and_outliers() {
        let told = text(&Fleet::of(&fleet()), PLAIN);
        let places: Vec<usize> = [
            "20 hosts measured, 0 not",
            "[use-dns,",
            "web2 (",
            "p99",
            "web7: first auth request",
        ]
        .iter()
        .map(|words| {
            told.find(words)
                .unwrap_or_else(|| panic!("{words}: {told}"))
        })
        .collect();
        assert!(places.is_sorted(), "{told}");
        assert!(told.is_ascii());
    }

    #[test]
    fn a_host_s_name_steers_no_terminal_and_ends_no_element() {
        let mut diagnoses = fleet();
        diagnoses[7].host = "\u{1b}[2J</script>".to_owned();
        let fleet = Fleet::of(&diagnoses);
        assert!(!text(&fleet, PLAIN).contains('\u{1b}'));
        assert_eq!(html(&fleet).matches("</script").count(), 2);
    }

    #[test]
    fn the_object_has_all_hosts_and_their_phases() {
        let value = json(&Fleet::of(&fleet()));
        assert_eq!(value["hosts"].as_array().unwrap().len(), 20);
        assert_eq!(value["groups"][0]["cause"], "use-dns");
        assert_eq!(value["phases"].as_array().unwrap().len(), 11);
        assert_eq!(value["total"]["slowest"], "web7");
    }
}
