//! A passenger of a warm connection that the test speaks for: a thousand processes of ssh would measure the machine, and not
//! every ssh can say all that the protocol has.

use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use super::DEADLINE;
use super::warm::Warm;

/// A message of the multiplexing protocol.
fn message(body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32).to_be_bytes()[..], body].concat()
}

fn numbers(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|it| it.to_be_bytes()).collect()
}

/// Its socket, behind its one request.
pub(crate) struct Passenger(pub(crate) UnixStream);

impl Passenger {
    /// It asks for a command.
    pub(crate) fn session(warm: &Warm, command: &str, streams: [BorrowedFd<'_>; 3]) -> Passenger {
        // Reserved, no terminal, no X11, no agent, no subsystem, no escape character, no TERM.
        let head = numbers(&[0x1000_0002, 7, 0, 0, 0, 0, 0, u32::MAX, 0]);
        let request = [head, message(command.as_bytes())].concat();
        Passenger::ask(warm, &request, &streams)
    }

    /// It asks for a connection to a unix socket.
    pub(crate) fn stdio(warm: &Warm, path: &str, streams: [BorrowedFd<'_>; 2]) -> Passenger {
        let head = numbers(&[0x1000_0008, 7, 0]);
        let port = numbers(&[-2i32 as u32]);
        let request = [head, message(path.as_bytes()), port].concat();
        Passenger::ask(warm, &request, &streams)
    }

    fn ask(warm: &Warm, request: &[u8], streams: &[BorrowedFd<'_>]) -> Passenger {
        let mut socket = UnixStream::connect(warm.socket(0)).unwrap();
        socket.set_read_timeout(Some(DEADLINE)).unwrap();
        let hello = message(&numbers(&[1, 4]));
        let both = [hello, message(request)].concat();
        socket.write_all(&both).unwrap();
        for stream in streams {
            send_descriptor(&socket, *stream);
        }
        let mut passenger = Passenger(socket);
        assert_eq!(passenger.hear(), [1, 4]);
        passenger
    }

    /// The next message's numbers.
    pub(crate) fn hear(&mut self) -> Vec<u32> {
        let mut length = [0; 4];
        self.0.read_exact(&mut length).unwrap();
        let mut body = vec![0; u32::from_be_bytes(length) as usize];
        self.0.read_exact(&mut body).unwrap();
        let numbers = body.chunks_exact(4);
        numbers
            .map(|number| u32::from_be_bytes(number.try_into().unwrap()))
            .collect()
    }

    /// It has what it has asked for.
    #[track_caller]
    pub(crate) fn is_in(&mut self) {
        let opened = self.hear();
        assert_eq!(opened[..2], [0x8000_0006, 7], "{opened:x?}");
    }
}

fn send_descriptor(socket: &UnixStream, stream: BorrowedFd<'_>) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let descriptors = [stream];
    assert!(ancillary.push(SendAncillaryMessage::ScmRights(&descriptors)));
    let octet = [IoSlice::new(&[0])];
    let sent = sendmsg(socket, &octet, &mut ancillary, SendFlags::empty());
    assert_eq!(sent, Ok(1));
}
