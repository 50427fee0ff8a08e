//! Why nobody was logged in, in words: what was offered, what could not be, and what to do.

use sshoal_fleet::{Failure, FailureKind};
use sshoal_proto::{Prompt, Secret};

use super::PasswordState;
use super::key::UserKey;
use super::plan::{ForeignMethod, LoginPlan, Method};
use super::signing::Unsigned;
use crate::agent::Trouble;

/// Most characters of a server's prompt that a message repeats.
const SHOWN: usize = 80;

/// What went wrong so far.
#[derive(Default)]
pub(super) struct Denial {
    refused: Vec<String>,
    /// The agent has no keys for us.
    no_agent: Option<Trouble>,
    /// The agent did not sign with a key that the server may well have taken.
    unsigned: Option<Trouble>,
    notes: Vec<String>,
}

/// The state of a login that has come to its end.
pub(super) struct End<'a> {
    pub(super) user: &'a str,
    pub(super) plan: &'a LoginPlan,
    /// What the server takes, if it has said so.
    pub(super) methods: Option<&'a [String]>,
    pub(super) password: Option<&'a Secret>,
    pub(super) password_state: PasswordState,
}

impl End<'_> {
    /// What only ssh itself has, is switched on, and the server takes.
    fn foreign(&self) -> Option<ForeignMethod> {
        let taken = |method: &&ForeignMethod| {
            let mut methods = self.methods.into_iter().flatten();
            methods.any(|name| name == method.name())
        };
        self.plan.foreign.iter().find(taken).copied()
    }
}

impl Denial {
    pub(super) fn refused(&mut self, key: &UserKey) {
        self.refused.push(key.label.clone());
    }

    pub(super) fn no_agent(&mut self, trouble: &Trouble) {
        self.no_agent = Some(trouble.clone());
    }

    pub(super) fn unsigned(&mut self, why: Unsigned) {
        match why {
            Unsigned::Agent(trouble) => self.unsigned = Some(trouble),
            Unsigned::Locked(note) => self.notes.push(note),
        }
    }

    pub(super) fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// The failure to report when nothing is left to try.
    pub(super) fn failure(&self, end: &End<'_>) -> Failure {
        let to = format!("logging in as {}", end.user);
        if let Some(trouble) = &self.unsigned {
            return trouble.failure(&to);
        }
        let was_offered = !self.refused.is_empty() || end.password_state != PasswordState::Unsent;
        if let Some(trouble) = self.no_agent.as_ref().filter(|_| !was_offered) {
            return trouble.failure(&to);
        }
        let detail = format!("{to}: {}", self.account(end, was_offered).join("; "));
        match remedy(end, was_offered) {
            Some(remedy) => Failure::with_remedy(FailureKind::AuthDenied, detail, remedy),
            None => Failure::new(FailureKind::AuthDenied, detail),
        }
    }

    /// The connection ended because too many credentials were tried (MaxAuthTries).
    pub(super) fn too_many(&self, user: &str, said: &str, last: Option<&UserKey>) -> Failure {
        let mut tried: Vec<&str> = self.refused.iter().map(String::as_str).collect();
        tried.extend(last.map(|key| key.label.as_str()));
        let detail = format!(
            "logging in as {user}: {said}; {} tried: {}",
            match tried.len() {
                1 => "1 key was".to_owned(),
                keys => format!("{keys} keys were"),
            },
            tried.join(", ")
        );
        let remedy = "name the right key with -i (for a key in the agent its .pub file will do), \
                      and set IdentitiesOnly=yes, so that no other is tried";
        Failure::with_remedy(FailureKind::AuthDenied, detail, remedy)
    }

    /// The server hung up without a word. After something that it did not like that is its answer: another connection
    /// with the same would get it again, and a password counts against the account each time.
    pub(super) fn hung_up(
        &self,
        user: &str,
        how: &str,
        password: PasswordState,
    ) -> Option<Failure> {
        let after = match (password, self.refused.as_slice()) {
            (PasswordState::Sent, _) => "it was sent the password".to_owned(),
            (PasswordState::Refused, _) => "it had refused the password".to_owned(),
            (PasswordState::Unsent, []) => return None,
            (PasswordState::Unsent, keys) => format!("it had refused the keys {}", keys.join(", ")),
        };
        let detail = format!("logging in as {user}: {how}, after {after}");
        Some(Failure::new(FailureKind::AuthDenied, detail))
    }

    fn account(&self, end: &End<'_>, was_offered: bool) -> Vec<String> {
        let mut account = Vec::new();
        match self.refused.as_slice() {
            [] => {}
            [one] => account.push(format!("the server refused the key {one}")),
            keys => account.push(format!(
                "the server refused {} keys: {}",
                keys.len(),
                keys.join(", ")
            )),
        }
        if end.password_state == PasswordState::Refused {
            account.push("the server refused the password".to_owned());
        }
        if !was_offered {
            account.push("there was nothing to offer".to_owned());
        }
        account.extend(self.notes.iter().chain(&end.plan.left_out).cloned());
        account.extend(self.no_agent.iter().map(|trouble| trouble.detail.clone()));
        if let Some(methods) = end.methods {
            account.push(format!("the server takes {}", methods.join(", ")));
        }
        account
    }
}

/// What to do, where that is clearer than the kind's own remedy.
fn remedy(end: &End<'_>, was_offered: bool) -> Option<&'static str> {
    let takes = |method: Method| {
        end.methods
            .is_some_and(|methods| methods.iter().any(|name| name == method.name()))
    };
    let takes_password = takes(Method::Password) || takes(Method::KeyboardInteractive);
    if end.password_state == PasswordState::Refused {
        Some("check the password and the user name (-l)")
    } else if let Some(method) = end.foreign() {
        Some(method.remedy())
    } else if !takes(Method::PublicKey) && takes_password && end.password.is_none() {
        Some("give the account's password with --ask-pass")
    } else if !was_offered && end.methods.is_some() {
        Some("name a private key with -i, add one to the agent with `ssh-add`, or use --ask-pass")
    } else {
        None
    }
}

/// A prompt that was not answered.
pub(super) fn unanswered(prompt: &Prompt) -> String {
    let shown = quoted(&prompt.text);
    format!("the server's question {shown} was not answered")
}

/// What a server said, in quotes and harmless.
pub(super) fn quoted(said: &[u8]) -> String {
    let text = String::from_utf8_lossy(said);
    let shown: String = text.trim().chars().take(SHOWN).collect();
    format!("{shown:?}")
}
