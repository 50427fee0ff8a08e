//! SSH_ASKPASS: a program that asks, for where there is no terminal (ssh(1), ENVIRONMENT).

use std::ffi::OsString;
use std::io::Read;
use std::process::{Command, Stdio};

use sshoal_net::Secret;
use zeroize::Zeroizing;

use super::{PromptError, Variables};

/// Longest answer, octets (readpass.c reads 1024).
const MAX_ANSWER: u64 = 1024;

/// The program, and when it is used.
pub(super) struct AskPass {
    program: OsString,
    require: Require,
    has_display: bool,
}

/// SSH_ASKPASS_REQUIRE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Require {
    /// Not set: only without a terminal, and only if there is a display.
    Unset,
    Never,
    Prefer,
    Force,
}

impl AskPass {
    /// What the environment says; `None` if it names no program, or forbids it.
    pub(super) fn find(variable: impl Variables) -> Option<Self> {
        let require = match variable("SSH_ASKPASS_REQUIRE") {
            Some(value) if value == "never" => Require::Never,
            Some(value) if value == "prefer" => Require::Prefer,
            Some(value) if value == "force" => Require::Force,
            _ => Require::Unset,
        };
        let display = variable("DISPLAY").or_else(|| variable("WAYLAND_DISPLAY"));
        let program = variable("SSH_ASKPASS")?;
        (require != Require::Never).then_some(AskPass {
            program,
            require,
            has_display: display.is_some(),
        })
    }

    /// Whether it is asked before the terminal is looked at.
    pub(super) fn comes_first(&self) -> bool {
        match self.require {
            Require::Force => true,
            Require::Prefer => self.has_display,
            Require::Unset | Require::Never => false,
        }
    }

    /// Whether it is asked when there is no terminal.
    pub(super) fn may_stand_in(&self) -> bool {
        self.has_display
    }

    pub(super) fn ask(&self, question: &str) -> Result<Secret, PromptError> {
        let mut child = Command::new(&self.program)
            .arg(question)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut answer = Zeroizing::new(Vec::with_capacity(MAX_ANSWER as usize));
        if let Some(stdout) = child.stdout.take() {
            stdout.take(MAX_ANSWER).read_to_end(&mut answer)?;
        }
        if !child.wait()?.success() {
            return Err(PromptError::Declined);
        }
        let end = answer
            .iter()
            .position(|octet| matches!(octet, b'\n' | b'\r'))
            .unwrap_or(answer.len());
        match &answer[..end] {
            [] => Err(PromptError::Declined),
            answer => Ok(Secret::new(answer.to_vec())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(set: &[(&str, &str)]) -> Option<AskPass> {
        AskPass::find(|name: &str| {
            let (_, value) = set.iter().find(|(known, _)| *known == name)?;
            Some(OsString::from(value))
        })
    }

    #[test]
    fn it_is_used_as_ssh_uses_it() {
        let display = ("DISPLAY", ":0");
        let program = ("SSH_ASKPASS", "/bin/ask");
        assert!(find(&[display]).is_none());
        assert!(find(&[program, display, ("SSH_ASKPASS_REQUIRE", "never")]).is_none());
        let uses = |set: &[(&str, &str)]| {
            let asker = find(set).expect("a program is named");
            (asker.comes_first(), asker.may_stand_in())
        };
        assert_eq!(uses(&[program]), (false, false));
        assert_eq!(uses(&[program, display]), (false, true));
        assert_eq!(
            uses(&[program, ("WAYLAND_DISPLAY", "wayland-0")]),
            (false, true)
        );
        assert_eq!(
            uses(&[program, display, ("SSH_ASKPASS_REQUIRE", "prefer")]),
            (true, true)
        );
        assert_eq!(
            uses(&[program, ("SSH_ASKPASS_REQUIRE", "force")]),
            (true, false)
        );
    }
}
