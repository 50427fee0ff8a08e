//! A list becomes targets: operand by operand, from left to right, groups within groups.

use std::{
    collections::{HashMap, HashSet},
    rc::Rc,
};

use crate::{
    GroupName, HostList, MAX_TARGETS, Need, Operand, Operator, Supply, Target, TargetError,
    TargetProblem, Term, parse_file, pattern::Pattern, select::Selector, set::TargetSet,
    target::expand_spec,
};

use super::{GroupTable, Loaded, Members, Source, upcall::Upcalls};

/// Deepest nesting of groups within groups.
const MAX_DEPTH: usize = 64;

/// Most targets that all operands of a list may have together, groups within groups counted each time.
const MAX_WORK: usize = 64 * MAX_TARGETS;

/// Stands for all hosts of a source where a group can stand; no group is called so.
const ALL_HOSTS: &str = "*";

/// Whether a list names groups, or globs that choose from all hosts.
pub(super) fn needs_sources(list: &HostList, has_candidates: bool) -> bool {
    list.terms.iter().any(|term| match &term.operand {
        Operand::Group(_) => true,
        Operand::Selector(_) => !is_filter(term.operator) && !has_candidates,
        Operand::Hosts(_) | Operand::File(_) => false,
    })
}

/// Whether a selector with this operator picks from what stands left of it.
fn is_filter(operator: Operator) -> bool {
    matches!(
        operator,
        Operator::Difference | Operator::Intersection | Operator::Exclusion
    )
}

/// A group of a source.
type GroupId = (String, String);

/// One attempt to evaluate a list with what was supplied. What is missing counts as empty and is noted.
pub(super) struct Evaluation<'a> {
    loaded: &'a Loaded,
    supplies: &'a HashMap<Need, Supply>,
    candidates: Option<&'a [Target]>,
    needs: Vec<Need>,
    noted: HashSet<Need>,
    /// The groups being expanded, outermost first.
    chain: Vec<GroupId>,
    known: HashMap<GroupId, Rc<[Target]>>,
    work: usize,
}

impl<'a> Evaluation<'a> {
    pub(super) fn new(
        loaded: &'a Loaded,
        supplies: &'a HashMap<Need, Supply>,
        candidates: Option<&'a [Target]>,
    ) -> Evaluation<'a> {
        Evaluation {
            loaded,
            supplies,
            candidates,
            needs: Vec::new(),
            noted: HashSet::new(),
            chain: Vec::new(),
            known: HashMap::new(),
            work: 0,
        }
    }

    pub(super) fn into_needs(self) -> Vec<Need> {
        self.needs
    }

    /// The targets of a list; `source` is the one that groups without a source belong to.
    pub(super) fn list(
        &mut self,
        list: &HostList,
        source: Option<&str>,
    ) -> Result<Vec<Target>, TargetError> {
        let mut set = TargetSet::default();
        let (mut excluded, mut unselected) = (Vec::new(), Vec::new());
        for Term { operator, operand } in &list.terms {
            if let (Operand::Selector(selector), true) = (operand, is_filter(*operator)) {
                match operator {
                    Operator::Exclusion => unselected.push(selector),
                    operator => set.select(selector, *operator == Operator::Intersection),
                }
                continue;
            }
            let targets = self.operand(operand, source)?;
            self.work += targets.len();
            if self.work > MAX_WORK {
                return Err(TargetError::new(
                    &operand.to_string(),
                    TargetProblem::TooMany,
                ));
            }
            match operator {
                Operator::Union => set.extend(targets),
                Operator::Difference => set.remove_all(&targets),
                Operator::Intersection => set.intersect(&targets),
                Operator::SymmetricDifference => set.toggle(targets),
                Operator::Exclusion => excluded.extend(targets),
            }
        }
        set.remove_all(&excluded);
        for selector in unselected {
            set.select(selector, false);
        }
        let targets = set.into_targets();
        match targets.len() > MAX_TARGETS {
            true => Err(TargetError::new("", TargetProblem::TooMany)),
            false => Ok(targets),
        }
    }

    fn operand(
        &mut self,
        operand: &Operand,
        source: Option<&str>,
    ) -> Result<Vec<Target>, TargetError> {
        match operand {
            Operand::Hosts(spec) => {
                let mut targets = Vec::new();
                expand_spec(spec, &mut targets)?;
                Ok(targets)
            }
            Operand::File(path) => {
                let need = Need::File { path: path.clone() };
                let contents = self.content(need, path)?;
                contents.map_or(Ok(Vec::new()), |contents| parse_file(path, contents))
            }
            Operand::Selector(selector) => self.selected(selector, source),
            Operand::Group(name) => {
                let quoted = |problem| TargetError::new(&operand.to_string(), problem);
                self.groups(name, source).map_err(|error| match error {
                    Failure::Problem(problem) => quoted(problem),
                    Failure::Error(error) => error,
                })
            }
        }
    }

    fn selected(
        &mut self,
        selector: &Selector,
        source: Option<&str>,
    ) -> Result<Vec<Target>, TargetError> {
        let wrong = |problem| TargetError::new(&selector.to_string(), problem);
        let all;
        let candidates = match (self.candidates, self.loaded.source(source)) {
            (Some(candidates), _) => candidates,
            (None, Some((name, found))) => {
                let group = self.group(name, found, ALL_HOSTS);
                all = group.map_err(|failure| failure.quoting(&selector.to_string()))?;
                &all
            }
            (None, None) => return Err(wrong(TargetProblem::NoCandidates)),
        };
        let picked = candidates
            .iter()
            .filter(|target| selector.matches(&target.name));
        Ok(picked.cloned().collect())
    }

    /// The targets of a group, of several groups with a range, or of a whole source.
    fn groups(
        &mut self,
        name: &GroupName,
        inherited: Option<&str>,
    ) -> Result<Vec<Target>, Failure> {
        let (source_name, source) = self.source(name.source.as_deref().or(inherited))?;
        if name.group == ALL_HOSTS {
            return Ok(self.group(source_name, source, ALL_HOSTS)?.to_vec());
        }
        let mut targets = Vec::new();
        Pattern::parse(&name.group)?.expand(|group| {
            targets.extend_from_slice(&self.group(source_name, source, group)?);
            match targets.len() > MAX_WORK {
                true => Err(Failure::Problem(TargetProblem::TooMany)),
                false => Ok(()),
            }
        })?;
        Ok(targets)
    }

    fn source(&self, name: Option<&str>) -> Result<(&'a str, &'a Source), TargetProblem> {
        self.loaded.source(name).ok_or_else(|| match name {
            Some(name) => TargetProblem::UnknownSource {
                name: name.to_owned(),
                known: self.loaded.names(),
            },
            None => TargetProblem::NoSources,
        })
    }

    /// The targets of one group, or of [`ALL_HOSTS`], looked up once. A group that is being expanded already
    /// contains itself.
    fn group(
        &mut self,
        source_name: &str,
        source: &'a Source,
        group: &str,
    ) -> Result<Rc<[Target]>, Failure> {
        let id = (source_name.to_owned(), group.to_owned());
        if let Some(known) = self.known.get(&id) {
            return Ok(Rc::clone(known));
        }
        if let Some(at) = self.chain.iter().position(|above| *above == id) {
            let names = self.chain[at..].iter().chain([&id]);
            let names: Vec<String> = names
                .map(|(source, group)| format!("@{source}:{group}"))
                .collect();
            return Err(Failure::Problem(TargetProblem::GroupCycle(
                names.join(" > "),
            )));
        }
        if self.chain.len() == MAX_DEPTH {
            return Err(Failure::Problem(TargetProblem::GroupDepth(MAX_DEPTH)));
        }
        self.chain.push(id);
        let members = match source {
            source if group == ALL_HOSTS => self.all(source_name, source).map_err(Failure::from),
            Source::Table(table) => self.in_table(source_name, table, group),
            Source::Upcalls(upcalls) => self.mapped(source_name, upcalls, group),
        };
        let id = self.chain.pop();
        let members: Rc<[Target]> = members?.into();
        self.known.extend(id.map(|id| (id, Rc::clone(&members))));
        Ok(members)
    }

    fn in_table(
        &mut self,
        name: &str,
        table: &GroupTable,
        group: &str,
    ) -> Result<Vec<Target>, Failure> {
        let unknown = || TargetProblem::UnknownGroup {
            group: group.into(),
            of: name.into(),
            known: table.first_names().into(),
        };
        let members = table.groups.get(group).ok_or_else(unknown)?;
        Ok(self.members(members, name, group)?)
    }

    fn members(
        &mut self,
        members: &Members,
        source: &str,
        group: &str,
    ) -> Result<Vec<Target>, TargetError> {
        match members {
            Members::Targets(targets) => Ok(targets.clone()),
            Members::List(list) => self.text(list, &format!("@{source}:{group}"), source),
        }
    }

    /// What `map` prints of a group, or `mapall`'s line of it. A program cannot say that there is no such group:
    /// it prints nothing, and so the group is empty.
    fn mapped(
        &mut self,
        source: &str,
        upcalls: &Upcalls,
        group: &str,
    ) -> Result<Vec<Target>, Failure> {
        let label = format!("@{source}:{group}");
        if let Some(all) = self.mapall(source, upcalls)? {
            let lists: Vec<&str> = all
                .iter()
                .filter(|(name, _)| name == group)
                .map(|(_, list)| &**list)
                .collect();
            if !lists.is_empty() || upcalls.map.is_none() {
                return Ok(self.text(&lists.join(","), &label, source)?);
            }
        }
        let Some(map) = &upcalls.map else {
            return Ok(Vec::new());
        };
        let need = upcalls.need(map, source, &[("GROUP", group)]);
        let output = self.output(need)?.unwrap_or_default();
        Ok(self.text(output, &label, source)?)
    }

    /// `mapall`'s lines, `group: hosts`; `None` when the source has no such program, or no answer yet.
    fn mapall(
        &mut self,
        source: &str,
        upcalls: &Upcalls,
    ) -> Result<Option<Vec<(String, String)>>, TargetError> {
        let Some(mapall) = &upcalls.mapall else {
            return Ok(None);
        };
        let Some(output) = self.output(upcalls.need(mapall, source, &[]))? else {
            return Ok(Some(Vec::new()));
        };
        let mut lines = Vec::new();
        for line in output.lines().filter(|line| !line.trim().is_empty()) {
            let (group, hosts) = line.split_once(':').unwrap_or_default();
            let group = group.trim();
            if group.is_empty() || group.contains(char::is_whitespace) {
                return Err(TargetError::new(line, TargetProblem::MapallLine).in_file(mapall));
            }
            lines.push((group.to_owned(), hosts.trim().to_owned()));
        }
        Ok(Some(lines))
    }

    /// All hosts of a source: what it calls all, or else those of all its groups.
    fn all(&mut self, name: &str, source: &'a Source) -> Result<Vec<Target>, TargetError> {
        match source {
            Source::Table(table) => {
                if let Some(all) = table.all.as_ref().or_else(|| table.groups.get("all")) {
                    return self.members(all, name, "all");
                }
            }
            Source::Upcalls(upcalls) => {
                if let Some(all) = &upcalls.all {
                    let need = upcalls.need(all, name, &[]);
                    let output = self.output(need)?.unwrap_or_default();
                    return self.text(output, &format!("@{name}:*"), name);
                }
            }
        }
        let mut targets = Vec::new();
        for group in self.names_in(name, source)? {
            let members = self
                .group(name, source, &group)
                .map_err(|error| error.quoting(&group))?;
            targets.extend_from_slice(&members);
        }
        Ok(targets)
    }

    pub(super) fn group_names(&mut self, source: Option<&str>) -> Result<Vec<String>, TargetError> {
        let (name, source) = self
            .source(source)
            .map_err(|problem| TargetError::new("", problem))?;
        self.names_in(name, source)
    }

    fn names_in(&mut self, name: &str, source: &'a Source) -> Result<Vec<String>, TargetError> {
        let upcalls = match source {
            Source::Table(table) => return Ok(table.groups.keys().cloned().collect()),
            Source::Upcalls(upcalls) => upcalls,
        };
        let words = match (&upcalls.list, self.mapall(name, upcalls)?) {
            (_, Some(all)) => all.into_iter().map(|(group, _)| group).collect(),
            (Some(list), None) => {
                let need = upcalls.need(list, name, &[]);
                let output = self.output(need)?.unwrap_or_default();
                output
                    .split_whitespace()
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            }
            (None, None) => return Err(TargetError::new(name, TargetProblem::NoListing)),
        };
        group_words(&words, name)
    }

    pub(super) fn groups_of(
        &mut self,
        host: &str,
        source: Option<&str>,
    ) -> Result<Vec<String>, TargetError> {
        let mut checked = Vec::new();
        expand_spec(host, &mut checked)?;
        let (name, source) = self
            .source(source)
            .map_err(|problem| TargetError::new("", problem))?;
        if let Source::Upcalls(Upcalls {
            reverse: Some(reverse),
            ..
        }) = source
            && let Source::Upcalls(upcalls) = source
        {
            let need = upcalls.need(reverse, name, &[("NODE", host)]);
            let output = self.output(need)?.unwrap_or_default();
            let words: Vec<String> = output.split_whitespace().map(str::to_owned).collect();
            return group_words(&words, name);
        }
        let mut names = self.names_in(name, source)?;
        let mut error = None;
        names.retain(|group| match self.group(name, source, group) {
            Ok(members) => members
                .iter()
                .any(|target| target.name.eq_ignore_ascii_case(host)),
            Err(failure) => {
                error.get_or_insert(failure.quoting(group));
                false
            }
        });
        error.map_or(Ok(names), Err)
    }

    /// The targets of a list that stands in a group. It may name groups, but neither files nor exclusions.
    fn text(&mut self, text: &str, label: &str, source: &str) -> Result<Vec<Target>, TargetError> {
        let in_group = |error: TargetError| error.in_file(label);
        let list = HostList::parse(text).map_err(in_group)?;
        for Term { operator, operand } in &list.terms {
            let refused = match (operator, operand) {
                (Operator::Exclusion, _) => TargetProblem::LeadingDash,
                (_, Operand::File(_)) => TargetProblem::NestedFile,
                _ => continue,
            };
            return Err(in_group(TargetError::new(&operand.to_string(), refused)));
        }
        self.list(&list, Some(source)).map_err(in_group)
    }

    /// What a program printed; `None` when that is not known yet.
    fn output(&mut self, need: Need) -> Result<Option<&'a str>, TargetError> {
        let Need::Program { command, .. } = &need else {
            return Ok(None);
        };
        let label = command.clone();
        let Some(output) = self.content(need, &label)? else {
            return Ok(None);
        };
        let text = std::str::from_utf8(output);
        text.map(Some)
            .map_err(|_| TargetError::new("", TargetProblem::NotUtf8).in_file(&label))
    }

    /// What was supplied for a need, which else is noted.
    fn content(&mut self, need: Need, label: &str) -> Result<Option<&'a [u8]>, TargetError> {
        let unreadable = |why: &str| {
            TargetError::new("", TargetProblem::Unreadable(why.to_owned())).in_file(label)
        };
        match self.supplies.get(&need) {
            Some(Supply::Content(contents)) => Ok(Some(contents)),
            Some(Supply::Failed(why)) => Err(unreadable(why)),
            Some(Supply::Absent | Supply::Paths(_)) => Err(unreadable("there is no such file")),
            None => {
                if self.noted.insert(need.clone()) {
                    self.needs.push(need);
                }
                Ok(None)
            }
        }
    }
}

/// Groups as a program names them, ranges expanded, sorted, each once.
fn group_words(words: &[String], source: &str) -> Result<Vec<String>, TargetError> {
    let mut names = Vec::new();
    for word in words {
        let wrong = |problem| TargetError::new(word, problem).in_file(&format!("@{source}"));
        let name = GroupName::parse(word).map_err(wrong)?;
        if name.source.is_some() || name.group == "*" {
            return Err(wrong(TargetProblem::GroupCharacter(if name.group == "*" {
                '*'
            } else {
                ':'
            })));
        }
        let pattern = Pattern::parse(&name.group).map_err(wrong)?;
        let expanded = pattern.expand(|group| {
            names.push(group.to_owned());
            match names.len() > MAX_TARGETS {
                true => Err(TargetProblem::TooMany),
                false => Ok(()),
            }
        });
        expanded.map_err(wrong)?;
    }
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

/// What is wrong with a group: in its name, which the caller quotes, or deeper.
enum Failure {
    Problem(TargetProblem),
    Error(TargetError),
}

impl Failure {
    fn quoting(self, group: &str) -> TargetError {
        match self {
            Failure::Problem(problem) => TargetError::new(group, problem),
            Failure::Error(error) => error,
        }
    }
}

impl From<TargetProblem> for Failure {
    fn from(problem: TargetProblem) -> Failure {
        Failure::Problem(problem)
    }
}

impl From<TargetError> for Failure {
    fn from(error: TargetError) -> Failure {
        Failure::Error(error)
    }
}
