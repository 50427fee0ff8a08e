//! `-O`: flags of ssh without their dash, made into what the engine takes.

use std::path::PathBuf;

use crate::args::key_and_value;

/// What the `-O`s of a run come to.
#[derive(Debug, Default)]
pub(super) struct SshFlags {
    /// Lines of ssh_config, in order: the first for a keyword counts, as with ssh.
    pub(super) options: Vec<String>,
    /// `F`.
    pub(super) config_file: Option<PathBuf>,
    /// `l`, where no line before it sets the User: a name as it stands, and no line of ssh_config.
    pub(super) user: Option<String>,
    /// `P`.
    pub(super) tag: Option<String>,
    /// `q`, or a LogLevel that is as silent.
    pub(super) quiet: bool,
    /// What the header shows of them: mpssh.py's words for ssh, a dash and the text.
    pub(super) words: Vec<String>,
    /// Words for ssh itself. mpssh.py leaves a blank behind a flag to the value, which -o and -p alone bear.
    pub(super) arguments: Vec<String>,
    /// The first flag that only ssh itself can honour.
    pub(super) foreign: Option<char>,
}

/// What is wrong with an `-O`.
#[derive(Debug, thiserror::Error)]
pub(super) enum SshFlagError {
    #[error(
        "-O {text:?}: ssh has no flag -{flag}; write one without its dash, as in -O 'o Port=2222'"
    )]
    Unknown { text: String, flag: char },
    #[error("-O {text:?}: a flag of ssh is to follow, without its dash, as in -O 'o Port=2222'")]
    Empty { text: String },
    #[error("-O {text:?}: -{flag} of ssh needs a value behind it, as in -O '{flag} VALUE'")]
    NoValue { text: String, flag: char },
    #[error("-O {text:?}: {why}")]
    Option { text: String, why: String },
}

/// What a flag without a value means.
#[derive(Debug, Clone, Copy)]
enum Switch {
    /// A line of ssh_config.
    Line(&'static str),
    /// Nothing, in a run without a terminal and without input.
    Nothing,
    Quiet,
    /// A terminal: once, ssh does without it since it has none itself; twice it is forced.
    Terminal,
    Foreign,
}

/// What a flag with a value means.
#[derive(Debug, Clone, Copy)]
enum Valued {
    /// A keyword of ssh_config.
    Keyword(&'static str),
    /// A whole line.
    Option,
    Identity,
    User,
    ConfigFile,
    Tag,
    Nothing,
    Foreign,
}

/// ssh(1)'s flags, 9.2 to 10.
fn switch(flag: char) -> Option<Switch> {
    Some(match flag {
        '4' => Switch::Line("AddressFamily=inet"),
        '6' => Switch::Line("AddressFamily=inet6"),
        'A' => Switch::Line("ForwardAgent=yes"),
        'a' => Switch::Line("ForwardAgent=no"),
        'C' => Switch::Line("Compression=yes"),
        'k' => Switch::Line("GSSAPIDelegateCredentials=no"),
        'T' => Switch::Line("RequestTTY=no"),
        'x' => Switch::Line("ForwardX11=no"),
        '2' | 'n' => Switch::Nothing,
        'q' => Switch::Quiet,
        't' => Switch::Terminal,
        'f' | 'g' | 'G' | 'K' | 'M' | 'N' | 's' | 'v' | 'V' | 'X' | 'Y' | 'y' => Switch::Foreign,
        _ => return None,
    })
}

fn valued(flag: char) -> Option<Valued> {
    Some(match flag {
        'B' => Valued::Keyword("BindInterface"),
        'b' => Valued::Keyword("BindAddress"),
        'c' => Valued::Keyword("Ciphers"),
        'J' => Valued::Keyword("ProxyJump"),
        'l' => Valued::User,
        'm' => Valued::Keyword("MACs"),
        'p' => Valued::Keyword("Port"),
        'o' => Valued::Option,
        'i' => Valued::Identity,
        'F' => Valued::ConfigFile,
        'P' => Valued::Tag,
        'e' => Valued::Nothing,
        'D' | 'E' | 'I' | 'L' | 'O' | 'Q' | 'R' | 'S' | 'W' | 'w' => Valued::Foreign,
        _ => return None,
    })
}

impl SshFlags {
    pub(super) fn parse(texts: &[String]) -> Result<SshFlags, SshFlagError> {
        let mut flags = SshFlags::default();
        let mut terminals = 0;
        for text in texts {
            flags.words.push(format!("-{text}"));
            flags.take(text, &mut terminals)?;
        }
        if terminals > 1 {
            flags.options.push("RequestTTY=force".to_owned());
        }
        Ok(flags)
    }

    /// As getopt(3) reads a word: switches may be joined, and what follows a flag with a value is that.
    fn take(&mut self, text: &str, terminals: &mut u32) -> Result<(), SshFlagError> {
        let unknown = |flag| SshFlagError::Unknown {
            text: text.to_owned(),
            flag,
        };
        if text.trim().is_empty() {
            return Err(SshFlagError::Empty {
                text: text.to_owned(),
            });
        }
        for (at, flag) in text.char_indices() {
            if let Some(meaning) = valued(flag) {
                let (flags, value) = text.split_at(at + flag.len_utf8());
                let word = if matches!(flag, 'o' | 'p') {
                    value
                } else {
                    value.trim()
                };
                self.arguments.push(format!("-{flags}{word}"));
                let value = value.trim();
                if value.is_empty() {
                    let text = text.to_owned();
                    return Err(SshFlagError::NoValue { text, flag });
                }
                return self.set(text, flag, meaning, value);
            }
            match switch(flag).ok_or_else(|| unknown(flag))? {
                Switch::Line(line) => self.options.push(line.to_owned()),
                Switch::Nothing => {}
                Switch::Quiet => self.quiet = true,
                Switch::Terminal => *terminals += 1,
                Switch::Foreign => self.leave_to_ssh(flag),
            }
        }
        self.arguments.push(format!("-{text}"));
        Ok(())
    }

    fn set(
        &mut self,
        text: &str,
        flag: char,
        meaning: Valued,
        value: &str,
    ) -> Result<(), SshFlagError> {
        match meaning {
            Valued::Keyword(keyword) => self.options.push(format!("{keyword}={value}")),
            Valued::Identity => self.options.push(identity(value)),
            Valued::User if self.sets("User") => {}
            Valued::User => {
                self.user.get_or_insert_with(|| value.to_owned());
            }
            Valued::ConfigFile => self.config_file = Some(PathBuf::from(value)),
            Valued::Tag => self.tag = Some(value.to_owned()),
            Valued::Nothing => {}
            Valued::Foreign => self.leave_to_ssh(flag),
            Valued::Option => {
                let line = key_and_value(value).map_err(|why| SshFlagError::Option {
                    text: text.to_owned(),
                    why,
                })?;
                self.quiet |= is_silent(&line);
                self.options.push(line);
            }
        }
        Ok(())
    }

    /// Whether a line is for this keyword.
    pub(super) fn sets(&self, keyword: &str) -> bool {
        let mut keywords = self.options.iter().map(|line| keyword_and_value(line).0);
        keywords.any(|set| set.eq_ignore_ascii_case(keyword))
    }

    fn leave_to_ssh(&mut self, flag: char) {
        self.foreign.get_or_insert(flag);
    }
}

/// A private key file as a line of ssh_config.
fn identity(path: &str) -> String {
    format!("IdentityFile=\"{path}\"")
}

/// Whether a line has ssh say nothing of what went wrong (ssh_config(5), LogLevel).
fn is_silent(line: &str) -> bool {
    let (keyword, level) = keyword_and_value(line);
    keyword.eq_ignore_ascii_case("LogLevel")
        && ["quiet", "fatal"].contains(&level.to_ascii_lowercase().as_str())
}

/// A line taken apart.
fn keyword_and_value(line: &str) -> (&str, &str) {
    let (keyword, value) = line
        .split_once(|c: char| c == '=' || c.is_whitespace())
        .unwrap_or((line, ""));
    let value = value.trim_matches(|c: char| c == '=' || c == '"' || c.is_whitespace());
    (keyword.trim_matches('"'), value)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn parsed(texts: &[&str]) -> Result<SshFlags, SshFlagError> {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        SshFlags::parse(&texts)
    }

    fn options(texts: &[&str]) -> Vec<String> {
        let flags = parsed(texts).unwrap();
        assert_eq!(flags.foreign, None, "{texts:?}");
        flags.options
    }

    #[test]
    fn flags_become_lines_of_ssh_config_in_their_order() {
        assert_eq!(
            options(&["o StrictHostKeyChecking=yes", "p 22", "oPort 23"]),
            ["StrictHostKeyChecking=yes", "Port=22", "Port 23"]
        );
        assert_eq!(
            options(&[
                "i ~/my key",
                "J a,b",
                "4",
                "c aes128-ctr",
                "m hmac-sha2-256"
            ]),
            [
                "IdentityFile=\"~/my key\"",
                "ProxyJump=a,b",
                "AddressFamily=inet",
                "Ciphers=aes128-ctr",
                "MACs=hmac-sha2-256"
            ]
        );
        assert_eq!(options(&["b 127.0.0.1", "B lo"]).len(), 2);
    }

    #[test]
    fn switches_may_be_joined_and_end_in_a_value() {
        assert_eq!(
            options(&["AnxTp2222"]),
            [
                "ForwardAgent=yes",
                "ForwardX11=no",
                "RequestTTY=no",
                "Port=2222"
            ]
        );
        assert_eq!(options(&["t"]), Vec::<String>::new());
        assert_eq!(options(&["tt"]), ["RequestTTY=force"]);
        assert_eq!(options(&["t", "t"]), ["RequestTTY=force"]);
    }

    #[test]
    fn files_tags_and_silence_have_their_own_places() {
        let flags = parsed(&["F fleet.conf", "P lab", "q", "e none"]).unwrap();
        assert_eq!(flags.config_file, Some(PathBuf::from("fleet.conf")));
        assert_eq!(flags.tag.as_deref(), Some("lab"));
        assert!(flags.quiet && flags.options.is_empty());
        assert_eq!(flags.words, ["-F fleet.conf", "-P lab", "-q", "-e none"]);
        assert_eq!(flags.arguments, ["-Ffleet.conf", "-Plab", "-q", "-enone"]);
        let flags = parsed(&["o Port=1", "p 1", "Ai key"]).unwrap();
        assert_eq!(flags.arguments, ["-o Port=1", "-p 1", "-Aikey"]);
        for silent in [
            "o LogLevel=quiet",
            "o loglevel FATAL",
            "o LogLevel = \"QUIET\"",
        ] {
            assert!(parsed(&[silent]).unwrap().quiet, "{silent}");
        }
        assert!(!parsed(&["o LogLevel=ERROR"]).unwrap().quiet);
    }

    #[test]
    fn the_first_user_counts_and_is_a_name_as_it_stands() {
        for (texts, user, sets) in [
            (&["l a b", "l c"][..], Some("a b"), false),
            (&["l dom\\user", "o User=c"], Some("dom\\user"), true),
            (&["o user c", "l a%h"], None, true),
            (&["o Port=1"], None, false),
        ] {
            let flags = parsed(texts).unwrap();
            assert_eq!(flags.user.as_deref(), user, "{texts:?}");
            assert_eq!(flags.sets("User"), sets, "{texts:?}");
        }
        assert!(parsed(&["p 1"]).unwrap().sets("Port"));
    }

    #[test]
    fn what_only_ssh_has_is_left_to_it() {
        for (text, flag) in [("v", 'v'), ("AX", 'X'), ("L 80:a:80", 'L'), ("S none", 'S')] {
            assert_eq!(parsed(&[text]).unwrap().foreign, Some(flag), "{text}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (text, words) in [
            ("", "as in -O 'o Port=2222'"),
            ("-o Port=22", "without its dash"),
            ("z", "no flag -z"),
            ("p", "-p of ssh needs a value"),
            ("o Port", "must be an option of ssh_config"),
        ] {
            let said = parsed(&[text]).unwrap_err().to_string();
            assert!(said.contains(words), "{text}: {said}");
        }
    }
}
