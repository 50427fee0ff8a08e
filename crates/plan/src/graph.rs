//! What comes after what: the order, both directions, and why there is none.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Steps, numbered from 0 as in the file, and what each comes after. There is no cycle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph {
    after: Vec<Vec<usize>>,
    before: Vec<Vec<usize>>,
    order: Vec<usize>,
}

/// Steps that wait for each other: each comes after the next, the last after the first. The first of the file stands first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cycle(pub Vec<usize>);

impl Graph {
    /// `after[step]` is what a step comes after; each number is one of a step.
    ///
    /// # Errors
    ///
    /// There is no order.
    pub fn new(after: Vec<Vec<usize>>) -> Result<Graph, Cycle> {
        let mut before = vec![Vec::new(); after.len()];
        for (step, earlier) in after.iter().enumerate() {
            for &earlier in earlier {
                before[earlier].push(step);
            }
        }
        let (order, waits) = ordered(&after, &before);
        match order.len() == after.len() {
            true => Ok(Graph {
                after,
                before,
                order,
            }),
            false => Err(cycle(&after, &waits)),
        }
    }

    /// All steps, each behind those that it comes after, otherwise as in the file.
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// What a step itself says it comes after, as in the file.
    pub fn after(&self, step: usize) -> &[usize] {
        &self.after[step]
    }

    /// Which steps say that they come after it, as in the file.
    pub fn before(&self, step: usize) -> &[usize] {
        &self.before[step]
    }

    /// All that has to end before a step begins, in their order.
    pub fn all_after(&self, step: usize) -> Vec<usize> {
        self.reached(step, &self.after)
    }

    /// All that cannot begin before a step has ended, in their order.
    pub fn all_before(&self, step: usize) -> Vec<usize> {
        self.reached(step, &self.before)
    }

    fn reached(&self, from: usize, edges: &[Vec<usize>]) -> Vec<usize> {
        let mut is_reached = vec![false; edges.len()];
        let mut open = vec![from];
        while let Some(step) = open.pop() {
            for &next in &edges[step] {
                if !std::mem::replace(&mut is_reached[next], true) {
                    open.push(next);
                }
            }
        }
        let order = self.order.iter().copied();
        order.filter(|&step| is_reached[step]).collect()
    }
}

/// As many steps as have an order, and for how many each of the others waits (Kahn, 1962).
fn ordered(after: &[Vec<usize>], before: &[Vec<usize>]) -> (Vec<usize>, Vec<usize>) {
    let mut waits: Vec<usize> = after.iter().map(Vec::len).collect();
    let free = (0..after.len()).filter(|&step| waits[step] == 0);
    let mut free: BinaryHeap<Reverse<usize>> = free.map(Reverse).collect();
    let mut order = Vec::with_capacity(after.len());
    while let Some(Reverse(step)) = free.pop() {
        order.push(step);
        for &later in &before[step] {
            waits[later] -= 1;
            if waits[later] == 0 {
                free.push(Reverse(later));
            }
        }
    }
    (order, waits)
}

/// Each step that still waits does so for one that still waits: whoever follows them comes round.
fn cycle(after: &[Vec<usize>], waits: &[usize]) -> Cycle {
    let mut seen_at = vec![None; after.len()];
    let mut path = Vec::new();
    let mut next = waits.iter().position(|&waits| waits > 0);
    while let Some(step) = next {
        if let Some(at) = seen_at[step] {
            path.drain(..at);
            break;
        }
        seen_at[step] = Some(path.len());
        path.push(step);
        let mut earlier = after[step].iter().copied();
        next = earlier.find(|&earlier| waits[earlier] > 0);
    }
    let first = path.iter().enumerate().min_by_key(|(_, step)| **step);
    let first = first.map_or(0, |(at, _)| at);
    path.rotate_left(first);
    Cycle(path)
}

#[cfg(test)]
#[path = "graph_tests.rs"]
mod tests;
