//! A name server that knows nothing: at once, after a while, or never saying so.

use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The only port that resolv.conf(5) can mean.
const PORT: u16 = 53;
/// Where the name servers are, each at an address of its own, and how many of these are tried.
const BASE: Ipv4Addr = Ipv4Addr::new(127, 53, 0, 0);
const ADDRESSES: u32 = 1 << 16;
const ATTEMPTS: u32 = 256;
/// RFC 1035 section 4.1.1.
const HEADER_OCTETS: usize = 12;
/// Larger than any query.
const QUERY_LIMIT: usize = 4096;

/// What becomes of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// Nothing. The socket is there, so that the client does wait: a closed port would tell it at once.
    Never {
        /// How long a client waits for it, before it asks again and then gives up.
        seconds: u64,
    },
    /// So long after it came: no such name.
    After(Duration),
}

/// A name server that runs until this is dropped.
#[derive(Debug)]
pub(super) struct Resolver {
    address: Ipv4Addr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    queries: AtomicU64,
    ended: AtomicBool,
}

impl Resolver {
    pub(super) fn start(answer: Answer) -> io::Result<Resolver> {
        let (address, socket) = bind()?;
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("name server".to_owned())
            .spawn(move || serve(&socket, answer, &theirs))?;
        Ok(Resolver {
            address,
            shared,
            thread: Some(thread),
        })
    }

    pub(super) fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// How many queries have come so far, repeated ones included.
    pub(super) fn queries(&self) -> u64 {
        self.shared.queries.load(Ordering::SeqCst)
    }
}

impl Drop for Resolver {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::SeqCst);
        // An empty packet wakes the thread. Where not even that can be sent it ends with the process.
        let woken = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))
            .and_then(|socket| socket.send_to(&[], (self.address, PORT)));
        if let (Ok(_), Some(thread)) = (woken, self.thread.take()) {
            let _ = thread.join();
        }
    }
}

/// A socket at an address that no other name server has; the search begins elsewhere in each process.
fn bind() -> io::Result<(Ipv4Addr, UdpSocket)> {
    let first = std::process::id().wrapping_mul(ATTEMPTS);
    let mut attempt = 0;
    loop {
        // 0 would be the network's, and no name server's.
        let number = first.wrapping_add(attempt) % (ADDRESSES - 2) + 1;
        let address = Ipv4Addr::from(u32::from(BASE) + number);
        attempt += 1;
        match UdpSocket::bind((address, PORT)) {
            Ok(socket) => return Ok((address, socket)),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && attempt < ATTEMPTS => {}
            Err(error) => return Err(error),
        }
    }
}

/// A query's answer and when it is due.
struct Due {
    at: Instant,
    to: SocketAddr,
    answer: Vec<u8>,
}

fn serve(socket: &UdpSocket, answer: Answer, shared: &Shared) {
    // In the order of their times, since all wait for as long.
    let mut waiting: VecDeque<Due> = VecDeque::new();
    let mut packet = [0; QUERY_LIMIT];
    loop {
        let now = Instant::now();
        while waiting.front().is_some_and(|due| due.at <= now) {
            let due = waiting.pop_front().expect("there is a first one");
            // A client that has gone is none of ours to mind.
            let _ = socket.send_to(&due.answer, due.to);
        }
        let pause = waiting.front().map(|due| due.at - now);
        if socket.set_read_timeout(pause).is_err() {
            return;
        }
        let (length, from) = match socket.recv_from(&mut packet) {
            Ok(received) => received,
            Err(error) if is_pause(&error) => continue,
            Err(_) => return,
        };
        if shared.ended.load(Ordering::SeqCst) {
            return;
        }
        let Some(no_such_name) = no_such_name(&packet[..length]) else {
            continue;
        };
        shared.queries.fetch_add(1, Ordering::SeqCst);
        if let Answer::After(delay) = answer {
            waiting.push_back(Due {
                at: Instant::now() + delay,
                to: from,
                answer: no_such_name,
            });
        }
    }
}

fn is_pause(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), Interrupted | TimedOut | WouldBlock)
}

/// The answer NXDOMAIN to a query with one question; none to anything else (RFC 1035 section 4).
fn no_such_name(query: &[u8]) -> Option<Vec<u8>> {
    let (header, rest) = query.split_at_checked(HEADER_OCTETS)?;
    let is_response = header[2] & 0x80 != 0;
    if is_response || header[4..6] != [0, 1] {
        return None;
    }
    // The name is labels, each after its length, and ends with an empty one. Type and class follow.
    let mut end = 0;
    loop {
        let length = usize::from(*rest.get(end)?);
        end += 1 + length;
        if length == 0 {
            break;
        }
    }
    let question = rest.get(..end + 4)?;
    let mut answer = header[..2].to_vec();
    // QR and, as asked, RD; RA and RCODE 3; one question and nothing else.
    answer.extend([0x80 | (header[2] & 0x01), 0x83, 0, 1, 0, 0, 0, 0, 0, 0]);
    answer.extend(question);
    Some(answer)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// `dig -x 127.0.0.1`, without the cookie: id 7, RD, one question and an additional record.
    fn query() -> Vec<u8> {
        let mut query = vec![0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1];
        for label in ["1", "0", "0", "127", "in-addr", "arpa", ""] {
            query.push(u8::try_from(label.len()).unwrap());
            query.extend(label.as_bytes());
        }
        query.extend([0, 12, 0, 1]);
        query
    }

    #[test]
    fn the_answer_repeats_the_question_and_nothing_else() {
        let question = query();
        let mut with_more = question.clone();
        with_more.extend([0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0]);
        let answer = no_such_name(&with_more).unwrap();
        assert_eq!(answer[..12], [0, 7, 0x81, 0x83, 0, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(answer[12..], question[12..]);
    }

    #[test]
    fn whatever_is_no_query_has_no_answer() {
        let query = query();
        for length in 0..query.len() {
            assert_eq!(no_such_name(&query[..length]), None, "{length}");
        }
        assert_eq!(no_such_name(&no_such_name(&query).unwrap()), None);
    }

    #[test]
    fn queries_are_counted_and_answered_or_not() {
        if !rustix::process::geteuid().is_root() {
            return; // port 53 is root's
        }
        let client = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut packet = [0; 512];
        let quick = Resolver::start(Answer::After(Duration::from_millis(1))).unwrap();
        let silent = Resolver::start(Answer::Never { seconds: 5 }).unwrap();
        assert_ne!(quick.address(), silent.address());
        client.send_to(&query(), (silent.address(), PORT)).unwrap();
        client.send_to(&query(), (quick.address(), PORT)).unwrap();
        let (length, from) = client.recv_from(&mut packet).unwrap();
        assert_eq!(from.ip(), quick.address());
        assert_eq!(packet[..length], no_such_name(&query()).unwrap());
        assert_eq!(quick.queries(), 1);
        let address = silent.address();
        drop(silent);
        UdpSocket::bind((address, PORT)).expect("the port is free again");
    }
}
