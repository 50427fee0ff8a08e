use proptest::prelude::*;

use crate::pairwise::{all_pairs, combinations, pairs_of};

#[test]
fn pairs_are_counted_once_each() {
    assert_eq!(all_pairs([2, 3]).len(), 6);
    assert_eq!(all_pairs([2, 3, 4]).len(), 6 + 8 + 12);
    assert_eq!(
        pairs_of([7, 8, 9]).collect::<Vec<_>>(),
        [[(0, 7), (1, 8)], [(0, 7), (2, 9)], [(1, 8), (2, 9)],]
    );
}

#[test]
fn two_dimensions_are_a_table() {
    let mut found = combinations([2, 2]);
    found.sort_unstable();
    assert_eq!(found, [[0, 0], [0, 1], [1, 0], [1, 1]]);
}

#[test]
fn a_matrix_of_logins_is_little_larger_than_its_two_largest_dimensions() {
    // 12 key exchanges, 21 ciphers with their MACs, 6 host keys, 6 user keys, guessed or not.
    let found = combinations([12, 21, 6, 6, 2]);
    assert!(
        (12 * 21..12 * 21 + 12).contains(&found.len()),
        "{}",
        found.len()
    );
}

proptest! {
    #[test]
    fn every_pair_meets_and_no_combination_is_idle(sizes in proptest::array::uniform5(1_usize..8)) {
        let mut missing = all_pairs(sizes);
        for combination in combinations(sizes) {
            for (value, size) in combination.iter().zip(sizes) {
                prop_assert!(*value < size);
            }
            let before = missing.len();
            for pair in pairs_of(combination) {
                missing.remove(&pair);
            }
            prop_assert!(missing.len() < before, "{combination:?} adds nothing");
        }
        prop_assert!(missing.is_empty(), "{missing:?}");
    }
}
