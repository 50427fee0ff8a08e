//! Algorithm lists with their `+`, `-` and `^` edits.

pub(crate) mod names;

use std::fmt;

use crate::pattern;

/// A list as `Ciphers`, `MACs`, `KexAlgorithms`, `HostKeyAlgorithms` and their like give it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlgorithmSpec {
    edit: Edit,
    names: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Edit {
    Replace,
    Append,
    Remove,
    Prepend,
}

impl fmt::Display for AlgorithmSpec {
    /// As a configuration file would say it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match self.edit {
            Edit::Replace => "",
            Edit::Append => "+",
            Edit::Remove => "-",
            Edit::Prepend => "^",
        };
        write!(f, "{sign}{}", self.names.join(","))
    }
}

/// Nothing is left of an algorithm list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("none of the algorithms named is known to sshoal")]
pub struct EmptyAlgorithmList;

impl AlgorithmSpec {
    /// Reads a list: `a,b` replaces the defaults, `+a` appends, `-a*` removes, `^a` puts first.
    pub(crate) fn parse(text: &str) -> Result<AlgorithmSpec, String> {
        let (edit, names) = match text.as_bytes().first() {
            Some(b'+') => (Edit::Append, &text[1..]),
            Some(b'-') => (Edit::Remove, &text[1..]),
            Some(b'^') => (Edit::Prepend, &text[1..]),
            _ => (Edit::Replace, text),
        };
        if names.is_empty() {
            return Err(format!("bad algorithm list \"{text}\": it names nothing"));
        }
        let names = names.split(',').map(String::from).collect();
        Ok(AlgorithmSpec { edit, names })
    }

    /// Whether the order is that of the defaults, with names more or less at the most (`order_hostkeyalgs`,
    /// sshconnect2.c, asks).
    pub fn keeps_default_order(&self) -> bool {
        matches!(self.edit, Edit::Append | Edit::Remove)
    }

    /// The list that results, in order, each name once (`kex_assemble_names`, kex-names.c).
    ///
    /// `defaults` is what holds without the line, `known` all names that are implemented: the
    /// others are left out, and patterns stand for the known names they match.
    pub fn apply(
        &self,
        defaults: &[&str],
        known: &[&str],
    ) -> Result<Vec<String>, EmptyAlgorithmList> {
        let names = self.names.iter().map(String::as_str);
        let defaults = defaults.iter().copied();
        let candidates: Vec<&str> = match self.edit {
            Edit::Replace => names.collect(),
            Edit::Append => defaults.chain(names).collect(),
            Edit::Prepend => names.chain(defaults).collect(),
            Edit::Remove => {
                let list = self.names.join(",");
                defaults
                    .filter(|name| !pattern::list_matches(&list, name))
                    .collect()
            }
        };
        let mut result: Vec<String> = Vec::new();
        for candidate in candidates {
            for name in known
                .iter()
                .filter(|name| pattern::list_matches(candidate, name))
            {
                if !result.iter().any(|have| have == name) {
                    result.push(name.to_string());
                }
            }
        }
        if result.is_empty() {
            Err(EmptyAlgorithmList)
        } else {
            Ok(result)
        }
    }

    /// The names asked for that are not implemented: what a host may need the installed ssh for.
    pub fn unknown<'a>(&'a self, known: &[&str]) -> Vec<&'a str> {
        if self.edit == Edit::Remove {
            return Vec::new();
        }
        let names = self.names.iter().map(String::as_str);
        names
            .filter(|name| !known.iter().any(|have| pattern::list_matches(name, have)))
            .collect()
    }
}

#[cfg(test)]
mod tests;
