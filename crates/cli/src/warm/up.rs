//! `sshoal up`: asks the process that keeps the connections to keep more, and starts it if there is none.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use sshoal_net::Interruption;
use sshoal_pool::{Ask, AskError, Caller, Folder, Lock, Pool, Settled, Tell, ask};
use sshoal_targets::fold;

use super::args::UpArgs;
use super::background::{self, Standing};
use super::request::Request;
use super::rounds::{self, Rounds};
use super::voice::Voice;
use crate::manual;
use crate::observer::cut_short;
use crate::prompt;
use crate::say::say;

/// A host could not be logged in to (docs/exit-status.md).
const FAILED: u8 = 3;
/// How long a process that keeps connections may take to begin, or one that has just ended to be gone.
const PATIENCE: Duration = Duration::from_secs(20);
/// How soon is looked again.
const GLANCE: Duration = Duration::from_millis(20);

/// Why nobody is logged in to.
#[derive(Debug, thiserror::Error)]
enum UpError {
    #[error(
        "connections are kept already, by process {pid}: without --foreground it keeps these hosts, too, or `sshoal down` ends it first"
    )]
    IsUp { pid: u32 },
    #[error(
        "connections are kept already, by a process that does not answer; `sshoal status` tells more, as soon as it does"
    )]
    IsSilent,
    #[error("{0}")]
    Refused(String),
    #[error(
        "the process that keeps the connections has ended before it said how it went; `sshoal status` tells whether there is another"
    )]
    Broken,
}

/// Logs in and keeps the connections; returns the exit status.
pub(crate) fn up(args: &UpArgs) -> Result<u8, Box<dyn std::error::Error>> {
    let folder = Folder::of_user()?;
    if args.ssh_config {
        return Ok(manual::status_of(print_ssh_config(&folder)));
    }
    if args.daemon {
        return keep(folder);
    }
    let request = Request::of(args)?;
    if args.foreground {
        return keep_here(folder, &request, args.quiet);
    }
    let caller = reach(&folder, &request)?;
    let settled = converse(caller)?;
    Ok(tell(&settled, args.quiet))
}

/// Asks the process that keeps the connections; there is one afterwards.
fn reach(folder: &Folder, request: &Request) -> Result<Caller, Box<dyn std::error::Error>> {
    let request = serde_json::to_string(request)?;
    let question = Ask::Up { request };
    let give_up = Instant::now() + PATIENCE;
    loop {
        match Caller::begin(folder, &question) {
            Err(AskError::NoPool) => {}
            begun => return Ok(begun?),
        }
        let standing = background::start()?;
        if Instant::now() > give_up {
            return Err(UpError::IsSilent.into());
        }
        // Another one may hear only in a moment, or has just ended and is not gone.
        if standing == Standing::IsSecond {
            thread::sleep(GLANCE);
        }
    }
}

/// Shows what is said, and puts what is asked, to the end.
fn converse(mut caller: Caller) -> Result<Settled, Box<dyn std::error::Error>> {
    let mut answering = caller.answering()?;
    let (sender, told) = channel();
    let is_withdrawn = Arc::new(AtomicBool::new(false));
    let flag = is_withdrawn.clone();
    thread::Builder::new()
        .name("told".to_owned())
        .spawn(move || {
            loop {
                let tell = caller.hear().ok().flatten();
                flag.store(
                    matches!(tell, None | Some(Tell::Withdrawn)),
                    Ordering::Relaxed,
                );
                let is_over = tell.is_none();
                if sender.send(tell).is_err() || is_over {
                    return;
                }
            }
        })?;
    let wanted = || !is_withdrawn.load(Ordering::Relaxed);
    while let Some(tell) = next(&told) {
        match tell {
            Tell::Begun | Tell::Withdrawn => {}
            Tell::Say { text } => say(text),
            Tell::Ask { number, question } => {
                let (secret, notice) = prompt::secret_or_notice(&question, &wanted);
                if let Some(notice) = notice {
                    say(notice);
                }
                answering.secret(number, secret.as_ref())?;
            }
            Tell::Confirm {
                number,
                lines,
                fingerprint,
            } => {
                let answer = prompt::confirm(&lines, fingerprint.as_deref(), &wanted);
                answering.confirmation(number, answer)?;
            }
            Tell::Settled(settled) => return Ok(settled),
            Tell::Refused { why } => return Err(UpError::Refused(why).into()),
        }
    }
    Err(UpError::Broken.into())
}

fn next(told: &Receiver<Option<Tell>>) -> Option<Tell> {
    told.recv().ok().flatten()
}

/// Says how it went; returns the exit status.
fn tell(settled: &Settled, is_quiet: bool) -> u8 {
    let Settled {
        up,
        lazy,
        failed,
        kept,
    } = settled;
    let mut words = Vec::new();
    for (number, what) in [(*up, "up"), (*lazy, "lazy"), (*failed, "failed")] {
        if number > 0 {
            words.push(format!("{number} {what}"));
        }
    }
    if !kept.is_empty() {
        words.push(match kept.len() {
            1 => format!("{} is kept already", kept[0]),
            hosts => format!("{hosts} are kept already ({})", fold(kept)),
        });
    }
    let is_worth_saying = up + lazy + kept.len() > 0;
    if is_worth_saying && !is_quiet {
        say(words.join(", "));
    }
    match failed {
        0 => 0,
        _ => FAILED,
    }
}

/// The process in the background.
fn keep(folder: Folder) -> Result<u8, Box<dyn std::error::Error>> {
    background::leave()?;
    let Some(lock) = folder.lock()? else {
        background::say(Standing::IsSecond)?;
        return Ok(0);
    };
    let pool = Pool::new(folder.clone(), lock)?;
    let listener = pool.listen()?;
    background::say(Standing::Hears)?;
    let end = pool.serve(listener, Arc::new(Rounds { folder }));
    pool.clear();
    end?;
    Ok(0)
}

/// The same in the foreground, with hosts from its beginning.
fn keep_here(
    folder: Folder,
    request: &Request,
    is_quiet: bool,
) -> Result<u8, Box<dyn std::error::Error>> {
    let lock = only_one(&folder)?;
    let pool = Pool::new(folder.clone(), lock)?;
    let listener = pool.listen()?;
    let hold = pool.hold();
    let begun = rounds::begin(&folder, &pool, request, Voice::Here);
    let begun = match begun {
        Ok(begun) => begun,
        Err(error) => {
            pool.clear();
            return Err(error);
        }
    };
    let round = begun.round.clone();
    let run = begin_telling(begun, is_quiet)?;
    // Nobody meets a process that a signal would end out of order.
    round.wait_until_begun();
    drop(hold);
    let end = pool.serve(listener, Arc::new(Rounds { folder }));
    pool.clear();
    end?;
    let interruption = run.join().unwrap_or_default();
    Ok(match cut_short(interruption) {
        Some(cut) if !is_told_to_end(interruption) => cut.exit_status(),
        _ if round.has_failures() => FAILED,
        _ => 0,
    })
}

/// The lock of whoever keeps connections. Somebody who has it and does not answer may be about to end.
fn only_one(folder: &Folder) -> Result<Lock, Box<dyn std::error::Error>> {
    let give_up = Instant::now() + PATIENCE;
    loop {
        if let Some(lock) = folder.lock()? {
            return Ok(lock);
        }
        match ask(folder, &Ask::Status) {
            Ok(status) => return Err(UpError::IsUp { pid: status.pid }.into()),
            Err(_) if Instant::now() > give_up => return Err(UpError::IsSilent.into()),
            Err(_) => thread::sleep(GLANCE),
        }
    }
}

/// Whether signals have ended it in order, as `sshoal down` does: one SIGINT, or SIGTERM.
fn is_told_to_end(interruption: Interruption) -> bool {
    let by_terminate = Some(Signal::TERM.as_raw());
    let stopped_by = interruption.stopped_by;
    interruption.interrupts <= 1 && (stopped_by.is_none() || stopped_by == by_terminate)
}

/// Says how it went once that is known, and returns what signals did in the end.
fn begin_telling(
    mut begun: rounds::Begun,
    is_quiet: bool,
) -> io::Result<thread::JoinHandle<Interruption>> {
    thread::Builder::new()
        .name("settling".to_owned())
        .spawn(move || {
            let settled = begun.settled();
            if !begun.round.is_interrupted() {
                tell(&settled, is_quiet);
            }
            let run = begun.run.take().and_then(|run| run.join().ok());
            run.unwrap_or_default()
        })
}

/// `--ssh-config`.
fn print_ssh_config(folder: &Folder) -> io::Result<()> {
    use std::io::Write;
    let path = folder.control_path();
    let mut out = io::stdout().lock();
    out.write_all(b"# Hosts that `sshoal up` keeps; all others as before.\nHost *\n    ControlMaster no\n    ControlPath ")?;
    out.write_all(&quoted(&path))?;
    out.write_all(b"\n")
}

/// As ssh_config(5) has arguments with blanks.
fn quoted(path: &OsStr) -> Vec<u8> {
    let octets = path.as_bytes();
    match octets.iter().any(|octet| b" \t'\\".contains(octet)) {
        false => octets.to_vec(),
        true => {
            let escaped = octets.iter().flat_map(|octet| match octet {
                b'"' | b'\\' => vec![b'\\', *octet],
                octet => vec![*octet],
            });
            [b"\"".to_vec(), escaped.collect(), b"\"".to_vec()].concat()
        }
    }
}
