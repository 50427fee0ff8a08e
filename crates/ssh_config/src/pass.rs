//! One way through all lines of a configuration, for one host.

use crate::condition::Subject;
use crate::config::{Config, Directive, Query, Scope, Step};
use crate::error::{Problem, ResolveError};
use crate::expand;
use crate::keyword::Keyword;
use crate::loader;
use crate::origin::Origin;
use crate::pattern;
use crate::slots::Slots;
use crate::value::Value;

/// What is set for a host so far.
pub(crate) struct Pass<'c, 'q> {
    config: &'c Config,
    query: &'q Query<'q>,
    pub(crate) slots: Slots<'c>,
    /// `HostName` with its tokens expanded, once it is set.
    pub(crate) host_name: Option<String>,
}

impl<'c, 'q> Pass<'c, 'q> {
    pub(crate) fn new(config: &'c Config, query: &'q Query<'q>) -> Pass<'c, 'q> {
        Pass {
            config,
            query,
            slots: Slots::new(),
            host_name: None,
        }
    }

    /// Applies all lines that hold for `host`: the host as given or, in the second pass, as
    /// resolved by the first.
    pub(crate) fn run(&mut self, host: &str, second_pass: bool) -> Result<(), ResolveError> {
        let config = self.config;
        let mut holds = vec![false; config.scopes.len()];
        holds[0] = true;
        for step in &config.steps {
            match step {
                Step::Open(scope) => {
                    let Scope { parent, condition } = &config.scopes[*scope];
                    holds[*scope] =
                        holds[*parent] && condition.holds(&self.subject(host, second_pass));
                }
                Step::Apply { scope, directives } => {
                    if holds[*scope] {
                        for directive in &config.directives[directives.clone()] {
                            // Options are not read again with the files.
                            if !second_pass || directive.origin != Origin::CommandLine {
                                self.apply(directive, host)?;
                            }
                        }
                    }
                }
                Step::Unknown { keyword, origin } => self.unknown(keyword, origin)?,
            }
        }
        Ok(())
    }

    fn subject<'s>(&'s self, host: &'s str, second_pass: bool) -> Subject<'s> {
        let local_user = self.config.environment.local_user.as_str();
        let configured = self.slots.text(Keyword::User).map(|user| user.value);
        Subject {
            host,
            host_name: self.host_name.as_deref().unwrap_or(host),
            original_host: self.query.host,
            user: self.query.user.or(configured).unwrap_or(local_user),
            local_user,
            second_pass,
        }
    }

    fn apply(&mut self, directive: &'c Directive, host: &str) -> Result<(), ResolveError> {
        if let (Keyword::HostName, Value::Text(text)) = (directive.keyword, &directive.value)
            && self.host_name.is_none()
        {
            let name = expand::host_name(text, host).map_err(|why| {
                ResolveError::Line(Problem {
                    origin: directive.origin.clone(),
                    why,
                })
            })?;
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
            .text(Keyword::IgnoreUnknown)
            .is_some_and(|set| covers(set.value))
        {
            return Ok(());
        }
        let why = loader::unknown_keyword(keyword);
        Err(ResolveError::Line(Problem {
            origin: origin.clone(),
            why,
        }))
    }
}
