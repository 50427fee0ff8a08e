//! The byte stream under a connection.

use std::io;
use std::net::SocketAddr;

use tokio::io::Interest;
use tokio::net::TcpStream;

/// A byte stream to a server.
pub(crate) enum Link {
    /// TCP.
    Tcp(TcpStream),
}

impl Link {
    pub(crate) async fn connect(address: SocketAddr) -> io::Result<Link> {
        let stream = TcpStream::connect(address).await?;
        // Our flights are written whole: waiting to fill a segment only delays them.
        stream.set_nodelay(true)?;
        Ok(Link::Tcp(stream))
    }

    /// Waits until there is something to read, or, if `also_write`, room to write.
    pub(crate) async fn ready(&self, also_write: bool) -> io::Result<()> {
        let interest = if also_write {
            Interest::READABLE | Interest::WRITABLE
        } else {
            Interest::READABLE
        };
        match self {
            Link::Tcp(stream) => stream.ready(interest).await.map(drop),
        }
    }

    /// Reads what is there; `None` if there is nothing yet, `Some(0)` at the end.
    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let result = match self {
            Link::Tcp(stream) => stream.try_read(buffer),
        };
        would_block(result)
    }

    /// Writes what there is room for; `None` if there is none.
    pub(crate) fn write(&self, octets: &[u8]) -> io::Result<Option<usize>> {
        let result = match self {
            Link::Tcp(stream) => stream.try_write(octets),
        };
        would_block(result)
    }
}

fn would_block(result: io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Ok(octets) => Ok(Some(octets)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}
