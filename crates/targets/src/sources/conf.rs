//! groups.conf: the INI dialect of Python's `configparser`, which no crate reads with line numbers.

use std::collections::BTreeMap;

use crate::{
    TargetError, TargetProblem,
    file::{lines, utf8},
    words::words,
};

use super::upcall::{Upcalls, substitute};

/// The section that is no source.
const MAIN: &str = "Main";

/// The section whose options hold in all others.
const DEFAULTS: &str = "DEFAULT";

/// Sections and their options, keys in lower case. Several files are read one after the other; what a later one
/// says replaces what an earlier one said.
#[derive(Debug, Default)]
pub(super) struct Conf {
    /// In the order in which they were first met.
    sections: Vec<(String, BTreeMap<String, String>)>,
}

impl Conf {
    /// Reads one more file.
    ///
    /// A line is `[section]`, `key: value` or `key = value`; deeper indented lines go on with the value, `#` and
    /// `;` begin a comment at the start of a line only.
    pub(super) fn read(&mut self, label: &str, contents: &[u8]) -> Result<(), TargetError> {
        let mut reader = Reader {
            section: None,
            option: None,
            indent: 0,
            seen: Vec::new(),
        };
        for (number, line) in lines(contents) {
            let read = utf8(line).and_then(|line| {
                let wrong = |problem| TargetError::new(line.trim(), problem);
                reader.line(self, line).map_err(wrong)
            });
            read.map_err(|error| error.at(label, number))?;
        }
        Ok(())
    }

    fn section(&mut self, name: &str) -> usize {
        let known = self.sections.iter().position(|(known, _)| known == name);
        known.unwrap_or_else(|| {
            self.sections.push((name.to_owned(), BTreeMap::new()));
            self.sections.len() - 1
        })
    }

    fn option(&self, section: &str, key: &str) -> Option<&str> {
        let of = |name: &str| self.sections.iter().find(|(known, _)| known == name);
        let value = |name: &str| of(name).and_then(|(_, options)| options.get(key));
        value(section)
            .or_else(|| value(DEFAULTS))
            .map(String::as_str)
    }

    /// The source that `@group` means, unless it is left empty.
    pub(super) fn default_source(&self) -> Option<String> {
        let default = self.option(MAIN, "default").unwrap_or_default().trim();
        (!default.is_empty()).then(|| default.replace("%%", "%"))
    }

    /// Directories of more sources: `confdir` (once called `groupsdir`) or `autodir`, each once.
    pub(super) fn directories(
        &self,
        key: &str,
        conf_directory: &str,
    ) -> Result<Vec<String>, TargetProblem> {
        let key = match key {
            "confdir" if self.option(MAIN, "groupsdir").is_some() => "groupsdir",
            key => key,
        };
        let written = self
            .option(MAIN, key)
            .unwrap_or_default()
            .replace("%%", "%");
        let mut directories = Vec::new();
        for word in words(&written).map_err(|_| TargetProblem::UnclosedQuote)? {
            let directory = substitute(&word, |name| (name == "CFGDIR").then_some(conf_directory));
            let directory = directory.trim_end_matches('/').to_owned();
            if !directories.contains(&directory) {
                directories.push(directory);
            }
        }
        Ok(directories)
    }

    /// The sources with their programs, which run in `directory`. A section may name several, with commas.
    pub(super) fn sources(&self, directory: &str) -> Result<Vec<(String, Upcalls)>, TargetProblem> {
        let mut sources = Vec::new();
        for (section, _) in &self.sections {
            let names = section
                .split(',')
                .filter(|name| *name != MAIN && *name != DEFAULTS);
            for name in names {
                let option = |key| self.option(section, key).map(str::to_owned);
                let upcalls = Upcalls {
                    map: option("map"),
                    mapall: option("mapall"),
                    all: option("all"),
                    list: option("list"),
                    reverse: option("reverse"),
                    directory: directory.to_owned(),
                };
                if upcalls.map.is_none() && upcalls.mapall.is_none() {
                    return Err(TargetProblem::NoMap(section.clone()));
                }
                sources.push((name.to_owned(), upcalls));
            }
        }
        Ok(sources)
    }
}

/// Where in a file reading stands.
struct Reader {
    section: Option<usize>,
    /// The option that deeper indented lines go on with, and how deep it is.
    option: Option<String>,
    indent: usize,
    /// Sections and options of this file: each may stand once.
    seen: Vec<(usize, Option<String>)>,
}

impl Reader {
    fn line(&mut self, conf: &mut Conf, line: &str) -> Result<(), TargetProblem> {
        let text = line.trim();
        if text.is_empty() || text.starts_with(['#', ';']) {
            return Ok(());
        }
        let indent = line.len() - line.trim_start().len();
        if let (Some(section), Some(option)) = (self.section, &self.option)
            && indent > self.indent
        {
            let value = conf.sections[section].1.entry(option.clone()).or_default();
            value.push('\n');
            value.push_str(text);
            return Ok(());
        }
        self.indent = indent;
        let header = text
            .strip_prefix('[')
            .and_then(|text| text.rsplit_once(']'));
        if let Some((name, _)) = header.filter(|(name, _)| !name.is_empty()) {
            self.option = None;
            let section = conf.section(name);
            self.section = Some(section);
            return self.see(section, None);
        }
        let section = self.section.ok_or(TargetProblem::NoSection)?;
        let (key, value) = text.split_once(['=', ':']).ok_or(TargetProblem::NoValue)?;
        let key = key.trim().to_lowercase();
        if key.is_empty() {
            return Err(TargetProblem::NoValue);
        }
        self.see(section, Some(key.clone()))?;
        conf.sections[section]
            .1
            .insert(key.clone(), value.trim().to_owned());
        self.option = Some(key);
        Ok(())
    }

    fn see(&mut self, section: usize, option: Option<String>) -> Result<(), TargetProblem> {
        let new = (section, option);
        if self.seen.contains(&new) {
            return Err(TargetProblem::Repeated);
        }
        self.seen.push(new);
        Ok(())
    }
}
