//! The status that a run exits with: stable, documented in docs/exit-status.md.

use std::io;

/// All hosts ran the command, and it returned 0 everywhere.
pub const OK: u8 = 0;
/// All hosts ran the command; on some it returned another status or a signal ended it.
pub const COMMAND_FAILED: u8 = 1;
/// The command line, the host list or the configuration is wrong; nothing was run.
pub const USAGE: u8 = 2;
/// Some host was not reached, or it is not known how its command ended.
pub const HOST_FAILED: u8 = 3;
/// Our own output could not be written, which ended the run; commands may have run (EX_IOERR of sysexits.h).
pub const OUTPUT_FAILED: u8 = 74;
/// The run was interrupted (128 + SIGINT).
pub const INTERRUPTED: u8 = SIGNALLED + 2;
/// Whoever read our output went away (128 + SIGPIPE, as a shell shows for any filter).
pub const BROKEN_PIPE: u8 = SIGNALLED + 13;
/// With `-S`, what a host counts for whose command gave no status, as with ssh.
pub const UNKNOWN_STATUS: u8 = 255;

/// Added to the number of the signal that ended something, as a shell does.
pub const SIGNALLED: u8 = 128;

/// What ended a run, or its report, before its time. The later one counts if there are two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CutShort {
    /// Our own output could not be written.
    OutputFailed,
    /// The user interrupted it (SIGINT).
    Interrupted,
    /// A signal of this number stopped it: SIGHUP, SIGQUIT or SIGTERM.
    Stopped(i32),
    /// Whoever read our output went away.
    ReaderGone,
}

impl CutShort {
    /// What the first failure of our output means.
    pub(crate) fn by(failure: &io::Error) -> CutShort {
        match failure.kind() {
            io::ErrorKind::BrokenPipe => CutShort::ReaderGone,
            _ => CutShort::OutputFailed,
        }
    }

    /// Whether it was a signal: the user's, or the system's.
    pub fn is_interruption(self) -> bool {
        matches!(self, CutShort::Interrupted | CutShort::Stopped(_))
    }

    /// The status to exit with.
    pub fn exit_status(self) -> u8 {
        match self {
            CutShort::OutputFailed => OUTPUT_FAILED,
            CutShort::Interrupted => INTERRUPTED,
            CutShort::Stopped(signal) => {
                u8::try_from(signal).map_or(UNKNOWN_STATUS, |signal| SIGNALLED | signal)
            }
            CutShort::ReaderGone => BROKEN_PIPE,
        }
    }
}

/// How the hosts of a run ended. The first five add up to the hosts that have ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// The command returned 0.
    pub ok: usize,
    /// The command returned another status.
    pub exited: usize,
    /// A signal ended the command.
    pub signalled: usize,
    /// The host failed before its command gave a status.
    pub failed: usize,
    /// The run ended before the host's turn.
    pub not_started: usize,
    /// The largest of all commands' statuses, each as [`remote_status`] or [`signal_status`] tells.
    pub largest_status: u8,
}

/// Whose failure the exit status of the run tells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ExitPolicy {
    /// The table above.
    #[default]
    ByKind,
    /// `-S`: the largest remote status.
    LargestRemote,
}

/// The exit status of a run whose hosts ended so.
pub fn exit_status(counts: &Counts, cut_short: Option<CutShort>, policy: ExitPolicy) -> u8 {
    if let Some(cut_short) = cut_short {
        return cut_short.exit_status();
    }
    let host_failed = counts.failed + counts.not_started > 0;
    match policy {
        ExitPolicy::LargestRemote if host_failed => UNKNOWN_STATUS,
        ExitPolicy::LargestRemote => counts.largest_status,
        ExitPolicy::ByKind if host_failed => HOST_FAILED,
        ExitPolicy::ByKind if counts.exited + counts.signalled > 0 => COMMAND_FAILED,
        ExitPolicy::ByKind => OK,
    }
}

/// A remote exit status as one of ours. SSH carries 32 bits (RFC 4254 section 6.10), a process has 8: more
/// becomes 255, so that no failure becomes a success.
pub fn remote_status(status: u32) -> u8 {
    u8::try_from(status).unwrap_or(UNKNOWN_STATUS)
}

/// 128 + the number of a signal, as a shell shows it; [`UNKNOWN_STATUS`] for a signal that RFC 4254 section
/// 6.10 does not name.
pub fn signal_status(name: &str) -> u8 {
    let number = match name {
        "HUP" => 1,
        "INT" => 2,
        "QUIT" => 3,
        "ILL" => 4,
        "ABRT" => 6,
        "FPE" => 8,
        "KILL" => 9,
        "USR1" => 10,
        "SEGV" => 11,
        "USR2" => 12,
        "PIPE" => 13,
        "ALRM" => 14,
        "TERM" => 15,
        _ => return UNKNOWN_STATUS,
    };
    SIGNALLED + number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_that_happened_decides() {
        let all_ok = Counts {
            ok: 3,
            ..Counts::default()
        };
        let one_exited = Counts {
            exited: 1,
            largest_status: 7,
            ..all_ok
        };
        let one_signalled = Counts {
            signalled: 1,
            largest_status: 137,
            ..all_ok
        };
        let one_failed = Counts {
            failed: 1,
            ..one_exited
        };
        let not_all_started = Counts {
            not_started: 1,
            ..all_ok
        };
        for (counts, by_kind, largest) in [
            (Counts::default(), 0, 0),
            (all_ok, 0, 0),
            (one_exited, 1, 7),
            (one_signalled, 1, 137),
            (one_failed, 3, 255),
            (not_all_started, 3, 255),
        ] {
            assert_eq!(
                exit_status(&counts, None, ExitPolicy::ByKind),
                by_kind,
                "{counts:?}"
            );
            assert_eq!(
                exit_status(&counts, None, ExitPolicy::LargestRemote),
                largest,
                "{counts:?}"
            );
            for policy in [ExitPolicy::ByKind, ExitPolicy::LargestRemote] {
                let interrupted = Some(CutShort::Interrupted);
                assert_eq!(exit_status(&counts, interrupted, policy), 130);
            }
        }
    }

    #[test]
    fn of_two_ends_the_one_further_down_in_the_table_counts() {
        use CutShort::*;
        let ends = [
            OutputFailed,
            Interrupted,
            Stopped(1),
            Stopped(15),
            ReaderGone,
        ];
        assert!(ends.is_sorted(), "in the order of docs/exit-status.md");
        assert_eq!(ends.map(CutShort::exit_status), [74, 130, 129, 143, 141]);
        assert_eq!(Some(Interrupted).max(None), Some(Interrupted));
        let by = |kind| CutShort::by(&io::Error::from(kind));
        assert_eq!(by(io::ErrorKind::BrokenPipe), ReaderGone);
        assert_eq!(by(io::ErrorKind::StorageFull), OutputFailed);
    }

    #[test]
    fn no_failure_becomes_a_success() {
        assert_eq!(
            [remote_status(0), remote_status(255), remote_status(256)],
            [0, 255, 255]
        );
        assert_eq!(remote_status(u32::MAX), 255);
        assert_eq!([signal_status("KILL"), signal_status("TERM")], [137, 143]);
        assert_eq!(signal_status("local@example.com"), 255);
    }
}
