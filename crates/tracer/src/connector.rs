//! The proc connector: the kernel's own messages of who is born, runs a program and ends, over netlink (CONFIG_PROC_EVENTS;
//! include/uapi/linux/cn_proc.h, connector.h, netlink.h). The tree is whole, with the times of the kernel; what anybody waits for is
//! not told. It leaves nothing behind: the socket goes with the process.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::failure::Failure;
use crate::told::{Told, Watching, locked};
use crate::{kernel, process};

/// `struct nlmsghdr`, `struct cn_msg`, and where in `struct proc_event` behind them what stands.
const NETLINK_HEADER: usize = 16;
const CONNECTOR_HEADER: usize = 20;
const EVENT: usize = NETLINK_HEADER + CONNECTOR_HEADER;
const WHAT: usize = EVENT;
const TIME: usize = EVENT + 8;
const ABOUT: usize = EVENT + 16;
const NLMSG_DONE: u16 = 3;
const CN_IDX_PROC: u32 = 1;
const CN_VAL_PROC: u32 = 1;
const PROC_CN_MCAST_LISTEN: u32 = 1;
const PROC_EVENT_NONE: u32 = 0;
const PROC_EVENT_FORK: u32 = 1;
const PROC_EVENT_EXEC: u32 = 2;
const PROC_EVENT_EXIT: u32 = 0x8000_0000;
/// More than any message has.
const MAX_MESSAGE: usize = 4096;
/// How long a message is waited for before it is looked whether all is over, and the answer to the first.
const PATIENCE: Duration = Duration::from_millis(50);
const FOR_THE_ANSWER: Duration = Duration::from_secs(1);
/// Messages were lost: there were more than the socket had room for (netlink(7)).
const ENOBUFS: i32 = 105;

/// Follows a process by it: as root, and since Linux 6.6 as anybody.
///
/// # Errors
///
/// There is none here, or it is not for us.
pub(crate) fn follow(followed: u32) -> Result<Watching, Failure> {
    // The kernel tells its own numbers, and those of other namespaces nothing at all.
    if !process::numbers_are_the_kernels() {
        let words =
            "the proc connector does not speak to a process namespace of its own (container)";
        return Err(Failure::new("not-permitted", words));
    }
    let mut socket = open().map_err(|error| {
        let words = format!("the proc connector cannot be listened to: {error}");
        let kind = match error.kind() {
            ErrorKind::PermissionDenied => "not-permitted",
            _ => "no-connector",
        };
        Failure::new(kind, words)
    })?;
    let mut buffer = vec![0; MAX_MESSAGE];
    let mut is_first = true;
    let step = move |told: &Mutex<Told>| {
        if std::mem::take(&mut is_first) {
            kernel::go_first();
        }
        match socket.read(&mut buffer) {
            Ok(read) => handle(&buffer[..read], &mut locked(told)),
            Err(error) if error.raw_os_error() == Some(ENOBUFS) => locked(told).lost += 1,
            // Nothing came meanwhile.
            Err(_) => return false,
        }
        true
    };
    Watching::start(followed, step)
        .map_err(|error| Failure::new("system", format!("no thread can be started: {error}")))
}

/// A socket that hears of all processes.
fn open() -> io::Result<File> {
    let mut socket = kernel::proc_connector(PATIENCE)?;
    socket.write_all(&request())?;
    let mut buffer = vec![0; MAX_MESSAGE];
    let asked = Instant::now();
    while asked.elapsed() < FOR_THE_ANSWER {
        match socket.read(&mut buffer) {
            // The first events may come before the answer.
            Ok(read) => match Event::read(&buffer[..read]) {
                Some(Event::Answer(0)) => return Ok(socket),
                Some(Event::Answer(error)) => {
                    return Err(io::Error::from_raw_os_error(error as i32));
                }
                _ => {}
            },
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("the kernel does not answer"))
}

/// The request to be told of all.
fn request() -> Vec<u8> {
    let length = EVENT + size_of::<u32>();
    let mut octets = Vec::with_capacity(length);
    octets.extend((length as u32).to_ne_bytes());
    octets.extend(NLMSG_DONE.to_ne_bytes());
    octets.extend(0_u16.to_ne_bytes());
    octets.extend([0; 8]);
    octets.extend(CN_IDX_PROC.to_ne_bytes());
    octets.extend(CN_VAL_PROC.to_ne_bytes());
    octets.extend([0; 8]);
    octets.extend((size_of::<u32>() as u16).to_ne_bytes());
    octets.extend(0_u16.to_ne_bytes());
    octets.extend(PROC_CN_MCAST_LISTEN.to_ne_bytes());
    octets
}

/// One message, as far as it is of use.
#[derive(Debug, PartialEq, Eq)]
enum Event {
    /// To a request: an error's number, or 0.
    Answer(u32),
    Fork {
        at: u64,
        parent: u32,
        child: u32,
    },
    Exec {
        at: u64,
        pid: u32,
    },
    Exit {
        at: u64,
        pid: u32,
    },
}

impl Event {
    /// Of threads nothing is told.
    fn read(octets: &[u8]) -> Option<Event> {
        let word = |at: usize| {
            let octets = octets.get(at..at + 4)?;
            Some(u32::from_ne_bytes(octets.try_into().ok()?))
        };
        let is_of_processes = word(NETLINK_HEADER)? == CN_IDX_PROC;
        let at = octets.get(TIME..TIME + 8)?;
        let at = u64::from_ne_bytes(at.try_into().ok()?);
        let about = |place: usize| word(ABOUT + 4 * place);
        match word(WHAT).filter(|_| is_of_processes)? {
            PROC_EVENT_NONE => Some(Event::Answer(about(0)?)),
            // parent_pid, parent_tgid, child_pid, child_tgid
            PROC_EVENT_FORK if about(2)? == about(3)? => Some(Event::Fork {
                at,
                parent: about(1)?,
                child: about(3)?,
            }),
            // process_pid, process_tgid
            PROC_EVENT_EXEC => Some(Event::Exec { at, pid: about(1)? }),
            PROC_EVENT_EXIT if about(0)? == about(1)? => Some(Event::Exit { at, pid: about(1)? }),
            _ => None,
        }
    }
}

fn handle(octets: &[u8], told: &mut Told) {
    match Event::read(octets) {
        Some(Event::Fork { at, parent, child }) => told.fork(at, parent, child),
        Some(Event::Exec { at, pid }) => told.exec(at, pid),
        Some(Event::Exit { at, pid }) => told.exit(at, pid),
        Some(Event::Answer(_)) | None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(what: u32, about: &[u32]) -> Vec<u8> {
        let mut octets = request();
        octets.truncate(EVENT);
        octets.extend(what.to_ne_bytes());
        octets.extend(1_u32.to_ne_bytes());
        octets.extend(99_u64.to_ne_bytes());
        octets.extend(about.iter().flat_map(|word| word.to_ne_bytes()));
        octets
    }

    #[test]
    fn processes_are_told_of_and_threads_are_not() {
        let (at, pid) = (99, 20);
        let read = |what, about: &[u32]| Event::read(&event(what, about));
        let fork = Event::Fork {
            at,
            parent: 10,
            child: 20,
        };
        assert_eq!(read(PROC_EVENT_FORK, &[11, 10, 20, 20]), Some(fork));
        assert_eq!(read(PROC_EVENT_FORK, &[11, 10, 21, 20]), None);
        assert_eq!(
            read(PROC_EVENT_EXEC, &[20, 20]),
            Some(Event::Exec { at, pid })
        );
        assert_eq!(
            read(PROC_EVENT_EXIT, &[20, 20, 0, 17]),
            Some(Event::Exit { at, pid })
        );
        assert_eq!(read(PROC_EVENT_EXIT, &[21, 20, 0, 17]), None);
        assert_eq!(read(PROC_EVENT_NONE, &[1]), Some(Event::Answer(1)));
        assert_eq!(read(4, &[20, 20, 0, 0]), None);
    }

    #[test]
    fn no_message_is_too_short() {
        let whole = event(PROC_EVENT_FORK, &[11, 10, 20, 20]);
        for length in 0..whole.len() {
            assert_eq!(Event::read(&whole[..length]), None, "{length}");
        }
    }
}
