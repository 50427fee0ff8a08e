//! What came of a matrix of logins, as a table.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use crate::axes::TITLES;
use crate::pairwise::{all_pairs, pairs_of};

/// Failed cells that a message describes at most.
const SHOWN: usize = 10;

/// Cells tried so far.
pub struct Tally {
    labels: [Vec<String>; 5],
    passed: Vec<([usize; 5], Duration)>,
    failed: Vec<([usize; 5], String)>,
}

impl Tally {
    pub fn new(labels: [Vec<String>; 5]) -> Tally {
        Tally {
            labels,
            passed: Vec::new(),
            failed: Vec::new(),
        }
    }

    /// A login passed in so much time, or failed for that reason.
    pub fn note(&mut self, cell: [usize; 5], result: Result<Duration, String>) {
        match result {
            Ok(took) => self.passed.push((cell, took)),
            Err(why) => self.failed.push((cell, why)),
        }
    }

    /// A line for each value: in how many cells it passed and in what time on average, in how many it failed.
    pub fn table(&self) -> String {
        let width = self.labels.iter().flatten().map(String::len).max();
        let width = width.unwrap_or_default();
        let mut text = String::new();
        for (axis, labels) in self.labels.iter().enumerate() {
            for (value, label) in labels.iter().enumerate() {
                let title = if value == 0 { TITLES[axis] } else { "" };
                let (passed, took) = self.passed_with(axis, value);
                let mean = took.as_millis() / u128::from(passed.max(1));
                let failed = self
                    .failed
                    .iter()
                    .filter(|(cell, _)| cell[axis] == value)
                    .count();
                // Writing to a String does not fail.
                let _ = write!(
                    text,
                    "  {title:<14}  {label:<width$}  {passed:>4}  {mean:>5} ms"
                );
                let _ = match failed {
                    0 => writeln!(text),
                    _ => writeln!(text, "  FAILED {failed}"),
                };
            }
        }
        text
    }

    fn passed_with(&self, axis: usize, value: usize) -> (u32, Duration) {
        let with = self.passed.iter().filter(|(cell, _)| cell[axis] == value);
        with.fold((0, Duration::ZERO), |(count, sum), (_, took)| {
            (count + 1, sum + *took)
        })
    }

    /// "252 of 252 cells, 1,204 of 1,204 pairs".
    pub fn summary(&self) -> String {
        let pairs = all_pairs(self.sizes()).len();
        format!(
            "{} of {} cells, {} of {pairs} pairs",
            self.passed.len(),
            self.passed.len() + self.failed.len(),
            pairs - self.missing().len(),
        )
    }

    /// What is wrong: cells that failed, pairs of values that never passed together.
    pub fn problems(&self) -> Vec<String> {
        let mut problems: Vec<String> = self
            .failed
            .iter()
            .take(SHOWN)
            .map(|(cell, why)| format!("{}: {why}", self.describe(*cell)))
            .collect();
        if self.failed.len() > SHOWN {
            problems.push(format!("and {} more", self.failed.len() - SHOWN));
        }
        let missing = self.missing();
        problems.extend(missing.iter().take(SHOWN).map(|pair| {
            let [one, other] = pair.map(|(axis, value)| &self.labels[axis][value]);
            format!("{one} and {other} never passed together")
        }));
        problems
    }

    fn describe(&self, cell: [usize; 5]) -> String {
        let labels: Vec<&str> = cell
            .iter()
            .zip(&self.labels)
            .map(|(value, labels)| labels[*value].as_str())
            .collect();
        labels.join(", ")
    }

    fn missing(&self) -> BTreeSet<[(usize, usize); 2]> {
        let mut missing = all_pairs(self.sizes());
        for pair in self.passed.iter().flat_map(|(cell, _)| pairs_of(*cell)) {
            missing.remove(&pair);
        }
        missing
    }

    fn sizes(&self) -> [usize; 5] {
        self.labels.each_ref().map(Vec::len)
    }
}

#[test]
fn what_failed_or_was_left_out_is_a_problem() {
    let labels = [2, 2, 1, 1, 1].map(|size| (0..size).map(|value| format!("v{value}")).collect());
    let took = Duration::from_millis(3);
    let mut tally = Tally::new(labels);
    tally.note([0, 0, 0, 0, 0], Ok(took));
    tally.note([0, 1, 0, 0, 0], Ok(took));
    tally.note([1, 0, 0, 0, 0], Ok(took));
    assert_eq!(tally.problems(), ["v1 and v1 never passed together"]);
    tally.note([1, 1, 0, 0, 0], Err("refused".to_owned()));
    assert_eq!(
        tally.problems(),
        [
            "v1, v1, v0, v0, v0: refused",
            "v1 and v1 never passed together"
        ]
    );
    assert!(tally.table().contains("FAILED 1"), "{}", tally.table());
    tally.note([1, 1, 0, 0, 0], Ok(took));
    assert_eq!(tally.passed_with(1, 0), (2, 2 * took));
    assert_eq!(tally.missing().len(), 0);
    assert_eq!(tally.summary(), "4 of 5 cells, 19 of 19 pairs");
}
