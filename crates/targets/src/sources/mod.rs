//! Where `@group` comes from: ClusterShell's groups.conf with its programs and YAML files, and tables that the
//! caller brings (genders, inventories).
//!
//! Nothing is read or run here. [`Sources::expand`] says what it needs; the caller gets it, hands it over with
//! [`Sources::handle_supply`], and asks again, until there are targets. Needs of one answer do not depend on each
//! other and may be met at once.

mod conf;
mod evaluate;
mod load;
mod upcall;
mod yaml_groups;

use std::collections::{BTreeMap, HashMap};

use crate::{HostList, Target, TargetError};

use evaluate::Evaluation;
use load::Loading;
use upcall::Upcalls;

/// What the caller has to get.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Need {
    /// A file's contents: [`Supply::Content`] or [`Supply::Absent`].
    File {
        /// Its path as written; a relative one is relative to the working directory.
        path: String,
    },
    /// The paths of files in a directory: [`Supply::Paths`] or [`Supply::Absent`].
    Directory {
        /// The directory's path.
        path: String,
        /// How the names end, such as `.yaml`; hidden files do not count.
        suffix: String,
    },
    /// What a program prints: [`Supply::Content`].
    Program {
        /// A command line for `/bin/sh -c`, its standard input empty.
        command: String,
        /// The directory to run it in; `None` is the working directory.
        directory: Option<String>,
    },
}

/// What the caller got.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Supply {
    /// A file's contents, or a program's standard output when it ended with status 0.
    Content(Vec<u8>),
    /// The paths of a directory's files.
    Paths(Vec<String>),
    /// There is no such file or directory.
    Absent,
    /// Why it could not be got, in words: "Permission denied", "exit status 2".
    Failed(String),
}

/// What expanding a list came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expansion {
    /// The targets in order, each once.
    Targets(Vec<Target>),
    /// What is needed first; not empty, each once.
    Needs(Vec<Need>),
}

/// Groups that a message about a missing one names.
const SHOWN_GROUPS: usize = 10;

/// Groups by name, from one place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GroupTable {
    groups: BTreeMap<String, Members>,
    all: Option<Members>,
}

/// Who belongs to a group.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Members {
    /// A list, which may name groups itself.
    List(String),
    Targets(Vec<Target>),
}

impl GroupTable {
    /// A group whose hosts are known, with their users, ports and options.
    pub fn insert(&mut self, group: impl Into<String>, targets: Vec<Target>) {
        self.groups.insert(group.into(), Members::Targets(targets));
    }

    /// A group as a list, which may name other groups.
    pub fn insert_list(&mut self, group: impl Into<String>, list: impl Into<String>) {
        self.groups.insert(group.into(), Members::List(list.into()));
    }

    /// The first few names, for a message.
    fn first_names(&self) -> String {
        let mut names: Vec<&str> = self
            .groups
            .keys()
            .take(SHOWN_GROUPS)
            .map(String::as_str)
            .collect();
        if self.groups.len() > SHOWN_GROUPS {
            names.push("...");
        }
        names.join(", ")
    }

    /// All hosts, for `@*`; without this the group `all`, or else the hosts of all groups.
    pub fn set_all(&mut self, targets: Vec<Target>) {
        self.all = Some(Members::Targets(targets));
    }
}

/// A group source.
#[derive(Debug, Clone)]
enum Source {
    Table(GroupTable),
    Upcalls(Upcalls),
}

/// Sources by name, in the order in which they were found.
#[derive(Debug, Clone, Default)]
struct Loaded {
    sources: Vec<(String, Source)>,
    /// How many of them, the first ones, the caller brought.
    brought: usize,
    default: Option<String>,
}

impl Loaded {
    /// The source of that name, or the default one, with its name.
    fn source(&self, name: Option<&str>) -> Option<(&str, &Source)> {
        let name = name.or(self.default.as_deref())?;
        let found = self.sources.iter().find(|(known, _)| known == name);
        found.map(|(name, source)| (name.as_str(), source))
    }

    fn names(&self) -> String {
        let names: Vec<&str> = self.sources.iter().map(|(name, _)| name.as_str()).collect();
        match names.is_empty() {
            true => "none".to_owned(),
            false => names.join(", "),
        }
    }
}

/// Group sources, the hosts that globs choose from, and what was supplied so far.
#[derive(Debug, Default)]
pub struct Sources {
    conf_paths: Vec<String>,
    tables: Vec<(String, GroupTable)>,
    default: Option<String>,
    candidates: Option<Vec<Target>>,
    supplies: HashMap<Need, Supply>,
    loaded: Option<Loaded>,
}

impl Sources {
    /// Sources with ClusterShell's configuration in these files, the most important last; those that do not
    /// exist are passed over. ClusterShell looks at `/etc/clustershell/groups.conf`, then
    /// `$XDG_CONFIG_HOME/clustershell/groups.conf`.
    pub fn new(conf_paths: Vec<String>) -> Sources {
        Sources {
            conf_paths,
            ..Sources::default()
        }
    }

    /// Adds a source of this name, which hides one of the same name in groups.conf. The first table is the
    /// default source when nothing else names one.
    pub fn add_table(&mut self, name: impl Into<String>, table: GroupTable) {
        self.tables.push((name.into(), table));
        self.loaded = None;
    }

    /// Makes a source the one of `@group` without a source, over groups.conf's own default.
    pub fn set_default(&mut self, name: impl Into<String>) {
        self.default = Some(name.into());
        self.loaded = None;
    }

    /// The hosts that `web*` and `/^web/` choose from, when not all hosts of the default source are meant: those
    /// of an inventory, of known_hosts, of ssh_config.
    pub fn set_candidates(&mut self, targets: Vec<Target>) {
        self.candidates = Some(targets);
    }

    /// What was needed. A need that is supplied twice keeps the later supply.
    pub fn handle_supply(&mut self, need: Need, supply: Supply) {
        self.supplies.insert(need, supply);
    }

    /// The targets of a list, or what is needed to tell.
    ///
    /// # Errors
    /// A part that cannot be read, a group or a source that does not exist, groups that contain themselves, a
    /// supply that failed: quoted, with the group or file that holds it, and with what to do.
    pub fn expand(&mut self, list: &HostList) -> Result<Expansion, TargetError> {
        self.evaluate(list, |evaluation| evaluation.list(list, None))
    }

    /// The groups of a source (`None`: the default one) in order, for `nodeset --list`, or what is needed.
    ///
    /// # Errors
    /// As for [`Sources::expand`]; also a source that cannot list its groups.
    pub fn group_names(&mut self, source: Option<&str>) -> Result<Names, TargetError> {
        self.load_and(|evaluation| evaluation.group_names(source))
            .map(Names::from)
    }

    /// The groups of a source that a host belongs to, for `nodeset --list NODE`, or what is needed.
    ///
    /// # Errors
    /// As for [`Sources::group_names`].
    pub fn groups_of(&mut self, host: &str, source: Option<&str>) -> Result<Names, TargetError> {
        self.load_and(|evaluation| evaluation.groups_of(host, source))
            .map(Names::from)
    }

    /// A list without groups and globs needs no sources: they are not even looked for.
    fn evaluate(
        &mut self,
        list: &HostList,
        work: impl FnOnce(&mut Evaluation<'_>) -> Result<Vec<Target>, TargetError>,
    ) -> Result<Expansion, TargetError> {
        let found = match evaluate::needs_sources(list, self.candidates.is_some()) {
            true => self.load_and(work)?,
            false => {
                let nothing = Loaded::default();
                let mut evaluation =
                    Evaluation::new(&nothing, &self.supplies, self.candidates.as_deref());
                let targets = work(&mut evaluation)?;
                (targets, evaluation.into_needs())
            }
        };
        Ok(match found {
            (targets, needs) if needs.is_empty() => Expansion::Targets(targets),
            (_, needs) => Expansion::Needs(needs),
        })
    }

    /// Does work on the sources, or says what loading them needs.
    fn load_and<T: Default>(
        &mut self,
        work: impl FnOnce(&mut Evaluation<'_>) -> Result<T, TargetError>,
    ) -> Result<(T, Vec<Need>), TargetError> {
        let loaded = match self.loaded.take() {
            Some(loaded) => loaded,
            None => {
                let mut loading = Loading::new(&self.supplies);
                let loaded =
                    loading.load(&self.conf_paths, &self.tables, self.default.as_deref())?;
                let needs = loading.into_needs();
                if !needs.is_empty() {
                    return Ok((T::default(), needs));
                }
                loaded
            }
        };
        let loaded = self.loaded.insert(loaded);
        let mut evaluation = Evaluation::new(loaded, &self.supplies, self.candidates.as_deref());
        let done = work(&mut evaluation)?;
        Ok((done, evaluation.into_needs()))
    }
}

/// Names of groups, or what is needed to tell them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Names {
    /// The names, sorted, each once.
    Names(Vec<String>),
    /// What is needed first; not empty, each once.
    Needs(Vec<Need>),
}

impl From<(Vec<String>, Vec<Need>)> for Names {
    fn from((names, needs): (Vec<String>, Vec<Need>)) -> Names {
        match needs.is_empty() {
            true => Names::Names(names),
            false => Names::Needs(needs),
        }
    }
}

#[cfg(test)]
mod tests;
