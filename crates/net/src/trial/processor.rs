//! CPU time of a process, as its kernel accounts for it.

use std::fs;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Clock ticks a second in /proc: USER_HZ, which Linux has fixed at 100 for programs (proc(5), time(7)).
const TICK: Duration = Duration::from_millis(10);

/// Whose CPU time.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Processor {
    /// This process's, all its threads.
    Own,
    /// Another one's of this machine.
    Process(u32),
}

impl Processor {
    pub(super) fn own() -> Processor {
        Processor::Own
    }

    pub(super) fn of(process: u32) -> Processor {
        Processor::Process(process)
    }

    /// How much it has had; `None` where it cannot be read.
    pub(super) fn time(self) -> Option<Duration> {
        match self {
            Processor::Own => {
                let time = clock_gettime(ClockId::ProcessCPUTime);
                let seconds = u64::try_from(time.tv_sec).ok()?;
                Some(Duration::new(seconds, u32::try_from(time.tv_nsec).ok()?))
            }
            Processor::Process(process) => {
                let read = |name: &str| fs::read_to_string(format!("/proc/{process}/{name}"));
                let exact = read("schedstat").ok();
                let ticks = read("stat").ok();
                parsed(&exact.unwrap_or_default(), &ticks.unwrap_or_default())
            }
        }
    }
}

/// What /proc/PID/schedstat says, to the nanosecond; or else /proc/PID/stat, to the tick (proc(5)).
pub(super) fn parsed(schedstat: &str, stat: &str) -> Option<Duration> {
    let words: Vec<&str> = schedstat.split_whitespace().collect();
    if let [nanoseconds, _, _] = words[..]
        && let Some(nanoseconds) = nanoseconds.parse().ok().filter(|&time: &u64| time > 0)
    {
        return Some(Duration::from_nanos(nanoseconds));
    }
    // The name in parentheses may hold anything; utime and stime are the fields 14 and 15.
    let (_, behind_name) = stat.rsplit_once(')')?;
    let mut fields = behind_name.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u32>().ok();
    let sum = ticks()?.checked_add(ticks()?)?;
    Some(TICK * sum)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const STAT: &str = "17 (sshd: a) b) S 1 17 17 0 -1 4194560 1 0 0 0 25 17 3 4 20 0 1 0 99";

    #[test]
    fn nanoseconds_come_before_ticks() {
        assert_eq!(parsed("2500 17 3", STAT), Some(Duration::from_nanos(2500)));
        assert_eq!(parsed("", STAT), Some(Duration::from_millis(420)));
        assert_eq!(parsed("0 0 0", STAT), Some(Duration::from_millis(420)));
        assert_eq!(parsed("", ""), None);
        assert_eq!(parsed("x", "17 (sshd) S 1"), None);
    }

    #[test]
    fn this_process_and_its_number_agree() {
        // Something to account for.
        let spun = (0..3_000_000u64).fold(1, |sum: u64, n| std::hint::black_box(sum ^ n));
        assert!(spun < u64::MAX);
        let own = Processor::own().time().unwrap();
        assert!(own > Duration::ZERO);
        assert!(Processor::of(std::process::id()).time().is_some());
    }
}
