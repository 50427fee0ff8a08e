//! What a keyboard-interactive prompt asks for. Servers say it in words for people only (RFC 4256 section 3.2).

use sshoal_proto::Prompt;

/// What a server's prompts ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// Nothing: the answer is an empty list.
    Nothing,
    /// The account's password.
    Password,
    /// A new password: the old one has expired.
    NewPassword,
    /// Something that this program does not have.
    SomethingElse,
}

/// Words for a password in the languages of Linux-PAM's translations that are spoken most, in lowercase.
const PASSWORD: &[&str] = &[
    "password",
    "passwort",
    "kennwort",
    "mot de passe",
    "contraseña",
    "senha",
    "parola",
    "wachtwoord",
    "lösenord",
    "hasło",
    "heslo",
    "пароль",
    "şifre",
    "パスワード",
    "密码",
    "密碼",
    "암호",
];
/// Words that tell a password of another sort.
const NOT_THE_PASSWORD: &[&str] = &[
    "one-time",
    "one time",
    "otp",
    "token",
    "verification",
    "passcode",
    "second factor",
];
/// Linux-PAM's and others' words when a password must be changed (pam_unix_passwd.c).
const NEW_PASSWORD: &[&str] = &[
    "new password",
    "new unix password",
    "retype",
    "current password",
];

/// Judges a whole request. Only one hidden answer can be a password: what is echoed, or comes with other prompts, is
/// no place for it.
pub(super) fn asked(prompts: &[Prompt]) -> Asked {
    let [prompt] = prompts else {
        return match prompts.is_empty() {
            true => Asked::Nothing,
            false => Asked::SomethingElse,
        };
    };
    let text = String::from_utf8_lossy(&prompt.text).to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    match prompt.echo {
        false if says(NEW_PASSWORD) => Asked::NewPassword,
        false if says(PASSWORD) && !says(NOT_THE_PASSWORD) => Asked::Password,
        _ => Asked::SomethingElse,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(text: &str, echo: bool) -> Prompt {
        Prompt {
            text: text.as_bytes().to_vec(),
            echo,
        }
    }

    #[test]
    fn a_hidden_prompt_for_the_password_is_one() {
        for text in [
            "Password: ",
            "(me@web1) Password:",
            "Passwort: ",
            "Пароль: ",
        ] {
            assert_eq!(asked(&[prompt(text, false)]), Asked::Password, "{text}");
        }
    }

    #[test]
    fn the_password_goes_nowhere_else() {
        let elsewhere = [
            vec![prompt("Password: ", true)],
            vec![
                prompt("Password: ", false),
                prompt("Verification code: ", false),
            ],
            vec![prompt("Verification code: ", false)],
            vec![prompt("One-time password (OATH) for `me': ", false)],
            vec![prompt("Enter PASSCODE: ", false)],
        ];
        for prompts in elsewhere {
            assert_eq!(asked(&prompts), Asked::SomethingElse, "{prompts:?}");
        }
    }

    #[test]
    fn an_expired_password_and_an_empty_request_are_told_apart() {
        assert_eq!(
            asked(&[prompt("New password: ", false)]),
            Asked::NewPassword
        );
        assert_eq!(
            asked(&[prompt("Current password: ", false)]),
            Asked::NewPassword
        );
        assert_eq!(asked(&[]), Asked::Nothing);
    }
}
