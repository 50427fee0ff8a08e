//! Ansible's INI inventories, a dialect of its own (`plugins/inventory/ini.py`).

use crate::{
    TargetError, TargetProblem,
    file::{lines, utf8},
    words::words,
};

use super::{ALL, Inventory, UNGROUPED, keep, range::expand};

/// What the lines of a section are.
enum Section {
    Hosts,
    Children,
    Variables,
}

/// Groups that are defined in `earlier` inventories may be children here.
pub(super) fn parse(
    earlier: &Inventory,
    label: &str,
    contents: &[u8],
) -> Result<Inventory, TargetError> {
    let mut inventory = Inventory::default();
    let mut section = (UNGROUPED.to_owned(), Section::Hosts);
    let mut children = Vec::new();
    for (number, line) in lines(contents) {
        let read = utf8(line).and_then(|line| {
            let line = line.trim();
            if line.is_empty() || line.starts_with(['#', ';']) {
                return Ok(());
            }
            let wrong = |problem| TargetError::new(line, problem);
            if line.starts_with('[') && !is_address(line) {
                section = header(line).map_err(wrong)?;
                return inventory.group(&section.0).map(drop).map_err(wrong);
            }
            let (group, kind) = &section;
            match kind {
                Section::Hosts => host_line(&mut inventory, group, line),
                Section::Variables => variable_line(&mut inventory, group, line),
                Section::Children => {
                    let child = line.split('#').next().unwrap_or_default().trim();
                    children.push((number, child.to_owned()));
                    let parent = inventory.group(group);
                    parent.map(|parent| {
                        parent.children.insert(child.to_owned());
                    })
                }
            }
            .map_err(wrong)
        });
        read.map_err(|error| error.at(label, number))?;
    }
    // A child may be defined below the group that names it, but somewhere it has to be.
    let is_defined = |child: &str| {
        let mut groups = [&inventory, earlier].into_iter();
        groups.any(|inventory| inventory.groups.contains_key(child))
    };
    match children.into_iter().find(|(_, child)| !is_defined(child)) {
        Some((number, child)) => {
            Err(TargetError::new(&child, TargetProblem::UndefinedGroup).at(label, number))
        }
        None => Ok(inventory),
    }
}

/// Whether a line begins with an address such as `[::1]:22`, which is no section.
fn is_address(line: &str) -> bool {
    let inside = line[1..].split(']').next().unwrap_or_default();
    inside.parse::<std::net::Ipv6Addr>().is_ok()
}

/// `[group]`, `[group:children]`, `[group:vars]`.
fn header(line: &str) -> Result<(String, Section), TargetProblem> {
    let (inside, behind) = line[1..]
        .split_once(']')
        .ok_or(TargetProblem::InventorySection)?;
    let behind = behind.trim();
    if !behind.is_empty() && !behind.starts_with('#') {
        return Err(TargetProblem::InventorySection);
    }
    let (group, kind) = match inside.split_once(':') {
        Some((group, "children")) => (group, Section::Children),
        Some((group, "vars")) => (group, Section::Variables),
        Some(_) => return Err(TargetProblem::InventorySection),
        None => (inside, Section::Hosts),
    };
    let group = group.trim();
    match group.is_empty() || group.contains(char::is_whitespace) {
        true => Err(TargetProblem::InventorySection),
        false => Ok((group.to_owned(), kind)),
    }
}

/// `web[01:50].example.com:2222 ansible_user=root # comment`
fn host_line(inventory: &mut Inventory, group: &str, line: &str) -> Result<(), TargetProblem> {
    let words = words(line).map_err(|_| TargetProblem::UnclosedQuote)?;
    let Some((pattern, variables)) = words.split_first() else {
        return Ok(());
    };
    let (names, port) = expand(pattern)?;
    for name in names {
        let host = inventory.host(&name)?;
        if group != ALL && group != UNGROUPED {
            inventory.group(group)?.hosts.insert(host);
        }
        let kept = &mut inventory.hosts[host].variables.own;
        if let Some(port) = port {
            keep(kept, "ansible_port", port);
        }
        for variable in variables {
            let (name, value) = variable
                .split_once('=')
                .ok_or(TargetProblem::InventoryVariable)?;
            keep(kept, name, value);
        }
    }
    Ok(())
}

/// `ansible_user = root`, the value in quotes or not.
fn variable_line(inventory: &mut Inventory, group: &str, line: &str) -> Result<(), TargetProblem> {
    let (name, value) = line
        .split_once('=')
        .ok_or(TargetProblem::InventoryVariable)?;
    let value = value.trim();
    let inside = ['"', '\'']
        .into_iter()
        .find_map(|quote| value.strip_prefix(quote)?.strip_suffix(quote));
    keep(
        &mut inventory.group(group)?.variables.own,
        name.trim(),
        inside.unwrap_or(value),
    );
    Ok(())
}
