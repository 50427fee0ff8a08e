//! A line is simulated: octets take half a round trip, then one after the other their time, then half a round trip back.

use std::collections::VecDeque;
use std::time::Duration;

use super::*;

const REQUEST: usize = 128 * 1024;

/// A line and the program at its end.
struct Line {
    round_trip: Duration,
    /// Octets a second.
    rate: f64,
    /// When it has done all that it was sent.
    done: Duration,
    answers: VecDeque<(Duration, Sent)>,
    /// Most octets that have waited for the slowest part of it.
    waited: usize,
}

impl Line {
    fn new(milliseconds: u64, megabytes: f64) -> Line {
        Line {
            round_trip: Duration::from_millis(milliseconds),
            rate: megabytes * 1e6,
            done: Duration::ZERO,
            answers: VecDeque::new(),
            waited: 0,
        }
    }

    fn send(&mut self, now: Duration, sent: Sent) {
        let arrived = now + self.round_trip / 2;
        let waits = self.done.saturating_sub(arrived).as_secs_f64() * self.rate;
        self.waited = self.waited.max(waits as usize);
        self.done = self.done.max(arrived) + Duration::from_secs_f64(REQUEST as f64 / self.rate);
        self.answers
            .push_back((self.done + self.round_trip / 2, sent));
    }

    /// Sends for so long; returns how many octets have been answered.
    fn run(&mut self, flow: &mut Flow, from: Duration, until: Duration) -> usize {
        let mut now = from;
        let mut answered = 0;
        while now < until {
            while flow.has_room() {
                let sent = flow.begin(now, REQUEST);
                self.send(now, sent);
            }
            let (at, sent) = self.answers.pop_front().expect("something is under way");
            now = at;
            flow.end(now, sent);
            answered += REQUEST;
        }
        answered
    }
}

fn second(number: u64) -> Duration {
    Duration::from_secs(number)
}

#[test]
fn a_long_way_is_filled() {
    let mut line = Line::new(100, 40.0);
    let mut flow = Flow::default();
    line.run(&mut flow, Duration::ZERO, second(2));
    let answered = line.run(&mut flow, second(2), second(4));
    assert!(answered as f64 > 0.95 * 2.0 * 40e6, "{answered}");
    // What the line holds is 4 MB.
    assert!(flow.limit < 5_000_000, "{}", flow.limit);
}

#[test]
fn little_waits_at_the_end_of_a_way() {
    for (milliseconds, megabytes) in [(1, 500.0), (10, 100.0), (100, 10.0), (100, 40.0)] {
        let mut line = Line::new(milliseconds, megabytes);
        let mut flow = Flow::default();
        line.run(&mut flow, Duration::ZERO, second(4));
        let waited = line.waited;
        assert!(
            waited <= WAITING + 2 * REQUEST,
            "{milliseconds} ms: {waited}"
        );
    }
}

#[test]
fn a_line_that_becomes_slow_gets_less() {
    let mut line = Line::new(50, 80.0);
    let mut flow = Flow::default();
    line.run(&mut flow, Duration::ZERO, second(2));
    let before = flow.limit;
    line.rate = 5e6;
    line.run(&mut flow, second(2), second(6));
    assert!(flow.limit < before / 2, "{before}, {}", flow.limit);
    line.rate = 80e6;
    line.run(&mut flow, second(6), second(8));
    assert!(flow.limit > before * 9 / 10, "{before}, {}", flow.limit);
}

#[test]
fn one_request_is_always_allowed() {
    let mut flow = Flow::default();
    let mut now = Duration::ZERO;
    let first = flow.begin(now, 0);
    now += Duration::from_micros(10);
    flow.end(now, first);
    for _ in 0..100 {
        assert!(flow.has_room());
        let sent = flow.begin(now, REQUEST);
        now += second(10);
        flow.end(now, sent);
    }
    assert_eq!(flow.under_way, 0);
}

#[test]
fn the_limit_has_a_limit() {
    let mut flow = Flow::default();
    for _ in 0..10_000 {
        let sent = flow.begin(Duration::ZERO, REQUEST);
        flow.end(Duration::ZERO, sent);
        let sent: Vec<Sent> = (0..64)
            .map(|_| flow.begin(Duration::ZERO, REQUEST))
            .collect();
        sent.into_iter()
            .for_each(|sent| flow.end(Duration::ZERO, sent));
    }
    assert!(flow.limit <= MOST, "{}", flow.limit);
}
