//! A relay before a host that is as slow as a line may be, and breaks when it is told to.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddrV4, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// A line before a host: so fast, and for so many octets.
pub(crate) struct Line {
    host: SocketAddrV4,
    port: u16,
    state: Arc<State>,
}

struct State {
    /// How long each 16 KiB take to the host.
    pause: Duration,
    /// Octets that it still carries to the host.
    left: Mutex<u64>,
    is_free: AtomicBool,
    connections: Mutex<Vec<TcpStream>>,
}

impl Line {
    /// A line on which each 16 KiB to the host take so long, and which ends after so many octets.
    pub(crate) fn to(host: SocketAddrV4, pause: Duration, octets: u64) -> Line {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(State {
            pause,
            left: Mutex::new(octets),
            is_free: AtomicBool::new(false),
            connections: Mutex::default(),
        });
        let serving = state.clone();
        // Ends with the test's process.
        thread::spawn(move || {
            for client in listener.incoming() {
                serve(client.unwrap(), TcpStream::connect(host).unwrap(), &serving);
            }
        });
        Line { host, port, state }
    }

    /// What leads to the host by this line, for the beginning of an ssh_config.
    pub(crate) fn stanza(&self) -> String {
        let (name, port) = (self.host.ip(), self.host.port());
        format!(
            "Host {name}\n    HostName 127.0.0.1\n    Port {}\n    HostKeyAlias [{name}]:{port}\n",
            self.port
        )
    }

    /// Carries everything from now on, as it comes.
    pub(crate) fn free(&self) {
        self.state.is_free.store(true, Ordering::Relaxed);
    }

    /// Cuts all connections, and carries everything from now on.
    pub(crate) fn cut(&self) {
        self.free();
        for connection in self.state.connections.lock().unwrap().drain(..) {
            // It may have ended.
            let _ = connection.shutdown(Shutdown::Both);
        }
    }
}

impl State {
    /// So many of `wanted` octets may be carried: several connections share what is left.
    fn take(&self, wanted: u64) -> u64 {
        if self.is_free.load(Ordering::Relaxed) {
            return wanted;
        }
        let mut left = self.left.lock().unwrap();
        let taken = wanted.min(*left);
        *left -= taken;
        taken
    }

    fn give_back(&self, octets: u64) {
        let mut left = self.left.lock().unwrap();
        *left = left.saturating_add(octets);
    }
}

fn serve(client: TcpStream, host: TcpStream, state: &Arc<State>) {
    let both = [client.try_clone().unwrap(), host.try_clone().unwrap()];
    state.connections.lock().unwrap().extend(both);
    let (mut from_host, mut to_client) = (host.try_clone().unwrap(), client.try_clone().unwrap());
    thread::spawn(move || {
        let _ = io::copy(&mut from_host, &mut to_client);
        let _ = to_client.shutdown(Shutdown::Both);
    });
    let state = state.clone();
    thread::spawn(move || carry(client, host, &state));
}

fn carry(mut client: TcpStream, mut host: TcpStream, state: &State) {
    let mut piece = [0; 16 * 1024];
    loop {
        let most = state.take(piece.len() as u64);
        if most == 0 {
            // Whoever cuts the line closes it.
            return;
        }
        let octets = client.read(&mut piece[..most as usize]).unwrap_or(0);
        state.give_back(most - octets as u64);
        if octets == 0 {
            let _ = host.shutdown(Shutdown::Both);
            return;
        }
        if !state.is_free.load(Ordering::Relaxed) {
            thread::sleep(state.pause * octets as u32 / piece.len() as u32);
        }
        if host.write_all(&piece[..octets]).is_err() {
            return;
        }
    }
}
