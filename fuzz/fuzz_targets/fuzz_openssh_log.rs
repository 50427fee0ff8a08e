//! Whatever an ssh writes in its log, and in whatever pieces: steps go forward only, what was sent stays sent, and its end
//! has an answer that goes with what is known of the command.

#![no_main]

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use libfuzzer_sys::fuzz_target;
use sshoal_fleet::Fate;
use sshoal_openssh::{End, Log, Progress, farewell};

fuzz_target!(|input: (Vec<&[u8]>, &str, u16)| {
    let (pieces, told, status) = input;
    let mut log = Log::default();
    for piece in pieces {
        assert!(farewell(piece) <= piece.len());
        let mut last = log.progress();
        log.handle(piece, |step| {
            assert!(last < Some(step));
            last = Some(step);
        });
        assert_eq!(last, log.progress());
        if last == Some(Progress::CommandSent) {
            assert_ne!(log.fate(), Fate::NotSent);
        }
    }
    if let End::Failed(failure, fate) = log.end(ExitStatus::from_raw(status.into()), told) {
        assert_eq!(fate, log.fate());
        assert!(fate.is_proven_not_run() || failure.kind.command_may_have_run());
    }
});
