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
