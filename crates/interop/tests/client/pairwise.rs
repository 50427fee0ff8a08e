//! Pairwise coverage: few combinations in which any two values of any two dimensions meet.

use std::collections::BTreeSet;

/// A value of one dimension and a value of another: (dimension, value), the lower dimension first.
pub type Pair = [(usize, usize); 2];

/// All pairs of values of any two of these dimensions, given by their sizes.
pub fn all_pairs<const N: usize>(sizes: [usize; N]) -> BTreeSet<Pair> {
    let mut pairs = BTreeSet::new();
    for high in 0..N {
        for low in 0..high {
            for a in 0..sizes[low] {
                pairs.extend((0..sizes[high]).map(|b| [(low, a), (high, b)]));
            }
        }
    }
    pairs
}

/// The pairs of values that meet in this combination.
pub fn pairs_of<const N: usize>(combination: [usize; N]) -> impl Iterator<Item = Pair> {
    (0..N).flat_map(move |high| {
        (0..high).map(move |low| [(low, combination[low]), (high, combination[high])])
    })
}

/// Combinations in which every pair of [`all_pairs`] meets, one value of each dimension in each.
///
/// Greedy: a combination begins with a pair that has not met yet; then each dimension in turn takes the value that has
/// most such pairs with those already there, and of equals the one least used so far.
///
/// # Panics
/// With fewer than two dimensions there are no pairs, and with an empty one no combinations.
pub fn combinations<const N: usize>(sizes: [usize; N]) -> Vec<[usize; N]> {
    assert!(N >= 2 && sizes.iter().all(|size| *size > 0), "{sizes:?}");
    let mut missing = all_pairs(sizes);
    let mut used = sizes.map(|size| vec![0_usize; size]);
    let mut found = Vec::new();
    while let Some(&[(low, a), (high, b)]) = missing.first() {
        let mut fixed = vec![(low, a), (high, b)];
        for dimension in (0..N).filter(|dimension| *dimension != low && *dimension != high) {
            let gain = |value: usize| {
                let new =
                    |other: &&(usize, usize)| missing.contains(&pair(**other, (dimension, value)));
                fixed.iter().filter(new).count()
            };
            let best = (0..sizes[dimension])
                .min_by_key(|&value| (usize::MAX - gain(value), used[dimension][value]));
            fixed.push((dimension, best.expect("no dimension is empty")));
        }
        let mut combination = [0; N];
        for (dimension, value) in fixed {
            combination[dimension] = value;
            used[dimension][value] += 1;
        }
        pairs_of(combination).for_each(|pair| {
            missing.remove(&pair);
        });
        found.push(combination);
    }
    found
}

fn pair(one: (usize, usize), other: (usize, usize)) -> Pair {
    [one.min(other), one.max(other)]
}
