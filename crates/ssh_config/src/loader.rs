//! Reading configuration files without touching them: the loader says what it needs.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::condition::Condition;
use crate::config::{Config, Directive, HostInclude, Scope, Step};
use crate::environment::Environment;
use crate::error::{LoadError, Problem};
use crate::expand::{self, Tokens};
use crate::keyword::{Keyword, Kind};
use crate::line::{self, KeywordLine};
use crate::origin::Origin;
use crate::pattern;
use crate::question::IncludeRequest;
use crate::resolve;
use crate::value::{self, Value};

/// Deepest nesting of `Include` (`READCONF_MAX_DEPTH`, readconf.c).
const MAX_DEPTH: usize = 16;

/// Most files that are read in all: enough for any fleet's `config.d`, an end for loops.
const MAX_FILES: usize = 10_000;

/// The scope outside of all blocks.
const OUTSIDE: usize = 0;

/// A file that is read without being included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// Its path.
    pub path: String,
    /// A user's own file, in which `~` and paths relative to `~/.ssh` can be included; otherwise
    /// the system's, with paths relative to `/etc/ssh`.
    pub user: bool,
    /// It must be readable: it was named with `-F`.
    pub required: bool,
    /// It must belong to the user or root and be writable for nobody else.
    pub check_permissions: bool,
}

/// What the loader has to be given before it can go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Need {
    /// The content of a file.
    File {
        /// Its path.
        path: String,
        /// It must belong to the user or root and be writable for nobody else; otherwise answer
        /// with [`Supply::BadPermissions`].
        check_permissions: bool,
    },
    /// The paths that glob(7) finds for a pattern, sorted.
    Glob {
        /// The pattern, an absolute path.
        pattern: String,
    },
}

/// The answer to a [`Need`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Supply {
    /// The file's bytes.
    Content(Vec<u8>),
    /// There is no such file.
    Absent,
    /// The file is there and cannot be read, for the reason given.
    Unreadable(String),
    /// Others could change the file, or it belongs to somebody else.
    BadPermissions,
    /// What the pattern found.
    Paths(Vec<String>),
}

/// Reads a configuration: ask [`poll_need`](Self::poll_need), answer with
/// [`handle_supply`](Self::handle_supply), until nothing is needed; then
/// [`finish`](Self::finish).
pub struct Loader {
    config: Config,
    problems: Vec<Problem>,
    fatal: Option<LoadError>,
    roots: VecDeque<Root>,
    /// The files being read, each included by the one before.
    stack: Vec<OpenFile>,
    files: usize,
    /// How deep the roots lie; above 0, files around them may hold an `IgnoreUnknown`.
    depth: usize,
}

/// A file that is being read.
struct OpenFile {
    label: Arc<str>,
    content: Vec<u8>,
    /// Where the next line begins, and the number of the line before it.
    at: usize,
    line: usize,
    user: bool,
    /// The block around the `Include`, and the block that the last line belonged to.
    around: usize,
    scope: usize,
    /// What an `Include` on the last line still needs.
    includes: VecDeque<Need>,
}

impl Loader {
    /// A loader for the files that ssh reads: `config_file` as given with `-F` (`none` for no
    /// file), or else `~/.ssh/config` and `/etc/ssh/ssh_config`. `options` are those of `-o`.
    pub fn new(options: &[String], config_file: Option<&str>, environment: Environment) -> Loader {
        let root = |path: String, user, required, check_permissions| Root {
            path,
            user,
            required,
            check_permissions,
        };
        let roots = match config_file {
            Some(none) if none.eq_ignore_ascii_case("none") => Vec::new(),
            Some(path) => vec![root(path.into(), true, true, false)],
            None => {
                let home = environment.home.trim_end_matches('/');
                vec![
                    root(format!("{home}/.ssh/config"), true, false, true),
                    root("/etc/ssh/ssh_config".into(), false, false, false),
                ]
            }
        };
        Loader::with_roots(options, roots, environment)
    }

    /// A loader for files of the caller's choice, in their order.
    pub fn with_roots(options: &[String], roots: Vec<Root>, environment: Environment) -> Loader {
        let outside = Scope {
            parent: OUTSIDE,
            condition: Condition::Always,
        };
        let config = Config {
            environment,
            scopes: vec![outside],
            ..Config::default()
        };
        let mut loader = Loader {
            config,
            problems: Vec::new(),
            fatal: None,
            roots: roots.into(),
            stack: Vec::new(),
            files: 0,
            depth: 0,
        };
        for option in options {
            if let Err(why) = loader.read_option(option) {
                loader.problems.push(Problem {
                    origin: Origin::CommandLine,
                    why,
                });
            }
        }
        loader
    }

    /// A loader for the files of an `Include` that depends on the host.
    pub(crate) fn for_include(request: &IncludeRequest, environment: Environment) -> Loader {
        let mut loader = Loader::with_roots(&[], Vec::new(), environment);
        loader.depth = request.depth;
        loader.stack.push(OpenFile {
            label: request.pattern.as_str().into(),
            content: Vec::new(),
            at: 0,
            line: 0,
            user: request.user,
            around: OUTSIDE,
            scope: OUTSIDE,
            includes: [Need::Glob {
                pattern: request.pattern.clone(),
            }]
            .into(),
        });
        loader
    }

    /// What is needed next; `None` when all is read. The same until it is supplied.
    pub fn poll_need(&mut self) -> Option<Need> {
        while let Some(file) = self.stack.last_mut() {
            if let Some(need) = file.includes.front() {
                return Some(need.clone());
            }
            match file.next_line() {
                Some(text) => self.read_line(&text),
                None => drop(self.stack.pop()),
            }
        }
        self.roots.front().map(|root| Need::File {
            path: root.path.clone(),
            check_permissions: root.check_permissions,
        })
    }

    /// Takes what was needed.
    pub fn handle_supply(&mut self, supply: Supply) {
        if self.stack.is_empty() {
            if let Some(root) = self.roots.pop_front() {
                self.supply_root(root, supply);
            }
            return;
        }
        let Some(file) = self.stack.last_mut() else {
            return;
        };
        match (file.includes.pop_front(), supply) {
            (Some(Need::Glob { .. }), Supply::Paths(paths)) => {
                for path in paths.into_iter().rev() {
                    file.includes.push_front(Need::File {
                        path,
                        check_permissions: true,
                    });
                }
            }
            (Some(Need::File { path, .. }), Supply::Content(content)) => {
                let (user, scope) = (file.user, file.scope);
                self.open(path, content, user, scope);
            }
            (Some(Need::File { path, .. }), Supply::Unreadable(why)) => {
                self.report(format!("cannot read the included file {path}: {why}"));
            }
            (Some(Need::File { path, .. }), Supply::BadPermissions) => {
                self.report(bad_permissions(&path));
            }
            (Some(Need::File { path, .. }), Supply::Absent) => {
                self.report(format!(
                    "cannot read the included file {path}: no such file"
                ));
            }
            // The pattern found none: nothing is included.
            _ => {}
        }
    }

    /// The configuration, or all that is wrong with it. Whatever was not supplied counts as
    /// absent.
    pub fn finish(mut self) -> Result<Config, LoadError> {
        while self.poll_need().is_some() {
            self.handle_supply(Supply::Absent);
        }
        if let Some(error) = self.fatal {
            return Err(error);
        }
        if !self.problems.is_empty() {
            return Err(LoadError::Lines(self.problems));
        }
        let mut conditions = self.config.scopes.iter().map(|scope| &scope.condition);
        self.config.wants_second_pass = conditions.any(Condition::requests_second_pass);
        Ok(self.config)
    }

    fn supply_root(&mut self, root: Root, supply: Supply) {
        let why = match supply {
            Supply::Content(content) => return self.open(root.path, content, root.user, OUTSIDE),
            Supply::BadPermissions => {
                let why = "others can change it; run chmod go-w on it".into();
                self.fatal = Some(LoadError::Unreadable {
                    path: root.path,
                    why,
                });
                return;
            }
            Supply::Unreadable(why) => why,
            Supply::Absent | Supply::Paths(_) => "no such file".into(),
        };
        if root.required {
            self.fatal = Some(LoadError::Unreadable {
                path: root.path,
                why,
            });
        }
    }

    fn open(&mut self, path: String, content: Vec<u8>, user: bool, around: usize) {
        self.files += 1;
        if self.depth + self.stack.len() > MAX_DEPTH || self.files > MAX_FILES {
            self.report(format!(
                "too many includes: at most {MAX_DEPTH} deep and {MAX_FILES} files in all"
            ));
            self.stack.clear();
            self.roots.clear();
            return;
        }
        self.stack.push(OpenFile {
            label: path.into(),
            content,
            at: 0,
            line: 0,
            user,
            around,
            scope: around,
            includes: VecDeque::new(),
        });
    }

    fn report(&mut self, why: String) {
        let origin = self
            .stack
            .last()
            .map_or(Origin::CommandLine, OpenFile::origin);
        self.problems.push(Problem { origin, why });
    }

    fn read_line(&mut self, text: &[u8]) {
        if let Err(why) = self.read_file_line(text) {
            self.report(why);
        }
    }

    fn read_file_line(&mut self, text: &[u8]) -> Result<(), String> {
        if text.trim_ascii_start().starts_with(b"#") {
            return Ok(());
        }
        let text = std::str::from_utf8(text).map_err(|_| "the line is not UTF-8")?;
        if text.contains('\0') {
            return Err("the line contains a NUL character".into());
        }
        let Some(split) = line::split_keyword(text)? else {
            return Ok(());
        };
        let Some(file) = self.stack.last() else {
            return Ok(());
        };
        let (origin, around, scope) = (file.origin(), file.around, file.scope);
        let Some(keyword) = Keyword::by_name(&split.keyword) else {
            return self.read_unknown(split, origin);
        };
        match (
            keyword.row().kind,
            value::read(keyword.row().kind, &split.rest, &self.config.environment)?,
        ) {
            (Kind::Deprecated, _) => {}
            (Kind::Unsupported, _) => self.warn_of_unsupported(&split.keyword, origin),
            (Kind::Host, Value::Words(arguments)) => {
                self.open_scope(around, Condition::host(arguments)?);
            }
            (Kind::Match, Value::Words(arguments)) => {
                self.open_scope(around, Condition::matching(arguments, &origin)?);
            }
            (Kind::Include, Value::Words(arguments)) => self.include(arguments, scope, &origin)?,
            (_, value) => self.apply(
                scope,
                Directive {
                    keyword,
                    value,
                    origin,
                },
            ),
        }
        Ok(())
    }

    fn read_option(&mut self, option: &str) -> Result<(), String> {
        let Some(split) = line::split_keyword(option)? else {
            return Ok(());
        };
        let origin = Origin::CommandLine;
        let Some(keyword) = Keyword::by_name(&split.keyword) else {
            return self.read_unknown(split, origin);
        };
        let value = value::read(keyword.row().kind, &split.rest, &self.config.environment)?;
        match keyword.row().kind {
            Kind::Deprecated => {}
            Kind::Unsupported => self.warn_of_unsupported(&split.keyword, origin),
            Kind::Host | Kind::Match | Kind::Include => {
                return Err(format!("{} is not supported as an option", split.keyword));
            }
            _ => {
                check_option(&value)?;
                self.apply(
                    OUTSIDE,
                    Directive {
                        keyword,
                        value,
                        origin,
                    },
                )
            }
        }
        Ok(())
    }

    fn warn_of_unsupported(&mut self, keyword: &str, origin: Origin) {
        let why = format!("ssh does not support the option \"{keyword}\" any more");
        self.config.warnings.push(Problem { origin, why });
    }

    /// Whether `IgnoreUnknown` covers a keyword can differ from host to host, if it stands in a
    /// block; if no line before could cover it, the error is certain.
    fn read_unknown(&mut self, line: KeywordLine, origin: Origin) -> Result<(), String> {
        let keyword = line.keyword;
        let covered = self
            .config
            .directives
            .iter()
            .any(|directive| match &directive.value {
                Value::Text(patterns) if directive.keyword == Keyword::IgnoreUnknown => {
                    pattern::list_matches(&patterns.to_ascii_lowercase(), &keyword)
                }
                _ => false,
            });
        if !covered && self.depth == 0 {
            return Err(unknown_keyword(&keyword));
        }
        line::split_arguments(&line.rest).ok_or(line::OPEN_QUOTE)?;
        self.config.steps.push(Step::Unknown { keyword, origin });
        Ok(())
    }

    fn open_scope(&mut self, parent: usize, condition: Condition) {
        let scope = self.config.scopes.len();
        self.config.scopes.push(Scope { parent, condition });
        self.config.steps.push(Step::Open(scope));
        if let Some(file) = self.stack.last_mut() {
            file.scope = scope;
        }
    }

    fn apply(&mut self, scope: usize, directive: Directive) {
        // Set whether or not the block holds (readconf.c).
        let scope = match directive.keyword {
            Keyword::StreamLocalBindMask | Keyword::SyslogFacility => OUTSIDE,
            _ => scope,
        };
        let at = self.config.directives.len();
        self.config.directives.push(directive);
        match self.config.steps.last_mut() {
            Some(Step::Apply {
                scope: last,
                directives,
            }) if *last == scope => {
                directives.end = at + 1;
            }
            _ => self.config.steps.push(Step::Apply {
                scope,
                directives: at..at + 1,
            }),
        }
    }

    fn include(
        &mut self,
        arguments: Vec<String>,
        scope: usize,
        origin: &Origin,
    ) -> Result<(), String> {
        for argument in arguments {
            if argument.is_empty() {
                return Err("an argument of Include is empty".into());
            }
            if let Some(name) = expand::unset_variable(&argument, &self.config.environment) {
                let why = format!(
                    "the environment variable \"{name}\" is not set: {argument} is not included"
                );
                let origin = origin.clone();
                self.config.warnings.push(Problem { origin, why });
            } else if expand::depends_on_host(&argument) {
                self.include_for_host(argument, scope, origin);
            } else {
                self.include_for_all(&argument)?;
            }
        }
        Ok(())
    }

    fn include_for_all(&mut self, argument: &str) -> Result<(), String> {
        let environment = &self.config.environment;
        let Some(file) = self.stack.last_mut() else {
            return Ok(());
        };
        let tokens = Tokens {
            environment,
            original_host: None,
            target: None,
        };
        let path = expand::percent_and_variables(argument, &tokens)?;
        let pattern = include_pattern(path, file.user, environment)?;
        file.includes.push_back(Need::Glob { pattern });
        Ok(())
    }

    fn include_for_host(&mut self, path: String, scope: usize, origin: &Origin) {
        let include = self.config.includes.len();
        self.config.includes.push(HostInclude {
            path,
            user: self.stack.last().is_some_and(|file| file.user),
            depth: self.depth + self.stack.len(),
            origin: origin.clone(),
        });
        self.config.steps.push(Step::Include { scope, include });
    }
}

/// Where an `Include` looks: user files may begin with `~`, and relative paths lie beside the
/// file that is read by default.
pub(crate) fn include_pattern(
    path: String,
    user: bool,
    environment: &Environment,
) -> Result<String, String> {
    Ok(match path.as_bytes()[..] {
        [b'~', ..] if !user => {
            return Err(format!("the system's configuration cannot include {path}"));
        }
        [b'~', ..] => own_home(&path, environment)?,
        [b'/', ..] => path,
        _ if user => own_home(&format!("~/.ssh/{path}"), environment)?,
        _ => format!("/etc/ssh/{path}"),
    })
}

fn own_home(path: &str, environment: &Environment) -> Result<String, String> {
    match expand::tilde_user(path) {
        Some(_) => Err(format!(
            "\"{path}\": only one's own \"~\" can be included, write the path out"
        )),
        None => Ok(expand::tilde(path, &environment.home)),
    }
}

/// Options are checked for names that a shell would interpret (`parse_jump`, readconf.c).
fn check_option(value: &Value) -> Result<(), String> {
    let Value::Hops(hops) = value else {
        return Ok(());
    };
    for hop in hops {
        let user = hop.user.as_deref().unwrap_or("");
        if !resolve::is_host_name(&hop.host) || !resolve::is_user_name(user) {
            return Err(format!("invalid jump host \"{}\"", hop.host));
        }
    }
    Ok(())
}

impl OpenFile {
    fn origin(&self) -> Origin {
        Origin::File {
            file: Arc::clone(&self.label),
            line: self.line,
        }
    }

    fn next_line(&mut self) -> Option<Vec<u8>> {
        let rest = self
            .content
            .get(self.at..)
            .filter(|rest| !rest.is_empty())?;
        let end = rest.iter().position(|&c| c == b'\n').unwrap_or(rest.len());
        let text = rest[..end].to_vec();
        self.at += end + 1;
        self.line += 1;
        Some(text)
    }
}

/// What to say of a keyword that ssh does not know.
pub(crate) fn unknown_keyword(keyword: &str) -> String {
    format!("bad configuration option \"{keyword}\" (IgnoreUnknown can name it)")
}

fn bad_permissions(path: &str) -> String {
    format!("others can change {path}; run chmod go-w on it, and chown if it is not yours")
}

#[cfg(test)]
mod tests;
