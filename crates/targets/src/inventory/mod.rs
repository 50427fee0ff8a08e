//! Ansible inventories: INI, YAML, and what an executable prints for `--list`.
//!
//! Read are hosts, groups, children, ranges, and the variables that say how to reach a host, with Ansible's
//! precedence; everything else is passed over. Files beside an inventory (`group_vars`, `host_vars`) are read by the
//! caller and handed over.

mod ini;
mod range;
mod ssh_arguments;
mod tree;
mod variables;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::{GroupTable, MAX_TARGETS, Target, TargetError, TargetProblem, target::check_spec};

use variables::{Variables, keep};

/// The groups that every inventory has.
const ALL: &str = "all";
const UNGROUPED: &str = "ungrouped";

/// Most groups of an inventory, and deepest nesting.
const MAX_GROUPS: usize = 100_000;
const MAX_DEPTH: usize = 64;

/// An inventory, read.
#[derive(Debug, Clone, Default)]
pub struct Inventory {
    /// In the order in which they are first named.
    hosts: Vec<Host>,
    by_name: HashMap<String, usize>,
    groups: BTreeMap<String, Group>,
    lacks_host_variables: bool,
}

#[derive(Debug, Clone, Default)]
struct Host {
    name: String,
    variables: Variables,
}

#[derive(Debug, Clone, Default)]
struct Group {
    hosts: BTreeSet<usize>,
    children: BTreeSet<String>,
    variables: Variables,
}

impl Inventory {
    /// Reads an inventory in INI: `[group]`, `[group:children]`, `[group:vars]`, host lines with variables.
    ///
    /// # Errors
    /// The first line that is not understood, with what to write.
    pub fn parse_ini(label: &str, contents: &[u8]) -> Result<Inventory, TargetError> {
        Self::parse_ini_after(&Inventory::default(), label, contents)
    }

    /// The same, where groups of an `earlier` inventory may be children.
    ///
    /// # Errors
    /// As for [`Inventory::parse_ini`].
    pub fn parse_ini_after(
        earlier: &Inventory,
        label: &str,
        contents: &[u8],
    ) -> Result<Inventory, TargetError> {
        ini::parse(earlier, label, contents)?.checked(label)
    }

    /// Reads an inventory in YAML: groups with `hosts`, `children` and `vars`.
    ///
    /// # Errors
    /// The first node that is not understood, with its line.
    pub fn parse_yaml(label: &str, contents: &[u8]) -> Result<Inventory, TargetError> {
        tree::parse_yaml(label, contents)?.checked(label)
    }

    /// Reads what an inventory program prints for `--list`: JSON, groups with `hosts`, `children` and `vars` (or
    /// just a list of hosts), and `_meta.hostvars`. A program without `_meta` wants to be asked for each host, see
    /// [`Inventory::lacks_host_variables`].
    ///
    /// # Errors
    /// What is no such JSON.
    pub fn parse_list(label: &str, contents: &[u8]) -> Result<Inventory, TargetError> {
        tree::parse_list(label, contents)?.checked(label)
    }

    /// Adds what a later inventory, called `label` in errors, says: its hosts and groups come together with those of the
    /// same names, and of two values of a variable its own counts, as when Ansible is given several.
    ///
    /// # Errors
    /// Groups that contain themselves, now that all children are known; or there are too many hosts.
    pub fn merge(self, label: &str, later: Inventory) -> Result<Inventory, TargetError> {
        let wrong = |problem| TargetError::new("", problem).in_file(label);
        let mut merged = self;
        let mut places = Vec::with_capacity(later.hosts.len());
        for host in later.hosts {
            let place = merged.host(&host.name).map_err(wrong)?;
            merged.hosts[place].variables.add(host.variables);
            places.push(place);
        }
        for (name, group) in later.groups {
            let known = merged.group(&name).map_err(wrong)?;
            let hosts = group.hosts.into_iter().map(|host| places[host]);
            known.hosts.extend(hosts);
            known.children.extend(group.children);
            known.variables.add(group.variables);
        }
        merged.checked(label)
    }

    /// All hosts in order, with the address, port, user and key that the inventory gives them.
    ///
    /// # Errors
    /// A variable that cannot be used: a template (`{{ }}`), a port that is no number.
    pub fn targets(&self) -> Result<Vec<Target>, TargetError> {
        let above = self.groups_of_hosts();
        let ranks = self.ranks();
        let targets = self.hosts.iter().zip(above);
        targets
            .map(|(host, above)| self.target(host, above, &ranks))
            .collect()
    }

    /// The groups with their hosts, for [`crate::Sources::add_table`].
    ///
    /// # Errors
    /// As for [`Inventory::targets`].
    pub fn table(&self) -> Result<GroupTable, TargetError> {
        let targets = self.targets()?;
        let of =
            |hosts: &BTreeSet<usize>| hosts.iter().map(|host| targets[*host].clone()).collect();
        let mut table = GroupTable::default();
        for name in self.groups.keys().filter(|name| *name != ALL) {
            table.insert(name, of(&self.members(name)));
        }
        table.insert(UNGROUPED, of(&self.ungrouped()));
        table.insert(ALL, targets.clone());
        table.set_all(targets);
        Ok(table)
    }

    /// The hosts that are in no group of their own.
    fn ungrouped(&self) -> BTreeSet<usize> {
        let own = self.groups.iter().filter(|(name, _)| *name != ALL);
        let grouped: BTreeSet<usize> = own
            .flat_map(|(_, group)| group.hosts.iter().copied())
            .collect();
        (0..self.hosts.len())
            .filter(|host| !grouped.contains(host))
            .collect()
    }

    /// The hosts of a group and of all below it.
    fn members(&self, group: &str) -> BTreeSet<usize> {
        let mut hosts = BTreeSet::new();
        let mut seen = BTreeSet::new();
        let mut open = vec![group];
        while let Some(name) = open.pop() {
            if let Some(group) = self.groups.get(name).filter(|_| seen.insert(name)) {
                hosts.extend(group.hosts.iter().copied());
                open.extend(group.children.iter().map(String::as_str));
            }
        }
        hosts
    }

    /// The host of this name, new or not.
    fn host(&mut self, name: &str) -> Result<usize, TargetProblem> {
        if let Some(known) = self.by_name.get(name) {
            return Ok(*known);
        }
        if name.contains(['[', '@']) {
            return Err(TargetProblem::InventoryName);
        }
        if name.parse::<std::net::Ipv6Addr>().is_err() && name.contains(':') {
            return Err(TargetProblem::InventoryName);
        }
        check_spec(name)?;
        if self.hosts.len() == MAX_TARGETS {
            return Err(TargetProblem::TooMany);
        }
        self.by_name.insert(name.to_owned(), self.hosts.len());
        self.hosts.push(Host {
            name: name.to_owned(),
            ..Host::default()
        });
        Ok(self.hosts.len() - 1)
    }

    fn group(&mut self, name: &str) -> Result<&mut Group, TargetProblem> {
        if self.groups.len() == MAX_GROUPS {
            return Err(TargetProblem::TooManyGroups(MAX_GROUPS));
        }
        Ok(self.groups.entry(name.to_owned()).or_default())
    }

    /// The whole, once its groups are known not to contain themselves.
    fn checked(self, label: &str) -> Result<Inventory, TargetError> {
        let mut heights: HashMap<&str, usize> = HashMap::new();
        let mut chain = Vec::new();
        for name in self.groups.keys() {
            let height = self.height(name, &mut chain, &mut heights);
            height.map_err(|problem| TargetError::new("", problem).in_file(label))?;
        }
        Ok(self)
    }

    fn height<'a>(
        &'a self,
        name: &'a str,
        chain: &mut Vec<&'a str>,
        heights: &mut HashMap<&'a str, usize>,
    ) -> Result<usize, TargetProblem> {
        if let Some(known) = heights.get(name) {
            return Ok(*known);
        }
        if let Some(at) = chain.iter().position(|above| *above == name) {
            chain.push(name);
            return Err(TargetProblem::GroupCycle(chain[at..].join(" > ")));
        }
        if chain.len() == MAX_DEPTH {
            return Err(TargetProblem::GroupDepth(MAX_DEPTH));
        }
        chain.push(name);
        let mut height = 0;
        for child in self
            .groups
            .get(name)
            .into_iter()
            .flat_map(|group| &group.children)
        {
            height = height.max(1 + self.height(child, chain, heights)?);
        }
        chain.pop();
        match height > MAX_DEPTH {
            true => Err(TargetProblem::GroupDepth(MAX_DEPTH)),
            false => {
                heights.insert(name, height);
                Ok(height)
            }
        }
    }
}

#[cfg(test)]
mod tests;
