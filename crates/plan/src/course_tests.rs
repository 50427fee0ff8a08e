#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;
use Outcome::{Done, Failed, LeftOut, NotReached, Running, StoppedBy, Waiting};

fn graph(after: &[&[usize]]) -> Graph {
    Graph::new(after.iter().map(|after| after.to_vec()).collect()).unwrap()
}

#[test]
fn a_step_that_fails_stops_what_comes_after_it_and_nothing_else() {
    let graph = graph(&[&[], &[0], &[1], &[], &[3]]);
    let mut course = Course::new(&graph, &[true; 5]);
    assert_eq!(course.begin_next(), Some(0));
    assert_eq!(course.begin_next(), Some(3));
    assert_eq!(course.begin_next(), None, "all others wait");
    course.end(0, false);
    assert_eq!(
        course.outcomes(),
        [Failed, StoppedBy(0), StoppedBy(0), Running, Waiting]
    );
    assert_eq!(course.begin_next(), None);
    course.end(3, true);
    assert_eq!(course.begin_next(), Some(4));
    course.end(4, true);
    course.end(4, false);
    assert_eq!(
        course.outcomes(),
        [Failed, StoppedBy(0), StoppedBy(0), Done, Done]
    );
}

#[test]
fn a_step_that_is_left_out_keeps_nobody_waiting_but_the_order_is_kept_across_it() {
    let graph = graph(&[&[], &[0], &[1]]);
    let mut course = Course::new(&graph, &[true, false, true]);
    assert_eq!(course.begin_next(), Some(0));
    assert_eq!(course.begin_next(), None);
    course.end(0, false);
    assert_eq!(course.outcomes(), [Failed, LeftOut, StoppedBy(0)]);
    let mut course = Course::new(&graph, &[false, false, true]);
    assert_eq!(course.begin_next(), Some(2));
}

#[test]
fn after_a_halt_nothing_begins_and_what_runs_still_ends() {
    let graph = graph(&[&[], &[], &[0]]);
    let mut course = Course::new(&graph, &[true; 3]);
    course.begin_next();
    course.halt();
    assert_eq!(course.begin_next(), None);
    course.end(0, false);
    assert_eq!(course.outcomes(), [Failed, NotReached, NotReached]);
}

/// Each step comes after some before it: there is an order.
fn edges() -> impl Strategy<Value = Vec<Vec<usize>>> {
    let choice = proptest::collection::vec(proptest::bits::u8::ANY, 1..9);
    choice.prop_map(|masks| {
        let masks = masks.into_iter().enumerate();
        masks
            .map(|(step, mask)| {
                (0..step)
                    .filter(|earlier| mask >> earlier & 1 == 1)
                    .collect()
            })
            .collect()
    })
}

proptest! {
    #[test]
    fn each_step_runs_if_and_only_if_all_before_it_ended_well(
        after in edges(),
        fails in proptest::bits::u16::ANY,
        left_out in proptest::bits::u16::ANY,
        ends in proptest::collection::vec(any::<proptest::sample::Index>(), 16),
        at_once in 1usize..4,
    ) {
        let steps = after.len();
        let graph = Graph::new(after).unwrap();
        let chosen: Vec<bool> = (0..steps).map(|step| left_out >> step & 1 == 0).collect();
        let fails = |step: usize| fails >> step & 1 == 1;
        let mut course = Course::new(&graph, &chosen);
        let (mut running, mut ended) = (Vec::new(), Vec::new());
        for index in ends {
            while running.len() < at_once && let Some(step) = course.begin_next() {
                for earlier in graph.all_after(step) {
                    prop_assert!(!chosen[earlier] || ended.contains(&earlier), "{earlier} before {step}");
                }
                running.push(step);
            }
            if running.is_empty() {
                break;
            }
            let step = running.remove(index.index(running.len()));
            course.end(step, !fails(step));
            ended.push(step);
        }
        for step in 0..steps {
            let is_spared = |earlier: &usize| !chosen[*earlier] || !fails(*earlier);
            let runs = chosen[step] && graph.all_after(step).iter().all(is_spared);
            prop_assert_eq!(ended.contains(&step), runs);
            let outcome = course.outcomes()[step];
            match (chosen[step], runs, fails(step)) {
                (false, ..) => prop_assert_eq!(outcome, LeftOut),
                (_, true, true) => prop_assert_eq!(outcome, Failed),
                (_, true, false) => prop_assert_eq!(outcome, Done),
                (_, false, _) => {
                    let StoppedBy(by) = outcome else {
                        return Err(TestCaseError::fail(format!("{outcome:?}")));
                    };
                    prop_assert_eq!(course.outcomes()[by], Failed);
                    prop_assert!(graph.all_after(step).contains(&by));
                }
            }
        }
    }
}
