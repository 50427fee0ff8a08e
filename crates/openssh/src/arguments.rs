//! The command line of an ssh.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// StrictHostKeyChecking, where ssh's own default or the user's setting does not serve: nobody can be asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HostKeyChecking {
    /// As configured: `yes`, `accept-new` or `no`.
    #[default]
    Configured,
    /// `yes`.
    Strict,
}

/// What ssh is told about one host. All that it reads from its configuration it reads by itself, from the same files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandLine {
    /// The host as the user named it: what `Host` and `Match` are asked for.
    pub host: String,
    /// `-l`.
    pub user: Option<String>,
    /// `-p`.
    pub port: Option<u16>,
    /// `-F`.
    pub config_file: Option<PathBuf>,
    /// `-i`.
    pub identities: Vec<PathBuf>,
    /// `-J`.
    pub jump: Option<String>,
    /// `-A`.
    pub forward_agent: bool,
    /// `-P`.
    pub tag: Option<String>,
    /// `-o`, in the order in which they count: the first one for a keyword.
    pub options: Vec<String>,
    /// Words that are passed on as they are, before the host.
    pub words: Vec<OsString>,
    /// Settings that go before all others, for what a run is: see [`CommandLine::arguments`].
    pub overrides: Vec<String>,
    /// What to do about host keys.
    pub checking: HostKeyChecking,
    /// Whether a password can be given, by [`AskPass`](crate::AskPass).
    pub has_password: bool,
    /// Whether it gets our terminal: then it may ask there, and its log is its own.
    pub has_terminal: bool,
    /// Whether its log is to tell of each packet (LogLevel DEBUG3): for measurements.
    pub names_packets: bool,
    /// What to run.
    pub command: Vec<u8>,
}

/// What every ssh of a run is told, before anything of the user's: as in ssh_config, the first value counts.
///
/// A run forwards nothing, runs no LocalCommand, and never asks. A key of ControlMaster's own is not made here: the
/// master would stay until the last of its other sessions has ended, and the run with it.
const ALWAYS: [&str; 4] = [
    "ClearAllForwardings=yes",
    "ForwardX11=no",
    "PermitLocalCommand=no",
    "EscapeChar=none",
];

impl CommandLine {
    /// All arguments. `log` is where ssh writes what it has to say itself; it must not be missing unless the terminal
    /// is ssh's.
    pub fn arguments(&self, log: Option<&OsStr>) -> Vec<OsString> {
        let mut words: Vec<OsString> = Vec::with_capacity(32);
        let mut option = |value: &str| words.extend(["-o".into(), value.into()]);
        ALWAYS.into_iter().for_each(&mut option);
        self.overrides.iter().for_each(|value| option(value));
        if self.checking == HostKeyChecking::Strict {
            option("StrictHostKeyChecking=yes");
        }
        match (self.has_terminal, self.has_password) {
            (true, _) => {}
            (false, false) => option("BatchMode=yes"),
            // A wrong password is one failed attempt, and not three towards a locked account.
            (false, true) => {
                option("BatchMode=no");
                option("NumberOfPasswordPrompts=1");
            }
        }
        if let Some(log) = log {
            option(match self.names_packets {
                true => "LogLevel=DEBUG3",
                false => "LogLevel=DEBUG1",
            });
            words.extend(["-E".into(), log.into()]);
        }
        self.where_to(&mut words);
        words.extend(self.words.iter().cloned());
        if self.has_terminal {
            words.push("-t".into());
        }
        // Whatever the name looks like, it is no option, and what follows it is the command.
        words.extend(["--".into(), self.host.clone().into()]);
        if !self.command.is_empty() {
            words.push(OsString::from_vec(self.command.clone()));
        }
        words
    }

    /// The user's own words on where to go and how to log in.
    fn where_to(&self, words: &mut Vec<OsString>) {
        let mut flag = |name: &str, value: OsString| words.extend([name.into(), value]);
        if let Some(user) = &self.user {
            flag("-l", user.into());
        }
        if let Some(port) = self.port {
            flag("-p", port.to_string().into());
        }
        for value in &self.options {
            flag("-o", value.into());
        }
        if let Some(file) = &self.config_file {
            flag("-F", file.into());
        }
        for identity in &self.identities {
            flag("-i", identity.into());
        }
        if let Some(jump) = &self.jump {
            flag("-J", jump.into());
        }
        if let Some(tag) = &self.tag {
            flag("-P", tag.into());
        }
        if self.forward_agent {
            words.push("-A".into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &CommandLine) -> Vec<String> {
        let words = line.arguments(Some("/log".as_ref()));
        words
            .into_iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect()
    }

    #[test]
    fn what_a_run_needs_goes_before_what_the_user_says_and_the_command_comes_last() {
        let line = CommandLine {
            host: "-oProxyCommand=evil".to_owned(),
            options: vec!["BatchMode=no".to_owned()],
            command: b"uptime -p".to_vec(),
            ..CommandLine::default()
        };
        let words = words(&line);
        let at = |wanted: &str| words.iter().position(|word| word == wanted);
        assert!(at("BatchMode=yes") < at("BatchMode=no"), "{words:?}");
        assert_eq!(
            words[words.len() - 3..],
            ["--", "-oProxyCommand=evil", "uptime -p"]
        );
    }

    #[test]
    fn nobody_is_asked_but_for_a_password_that_is_there() {
        let mut line = CommandLine::default();
        assert!(words(&line).contains(&"BatchMode=yes".to_owned()));
        line.has_password = true;
        assert!(!words(&line).contains(&"BatchMode=yes".to_owned()));
        assert!(words(&line).contains(&"NumberOfPasswordPrompts=1".to_owned()));
    }

    #[test]
    fn all_flags_are_passed_on() {
        let line = CommandLine {
            host: "web1".to_owned(),
            user: Some("root".to_owned()),
            port: Some(2222),
            config_file: Some("config".into()),
            identities: vec!["one".into(), "two".into()],
            jump: Some("gate".to_owned()),
            forward_agent: true,
            tag: Some("fast".to_owned()),
            words: vec!["-4".into()],
            ..CommandLine::default()
        };
        let said = words(&line).join(" ");
        let flags = "-l root -p 2222 -F config -i one -i two -J gate -P fast -A -4 -- web1";
        assert!(said.ends_with(flags), "{said}");
    }
}
