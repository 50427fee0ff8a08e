//! Questions to the user: on the terminal, or by the program that SSH_ASKPASS names, as ssh finds them
//! (readpass.c, read_passphrase).

mod askpass;
mod confirm;
mod hidden_line;
mod terminal;

use std::ffi::OsString;
use std::io;

use sshoal_net::Secret;

use crate::say::visible_lines;
use askpass::AskPass;
pub(crate) use confirm::{confirm, is_agreed};

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PromptError {
    #[error(
        "there is no terminal to ask on; run sshoal on one, or name a program that asks with SSH_ASKPASS and \
         SSH_ASKPASS_REQUIRE=force"
    )]
    Nowhere,
    /// The user pressed Ctrl-C. The signal is on its way as well.
    #[error("interrupted")]
    Interrupted,
    /// An empty line, or the end of input.
    #[error("nothing was entered")]
    Declined,
    #[error("cannot ask: {0}")]
    Io(#[from] io::Error),
}

/// Asks a question whose answer is not shown. Gives up as soon as `wanted` says so. A question may be a host's: it is made visible.
pub(crate) fn secret(question: &str, wanted: &dyn Fn() -> bool) -> Result<Secret, PromptError> {
    let question = &visible_lines(question);
    ask(question, || terminal::ask(question, wanted))
}

/// The same, with what the user is to be told if nothing could be asked.
pub(crate) fn secret_or_notice(
    question: &str,
    wanted: &dyn Fn() -> bool,
) -> (Option<Secret>, Option<String>) {
    match secret(question, wanted) {
        Ok(secret) => (Some(secret), None),
        Err(error @ (PromptError::Nowhere | PromptError::Io(_))) => {
            let question = question.trim_end_matches([':', ' ']);
            (None, Some(format!("{question}: {error}")))
        }
        Err(PromptError::Interrupted | PromptError::Declined) => (None, None),
    }
}

/// Asks a question whose answer is shown as it is typed. Gives up as soon as `wanted` says so.
fn line(question: &str, wanted: &dyn Fn() -> bool) -> Result<String, PromptError> {
    let question = &visible_lines(question);
    let answer = ask(question, || terminal::ask_openly(question, wanted))?;
    Ok(String::from_utf8_lossy(answer.expose()).into_owned())
}

/// Whether a question can be asked at all.
pub(crate) fn is_possible() -> bool {
    let asker = AskPass::find(variable);
    let by_program = |asker: &AskPass| asker.comes_first() || asker.may_stand_in();
    asker.as_ref().is_some_and(by_program) || terminal::is_there()
}

fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// Asks the program, or `on_terminal`.
fn ask(
    question: &str,
    on_terminal: impl FnOnce() -> Result<Secret, PromptError>,
) -> Result<Secret, PromptError> {
    let asker = AskPass::find(variable);
    if let Some(asker) = asker.as_ref().filter(|asker| asker.comes_first()) {
        return asker.ask(question);
    }
    match on_terminal() {
        Err(PromptError::Nowhere) => match asker.filter(AskPass::may_stand_in) {
            Some(asker) => asker.ask(question),
            None => Err(PromptError::Nowhere),
        },
        result => result,
    }
}

/// Environment variables, as far as they matter here.
trait Variables: Fn(&str) -> Option<OsString> {}

impl<F: Fn(&str) -> Option<OsString>> Variables for F {}
