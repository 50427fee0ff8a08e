//! Lists as `-w` and `-x` take them, and the groups that they name.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use sshoal_targets::{
    Expansion, Genders, GroupTable, HostList, Names, Need, NodeName, Operand, Sources, Supply,
    Target, TargetError, TargetProblem,
};

use super::{HostsError, dsh, files, inventory, known_names, supply};
use crate::args::HostArgs;

/// Group sources that are always there, if somebody names them.
const INVENTORY: &str = "inventory";
const GENDERS: &str = "genders";
const DSH: &str = "dsh";
const SSH_CONFIG: &str = "ssh_config";
const KNOWN_HOSTS: &str = "known_hosts";

/// Turns lists into targets.
pub(crate) struct Lists {
    sources: Sources,
    /// The inventory's hosts by name, with their users, ports and options.
    inventory: Option<HashMap<String, Target>>,
    genders: Looked<Genders>,
    /// Sources of ours that were added so far.
    added: BTreeSet<&'static str>,
    has_candidates: bool,
}

/// What is looked for when it is first needed.
enum Looked<T> {
    NotYet,
    Done(Option<T>),
}

impl Lists {
    /// Reads the inventories that are named; everything else is read when a list needs it.
    pub(crate) fn new(args: &HostArgs) -> Result<Lists, HostsError> {
        let mut sources = Sources::new(conf_paths());
        let mut by_name = None;
        if !args.inventory.is_empty() {
            let inventory = inventory::read_all(&args.inventory)?;
            sources.add_table(INVENTORY, inventory.table()?);
            sources.set_default(INVENTORY);
            let targets = inventory.targets()?.into_iter();
            by_name = Some(
                targets
                    .map(|target| (target.name.clone(), target))
                    .collect(),
            );
        }
        Ok(Lists {
            sources,
            inventory: by_name,
            genders: Looked::NotYet,
            added: BTreeSet::new(),
            has_candidates: false,
        })
    }

    /// The targets of a list.
    pub(crate) fn list(&mut self, list: &str) -> Result<Vec<Target>, HostsError> {
        if list == "-" {
            return Err(HostsError::Dash);
        }
        self.expand(&HostList::parse(list)?)
    }

    /// `-g`: queries of the genders file, where there is one and no inventory; else groups. A group with its source is
    /// one of groups.conf in any case.
    pub(super) fn groups(&mut self, groups: &str) -> Result<Vec<Target>, HostsError> {
        match self.queried(groups, NodeName::default())? {
            Some(nodes) => Ok(nodes),
            None => self.named_groups(groups),
        }
    }

    /// `-X`: the same. A node is left out by either of its names, whichever it was named by, as pdsh does.
    pub(super) fn groups_to_leave_out(&mut self, groups: &str) -> Result<Vec<Target>, HostsError> {
        let mut nodes = self.groups(groups)?;
        nodes.extend(
            self.queried(groups, NodeName::Canonical)?
                .unwrap_or_default(),
        );
        Ok(nodes)
    }

    /// The nodes that a query finds; `None` where there is no genders file, or a group is meant.
    fn queried(&mut self, query: &str, names: NodeName) -> Result<Option<Vec<Target>>, HostsError> {
        match self.genders()? {
            Some(genders) if !query.contains(':') => Ok(Some(genders.query(query, names)?)),
            _ => Ok(None),
        }
    }

    fn named_groups(&mut self, groups: &str) -> Result<Vec<Target>, HostsError> {
        let mut list = String::from("@");
        let mut inside_brackets = false;
        for character in groups.chars() {
            match character {
                '[' => inside_brackets = true,
                ']' => inside_brackets = false,
                _ => {}
            }
            list.push(character);
            if character == ',' && !inside_brackets {
                list.push('@');
            }
        }
        self.list(&list)
    }

    /// `-a`: all hosts of the inventory, of the genders file but those that pdsh skips, or of the default group source.
    pub(super) fn all(&mut self) -> Result<Vec<Target>, HostsError> {
        match self.genders()? {
            Some(genders) => Ok(genders.all_but_skipped(NodeName::default())?),
            None => self.list("@*"),
        }
    }

    /// The groups of a source, or of the default one.
    pub(crate) fn group_names(&mut self, source: Option<&str>) -> Result<Vec<String>, HostsError> {
        self.names(|sources| sources.group_names(source))
    }

    /// The groups of a source, or of the default one, that hold a host.
    pub(crate) fn groups_of(
        &mut self,
        host: &str,
        source: Option<&str>,
    ) -> Result<Vec<String>, HostsError> {
        self.names(|sources| sources.groups_of(host, source))
    }

    fn names(
        &mut self,
        ask: impl Fn(&mut Sources) -> Result<Names, TargetError>,
    ) -> Result<Vec<String>, HostsError> {
        self.add_genders()?;
        loop {
            match ask(&mut self.sources) {
                Ok(Names::Names(names)) => return Ok(names),
                Ok(Names::Needs(needs)) => {
                    for (need, supply) in supply::supply_all(needs) {
                        self.sources.handle_supply(need, supply);
                    }
                }
                Err(error) if lacks_source(&error) && self.add_dsh()? => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// From now on globs choose from these.
    pub(super) fn choose_from(&mut self, candidates: Vec<Target>) {
        self.sources.set_candidates(candidates);
        self.has_candidates = true;
    }

    /// Adds what the inventory says of hosts that were only named: a name in a list means the same machine.
    pub(super) fn complete(&self, mut targets: Vec<Target>) -> Vec<Target> {
        let Some(inventory) = &self.inventory else {
            return targets;
        };
        for target in &mut targets {
            let known = inventory.get(&target.name);
            if let Some(known) = known.filter(|_| target.options.is_empty()) {
                target.user = target.user.take().or_else(|| known.user.clone());
                target.port = target.port.or(known.port);
                target.options.clone_from(&known.options);
            }
        }
        targets
    }

    fn expand(&mut self, list: &HostList) -> Result<Vec<Target>, HostsError> {
        self.add_sources(list)?;
        loop {
            match self.sources.expand(list) {
                Ok(Expansion::Targets(targets)) => return Ok(targets),
                Ok(Expansion::Needs(needs)) => self.supply(list, needs)?,
                Err(error) if lacks_source(&error) && self.add_dsh()? => {}
                Err(error) if error.problem == TargetProblem::NoCandidates => {
                    let known = [
                        known_names::config_names(),
                        known_names::known_hosts_names(),
                    ];
                    let known = known.concat();
                    if self.has_candidates || known.is_empty() {
                        return Err(error.into());
                    }
                    self.choose_from(known);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn supply(&mut self, list: &HostList, needs: Vec<Need>) -> Result<(), HostsError> {
        let is_host_file = |need: &Need| {
            let Need::File { path } = need else {
                return false;
            };
            let mut operands = list.terms().iter().map(|term| &term.operand);
            operands.any(|operand| matches!(operand, Operand::File(file) if file == path))
        };
        let (host_files, others): (Vec<Need>, Vec<Need>) =
            needs.into_iter().partition(is_host_file);
        for need in host_files {
            if let Need::File { path } = &need {
                let contents = files::contents(Path::new(path))?;
                self.sources.handle_supply(need, Supply::Content(contents));
            }
        }
        for (need, supply) in supply::supply_all(others) {
            self.sources.handle_supply(need, supply);
        }
        Ok(())
    }

    /// Adds the sources of ours that a list may mean.
    fn add_sources(&mut self, list: &HostList) -> Result<(), HostsError> {
        for term in list.terms() {
            match &term.operand {
                Operand::Group(group) => match group.source.as_deref() {
                    Some(SSH_CONFIG) => self.add_known(SSH_CONFIG),
                    Some(KNOWN_HOSTS) => self.add_known(KNOWN_HOSTS),
                    _ => self.add_genders()?,
                },
                Operand::Selector(_) => self.add_genders()?,
                _ => {}
            }
        }
        Ok(())
    }

    fn add_genders(&mut self) -> Result<(), HostsError> {
        let table = match self.genders()? {
            Some(genders) => genders.table(NodeName::default())?,
            None => return Ok(()),
        };
        if self.added.insert(GENDERS) {
            self.sources.add_table(GENDERS, table);
        }
        Ok(())
    }

    /// Adds the groups of dsh. Where nothing else is, they are the default source.
    fn add_dsh(&mut self) -> Result<bool, HostsError> {
        if self.added.insert(DSH)
            && let Some(table) = dsh::table()?
        {
            self.sources.add_table(DSH, table);
            return Ok(true);
        }
        Ok(false)
    }

    fn add_known(&mut self, name: &'static str) {
        if self.added.insert(name) {
            let mut table = GroupTable::default();
            table.set_all(match name {
                SSH_CONFIG => known_names::config_names(),
                _ => known_names::known_hosts_names(),
            });
            self.sources.add_table(name, table);
        }
    }

    /// The genders file, which an inventory stands in for.
    fn genders(&mut self) -> Result<Option<&Genders>, HostsError> {
        if self.inventory.is_some() {
            return Ok(None);
        }
        if let Looked::NotYet = self.genders {
            self.genders = Looked::Done(inventory::genders()?);
        }
        match &self.genders {
            Looked::Done(Some(genders)) => Ok(Some(genders)),
            _ => Ok(None),
        }
    }
}

/// Whether there is nowhere to look, or only elsewhere: the groups of dsh are looked for last.
fn lacks_source(error: &TargetError) -> bool {
    match &error.problem {
        TargetProblem::NoSources | TargetProblem::NoCandidates => true,
        TargetProblem::UnknownSource { name, .. } => name == DSH,
        _ => false,
    }
}

/// ClusterShell's configuration of groups, the most important last (`config_paths`, Defaults.py).
fn conf_paths() -> Vec<String> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let home = variable("HOME");
    let user = variable("XDG_CONFIG_HOME").or_else(|| Some(home.as_ref()?.join(".config")));
    let directories = [
        Some(PathBuf::from("/etc/clustershell")),
        home.as_ref()
            .map(|home| home.join(".local/etc/clustershell")),
        user.map(|directory| directory.join("clustershell")),
        variable("CLUSTERSHELL_CFGDIR"),
    ];
    let paths = directories.into_iter().flatten();
    paths
        .filter_map(|directory| directory.join("groups.conf").to_str().map(str::to_owned))
        .collect()
}
