use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

proptest! {
    /// Against the obvious implementation: a map of keys, searched for its smallest.
    #[test]
    fn behaves_like_a_map_searched_for_its_smallest(
        steps in prop::collection::vec((0u32..20, prop::option::of(0u8..40)), 0..300),
    ) {
        let mut schedule = Schedule::new(20);
        let mut naive = BTreeMap::new();
        for (index, key) in steps {
            match key {
                Some(key) => {
                    schedule.set(index, key);
                    naive.insert(index, key);
                }
                None => {
                    schedule.remove(index);
                    naive.remove(&index);
                }
            }
            let smallest = naive.iter().map(|(index, key)| (*key, *index)).min();
            prop_assert_eq!(schedule.first(), smallest);
            prop_assert_eq!(schedule.heap.len(), naive.len());
        }
    }
}
