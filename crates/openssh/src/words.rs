//! Words that a user adds to ssh's command line: flags, and none with which we would not hear how the host fared.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

/// ssh's flags that have a value (ssh.c, getopt).
const VALUED: &[u8] = b"BbcDEeFIiJLlmOoPpQRSWw";
/// Those that have none.
const PLAIN: &[u8] = b"1246AaCfGgKkMNnqsTtVvXxYy";
/// Those that are not ours to pass on, and why.
const REFUSED: &[(u8, &str)] = &[
    (b'E', HIDES),
    (b'q', HIDES),
    (b'y', HIDES),
    (b'G', ASKS),
    (b'Q', ASKS),
    (b'V', ASKS),
    (b'M', MASTER),
    (b'O', MASTER),
    (b'N', NO_COMMAND),
    (b's', NO_COMMAND),
    (b'W', NO_COMMAND),
    (
        b'f',
        "ssh would leave for the background, and the command's end would not be seen",
    ),
    (b'n', "standard input is empty without --stdin"),
    (b't', "write -t as a flag of sshoal"),
];
const HIDES: &str = "what ssh says would not be heard; -v shows it";
const ASKS: &str = "ssh would connect to no host; sshoal explain shows settings";
const MASTER: &str = "write -o ControlMaster=auto and -o ControlPersist=TIME as flags of sshoal";
const NO_COMMAND: &str = "ssh would run no command";

/// Why a word cannot be passed on.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum WordError {
    /// It would be taken for the host, or for the end of flags.
    #[error(
        "{0:?} is no flag of ssh: write one with its dash, and its value behind it or as the next word"
    )]
    NoFlag(String),
    /// No ssh that is known here has it.
    #[error("ssh has no flag -{0}")]
    Unknown(char),
    /// Its value would be a word of ours.
    #[error("-{0} of ssh needs a value behind it or as the next word")]
    NoValue(char),
    /// It would keep the host from being run or heard.
    #[error("-{flag} of ssh is refused: {why}")]
    Refused {
        /// The letter.
        flag: char,
        /// What it would do, or what to write instead.
        why: &'static str,
    },
}

/// Checks all words that are to stand among ssh's flags, in their order.
///
/// # Errors
///
/// The first [`WordError`].
pub fn check_words(words: &[OsString]) -> Result<(), WordError> {
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let flags = match word.as_bytes() {
            [b'-', flags @ ..] if !flags.is_empty() => flags,
            _ => return Err(WordError::NoFlag(word.to_string_lossy().into_owned())),
        };
        for (at, flag) in flags.iter().enumerate() {
            let letter = char::from(*flag);
            if let Some((_, why)) = REFUSED.iter().find(|(refused, _)| refused == flag) {
                return Err(WordError::Refused { flag: letter, why });
            }
            if VALUED.contains(flag) {
                let is_behind = at + 1 < flags.len();
                if !is_behind && rest.next().is_none() {
                    return Err(WordError::NoValue(letter));
                }
                break;
            }
            if !PLAIN.contains(flag) {
                return Err(match letter {
                    '-' => WordError::NoFlag(word.to_string_lossy().into_owned()),
                    _ => WordError::Unknown(letter),
                });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(words: &[&str]) -> Result<(), WordError> {
        check_words(&words.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn flags_and_their_values_pass() {
        for words in [
            &["-4"][..],
            &["-4C"],
            &["-c", "aes128-ctr"],
            &["-caes128-ctr", "-v"],
            &["-o", "-x y"],
            &["-4p", "22"],
            &["-p22qE"],
            &[],
        ] {
            assert_eq!(checked(words), Ok(()), "{words:?}");
        }
    }

    #[test]
    fn a_word_that_ssh_would_take_for_the_host_is_refused() {
        for words in [
            &["host"][..],
            &["-4", "host"],
            &["-p", "22", "host"],
            &["p 22"],
            &["-"],
            &["--"],
            &[""],
        ] {
            let refused = checked(words);
            assert!(
                matches!(refused, Err(WordError::NoFlag(_))),
                "{words:?}: {refused:?}"
            );
        }
        assert_eq!(checked(&["-4", "-p"]), Err(WordError::NoValue('p')));
        assert_eq!(checked(&["-Z"]), Err(WordError::Unknown('Z')));
    }

    #[test]
    fn flags_that_would_hide_the_host_are_refused() {
        for flag in "EqyGQVMONsWfnt".chars() {
            for word in [format!("-{flag}"), format!("-4{flag}x")] {
                let refused = checked(&[&word]);
                assert!(
                    matches!(refused, Err(WordError::Refused { flag: f, .. }) if f == flag),
                    "{word}: {refused:?}"
                );
            }
        }
    }

    #[test]
    fn no_flag_is_of_two_kinds() {
        assert!(VALUED.iter().all(|flag| !PLAIN.contains(flag)));
        let known = |flag: &u8| VALUED.contains(flag) || PLAIN.contains(flag);
        assert!(REFUSED.iter().all(|(flag, _)| known(flag)));
    }
}
