//! How long each of a host's channels has said nothing while something is asked of it, and which are waited for no longer.
//!
//! A program on the host may hang, stopped or waiting for a disk, while its sshd lives: the connection does not tell that.
//! A further channel is done without, as if its connection had ended. The first one cannot be; where the others go on, its
//! connection is given up, else it is waited for as long as a slow disk may take.

use std::time::{Duration, Instant};

/// How long a server may say nothing on the first channel, or on none: a slow disk may take minutes for an fsync.
pub(super) const PATIENCE: Duration = Duration::from_secs(600);
/// How long a channel may say nothing while not all others do, or, on the first one, while the others go on.
pub(super) const LONG: Duration = Duration::from_secs(60);
/// How long a further channel may say nothing while the others go on: about as long as TCP doubles its timeout over a line
/// that is broken for a quarter of a minute. It must be some round trips, too.
const SHORT: Duration = Duration::from_secs(30);
const ROUND_TRIPS: u32 = 64;
/// The others go on if they have sent so many messages each, on the average.
const AHEAD: u64 = 16;
/// Whoever is waited for is looked at so often; where more than three times as long has passed, this program did not run.
const LOOK: Duration = Duration::from_secs(5);

/// The silences of a host's channels, each by its number.
#[derive(Debug)]
pub(super) struct Silences {
    each: Vec<Silence>,
    /// Messages that have come on all channels.
    heard: u64,
    looked: Instant,
    /// Whether any channel has been silent for so long that it may hang.
    suspects: bool,
    short: Duration,
}

#[derive(Debug, Clone, Copy, Default)]
struct Silence {
    /// Since when the server is waited for; `None` while nothing is asked.
    since: Option<Instant>,
    /// Messages that had come on all channels by then.
    heard: u64,
    is_gone: bool,
}

impl Silences {
    /// Of one channel, the first.
    pub(super) fn new(round_trip: Duration, now: Instant) -> Silences {
        Silences {
            each: vec![Silence::default()],
            heard: 0,
            looked: now,
            suspects: false,
            short: SHORT.max((round_trip * ROUND_TRIPS).min(LONG)),
        }
    }

    /// One more channel.
    pub(super) fn add(&mut self) {
        self.each.push(Silence::default());
    }

    /// A channel is of no use any more.
    pub(super) fn leave(&mut self, channel: usize) {
        self.each[channel].is_gone = true;
    }

    /// Something has come on a channel.
    pub(super) fn hear(&mut self, channel: usize, now: Instant) {
        self.heard += 1;
        self.excuse(channel, now);
    }

    /// The server cannot be expected to have said anything: it has just been sent more, or it is we who are waited for.
    pub(super) fn excuse(&mut self, channel: usize, now: Instant) {
        let heard = self.heard;
        let it = &mut self.each[channel];
        it.since = it.since.map(|_| now);
        it.heard = heard;
    }

    /// Whether anything is asked on a channel by now.
    pub(super) fn note(&mut self, channel: usize, is_asked: bool, now: Instant) {
        let heard = self.heard;
        let it = &mut self.each[channel];
        if !is_asked {
            it.since = None;
        } else if it.since.is_none() {
            (it.since, it.heard) = (Some(now), heard);
        }
    }

    /// All are about to be judged. Time in which this program was stopped does not count.
    pub(super) fn look(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.looked);
        if passed > 3 * LOOK {
            for since in self.each.iter_mut().filter_map(|it| it.since.as_mut()) {
                *since += passed;
            }
        }
        self.looked = now;
        let mut channels = 0..self.each.len();
        self.suspects = channels.any(|at| self.of(at).is_some_and(|silent| silent >= self.short));
    }

    /// Whether any channel may hang, by what is known since all were looked at.
    pub(super) fn suspects(&self) -> bool {
        self.suspects
    }

    /// When to look again.
    pub(super) fn wake(&self) -> Option<Instant> {
        let is_awaited = |it: &Silence| it.since.is_some() && !it.is_gone;
        let awaits = self.each.iter().any(is_awaited);
        awaits.then(|| self.looked + LOOK)
    }

    /// Whether the first channel is waited for no longer, whatever the others do.
    pub(super) fn is_mute(&self) -> bool {
        self.of(0).is_some_and(|silent| silent >= PATIENCE)
    }

    /// Whether a channel hangs, by what the others do; `awaits_disk` if it is asked to bring something to its disk, among
    /// other things.
    pub(super) fn hangs(&self, channel: usize, awaits_disk: impl FnOnce() -> bool) -> bool {
        let it = &self.each[channel];
        let Some(silent) = self.of(channel).filter(|silent| *silent >= self.short) else {
            return false;
        };
        let (is_first, is_long) = (channel == 0, silent >= LONG);
        let others = self.each.iter().enumerate();
        let others = others.filter(|(other, it)| *other != channel && !it.is_gone);
        let count = others.clone().count() as u64;
        let go_on = count > 0 && self.heard - it.heard >= AHEAD * count;
        if go_on && (is_long || !is_first) && !awaits_disk() {
            return true;
        }
        // If none is heard, it is the line, or the host.
        let mut others = others.map(|(other, _)| self.of(other));
        let not_all = others.any(|silent| silent.is_none_or(|silent| silent < self.short));
        !is_first && is_long && not_all
    }

    /// How long a channel has been silent, if it is waited for.
    fn of(&self, channel: usize) -> Option<Duration> {
        let it = self.each[channel];
        let since = it.since.filter(|_| !it.is_gone)?;
        Some(self.looked.saturating_duration_since(since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Channels that are all asked something, and of which these do not answer. Returns after how many seconds which hang.
    fn judged(
        count: usize,
        silent: &[usize],
        is_fsync: bool,
        others_end: u32,
    ) -> Vec<(usize, u32)> {
        let begun = Instant::now();
        let mut silences = Silences::new(Duration::from_millis(100), begun);
        (1..count).for_each(|_| silences.add());
        let mut hanging = Vec::new();
        for second in 0..=PATIENCE.as_secs() as u32 {
            let now = begun + second * SECOND;
            silences.look(now);
            for channel in 0..count {
                let is_silent = silent.contains(&channel);
                match is_silent {
                    true => silences.note(channel, true, now),
                    false if second < others_end => {
                        silences.note(channel, true, now);
                        silences.hear(channel, now);
                    }
                    false => silences.note(channel, false, now),
                }
                let is_new = hanging.iter().all(|&(known, _)| known != channel);
                if is_new && silences.hangs(channel, || is_fsync) {
                    hanging.push((channel, second));
                    if channel > 0 {
                        silences.leave(channel);
                    }
                }
            }
            assert_eq!(silences.is_mute(), silent.contains(&0) && second >= 600);
        }
        hanging
    }

    #[test]
    fn a_further_channel_that_is_left_behind_is_done_without() {
        assert_eq!(judged(4, &[2], false, 1000), [(2, 30)]);
        assert_eq!(judged(4, &[2, 3], false, 1000), [(2, 30), (3, 30)]);
        // What it was left is all that is missing.
        assert_eq!(judged(4, &[2], false, 20), [(2, 30)]);
        assert_eq!(judged(4, &[2], false, 0), [(2, 60)]);
        assert_eq!(judged(4, &[2], true, 1000), [(2, 60)]);
    }

    #[test]
    fn the_first_is_given_up_where_the_others_have_gone_on() {
        assert_eq!(judged(3, &[0], false, 1000), [(0, 60)]);
        assert_eq!(judged(3, &[0], false, 20), [(0, 60)]);
        assert_eq!(judged(3, &[0], false, 2), []);
        assert_eq!(judged(3, &[0], true, 1000), []);
        assert_eq!(judged(1, &[0], false, 0), []);
    }

    #[test]
    fn a_host_that_is_silent_as_a_whole_is_waited_for() {
        assert_eq!(judged(3, &[0, 1, 2], false, 0), []);
    }

    #[test]
    fn what_is_slow_on_a_slow_line_does_not_hang() {
        let begun = Instant::now();
        let mut silences = Silences::new(Duration::from_secs(1), begun);
        silences.add();
        for second in 0..600 {
            let now = begun + second * SECOND;
            silences.look(now);
            (0..2).for_each(|channel| silences.note(channel, true, now));
            silences.hear(0, now);
            if second % 50 == 49 {
                silences.hear(1, now);
            }
            assert!(!silences.hangs(1, || false), "after {second} s");
        }
    }

    #[test]
    fn time_in_which_this_program_did_not_run_is_nobodys_silence() {
        let begun = Instant::now();
        let mut silences = Silences::new(Duration::ZERO, begun);
        silences.add();
        let later = begun + 1000 * SECOND;
        for now in [begun, later] {
            silences.look(now);
            silences.note(0, false, now);
            silences.note(1, true, now);
        }
        assert!(!silences.hangs(1, || false));
        let sent = later + 4 * SECOND;
        silences.excuse(1, sent);
        (0..14).for_each(|step| silences.look(later + step * 4 * SECOND));
        assert!(!silences.hangs(1, || false), "it was just sent more");
        (14..17).for_each(|step| silences.look(later + step * 4 * SECOND));
        assert!(silences.hangs(1, || false));
        assert_eq!(silences.wake(), Some(later + 16 * 4 * SECOND + LOOK));
    }
}
