//! The status lines on a terminal: how far the run is, how fast, and what it waits for. While files are copied to several
//! hosts, those that will take longest have a line each above that.

use std::{
    cmp::Ordering,
    collections::{HashMap, VecDeque},
    time::{Duration, Instant},
};

use sshoal_fleet::{HostId, Progress};

use crate::{sanitise::visible, transferred::Moving};

/// The least time between two drawings: ten a second.
const REDRAW_EVERY: Duration = Duration::from_millis(100);

/// Runs that end sooner show no status line at all.
const FIRST_AFTER: Duration = Duration::from_millis(300);

/// What the rate is averaged over.
const RATE_WINDOW: Duration = Duration::from_secs(5);

/// The least time between two samples that are kept for that.
const SAMPLE_EVERY: Duration = Duration::from_millis(500);

/// When no more hosts than these are left, they are named.
pub(crate) const NAMED_HOSTS: usize = 3;

/// How many hosts have a line of their own while files are copied.
const SLOWEST_HOSTS: usize = 3;

/// Rows of a terminal below which no host has one.
const LEAST_ROWS: usize = 2 * (SLOWEST_HOSTS + 1);

/// Decides when the status lines are drawn, and what they say.
#[derive(Default)]
pub(crate) struct StatusLine {
    first_tick: Option<Instant>,
    last_drawn: Option<Instant>,
    /// How many hosts were done when.
    ended: Samples,
    /// How far the files of all hosts are, if any are copied, and those of the hosts whose files are under way.
    pub(crate) moving: Option<(Moving, Vec<(HostId, Moving)>)>,
    /// How many octets of all hosts had been moved when, and of each whose files are under way.
    moved: Samples,
    moved_by: HashMap<HostId, Samples>,
}

/// How much there was when, over the last [`RATE_WINDOW`].
#[derive(Default)]
struct Samples(VecDeque<(Instant, u64)>);

impl Samples {
    /// How much more a second there is now; `None` if no time has passed.
    fn rate(&mut self, now: Instant, amount: u64) -> Option<f64> {
        let since = |then: Instant| now.saturating_duration_since(then);
        let last = self.0.back();
        if last.is_none_or(|(then, _)| since(*then) >= SAMPLE_EVERY) {
            self.0.push_back((now, amount));
        }
        while self.0.len() > 2 && since(self.0[0].0) > RATE_WINDOW {
            self.0.pop_front();
        }
        let (then, before) = self.0[0];
        let seconds = since(then).as_secs_f64();
        (seconds > 0.0).then(|| amount.saturating_sub(before) as f64 / seconds)
    }
}

/// A host whose files are under way.
struct Mover {
    host: HostId,
    moving: Moving,
    rate: Option<f64>,
}

impl Mover {
    /// Seconds that it will take, as far as is known: for ever if nothing moves.
    fn time_left(&self) -> f64 {
        match (self.moving.left, self.rate) {
            (0, _) => 0.0,
            (left, Some(rate)) => left as f64 / rate,
            (_, None) => f64::INFINITY,
        }
    }

    /// The one that takes longer comes first.
    fn order(&self, other: &Mover) -> Ordering {
        let by_time = other.time_left().total_cmp(&self.time_left());
        by_time.then(self.host.cmp(&other.host))
    }
}

impl StatusLine {
    /// Whether it is time to draw; if so, the next time is counted from now.
    pub(crate) fn is_due(&mut self, now: Instant) -> bool {
        let first = *self.first_tick.get_or_insert(now);
        let early = now.saturating_duration_since(first) < FIRST_AFTER;
        let recent = self
            .last_drawn
            .is_some_and(|last| now.saturating_duration_since(last) < REDRAW_EVERY);
        if early || recent {
            return false;
        }
        self.last_drawn = Some(now);
        true
    }

    /// The lines, of which the last one is about all hosts; each at most `columns - 1` wide, so that no terminal wraps it.
    /// `left` names the hosts that have not ended, when they are few; `labels` names all.
    pub(crate) fn lines(
        &mut self,
        now: Instant,
        progress: &Progress,
        left: &[String],
        labels: &[String],
        (columns, rows): (usize, usize),
    ) -> Vec<String> {
        let mut lines = self.host_lines(now, labels);
        if rows < LEAST_ROWS {
            lines.clear();
        }
        lines.push(self.line(now, progress, left));
        let fitting = |line: &String| line.chars().take(columns.saturating_sub(1)).collect();
        lines.iter().map(fitting).collect()
    }

    fn line(&mut self, now: Instant, progress: &Progress, left: &[String]) -> String {
        let rate = self.ended.rate(now, progress.done.into()).unwrap_or(0.0);
        let mut line = String::new();
        if let Some((all, _)) = self.moving {
            line.push_str(&all.text(self.moved.rate(now, all.done)));
            line.push_str("; ");
        }
        line.push_str(&format!("{} of {} done", progress.done, progress.total));
        if progress.failed > 0 {
            line.push_str(&format!(", {} failed", progress.failed));
        }
        line.push_str(&format!(", {rate:.0}/s, {} running", progress.in_flight()));
        let waits_for = waits_for(progress, self.moving.is_some());
        if !waits_for.is_empty() {
            line.push_str(": ");
            line.push_str(&waits_for);
        }
        if !left.is_empty() {
            line.push_str(&format!(" ({})", left.join(", ")));
        }
        line
    }

    /// `web3: 1.2 MiB of 3.4 MiB, 110.0 KiB/s, 0:21 left`, for those that will take longest.
    fn host_lines(&mut self, now: Instant, labels: &[String]) -> Vec<String> {
        let mut before = std::mem::take(&mut self.moved_by);
        let hosts = self.moving.iter().flat_map(|(_, hosts)| hosts);
        let mut movers = Vec::new();
        for &(host, moving) in hosts {
            let mut samples = before.remove(&host).unwrap_or_default();
            let rate = samples.rate(now, moving.done);
            self.moved_by.insert(host, samples);
            movers.push(Mover { host, moving, rate });
        }
        movers.sort_by(Mover::order);
        let slowest = movers.iter().take(SLOWEST_HOSTS);
        let lines = slowest.filter_map(|it| {
            let label = visible(labels.get(it.host.0 as usize)?);
            Some(format!("{label}: {}", it.moving.text(it.rate)))
        });
        lines.collect()
    }
}

/// The phases that most hosts are in, the most common first: `40 in login, 3 in connect`.
fn waits_for(progress: &Progress, copies: bool) -> String {
    let command = match copies {
        true => "in transfer",
        false => "in command",
    };
    let mut phases = [
        (progress.command, command),
        (progress.session, "in session"),
        (progress.login, "in login"),
        (progress.connect, "in connect"),
        (progress.lookup, "in lookup"),
        (progress.backing_off, "backing off"),
        (progress.held, "waiting for your answer"),
        (progress.ending, "ending"),
    ];
    phases.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    let named = phases.iter().take_while(|(count, _)| *count > 0).take(3);
    named
        .map(|(count, phase)| format!("{count} {phase}"))
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The line of a run that copies nothing.
    fn only_line(
        status: &mut StatusLine,
        now: Instant,
        progress: &Progress,
        left: &[String],
        columns: usize,
    ) -> String {
        let mut lines = status.lines(now, progress, left, &[], (columns, 24));
        assert_eq!(lines.len(), 1);
        lines.remove(0)
    }

    #[test]
    fn it_names_what_the_run_waits_for() {
        let start = Instant::now();
        let mut status = StatusLine::default();
        let progress = Progress {
            total: 1000,
            login: 5,
            connect: 40,
            command: 5,
            done: 0,
            ..Default::default()
        };
        assert_eq!(
            only_line(&mut status, start, &progress, &[], 200),
            "0 of 1000 done, 0/s, 50 running: 40 in connect, 5 in command, 5 in login"
        );
        let later = Progress {
            total: 1000,
            command: 2,
            done: 998,
            failed: 3,
            ..Default::default()
        };
        assert_eq!(
            only_line(
                &mut status,
                start + Duration::from_secs(4),
                &later,
                &["web1".to_owned(), "db1".to_owned()],
                200
            ),
            "998 of 1000 done, 3 failed, 250/s, 2 running: 2 in command (web1, db1)"
        );
        assert_eq!(
            only_line(&mut status, start + Duration::from_secs(5), &later, &[], 12),
            "998 of 1000"
        );
        assert_eq!(
            only_line(&mut status, start + Duration::from_secs(5), &later, &[], 0),
            ""
        );
    }

    #[test]
    fn the_rate_forgets_what_is_long_ago() {
        let start = Instant::now();
        let mut samples = Samples::default();
        for second in 0..60 {
            let done = if second < 30 { second * 100 } else { 2900 };
            samples.rate(start + Duration::from_secs(second), done);
        }
        assert_eq!(
            samples.rate(start + Duration::from_secs(60), 2910),
            Some(2.0)
        );
        // However often it is asked for.
        for ms in 60_000..90_000 {
            samples.rate(start + Duration::from_millis(ms), 2910);
        }
        assert!(samples.0.len() <= 12, "{} samples", samples.0.len());
    }

    #[test]
    fn the_hosts_that_take_longest_have_a_line_each() {
        let start = Instant::now();
        let mut status = StatusLine::default();
        let labels: Vec<String> = (0..5).map(|host| format!("web{host}")).collect();
        let progress = Progress {
            total: 5,
            command: 5,
            ..Progress::default()
        };
        let mut lines = |second: u64, done: [Option<u64>; 5], rows| {
            let hosts = (0..).map(HostId).zip(done);
            let hosts = hosts.filter_map(|(host, done)| {
                let done = done? << 20;
                let left = (100 << 20) - done;
                Some((host, Moving { done, left }))
            });
            let hosts: Vec<_> = hosts.collect();
            let all = |amount: fn(&Moving) -> u64| -> u64 {
                hosts.iter().map(|(_, it)| amount(it)).sum()
            };
            let (done, left) = (all(|it| it.done), all(|it| it.left));
            status.moving = Some((Moving { done, left }, hosts));
            let now = start + Duration::from_secs(second);
            status.lines(now, &progress, &[], &labels, (60, rows))
        };
        lines(0, [Some(0); 5], 24);
        let done = [Some(20), Some(0), Some(1), Some(100), Some(5)];
        assert_eq!(
            lines(1, done, 24),
            [
                "web1: 0 B of 100.0 MiB, 0 B/s",
                "web2: 1.0 MiB of 100.0 MiB, 1.0 MiB/s, 1:39 left",
                "web4: 5.0 MiB of 100.0 MiB, 5.0 MiB/s, 0:19 left",
                "126.0 MiB of 500.0 MiB, 126.0 MiB/s, 0:03 left; 0 of 5 done",
            ]
        );
        assert_eq!(lines(2, done, 7).len(), 1, "there is no room for them");
        // Those that have ended have none.
        let done = [None, None, None, Some(100), None];
        let last = lines(3, done, 24);
        assert_eq!(last.len(), 2);
        assert!(
            last[0].starts_with("web3: 100.0 MiB of 100.0 MiB"),
            "{last:?}"
        );
    }

    #[test]
    fn it_is_drawn_at_most_ten_times_a_second() {
        let start = Instant::now();
        let mut status = StatusLine::default();
        let drawn = (0..2000)
            .filter(|ms| status.is_due(start + Duration::from_millis(*ms)))
            .count();
        assert_eq!(drawn, 17); // from 300 ms to 1,900 ms
    }
}
