//! How often control groups were throttled while a host was measured. Their counters (nr_throttled of cpu.stat, cgroups(7)) go back to when the
//! groups were made: what they grew by counts.

use std::collections::HashMap;

/// The counters of each group.
#[derive(Default)]
pub(super) struct Throttling {
    before: HashMap<String, f64>,
    after: HashMap<String, f64>,
}

impl Throttling {
    /// Takes "COUNT GROUP": the first look at a group counts.
    pub(super) fn take_before(&mut self, line: &str) {
        if let Some((group, count)) = counter(line) {
            self.before.entry(group).or_insert(count);
        }
    }

    /// The same, of which the last look at a group counts.
    pub(super) fn take_after(&mut self, line: &str) {
        self.after.extend(counter(line));
    }

    /// How often that group was throttled meanwhile that was so most often; `None` if it is not known.
    pub(super) fn meanwhile(&self) -> Option<f64> {
        let grown = |(group, after): (&String, &f64)| match self.before.get(group) {
            Some(before) => Some(after - before),
            // It may have been throttled at any time since it was made.
            None => (*after == 0.0).then_some(0.0),
        };
        let each: Vec<Option<f64>> = self.after.iter().map(grown).collect();
        let most = each.iter().flatten().copied().reduce(f64::max)?;
        (most > 0.0 || each.iter().all(Option::is_some)).then_some(most)
    }
}

fn counter(line: &str) -> Option<(String, f64)> {
    let (count, group) = line.split_once(' ')?;
    let count: u32 = count.parse().ok()?;
    Some((group.to_owned(), f64::from(count)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(before: &[&str], after: &[&str]) -> Option<f64> {
        let mut throttling = Throttling::default();
        before.iter().for_each(|it| throttling.take_before(it));
        after.iter().for_each(|it| throttling.take_after(it));
        throttling.meanwhile()
    }

    #[test]
    fn what_a_counter_grew_by_between_the_first_look_and_the_last_counts() {
        assert_eq!(of(&["7 /a", "9 /a"], &["8 /a", "10 /a"]), Some(3.0));
        assert_eq!(of(&["7 /a", "0 /b c"], &["8 /a", "5 /b c"]), Some(5.0));
        // Long ago.
        assert_eq!(of(&["7 /a"], &["7 /a"]), Some(0.0));
    }

    #[test]
    fn of_a_group_that_was_not_seen_before_it_is_not_known() {
        assert_eq!(of(&["7 /a"], &["7 /a", "3 /b"]), None);
        assert_eq!(of(&["7 /a"], &["8 /a", "3 /b"]), Some(1.0));
        // It never was.
        assert_eq!(of(&["7 /a"], &["7 /a", "0 /b"]), Some(0.0));
        assert_eq!(of(&["7 /a"], &[]), None);
        assert_eq!(of(&[], &["much /a", "1", ""]), None);
    }
}
