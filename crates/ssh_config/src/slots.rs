//! Which directive set what: the first value wins.

use crate::config::{Directive, Query};
use crate::error::{Problem, ResolveError};
use crate::keyword::Keyword;
use crate::origin::{Origin, Setting};
use crate::value::Value;
use crate::value::words::Word;

/// The port of ssh.
pub(crate) const DEFAULT_PORT: u16 = 22;

/// Most files of `UserKnownHostsFile` and `GlobalKnownHostsFile` (`SSH_MAX_HOSTS_FILES`,
/// readconf.h).
const MAX_HOSTS_FILES: usize = 32;

/// The directives that hold for a host.
pub(crate) struct Slots<'c> {
    filled: [Option<&'c Directive>; Keyword::COUNT],
    /// Directives of keywords of which every line counts, in order.
    pub(crate) accumulated: Vec<&'c Directive>,
    /// Directives of keywords that have no field, in order.
    pub(crate) others: Vec<&'c Directive>,
    /// The first `RekeyLimit` that gives a time, and the first `ForwardAgent` that gives a path:
    /// in ssh those are values of their own.
    pub(crate) rekey_interval: Option<&'c Directive>,
    pub(crate) forwarded_socket: Option<&'c Directive>,
}

impl<'c> Slots<'c> {
    pub(crate) fn new() -> Slots<'c> {
        Slots {
            filled: [None; Keyword::COUNT],
            accumulated: Vec::new(),
            others: Vec::new(),
            rekey_interval: None,
            forwarded_socket: None,
        }
    }

    /// Applies a line of a block that holds.
    pub(crate) fn apply(&mut self, directive: &'c Directive) -> Result<(), ResolveError> {
        let keyword = directive.keyword;
        if keyword.accumulates() {
            self.accumulate(directive);
            return Ok(());
        }
        if self.is_without_effect(directive) {
            return Ok(());
        }
        self.check(directive)?;
        match (keyword, &directive.value) {
            (
                Keyword::RekeyLimit,
                Value::Rekey {
                    interval: Some(_), ..
                },
            ) => {
                self.rekey_interval.get_or_insert(directive);
            }
            (Keyword::ForwardAgent, Value::Text(text)) if bool::of_word(text).is_none() => {
                self.forwarded_socket.get_or_insert(directive);
            }
            _ => {}
        }
        let slot = &mut self.filled[keyword as usize];
        // Of all keywords only this one keeps its last value (readconf.c).
        let last_wins = keyword == Keyword::StreamLocalBindMask;
        if slot.is_none() || last_wins {
            if !keyword.row().has_field {
                self.others.retain(|other| other.keyword != keyword);
                self.others.push(directive);
            }
            *slot = Some(directive);
        }
        Ok(())
    }

    /// Whether a line says nothing, so that a later one may.
    fn is_without_effect(&self, directive: &Directive) -> bool {
        match (directive.keyword, &directive.value) {
            // "none" leaves a time unset; so does an empty list.
            (_, Value::Seconds(seconds)) => seconds.is_none(),
            (_, Value::Words(words)) => words.is_empty(),
            // `parse_jump` (readconf.c): of ProxyJump and ProxyCommand the first one holds, but
            // for "ProxyJump none", which only keeps later jumps away.
            (Keyword::ProxyJump, Value::Hops(hops)) => {
                !hops.is_empty() && self.filled(Keyword::ProxyCommand).is_some()
            }
            (Keyword::ProxyCommand, _) => self.jump_host().is_some(),
            _ => false,
        }
    }

    /// What is wrong only where a line holds.
    fn check(&self, directive: &Directive) -> Result<(), ResolveError> {
        let keyword = directive.keyword;
        let why = match (keyword, &directive.value) {
            (Keyword::RefuseConnection, Value::Text(text)) => format!("RefuseConnection: {text}"),
            (Keyword::UserKnownHostsFile | Keyword::GlobalKnownHostsFile, Value::Words(files))
                if files.len() > MAX_HOSTS_FILES && self.filled(keyword).is_none() =>
            {
                format!("more than {MAX_HOSTS_FILES} files")
            }
            _ => return Ok(()),
        };
        let origin = directive.origin.clone();
        Err(ResolveError::Line(Problem { origin, why }))
    }

    /// Of every keyword all lines count; the same forward twice is one (`add_local_forward`,
    /// readconf.c).
    fn accumulate(&mut self, directive: &'c Directive) {
        if directive.keyword.row().has_field {
            self.accumulated.push(directive);
        } else if !self
            .others
            .iter()
            .any(|have| have.keyword == directive.keyword && have.value == directive.value)
        {
            self.others.push(directive);
        }
    }

    /// The last host of `ProxyJump`.
    pub(crate) fn jump_host(&self) -> Option<&'c str> {
        match &self.filled(Keyword::ProxyJump)?.value {
            Value::Hops(hops) => hops.last().map(|hop| hop.host.as_str()),
            _ => None,
        }
    }

    /// The port, the query's first.
    pub(crate) fn port_of(&self, query: &Query<'_>) -> Setting<u16> {
        if let Some(port) = query.port {
            return Setting::new(port, Origin::Query);
        }
        let configured = self.get(Keyword::Port, |value| match value {
            Value::Number(number) => u16::try_from(*number).ok(),
            _ => None,
        });
        configured.unwrap_or(Setting::default(DEFAULT_PORT))
    }

    /// A text without its origin.
    pub(crate) fn word_of(&self, keyword: Keyword) -> Option<&'c str> {
        match &self.filled(keyword)?.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Words without their origin.
    pub(crate) fn words_of(&self, keyword: Keyword) -> Option<&'c [String]> {
        match &self.filled(keyword)?.value {
            Value::Words(words) => Some(words),
            _ => None,
        }
    }

    /// The directive that set a keyword.
    pub(crate) fn filled(&self, keyword: Keyword) -> Option<&'c Directive> {
        self.filled[keyword as usize]
    }

    /// A keyword's value, if it is set and `pick` takes it.
    pub(crate) fn get<T>(
        &self,
        keyword: Keyword,
        pick: impl FnOnce(&'c Value) -> Option<T>,
    ) -> Option<Setting<T>> {
        let directive = self.filled(keyword)?;
        Some(Setting::new(
            pick(&directive.value)?,
            directive.origin.clone(),
        ))
    }

    pub(crate) fn text(&self, keyword: Keyword) -> Option<Setting<&'c str>> {
        self.get(keyword, |value| match value {
            Value::Text(text) => Some(text.as_str()),
            _ => None,
        })
    }

    pub(crate) fn number(&self, keyword: Keyword, default: u32) -> Setting<u32> {
        let number = self.get(keyword, |value| match value {
            Value::Number(number) => Some(*number),
            _ => None,
        });
        number.unwrap_or(Setting::default(default))
    }

    pub(crate) fn seconds(&self, keyword: Keyword) -> Option<Setting<u32>> {
        self.get(keyword, |value| match value {
            Value::Seconds(seconds) => *seconds,
            _ => None,
        })
    }

    pub(crate) fn word<T: Word>(&self, keyword: Keyword, default: T) -> Setting<T> {
        let word = self.get(keyword, |value| match value {
            Value::Text(text) => T::of_word(text),
            _ => None,
        });
        word.unwrap_or(Setting::default(default))
    }

    pub(crate) fn words(&self, keyword: Keyword) -> Option<Setting<&'c [String]>> {
        self.get(keyword, |value| match value {
            Value::Words(words) => Some(words.as_slice()),
            _ => None,
        })
    }
}
