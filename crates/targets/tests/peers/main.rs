//! Folding, expanding and set operations against ClusterShell's own (`NodeSet`, from PyPI, in target/venv), and
//! genders against Debian's `nodeattr`.
#![allow(clippy::unwrap_used)]

mod differences;
mod genders;
mod groups;
mod lists;
mod oracle;
mod random;

use std::collections::BTreeSet;

use serde_json::json;
use sshoal_targets::{Expansion, HostList, Sources, fold};

use oracle::{Answer, Oracle};
use random::Random;

/// The names of a list, or the message why there are none.
pub(crate) fn ours(list: &str, sources: Option<Sources>) -> Result<Vec<String>, String> {
    let list = HostList::parse(list).map_err(|error| error.to_string())?;
    match sources.unwrap_or_default().expand(&list) {
        Ok(Expansion::Targets(targets)) => {
            Ok(targets.into_iter().map(|target| target.name).collect())
        }
        Ok(Expansion::Needs(needs)) => Err(format!("{needs:?}")),
        Err(error) => Err(error.to_string()),
    }
}

/// Fails unless both have the same hosts and write them the same way, or both refuse.
pub(crate) fn compare(case: &str, ours: Result<Vec<String>, String>, theirs: Answer) {
    match (ours, theirs) {
        (Ok(ours), Answer::Hosts { names, folded }) => {
            let set: BTreeSet<&String> = ours.iter().collect();
            assert_eq!(set.len(), ours.len(), "twice: {case}");
            assert_eq!(set, names.iter().collect(), "{case}");
            assert_eq!(fold(&ours), folded, "{case}");
        }
        (Err(_), Answer::Error(_)) => {}
        (ours, theirs) => panic!("{case}\nhere: {ours:?}\nthere: {theirs:?}"),
    }
}

/// Names at random, folded to the same text.
#[test]
fn names_fold_as_nodeset_folds_them() {
    let mut oracle = Oracle::start();
    let mut random = Random(1);
    for case in 0..3_000 {
        let names = random.names();
        assert_eq!(fold(&names), oracle.fold(&names), "case {case}: {names:?}");
    }
}

/// Grids with holes, where what is united first decides the outcome.
#[test]
fn grids_fold_as_nodeset_folds_them() {
    let mut oracle = Oracle::start();
    let mut random = Random(2);
    for case in 0..500 {
        let (rows, columns, planes) = (
            1 + random.below(14),
            1 + random.below(14),
            1 + random.below(3),
        );
        let share = 1 + random.below(10);
        let mut names = Vec::new();
        for cell in 0..rows * columns * planes {
            let (row, column, plane) = (cell % rows, cell / rows % columns, cell / rows / columns);
            if random.below(10) < share {
                names.push(format!("r{row}c{column}p{plane}"));
            }
        }
        let folded = fold(&names);
        assert_eq!(folded, oracle.fold(&names), "case {case}: {names:?}");
        let expanded: BTreeSet<String> = ours(&folded, None).unwrap().into_iter().collect();
        assert_eq!(expanded, names.into_iter().collect(), "case {case}");
    }
}

#[test]
fn lists_expand_as_nodeset_expands_them() {
    let mut oracle = Oracle::start();
    let mut random = Random(3);
    for _ in 0..4_000 {
        let list = random.list(&mut Random::spec);
        let theirs = oracle.expand(&json!({ "expand": list }));
        assert!(matches!(theirs, Answer::Hosts { .. }), "{list}: {theirs:?}");
        compare(&list, ours(&list, None), theirs);
    }
}

/// Lists with a slip of the pen: both take them the same way, or both refuse them.
#[test]
fn broken_lists_are_refused_as_nodeset_refuses_them() {
    let mut oracle = Oracle::start();
    let mut random = Random(4);
    let mut refused = 0;
    for _ in 0..3_000 {
        let list = random.broken();
        if is_known_difference(&list) {
            continue;
        }
        let theirs = oracle.expand(&json!({ "expand": list }));
        refused += usize::from(matches!(theirs, Answer::Error(_)));
        compare(&list, ours(&list, None), theirs);
    }
    assert!(refused > 300, "only {refused} lists were refused");
}

/// What `differences.rs` explains: empty operands, signs, digits and brackets beside brackets, spaces.
fn is_known_difference(list: &str) -> bool {
    let mut previous = ' ';
    for character in list.chars() {
        let pair = (previous, character);
        if matches!(
            pair,
            (']', '[' | '0'..='9') | ('0'..='9', '[') | ('[' | ',' | '-', '-') | ('/', '-')
        ) {
            return true;
        }
        previous = character;
    }
    let is_odd_range = |part: &str| part.matches('-').count() > 1 || part.contains("-00");
    if list
        .split(['[', ']'])
        .skip(1)
        .step_by(2)
        .flat_map(|inside| inside.split(','))
        .any(is_odd_range)
    {
        return true;
    }
    let is_odd = |operand: &str| {
        let operand = operand.trim();
        operand.is_empty() || operand.starts_with('-') || operand.contains(['/', ' '])
    };
    outside_brackets(list)
        .split([',', '!', '&', '^'])
        .any(is_odd)
}

fn outside_brackets(list: &str) -> String {
    let mut depth = 0i32;
    let mut outside = String::new();
    for character in list.chars() {
        match character {
            '[' => depth += 1,
            ']' => depth -= 1,
            other if depth <= 0 => outside.push(other),
            _ => {}
        }
    }
    outside
}
