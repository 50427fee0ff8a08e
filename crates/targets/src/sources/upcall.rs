//! Group sources that are programs: the `map`, `mapall`, `all`, `list` and `reverse` of groups.conf(5).

use crate::Need;

/// The command lines of one section of groups.conf, before substitution.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Upcalls {
    /// Prints the hosts of `$GROUP`.
    pub(super) map: Option<String>,
    /// Prints all groups, `group: hosts` a line (ClusterShell 1.10).
    pub(super) mapall: Option<String>,
    /// Prints all hosts.
    pub(super) all: Option<String>,
    /// Prints the names of all groups.
    pub(super) list: Option<String>,
    /// Prints the groups of `$NODE`.
    pub(super) reverse: Option<String>,
    /// Where they run, and what `$CFGDIR` stands for.
    pub(super) directory: String,
}

impl Upcalls {
    /// What to run, once names stand for the variables. Only names that mean nothing to a shell come here.
    pub(super) fn need(&self, command: &str, source: &str, variables: &[(&str, &str)]) -> Need {
        let command = substitute(command, |name| {
            let known = [("CFGDIR", self.directory.as_str()), ("SOURCE", source)];
            let mut variables = variables.iter().copied().chain(known);
            variables
                .find(|(known, _)| *known == name)
                .map(|(_, value)| value)
        });
        Need::Program {
            command,
            directory: (!self.directory.is_empty()).then(|| self.directory.clone()),
        }
    }
}

/// Replaces `$NAME` and `${NAME}` where the name is known and leaves the rest to the shell; `$$` becomes `$`
/// (Python's `string.Template.safe_substitute`).
pub(super) fn substitute<'a>(template: &str, value: impl Fn(&str) -> Option<&'a str>) -> String {
    let mut out = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let behind = &rest[at + 1..];
        if let Some(literal) = behind.strip_prefix('$') {
            out.push('$');
            rest = literal;
            continue;
        }
        let (name, after) = variable(behind);
        match value(name) {
            Some(value) => out.push_str(value),
            None => out.push_str(&rest[at..rest.len() - after.len()]),
        }
        rest = after;
    }
    out + rest
}

/// The name behind a dollar sign, empty when there is none, and what follows it.
fn variable(text: &str) -> (&str, &str) {
    let name_len = |text: &str| {
        let is_part = |c: char| c == '_' || c.is_ascii_alphanumeric();
        match text.starts_with(|c: char| c.is_ascii_digit()) {
            true => 0,
            false => text.find(|c| !is_part(c)).unwrap_or(text.len()),
        }
    };
    if let Some(braced) = text.strip_prefix('{') {
        let (name, after) = braced.split_at(name_len(braced));
        return match after.strip_prefix('}') {
            Some(after) if !name.is_empty() => (name, after),
            _ => ("", text),
        };
    }
    text.split_at(name_len(text))
}
