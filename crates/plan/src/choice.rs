//! Some steps of a plan in place of all.

use crate::Plan;

/// A step was named that is not there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no step {name}; there are: {known}")]
pub struct UnknownStep {
    name: String,
    known: String,
}

impl Plan {
    /// The number of a step.
    ///
    /// # Errors
    ///
    /// There is none of this name.
    pub fn find(&self, name: &str) -> Result<usize, UnknownStep> {
        let found = self.steps().iter().position(|step| step.name == name);
        found.ok_or_else(|| UnknownStep {
            name: name.to_owned(),
            known: self.names(),
        })
    }

    /// Which steps are meant: those of `only`, and those of `from` with all that comes after them; all if neither names one.
    ///
    /// # Errors
    ///
    /// One of the names is none.
    pub fn chosen(&self, only: &[String], from: &[String]) -> Result<Vec<bool>, UnknownStep> {
        let none = only.is_empty() && from.is_empty();
        let mut chosen = vec![none; self.steps().len()];
        for name in only {
            chosen[self.find(name)?] = true;
        }
        for name in from {
            let first = self.find(name)?;
            chosen[first] = true;
            for step in self.graph().all_before(first) {
                chosen[step] = true;
            }
        }
        Ok(chosen)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn steps_are_chosen_by_name_with_or_without_what_comes_after_them() {
        let plan = Plan::parse(
            "[step.a]\nrun='x'\n[step.b]\nrun='x'\nafter='a'\n[step.c]\nrun='x'\nafter='b'\n[step.d]\nrun='x'",
        )
        .unwrap();
        let chosen = |only: &[&str], from: &[&str]| {
            let names = |names: &[&str]| {
                names
                    .iter()
                    .map(|&name| name.to_owned())
                    .collect::<Vec<_>>()
            };
            let chosen = plan.chosen(&names(only), &names(from)).unwrap();
            let steps = plan.steps().iter().zip(chosen);
            let steps = steps.filter(|(_, chosen)| *chosen);
            steps
                .map(|(step, _)| step.name.as_str())
                .collect::<String>()
        };
        assert_eq!(chosen(&[], &[]), "abcd");
        assert_eq!(chosen(&["a"], &[]), "a");
        assert_eq!(chosen(&[], &["a"]), "abc");
        assert_eq!(chosen(&[], &["b"]), "bc");
        assert_eq!(chosen(&["d"], &["b"]), "bcd");
        let error = plan.chosen(&[], &["e".to_owned()]).unwrap_err().to_string();
        assert_eq!(error, "there is no step e; there are: a, b, c, d");
    }
}
