//! The status line on a terminal: how far the run is, how fast, and what it waits for.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use sshoal_fleet::Progress;

use crate::transferred::Moving;

/// The least time between two drawings: ten a second.
const REDRAW_EVERY: Duration = Duration::from_millis(100);

/// Runs that end sooner show no status line at all.
const FIRST_AFTER: Duration = Duration::from_millis(300);

/// What the rate is averaged over.
const RATE_WINDOW: Duration = Duration::from_secs(5);

/// When no more hosts than these are left, they are named.
pub(crate) const NAMED_HOSTS: usize = 3;

/// Decides when the status line is drawn, and what it says.
#[derive(Default)]
pub(crate) struct StatusLine {
    first_tick: Option<Instant>,
    last_drawn: Option<Instant>,
    /// How many hosts were done when, over the last [`RATE_WINDOW`].
    samples: VecDeque<(Instant, u32)>,
    /// How far files are, if any are copied.
    pub(crate) moving: Option<Moving>,
    /// How many octets had been moved when, over the same time.
    moved: VecDeque<(Instant, u64)>,
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

    /// The line, at most `columns - 1` wide, so that no terminal wraps it. `left` names the hosts that have
    /// not ended, when they are few.
    pub(crate) fn line(
        &mut self,
        now: Instant,
        progress: &Progress,
        left: &[String],
        columns: usize,
    ) -> String {
        let rate = self.rate(now, progress.done);
        let mut line = self.moving_text(now);
        line.push_str(&format!("{} of {} done", progress.done, progress.total));
        if progress.failed > 0 {
            line.push_str(&format!(", {} failed", progress.failed));
        }
        line.push_str(&format!(", {rate:.0}/s, {} running", progress.in_flight()));
        let waits_for = waits_for(progress);
        if !waits_for.is_empty() {
            line.push_str(": ");
            line.push_str(&waits_for);
        }
        if !left.is_empty() {
            line.push_str(&format!(" ({})", left.join(", ")));
        }
        line.chars().take(columns.saturating_sub(1)).collect()
    }

    /// `1.2 of 3.4 GiB, 110.0 MiB/s, 0:21 left; `, if files are copied.
    fn moving_text(&mut self, now: Instant) -> String {
        let Some(moving) = self.moving else {
            return String::new();
        };
        self.moved.push_back((now, moving.done));
        while self.moved.len() > 2 && now.saturating_duration_since(self.moved[0].0) > RATE_WINDOW {
            self.moved.pop_front();
        }
        let (then, done_then) = self.moved[0];
        let seconds = now.saturating_duration_since(then).as_secs_f64();
        let octets = moving.done.saturating_sub(done_then) as f64;
        moving.text((seconds > 0.0).then(|| octets / seconds))
    }

    fn rate(&mut self, now: Instant, done: u32) -> f64 {
        self.samples.push_back((now, done));
        while self.samples.len() > 2
            && now.saturating_duration_since(self.samples[0].0) > RATE_WINDOW
        {
            self.samples.pop_front();
        }
        let (then, done_then) = self.samples[0];
        let seconds = now.saturating_duration_since(then).as_secs_f64();
        if seconds > 0.0 {
            f64::from(done - done_then) / seconds
        } else {
            0.0
        }
    }
}

/// The phases that most hosts are in, the most common first: `40 in login, 3 in connect`.
fn waits_for(progress: &Progress) -> String {
    let mut phases = [
        (progress.command, "in command"),
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
            status.line(start, &progress, &[], 200),
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
            status.line(
                start + Duration::from_secs(4),
                &later,
                &["web1".to_owned(), "db1".to_owned()],
                200
            ),
            "998 of 1000 done, 3 failed, 250/s, 2 running: 2 in command (web1, db1)"
        );
        assert_eq!(
            status.line(start + Duration::from_secs(5), &later, &[], 12),
            "998 of 1000"
        );
        assert_eq!(
            status.line(start + Duration::from_secs(5), &later, &[], 0),
            ""
        );
    }

    #[test]
    fn the_rate_forgets_what_is_long_ago() {
        let start = Instant::now();
        let mut status = StatusLine::default();
        for second in 0..60u32 {
            let done = if second < 30 { second * 100 } else { 2900 };
            status.rate(start + Duration::from_secs(second.into()), done);
        }
        assert_eq!(status.rate(start + Duration::from_secs(60), 2910), 2.0);
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
