//! Questions about host keys: yes, no, or the fingerprint itself (`confirm`, sshconnect.c).

use sshoal_net::Confirmation;

use super::{PromptError, line};

/// Shows the lines and asks. Anything but an answer is asked again.
pub(crate) fn confirm(
    lines: &str,
    fingerprint: Option<&str>,
    wanted: &dyn Fn() -> bool,
) -> Confirmation {
    let (choices, again) = match fingerprint {
        Some(_) => ("yes/no/[fingerprint]", "'yes', 'no' or the fingerprint"),
        None => ("yes/no", "'yes' or 'no'"),
    };
    let mut question = format!("{lines}Are you sure you want to continue connecting ({choices})? ");
    loop {
        match line(&question, wanted) {
            Ok(typed) => match meaning(&typed, fingerprint) {
                Some(true) => return Confirmation::Yes,
                Some(false) => return Confirmation::No,
                None => question = format!("Please type {again}: "),
            },
            Err(PromptError::Declined) if wanted() => return Confirmation::No,
            Err(PromptError::Declined | PromptError::Interrupted) => {
                return Confirmation::Unanswered;
            }
            Err(error @ (PromptError::Nowhere | PromptError::Io(_))) => {
                return Confirmation::Nobody(error.to_string());
            }
        }
    }
}

/// Asks a question with yes or no; without an answer it is no.
pub(crate) fn is_agreed(question: &str) -> bool {
    let mut question = format!("{question} (yes/no)? ");
    loop {
        match line(&question, &|| true).map(|typed| meaning(&typed, None)) {
            Ok(Some(is_yes)) => return is_yes,
            Ok(None) => question = "Please type 'yes' or 'no': ".to_owned(),
            Err(_) => return false,
        }
    }
}

/// Whether it is a yes; `None` if it is no answer.
fn meaning(typed: &str, fingerprint: Option<&str>) -> Option<bool> {
    let typed = typed.split_ascii_whitespace().next().unwrap_or_default();
    let is = |word: &str| typed.eq_ignore_ascii_case(word);
    match () {
        () if typed.is_empty() || is("no") => Some(false),
        () if is("yes") || fingerprint == Some(typed) => Some(true),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_those_of_ssh() {
        let only = Some("SHA256:abc");
        for yes in ["yes", " YES\n", "SHA256:abc", "\tSHA256:abc "] {
            assert_eq!(meaning(yes, only), Some(true), "{yes:?}");
        }
        for no in ["no", "NO", "", " "] {
            assert_eq!(meaning(no, only), Some(false), "{no:?}");
        }
        for nothing in ["y", "yess", "SHA256:ABC", "SHA256:abcd"] {
            assert_eq!(meaning(nothing, only), None, "{nothing:?}");
        }
        assert_eq!(meaning("SHA256:abc", None), None);
    }
}
