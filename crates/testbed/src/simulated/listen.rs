//! Listening sockets: one a host, all on one port.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, socket_with, sockopt};

/// Connections that may wait to be accepted; the kernel lowers it to net.core.somaxconn.
const BACKLOG: i32 = 4096;

/// What a host has at its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Door {
    Open,
    /// Nothing listens.
    None,
    /// Listens, and has its accept queue full.
    Stuck,
}

/// A stuck listener and the connection that fills its queue.
#[derive(Debug)]
pub(super) struct Stuck {
    _listener: TcpListener,
    _filler: TcpStream,
}

/// A host's sockets.
#[derive(Debug)]
pub(super) enum Sockets {
    Open(TcpListener),
    None,
    Stuck(Stuck),
}

/// Opens the sockets of all hosts on `port`; 0 stands for any port that all of them can have.
///
/// # Errors
/// The address that could not be listened on, and why.
pub(super) fn open_all(
    hosts: &[(Ipv4Addr, Door)],
    port: u16,
) -> Result<(u16, Vec<Sockets>), (SocketAddrV4, io::Error)> {
    /// A port that is free on one address may be taken on another; that is rare.
    const ATTEMPTS: u32 = 16;
    let mut attempt = 0;
    loop {
        attempt += 1;
        match open_on_one_port(hosts, port) {
            Err((_, error))
                if port == 0 && attempt < ATTEMPTS && error.kind() == io::ErrorKind::AddrInUse => {}
            result => return result,
        }
    }
}

fn open_on_one_port(
    hosts: &[(Ipv4Addr, Door)],
    mut port: u16,
) -> Result<(u16, Vec<Sockets>), (SocketAddrV4, io::Error)> {
    let mut all = Vec::with_capacity(hosts.len());
    for &(ip, door) in hosts {
        let address = SocketAddrV4::new(ip, port);
        let sockets = open(address, door).map_err(|error| (address, error))?;
        if port == 0
            && let Some(bound) = sockets.port()
        {
            port = bound;
        }
        all.push(sockets);
    }
    Ok((port, all))
}

impl Sockets {
    fn port(&self) -> Option<u16> {
        let listener = match self {
            Sockets::Open(listener) => listener,
            Sockets::Stuck(stuck) => &stuck._listener,
            Sockets::None => return None,
        };
        listener.local_addr().ok().map(|address| address.port())
    }
}

fn open(address: SocketAddrV4, door: Door) -> io::Result<Sockets> {
    Ok(match door {
        Door::Open => Sockets::Open(listener(address, BACKLOG)?),
        Door::None => Sockets::None,
        Door::Stuck => {
            // A backlog of 0 admits one connection; with it in the queue the kernel drops every
            // further SYN (Linux, tcp_conn_request).
            let listener = listener(address, 0)?;
            let filler = TcpStream::connect(listener.local_addr()?)?;
            Sockets::Stuck(Stuck {
                _listener: listener,
                _filler: filler,
            })
        }
    })
}

/// std's TcpListener offers neither the backlog nor SO_REUSEADDR.
fn listener(address: SocketAddrV4, backlog: i32) -> io::Result<TcpListener> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket: OwnedFd = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &address)?;
    listen(&socket, backlog)?;
    Ok(TcpListener::from(socket))
}
