//! The variables that say how a host is reached: which are read, from where, and which of several counts.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::{
    Target, TargetError, TargetProblem,
    options::apply_option,
    yaml::{self, Node},
};

use super::{ALL, Host, Inventory, UNGROUPED, ssh_arguments, tree};

/// The variables that are read, and what they set. Where a host has several for one thing, the first counts.
const VARIABLES: &[(&str, &str)] = &[
    ("ansible_host", "HostName"),
    ("ansible_ssh_host", "HostName"),
    ("ansible_port", "Port"),
    ("ansible_ssh_port", "Port"),
    ("ansible_user", "User"),
    ("ansible_ssh_user", "User"),
    ("ansible_private_key_file", "IdentityFile"),
    ("ansible_ssh_private_key_file", "IdentityFile"),
];

/// What is passed to ssh besides, in the order in which Ansible does so (plugins/connection/ssh.py).
const ARGUMENTS: [&str; 2] = ["ansible_ssh_common_args", "ansible_ssh_extra_args"];

/// Decides among groups of one depth; the higher one's variables win.
const PRIORITY: &str = "ansible_group_priority";

/// How a file of Ansible's vault begins; what is in it, nobody can tell without its password.
const VAULT: &[u8] = b"$ANSIBLE_VAULT;";

/// The variables of a group or host that are read.
#[derive(Debug, Clone, Default)]
pub(super) struct Variables {
    /// What the inventory itself says.
    pub(super) own: BTreeMap<String, String>,
    /// What files beside it say, `group_vars` and `host_vars`.
    pub(super) beside: BTreeMap<String, String>,
}

impl Variables {
    fn is_empty(&self) -> bool {
        self.own.is_empty() && self.beside.is_empty()
    }

    /// Takes what a later inventory says.
    pub(super) fn add(&mut self, later: Variables) {
        self.own.extend(later.own);
        self.beside.extend(later.beside);
    }
}

/// Notes a variable if it is one of those that are read.
pub(super) fn keep(variables: &mut BTreeMap<String, String>, name: &str, value: &str) {
    let mut read = VARIABLES.iter().map(|(known, _)| *known).chain(ARGUMENTS);
    if name == PRIORITY || read.any(|known| known == name) {
        variables.insert(name.to_owned(), value.to_owned());
    }
}

/// Notes a variable of a YAML mapping; only scalars are of use.
pub(super) fn keep_node(kept: &mut BTreeMap<String, String>, name: &Node, value: &Node) {
    if let (Some(name), Some(value)) = (name.scalar(), value.scalar()) {
        keep(kept, name, value);
    }
}

/// What a file of `group_vars` or `host_vars` says: YAML, and so JSON. Of a file of the vault nothing is known.
fn of_file(
    kept: &mut BTreeMap<String, String>,
    label: &str,
    contents: &[u8],
) -> Result<(), TargetError> {
    if contents.starts_with(VAULT) {
        return Ok(());
    }
    let root = yaml::parse(label, contents)?;
    let shape = TargetProblem::YamlShape("variables");
    let entries = root
        .entries()
        .ok_or_else(|| TargetError::new("", shape).at(label, root.line))?;
    for (name, value) in entries {
        keep_node(kept, name, value);
    }
    Ok(())
}

impl Inventory {
    /// The names of its groups, those that every inventory has among them.
    pub fn group_names(&self) -> impl Iterator<Item = &str> {
        let own = self.groups.keys().map(String::as_str);
        let others = own.filter(|name| *name != ALL && *name != UNGROUPED);
        [ALL, UNGROUPED].into_iter().chain(others)
    }

    /// The names of its hosts, in order.
    pub fn host_names(&self) -> impl Iterator<Item = &str> {
        self.hosts.iter().map(|host| host.name.as_str())
    }

    /// Whether a program printed it without the variables of its hosts (`_meta`), and so has to be asked for those of
    /// each host by `--host NAME`.
    pub fn lacks_host_variables(&self) -> bool {
        self.lacks_host_variables
    }

    /// Reads what a program prints for `--host NAME`.
    ///
    /// # Errors
    /// What is no JSON object.
    pub fn read_host_answer(
        &mut self,
        host: &str,
        label: &str,
        contents: &[u8],
    ) -> Result<(), TargetError> {
        tree::parse_host(self, host, label, contents)
    }

    /// Reads a file of the folder `group_vars` beside the inventory. What a later file of the group says replaces
    /// what an earlier one said.
    ///
    /// # Errors
    /// What is no YAML, or no mapping of variables.
    pub fn read_group_vars(
        &mut self,
        group: &str,
        label: &str,
        contents: &[u8],
    ) -> Result<(), TargetError> {
        let wrong = |problem| TargetError::new("", problem).in_file(label);
        let group = self.group(group).map_err(wrong)?;
        of_file(&mut group.variables.beside, label, contents)
    }

    /// The same for `host_vars`; a host that the inventory does not have is passed over.
    ///
    /// # Errors
    /// As for [`Inventory::read_group_vars`].
    pub fn read_host_vars(
        &mut self,
        host: &str,
        label: &str,
        contents: &[u8],
    ) -> Result<(), TargetError> {
        match self.by_name.get(host) {
            Some(known) => of_file(&mut self.hosts[*known].variables.beside, label, contents),
            None => Ok(()),
        }
    }

    /// For each host the groups that hold it, itself or through others.
    pub(super) fn groups_of_hosts(&self) -> Vec<Vec<&str>> {
        let mut above = vec![Vec::new(); self.hosts.len()];
        let with_variables = self
            .groups
            .iter()
            .filter(|(_, group)| !group.variables.is_empty());
        for (name, _) in with_variables {
            match name.as_str() {
                ALL => above.iter_mut().for_each(|groups| groups.push(ALL)),
                name => {
                    let hosts = match name {
                        UNGROUPED => self.ungrouped(),
                        name => self.members(name),
                    };
                    hosts.into_iter().for_each(|host| above[host].push(name));
                }
            }
        }
        above
    }

    /// How late a group's variables are applied: deeper groups after those above them, then by priority and
    /// name, as Ansible does.
    pub(super) fn ranks(&self) -> HashMap<&str, (usize, i64)> {
        let mut depths: HashMap<&str, usize> = HashMap::new();
        // A group's depth is its longest way from the top; cycles have been refused.
        let mut open: Vec<(&str, usize)> =
            self.groups.keys().map(|name| (name.as_str(), 1)).collect();
        while let Some((name, depth)) = open.pop() {
            let known = depths.entry(name).or_default();
            if *known < depth {
                *known = depth;
                let children = self
                    .groups
                    .get(name)
                    .into_iter()
                    .flat_map(|group| &group.children);
                open.extend(children.map(|child| (child.as_str(), depth + 1)));
            }
        }
        depths.insert(ALL, 0);
        let priority = |name: &str| {
            let group = self.groups.get(name)?;
            group.variables.own.get(PRIORITY)?.parse().ok()
        };
        depths
            .into_iter()
            .map(|(name, depth)| (name, (depth, priority(name).unwrap_or(1))))
            .collect()
    }

    pub(super) fn target(
        &self,
        host: &Host,
        mut above: Vec<&str>,
        ranks: &HashMap<&str, (usize, i64)>,
    ) -> Result<Target, TargetError> {
        above.sort_by_key(|name| (ranks.get(name), *name));
        let groups = || above.iter().filter_map(|name| self.groups.get(*name));
        let own = groups().map(|group| &group.variables.own);
        // What stands in files counts more than what the inventory says (VARIABLE_PRECEDENCE).
        let beside = groups().map(|group| &group.variables.beside);
        let of_host = [&host.variables.own, &host.variables.beside];
        let mut variables: BTreeMap<&str, &str> = BTreeMap::new();
        for of in own.chain(beside).chain(of_host) {
            let named = of
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str()));
            variables.extend(named);
        }
        let mut target = Target::named(&host.name);
        let mut set = BTreeSet::new();
        let value = |variable: &str| {
            let value = variables.get(variable).copied();
            match value.filter(|value| value.contains("{{")) {
                Some(_) => Err(of_host_variable(host, variable)(TargetProblem::Template)),
                None => Ok(value),
            }
        };
        for (variable, keyword) in VARIABLES {
            if set.contains(keyword) {
                continue;
            }
            let Some(value) = value(variable)? else {
                continue;
            };
            set.insert(keyword);
            if *keyword != "HostName" || *value != host.name {
                apply_option(&mut target, keyword, value)
                    .map_err(of_host_variable(host, variable))?;
            }
        }
        for variable in ARGUMENTS {
            let arguments = value(variable)?.unwrap_or_default();
            ssh_arguments::apply(&mut target, arguments)
                .map_err(of_host_variable(host, variable))?;
        }
        Ok(target)
    }
}

fn of_host_variable(host: &Host, variable: &str) -> impl Fn(TargetProblem) -> TargetError {
    let what = format!("{variable} of {}", host.name);
    move |problem| TargetError::new(&what, problem)
}
