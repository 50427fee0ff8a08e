//! Reading configuration files without touching them: the loader says what it needs.

mod lines;

use std::collections::VecDeque;
use std::sync::Arc;

use crate::condition::Condition;
use crate::config::{Config, Scope};
use crate::environment::Environment;
use crate::error::{LoadError, Problem};
use crate::origin::Origin;
use crate::question::IncludeRequest;
pub(crate) use lines::{NOT_UTF_8, include_pattern, unknown_keyword};

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

fn bad_permissions(path: &str) -> String {
    format!("others can change {path}; run chmod go-w on it, and chown if it is not yours")
}

#[cfg(test)]
mod tests;
