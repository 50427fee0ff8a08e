//! Who is told of an `up`, and asked: whoever is at this process's terminal, or at that of the `up` that asked for it.

use sshoal_net::{Confirmation, Secret};
use sshoal_pool::{Conversation, Tell};

use crate::prompt;
use crate::say::say;

/// A way to the user.
#[derive(Clone)]
pub(super) enum Voice {
    /// Our own terminal and standard error.
    Here,
    /// Those of another process.
    Caller(Conversation),
}

impl Voice {
    /// Whether it is that of this process.
    pub(super) fn is_own(&self) -> bool {
        matches!(self, Voice::Here)
    }

    pub(super) fn say(&self, text: &str) {
        match self {
            Voice::Here => say(text),
            Voice::Caller(caller) => caller.tell(&Tell::Say {
                text: text.to_owned(),
            }),
        }
    }

    /// A secret, unless there is nobody to ask or he gives none.
    pub(super) fn ask(&self, question: &str, wanted: &dyn Fn() -> bool) -> Option<Secret> {
        match self {
            Voice::Caller(caller) => caller.ask(question, wanted),
            Voice::Here => {
                let (secret, notice) = prompt::secret_or_notice(question, wanted);
                if let Some(notice) = notice {
                    say(notice);
                }
                secret
            }
        }
    }

    pub(super) fn confirm(
        &self,
        lines: &str,
        fingerprint: Option<&str>,
        wanted: &dyn Fn() -> bool,
    ) -> Confirmation {
        match self {
            Voice::Here => prompt::confirm(lines, fingerprint, wanted),
            Voice::Caller(caller) => caller.confirm(lines, fingerprint, wanted),
        }
    }
}
