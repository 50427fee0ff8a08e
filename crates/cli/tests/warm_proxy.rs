//! `ssh -O proxy`: passengers that speak the connection protocol themselves, several on one connection with all the others.

#![allow(clippy::unwrap_used)]

mod support;

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};

use sshoal_testbed::sshd::SshdSpec;
use support::network::{connect, echo, exchange, free_place};
use support::program::Running;
use support::terminal::Screen;
use support::warm::Warm;
use support::{DEADLINE, noise, shared_folder, wait_until};

/// `ssh -O proxy` with these arguments before the host's name.
fn proxy(warm: &Warm, arguments: &[&str]) -> Command {
    let mut ssh = warm.shares("ssh");
    ssh.args(["-O", "proxy"])
        .args(arguments)
        .arg(warm.shoal.name(0));
    ssh
}

/// One that runs a command and reads nothing.
fn proxied(warm: &Warm, line: &str) -> Command {
    let mut ssh = proxy(warm, &[]);
    ssh.arg(line);
    ssh
}

#[test]
fn a_session_has_streams_and_status_and_no_other_login() {
    let warm = Warm::up(&SshdSpec::new(1));
    let mut child = proxied(&warm, "cat; echo to stderr >&2; exit 42")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let input = noise(5_000_000);
    let mut stdin = child.stdin.take().unwrap();
    let sent = input.clone();
    let writer = std::thread::spawn(move || stdin.write_all(&sent));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert_eq!(output.status.code(), Some(42), "{output:?}");
    assert!(output.stdout == input, "{}", output.stdout.len());
    assert_eq!(output.stderr, b"to stderr\n");
    assert_eq!(warm.shoal.hosts.logins(), 1);
}

#[test]
fn a_terminal_follows_its_size_and_takes_signals() {
    let warm = Warm::up(&SshdSpec::new(1));
    let script = "echo $TERM; stty size; trap 'stty size' WINCH; trap 'exit 7' INT; echo set; while :; do sleep 0.05; done";
    let mut ssh = proxy(&warm, &["-tt"]);
    ssh.arg(script);
    let mut screen = Screen::start(&ssh, 30, 100);
    screen.expect("vt100\r\n30 100\r\nset\r\n");
    screen.resize(41, 123);
    screen.expect("41 123\r\n");
    screen.type_in("\x03");
    assert_eq!(screen.finish().0, Some(7));
}

/// An ssh that goes on until it is told to end, with forwards of its own.
struct Holding(Child);

impl Holding {
    /// It is there when this line has come.
    fn begin(warm: &Warm, arguments: &[&str]) -> Holding {
        let mut ssh = proxy(warm, arguments);
        ssh.arg("echo up; cat");
        ssh.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = ssh.spawn().unwrap();
        let mut up = [0; 3];
        child.stdout.as_mut().unwrap().read_exact(&mut up).unwrap();
        Holding(child)
    }

    fn end(mut self) {
        drop(self.0.stdin.take());
        assert!(self.0.wait().unwrap().success());
    }
}

#[test]
fn its_forwards_work_and_end_with_it() {
    let warm = Warm::up(&SshdSpec::new(1));
    let (to, data) = (echo(), noise(2_000_000));
    let (local, dynamic, remote) = (free_place(), free_place(), free_place());
    let to_local = format!("{local}:{to}");
    // The server listens at its own loopback address.
    let there = SocketAddrV4::new(Ipv4Addr::LOCALHOST, remote.port());
    let to_remote = format!("127.0.0.1:{}:{to}", there.port());
    let socks = dynamic.to_string();
    let holding = Holding::begin(&warm, &["-L", &to_local, "-D", &socks, "-R", &to_remote]);
    assert!(exchange(connect(local), &data) == data);
    let request = [
        &[4, 1][..],
        &to.port().to_be_bytes(),
        &[127, 0, 0, 1, 0],
        b"x",
    ]
    .concat();
    assert!(exchange(connect(dynamic), &request).ends_with(b"x"));
    wait_until("the server listens", || TcpStream::connect(there).is_ok());
    for _ in 0..3 {
        assert!(exchange(connect(there), &data) == data);
    }
    holding.end();
    wait_until("the server listens no more", || {
        TcpStream::connect(there).is_err()
    });
    assert_eq!(warm.shoal.hosts.logins(), 1);
}

#[test]
fn without_a_session_forwards_alone_are_enough_and_a_killed_one_leaves_nothing() {
    let warm = Warm::up(&SshdSpec::new(1));
    let to = echo();
    let (local, remote) = (free_place(), free_place());
    let there = SocketAddrV4::new(Ipv4Addr::LOCALHOST, remote.port());
    let to_local = format!("{local}:{to}");
    let to_remote = format!("127.0.0.1:{}:{to}", there.port());
    let mut ssh = proxy(&warm, &["-N", "-L", &to_local, "-R", &to_remote]);
    let mut child = ssh.spawn().unwrap();
    wait_until("both listen", || {
        TcpStream::connect(local).is_ok() && TcpStream::connect(there).is_ok()
    });
    let mut open = connect(local);
    open.write_all(b"open").unwrap();
    open.read_exact(&mut [0; 4]).unwrap();
    let mut arrived = connect(there);
    arrived.write_all(b"open").unwrap();
    arrived.read_exact(&mut [0; 4]).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("the server listens no more", || {
        TcpStream::connect(there).is_err()
    });
    assert!(!matches!(arrived.read(&mut [0]), Ok(1)), "it is closed");
    wait_until("its session is over", || {
        warm.status()["hosts"][0]["sessions"] == 0
    });
    let ended = Running::start(&mut warm.ssh("echo well")).wait();
    assert_eq!(ended.expect(0).stdout(), "well\n");
    assert_eq!(warm.shoal.hosts.logins(), 1);
}

#[test]
fn many_of_both_kinds_at_once_get_the_connections_that_they_need() {
    let warm = Warm::up(&SshdSpec::new(1).line("MaxSessions 4"));
    let children: Vec<Child> = (0..30)
        .map(|number| {
            let line = format!("cat; echo {number}");
            let mut ssh = match number % 3 {
                0 => warm.ssh(&line),
                _ => proxied(&warm, &line),
            };
            ssh.stdin(Stdio::piped()).stdout(Stdio::piped());
            ssh.spawn().unwrap()
        })
        .collect();
    wait_until("all have a session at the same time", || {
        warm.status()["hosts"][0]["sessions"] == 30 && warm.shoal.hosts.logins() >= 8
    });
    for (number, mut child) in children.into_iter().enumerate() {
        drop(child.stdin.take());
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{number}: {output:?}");
        assert_eq!(output.stdout, format!("{number}\n").as_bytes());
    }
}

/// A passenger that this test speaks for, in proxy mode.
struct Spoken(UnixStream);

impl Spoken {
    fn begin(warm: &Warm) -> Spoken {
        let mut socket = UnixStream::connect(warm.socket(0)).unwrap();
        socket.set_read_timeout(Some(DEADLINE)).unwrap();
        let hello = [0, 0, 0, 8, 0, 0, 0, 1, 0, 0, 0, 4];
        socket.write_all(&hello).unwrap();
        socket
            .write_all(&[0, 0, 0, 8, 0x10, 0, 0, 0x0f, 0, 0, 0, 7])
            .unwrap();
        let mut answer = [0; 24];
        socket.read_exact(&mut answer).unwrap();
        let granted = [0, 0, 0, 8, 0x80, 0, 0, 0x0f, 0, 0, 0, 7];
        assert_eq!(answer, [hello, granted].concat()[..]);
        Spoken(socket)
    }

    fn say(&mut self, payload: &[u8]) {
        let head = (payload.len() as u32 + 1).to_be_bytes();
        self.0
            .write_all(&[&head[..], &[0], payload].concat())
            .unwrap();
    }

    /// The next packet's payload.
    fn hear(&mut self) -> Vec<u8> {
        let mut head = [0; 5];
        self.0.read_exact(&mut head).unwrap();
        let len = u32::from_be_bytes([head[0], head[1], head[2], head[3]]);
        let mut payload = vec![0; len as usize - 1];
        self.0.read_exact(&mut payload).unwrap();
        payload
    }

    /// It is left: what it was told last.
    fn expect_end(mut self) -> String {
        let mut told = Vec::new();
        if let Err(error) = self.0.read_to_end(&mut told) {
            assert_ne!(error.kind(), ErrorKind::WouldBlock, "it goes on");
        }
        String::from_utf8_lossy(&told).into_owned()
    }
}

fn string(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_be_bytes()[..], text.as_bytes()].concat()
}

/// REQUEST_FAILURE, as long as stock ssh wants every packet to be.
const FAILURE: [u8; 4] = [82, 0, 0, 0];

/// CHANNEL_OPEN of a session, with a window and the longest message.
fn open_session(sender: u32) -> Vec<u8> {
    let numbers = [sender, 1 << 20, 32_768].map(u32::to_be_bytes).concat();
    [&[90][..], &string("session"), &numbers].concat()
}

/// A message about a channel of the server's.
fn about(number: u8, channel: u32, rest: &[u8]) -> Vec<u8> {
    [&[number][..], &channel.to_be_bytes(), rest].concat()
}

/// The server's number in CHANNEL_OPEN_CONFIRMATION for our channel.
fn confirmed(payload: &[u8], own: u32) -> u32 {
    assert_eq!(payload[..5], about(91, own, b""), "{payload:?}");
    u32::from_be_bytes(payload[5..9].try_into().unwrap())
}

#[test]
fn answers_come_in_the_order_of_the_questions_whoever_gives_them() {
    let warm = Warm::up(&SshdSpec::new(1));
    let mut spoken = Spoken::begin(&warm);
    let ask = |name: &str, rest: &[u8]| [&[80][..], &string(name), &[1], rest].concat();
    let anywhere = [string("localhost"), vec![0; 4]].concat();
    spoken.say(&ask("no-more-sessions@openssh.com", b""));
    spoken.say(&ask("tcpip-forward", &anywhere));
    spoken.say(&ask("keepalive@openssh.com", b""));
    spoken.say(&ask("cancel-tcpip-forward", &anywhere));
    assert_eq!(spoken.hear(), FAILURE);
    let allocated = spoken.hear();
    assert_eq!((allocated.len(), allocated[0]), (5, 81));
    assert_eq!(spoken.hear(), FAILURE);
    assert_eq!(spoken.hear(), FAILURE, "port 0 was never listened at");
    let port = u16::from_be_bytes([allocated[3], allocated[4]]);
    let mut arrived = connect(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port));
    let open = spoken.hear();
    assert!(open.starts_with(&[&[90][..], &string("forwarded-tcpip")].concat()));
    let servers = u32::from_be_bytes(open[20..24].try_into().unwrap());
    spoken.say(&about(
        92,
        servers,
        &[[0, 0, 0, 2].to_vec(), string(""), string("")].concat(),
    ));
    assert_eq!(arrived.read(&mut [0]).unwrap_or(0), 0, "it was refused");
    // The request that would have kept all others out has not reached the server.
    let ended = Running::start(&mut warm.ssh("echo in")).wait();
    assert_eq!(ended.expect(0).stdout(), "in\n");
}

#[test]
fn whoever_breaks_the_protocol_is_left_and_the_connection_stays() {
    let warm = Warm::up(&SshdSpec::new(1));
    let mut bystander = warm.ssh("cat");
    let mut bystander = bystander
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    for payload in [
        // Not of the connection protocol: KEXINIT, DISCONNECT.
        vec![20],
        vec![1, 0, 0, 0, 2],
        // Torn, and a channel that is another's.
        vec![90, 0, 0],
        about(94, 0, &string("data")),
        about(97, 0, b""),
        // An answer that nobody waits for.
        vec![81],
    ] {
        let mut spoken = Spoken::begin(&warm);
        spoken.say(&payload);
        spoken.expect_end();
    }
    let mut spoken = Spoken::begin(&warm);
    spoken.0.write_all(&[0xff; 4]).unwrap();
    spoken.expect_end();
    let mut spoken = Spoken::begin(&warm);
    spoken.0.write_all(&[0, 0, 0, 2, 1, 80]).unwrap();
    spoken.expect_end();
    // More than the server has room for: it would end everybody's connection.
    let mut spoken = Spoken::begin(&warm);
    spoken.say(&open_session(0));
    let servers = confirmed(&spoken.hear(), 0);
    spoken.say(&about(94, servers, &string(&"x".repeat(40_000))));
    spoken.expect_end();
    // Half a packet, and a session that is not closed.
    let mut spoken = Spoken::begin(&warm);
    spoken.say(&open_session(5));
    confirmed(&spoken.hear(), 5);
    spoken.0.write_all(&[0, 0, 0, 9, 0]).unwrap();
    drop(spoken);
    wait_until("only the bystander is left", || {
        warm.status()["hosts"][0]["sessions"] == 1
    });
    bystander.stdin.take().unwrap().write_all(b"here").unwrap();
    assert_eq!(bystander.wait_with_output().unwrap().stdout, b"here");
    assert_eq!(warm.shoal.hosts.logins(), 1);
}

/// What comes behind the number and the channel of a CHANNEL_REQUEST.
fn request(kind: &str, body: &[u8]) -> Vec<u8> {
    [&string(kind)[..], &[1], body].concat()
}

#[test]
fn who_sends_what_a_server_ends_all_for_is_told_why_and_nobody_else_notices() {
    let warm = Warm::up(&SshdSpec::new(1));
    let bystander = Holding::begin(&warm, &[]);
    let terminal = [&string("xterm")[..], &[0; 16], &string("")].concat();
    let cut_mode = [&string("xterm")[..], &[0; 16], &string("\u{1}")].concat();
    let two = |one: &str, other: &str| [string(one), string(other)].concat();
    for (kind, body, words) in [
        ("exec", string("tr\0ue"), "command has an octet 0"),
        ("exec", vec![0, 0, 0, 9, 1], "command needs 9 bytes"),
        ("exec", two("true", ""), "command is followed by 4 bytes"),
        ("shell", vec![1], "followed by 1 bytes"),
        ("env", two("A", "b\0"), "variable value has an octet 0"),
        ("subsystem", string("\0"), "subsystem name has an octet 0"),
        ("pty-req", vec![0; 10], "CHANNEL_REQUEST is malformed"),
        ("pty-req", cut_mode, "terminal mode's argument needs 4"),
        ("window-change", vec![0; 15], "height in pixels needs 4"),
        ("signal", string("I\0T"), "signal name has an octet 0"),
        ("x11-req", vec![0; 3], "CHANNEL_REQUEST is malformed"),
        ("auth-agent-req@openssh.com", vec![1], "followed by 1"),
        ("sh\0ell", vec![], "request type has an octet 0"),
    ] {
        let mut spoken = Spoken::begin(&warm);
        spoken.say(&open_session(0));
        let servers = confirmed(&spoken.hear(), 0);
        spoken.say(&about(98, servers, &request(kind, &body)));
        let told = spoken.expect_end();
        assert!(told.contains(words), "{kind}: {told:?}");
    }
    // A second terminal.
    let mut spoken = Spoken::begin(&warm);
    spoken.say(&open_session(0));
    let servers = confirmed(&spoken.hear(), 0);
    for _ in 0..2 {
        spoken.say(&about(98, servers, &request("pty-req", &terminal)));
    }
    let told = spoken.expect_end();
    assert!(told.contains("second terminal"), "{told:?}");
    // Channels and requests for the whole connection.
    let open = |kind: &str, body: &[u8]| {
        let numbers = [0, 1 << 20, 32_768_u32].map(u32::to_be_bytes).concat();
        [&[90][..], &string(kind), &numbers, body].concat()
    };
    let ask = |kind: &str, body: &[u8]| [&[80][..], &request(kind, body)].concat();
    for (payload, words) in [
        (open("session", &[1]), "followed by 1 bytes"),
        (open("direct-tcpip", &string("a\0b")), "host to connect has"),
        (open("direct-streamlocal@openssh.com", &[]), "socket path"),
        (
            ask("tcpip-forward", &string("a\0b")),
            "address has an octet 0",
        ),
        (ask("cancel-tcpip-forward", &string("a")), "port needs 4"),
    ] {
        let mut spoken = Spoken::begin(&warm);
        spoken.say(&payload);
        let told = spoken.expect_end();
        assert!(told.contains(words), "{told:?}");
    }
    bystander.end();
    let ended = Running::start(&mut warm.ssh("echo well")).wait();
    assert_eq!(ended.expect(0).stdout(), "well\n");
    assert_eq!(warm.shoal.hosts.logins(), 1);
}

#[test]
fn a_place_too_many_is_refused_and_the_server_is_not_asked() {
    let warm = Warm::up(&SshdSpec::new(1));
    let mut spoken = Spoken::begin(&warm);
    let folder = shared_folder();
    let path = |number: usize| folder.path().join(format!("s{number}"));
    let about_path = |kind: &str, number: usize| {
        let path = path(number);
        let body = string(path.to_str().unwrap());
        [&[80][..], &request(kind, &body)].concat()
    };
    let listen = |number| about_path("streamlocal-forward@openssh.com", number);
    for number in 0..256 {
        spoken.say(&listen(number));
        assert_eq!(spoken.hear()[0], 81, "{number}");
    }
    spoken.say(&listen(256));
    assert_eq!(spoken.hear(), FAILURE);
    assert!(path(255).exists() && !path(256).exists());
    // Where one is cancelled there is room again.
    spoken.say(&about_path("cancel-streamlocal-forward@openssh.com", 0));
    assert_eq!(spoken.hear()[0], 81);
    spoken.say(&listen(256));
    assert_eq!(spoken.hear()[0], 81);
}

/// No more are under way than the connection keeps, and none is forgotten.
#[test]
fn every_global_request_is_answered() {
    let warm = Warm::up(&SshdSpec::new(1));
    let mut spoken = Spoken::begin(&warm);
    let asked = [&[80][..], &request("keepalive@openssh.com", b"")].concat();
    for _ in 0..1000 {
        spoken.say(&asked);
    }
    for number in 0..1000 {
        assert_eq!(spoken.hear(), FAILURE, "{number}");
    }
}

#[test]
fn who_leaves_with_answers_outstanding_disturbs_nobody() {
    let warm = Warm::up(&SshdSpec::new(1));
    let exec = |line: &str| [&string("exec")[..], &[1], &string(line)].concat();
    for _ in 0..20 {
        let mut spoken = Spoken::begin(&warm);
        spoken.say(&open_session(3));
        let servers = confirmed(&spoken.hear(), 3);
        spoken.say(&about(98, servers, &exec("yes")));
        // Another channel that is not open yet.
        spoken.say(&open_session(4));
    }
    let ended = Running::start(&mut warm.ssh("echo well")).wait();
    assert_eq!(ended.expect(0).stdout(), "well\n");
    wait_until("all are gone", || {
        warm.status()["hosts"][0]["sessions"] == 0
    });
}
