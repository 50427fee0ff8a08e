//! The commands that simulated hosts understand.

use std::time::Duration;

use super::host::Host;

/// A parsed command line. There is no shell: no quoting, no variables, one command a line.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Command {
    /// `true`, `false`, `exit N`.
    Exit(u32),
    /// `echo WORDS` and `echo WORDS >&2`.
    Echo { words: String, to_stderr: bool },
    /// `hostname`: `sim` and the host's index.
    Hostname,
    /// `uptime`: as many days as the host's index, and no load.
    Uptime,
    /// `sleep S`: seconds, with a fraction if wanted.
    Sleep(Duration),
    /// `yes-bytes N`: N bytes of `yes`.
    YesBytes(u64),
    /// `cat`: standard input to standard output.
    Cat,
    /// `wc -c`: the number of bytes of standard input.
    CountInput,
    /// `slow N MS`: the numbers 1 to N, a line every MS milliseconds.
    Slow { lines: u64, every: Duration },
    /// `kill-self SIGNAL`: ends as a process that the signal killed.
    KillSelf(String),
    /// `count KEY`: increments the host's counter KEY and prints it.
    Count(String),
    /// `count-read KEY`: prints the counter.
    CountRead(String),
    /// Anything else: exit status 127 and a message, as a shell's.
    Unknown(String),
}

/// What a command leaves when it ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) stdout: String,
    pub(super) stderr: String,
    pub(super) end: End,
}

/// How a command ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    Status(u32),
    /// The signal's name without SIG, as in RFC 4254, 6.10.
    Signal(String),
}

impl Command {
    pub(super) fn parse(line: &str) -> Command {
        Command::understood(line).unwrap_or_else(|| Command::Unknown(line.to_owned()))
    }

    fn understood(line: &str) -> Option<Command> {
        let line = line.trim();
        let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
        let words: Vec<&str> = rest.split_whitespace().collect();
        Some(match (name, words.as_slice()) {
            ("true", _) => Command::Exit(0),
            ("false", _) => Command::Exit(1),
            ("exit", [status]) => Command::Exit(status.parse().ok()?),
            ("echo", [words @ .., ">&2"]) => Command::echo(words, true),
            ("echo", words) => Command::echo(words, false),
            ("hostname", []) => Command::Hostname,
            ("uptime", []) => Command::Uptime,
            ("sleep", [seconds]) => {
                Command::Sleep(Duration::try_from_secs_f64(seconds.parse().ok()?).ok()?)
            }
            ("yes-bytes", [bytes]) => Command::YesBytes(bytes.parse().ok()?),
            ("cat", []) => Command::Cat,
            ("wc", ["-c"]) => Command::CountInput,
            ("slow", [lines, every]) => Command::Slow {
                lines: lines.parse().ok()?,
                every: Duration::from_millis(every.parse().ok()?),
            },
            ("kill-self", [signal]) => Command::KillSelf(signal_name(signal)),
            ("count", [key]) => Command::Count((*key).to_owned()),
            ("count-read", [key]) => Command::CountRead((*key).to_owned()),
            _ => return None,
        })
    }

    fn echo(words: &[&str], to_stderr: bool) -> Command {
        Command::Echo {
            words: words.join(" "),
            to_stderr,
        }
    }

    /// The whole reply, of a command that neither waits nor reads nor sends much.
    pub(super) fn reply(&self, host: &Host) -> Option<Reply> {
        Some(match self {
            Command::Exit(status) => Reply::status(*status),
            Command::Echo { words, to_stderr } => {
                let line = format!("{words}\n");
                match to_stderr {
                    true => Reply::new("", &line, 0),
                    false => Reply::new(&line, "", 0),
                }
            }
            Command::Hostname => Reply::new(&format!("{}\n", host.name()), "", 0),
            Command::Uptime => {
                let days = host.index;
                let line = format!(" up {days} days, load average: 0.00, 0.00, 0.00\n");
                Reply::new(&line, "", 0)
            }
            Command::KillSelf(signal) => Reply {
                end: End::Signal(signal.clone()),
                ..Reply::status(0)
            },
            Command::Count(key) => Reply::new(&format!("{}\n", host.count(key)), "", 0),
            Command::CountRead(key) => Reply::new(&format!("{}\n", host.count_read(key)), "", 0),
            Command::Unknown(line) => {
                let message = format!("{}: {line}: command not found\n", host.name());
                Reply::new("", &message, 127)
            }
            Command::Sleep(_)
            | Command::YesBytes(_)
            | Command::Cat
            | Command::CountInput
            | Command::Slow { .. } => return None,
        })
    }
}

impl Reply {
    fn new(stdout: &str, stderr: &str, status: u32) -> Reply {
        Reply {
            stdout: stdout.to_owned(),
            stderr: stderr.to_owned(),
            end: End::Status(status),
        }
    }

    /// No output and this exit status.
    pub(super) fn status(status: u32) -> Reply {
        Reply::new("", "", status)
    }
}

/// A signal's name as RFC 4254, 6.10 spells it: `SIGTERM` and `term` are `TERM`.
pub(super) fn signal_name(name: &str) -> String {
    let name = name.to_ascii_uppercase();
    name.strip_prefix("SIG").unwrap_or(&name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_are_understood() {
        let echo = |words: &str, to_stderr| Command::Echo {
            words: words.into(),
            to_stderr,
        };
        for (line, command) in [
            ("true", Command::Exit(0)),
            ("false", Command::Exit(1)),
            ("exit 255", Command::Exit(255)),
            ("echo a  b", echo("a b", false)),
            ("echo", echo("", false)),
            ("echo oops >&2", echo("oops", true)),
            ("sleep 0.25", Command::Sleep(Duration::from_millis(250))),
            ("yes-bytes 5", Command::YesBytes(5)),
            ("wc -c", Command::CountInput),
            (
                "slow 3 20",
                Command::Slow {
                    lines: 3,
                    every: Duration::from_millis(20),
                },
            ),
            ("kill-self sigterm", Command::KillSelf("TERM".into())),
            ("count runs", Command::Count("runs".into())),
            ("count-read runs", Command::CountRead("runs".into())),
        ] {
            assert_eq!(Command::parse(line), command, "{line}");
        }
    }

    #[test]
    fn what_is_not_understood_is_kept_for_the_message() {
        for line in ["uname", "exit", "exit x", "sleep -1", "hostname -f", ""] {
            assert_eq!(Command::parse(line), Command::Unknown(line.into()));
        }
    }
}
