//! Which directive set what: the first value wins.

use crate::config::Directive;
use crate::error::{Problem, ResolveError};
use crate::keyword::Keyword;
use crate::origin::Setting;
use crate::value::{Value, Word};

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
            let row = keyword.row();
            let list = if row.has_field {
                &mut self.accumulated
            } else {
                &mut self.others
            };
            list.push(directive);
            return Ok(());
        }
        match (keyword, &directive.value) {
            // "none" leaves a time unset, so that a later line may set it.
            (_, Value::Seconds(None)) => return Ok(()),
            (Keyword::RefuseConnection, Value::Text(text)) => {
                return Err(ResolveError::Line(Problem {
                    origin: directive.origin.clone(),
                    why: format!("RefuseConnection: {text}"),
                }));
            }
            // `parse_jump` (readconf.c): of ProxyJump and ProxyCommand the first one holds, but
            // for "ProxyJump none", which only keeps later jumps away.
            (Keyword::ProxyJump, Value::Hops(hops))
                if !hops.is_empty() && self.filled(Keyword::ProxyCommand).is_some() =>
            {
                return Ok(());
            }
            (Keyword::ProxyCommand, _) if self.jumps() => return Ok(()),
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
        if slot.is_none() {
            *slot = Some(directive);
            if !keyword.row().has_field {
                self.others.push(directive);
            }
        }
        Ok(())
    }

    fn jumps(&self) -> bool {
        self.filled(Keyword::ProxyJump).is_some_and(
            |directive| matches!(&directive.value, Value::Hops(hops) if !hops.is_empty()),
        )
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
