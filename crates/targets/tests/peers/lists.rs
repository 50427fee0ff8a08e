//! Lists at random: ranges, set operations, groups, globs.

use crate::random::Random;

impl Random {
    /// `3`, `1-7`, `01-12`, `0-10/2`, with commas between them.
    pub(crate) fn ranges(&mut self) -> String {
        let parts = 1 + self.below(3);
        let part = |random: &mut Random| {
            let (first, len) = (random.below(20), random.below(12));
            let width = random.below(4);
            let padded = |value: usize| match width {
                0 => format!("{value:03}"),
                1 if first + len < 100 => format!("{value:02}"),
                _ => value.to_string(),
            };
            match random.below(4) {
                0 => padded(first),
                1 => format!(
                    "{}-{}/{}",
                    padded(first),
                    padded(first + len),
                    1 + random.below(4)
                ),
                _ => format!("{}-{}", padded(first), padded(first + len)),
            }
        };
        (0..parts).map(|_| part(self)).collect::<Vec<_>>().join(",")
    }

    /// A name with up to three numbers, in brackets or not.
    pub(crate) fn spec(&mut self) -> String {
        let mut spec = String::from(self.pick(&["n", "n", "n", "m"]));
        for dimension in 0..1 + [0, 0, 0, 1, 2][self.below(5)] {
            if dimension > 0 {
                spec.push_str(self.pick(&["-", "-", "x"]));
            }
            match self.below(4) {
                0 => spec.push_str(&self.number(20)),
                _ => spec.push_str(&format!("[{}]", self.ranges())),
            }
        }
        spec.push_str(self.pick(&["", "", "", ".lan"]));
        spec
    }

    /// A name with one number, for groups, which grow by each other.
    pub(crate) fn small_spec(&mut self) -> String {
        let (prefix, suffix) = (
            self.pick(&["n", "n", "m", "n1-"]),
            self.pick(&["", "", ".lan"]),
        );
        format!("{prefix}[{}]{suffix}", self.ranges())
    }

    /// Operands with set operations between them.
    pub(crate) fn list(&mut self, operand: &mut dyn FnMut(&mut Random) -> String) -> String {
        let mut list = operand(self);
        for _ in 0..self.below(6) {
            list.push_str(self.pick(&[",", ",", ",", "!", "&", "^", ", ", "! ", " & "]));
            list.push_str(&operand(self));
        }
        list
    }

    /// A list with something wrong in it, most of the time.
    pub(crate) fn broken(&mut self) -> String {
        let mut list = self.list(&mut Random::spec);
        for _ in 0..1 + self.below(2) {
            let at = self.below(list.len() + 1);
            match self.below(3) {
                0 => list.insert_str(
                    at,
                    self.pick(&["[", "]", "-", "/", "!", "&", "[]", "x", "0"]),
                ),
                1 if at < list.len() => drop(list.remove(at)),
                _ => list.truncate(at),
            }
        }
        list
    }
}
