//! `silent-after-message:N`, seen by a relay between the installed OpenSSH client and the host.

#![allow(clippy::unwrap_used)]

mod support;

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddrV4, TcpListener, TcpStream};
use std::sync::{Condvar, Mutex};
use std::thread;

use support::{DEADLINE, Hosts, simulate, ssh_command, stop};

/// What has passed a relay in each direction.
#[derive(Default)]
struct Recording {
    passed: Mutex<Passed>,
    changed: Condvar,
}

#[derive(Clone, Default)]
struct Passed {
    from_host: Vec<u8>,
    from_client: usize,
    /// `from_client` when the host's last bytes came.
    from_client_then: usize,
}

impl Recording {
    fn carry(&self, mut from: &TcpStream, mut to: &TcpStream, note: impl Fn(&mut Passed, &[u8])) {
        let mut piece = [0; 4096];
        while let Ok(length @ 1..) = from.read(&mut piece) {
            note(&mut self.passed.lock().unwrap(), &piece[..length]);
            self.changed.notify_all();
            if to.write_all(&piece[..length]).is_err() {
                break;
            }
        }
        // Refused when that side has gone already.
        let _ = to.shutdown(Shutdown::Write);
    }

    fn wait_until(&self, condition: impl Fn(&Passed) -> bool) {
        let passed = self.passed.lock().unwrap();
        let (passed, _) = self
            .changed
            .wait_timeout_while(passed, DEADLINE, |passed| !condition(passed))
            .unwrap();
        assert!(condition(&passed), "it never happened");
    }
}

/// Where the version line and each packet end: RFC 4253, 6 with AES-GCM's clear lengths and tags.
fn packet_ends(stream: &[u8]) -> Vec<usize> {
    let Some(line) = stream.iter().position(|&byte| byte == b'\n') else {
        return Vec::new();
    };
    let mut ends = Vec::new();
    let (mut place, mut tag) = (line + 1, 0);
    while let Some(length) = stream.get(place..place + 4) {
        let length = u32::from_be_bytes(length.try_into().unwrap()) as usize;
        let end = place + 4 + length + tag;
        if end > stream.len() {
            break;
        }
        if tag == 0 && stream[place + 5] == 21 {
            tag = 16;
        }
        ends.push(end);
        place = end;
    }
    ends
}

/// Runs `ssh` through a relay, stops it when `enough` says so, and returns all that the host sent
/// until it, too, ended the connection.
fn relayed(hosts: &Hosts, enough: impl Fn(&Passed) -> bool) -> Vec<u8> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let address = hosts.address(0);
    let relay = SocketAddrV4::new([127, 0, 0, 1].into(), port);
    let ssh = ssh_command(hosts.dir.path(), &relay)
        .args(["-p", &port.to_string()])
        .arg(format!(
            "-oHostKeyAlias=[{}]:{}",
            address.ip(),
            address.port()
        ))
        .arg("true")
        .spawn()
        .unwrap();
    let (client, _) = listener.accept().unwrap();
    let host = TcpStream::connect(address).unwrap();
    let recording = Recording::default();
    thread::scope(|scope| {
        scope.spawn(|| {
            recording.carry(&host, &client, |passed, bytes| {
                passed.from_host.extend_from_slice(bytes);
                passed.from_client_then = passed.from_client;
            });
        });
        scope.spawn(|| {
            recording.carry(&client, &host, |passed, bytes| {
                passed.from_client += bytes.len();
            });
        });
        recording.wait_until(enough);
        stop(ssh);
    });
    recording.passed.into_inner().unwrap().from_host
}

#[test]
fn a_host_silent_after_a_message_sends_exactly_so_many() {
    // KEXINIT, KEX_REPLY, NEWKEYS and EXT_INFO, SERVICE_ACCEPT, the refusal of `none`, PK_OK,
    // USERAUTH_SUCCESS. After each of these ssh sends something, which a host that is not silent
    // would answer.
    for messages in [1, 2, 4, 5, 6, 7, 8] {
        let hosts = simulate(1, &[&format!("0=silent-after-message:{messages}")]);
        let sent = relayed(&hosts, |passed| {
            packet_ends(&passed.from_host).len() >= messages
                && passed.from_client > passed.from_client_then
        });
        let ends = packet_ends(&sent);
        assert_eq!(ends.len(), messages);
        assert_eq!(ends.last(), Some(&sent.len()), "nothing after the last");
    }
}
