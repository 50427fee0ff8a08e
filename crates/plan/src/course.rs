//! A plan under way: which step may begin, and what becomes of those behind one that fails.

use crate::Graph;

/// What became of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was not chosen.
    LeftOut,
    /// Its turn has not come.
    Waiting,
    /// It has begun and not ended.
    Running,
    /// It has ended well.
    Done,
    /// It has failed.
    Failed,
    /// It was not begun: this step has failed, and has to end well before it.
    StoppedBy(usize),
    /// It was not begun: the plan was ended before its turn came.
    NotReached,
}

/// A plan under way. A step that was not chosen keeps nobody waiting, but those before and behind it keep their order.
#[derive(Debug, Clone)]
pub struct Course<'a> {
    graph: &'a Graph,
    /// All that has to end well before each step.
    earlier: Vec<Vec<usize>>,
    outcomes: Vec<Outcome>,
}

impl<'a> Course<'a> {
    /// Nothing has begun. `chosen` says of each step whether it is to be.
    pub fn new(graph: &'a Graph, chosen: &[bool]) -> Course<'a> {
        let outcome = |&chosen: &bool| match chosen {
            true => Outcome::Waiting,
            false => Outcome::LeftOut,
        };
        let earlier = 0..chosen.len();
        Course {
            graph,
            earlier: earlier.map(|step| graph.all_after(step)).collect(),
            outcomes: chosen.iter().map(outcome).collect(),
        }
    }

    /// The next step that may begin now; it counts as begun.
    pub fn begin_next(&mut self) -> Option<usize> {
        let mut order = self.graph.order().iter().copied();
        let next = order.find(|&step| self.may_begin(step))?;
        self.outcomes[next] = Outcome::Running;
        Some(next)
    }

    fn may_begin(&self, step: usize) -> bool {
        let lets_begin =
            |&earlier: &usize| matches!(self.outcomes[earlier], Outcome::Done | Outcome::LeftOut);
        self.outcomes[step] == Outcome::Waiting && self.earlier[step].iter().all(lets_begin)
    }

    /// A step that has begun has ended. One that has failed stops all that come after it, and nothing else.
    pub fn end(&mut self, step: usize, is_done: bool) {
        if self.outcomes[step] != Outcome::Running {
            return;
        }
        if is_done {
            self.outcomes[step] = Outcome::Done;
            return;
        }
        self.outcomes[step] = Outcome::Failed;
        for later in self.graph.all_before(step) {
            if self.outcomes[later] == Outcome::Waiting {
                self.outcomes[later] = Outcome::StoppedBy(step);
            }
        }
    }

    /// Nothing is begun any more.
    pub fn halt(&mut self) {
        for outcome in &mut self.outcomes {
            if *outcome == Outcome::Waiting {
                *outcome = Outcome::NotReached;
            }
        }
    }

    /// What became of each step, so far.
    pub fn outcomes(&self) -> &[Outcome] {
        &self.outcomes
    }
}

#[cfg(test)]
#[path = "course_tests.rs"]
mod tests;
