//! Group files in YAML: sources, their groups, and the hosts of each, as ClusterShell reads them from `autodir`.

use crate::{
    TargetError, TargetProblem,
    yaml::{self, Content, Node},
};

use super::GroupTable;

/// The sources of one file.
///
/// ```yaml
/// racks:
///   old: 'web[1-3]'
///   new: ['@racks:old', 'web9']
/// ```
pub(super) fn parse(
    label: &str,
    contents: &[u8],
) -> Result<Vec<(String, GroupTable)>, TargetError> {
    let at = |node: &Node, problem| TargetError::new("", problem).at(label, node.line);
    let root = yaml::parse(label, contents)?;
    let mut sources = Vec::new();
    let Content::Mapping(entries) = &root.content else {
        return Err(at(
            &root,
            TargetProblem::YamlShape("sources, each with its groups"),
        ));
    };
    for (name, groups) in entries {
        let Some(source) = name.text() else {
            return Err(at(name, TargetProblem::YamlNotText));
        };
        let Content::Mapping(groups) = &groups.content else {
            return Err(at(
                groups,
                TargetProblem::YamlShape("groups, each with its hosts"),
            ));
        };
        let mut table = GroupTable::default();
        for (group, hosts) in groups {
            let group = group
                .text()
                .ok_or_else(|| at(group, TargetProblem::YamlNotText))?;
            table.insert_list(
                group,
                list(hosts).map_err(|(node, problem)| at(node, problem))?,
            );
        }
        sources.push((source.to_owned(), table));
    }
    Ok(sources)
}

/// The hosts of a group: a text, several, or nothing.
fn list(hosts: &Node) -> Result<String, (&Node, TargetProblem)> {
    let wrong = |node| {
        (
            node,
            TargetProblem::YamlShape("hosts, as text or as a list of texts"),
        )
    };
    match &hosts.content {
        _ if hosts.is_null() => Ok(String::new()),
        Content::Scalar { text, .. } => Ok(text.clone()),
        Content::Sequence(items) => {
            let scalars = items
                .iter()
                .map(|item| item.scalar().ok_or_else(|| wrong(item)));
            Ok(scalars.collect::<Result<Vec<&str>, _>>()?.join(","))
        }
        Content::Mapping(_) => Err(wrong(hosts)),
    }
}
