//! Finding the sources: groups.conf, the directories it names, the tables of the caller.

use std::{collections::HashMap, path::Path};

use crate::{Need, Supply, TargetError, TargetProblem};

use super::{GroupTable, Loaded, Source, conf::Conf, yaml_groups};

/// Most files that one directory of group sources may hold.
const MAX_FILES: usize = 1000;

/// One attempt to load the sources with what was supplied.
pub(super) struct Loading<'a> {
    supplies: &'a HashMap<Need, Supply>,
    needs: Vec<Need>,
}

impl<'a> Loading<'a> {
    pub(super) fn new(supplies: &'a HashMap<Need, Supply>) -> Loading<'a> {
        Loading {
            supplies,
            needs: Vec::new(),
        }
    }

    pub(super) fn into_needs(self) -> Vec<Need> {
        self.needs
    }

    /// The sources in ClusterShell's order: those of confdir, of autodir, of groups.conf itself. When needs are
    /// left over, they are not complete.
    pub(super) fn load(
        &mut self,
        conf_paths: &[String],
        tables: &[(String, GroupTable)],
        default: Option<&str>,
    ) -> Result<Loaded, TargetError> {
        let mut loaded = Loaded::default();
        for (name, table) in tables {
            loaded
                .sources
                .push((name.clone(), Source::Table(table.clone())));
        }
        loaded.brought = tables.len();
        let mut conf_default = None;
        if let Some((conf, conf_path)) = self.conf(conf_paths)? {
            let in_conf = |problem| TargetError::new("", problem).in_file(&conf_path);
            let directory = directory_of(&conf_path);
            for path in conf.directories("confdir", directory).map_err(in_conf)? {
                self.conf_directory(&path, &mut loaded)?;
            }
            for path in conf.directories("autodir", directory).map_err(in_conf)? {
                self.auto_directory(&path, &mut loaded)?;
            }
            for (name, upcalls) in conf.sources(directory).map_err(in_conf)? {
                add(&mut loaded, name, Source::Upcalls(upcalls)).map_err(in_conf)?;
            }
            conf_default = conf.default_source();
            if let Some(name) = conf_default.as_deref().filter(|_| self.needs.is_empty())
                && loaded.source(Some(name)).is_none()
            {
                return Err(in_conf(TargetProblem::UnknownSource {
                    name: name.to_owned(),
                    known: loaded.names(),
                }));
            }
        }
        let first = || loaded.sources.first().map(|(name, _)| name.clone());
        loaded.default = default.map(str::to_owned).or(conf_default).or_else(first);
        Ok(loaded)
    }

    /// All configuration files as one, and the path of the last, whose directory `$CFGDIR` is.
    fn conf(&mut self, paths: &[String]) -> Result<Option<(Conf, String)>, TargetError> {
        let mut conf = Conf::default();
        let mut last = None;
        for path in paths {
            if let Some(contents) = self.file(path)? {
                conf.read(path, contents)?;
                last = Some(path.clone());
            }
        }
        Ok(last.map(|last| (conf, last)))
    }

    fn conf_directory(&mut self, directory: &str, loaded: &mut Loaded) -> Result<(), TargetError> {
        for path in self.paths(directory, ".conf")? {
            if let Some(contents) = self.file(&path)? {
                let mut conf = Conf::default();
                conf.read(&path, contents)?;
                let in_file = |problem| TargetError::new("", problem).in_file(&path);
                for (name, upcalls) in conf.sources(directory).map_err(in_file)? {
                    add(loaded, name, Source::Upcalls(upcalls)).map_err(in_file)?;
                }
            }
        }
        Ok(())
    }

    fn auto_directory(&mut self, directory: &str, loaded: &mut Loaded) -> Result<(), TargetError> {
        for path in self.paths(directory, ".yaml")? {
            if let Some(contents) = self.file(&path)? {
                for (name, table) in yaml_groups::parse(&path, contents)? {
                    let in_file = |problem| TargetError::new("", problem).in_file(&path);
                    add(loaded, name, Source::Table(table)).map_err(in_file)?;
                }
            }
        }
        Ok(())
    }

    /// The paths in a directory, sorted; none when it does not exist.
    fn paths(&mut self, directory: &str, suffix: &str) -> Result<Vec<String>, TargetError> {
        let need = Need::Directory {
            path: directory.to_owned(),
            suffix: suffix.to_owned(),
        };
        let failed = |problem| TargetError::new("", problem).in_file(directory);
        match self.supply(need) {
            Some(Supply::Paths(paths)) if paths.len() > MAX_FILES => {
                Err(failed(TargetProblem::TooManyFiles(MAX_FILES)))
            }
            Some(Supply::Paths(paths)) => {
                let mut paths = paths.clone();
                paths.sort_unstable();
                Ok(paths)
            }
            Some(Supply::Failed(why)) => Err(failed(TargetProblem::Unreadable(why.clone()))),
            _ => Ok(Vec::new()),
        }
    }

    fn file(&mut self, path: &str) -> Result<Option<&'a [u8]>, TargetError> {
        match self.supply(Need::File {
            path: path.to_owned(),
        }) {
            Some(Supply::Content(contents)) => Ok(Some(contents)),
            Some(Supply::Failed(why)) => {
                let problem = TargetProblem::Unreadable(why.clone());
                Err(TargetError::new("", problem).in_file(path))
            }
            _ => Ok(None),
        }
    }

    /// What was supplied for a need, which else is noted.
    fn supply(&mut self, need: Need) -> Option<&'a Supply> {
        let supply = self.supplies.get(&need);
        if supply.is_none() && !self.needs.contains(&need) {
            self.needs.push(need);
        }
        supply
    }
}

/// Adds a source of groups.conf. The caller's tables come first and hide those of their names; two of one name
/// in the configuration are a mistake.
fn add(loaded: &mut Loaded, name: String, source: Source) -> Result<(), TargetProblem> {
    match loaded.sources.iter().position(|(known, _)| *known == name) {
        None => loaded.sources.push((name, source)),
        Some(at) if at < loaded.brought => {}
        Some(_) => return Err(TargetProblem::RepeatedSource(name)),
    }
    Ok(())
}

fn directory_of(path: &str) -> &str {
    Path::new(path)
        .parent()
        .and_then(Path::to_str)
        .unwrap_or_default()
}
