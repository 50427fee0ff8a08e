//! One way through all lines of a configuration, for one host.

use crate::condition::Subject;
use crate::config::{Config, Directive, HostInclude, Query, Scope, Step};
use crate::error::{Problem, ResolveError, Unresolved};
use crate::expand;
use crate::keyword::Keyword;
use crate::loader;
use crate::origin::Origin;
use crate::pattern;
use crate::question::{Answers, IncludeRequest};
use crate::slots::Slots;
use crate::value::Value;

/// What is set for a host so far.
pub(crate) struct Pass<'c, 'q> {
    config: &'c Config,
    answers: &'c Answers,
    query: &'q Query<'q>,
    pub(crate) slots: Slots<'c>,
    /// `HostName` with its tokens expanded, once it is set.
    pub(crate) host_name: Option<String>,
    /// Whether some `Match final` asks for a second pass.
    pub(crate) wants_second_pass: bool,
}

/// Which way through the lines it is, and for which host.
#[derive(Clone, Copy)]
struct Way<'h> {
    host: &'h str,
    second: bool,
}

impl<'c, 'q: 'c> Pass<'c, 'q> {
    pub(crate) fn new(
        config: &'c Config,
        answers: &'c Answers,
        query: &'q Query<'q>,
    ) -> Pass<'c, 'q> {
        Pass {
            config,
            answers,
            query,
            slots: Slots::new(),
            host_name: None,
            wants_second_pass: config.wants_second_pass,
        }
    }

    /// Applies all lines that hold for `host`: the host as given or, in the second pass, as
    /// resolved by the first.
    pub(crate) fn run(&mut self, host: &str, second: bool) -> Result<(), Unresolved> {
        let way = Way { host, second };
        if let (Some(options), false) = (self.query.options, second) {
            self.take_steps(options, way)?;
        }
        self.take_steps(self.config, way)
    }

    fn take_steps(&mut self, config: &'c Config, way: Way<'_>) -> Result<(), Unresolved> {
        let mut holds = vec![false; config.scopes.len()];
        holds[0] = true;
        for step in &config.steps {
            match step {
                Step::Open(scope) => {
                    let Scope { parent, condition } = &config.scopes[*scope];
                    holds[*scope] = holds[*parent] && condition.holds(&self.subject(way))?;
                }
                Step::Apply { scope, directives } => {
                    if holds[*scope] {
                        self.apply_all(&config.directives[directives.clone()], way)?;
                    }
                }
                Step::Unknown { keyword, origin } => self.unknown(keyword, origin)?,
                Step::NotUtf8 { scope, origin } => {
                    if holds[*scope] {
                        return Err(refused(origin, loader::NOT_UTF_8.into()).into());
                    }
                }
                Step::Include { scope, include } => {
                    if holds[*scope] {
                        self.include(&config.includes[*include], way)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn subject<'s>(&'s self, way: Way<'s>) -> Subject<'s> {
        Subject {
            environment: &self.config.environment,
            answers: self.answers,
            query: self.query,
            slots: &self.slots,
            host: way.host,
            host_name: self.host_name.as_deref().unwrap_or(way.host),
            second_pass: way.second,
        }
    }

    fn apply_all(&mut self, directives: &'c [Directive], way: Way<'_>) -> Result<(), ResolveError> {
        for directive in directives {
            // Options are not read again with the files.
            let is_done = directive.origin == Origin::CommandLine
                || directive.keyword.is_settled_by_first_pass();
            if !(way.second && is_done) {
                self.apply(directive, way.host)?;
            }
        }
        Ok(())
    }

    fn apply(&mut self, directive: &'c Directive, host: &str) -> Result<(), ResolveError> {
        if let (Keyword::HostName, Value::Text(text)) = (directive.keyword, &directive.value)
            && self.host_name.is_none()
        {
            let name =
                expand::host_name(text, host).map_err(|why| refused(&directive.origin, why))?;
            self.host_name = Some(name);
        }
        self.slots.apply(directive)
    }

    /// A keyword that nobody knows is an error unless `IgnoreUnknown` is set by now and covers it
    /// (`parse_token`, readconf.c).
    fn unknown(&self, keyword: &str, origin: &Origin) -> Result<(), ResolveError> {
        let covers =
            |patterns: &str| pattern::list_matches(&patterns.to_ascii_lowercase(), keyword);
        if self
            .slots
            .word_of(Keyword::IgnoreUnknown)
            .is_some_and(covers)
        {
            return Ok(());
        }
        Err(refused(origin, loader::unknown_keyword(keyword)))
    }

    /// Takes the steps of files whose names depend on the host. In a block that does not hold
    /// they are not looked at, where ssh would check their lines.
    fn include(&mut self, include: &HostInclude, way: Way<'_>) -> Result<(), Unresolved> {
        let environment = &self.config.environment;
        if expand::unset_variable(&include.path, environment).is_some() {
            return Ok(());
        }
        let path = expand::percent_and_variables(&include.path, &self.subject(way).tokens());
        let pattern =
            path.and_then(|path| loader::include_pattern(path, include.user, environment));
        let config = self.answers.include(IncludeRequest {
            pattern: pattern.map_err(|why| refused(&include.origin, why))?,
            user: include.user,
            depth: include.depth,
        })?;
        self.wants_second_pass |= config.wants_second_pass;
        self.take_steps(config, way)
    }
}

fn refused(origin: &Origin, why: String) -> ResolveError {
    let origin = origin.clone();
    ResolveError::Line(Problem { origin, why })
}
