//! `ssh -L`, `-R`, `-D` and `-W` by a warm connection, with stock ssh and real sshd.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use sshoal_testbed::sshd::SshdSpec;
use support::network::{answer, connect, connect_at, echo, echo_at, exchange, free_place};
use support::passenger::Passenger;
use support::program::{Ended, Running};
use support::warm::Warm;
use support::{DEADLINE, noise, shared_folder, wait_until};

/// `ssh -O forward` or `-O cancel`.
fn forward(warm: &Warm, what: &str, arguments: &[&str]) -> Ended {
    let mut ssh = warm.shares("ssh");
    ssh.args(["-O", what]);
    ssh.args(arguments).arg(warm.shoal.name(0));
    Running::start(&mut ssh).wait()
}

fn spec(from: SocketAddrV4, to: SocketAddrV4) -> String {
    format!("{from}:{to}")
}

/// Where the server listens at a port that it has chosen.
fn allocated(ended: &Ended) -> SocketAddrV4 {
    let port = ended.stdout().trim().parse().unwrap();
    SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, port)
}

#[test]
fn a_local_forward_carries_both_ways_until_it_is_cancelled() {
    let warm = Warm::up(&SshdSpec::new(1));
    let (place, data) = (free_place(), noise(3_000_000));
    let local = spec(place, echo());
    forward(&warm, "forward", &["-L", &local]).expect(0);
    assert!(exchange(connect(place), &data) == data);
    // The same once more is there already.
    forward(&warm, "forward", &["-L", &local]).expect(0);
    let mut open = connect(place);
    open.write_all(b"open").unwrap();
    let mut back = [0; 4];
    open.read_exact(&mut back).unwrap();
    wait_until("one is open", || {
        warm.status()["hosts"][0]["forwarded"] == 1
    });
    forward(&warm, "cancel", &["-L", &local]).expect(0);
    wait_until("nobody listens any more", || {
        TcpStream::connect(place).is_err()
    });
    // What is open stays.
    assert_eq!(exchange(open, b" still"), b" still");
    forward(&warm, "cancel", &["-L", &local]).says(&["port not forwarded"]);
    wait_until("nothing is open", || {
        warm.status()["hosts"][0]["forwarded"] == 0
    });
    assert_eq!(warm.shoal.hosts.logins(), 1);
}

#[test]
fn forwards_come_with_a_session_and_outlive_it() {
    let warm = Warm::up(&SshdSpec::new(1));
    let (local, dynamic) = (free_place(), free_place());
    let to = echo();
    let mut ssh = warm.shares("ssh");
    ssh.args(["-L", &spec(local, to), "-D", &dynamic.to_string()]);
    ssh.args([&warm.shoal.name(0), "echo up; cat"]);
    ssh.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = ssh.spawn().unwrap();
    let mut up = [0; 3];
    child.stdout.as_mut().unwrap().read_exact(&mut up).unwrap();
    assert_eq!(exchange(connect(local), b"with it"), b"with it");
    // As with ssh's own master they are the host's.
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("its session is over", || {
        warm.status()["hosts"][0]["sessions"] == 0
    });
    assert_eq!(exchange(connect(local), b"without it"), b"without it");
    assert!(exchange(connect(dynamic), &socks5(to, b"hello")).ends_with(b"hello"));
    assert_eq!(warm.shoal.hosts.logins(), 1);
}

#[test]
fn a_remote_forward_leads_here_from_a_port_that_the_server_chooses() {
    let warm = Warm::up(&SshdSpec::new(1));
    let (to, data) = (echo(), noise(3_000_000));
    let remote = format!("0:{to}");
    let first = forward(&warm, "forward", &["-R", &remote]).expect(0);
    let place = allocated(&first);
    assert!(exchange(connect(place), &data) == data);
    // The same once more is the same port.
    let again = forward(&warm, "forward", &["-R", &remote]).expect(0);
    assert_eq!(allocated(&again), place);
    forward(&warm, "cancel", &["-R", &remote]).expect(0);
    wait_until("the server listens no more", || {
        TcpStream::connect(place).is_err()
    });
    assert_eq!(warm.shoal.hosts.logins(), 1);
}

#[test]
fn a_remote_forward_to_nobody_is_closed_and_others_go_on() {
    let warm = Warm::up(&SshdSpec::new(1));
    let nobody = forward(&warm, "forward", &["-R", &format!("0:{}", free_place())]);
    let somebody = forward(&warm, "forward", &["-R", &format!("0:{}", echo())]);
    let (nobody, somebody) = (allocated(&nobody.expect(0)), allocated(&somebody.expect(0)));
    assert_eq!(answer(connect(nobody), b"hello"), b"");
    assert_eq!(exchange(connect(somebody), b"hello"), b"hello");
}

#[test]
fn what_the_server_does_not_allow_is_told() {
    let warm = Warm::up(&SshdSpec::new(1).line("AllowTcpForwarding no"));
    let place = free_place();
    forward(&warm, "forward", &["-R", &spec(place, echo())])
        .expect(255)
        .says(&["remote port forwarding failed for listen port"]);
    // The server is asked when somebody connects, as with ssh's own master.
    forward(&warm, "forward", &["-L", &spec(place, echo())]).expect(0);
    assert_eq!(answer(connect(place), b"hello"), b"");
    let mut ssh = warm.shares("ssh");
    ssh.args(["-W", &echo().to_string(), &warm.shoal.name(0)]);
    Running::start(&mut ssh).wait().expect(255);
    assert_eq!(warm.shoal.hosts.logins(), 1, "nor was it tried elsewhere");
}

/// SOCKS 4, with a name in place of the address if there is one.
fn socks4(to: SocketAddrV4, name: Option<&str>, data: &[u8]) -> Vec<u8> {
    let address = match name {
        Some(_) => [0, 0, 0, 1],
        None => to.ip().octets(),
    };
    let head = [&[4, 1][..], &to.port().to_be_bytes(), &address].concat();
    let name = name.map(|name| format!("{name}\0")).unwrap_or_default();
    [&head[..], b"user\0", name.as_bytes(), data].concat()
}

/// SOCKS 5: both messages, without waiting for the answer to the first, and data behind them.
fn socks5(to: SocketAddrV4, data: &[u8]) -> Vec<u8> {
    let request = [5, 1, 0, 5, 1, 0, 1];
    let port = to.port().to_be_bytes();
    [&request[..], &to.ip().octets(), &port, data].concat()
}

/// The answers of SOCKS 5 to somebody who is connected.
const CONNECTED5: [u8; 12] = [5, 0, 5, 0, 0, 1, 0, 0, 0, 0, 0, 0];

#[test]
fn a_dynamic_forward_speaks_every_version_of_socks() {
    let warm = Warm::up(&SshdSpec::new(1));
    let (place, to) = (free_place(), echo());
    forward(&warm, "forward", &["-D", &place.to_string()]).expect(0);
    let granted = [0, 90, 0, 0, 0, 0, 0, 0];
    let named = [
        &[5, 1, 0, 5, 1, 0, 3, 9][..],
        b"localhost",
        &to.port().to_be_bytes(),
        b"data",
    ];
    for (request, connected) in [
        (socks4(to, None, b"data"), &granted[..]),
        (socks4(to, Some("localhost"), b"data"), &granted),
        (socks5(to, b"data"), &CONNECTED5),
        (named.concat(), &CONNECTED5),
    ] {
        let came = exchange(connect(place), &request);
        assert_eq!(came, [connected, b"data"].concat(), "{request:?}");
    }
    forward(&warm, "cancel", &["-D", &place.to_string()]).expect(0);
    wait_until("nobody listens any more", || {
        TcpStream::connect(place).is_err()
    });
}

#[test]
fn a_dynamic_forward_says_who_cannot_be_reached_and_hears_no_nonsense() {
    let warm = Warm::up(&SshdSpec::new(1));
    let (place, to) = (free_place(), echo());
    forward(&warm, "forward", &["-D", &place.to_string()]).expect(0);
    let silent = connect(place);
    assert_eq!(
        answer(connect(place), &socks5(free_place(), b"")),
        [&CONNECTED5[..3], &[5], &CONNECTED5[4..]].concat()
    );
    let rejected = [0, 91, 0, 0, 0, 0, 0, 0];
    assert_eq!(
        answer(connect(place), &socks4(free_place(), None, b"")),
        rejected
    );
    assert_eq!(answer(connect(place), b"GET / HTTP/1.1\r\n\r\n"), b"");
    let endless = [&[4, 1, 0, 1, 127, 0, 0, 1][..], &[b'u'; 5000]].concat();
    assert_eq!(answer(connect(place), &endless), b"");
    // None of them is in the way of others.
    assert!(exchange(connect(place), &socks5(to, b"hello")).ends_with(b"hello"));
    drop(silent);
    assert_eq!(warm.shoal.hosts.logins(), 1);
}

#[test]
fn a_remote_forward_with_a_port_alone_speaks_socks_over_there() {
    let warm = Warm::up(&SshdSpec::new(1));
    let to = echo();
    let place = allocated(&forward(&warm, "forward", &["-R", "0"]).expect(0));
    let came = exchange(connect(place), &socks5(to, b"from there"));
    assert_eq!(came, [&CONNECTED5[..], b"from there"].concat());
    let refused = answer(connect(place), &socks5(free_place(), b""));
    assert_eq!(refused.get(3), Some(&5), "{refused:?}");
    assert_eq!(answer(connect(place), b"GET / HTTP/1.1\r\n\r\n"), b"");
}

#[test]
fn unix_sockets_are_forwarded_from_either_side() {
    let warm = Warm::up(&SshdSpec::new(1));
    let folder = shared_folder();
    let path = |name: &str| folder.path().join(name);
    let (to, local, remote) = (path("to"), path("local"), path("remote"));
    echo_at(&to);
    fs::set_permissions(&to, fs::Permissions::from_mode(0o777)).unwrap();
    let pair = |from: &std::path::Path| format!("{}:{}", from.display(), to.display());
    forward(&warm, "forward", &["-L", &pair(&local)]).expect(0);
    let found = fs::metadata(&local).unwrap();
    assert!(found.file_type().is_socket());
    assert_eq!(found.permissions().mode() & 0o777, 0o600);
    let data = noise(1_000_000);
    assert!(exchange(connect_at(&local), &data) == data);
    // What is in the way stays there, and is told.
    forward(
        &warm,
        "forward",
        &["-L", &format!("{}:127.0.0.1:1", local.display())],
    )
    .expect(255)
    .says(&["Address already in use"]);
    forward(&warm, "cancel", &["-L", &pair(&local)]).expect(0);
    assert!(fs::metadata(&local).is_err());
    forward(&warm, "forward", &["-R", &pair(&remote)]).expect(0);
    assert!(exchange(connect_at(&remote), &data) == data);
    forward(&warm, "cancel", &["-R", &pair(&remote)]).expect(0);
    wait_until("the server listens no more", || {
        UnixStream::connect(&remote).is_err()
    });
    // Standard input and output: not every ssh has words for it.
    let (ours, theirs) = UnixStream::pair().unwrap();
    ours.set_read_timeout(Some(DEADLINE)).unwrap();
    let both = [theirs.as_fd(), theirs.as_fd()];
    let mut passenger = Passenger::stdio(&warm, to.to_str().unwrap(), both);
    passenger.is_in();
    drop(theirs);
    assert_eq!(exchange(ours, b"stdio"), b"stdio");
    assert_eq!(passenger.0.read(&mut [0]).unwrap(), 0);
    assert_eq!(warm.shoal.hosts.logins(), 1);
}

#[test]
fn a_place_that_is_taken_ends_an_ssh_that_insists_on_its_forward() {
    let warm = Warm::up(&SshdSpec::new(1));
    let taken = TcpListener::bind((*free_place().ip(), 0)).unwrap();
    let std::net::SocketAddr::V4(place) = taken.local_addr().unwrap() else {
        panic!("it is IPv4");
    };
    forward(&warm, "forward", &["-L", &spec(place, echo())])
        .expect(255)
        .says(&["Port forwarding failed", "Address already in use"]);
    // ssh logs in by itself then, and is refused that by itself.
    let mut ssh = warm.shares("ssh");
    ssh.args(["-o", "ExitOnForwardFailure=yes"]);
    ssh.args(["-L", &spec(place, echo()), &warm.shoal.name(0), "echo in"]);
    let ended = Running::start(&mut ssh).wait().expect(255);
    assert_eq!(ended.stdout(), "");
}

/// A server that sends to whoever connects for as long as that takes it, and counts.
fn source(octets: usize) -> (SocketAddrV4, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let std::net::SocketAddr::V4(place) = listener.local_addr().unwrap() else {
        panic!("it is IPv4");
    };
    let counter = Arc::new(AtomicUsize::new(0));
    let counts = counter.clone();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let piece = [7; 64 * 1024];
        while counts.load(Ordering::Relaxed) < octets {
            stream.write_all(&piece).unwrap();
            counts.fetch_add(piece.len(), Ordering::Relaxed);
        }
    });
    (place, counter)
}

#[test]
fn who_does_not_read_stops_nobody_else_and_is_kept_in_bounds() {
    const MUCH: usize = 128 * 1024 * 1024;
    let warm = Warm::up(&SshdSpec::new(1));
    let (slow, quick) = (free_place(), free_place());
    let (from, sent) = source(MUCH);
    forward(&warm, "forward", &["-L", &spec(slow, from)]).expect(0);
    forward(&warm, "forward", &["-L", &spec(quick, echo())]).expect(0);
    let mut lazy = connect(slow);
    let mut first = [0];
    lazy.read_exact(&mut first).unwrap();
    let data = noise(8_000_000);
    for _ in 0..3 {
        assert!(exchange(connect(quick), &data) == data);
    }
    // Windows, pipes and sockets on the way have room for some of it.
    let on_its_way = sent.load(Ordering::Relaxed);
    assert!(on_its_way < MUCH / 2, "{on_its_way} octets");
    let mut rest = 0;
    let mut buffer = vec![0; 1024 * 1024];
    loop {
        match lazy.read(&mut buffer).unwrap() {
            0 => break,
            octets => rest += octets,
        }
    }
    assert_eq!(1 + rest, sent.load(Ordering::Relaxed));
    assert!(rest >= MUCH - 1);
}

#[test]
fn a_host_that_ends_leaves_no_listener_and_no_socket() {
    let warm = Warm::up(&SshdSpec::new(1));
    let folder = shared_folder();
    let path = folder.path().join("local");
    let place = free_place();
    forward(&warm, "forward", &["-L", &spec(place, echo())]).expect(0);
    let unix = format!("{}:127.0.0.1:1", path.display());
    forward(&warm, "forward", &["-L", &unix]).expect(0);
    let mut open = connect(place);
    open.write_all(b"open").unwrap();
    open.read_exact(&mut [0; 4]).unwrap();
    warm.run(&["down"]).expect(0);
    assert!(TcpStream::connect(place).is_err());
    assert!(fs::metadata(&path).is_err());
    assert!(!matches!(open.read(&mut [0]), Ok(1)));
}
