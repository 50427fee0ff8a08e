//! The text of a plan.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::{Action, Graph, PlanError, Problem, Setting, Step, Value, Verb};

/// The largest plan, octets.
pub const MAX_PLAN: usize = 1 << 20;
/// Most steps of a plan.
pub const MAX_STEPS: usize = 1000;
/// Longest name of a step, characters.
pub const MAX_NAME: usize = 64;

const DEFAULTS: &str = "defaults";
const STEP: &str = "step";
const AFTER: &str = "after";

/// A plan: its steps have an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    defaults: Vec<Setting>,
    steps: Vec<Step>,
    graph: Graph,
}

impl Plan {
    /// Understands the text of a file.
    ///
    /// # Errors
    ///
    /// The first thing in it that is wrong, with its line.
    pub fn parse(text: &str) -> Result<Plan, PlanError> {
        Text::new(text).plan()
    }

    /// What is said of all steps.
    pub fn defaults(&self) -> &[Setting] {
        &self.defaults
    }

    /// The steps, in the order of the file.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// What comes after what; steps are numbered from 0 in the order of the file.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// All names of steps, comma separated.
    pub(crate) fn names(&self) -> String {
        names(&self.steps)
    }
}

fn names(steps: &[Step]) -> String {
    let names: Vec<&str> = steps.iter().map(|step| step.name.as_str()).collect();
    names.join(", ")
}

/// A name that a step comes after.
struct After<'a> {
    name: &'a str,
    line: usize,
}

/// A table's entries in the order of the file.
fn in_order<'a, 'i>(
    table: &'a DeTable<'i>,
) -> Vec<(
    &'a Spanned<toml::de::DeString<'i>>,
    &'a Spanned<DeValue<'i>>,
)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

/// A file's text, to which all places belong.
struct Text<'t> {
    text: &'t str,
    /// Where its lines end.
    ends: Vec<usize>,
}

impl<'t> Text<'t> {
    fn new(text: &'t str) -> Self {
        let ends = text.match_indices('\n').map(|(at, _)| at);
        Text {
            text,
            ends: ends.collect(),
        }
    }

    /// The line of an offset, from 1.
    fn line(&self, offset: usize) -> usize {
        self.ends.partition_point(|&end| end < offset) + 1
    }

    fn error(&self, at: usize, step: Option<&str>, problem: Problem) -> PlanError {
        PlanError {
            line: self.line(at),
            step: step.map(str::to_owned),
            problem,
        }
    }

    fn plan(&self) -> Result<Plan, PlanError> {
        if self.text.len() > MAX_PLAN {
            return Err(self.error(0, None, Problem::TooLarge));
        }
        let document = DeTable::parse(self.text).map_err(|error| self.no_toml(&error))?;
        let mut defaults = Vec::new();
        let mut tables = Vec::new();
        for (key, value) in in_order(document.get_ref()) {
            let name = key.get_ref().as_ref();
            let table = value.get_ref().as_table();
            let table = table.ok_or_else(|| self.not_a_table(key.span(), name));
            match name {
                DEFAULTS => defaults = self.defaults(table?)?,
                STEP => tables = in_order(table?),
                name => {
                    let problem = Problem::UnknownTable(name.to_owned());
                    return Err(self.error(key.span().start, None, problem));
                }
            }
        }
        if tables.len() > MAX_STEPS {
            return Err(self.error(0, None, Problem::TooManySteps));
        }
        let (mut steps, mut afters) = (Vec::new(), Vec::new());
        for (key, value) in &tables {
            let (step, after) = self.step(key, value)?;
            steps.push(step);
            afters.push(after);
        }
        if steps.is_empty() {
            return Err(self.error(0, None, Problem::NoSteps));
        }
        let graph = graph(&steps, &afters)?;
        Ok(Plan {
            defaults,
            steps,
            graph,
        })
    }

    /// The parser's words and, of a key that is there twice, which.
    fn no_toml(&self, error: &toml::de::Error) -> PlanError {
        let span = error.span().unwrap_or_default();
        let key = self.text.get(span.clone()).unwrap_or_default();
        let is_name = !key.is_empty() && key.chars().all(is_of_name);
        let message = match is_name {
            true => format!("{}: {key}", error.message()),
            false => error.message().to_owned(),
        };
        self.error(span.start, None, Problem::Toml(message))
    }

    fn not_a_table(&self, at: Range<usize>, name: &str) -> PlanError {
        self.error(at.start, None, Problem::NoTable(name.to_owned()))
    }

    fn defaults(&self, table: &DeTable<'_>) -> Result<Vec<Setting>, PlanError> {
        let entries = in_order(table).into_iter();
        entries
            .map(|(key, value)| self.setting(None, key, value))
            .collect()
    }

    fn step<'a>(
        &self,
        key: &'a Spanned<toml::de::DeString<'t>>,
        value: &'a Spanned<DeValue<'t>>,
    ) -> Result<(Step, Vec<After<'a>>), PlanError> {
        let (name, at) = (key.get_ref().as_ref(), key.span());
        if !is_name(name) {
            return Err(self.error(at.start, None, Problem::BadName(name.to_owned())));
        }
        let Some(table) = value.get_ref().as_table() else {
            return Err(self.not_a_table(at, &format!("step.{name}")));
        };
        let mut action: Option<Action> = None;
        let mut after = Vec::new();
        let mut settings = Vec::new();
        for (key, value) in in_order(table) {
            let wrong = |problem| self.error(key.span().start, Some(name), problem);
            let verb = |verb: &Verb| verb.key() == key.get_ref().as_ref();
            match (key.get_ref().as_ref(), Verb::ALL.into_iter().find(verb)) {
                (AFTER, _) => after = self.after(value).map_err(wrong)?,
                (_, Some(verb)) => {
                    let words = words(verb, value.get_ref()).map_err(wrong)?;
                    let line = self.line(key.span().start);
                    if let Some(other) = action.replace(Action { verb, words, line }) {
                        return Err(wrong(Problem::TwoActions(other.verb.key(), verb.key())));
                    }
                }
                _ => settings.push(self.setting(Some(name), key, value)?),
            }
        }
        let Some(action) = action else {
            return Err(self.error(at.start, Some(name), Problem::NoAction));
        };
        let step = Step {
            name: name.to_owned(),
            line: self.line(at.start),
            action,
            settings,
        };
        Ok((step, after))
    }

    fn after<'a>(&self, value: &'a Spanned<DeValue<'t>>) -> Result<Vec<After<'a>>, Problem> {
        let wrong = || Problem::BadValue {
            key: AFTER.to_owned(),
            wanted: "the name of a step, or a list of names",
        };
        let one = |value: &'a Spanned<DeValue<'t>>| {
            let name = value.get_ref().as_str().ok_or_else(wrong)?;
            let line = self.line(value.span().start);
            Ok(After { name, line })
        };
        match value.get_ref() {
            DeValue::Array(values) => values.iter().map(one).collect(),
            _ => one(value).map(|one| vec![one]),
        }
    }

    fn setting(
        &self,
        step: Option<&str>,
        key: &Spanned<toml::de::DeString<'_>>,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<Setting, PlanError> {
        let at = key.span().start;
        let key = key.get_ref().to_string();
        let wrong = || Problem::BadValue {
            key: key.clone(),
            wanted: "a text, a number, true, false, or a list of texts and numbers",
        };
        let value = match value.get_ref() {
            DeValue::Boolean(given) => Some(Value::Given(*given)),
            DeValue::Array(values) => {
                let texts = values.iter().map(|value| text(value.get_ref()));
                texts.collect::<Option<_>>().map(Value::Texts)
            }
            value => text(value).map(Value::Text),
        };
        match value {
            Some(value) if has_nul(&value) => Err(self.error(
                at,
                step,
                Problem::BadValue {
                    key: key.clone(),
                    wanted: "a text without the character NUL, which no command line can have",
                },
            )),
            Some(value) => Ok(Setting {
                value,
                line: self.line(at),
                key,
            }),
            None => Err(self.error(at, step, wrong())),
        }
    }
}

/// A text, or a number as it was written.
fn text(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => Some(number.to_string()),
        DeValue::Float(number) => Some(number.to_string()),
        _ => None,
    }
}

fn has_nul(value: &Value) -> bool {
    match value {
        Value::Given(_) => false,
        Value::Text(text) => text.contains('\0'),
        Value::Texts(texts) => texts.iter().any(|text| text.contains('\0')),
    }
}

/// What an action is about.
fn words(verb: Verb, value: &DeValue<'_>) -> Result<Vec<String>, Problem> {
    let (least, wanted) = match verb {
        Verb::Run => (1, "a command, or a list of its words"),
        Verb::Script => (1, "a file, or a list of a file and its arguments"),
        Verb::Each => (1, "a program, or a list of a program and its arguments"),
        Verb::Put => (
            2,
            "a list: what is sent, and last of all where it goes on the hosts",
        ),
        Verb::Get => (
            2,
            "a list: what is fetched, and last of all a folder of this machine",
        ),
    };
    let words: Option<Vec<String>> = match value {
        DeValue::Array(values) => values.iter().map(|value| text(value.get_ref())).collect(),
        DeValue::String(text) => Some(vec![text.to_string()]),
        _ => None,
    };
    if words.iter().flatten().any(|word| word.contains('\0')) {
        return Err(Problem::BadValue {
            key: verb.key().to_owned(),
            wanted: "words without the character NUL, which no command line can have",
        });
    }
    let is_blank = |words: &Vec<String>| words.iter().all(|word| word.trim().is_empty());
    words
        .filter(|words| words.len() >= least && !is_blank(words))
        .ok_or_else(|| Problem::BadValue {
            key: verb.key().to_owned(),
            wanted,
        })
}

fn is_of_name(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '-' | '_')
}

/// Whether it can be typed, listed with commas, and told from a flag.
fn is_name(name: &str) -> bool {
    let starts = |name: &str| name.starts_with(|first: char| first.is_ascii_alphanumeric());
    starts(name) && name.chars().all(is_of_name) && name.len() <= MAX_NAME
}

/// The order, if the names that steps come after are there and no step waits for itself.
fn graph(steps: &[Step], afters: &[Vec<After<'_>>]) -> Result<Graph, PlanError> {
    let mut numbers = Vec::with_capacity(steps.len());
    for (step, after) in steps.iter().zip(afters) {
        let mut earlier = Vec::with_capacity(after.len());
        for After { name, line } in after {
            let wrong = |problem| PlanError {
                line: *line,
                step: Some(step.name.clone()),
                problem,
            };
            let Some(number) = steps.iter().position(|step| step.name == *name) else {
                return Err(wrong(Problem::MissingStep {
                    name: (*name).to_owned(),
                    known: names(steps),
                }));
            };
            if earlier.contains(&number) {
                return Err(wrong(Problem::NamedTwice((*name).to_owned())));
            }
            earlier.push(number);
        }
        numbers.push(earlier);
    }
    Graph::new(numbers).map_err(|cycle| {
        let path = cycle.0.iter().map(|&step| {
            let Step { name, line, .. } = &steps[step];
            (name.clone(), *line)
        });
        let path: Vec<_> = path.collect();
        PlanError {
            line: path.first().map_or(1, |(_, line)| *line),
            step: path.first().map(|(name, _)| name.clone()),
            problem: Problem::Cycle(path),
        }
    })
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
