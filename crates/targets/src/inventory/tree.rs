//! Inventories that are trees: YAML files, and the JSON of inventory programs.

use serde_json::Value;

use crate::{
    TargetError, TargetProblem,
    yaml::{self, Content, Node},
};

use super::{
    ALL, Inventory, UNGROUPED,
    range::expand,
    variables::{keep, keep_node},
};

/// Deepest nesting of children in a YAML file; the tree itself is limited too.
const MAX_DEPTH: usize = 32;

/// A problem and the node that has it.
type Failure<'a> = (&'a Node, TargetProblem);

pub(super) fn parse_yaml(label: &str, contents: &[u8]) -> Result<Inventory, TargetError> {
    let root = yaml::parse(label, contents)?;
    let mut inventory = Inventory::default();
    let groups = root
        .entries()
        .ok_or((&root, TargetProblem::YamlShape("groups")));
    let read = groups.and_then(|groups| {
        groups
            .iter()
            .try_for_each(|(name, group)| yaml_group(&mut inventory, name, group, 0))
    });
    match read {
        Ok(()) => Ok(inventory),
        Err((node, problem)) => Err(TargetError::new("", problem).at(label, node.line)),
    }
}

fn yaml_group<'a>(
    inventory: &mut Inventory,
    name: &'a Node,
    group: &'a Node,
    depth: usize,
) -> Result<(), Failure<'a>> {
    if depth > MAX_DEPTH {
        return Err((name, TargetProblem::YamlTooDeep(MAX_DEPTH)));
    }
    let group_name = name
        .scalar()
        .ok_or((name, TargetProblem::YamlShape("a group's name")))?;
    let wrong = |problem| (name, problem);
    inventory.group(group_name).map_err(wrong)?;
    let parts = group
        .entries()
        .ok_or((group, TargetProblem::YamlShape("hosts, children or vars")))?;
    for (key, value) in parts {
        match key.scalar().unwrap_or_default() {
            "hosts" => yaml_hosts(inventory, group_name, value)?,
            "children" => {
                let children = value
                    .entries()
                    .ok_or((value, TargetProblem::YamlShape("groups")))?;
                for (child, below) in children {
                    yaml_group(inventory, child, below, depth + 1)?;
                    let child = child.scalar().unwrap_or_default().to_owned();
                    inventory
                        .group(group_name)
                        .map_err(wrong)?
                        .children
                        .insert(child);
                }
            }
            "vars" => {
                let kept = &mut inventory.group(group_name).map_err(wrong)?.variables.own;
                for (variable, value) in value
                    .entries()
                    .ok_or((value, TargetProblem::YamlShape("variables")))?
                {
                    keep_node(kept, variable, value);
                }
            }
            _ => return Err((key, TargetProblem::YamlShape("hosts, children or vars"))),
        }
    }
    Ok(())
}

/// Hosts with their variables; a text or a list of texts are hosts without.
fn yaml_hosts<'a>(
    inventory: &mut Inventory,
    group: &str,
    hosts: &'a Node,
) -> Result<(), Failure<'a>> {
    let no_variables = |node: &'a Node| (node, None);
    let named: Vec<(&Node, Option<&Node>)> = match &hosts.content {
        _ if hosts.is_null() => Vec::new(),
        Content::Mapping(entries) => entries.iter().map(|(name, of)| (name, Some(of))).collect(),
        Content::Sequence(items) => items.iter().map(no_variables).collect(),
        Content::Scalar { .. } => vec![no_variables(hosts)],
    };
    for (node, variables) in named {
        let pattern = node
            .scalar()
            .ok_or((node, TargetProblem::YamlShape("a host's name")))?;
        for host in add_hosts(inventory, group, pattern).map_err(|problem| (node, problem))? {
            let Some(of) = variables else { continue };
            let kept = &mut inventory.hosts[host].variables.own;
            for (variable, value) in of
                .entries()
                .ok_or((of, TargetProblem::YamlShape("variables")))?
            {
                keep_node(kept, variable, value);
            }
        }
    }
    Ok(())
}

/// Adds the hosts of a pattern to a group.
fn add_hosts(
    inventory: &mut Inventory,
    group: &str,
    pattern: &str,
) -> Result<Vec<usize>, TargetProblem> {
    let (names, port) = expand(pattern)?;
    let mut hosts = Vec::with_capacity(names.len());
    for name in names {
        let host = inventory.host(&name)?;
        if let Some(port) = port {
            keep(
                &mut inventory.hosts[host].variables.own,
                "ansible_port",
                port,
            );
        }
        if group != ALL && group != UNGROUPED {
            inventory.group(group)?.hosts.insert(host);
        }
        hosts.push(host);
    }
    Ok(hosts)
}

pub(super) fn parse_list(label: &str, contents: &[u8]) -> Result<Inventory, TargetError> {
    let wrong = |problem| TargetError::new("", problem).in_file(label);
    let json: Value = serde_json::from_slice(contents)
        .map_err(|error| wrong(TargetProblem::Json(error.to_string())))?;
    let mut inventory = Inventory::default();
    let shape = || {
        wrong(TargetProblem::JsonShape(
            "an object of groups, as inventory programs print for --list",
        ))
    };
    let groups = json.as_object().ok_or_else(shape)?;
    for (name, group) in groups.iter().filter(|(name, _)| *name != "_meta") {
        let in_group = |problem| TargetError::new(name, problem).in_file(label);
        json_group(&mut inventory, name, group).map_err(in_group)?;
    }
    inventory.lacks_host_variables = !groups.contains_key("_meta");
    let hostvars = json.pointer("/_meta/hostvars").and_then(Value::as_object);
    for (name, variables) in hostvars.into_iter().flatten() {
        // Variables of a host that is in no group are of no host.
        if let Some(host) = inventory.by_name.get(name) {
            json_variables(&mut inventory.hosts[*host].variables.own, variables);
        }
    }
    Ok(inventory)
}

/// What an inventory program prints for `--host NAME`: an object of variables, or nothing.
pub(super) fn parse_host(
    inventory: &mut Inventory,
    host: &str,
    label: &str,
    contents: &[u8],
) -> Result<(), TargetError> {
    let wrong = |problem| TargetError::new("", problem).in_file(label);
    if contents.trim_ascii().is_empty() {
        return Ok(());
    }
    let json: Value = serde_json::from_slice(contents)
        .map_err(|error| wrong(TargetProblem::Json(error.to_string())))?;
    if !json.is_object() {
        return Err(wrong(TargetProblem::JsonShape("an object of variables")));
    }
    if let Some(known) = inventory.by_name.get(host) {
        json_variables(&mut inventory.hosts[*known].variables.own, &json);
    }
    Ok(())
}

fn json_group(inventory: &mut Inventory, name: &str, group: &Value) -> Result<(), TargetProblem> {
    inventory.group(name)?;
    let names = |list: Option<&Value>| -> Result<Vec<String>, TargetProblem> {
        let bad = || TargetProblem::JsonShape("a list of names");
        let items = match list {
            None | Some(Value::Null) => return Ok(Vec::new()),
            Some(list) => list.as_array().ok_or_else(bad)?,
        };
        items
            .iter()
            .map(|item| item.as_str().map(str::to_owned).ok_or_else(bad))
            .collect()
    };
    let (hosts, children) = match group {
        Value::Array(_) => (names(Some(group))?, Vec::new()),
        Value::Object(parts) => (names(parts.get("hosts"))?, names(parts.get("children"))?),
        _ => {
            return Err(TargetProblem::JsonShape(
                "hosts, children and vars, or a list of hosts",
            ));
        }
    };
    for host in hosts {
        // Programs print names, not patterns.
        let host = inventory.host(&host)?;
        if name != ALL && name != UNGROUPED {
            inventory.group(name)?.hosts.insert(host);
        }
    }
    for child in &children {
        inventory.group(child)?;
    }
    let group_entry = inventory.group(name)?;
    group_entry.children.extend(children);
    json_variables(
        &mut group_entry.variables.own,
        group.get("vars").unwrap_or(&Value::Null),
    );
    Ok(())
}

fn json_variables(kept: &mut std::collections::BTreeMap<String, String>, variables: &Value) {
    for (name, value) in variables.as_object().into_iter().flatten() {
        match value {
            Value::String(text) => keep(kept, name, text),
            Value::Number(number) => keep(kept, name, &number.to_string()),
            _ => {}
        }
    }
}
