//! The genders file: hosts and their attributes, and the queries of pdsh's `-g`, `-X`, `-a` and `-A`.
//!
//! ```text
//! web[1-4],db1   all,rack=a,ib=%n-ib     nodes, then attributes with values; %n is the node's name, %% a %
//! db1            db
//! ```
//!
//! pdsh takes `-g a,b` as the hosts of either query, and hands each query to libgenders: an attribute,
//! `attribute=value`, `||` (union), `&&` (intersection), `--` (difference), all of one rank and from left to
//! right, `~` (complement, before a term) and parentheses.

mod query;

use std::collections::{BTreeMap, HashMap};

use crate::{
    GroupTable, Target, TargetError, TargetProblem,
    file::{lines, utf8},
    target::{checked_user, expand_spec, split_specs},
};

use query::Query;

/// Nodes with this attribute are left out by `-a` (pdsh's genders module).
const SKIP: &str = "pdsh_all_skip";

/// The attribute that holds the name to connect to (`GENDERS_ALTNAME_ATTRIBUTE` of pdsh).
const ALTNAME: &str = "altname";

/// The attribute that holds `user@ssh` (pdsh's genders module).
const RCMD_TYPE: &str = "pdsh_rcmd_type";

/// A genders database.
#[derive(Debug, Clone, Default)]
pub struct Genders {
    nodes: Vec<Node>,
    /// The attributes of each line of the file.
    lines: Vec<BTreeMap<String, Option<String>>>,
}

#[derive(Debug, Clone)]
struct Node {
    name: String,
    lines: Vec<usize>,
}

/// Which name a target gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NodeName {
    /// The value of the attribute `altname`, where a node has it: pdsh's default.
    #[default]
    Alternate,
    /// The node's own name: pdsh's `-i`.
    Canonical,
}

impl Genders {
    /// Reads a genders file.
    ///
    /// # Errors
    /// The first line that libgenders would refuse, with what to write: an attribute without a name or with an
    /// empty value, one that a node has twice, spaces in a list. Names with dots are taken, as where libgenders
    /// is built for them.
    pub fn parse(label: &str, contents: &[u8]) -> Result<Genders, TargetError> {
        let mut genders = Genders::default();
        let mut known = HashMap::new();
        for (number, line) in lines(contents) {
            let read = utf8(line).and_then(|line| genders.line(line, &mut known));
            read.map_err(|error| error.at(label, number))?;
        }
        Ok(genders)
    }

    fn line(&mut self, line: &str, known: &mut HashMap<String, usize>) -> Result<(), TargetError> {
        let text = line.split('#').next().unwrap_or_default().trim();
        let (names, attributes) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let attributes = attributes.trim();
        if names.is_empty() {
            return Ok(());
        }
        let wrong = |problem| TargetError::new(attributes, problem);
        if attributes.contains(char::is_whitespace) {
            return Err(wrong(TargetProblem::GendersSpace));
        }
        let mut values = BTreeMap::new();
        for attribute in attributes.split(',').filter(|_| !attributes.is_empty()) {
            let (name, value) = match attribute.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (attribute, None),
            };
            if name.is_empty() || value.as_deref() == Some("") {
                return Err(wrong(TargetProblem::GendersEmpty));
            }
            if values.insert(name.to_owned(), value).is_some() {
                return Err(wrong(TargetProblem::GendersRepeated(name.to_owned())));
            }
        }
        let mut targets = Vec::new();
        for spec in split_specs(names) {
            expand_spec(spec, &mut targets)?;
        }
        self.lines.push(values);
        for target in targets {
            self.add(target.name, known).map_err(wrong)?;
        }
        Ok(())
    }

    /// Gives a node the attributes of the last line.
    fn add(
        &mut self,
        name: String,
        known: &mut HashMap<String, usize>,
    ) -> Result<(), TargetProblem> {
        let line = self.lines.len() - 1;
        let at = *known.entry(name.clone()).or_insert(self.nodes.len());
        if at == self.nodes.len() {
            self.nodes.push(Node {
                name,
                lines: Vec::new(),
            });
        }
        let node = &mut self.nodes[at];
        if node.lines.last() == Some(&line) {
            return Ok(());
        }
        for other in &node.lines {
            let (fewer, more) = match self.lines[*other].len() < self.lines[line].len() {
                true => (*other, line),
                false => (line, *other),
            };
            if let Some(twice) = self.lines[fewer]
                .keys()
                .find(|name| self.lines[more].contains_key(*name))
            {
                return Err(TargetProblem::GendersRepeated(twice.clone()));
            }
        }
        node.lines.push(line);
        Ok(())
    }

    /// The value of a node's attribute: `None` when it has no such attribute, an inner `None` when that has no
    /// value.
    fn value(&self, node: &Node, attribute: &str) -> Option<Option<String>> {
        let line = node
            .lines
            .iter()
            .find_map(|line| self.lines[*line].get(attribute))?;
        Some(line.as_deref().map(|value| substitute(value, &node.name)))
    }

    /// The hosts that any of these queries picks, in the order of the file: `-g QUERY,QUERY`, and what `-X`
    /// takes away.
    ///
    /// # Errors
    /// A query that libgenders could not read.
    pub fn query(&self, queries: &str, names: NodeName) -> Result<Vec<Target>, TargetError> {
        let mut picked = vec![false; self.nodes.len()];
        for query in queries.split(',') {
            let parsed = Query::parse(query).map_err(|problem| TargetError::new(query, problem))?;
            for (picked, new) in picked.iter_mut().zip(parsed.nodes(self)) {
                *picked |= new;
            }
        }
        let picked = self.nodes.iter().zip(picked).filter(|(_, picked)| *picked);
        picked.map(|(node, _)| self.target(node, names)).collect()
    }

    /// All hosts: pdsh's `-A`.
    ///
    /// # Errors
    /// A name or a user in an attribute that cannot be used.
    pub fn all(&self, names: NodeName) -> Result<Vec<Target>, TargetError> {
        self.nodes
            .iter()
            .map(|node| self.target(node, names))
            .collect()
    }

    /// All hosts without the attribute `pdsh_all_skip`: pdsh's `-a`.
    ///
    /// # Errors
    /// As for [`Genders::all`].
    pub fn all_but_skipped(&self, names: NodeName) -> Result<Vec<Target>, TargetError> {
        let nodes = self
            .nodes
            .iter()
            .filter(|node| self.value(node, SKIP).is_none());
        nodes.map(|node| self.target(node, names)).collect()
    }

    /// Attributes as groups, `@attribute`, for [`crate::Sources::add_table`].
    ///
    /// # Errors
    /// As for [`Genders::all`].
    pub fn table(&self, names: NodeName) -> Result<GroupTable, TargetError> {
        let mut groups: BTreeMap<&str, Vec<Target>> = BTreeMap::new();
        for node in &self.nodes {
            let target = self.target(node, names)?;
            for attribute in node.lines.iter().flat_map(|line| self.lines[*line].keys()) {
                groups.entry(attribute).or_default().push(target.clone());
            }
        }
        let mut table = GroupTable::default();
        table.set_all(self.all(names)?);
        for (attribute, targets) in groups {
            table.insert(attribute, targets);
        }
        Ok(table)
    }

    fn target(&self, node: &Node, names: NodeName) -> Result<Target, TargetError> {
        let mut targets = Vec::new();
        let altname = self
            .value(node, ALTNAME)
            .flatten()
            .filter(|_| names == NodeName::Alternate);
        expand_spec(altname.as_deref().unwrap_or(&node.name), &mut targets)?;
        let mut target = targets.swap_remove(0);
        let rcmd_type = self.value(node, RCMD_TYPE).flatten().unwrap_or_default();
        if let Some((user, _)) = rcmd_type.split_once('@') {
            let user =
                checked_user(user).map_err(|problem| TargetError::new(&rcmd_type, problem))?;
            target.user = Some(user.to_owned());
        }
        Ok(target)
    }
}

/// `%n` is the node's name, `%%` a percent sign.
fn substitute(value: &str, node: &str) -> String {
    let mut out = String::new();
    let mut characters = value.chars().peekable();
    while let Some(character) = characters.next() {
        let next = characters.peek().copied().filter(|_| character == '%');
        match next {
            Some('n') => out.push_str(node),
            Some('%') => out.push('%'),
            _ => {
                out.push(character);
                continue;
            }
        }
        characters.next();
    }
    out
}

#[cfg(test)]
mod tests;
