//! Names and lists at random, the same for the same seed.

/// SplitMix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((x ^ (x >> 31)) % bound as u64) as usize
    }

    pub(crate) fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }

    /// A number as it may stand in a name, padded or not.
    pub(crate) fn number(&mut self, bound: usize) -> String {
        let value = self.below(bound);
        match self.below(4) {
            0 => format!("{value:02}"),
            1 => format!("{value:03}"),
            _ => value.to_string(),
        }
    }

    /// Names of a few families, with up to four numbers each.
    pub(crate) fn names(&mut self) -> Vec<String> {
        let dimensions = 1 + self.below(4);
        let bound = [3, 12, 120][self.below(3)];
        let is_mixed = self.below(3) == 0;
        let count = self.below(60) + 1;
        (0..count)
            .map(|_| {
                let mut name = String::from(self.pick(&["n", "n", "n", "n-", "web.", ""]));
                for dimension in 0..dimensions {
                    if dimension > 0 {
                        name.push_str(self.pick(&["-", "-", "-", "x"]));
                    }
                    match is_mixed {
                        true => name.push_str(&self.number(bound)),
                        false => name.push_str(&self.below(bound).to_string()),
                    }
                }
                name.push_str(self.pick(&["", "", "", ".lan", "-ib"]));
                name
            })
            .collect()
    }
}
