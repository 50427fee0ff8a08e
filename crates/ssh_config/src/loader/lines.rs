//! What the loader makes of a line (`process_config_line_depth`, readconf.c).

use std::borrow::Cow;

use super::{Loader, Need, OUTSIDE};
use crate::condition::Condition;
use crate::config::{Directive, HostInclude, Scope, Step};
use crate::environment::Environment;
use crate::error::Problem;
use crate::expand::{self, Tokens};
use crate::keyword::{Keyword, Kind};
use crate::line::{self, KeywordLine};
use crate::origin::Origin;
use crate::pattern;
use crate::resolve;
use crate::value::{self, Value};

/// What is wrong with a line that has other octets in what it says.
pub(crate) const NOT_UTF_8: &str = "the line is not UTF-8";

impl Loader {
    pub(super) fn read_line(&mut self, text: &[u8]) {
        if let Err(why) = self.read_file_line(text) {
            self.report(why);
        }
    }

    fn read_file_line(&mut self, text: &[u8]) -> Result<(), String> {
        if text.trim_ascii_start().starts_with(b"#") {
            return Ok(());
        }
        let text = String::from_utf8_lossy(text);
        let is_utf8 = matches!(text, Cow::Borrowed(_));
        if text.contains('\0') {
            return Err("the line contains a NUL character".into());
        }
        let (Some(split), Some(file)) = (line::split_keyword(&text)?, self.stack.last()) else {
            return Ok(());
        };
        let (origin, around, scope) = (file.origin(), file.around, file.scope);
        let Some(keyword) = Keyword::by_name(&split.keyword) else {
            return self.read_unknown(split, origin);
        };
        let kind = keyword.row().kind;
        if !is_utf8 && value::contains(kind, &split.rest, char::REPLACEMENT_CHARACTER) {
            return match kind {
                Kind::Host | Kind::Match | Kind::Include => Err(NOT_UTF_8.into()),
                _ => {
                    self.config.steps.push(Step::NotUtf8 { scope, origin });
                    Ok(())
                }
            };
        }
        match (
            kind,
            value::read(kind, &split.rest, &self.config.environment)?,
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

    pub(super) fn read_option(&mut self, option: &str) -> Result<(), String> {
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

/// What to say of a keyword that ssh does not know.
pub(crate) fn unknown_keyword(keyword: &str) -> String {
    format!("bad configuration option \"{keyword}\" (IgnoreUnknown can name it)")
}
