//! Questions of an ssh_config that take time: what a command exits with, and whether a name has an address. Many are
//! asked at a time, and one that is not answered delays no other.

use std::collections::VecDeque;
use std::io;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use dns_lookup::{AddrFamily, AddrInfoHints, SockType, getaddrinfo};
use rustix::process::{Pid, Signal, kill_process};
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
    /// The process to end if it takes too long.
    process: Option<Pid>,
}

/// What is heard of a question.
enum Heard {
    /// What `Match exec` exited with.
    Status(Option<i32>),
    Name(Lookup),
}

/// Finds the answers to questions of which each is there once. A name that is not found in time has no address, and a
/// command that does not end in time is killed, which ends the host's resolution with an error, as any signal does.
pub(super) fn find_out(questions: Vec<Question>, answers: &mut Answers) {
    let (heard, results) = mpsc::channel();
    let mut waiting = questions.into_iter();
    let mut asked: VecDeque<Asked> = VecDeque::new();
    loop {
        while asked.len() < AT_ONCE
            && let Some(question) = waiting.next()
        {
            asked.push_back(ask(question, &heard));
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
fn ask(question: Question, heard: &mpsc::Sender<(Question, Heard)>) -> Asked {
    let child = match &question {
        Question::Exec { command } => Some(start(command)),
        _ => None,
    };
    let limit = match child {
        Some(_) => COMMAND_LIMIT,
        None => LOOKUP_LIMIT,
    };
    let process = match &child {
        Some(Ok(child)) => Pid::from_raw(child.id().cast_signed()),
        _ => None,
    };
    let asked = Asked {
        question: question.clone(),
        until: Instant::now() + limit,
        process,
    };
    let heard = heard.clone();
    thread::spawn(move || {
        let answer = match (&question, child) {
            (_, Some(child)) => Heard::Status(exit_status(child)),
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
        question, process, ..
    } in late
    {
        tracing::warn!(%question, "no answer in time");
        // It has not been waited for, so that the number is still its own.
        if let Some(process) = process {
            let _ = kill_process(process, Signal::KILL);
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

/// As ssh runs it: by the user's shell, with nothing to read and its output unseen (`execute_in_shell`, readconf.c).
fn start(command: &str) -> io::Result<Child> {
    let mut shell = shell::command(command);
    shell.stdin(Stdio::null()).stdout(Stdio::null());
    Ok(shell.spawn()?)
}

fn exit_status(child: io::Result<Child>) -> Option<i32> {
    child.ok()?.wait().ok()?.code()
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
    use super::*;

    #[test]
    fn commands_are_judged_by_their_status() {
        assert_eq!(exit_status(start("exit 3")), Some(3));
        assert_eq!(exit_status(start("kill -9 $$")), None);
    }

    #[test]
    fn names_are_looked_up_in_the_family_that_counts() {
        let found = |family| look_up("127.0.0.1", family) != Lookup::NotFound;
        assert!(found(AddressFamily::Any) && found(AddressFamily::Inet));
        assert!(!found(AddressFamily::Inet6));
    }
}
