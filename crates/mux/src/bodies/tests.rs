#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use sshoal_wire::Put;

use super::*;

/// The types of which something is known, each with a body that a server takes.
fn requests() -> Vec<(&'static str, Vec<u8>)> {
    let texts = |texts: &[&str]| {
        let mut out = Vec::new();
        texts
            .iter()
            .for_each(|text| out.put_string(text.as_bytes()));
        out
    };
    let modes = [&[53, 0, 0, 0, 1, 128, 0, 0, 0x96, 0][..], &[0]].concat();
    let mut terminal = texts(&["xterm"]);
    terminal.put_bytes(&[0; 16]);
    terminal.put_string(&modes);
    let x11 = [&[0][..], &texts(&["MIT-MAGIC-COOKIE-1", "c0ffee"]), &[0; 4]].concat();
    let killed = [&texts(&["KILL"])[..], &[0], &texts(&["gone", ""])].concat();
    vec![
        ("pty-req", terminal),
        ("x11-req", x11),
        ("env", texts(&["LANG", ""])),
        ("exec", texts(&["true"])),
        ("shell", Vec::new()),
        ("subsystem", texts(&["sftp"])),
        ("window-change", vec![0; 16]),
        ("xon-xoff", vec![1]),
        ("break", vec![0; 4]),
        ("signal", texts(&["INT"])),
        ("exit-status", vec![0; 4]),
        ("exit-signal", killed),
        ("auth-agent-req@openssh.com", Vec::new()),
        ("agent-req", Vec::new()),
        ("eow@openssh.com", Vec::new()),
    ]
}

fn channels() -> Vec<(&'static str, Vec<u8>)> {
    let mut tcp = Vec::new();
    tcp.put_string(b"localhost");
    tcp.put_u32(22);
    tcp.put_string(b"127.0.0.1");
    tcp.put_u32(40_000);
    let mut unix = Vec::new();
    unix.put_string(b"/run/x");
    unix.put_string(b"");
    unix.put_u32(0);
    vec![
        ("session", Vec::new()),
        ("direct-tcpip", tcp),
        ("direct-streamlocal@openssh.com", unix),
        ("tun@openssh.com", vec![0; 8]),
    ]
}

type Check = fn(&str, &[u8]) -> Result<(), DecodeError>;

fn ask(request_type: &str, data: &[u8]) -> Result<(), DecodeError> {
    check(&Message::ChannelRequest(ChannelRequest {
        recipient_channel: 0,
        request_type: request_type.as_bytes(),
        want_reply: true,
        data,
    }))
}

fn open(channel_type: &str, data: &[u8]) -> Result<(), DecodeError> {
    check(&Message::ChannelOpen(ChannelOpen {
        channel_type: channel_type.as_bytes(),
        sender_channel: 0,
        initial_window_size: 0,
        maximum_packet_size: 0,
        data,
    }))
}

#[test]
fn bodies_pass_whole_and_neither_shorter_nor_longer() {
    let requests = requests().into_iter().map(|it| (ask as Check, it));
    let channels = channels().into_iter().map(|it| (open as Check, it));
    for (check, (kind, body)) in requests.chain(channels) {
        assert_eq!(check(kind, &body), Ok(()), "{kind}");
        for len in 0..body.len() {
            assert!(check(kind, &body[..len]).is_err(), "{kind}: {len} octets");
        }
        let longer = [&body[..], &[0]].concat();
        let problem = Problem::TrailingBytes { count: 1 };
        assert_eq!(check(kind, &longer).unwrap_err().problem, problem, "{kind}");
    }
    assert_eq!(ask("something@example.com", b"\0\0"), Ok(()));
    assert_eq!(open("x11", b"\0\0"), Ok(()));
}

#[test]
fn texts_have_no_nul_types_neither() {
    let nul = |checked: Result<(), DecodeError>| checked.unwrap_err().problem == Problem::Nul;
    for (kind, field) in [("exec", "a\0"), ("subsystem", "\0"), ("signal", "IN\0T")] {
        let mut body = Vec::new();
        body.put_string(field.as_bytes());
        assert!(nul(ask(kind, &body)), "{kind}");
    }
    let mut body = Vec::new();
    body.put_string(b"A");
    body.put_string(b"b\0");
    assert!(nul(ask("env", &body)));
    assert!(nul(ask("shell\0", b"")));
    assert!(nul(open("session\0", b"")));
    let mut unix = Vec::new();
    unix.put_string(b"/a\0b");
    unix.put_string(b"");
    unix.put_u32(0);
    assert!(nul(open("direct-streamlocal@openssh.com", &unix)));
}

#[test]
fn terminal_modes_have_their_arguments() {
    let terminal = |modes: &[u8]| {
        let mut body = Vec::new();
        body.put_string(b"xterm");
        body.put_bytes(&[0; 16]);
        body.put_string(modes);
        ask("pty-req", &body)
    };
    for modes in [
        &[][..],
        &[0],
        &[1, 0, 0, 0, 3],
        // What follows the end, or an opcode that nobody has defined, is not read.
        &[0, 9],
        &[160, 9],
    ] {
        assert_eq!(terminal(modes), Ok(()), "{modes:?}");
    }
    for modes in [&[1][..], &[1, 0, 0, 0], &[1, 0, 0, 0, 3, 159]] {
        assert!(terminal(modes).is_err(), "{modes:?}");
    }
}

#[test]
fn who_asks_for_a_terminal_is_found() {
    let payload = |request_type: &[u8]| {
        let mut out = vec![98, 0, 0, 0, 9];
        out.put_string(request_type);
        out
    };
    assert!(asks_for_terminal(&payload(b"pty-req")));
    assert!(!asks_for_terminal(&payload(b"shell")));
    assert!(!asks_for_terminal(b"b"));
}

proptest! {
    #[test]
    fn no_body_makes_it_panic(known in 0..15usize, body in proptest::collection::vec(0u8..6, 0..40)) {
        let (kind, _) = &requests()[known];
        let _ = ask(kind, &body);
    }
}
