//! What the whole host did meanwhile, in counters that only grow: read before the login and after it.

use std::fs;

/// Lines "NAME NUMBER": what tasks waited for (PSI, microseconds), pages read because they were missed, pages swapped in, ticks
/// that a hypervisor has taken, sectors read from disks and written to them.
pub(crate) fn read() -> String {
    let mut lines = String::new();
    let mut say = |name: &str, number: u64| lines.push_str(&format!("{name} {number}\n"));
    for kind in ["cpu", "io", "memory"] {
        let text = fs::read_to_string(format!("/proc/pressure/{kind}")).unwrap_or_default();
        for line in text.lines() {
            let total = line
                .rsplit_once("total=")
                .and_then(|(_, total)| total.parse().ok());
            if let (Some(who), Some(total)) = (line.split(' ').next(), total) {
                say(&format!("pressure.{kind}.{who}"), total);
            }
        }
    }
    let memory = fs::read_to_string("/proc/vmstat").unwrap_or_default();
    for name in ["pgmajfault", "pswpin", "pswpout"] {
        if let Some(number) = line_of(&memory, name).and_then(|rest| rest.trim().parse().ok()) {
            say(name, number);
        }
    }
    let processors = fs::read_to_string("/proc/stat").unwrap_or_default();
    let ticks = line_of(&processors, "cpu ").unwrap_or_default();
    if let Some(steal) = ticks
        .split_whitespace()
        .nth(7)
        .and_then(|tick| tick.parse().ok())
    {
        say("steal", steal);
    }
    let disks = fs::read_to_string("/proc/diskstats").unwrap_or_default();
    let (mut read, mut written) = (0, 0);
    for line in disks.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let sectors = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok());
        // Partitions count again what their disk has counted, and so do loops and maps: the larger figure is no harm.
        read += sectors(5).unwrap_or_default();
        written += sectors(9).unwrap_or_default();
    }
    say("sectors.read", read);
    say("sectors.written", written);
    lines
}

fn line_of<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| line.strip_prefix(name))
}
