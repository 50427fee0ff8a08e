//! Questions of an ssh_config that take time: what a command exits with, and whether a name has an address. Many are
//! asked at a time, and one that is not answered delays no other.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use dns_lookup::{AddrFamily, AddrInfoHints, SockType, getaddrinfo};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use sshoal_spawn::{Child, Stdio};
use sshoal_ssh_config::{AddressFamily, Answers, Lookup, Question};

use crate::shell;

/// How many are asked at a time.
const AT_ONCE: usize = 64;
/// How long a name may take: the C library's resolver gives up on one server after 5 s, twice.
const LOOKUP_LIMIT: Duration = Duration::from_secs(10);
/// How long a command may take. ssh waits for ever; but here the others would wait with it.
const COMMAND_LIMIT: Duration = Duration::from_secs(60);

/// A question on its way.
struct Asked {
    question: Question,
    until: Instant,
    /// The processes to end if it takes too long.
    running: Option<Running>,
}

/// A command and what it has started: a process group, whose number is its own as long as its leader has not been
/// waited for.
#[derive(Clone)]
struct Running(Arc<Mutex<Option<Pid>>>);

impl Running {
    fn of(child: &Child) -> Self {
        Running(Arc::new(Mutex::new(number(child))))
    }

    fn kill(&self) {
        let leader = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(leader) = *leader {
            // A group that has ended needs no signal.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }

    /// Waits for the command. Nobody signals its number once that may be another's.
    fn wait(&self, mut child: Child) -> Option<i32> {
        let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let pid = number(&child)?;
        while waitid(WaitId::Pid(pid), ended).is_err_and(|error| error == Errno::INTR) {}
        let mut leader = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *leader = None;
        child.wait().ok()?.code()
    }
}

fn number(child: &Child) -> Option<Pid> {
    Pid::from_raw(child.id().cast_signed())
}

/// What is heard of a question.
enum Heard {
    /// What `Match exec` exited with.
    Status(Option<i32>),
    Name(Lookup),
}

/// Finds the answers to questions of which each is there once. A name that is not found in time has no address, and a
/// command that does not end in time is killed with all that it has started, which ends the host's resolution with an
/// error, as any signal does.
pub(super) fn find_out(questions: Vec<Question>, answers: &mut Answers) {
    find_out_within(COMMAND_LIMIT, questions, answers);
}

fn find_out_within(command_limit: Duration, questions: Vec<Question>, answers: &mut Answers) {
    let (heard, results) = mpsc::channel();
    let mut waiting = questions.into_iter();
    let mut asked: VecDeque<Asked> = VecDeque::new();
    loop {
        while asked.len() < AT_ONCE
            && let Some(question) = waiting.next()
        {
            asked.push_back(ask(question, command_limit, &heard));
        }
        let Some(next) = asked.iter().min_by_key(|asked| asked.until) else {
            return;
        };
        let patience = next.until.saturating_duration_since(Instant::now());
        match results.recv_timeout(patience) {
            Ok((question, answer)) => {
                // Otherwise it is too late.
                if let Some(at) = asked.iter().position(|asked| asked.question == question) {
                    asked.remove(at);
                    note(question, answer, answers);
                }
            }
            Err(_) => give_up(&mut asked, answers),
        }
    }
}

/// Asks in a thread of its own, or here if there is none to be had.
fn ask(
    question: Question,
    command_limit: Duration,
    heard: &mpsc::Sender<(Question, Heard)>,
) -> Asked {
    let command = match &question {
        Question::Exec { command } => Some(start(command)),
        _ => None,
    };
    let limit = match command {
        Some(_) => command_limit,
        None => LOOKUP_LIMIT,
    };
    let running = match &command {
        Some(Ok((_, running))) => Some(running.clone()),
        _ => None,
    };
    let asked = Asked {
        question: question.clone(),
        until: Instant::now() + limit,
        running,
    };
    let heard = heard.clone();
    thread::spawn(move || {
        let answer = match (&question, command) {
            (_, Some(command)) => Heard::Status(exit_status(command)),
            (Question::Lookup { name, family }, None) => Heard::Name(look_up(name, *family)),
            (_, None) => return,
        };
        // Nobody listens any more if it has taken too long.
        let _ = heard.send((question, answer));
    });
    asked
}

fn give_up(asked: &mut VecDeque<Asked>, answers: &mut Answers) {
    let now = Instant::now();
    let (late, rest): (VecDeque<_>, VecDeque<_>) =
        asked.drain(..).partition(|asked| asked.until <= now);
    *asked = rest;
    for Asked {
        question, running, ..
    } in late
    {
        tracing::warn!(%question, "no answer in time");
        if let Some(running) = running {
            running.kill();
        }
        let answer = match question {
            Question::Exec { .. } => Heard::Status(None),
            _ => Heard::Name(Lookup::NotFound),
        };
        note(question, answer, answers);
    }
}

fn note(question: Question, answer: Heard, answers: &mut Answers) {
    match (question, answer) {
        (Question::Exec { command }, Heard::Status(status)) => answers.exited(command, status),
        (Question::Lookup { name, family }, Heard::Name(lookup)) => {
            answers.looked_up(name, family, lookup);
        }
        _ => {}
    }
}

/// As ssh runs it: by the user's shell, with nothing to read and its output unseen (`execute_in_shell`, readconf.c); but
/// in a process group of its own, so that all of it can be ended.
fn start(command: &str) -> io::Result<(Child, Running)> {
    let mut shell = shell::command(command);
    shell.stdin(Stdio::null()).stdout(Stdio::null());
    let child = shell.process_group(0).spawn()?;
    let running = Running::of(&child);
    Ok((child, running))
}

fn exit_status(command: io::Result<(Child, Running)>) -> Option<i32> {
    let (child, running) = command.ok()?;
    running.wait(child)
}

/// What the system's resolver says, and what the name is an alias for (`resolve_host`, ssh.c).
fn look_up(name: &str, family: AddressFamily) -> Lookup {
    let hints = AddrInfoHints {
        flags: libc::AI_CANONNAME,
        address: match family {
            AddressFamily::Any => 0,
            AddressFamily::Inet => AddrFamily::Inet.into(),
            AddressFamily::Inet6 => AddrFamily::Inet6.into(),
        },
        socktype: SockType::Stream.into(),
        ..AddrInfoHints::default()
    };
    let found = getaddrinfo(Some(name), None, Some(hints));
    let first = found.ok().and_then(|mut found| found.next()?.ok());
    match first {
        Some(first) => Lookup::Found {
            canonical_name: first.canonname,
        },
        None => Lookup::NotFound,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs::OpenOptions;
    use std::io::Read;
    use std::os::unix::fs::OpenOptionsExt;

    use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};

    use super::*;

    #[test]
    fn commands_are_judged_by_their_status() {
        assert_eq!(exit_status(start("exit 3")), Some(3));
        assert_eq!(exit_status(start("kill -9 $$")), None);
    }

    /// Whoever was started has the pipe open for writing; its end can be read once nobody has.
    #[test]
    fn a_command_that_takes_too_long_is_ended_with_all_that_it_started() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let mut options = OpenOptions::new();
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let mut read = options.read(true).custom_flags(flags).open(&pipe).unwrap();
        let command = format!("exec 3>{}; sleep 1000 & wait", pipe.display());
        let mut answers = Answers::default();
        let question = Question::Exec { command };
        find_out_within(Duration::from_secs(1), vec![question], &mut answers);
        let patience = Instant::now() + Duration::from_secs(30);
        while read.read(&mut [0]).is_err() {
            assert!(Instant::now() < patience, "something is left running");
            thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn names_are_looked_up_in_the_family_that_counts() {
        let found = |family| look_up("127.0.0.1", family) != Lookup::NotFound;
        assert!(found(AddressFamily::Any) && found(AddressFamily::Inet));
        assert!(!found(AddressFamily::Inet6));
    }
}
