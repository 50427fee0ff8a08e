//! `sshoal hosts list`: which groups there are, and which hold a host.

use std::collections::BTreeMap;

use sshoal_targets::Target;

use super::{HostsArgs, folded, joined, line, targets};
use crate::hosts::{HostsError, Lists};

/// A group as a list names it, with its hosts if they are wanted.
type Groups = BTreeMap<String, Option<Vec<Target>>>;

/// The groups as text.
pub(super) fn list(
    args: &HostsArgs,
    separator: &str,
) -> Result<String, Box<dyn std::error::Error>> {
    let groups = groups(args)?;
    if !args.json {
        let items = groups.iter().map(|(group, members)| match members {
            Some(members) => format!("{group} {}", folded(members)),
            None => group.clone(),
        });
        return Ok(joined(items, separator));
    }
    let value = match args.members {
        true => {
            let of = |members: &Option<Vec<Target>>| {
                let members = members.iter().flatten();
                members.map(Target::to_string).collect::<Vec<_>>()
            };
            let groups = groups.iter().map(|(group, members)| (group, of(members)));
            serde_json::to_string(&groups.collect::<BTreeMap<_, _>>())?
        }
        false => serde_json::to_string(&groups.keys().collect::<Vec<_>>())?,
    };
    Ok(line(&value))
}

fn groups(args: &HostsArgs) -> Result<Groups, HostsError> {
    let mut lists = Lists::new(&args.hosts)?;
    let source = args.source.as_deref();
    let mut names = Vec::new();
    if args.lists.is_empty() {
        names = lists.group_names(source)?;
    } else {
        for target in targets(args)? {
            names.extend(lists.groups_of(&target.name, source)?);
        }
    }
    let mut groups = Groups::new();
    for name in names {
        let group = match source {
            Some(source) => format!("@{source}:{name}"),
            None => format!("@{name}"),
        };
        let members = match args.members {
            true => Some(lists.list(&group)?),
            false => None,
        };
        groups.insert(group, members);
    }
    Ok(groups)
}
