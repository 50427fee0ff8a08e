//! Queries of libgenders (`genders_query.y`).

use crate::TargetProblem;

use super::Genders;

/// Deepest nesting of parentheses and complements.
const MAX_DEPTH: usize = 64;

/// A query, read.
pub(super) enum Query<'a> {
    Attribute {
        name: &'a str,
        value: Option<&'a str>,
    },
    Complement(Box<Query<'a>>),
    /// The first term, and the others with their operations, from left to right.
    Chain(Box<Query<'a>>, Vec<(Operation, Query<'a>)>),
}

#[derive(Clone, Copy)]
pub(super) enum Operation {
    Union,
    Intersection,
    Difference,
}

impl<'a> Query<'a> {
    pub(super) fn parse(text: &'a str) -> Result<Query<'a>, TargetProblem> {
        let mut parser = Parser {
            rest: text,
            depth: 0,
        };
        let query = parser.query()?;
        match parser.rest.trim_start().is_empty() {
            true => Ok(query),
            false => Err(TargetProblem::GendersQuery),
        }
    }

    /// For each node of the database, whether the query picks it.
    pub(super) fn nodes(&self, genders: &Genders) -> Vec<bool> {
        match self {
            Query::Attribute { name, value } => {
                let has = |found: Option<String>| {
                    value.is_none_or(|value| found.as_deref() == Some(value))
                };
                let nodes = genders.nodes.iter();
                nodes
                    .map(|node| genders.value(node, name).is_some_and(has))
                    .collect()
            }
            Query::Complement(query) => query
                .nodes(genders)
                .into_iter()
                .map(|picked| !picked)
                .collect(),
            Query::Chain(first, others) => {
                let mut picked = first.nodes(genders);
                for (operation, query) in others {
                    for (picked, other) in picked.iter_mut().zip(query.nodes(genders)) {
                        *picked = match operation {
                            Operation::Union => *picked || other,
                            Operation::Intersection => *picked && other,
                            Operation::Difference => *picked && !other,
                        };
                    }
                }
                picked
            }
        }
    }
}

struct Parser<'a> {
    rest: &'a str,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn query(&mut self) -> Result<Query<'a>, TargetProblem> {
        let first = self.term()?;
        let mut others = Vec::new();
        while let Some(operation) = self.operation() {
            others.push((operation, self.term()?));
        }
        Ok(match others.is_empty() {
            true => first,
            false => Query::Chain(Box::new(first), others),
        })
    }

    fn operation(&mut self) -> Option<Operation> {
        [
            ("||", Operation::Union),
            ("&&", Operation::Intersection),
            ("--", Operation::Difference),
        ]
        .into_iter()
        .find_map(|(sign, operation)| self.takes(sign).then_some(operation))
    }

    fn term(&mut self) -> Result<Query<'a>, TargetProblem> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(TargetProblem::GendersDepth(MAX_DEPTH));
        }
        let term = if self.takes("~") {
            Query::Complement(Box::new(self.term()?))
        } else if self.takes("(") {
            let query = self.query()?;
            if !self.takes(")") {
                return Err(TargetProblem::GendersQuery);
            }
            query
        } else {
            self.attribute()?
        };
        self.depth -= 1;
        Ok(term)
    }

    /// An attribute: letters, digits and `_.=:%\/+`, with single `-`, `|` and `&` between them.
    fn attribute(&mut self) -> Result<Query<'a>, TargetProblem> {
        let text = self.rest.trim_start().as_bytes();
        let is_plain = |byte: Option<&u8>| {
            byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || b"_.=:%\\/+".contains(byte))
        };
        if !text.first().is_some_and(u8::is_ascii_alphanumeric) {
            return Err(TargetProblem::GendersQuery);
        }
        let mut end = 1;
        while is_plain(text.get(end))
            || (matches!(text.get(end), Some(b'-' | b'|' | b'&')) && is_plain(text.get(end + 1)))
        {
            end += 1;
        }
        let (attribute, rest) = self.rest.trim_start().split_at(end);
        self.rest = rest;
        Ok(match attribute.split_once('=') {
            Some((name, value)) => Query::Attribute {
                name,
                value: Some(value),
            },
            None => Query::Attribute {
                name: attribute,
                value: None,
            },
        })
    }

    fn takes(&mut self, sign: &str) -> bool {
        let rest = self.rest.trim_start().strip_prefix(sign);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }
}
