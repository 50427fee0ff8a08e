//! Servers on loopback that a forward may lead to, and places that nobody else listens at.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddrV4, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;

use super::DEADLINE;

/// An address of this process alone, and a port of it that nobody has.
pub(crate) fn free_place() -> SocketAddrV4 {
    static NEXT: AtomicU16 = AtomicU16::new(20_000);
    let [high, low] = ((std::process::id() % 65_000) as u16 + 257).to_be_bytes();
    let address = Ipv4Addr::new(127, 99, high, low);
    SocketAddrV4::new(address, NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A server that sends back what it reads, and ends each connection when that has ended. Returns where it is.
pub(crate) fn echo() -> SocketAddrV4 {
    let listener = TcpListener::bind(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            thread::spawn(move || {
                let mut back = stream.try_clone().unwrap();
                // Whoever has connected may have gone.
                let _ = std::io::copy(&mut stream, &mut back);
                let _ = back.shutdown(Shutdown::Write);
            });
        }
    });
    SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)
}

/// The same at a unix socket.
pub(crate) fn echo_at(path: &Path) {
    let listener = UnixListener::bind(path).unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            thread::spawn(move || {
                let mut back = stream.try_clone().unwrap();
                let _ = std::io::copy(&mut stream, &mut back);
                let _ = back.shutdown(Shutdown::Write);
            });
        }
    });
}

/// Connects, with a deadline for whatever is read and written.
pub(crate) fn connect(to: SocketAddrV4) -> TcpStream {
    let stream = TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream.set_write_timeout(Some(DEADLINE)).unwrap();
    stream
}

/// Connects to a unix socket.
pub(crate) fn connect_at(path: &Path) -> UnixStream {
    let stream = UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream
}

/// What both kinds of connection can do.
pub(crate) trait Duplex: Read + Write + Sized + Send + 'static {
    fn twin(&self) -> Self;
    fn end_of_write(&self);
}

impl Duplex for TcpStream {
    fn twin(&self) -> Self {
        self.try_clone().unwrap()
    }

    fn end_of_write(&self) {
        self.shutdown(Shutdown::Write).unwrap();
    }
}

impl Duplex for UnixStream {
    fn twin(&self) -> Self {
        self.try_clone().unwrap()
    }

    fn end_of_write(&self) {
        self.shutdown(Shutdown::Write).unwrap();
    }
}

/// Sends octets and the end of them, and returns all that comes until the other end.
pub(crate) fn exchange(mut stream: impl Duplex, octets: &[u8]) -> Vec<u8> {
    let mut writing = stream.twin();
    let sent = octets.to_vec();
    let writer = thread::spawn(move || {
        writing.write_all(&sent).unwrap();
        writing.end_of_write();
    });
    let mut came = Vec::new();
    stream.read_to_end(&mut came).unwrap();
    writer.join().unwrap();
    came
}

/// All that comes for a request that is not ended; nothing if the other end closes at once, however.
pub(crate) fn answer(mut stream: impl Duplex, octets: &[u8]) -> Vec<u8> {
    let _ = stream.write_all(octets);
    let mut came = Vec::new();
    let _ = stream.read_to_end(&mut came);
    came
}
