#![allow(clippy::unwrap_used)]

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::forward::{Forward, ForwardKind, Place};
use crate::request::MAX_VARIABLES;

/// A message of these numbers and strings.
enum Field<'a> {
    Number(u32),
    Text(&'a str),
}
use Field::{Number, Text};

fn message(fields: &[Field<'_>]) -> Vec<u8> {
    let mut body = Vec::new();
    for field in fields {
        match field {
            Number(number) => body.put_u32(*number),
            Text(text) => body.put_string(text.as_bytes()),
        }
    }
    let mut out = Vec::new();
    out.put_string(&body);
    out
}

fn hello(version: u32) -> Vec<u8> {
    message(&[Number(1), Number(version)])
}

fn alive_check(id: u32) -> Vec<u8> {
    message(&[Number(0x1000_0004), Number(id)])
}

fn new_session(id: u32) -> Vec<u8> {
    message(&[
        Number(0x1000_0002),
        Number(id),
        Text(""),
        Number(1),
        Number(0),
        Number(1),
        Number(0),
        Number(u32::from(b'~')),
        Text("xterm"),
        Text("ls -l"),
        Text("LANG=C.UTF-8"),
        Text("no variable"),
        Text("EMPTY="),
    ])
}

/// A passenger that has said hello.
fn greeted() -> Passenger<u32> {
    let mut passenger = Passenger::new();
    passenger.handle_input(&hello(4), []).unwrap();
    written(&mut passenger);
    passenger
}

/// Everything for its socket, as if it were written.
fn written(passenger: &mut Passenger<u32>) -> Vec<u8> {
    let octets = passenger.poll_transmit().map(<[u8]>::to_vec);
    let octets = octets.unwrap_or_default();
    passenger.transmitted(octets.len());
    octets
}

fn asked(passenger: &mut Passenger<u32>) -> (RequestId, Request<u32>) {
    match passenger.poll_event() {
        Some(Event::Asked { id, request }) => (id, request),
        other => panic!("{other:?}"),
    }
}

#[test]
fn our_hello_has_version_4_and_waits_for_nothing() {
    let mut passenger = Passenger::new();
    assert_eq!(written(&mut passenger), hello(4));
}

#[test]
fn a_hello_may_have_extensions_that_nobody_knows() {
    let mut passenger = Passenger::<u32>::new();
    let extended = message(&[Number(1), Number(4), Text("name"), Text("value")]);
    assert_eq!(passenger.handle_input(&extended, []), Ok(()));
    let mut passenger = Passenger::<u32>::new();
    let torn = message(&[Number(1), Number(4), Text("name")]);
    let error = passenger.handle_input(&torn, []).unwrap_err();
    assert!(matches!(error, PassengerError::Malformed(_)), "{error}");
}

#[test]
fn another_version_a_second_hello_and_none_at_all_end_the_passenger_for_good() {
    let mut passenger = Passenger::<u32>::new();
    let version = Err(PassengerError::Version { version: 3 });
    assert_eq!(passenger.handle_input(&hello(3), []), version);
    assert_eq!(passenger.handle_input(&hello(4), []), version);
    let mut passenger = greeted();
    let second = Err(PassengerError::SecondHello);
    assert_eq!(passenger.handle_input(&hello(4), []), second);
    let mut passenger = Passenger::<u32>::new();
    let number = 0x1000_0004;
    let none = Err(PassengerError::NoHello { number });
    assert_eq!(passenger.handle_input(&alive_check(0), []), none);
}

#[test]
fn an_alive_check_is_answered_with_the_process() {
    let mut passenger = greeted();
    passenger.handle_input(&alive_check(9), []).unwrap();
    let (id, request) = asked(&mut passenger);
    assert_eq!(request, Request::AliveCheck);
    passenger.reply(id, Reply::Alive { pid: 4711 }).unwrap();
    let expected = message(&[Number(0x8000_0005), Number(9), Number(4711)]);
    assert_eq!(written(&mut passenger), expected);
}

#[test]
fn a_session_comes_with_its_three_descriptors_in_order() {
    let mut passenger = greeted();
    let octets = new_session(1);
    // As Linux hands them over: the first descriptor with the end of the message, then an octet each.
    passenger
        .handle_input(&[&octets[..], b"\0"].concat(), [10])
        .unwrap();
    assert_eq!(passenger.poll_event(), None);
    passenger.handle_input(b"\0", [11]).unwrap();
    assert_eq!(passenger.poll_event(), None);
    passenger.handle_input(b"\0", [12]).unwrap();
    let (id, request) = asked(&mut passenger);
    let Request::NewSession(session, descriptors) = request else {
        panic!("{request:?}");
    };
    assert_eq!(descriptors, [10, 11, 12]);
    let expected = NewSession {
        want_tty: true,
        want_x11: false,
        want_agent: true,
        is_subsystem: false,
        escape: Some(b'~'),
        term: "xterm".to_owned(),
        command: b"ls -l".to_vec(),
        environment: vec![
            (b"LANG".to_vec(), b"C.UTF-8".to_vec()),
            (b"EMPTY".to_vec(), b"".to_vec()),
        ],
    };
    assert_eq!(*session, expected);
    let opened = Reply::SessionOpened { session: 5 };
    passenger.reply(id, opened).unwrap();
    passenger.tty_refused(5);
    passenger.exit(5, 42);
    let expected = [
        message(&[Number(0x8000_0006), Number(1), Number(5)]),
        message(&[Number(0x8000_0008), Number(5)]),
        message(&[Number(0x8000_0004), Number(5), Number(42)]),
    ];
    assert_eq!(written(&mut passenger), expected.concat());
}

#[test]
fn a_stdio_forward_comes_with_two_to_a_port_or_to_a_path() {
    for (port, to) in [
        (
            22,
            Place::Tcp {
                host: "inner".to_owned(),
                port: 22,
            },
        ),
        (0xffff_fffe, Place::Unix(b"inner".to_vec())),
    ] {
        let mut passenger = greeted();
        let fields = [
            Number(0x1000_0008),
            Number(2),
            Text(""),
            Text("inner"),
            Number(port),
        ];
        passenger.handle_input(&message(&fields), []).unwrap();
        passenger.handle_input(b"\0\0", [3, 4]).unwrap();
        let request = asked(&mut passenger).1;
        let expected = Request::StdioForward(StdioForward { to }, [3, 4]);
        assert_eq!(request, expected);
    }
}

#[test]
fn descriptors_that_are_missing_or_that_nobody_asked_for_end_the_passenger() {
    let mut passenger = greeted();
    passenger.handle_input(&new_session(1), []).unwrap();
    let missing = Err(PassengerError::NoDescriptors);
    assert_eq!(passenger.handle_input(b"\0", []), missing);
    let mut passenger = greeted();
    passenger.handle_input(&new_session(1), []).unwrap();
    let unasked = Err(PassengerError::UnaskedDescriptors);
    assert_eq!(passenger.handle_input(b"\0", [1, 2, 3, 4]), unasked);
    let mut passenger = greeted();
    assert_eq!(passenger.handle_input(&alive_check(1), [1]), unasked);
    assert_eq!(passenger.poll_event(), None);
}

#[test]
fn a_second_session_is_refused_and_the_first_goes_on_until_it_is_refused_itself() {
    let mut passenger = greeted();
    let session = |id| [new_session(id), b"\0\0\0".to_vec()].concat();
    passenger.handle_input(&session(1), [1, 2, 3]).unwrap();
    let (first, _) = asked(&mut passenger);
    passenger.handle_input(&session(2), [4, 5, 6]).unwrap();
    assert_eq!(passenger.poll_event(), None);
    let refused = written(&mut passenger);
    let expected = [
        Number(0x8000_0003),
        Number(2),
        Text("a passenger has one session"),
    ];
    assert_eq!(refused, message(&expected));
    passenger.reply(first, Reply::Failure("no room")).unwrap();
    passenger.handle_input(&session(3), [7, 8, 9]).unwrap();
    assert!(passenger.poll_event().is_some());
}

#[test]
fn forwards_are_read_and_what_is_none_is_malformed() {
    let open = |kind, port| {
        message(&[
            Number(0x1000_0006),
            Number(3),
            Number(kind),
            Text(""),
            Number(port),
            Text("db"),
            Number(5432),
        ])
    };
    let place = |host: &str, port| Place::Tcp {
        host: host.to_owned(),
        port,
    };
    for (kind, expected, connect) in [
        (1, ForwardKind::Local, Some(place("db", 5432))),
        (2, ForwardKind::Remote, Some(place("db", 5432))),
        (3, ForwardKind::Dynamic, None),
    ] {
        let mut passenger = greeted();
        passenger.handle_input(&open(kind, 8080), []).unwrap();
        let forward = Forward {
            kind: expected,
            listen: place("", 8080),
            connect,
        };
        assert_eq!(asked(&mut passenger).1, Request::OpenForward(forward));
    }
    for (kind, port) in [(0, 8080), (4, 8080), (1, 65_536), (1, 0xffff_fffe)] {
        let error = greeted().handle_input(&open(kind, port), []).unwrap_err();
        assert!(matches!(error, PassengerError::Malformed(_)), "{error}");
    }
}

#[test]
fn an_unknown_request_is_refused_and_nothing_else_happens() {
    let mut passenger = greeted();
    let strange = message(&[Number(0x1000_00ff), Number(6), Text("what")]);
    passenger.handle_input(&strange, []).unwrap();
    let expected = [Number(0x8000_0003), Number(6), Text("unsupported request")];
    assert_eq!(written(&mut passenger), message(&expected));
    passenger.handle_input(&alive_check(7), []).unwrap();
    assert!(passenger.poll_event().is_some());
}

#[test]
fn lengths_beyond_the_limits_are_refused_before_anything_comes() {
    for len in [0, 3, MAX_MESSAGE_LEN as u32 + 1, u32::MAX] {
        let error = greeted().handle_input(&len.to_be_bytes(), []);
        assert_eq!(error, Err(PassengerError::Length { len }));
    }
    let most = (MAX_MESSAGE_LEN as u32).to_be_bytes();
    assert_eq!(greeted().handle_input(&most, []), Ok(()));
}

#[test]
fn there_is_a_limit_to_requests_to_variables_and_to_what_is_left_unread() {
    let mut passenger = greeted();
    for id in 0..MAX_UNANSWERED as u32 {
        passenger.handle_input(&alive_check(id), []).unwrap();
    }
    let flood = Err(PassengerError::Flood);
    assert_eq!(passenger.handle_input(&alive_check(0), []), flood);

    let mut fields = vec![Number(0x1000_0002), Number(1), Text("")];
    fields.extend([0, 0, 0, 0, 0].map(Number));
    fields.extend([Text(""), Text("")]);
    fields.extend((0..=MAX_VARIABLES).map(|_| Text("A=B")));
    let error = greeted().handle_input(&message(&fields), []).unwrap_err();
    assert!(
        error.to_string().contains("more than the 4096 accepted"),
        "{error}"
    );

    let mut passenger = greeted();
    let reason = "x".repeat(1024);
    let unread = loop {
        passenger.handle_input(&alive_check(0), []).unwrap();
        let (id, _) = asked(&mut passenger);
        if let Err(error) = passenger.reply(id, Reply::Failure(&reason)) {
            break error;
        }
        assert!(passenger.poll_transmit().map_or(0, <[u8]>::len) < 2 * MAX_OUTPUT);
    };
    assert_eq!(unread, PassengerError::Unread);
}

#[test]
fn proxy_mode_begins_with_the_answer_and_what_was_sent_before_it_waits() {
    let mut passenger = greeted();
    let asks = message(&[Number(0x1000_000f), Number(4)]);
    let packet = [0, 0, 0, 4, 0, 80, 1, 2];
    passenger
        .handle_input(&[&asks[..], &packet].concat(), [])
        .unwrap();
    let (id, request) = asked(&mut passenger);
    assert_eq!(request, Request::Proxy);
    assert_eq!(passenger.poll_event(), None);
    passenger.reply(id, Reply::Proxy).unwrap();
    assert!(passenger.is_proxied());
    assert_eq!(passenger.poll_event(), Some(Event::Packet(vec![80, 1, 2])));
    let expected = message(&[Number(0x8000_000f), Number(4)]);
    assert_eq!(written(&mut passenger), expected);
    passenger.send_packet(&[81]).unwrap();
    assert_eq!(written(&mut passenger), [0, 0, 0, 2, 0, 81]);
    let padded = passenger.handle_input(&[0, 0, 0, 3, 1, 80, 0], []);
    assert_eq!(padded, Err(PassengerError::Padding { padding: 1 }));
}

#[test]
fn one_in_proxy_mode_from_the_beginning_neither_greets_nor_is_greeted() {
    let mut passenger = Passenger::<u32>::proxied();
    assert!(passenger.is_proxied());
    assert_eq!(passenger.poll_transmit(), None);
    passenger
        .handle_input(&[0, 0, 0, 4, 0, 90, 1, 2], [])
        .unwrap();
    assert_eq!(passenger.poll_event(), Some(Event::Packet(vec![90, 1, 2])));
    passenger.send_packet(&[91]).unwrap();
    assert_eq!(written(&mut passenger), [0, 0, 0, 2, 0, 91]);
}

#[test]
fn a_passenger_that_is_refused_proxy_mode_goes_on_as_before() {
    let mut passenger = greeted();
    let asks = message(&[Number(0x1000_000f), Number(4)]);
    passenger.handle_input(&asks, []).unwrap();
    let (id, _) = asked(&mut passenger);
    passenger.handle_input(&alive_check(5), []).unwrap();
    assert_eq!(passenger.poll_event(), None);
    let refusal = Reply::PermissionDenied("not here");
    passenger.reply(id, refusal).unwrap();
    assert_eq!(asked(&mut passenger).1, Request::AliveCheck);
}

/// What a whole life of a passenger looks like, and how many descriptors come before which octet.
fn life() -> (Vec<u8>, Vec<(usize, u32)>) {
    let mut octets = [hello(4), alive_check(0), new_session(1)].concat();
    let descriptors = (0..3).map(|number| {
        octets.push(0);
        (octets.len(), number)
    });
    let descriptors = descriptors.collect();
    octets.extend(alive_check(2));
    (octets, descriptors)
}

proptest! {
    #[test]
    fn it_does_not_matter_where_octets_are_torn(mut cuts in vec(0usize..200, 0..20)) {
        let (octets, descriptors) = life();
        cuts.retain(|cut| *cut < octets.len());
        // The kernel ends a read where a descriptor was sent.
        cuts.extend(descriptors.iter().map(|(end, _)| *end));
        cuts.push(octets.len());
        cuts.sort_unstable();
        let mut passenger = Passenger::new();
        let (mut from, mut left) = (0, descriptors.as_slice());
        for to in cuts {
            let come = left.first().filter(|(end, _)| *end == to && to > from);
            if come.is_some() {
                left = &left[1..];
            }
            let come = come.map(|(_, number)| *number);
            prop_assert_eq!(passenger.handle_input(&octets[from..to], come), Ok(()));
            from = to;
        }
        prop_assert_eq!(asked(&mut passenger).1, Request::AliveCheck);
        let is_session = matches!(asked(&mut passenger).1, Request::NewSession(_, [0, 1, 2]));
        prop_assert!(is_session);
        prop_assert_eq!(asked(&mut passenger).1, Request::AliveCheck);
        prop_assert_eq!(passenger.poll_event(), None);
    }

    #[test]
    fn whatever_comes_is_an_error_or_an_event_and_errors_stay(
        reads in vec((vec(any::<u8>(), 0..60), vec(any::<u32>(), 0..4)), 0..20),
        greets in any::<bool>(),
    ) {
        let mut passenger = match greets {
            true => greeted(),
            false => Passenger::new(),
        };
        let mut failed = None;
        for (octets, descriptors) in reads {
            let result = passenger.handle_input(&octets, descriptors);
            prop_assert!(failed.is_none() || failed.as_ref() == Some(&result));
            failed = result.is_err().then_some(result);
        }
    }
}
