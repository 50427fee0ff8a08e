//! Whatever a plan file says: it has an order that goes by its names, or is refused with a line that it has.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sshoal_plan::{Course, Outcome, Plan};

fuzz_target!(|input: (&str, u64)| {
    let (text, fails) = input;
    let plan = match Plan::parse(text) {
        Ok(plan) => plan,
        Err(error) => {
            assert!((1..=text.lines().count() + 1).contains(&error.line));
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let (graph, steps) = (plan.graph(), plan.steps());
    let mut place = vec![usize::MAX; steps.len()];
    for (at, &step) in graph.order().iter().enumerate() {
        place[step] = at;
    }
    for step in 0..steps.len() {
        assert_ne!(place[step], usize::MAX);
        assert!(graph.after(step).iter().all(|&earlier| place[earlier] < place[step]));
        assert_eq!(plan.find(&steps[step].name), Ok(step));
    }
    let mut course = Course::new(graph, &vec![true; steps.len()]);
    while let Some(step) = course.begin_next() {
        course.end(step, fails >> (step % 64) & 1 == 0);
    }
    let is_settled = |outcome: &Outcome| {
        matches!(outcome, Outcome::Done | Outcome::Failed | Outcome::StoppedBy(_))
    };
    assert!(course.outcomes().iter().all(is_settled));
});
