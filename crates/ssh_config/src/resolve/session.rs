//! What is negotiated, and what a session is like.

use super::Builder;
use crate::error::Unresolved;
use crate::keyword::Keyword;
use crate::origin::{Origin, Setting};
use crate::pattern;
use crate::resolved::{Algorithms, Session};
use crate::value::number::duration;
use crate::value::words::{LogLevel, RequestTty, SessionType, Word};
use crate::value::{ForwardAgent, RekeyLimit, Value};

impl Builder<'_> {
    pub(super) fn algorithms(&self) -> Algorithms {
        let list = |keyword| {
            self.slots.get(keyword, |value| match value {
                Value::Algorithms(spec) => Some(spec.clone()),
                _ => None,
            })
        };
        Algorithms {
            kex: list(Keyword::KexAlgorithms),
            ciphers: list(Keyword::Ciphers),
            macs: list(Keyword::Macs),
            host_key: list(Keyword::HostKeyAlgorithms),
            pubkey_accepted: list(Keyword::PubkeyAcceptedAlgorithms),
            hostbased_accepted: list(Keyword::HostbasedAcceptedAlgorithms),
            ca_signature: list(Keyword::CaSignatureAlgorithms),
            rekey_limit: self.rekey_limit(),
        }
    }

    fn rekey_limit(&self) -> Setting<RekeyLimit> {
        let interval = self
            .slots
            .rekey_interval
            .and_then(|directive| match directive.value {
                Value::Rekey { interval, .. } => interval,
                _ => None,
            });
        let interval = interval.filter(|&seconds| seconds > 0).map(duration);
        let bytes = self.slots.get(Keyword::RekeyLimit, |value| match value {
            Value::Rekey { bytes, .. } => Some(*bytes),
            _ => None,
        });
        match bytes {
            Some(set) => set.map(|bytes| RekeyLimit {
                bytes: (bytes > 0).then_some(bytes),
                interval,
            }),
            None => Setting::default(RekeyLimit::default()),
        }
    }

    pub(super) fn session(&self) -> Result<Session, Unresolved> {
        let slots = self.slots;
        let remote_command = slots
            .text(Keyword::RemoteCommand)
            .filter(|set| !set.value.eq_ignore_ascii_case("none"))
            .map(|set| self.expand(&set, |text| Ok(self.percent(text)?)));
        Ok(Session {
            send_env: self.send_env(),
            set_env: self.set_env()?,
            session_type: slots.word(Keyword::SessionType, SessionType::Default),
            request_tty: slots.word(Keyword::RequestTty, RequestTty::Auto),
            remote_command: remote_command.transpose()?,
            forward_agent: self.forward_agent()?,
            log_level: slots.word(Keyword::LogLevel, LogLevel::Info),
            tag: match self.query.tag {
                Some(tag) => Some(Setting::new(tag.into(), Origin::Query)),
                None => slots.text(Keyword::Tag).map(Setting::owned),
            },
        })
    }

    /// Every line adds names; `-pattern` takes the matching ones away again (`rm_env`,
    /// readconf.c).
    fn send_env(&self) -> Vec<Setting<String>> {
        let mut names: Vec<Setting<String>> = Vec::new();
        for directive in &self.slots.accumulated {
            let Value::Words(words) = &directive.value else {
                continue;
            };
            for word in words {
                match word.strip_prefix('-') {
                    Some(pattern) => names.retain(|name| {
                        !pattern::matches(pattern.as_bytes(), name.value.as_bytes())
                    }),
                    None => names.push(Setting::new(word.clone(), directive.origin.clone())),
                }
            }
        }
        names
    }

    fn set_env(&self) -> Result<Setting<Vec<(String, String)>>, Unresolved> {
        let set = self.slots.get(Keyword::SetEnv, |value| match value {
            Value::Variables(variables) => Some(variables.as_slice()),
            _ => None,
        });
        let Some(set) = set else {
            return Ok(Setting::default(Vec::new()));
        };
        self.expand(&set, |variables| {
            let expand = |(name, value): &(String, String)| {
                Ok((name.clone(), self.percent_and_variables(value)?))
            };
            variables.iter().map(expand).collect()
        })
    }

    /// A flag or a path; a path after "no" changes nothing.
    fn forward_agent(&self) -> Result<Setting<ForwardAgent>, Unresolved> {
        let Some(set) = self.slots.text(Keyword::ForwardAgent) else {
            return Ok(Setting::default(ForwardAgent::No));
        };
        if bool::of_word(set.value) == Some(false) {
            return Ok(set.map(|_| ForwardAgent::No));
        }
        let Some(directive) = self.slots.forwarded_socket else {
            return Ok(set.map(|_| ForwardAgent::Yes));
        };
        let Value::Text(text) = &directive.value else {
            return Ok(set.map(|_| ForwardAgent::Yes));
        };
        let path = Setting::new(text.as_str(), directive.origin.clone());
        let path = self.expand(&path, |path| self.path(path))?;
        Ok(path.map(|path| match path.strip_prefix('$') {
            Some(name) => ForwardAgent::Variable(name.into()),
            None => ForwardAgent::Socket(path),
        }))
    }
}
