//! Sockets of either kind, and how one gets to them.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::net::{Shutdown, shutdown};
use sshoal_mux::Place;
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

use super::path;

/// How long connecting may take, names included.
const CONNECT_PATIENCE: Duration = Duration::from_secs(60);

/// A connection on this side.
pub(crate) enum Connected {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Connected {
    /// Connects to there, as a server's `-R` wants it.
    pub(super) async fn to(place: &Place) -> io::Result<Connected> {
        let connect = async {
            Ok(match place {
                Place::Tcp { host, port } => {
                    Connected::tcp(TcpStream::connect((host.as_str(), *port)).await?)
                }
                Place::Unix(to) => Connected::Unix(UnixStream::connect(path(to)).await?),
            })
        };
        let late = |_| io::Error::from(io::ErrorKind::TimedOut);
        timeout(CONNECT_PATIENCE, connect).await.map_err(late)?
    }

    /// Small messages do not wait for one another, as in channels.c.
    pub(super) fn tcp(stream: TcpStream) -> Connected {
        // If it cannot be set, it is slower.
        let _ = stream.set_nodelay(true);
        Connected::Tcp(stream)
    }

    /// Waits until there may be something to read.
    pub(super) async fn readable(&self) -> io::Result<()> {
        match self {
            Connected::Tcp(stream) => stream.readable().await,
            Connected::Unix(stream) => stream.readable().await,
        }
    }

    /// Waits until there may be room.
    pub(super) async fn writable(&self) -> io::Result<()> {
        match self {
            Connected::Tcp(stream) => stream.writable().await,
            Connected::Unix(stream) => stream.writable().await,
        }
    }

    /// Reads what is there; `None` if there is nothing.
    pub(super) fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        ready(match self {
            Connected::Tcp(stream) => stream.try_read(buffer),
            Connected::Unix(stream) => stream.try_read(buffer),
        })
    }

    /// Writes what there is room for; `None` if there is none.
    pub(super) fn write(&self, octets: &[u8]) -> io::Result<Option<usize>> {
        ready(match self {
            Connected::Tcp(stream) => stream.try_write(octets),
            Connected::Unix(stream) => stream.try_write(octets),
        })
    }

    /// Nothing more comes from this side.
    pub(super) fn end_of_write(&self) {
        let socket = match self {
            Connected::Tcp(stream) => stream.as_fd(),
            Connected::Unix(stream) => stream.as_fd(),
        };
        // Whoever is at the other end may be gone.
        let _ = shutdown(socket, Shutdown::Write);
    }
}

fn ready(octets: io::Result<usize>) -> io::Result<Option<usize>> {
    match octets {
        Ok(octets) => Ok(Some(octets)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}
