//! A passenger that sends what it likes, torn where it likes: it gets answers or an error, the error stays, and every
//! descriptor is handed on once at most. And what clients of dynamic forwards say, and servers of who has come.

#![no_main]

use std::collections::HashSet;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use sshoal_mux::{
    Arrived, Event, MAX_HANDSHAKE, MAX_OUTPUT, Passenger, ProxiedRequest, ProxyChannels, Reply,
    Request, Socks, allocated_port,
};
use sshoal_wire::Put;

#[derive(Arbitrary, Debug)]
enum Step<'a> {
    Read { octets: &'a [u8], descriptors: u8 },
    ReadMessage { number: u8, body: &'a [u8] },
    Answer { says_yes: bool },
    FromServer { payload: Vec<u8> },
    Arrive { open: Vec<u8> },
    AskOfChannel { kind: usize, body: &'a [u8] },
    Leave,
    Socks { pieces: Vec<&'a [u8]> },
    Write,
}

fuzz_target!(|steps: Vec<Step<'_>>| {
    let mut passenger = Passenger::new();
    let mut channels = ProxyChannels::new();
    let (mut next, mut handed_on) = (0u32, HashSet::new());
    let mut failed = None;
    let hello = [0, 0, 0, 8, 0, 0, 0, 1, 0, 0, 0, 4];
    assert_eq!(passenger.handle_input(&hello, []), Ok(()));
    for step in steps {
        let (octets, descriptors) = match step {
            Step::Read {
                octets,
                descriptors,
            } => (octets.to_vec(), descriptors % 5),
            Step::ReadMessage { number, body } => (message(number, body), 0),
            Step::Answer { says_yes } => {
                answer(
                    &mut passenger,
                    &mut channels,
                    &mut handed_on,
                    &mut next,
                    says_yes,
                );
                continue;
            }
            Step::FromServer { mut payload } => {
                let _ = channels.to_passenger(&mut payload);
                continue;
            }
            Step::Arrive { open } => {
                let _ = (Arrived::decode(&open), allocated_port(&open));
                next += 1;
                let _ = channels.offered(&open, next);
                continue;
            }
            Step::AskOfChannel { kind, body } => {
                ask_of_channel(KINDS[kind % KINDS.len()], body);
                continue;
            }
            Step::Leave => {
                for left in channels.left() {
                    assert!(channels.has(left.ours));
                }
                channels = ProxyChannels::new();
                continue;
            }
            Step::Socks { pieces } => {
                shake_hands(&pieces);
                continue;
            }
            Step::Write => {
                let len = passenger.poll_transmit().map_or(0, <[u8]>::len);
                assert!(len < 2 * MAX_OUTPUT);
                passenger.transmitted(len);
                continue;
            }
        };
        let come: Vec<u32> = (next..next + u32::from(descriptors)).collect();
        next += u32::from(descriptors);
        let result = passenger.handle_input(&octets, come);
        assert!(failed.is_none() || failed.as_ref() == Some(&result));
        failed = result.is_err().then_some(result);
    }
});

/// Requests whose bodies are read.
const KINDS: [&[u8]; 9] = [
    b"exec",
    b"pty-req",
    b"x11-req",
    b"env",
    b"shell",
    b"subsystem",
    b"window-change",
    b"signal",
    b"exit-signal",
];

/// A request of a passenger in proxy mode, on a channel that is open, passes as it is or not at all.
fn ask_of_channel(kind: &[u8], body: &[u8]) {
    let mut channels = ProxyChannels::new();
    let mut open = vec![90];
    open.put_string(b"session");
    open.put_bytes(&[0; 12]);
    assert_eq!(channels.from_passenger(&mut open, || Some(5)), Ok(()));
    let mut confirms = vec![91, 0, 0, 0, 5, 0, 0, 0, 9];
    confirms.put_bytes(&[0; 8]);
    assert_eq!(channels.to_passenger(&mut confirms), Ok(()));
    let mut request = vec![98, 0, 0, 0, 9];
    request.put_string(kind);
    request.put_u8(1);
    request.put_bytes(body);
    let before = request.clone();
    if channels.from_passenger(&mut request, || None).is_ok() {
        assert_eq!(request, before);
        match (kind, body.split_first_chunk::<4>()) {
            (b"shell", _) => assert!(body.is_empty()),
            (b"exec", Some((len, text))) => {
                assert_eq!(u32::from_be_bytes(*len) as usize, text.len());
                assert!(!text.contains(&0));
            }
            (b"exec", None) => panic!("it has no command"),
            _ => {}
        }
    }
}

/// However it is torn, a handshake leads to the same, and to no more octets than one may have.
fn shake_hands(pieces: &[&[u8]]) {
    let (mut torn, mut whole) = (Socks::new(), Socks::new());
    let mut found = Ok(None);
    let mut octets = Vec::new();
    for piece in pieces {
        octets.extend_from_slice(piece);
        found = torn.handle_input(piece);
        if !matches!(found, Ok(None)) {
            break;
        }
        assert!(octets.len() <= MAX_HANDSHAKE + piece.len());
    }
    if !octets.is_empty() {
        assert_eq!(whole.handle_input(&octets), found);
    }
    torn.answer(true);
    whole.answer(true);
    assert_eq!(torn.into_rest(), whole.into_rest());
}

fn answer(
    passenger: &mut Passenger<u32>,
    channels: &mut ProxyChannels,
    handed_on: &mut HashSet<u32>,
    next: &mut u32,
    says_yes: bool,
) {
    match passenger.poll_event() {
        None => {}
        Some(Event::Packet(mut payload)) => {
            let _ = ProxiedRequest::decode(&payload);
            let _ = channels.from_passenger(&mut payload, || {
                *next += 1;
                Some(*next)
            });
        }
        Some(Event::Asked { id, request }) => {
            let reply = match &request {
                _ if !says_yes => Reply::Failure("no"),
                Request::Proxy => Reply::Proxy,
                Request::NewSession(_, descriptors) => {
                    assert!(descriptors.iter().all(|one| handed_on.insert(*one)));
                    Reply::SessionOpened { session: 1 }
                }
                Request::StdioForward(_, descriptors) => {
                    assert!(descriptors.iter().all(|one| handed_on.insert(*one)));
                    Reply::SessionOpened { session: 1 }
                }
                _ => Reply::Ok,
            };
            let _ = passenger.reply(id, reply);
        }
    }
}

fn message(number: u8, body: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    whole.put_u32(0x1000_0000 | u32::from(number & 0x0f));
    whole.put_bytes(body);
    let mut out = Vec::new();
    out.put_string(&whole);
    out
}
