#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;

/// Steps that come after any others, themselves among them.
fn edges() -> impl Strategy<Value = Vec<Vec<usize>>> {
    (1usize..9).prop_flat_map(|steps| {
        let after = proptest::collection::btree_set(0..steps, 0..3);
        proptest::collection::vec(after, steps).prop_map(|after| {
            let after = after.into_iter();
            after.map(|after| after.into_iter().collect()).collect()
        })
    })
}

/// The same question, answered without thought (Warshall): `[a][b]` if a waits for b, however indirectly.
fn waits(after: &[Vec<usize>]) -> Vec<Vec<bool>> {
    let steps = after.len();
    let mut waits: Vec<Vec<bool>> = (0..steps)
        .map(|step| {
            (0..steps)
                .map(|other| after[step].contains(&other))
                .collect()
        })
        .collect();
    for middle in 0..steps {
        for from in 0..steps {
            for to in 0..steps {
                waits[from][to] |= waits[from][middle] && waits[middle][to];
            }
        }
    }
    waits
}

#[test]
fn steps_keep_the_order_of_the_file_where_nothing_else_is_said() {
    let graph = Graph::new(vec![vec![2], vec![], vec![], vec![2]]).unwrap();
    assert_eq!(graph.order(), [1, 2, 0, 3]);
    assert_eq!(graph.after(3), [2]);
    assert_eq!(graph.before(2), [0, 3]);
}

#[test]
fn a_cycle_begins_with_the_first_step_of_it() {
    // The first step waits for one of the cycle, and is none of it.
    let after = vec![vec![1], vec![3], vec![1], vec![2]];
    assert_eq!(Graph::new(after), Err(Cycle(vec![1, 3, 2])));
}

proptest! {
    #[test]
    fn there_is_an_order_if_and_only_if_no_step_waits_for_itself(after in edges()) {
        let waits = waits(&after);
        let is_cyclic = (0..after.len()).any(|step| waits[step][step]);
        match Graph::new(after.clone()) {
            Ok(graph) => {
                prop_assert!(!is_cyclic);
                let mut sorted = graph.order().to_vec();
                sorted.sort_unstable();
                prop_assert!(sorted.into_iter().eq(0..after.len()), "each step once");
                let place = |step| graph.order().iter().position(|&it| it == step);
                for (step, earlier) in after.iter().enumerate() {
                    prop_assert!(earlier.iter().all(|&earlier| place(earlier) < place(step)));
                }
            }
            Err(Cycle(path)) => {
                prop_assert!(is_cyclic);
                prop_assert_eq!(path.iter().min(), path.first());
                let next = path.iter().cycle().skip(1);
                for (step, earlier) in path.iter().zip(next) {
                    prop_assert!(after[*step].contains(earlier), "{:?}", path);
                }
                let mut steps = path.clone();
                steps.sort_unstable();
                steps.dedup();
                prop_assert_eq!(steps.len(), path.len());
            }
        }
    }

    #[test]
    fn all_that_waits_is_found_in_both_directions(after in edges()) {
        let waits = waits(&after);
        if let Ok(graph) = Graph::new(after) {
            let order = || graph.order().iter().copied();
            for step in order() {
                let earlier: Vec<usize> = order().filter(|&it| waits[step][it]).collect();
                prop_assert_eq!(graph.all_after(step), earlier);
                let later: Vec<usize> = order().filter(|&it| waits[it][step]).collect();
                prop_assert_eq!(graph.all_before(step), later);
            }
        }
    }
}
