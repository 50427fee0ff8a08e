//! How dash and bash treat what they start, as far as it can be seen.

use std::path::Path;

use spawn::{Signal, SignalSet};

/// A shell whose builtins and reserved words are known here. Another one, such as busybox, may well have `ls` built in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shell {
    Dash,
    Bash,
}

impl Shell {
    /// By the name of the file that a path leads to.
    pub(crate) fn of(resolved: &Path) -> Option<Shell> {
        match resolved.file_name()?.to_str()? {
            "dash" => Some(Shell::Dash),
            "bash" => Some(Shell::Bash),
            _ => None,
        }
    }

    /// The signal mask that a program finds behind a shell, of the one that the shell was given.
    pub(crate) fn mask(self, given: SignalSet) -> SignalSet {
        match self {
            Shell::Dash => SignalSet::EMPTY,
            Shell::Bash => given.without(Signal::CHILD),
        }
    }

    /// What a shell that outlives its command says of the signal that ended it, with a newline; none of some.
    pub(crate) fn obituary(self, signal: i32, dumped: bool) -> Option<String> {
        let words = match DEATHS.get(usize::try_from(signal).ok()?.checked_sub(1)?) {
            Some(words) => (*words).to_owned(),
            // glibc keeps the two below for itself.
            None if signal >= FIRST_REAL_TIME => {
                format!("Real-time signal {}", signal - FIRST_REAL_TIME)
            }
            None => format!("Unknown signal {signal}"),
        };
        let is_told = self == Shell::Dash && !words.is_empty();
        is_told.then(|| format!("{words}{}\n", if dumped { " (core dumped)" } else { "" }))
    }

    /// The signals that a program behind a shell does not ignore, though the shell was told to.
    pub(crate) fn noticed(self) -> SignalSet {
        match self {
            // It has a handler, which ends with exec.
            Shell::Dash => SignalSet::EMPTY.with(Signal::CHILD),
            Shell::Bash => SignalSet::EMPTY,
        }
    }
}

/// glibc's SIGRTMIN.
const FIRST_REAL_TIME: i32 = 34;

/// What libc calls the signals, from 1 on; empty where dash says nothing.
const DEATHS: [&str; 31] = [
    "Hangup",
    "",
    "Quit",
    "Illegal instruction",
    "Trace/breakpoint trap",
    "Aborted",
    "Bus error",
    "Floating point exception",
    "Killed",
    "User defined signal 1",
    "Segmentation fault",
    "User defined signal 2",
    "",
    "Alarm clock",
    "Terminated",
    "Stack fault",
    "Child exited",
    "Continued",
    "Stopped (signal)",
    "Stopped",
    "Stopped (tty input)",
    "Stopped (tty output)",
    "Urgent I/O condition",
    "CPU time limit exceeded",
    "File size limit exceeded",
    "Virtual timer expired",
    "Profiling timer expired",
    "Window changed",
    "I/O possible",
    "Power failure",
    "Bad system call",
];

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn only_dash_and_bash_are_known() {
        assert_eq!(Shell::of(Path::new("/usr/bin/dash")), Some(Shell::Dash));
        assert_eq!(Shell::of(Path::new("/bin/bash")), Some(Shell::Bash));
        for other in ["/bin/busybox", "/bin/ksh93", "/bin/zsh", "/bin/sh", "/"] {
            assert_eq!(Shell::of(Path::new(other)), None, "{other}");
        }
    }

    /// What a program behind a shell has of a blocked SIGUSR1 and ignored SIGCHLD and SIGTERM, told by the kernel.
    #[test]
    fn masks_and_ignored_signals_behind_each_shell_are_as_said_here() {
        let given: SignalSet = [Signal::USR1, Signal::CHILD].into_iter().collect();
        let ignored: SignalSet = [Signal::TERM, Signal::CHILD].into_iter().collect();
        for (name, shell) in [("dash", Shell::Dash), ("bash", Shell::Bash)] {
            let mut command = spawn::Command::new(name);
            command.args(["-c", "grep ^Sig /proc/self/status"]);
            command.signal_mask(Some(given)).ignore_signals(ignored);
            let child = command.stdout(spawn::Stdio::pipe()).spawn();
            let told = std::io::read_to_string(child.unwrap().stdout.take().unwrap()).unwrap();
            let set = |of: &str| {
                let digits = told.lines().find_map(|line| line.strip_prefix(of)).unwrap();
                u64::from_str_radix(digits.trim(), 16).unwrap()
            };
            assert_eq!(set("SigBlk:"), shell.mask(given).bits(), "{name}: {told}");
            let still = ignored.bits() & !shell.noticed().bits();
            assert_eq!(set("SigIgn:") & ignored.bits(), still, "{name}: {told}");
        }
    }

    #[test]
    fn dash_says_of_each_signal_what_is_said_here() {
        // Without those that end nothing, SIGQUIT, which bash ignores, and glibc's own two, which posix_spawn(3) may leave
        // ignored.
        let harmless = [3, 17, 18, 19, 20, 21, 22, 23, 28, 32, 33];
        for signal in (1..=64).filter(|signal| !harmless.contains(signal)) {
            let line = format!("ulimit -c 0; bash -c 'kill -{signal} $$'; :");
            let ended = Command::new("dash").args(["-c", &line]).output().unwrap();
            let told = String::from_utf8(ended.stderr).unwrap();
            assert_eq!(
                told,
                Shell::Dash.obituary(signal, false).unwrap_or_default(),
                "{signal}"
            );
        }
        assert_eq!(
            Shell::Dash.obituary(11, true).unwrap(),
            "Segmentation fault (core dumped)\n"
        );
        assert_eq!(Shell::Bash.obituary(9, false), None);
    }
}
