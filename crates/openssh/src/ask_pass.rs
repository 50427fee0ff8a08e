//! How ssh gets the account's password: by SSH_ASKPASS, a program that it starts and whose output it takes (readpass.c).
//!
//! The program is ours again. The password is in a sealed memory file that only we have open; what it is told is where:
//! `/proc/PID/fd/N`, which only the same user can open. So the password is in no file system, no argument, no variable.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

/// The variable that names the place of the password. With it and a question as its only argument, a program that calls
/// [`answer`] is the one that ssh asks.
pub const PASSWORD_VARIABLE: &str = "SSHOAL_PASSWORD_AT";

/// The password of the account on every host, for any number of ssh's.
#[derive(Debug)]
pub struct AskPass {
    program: PathBuf,
    password: OwnedFd,
}

impl AskPass {
    /// `program` is started by ssh with its question, and answers by [`answer`].
    ///
    /// # Errors
    ///
    /// The system gives no memory file.
    pub fn new(program: PathBuf, password: &[u8]) -> io::Result<AskPass> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let mut file = File::from(memfd_create("password", flags)?);
        file.write_all(password)?;
        let all = SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        fcntl_add_seals(&file, all)?;
        Ok(AskPass {
            program,
            password: file.into(),
        })
    }

    /// The variables that an ssh needs.
    pub(crate) fn variables(&self) -> [(&'static str, OsString); 4] {
        let own = std::process::id();
        let place = format!("/proc/{own}/fd/{}", self.password.as_raw_fd());
        [
            ("SSH_ASKPASS", self.program.clone().into()),
            ("SSH_ASKPASS_REQUIRE", "force".into()),
            // Before 8.4 there is no SSH_ASKPASS_REQUIRE: a display and no terminal have the same effect.
            ("DISPLAY", "none".into()),
            (PASSWORD_VARIABLE, place.into()),
        ]
    }
}

/// The answer to what ssh asks, if this process was started to answer. `arguments` are those behind the program's name.
/// `Some(None)` if it was, and the question is another than that for a password: a passphrase, a host key, a PIN.
pub fn answer(place: Option<&OsStr>, arguments: &[OsString]) -> Option<Option<Vec<u8>>> {
    let (place, [question]) = (place?, arguments) else {
        return None;
    };
    let question = question.to_string_lossy();
    // No command of ours has a blank in its name.
    if !question.contains(' ') {
        return None;
    }
    Some(
        is_for_password(&question)
            .then(|| std::fs::read(place).ok())
            .flatten(),
    )
}

/// `user@host's password: ` (sshconnect2.c, userauth_passwd); `(user@host) Password: `, or the question alone before 8.5
/// (input_userauth_info_req).
fn is_for_password(question: &str) -> bool {
    let question = question.trim_end().to_lowercase();
    let others = ["new", "old", "current", "retype", "again", "expired"];
    question.ends_with("password:")
        && !others
            .iter()
            .any(|other| question.contains(&format!("{other} ")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn only_questions_for_the_password_are_answered() {
        for (question, is_asked) in [
            ("root@web1's password: ", true),
            ("(root@web1) Password: ", true),
            ("Password: ", true),
            ("Enter root@web1's old password: ", false),
            ("Retype new password: ", false),
            ("Enter passphrase for key '/home/me/.ssh/id_rsa': ", false),
            ("Enter PIN for 'token': ", false),
            (
                "Are you sure you want to continue connecting (yes/no/[fingerprint])? ",
                false,
            ),
        ] {
            assert_eq!(is_for_password(question), is_asked, "{question}");
        }
    }

    #[test]
    fn the_password_is_had_from_where_the_variable_says() {
        let asked = AskPass::new("/bin/false".into(), b"secret").unwrap();
        let variables = asked.variables();
        let place = Some(variables[3].1.as_os_str());
        let question = [OsString::from("root@web1's password: ")];
        assert_eq!(answer(place, &question), Some(Some(b"secret".to_vec())));
        assert_eq!(answer(None, &question), None);
        assert_eq!(answer(place, &["run".into()]), None);
        assert_eq!(answer(place, &["run".into(), "a b".into()]), None);
        assert_eq!(answer(place, &["Enter PIN: ".into()]), Some(None));
    }
}
