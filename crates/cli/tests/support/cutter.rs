//! A relay before a real server that cuts connections off at a byte of their own.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use sshoal_testbed::addresses::host_addresses;
use sshoal_testbed::descriptors::allow_descriptors;
use sshoal_testbed::simulated::fault::{Action, Side};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio::task::{LocalSet, spawn_local};

/// Where a connection ends, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    pub(crate) side: Side,
    /// Bytes that still pass.
    pub(crate) at: u64,
    pub(crate) action: Action,
}

/// All bytes of one connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Transcript {
    pub(crate) input: Vec<u8>,
    pub(crate) output: Vec<u8>,
}

/// Doors to one server, each with an address of its own and a cut for the first connection through it.
pub(crate) struct Cutter {
    addresses: Vec<SocketAddrV4>,
    doors: Vec<Arc<Door>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

struct Door {
    cut: Option<Cut>,
    used: AtomicBool,
    /// Of the last connection that was not cut.
    transcript: Mutex<Transcript>,
}

impl Cutter {
    /// Doors from `base + 1` on, all on one port.
    pub(crate) fn start(server: SocketAddrV4, base: Ipv4Addr, cuts: &[Option<Cut>]) -> Cutter {
        allow_descriptors(cuts.len() as u64 + 1024).unwrap();
        let listeners = listen(&host_addresses(base, cuts.len() as u32).unwrap());
        let addresses = listeners.iter().map(address).collect();
        let door = |cut: &Option<Cut>| {
            Arc::new(Door {
                cut: *cut,
                used: AtomicBool::new(false),
                transcript: Mutex::default(),
            })
        };
        let doors: Vec<_> = cuts.iter().map(door).collect();
        let (stop, stopped) = oneshot::channel();
        let guarded: Vec<_> = listeners.into_iter().zip(doors.clone()).collect();
        let thread = thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            LocalSet::new().block_on(&runtime, async move {
                for (listener, door) in guarded {
                    spawn_local(serve(listener, door, server));
                }
                // Ends when the sender is dropped.
                let _ = stopped.await;
            });
        });
        Cutter {
            addresses,
            doors,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    pub(crate) fn addresses(&self) -> &[SocketAddrV4] {
        &self.addresses
    }

    /// The last connection through a door that was not cut.
    pub(crate) fn transcript(&self, door: usize) -> Transcript {
        self.doors[door].transcript.lock().unwrap().clone()
    }
}

impl Drop for Cutter {
    fn drop(&mut self) {
        self.stop.take();
        let thread = self.thread.take().unwrap();
        if !thread::panicking() {
            thread.join().unwrap();
        }
    }
}

fn address(listener: &std::net::TcpListener) -> SocketAddrV4 {
    match listener.local_addr().unwrap() {
        std::net::SocketAddr::V4(address) => address,
        other => panic!("{other} is not in 127.0.0.0/8"),
    }
}

/// A port that is free on the first address may be taken on another; that is rare.
fn listen(ips: &[Ipv4Addr]) -> Vec<std::net::TcpListener> {
    const ATTEMPTS: usize = 16;
    let bind = |ip, port| std::net::TcpListener::bind((ip, port));
    let all = || -> io::Result<Vec<_>> {
        let first = bind(ips[0], 0)?;
        let port = address(&first).port();
        let rest = ips[1..].iter().map(|&ip| bind(ip, port));
        std::iter::once(Ok(first)).chain(rest).collect()
    };
    (1..ATTEMPTS)
        .find_map(|_| all().ok())
        .unwrap_or_else(|| all().unwrap())
}

async fn serve(listener: std::net::TcpListener, door: Arc<Door>, server: SocketAddrV4) {
    listener.set_nonblocking(true).unwrap();
    let listener = TcpListener::from_std(listener).unwrap();
    loop {
        let (client, _) = listener.accept().await.unwrap();
        let door = door.clone();
        spawn_local(async move {
            let cut = door
                .cut
                .filter(|_| !door.used.swap(true, Ordering::Relaxed));
            let server = TcpStream::connect(server).await.unwrap();
            client.set_nodelay(true).unwrap();
            server.set_nodelay(true).unwrap();
            match cut {
                // What goes wrong now is what was to go wrong.
                Some(cut) => drop(cut_off(client, server, cut).await),
                None => *door.transcript.lock().unwrap() = relay(client, server).await,
            }
        });
    }
}

/// Passes everything on, and keeps it.
async fn relay(mut client: TcpStream, mut server: TcpStream) -> Transcript {
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    let (input, output) = tokio::join!(
        pass(from_client, to_server, u64::MAX),
        pass(from_server, to_client, u64::MAX)
    );
    let (input, output) = (input.0, output.0);
    Transcript { input, output }
}

/// Passes everything on up to the cut.
async fn cut_off(mut client: TcpStream, mut server: TcpStream, cut: Cut) -> io::Result<()> {
    let (input, output) = match cut.side {
        Side::Input => (cut.at, u64::MAX),
        Side::Output => (u64::MAX, cut.at),
    };
    let reached = {
        let (from_client, to_client) = client.split();
        let (from_server, to_server) = server.split();
        tokio::select! {
            (_, true) = pass(from_client, to_server, input) => true,
            (_, true) = pass(from_server, to_client, output) => true,
            else => false,
        }
    };
    match cut.action {
        _ if !reached => Ok(()),
        Action::Reset => {
            client.set_zero_linger()?;
            server.set_zero_linger()
        }
        // The server may work on for as long as it likes: nobody sees what it answers.
        Action::Close => {
            client.shutdown().await?;
            server.shutdown().await?;
            ignore(&mut client, &mut server).await
        }
        Action::Silence => ignore(&mut client, &mut server).await,
    }
}

/// Reads what comes from both, until the client goes.
async fn ignore(client: &mut TcpStream, server: &mut TcpStream) -> io::Result<()> {
    let (mut lost, mut also_lost) = ([0; 4096], [0; 4096]);
    let mut talks = true;
    loop {
        tokio::select! {
            read = client.read(&mut lost) => if read? == 0 { break },
            read = server.read(&mut also_lost), if talks => talks = read? > 0,
        }
    }
    // The client has gone; the server is to end what it has begun.
    server.shutdown().await?;
    while server.read(&mut lost).await? > 0 {}
    Ok(())
}

/// Passes at most so many bytes on. Returns them, and whether it were so many.
async fn pass(mut from: ReadHalf<'_>, mut to: WriteHalf<'_>, at_most: u64) -> (Vec<u8>, bool) {
    let mut all = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    while (all.len() as u64) < at_most {
        let room = usize::try_from(at_most - all.len() as u64).unwrap_or(usize::MAX);
        let room = room.min(buffer.len());
        match from.read(&mut buffer[..room]).await {
            Ok(read) if read > 0 => {
                all.extend_from_slice(&buffer[..read]);
                if to.write_all(&buffer[..read]).await.is_err() {
                    return (all, false);
                }
            }
            _ => {
                // The other side may have gone already.
                let _ = to.shutdown().await;
                return (all, false);
            }
        }
    }
    (all, true)
}

/// How many bytes of one direction come before the first encrypted packet: everything up to NEWKEYS (RFC 4253,
/// 7.3) is in the clear.
pub(crate) fn end_of_key_exchange(stream: &[u8]) -> usize {
    const NEWKEYS: u8 = 21;
    let mut at = stream.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    loop {
        let length: [u8; 4] = stream[at..at + 4].try_into().unwrap();
        let message = stream[at + 5];
        at += 4 + u32::from_be_bytes(length) as usize;
        if message == NEWKEYS {
            return at;
        }
    }
}
