//! Targets without duplicates, in the order they came.

use std::collections::{HashMap, hash_map::Entry};

use crate::{Target, select::Selector};

/// An ordered set of targets. Two of one name stay apart when their users or ports differ; the operations go by
/// name, in any ASCII case.
#[derive(Debug, Default)]
pub(crate) struct TargetSet {
    /// Targets in order; `None` where one was removed.
    slots: Vec<Option<Target>>,
    by_name: HashMap<String, Slots>,
}

/// Where the targets of one name are: mostly there is one.
#[derive(Debug, Default)]
struct Slots {
    first: usize,
    others: Vec<usize>,
}

impl TargetSet {
    pub(crate) fn extend(&mut self, targets: impl IntoIterator<Item = Target>) {
        for target in targets {
            self.insert(target);
        }
    }

    fn insert(&mut self, target: Target) {
        let new = self.slots.len();
        match self.by_name.entry(target.name.to_ascii_lowercase()) {
            Entry::Vacant(entry) => {
                entry.insert(Slots {
                    first: new,
                    others: Vec::new(),
                });
            }
            Entry::Occupied(mut entry) => {
                let known = entry.get_mut();
                let same = |slot: &usize| {
                    let other = self.slots[*slot].as_ref();
                    other
                        .is_some_and(|other| other.user == target.user && other.port == target.port)
                };
                if same(&known.first) || known.others.iter().any(same) {
                    return;
                }
                known.others.push(new);
            }
        }
        self.slots.push(Some(target));
    }

    pub(crate) fn remove<'a>(&mut self, names: impl IntoIterator<Item = &'a str>) {
        for name in names {
            if let Some(known) = self.by_name.remove(&name.to_ascii_lowercase()) {
                self.slots[known.first] = None;
                known
                    .others
                    .into_iter()
                    .for_each(|slot| self.slots[slot] = None);
            }
        }
    }

    pub(crate) fn remove_all(&mut self, targets: &[Target]) {
        self.remove(targets.iter().map(|target| target.name.as_str()));
    }

    /// Keeps the names that are among `targets` too.
    pub(crate) fn intersect(&mut self, targets: &[Target]) {
        let mut others = TargetSet::default();
        others.extend(targets.iter().map(|target| Target::named(&target.name)));
        self.retain(|name| others.by_name.contains_key(&name.to_ascii_lowercase()));
    }

    /// Removes the names that are among `targets` and adds the targets whose names were not here.
    pub(crate) fn toggle(&mut self, targets: Vec<Target>) {
        let is_here =
            |target: &Target| self.by_name.contains_key(&target.name.to_ascii_lowercase());
        let (common, new): (Vec<Target>, Vec<Target>) = targets.into_iter().partition(is_here);
        self.remove_all(&common);
        self.extend(new);
    }

    /// Keeps the names that a selector picks, or those that it does not.
    pub(crate) fn select(&mut self, selector: &Selector, is_wanted: bool) {
        self.retain(|name| selector.matches(name) == is_wanted);
    }

    fn retain(&mut self, keeps: impl Fn(&str) -> bool) {
        let names = self
            .slots
            .iter()
            .flatten()
            .map(|target| target.name.as_str());
        let dropped: Vec<String> = names
            .filter(|name| !keeps(name))
            .map(str::to_owned)
            .collect();
        self.remove(dropped.iter().map(String::as_str));
    }

    pub(crate) fn into_targets(self) -> Vec<Target> {
        self.slots.into_iter().flatten().collect()
    }
}
