//! Lists as `-w` and `-x` take them: what is written, before anything is looked up.

use std::{fmt, str::FromStr};

use crate::{
    MAX_TARGETS, Target, TargetError, TargetProblem,
    scan::Scanner,
    select::Selector,
    target::{check_spec, expand_spec},
};

/// A host list: operands joined by set operations, evaluated from left to right as ClusterShell does, without
/// precedence. [`crate::Sources::expand`] turns it into targets; its `Display` parses back to it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HostList {
    pub(crate) terms: Vec<Term>,
}

/// One operand, and how it changes what stands left of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    /// The operation; the first term's is a union with nothing.
    pub operator: Operator,
    /// What it is done with.
    pub operand: Operand,
}

/// A set operation, in ClusterShell's signs. Sets of hosts are compared by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// `,` or space: hosts of either side.
    Union,
    /// `!`: hosts of the left side that are not on the right.
    Difference,
    /// `&`: hosts of both sides.
    Intersection,
    /// `^`: hosts of just one side.
    SymmetricDifference,
    /// `-` before an operand, from pdsh: left out of the whole list, wherever it stands.
    Exclusion,
}

/// What a list names.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operand {
    /// `user@web[1-3]:2222`: a spec as written, checked.
    Hosts(String),
    /// `@web`, `@racks:r[1-2]`, `@racks:*`.
    Group(GroupName),
    /// `web*` or `/^web/`. Right of `!`, `&` and `-` it picks from what stands left of it, elsewhere from the
    /// candidates (see [`crate::Sources`]).
    Selector(Selector),
    /// `^path`: the hosts of a file, see [`crate::parse_file`].
    File(String),
}

/// A group, or several with a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupName {
    /// The source before the colon; `None` is the default one, or inside a group its own.
    pub source: Option<String>,
    /// The name, which may hold ranges; `*` is all hosts of the source.
    pub group: String,
}

impl HostList {
    /// Parses a list. Nothing is expanded yet, but everything is checked.
    ///
    /// # Errors
    /// The first operand that is not understood, quoted, with what to write instead. An empty list is no error.
    pub fn parse(list: &str) -> Result<HostList, TargetError> {
        Scanner::new(list).terms().map(|terms| HostList { terms })
    }

    /// The operands in order.
    pub fn terms(&self) -> &[Term] {
        &self.terms
    }
}

impl FromStr for HostList {
    type Err = TargetError;

    fn from_str(list: &str) -> Result<HostList, TargetError> {
        HostList::parse(list)
    }
}

impl fmt::Display for HostList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut after_file = false;
        for (index, Term { operator, operand }) in self.terms.iter().enumerate() {
            let sign = match operator {
                Operator::Union if index == 0 => "",
                Operator::Exclusion if index == 0 => "-",
                Operator::Union => ",",
                Operator::Exclusion => ",-",
                // Only a comma or a space ends the path of a file.
                Operator::Difference if after_file => " ! ",
                Operator::Intersection if after_file => " & ",
                Operator::SymmetricDifference if after_file => " ^ ",
                Operator::Difference => "!",
                Operator::Intersection => "&",
                Operator::SymmetricDifference => "^",
            };
            write!(f, "{sign}{operand}")?;
            after_file = matches!(operand, Operand::File(_));
        }
        Ok(())
    }
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operand::Hosts(spec) => f.write_str(spec),
            Operand::Group(name) => name.fmt(f),
            Operand::Selector(selector) => selector.fmt(f),
            Operand::File(path) => write!(f, "^{path}"),
        }
    }
}

impl fmt::Display for GroupName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            Some(source) => write!(f, "@{source}:{}", self.group),
            None => write!(f, "@{}", self.group),
        }
    }
}

impl Operand {
    /// Reads an operand that [`Scanner`] cut out, by its first character. A selector has been read already.
    pub(crate) fn parse(text: &str) -> Result<Operand, TargetProblem> {
        if let Some(path) = text.strip_prefix('^') {
            return match path {
                "" => Err(TargetProblem::EmptyFile),
                path => Ok(Operand::File(path.to_owned())),
            };
        }
        if let Some(name) = text.strip_prefix('@') {
            return GroupName::parse(name).map(Operand::Group);
        }
        if Selector::is_glob(text) {
            return Selector::glob(text).map(Operand::Selector);
        }
        check_spec(text)?;
        Ok(Operand::Hosts(text.to_owned()))
    }
}

impl GroupName {
    /// Reads what follows the `@`. Names go into shell commands (groups.conf), so nothing that a shell would
    /// act on may stand in them.
    pub(crate) fn parse(text: &str) -> Result<GroupName, TargetProblem> {
        let (source, group) = match text.split_once(':') {
            Some((source, group)) => (Some(source), group),
            None => (None, text),
        };
        if group.is_empty() || source == Some("") {
            return Err(TargetProblem::EmptyGroup);
        }
        let refused = |c: &char| {
            c.is_control() || c.is_whitespace() || "'`\"$\\;<>|(){}*?!#@,&^~".contains(*c)
        };
        let outside_brackets = crate::pattern::Pattern::parse(group)?;
        let literals = match group {
            "*" => String::new(),
            _ => outside_brackets.literals().collect(),
        };
        let characters = source.unwrap_or_default().chars().chain(literals.chars());
        if let Some(character) = characters.into_iter().find(refused) {
            return Err(TargetProblem::GroupCharacter(character));
        }
        if group.starts_with('-') || source.is_some_and(|source| source.starts_with('-')) {
            return Err(TargetProblem::LeadingDash);
        }
        outside_brackets.count()?;
        Ok(GroupName {
            source: source.map(str::to_owned),
            group: group.to_owned(),
        })
    }
}

/// One element of a plain list, ranges expanded.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Item {
    /// A host.
    Target(Target),
    /// A file to read, `^path`: the caller reads it and puts [`crate::parse_file`]'s targets in its place.
    File(String),
}

/// Parses a plain list: hosts and files separated by commas or spaces, in order, duplicates kept (see
/// [`crate::distinct`]). [`HostList`] reads groups and set operations too.
///
/// # Errors
/// The first item that is not understood, quoted, with what to write instead. An empty list is no error here.
pub fn parse_list(list: &str) -> Result<Vec<Item>, TargetError> {
    let mut items = Vec::new();
    let mut targets = Vec::new();
    for Term { operator, operand } in HostList::parse(list)?.terms {
        let refused = |problem| Err(TargetError::new(&operand.to_string(), problem));
        match (operator, &operand) {
            (Operator::Exclusion, _) => return refused(TargetProblem::LeadingDash),
            (Operator::Union, Operand::Hosts(spec)) => expand_spec(spec, &mut targets)?,
            (Operator::Union, Operand::File(path)) => {
                items.extend(targets.drain(..).map(Item::Target));
                items.push(Item::File(path.clone()));
            }
            _ => return refused(TargetProblem::NotPlain),
        }
        if items.len() + targets.len() > MAX_TARGETS {
            return refused(TargetProblem::TooMany);
        }
    }
    items.extend(targets.into_iter().map(Item::Target));
    Ok(items)
}
