//! The byte stream under a connection.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use rustix::io::Errno;
use rustix::net::sockopt::{set_socket_keepalive, set_tcp_congestion, set_tcp_quickack};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use sshoal_fleet::Failure;
use tokio::io::{AsyncRead, Interest, ReadBuf};
use tokio::net::{TcpSocket, TcpStream, UnixStream};

use crate::hints;
use crate::jump::Tunnel;
use crate::plan::TcpOptions;
use crate::proxy::Proxy;

/// A byte stream to a server.
pub(crate) enum Link {
    /// TCP.
    Tcp(TcpStream),
    /// A channel through a jump host.
    Tunnel(Tunnel),
    /// A ProxyCommand.
    Proxy(Box<Proxy>),
    /// A process of the user's that shares a connection which it has to the server.
    Shared(UnixStream),
}

/// Why a link carries no more octets.
#[derive(Debug)]
pub(crate) enum LinkError {
    /// TCP broke, or a pipe.
    Io(io::Error),
    /// The jump host's connection ended: its failure is no word on the server behind.
    Jump(Failure),
}

impl Link {
    pub(crate) async fn connect(address: SocketAddr, options: &TcpOptions) -> io::Result<Link> {
        let stream = match options.bind {
            None => TcpStream::connect(address).await?,
            Some(bind) => {
                let from = bind.towards(address);
                let from = from.ok_or(io::ErrorKind::AddrNotAvailable)?;
                let socket = match from {
                    SocketAddr::V4(_) => TcpSocket::new_v4()?,
                    SocketAddr::V6(_) => TcpSocket::new_v6()?,
                };
                socket.bind(from)?;
                socket.connect(address).await?
            }
        };
        if options.keep_alive {
            set_socket_keepalive(&stream, true)?;
        }
        // Our flights are written whole: waiting to fill a segment only delays them.
        stream.set_nodelay(true)?;
        Ok(Link::Tcp(stream))
    }

    /// Our end, as logs of servers and packet captures name the connection.
    pub(crate) fn local_address(&self) -> Option<SocketAddr> {
        match self {
            Link::Tcp(stream) => stream.local_addr().ok(),
            Link::Tunnel(_) | Link::Proxy(_) | Link::Shared(_) => None,
        }
    }

    /// The server's end; `None` if only a jump host knows it.
    pub(crate) fn peer_address(&self) -> Option<SocketAddr> {
        match self {
            Link::Tcp(stream) => stream.peer_addr().ok(),
            Link::Tunnel(_) | Link::Proxy(_) | Link::Shared(_) => None,
        }
    }

    /// Reads what is there. Nothing read is the end of the stream.
    ///
    /// Unlike a read after a readiness event, this needs no second system call to learn that there is no more.
    pub(crate) fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<(), LinkError>> {
        match self {
            Link::Tcp(stream) => Pin::new(stream)
                .poll_read(context, buffer)
                .map_err(LinkError::Io),
            Link::Tunnel(tunnel) => tunnel.poll_read(context, buffer).map_err(LinkError::Jump),
            Link::Proxy(proxy) => proxy.poll_read(context, buffer).map_err(LinkError::Io),
            Link::Shared(stream) => Pin::new(stream)
                .poll_read(context, buffer)
                .map_err(LinkError::Io),
        }
    }

    /// Whether there is room to write.
    pub(crate) fn poll_write_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Link::Tcp(stream) => stream.poll_write_ready(context),
            Link::Tunnel(tunnel) => tunnel.poll_write_ready(context).map(Ok),
            Link::Proxy(proxy) => proxy.poll_write_ready(context),
            Link::Shared(stream) => stream.poll_write_ready(context),
        }
    }

    /// Sends the acknowledgement of what was read without the kernel's delay, this once (tcp(7), TCP_QUICKACK).
    pub(crate) fn acknowledge_at_once(&self) {
        match self {
            // It only saves time: if it cannot be set, nothing is lost.
            Link::Tcp(stream) => drop(set_tcp_quickack(stream, true)),
            Link::Tunnel(_) | Link::Proxy(_) | Link::Shared(_) => {}
        }
    }

    /// Has this congestion control decide how fast is sent (tcp(7), TCP_CONGESTION).
    pub(crate) fn control_congestion_by(&self, name: &str) {
        match self {
            // It was tried out before, and only saves time.
            Link::Tcp(stream) => drop(set_tcp_congestion(stream, name)),
            Link::Tunnel(_) | Link::Proxy(_) | Link::Shared(_) => {}
        }
    }

    /// Wakes whoever reads only when so many octets are there, or none will come any more (socket(7), SO_RCVLOWAT).
    pub(crate) fn wake_for(&self, octets: usize) {
        match self {
            // It only saves waking up for nothing.
            Link::Tcp(stream) => drop(hints::set_receive_low_water(stream, octets)),
            Link::Tunnel(_) | Link::Proxy(_) | Link::Shared(_) => {}
        }
    }

    /// Reads what is there although nobody was woken for so little; `None` if there is nothing.
    pub(crate) fn read_at_once(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match self {
            Link::Tcp(stream) => match recv(stream, buffer, RecvFlags::DONTWAIT) {
                Ok((octets, _)) => Ok(Some(octets)),
                Err(Errno::AGAIN | Errno::INTR) => Ok(None),
                Err(error) => Err(error.into()),
            },
            // These tell of everything.
            Link::Tunnel(_) | Link::Proxy(_) | Link::Shared(_) => Ok(None),
        }
    }

    /// Writes what there is room for; `None` if there is none.
    pub(crate) fn write(&self, octets: &[u8]) -> io::Result<Option<usize>> {
        match self {
            Link::Tcp(stream) => room(stream.try_write(octets)),
            Link::Tunnel(tunnel) => tunnel.write(octets),
            Link::Proxy(proxy) => room(proxy.try_write(octets)),
            Link::Shared(stream) => room(stream.try_write(octets)),
        }
    }

    /// As [`write`](Self::write), if the link is closed next: TCP sends what is written with the end of the stream.
    pub(crate) fn write_last(&self, octets: &[u8]) -> io::Result<Option<usize>> {
        match self {
            Link::Tcp(stream) => room(stream.try_io(Interest::WRITABLE, || {
                Ok(send(stream, octets, SendFlags::MORE | SendFlags::NOSIGNAL)?)
            })),
            Link::Tunnel(tunnel) => tunnel.write(octets),
            Link::Proxy(_) | Link::Shared(_) => self.write(octets),
        }
    }
}

fn room(written: io::Result<usize>) -> io::Result<Option<usize>> {
    match written {
        Ok(octets) => Ok(Some(octets)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}
