//! The socket at which the metrics are read: each connection gets one answer of HTTP/1.0, whatever it asks for.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::metrics::MetricsError;
use crate::socket_file::SocketFile;

/// Most who are answered at a time; others wait to be accepted.
pub(crate) const MAX_READERS: usize = 16;
/// The longest head of a request, octets.
const MAX_HEAD: usize = 8 * 1024;
/// How long whoever connects may take to ask and to read the answer, both together.
const PATIENCE: Duration = Duration::from_secs(5);
/// Nobody but the user and root may connect.
const MODE: u32 = 0o600;
/// What is answered, and how (Prometheus' exposition formats).
const CONTENT_TYPE: &str = "text/plain; version=0.0.4";

/// A socket that is listened at; removed when it is dropped.
pub(crate) struct Bound {
    listener: Arc<UnixListener>,
    file: SocketFile,
}

impl Bound {
    /// Listens there. A socket that is there and that nobody listens at is replaced.
    pub(crate) fn at(path: &Path) -> Result<Bound, MetricsError> {
        let unusable = |error| MetricsError::Socket {
            path: path.display().to_string(),
            error,
        };
        make_room(path)?;
        let (listener, file) = SocketFile::bind(path.to_owned(), MODE).map_err(unusable)?;
        let listener = Arc::new(listener);
        Ok(Bound { listener, file })
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        self.file.remove();
    }
}

/// Removes what a process that was killed has left.
fn make_room(path: &Path) -> Result<(), MetricsError> {
    let name = || path.display().to_string();
    match fs::symlink_metadata(path) {
        // What is wrong with the folder is told by who makes the socket.
        Err(_) => return Ok(()),
        Ok(found) if !found.file_type().is_socket() => {
            return Err(MetricsError::NoSocket { path: name() });
        }
        Ok(_) => {}
    }
    match UnixStream::connect(path) {
        Ok(_) => return Err(MetricsError::InUse { path: name() }),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
        Err(error) => {
            let path = name();
            return Err(MetricsError::Socket { path, error });
        }
    }
    fs::remove_file(path).map_err(|error| MetricsError::Socket {
        path: name(),
        error,
    })
}

/// The one that is listened at now, if there is one.
#[derive(Default)]
pub(crate) struct MetricsSocket(Mutex<Option<Bound>>);

impl MetricsSocket {
    /// Whether it is this one, and anybody can find it.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        let bound = self.locked();
        let file = bound.as_ref().map(|bound| &bound.file);
        file.is_some_and(|file| file.path() == path && file.is_there())
    }

    /// Who connects to this one is answered from now on, and to another one no more.
    pub(crate) fn replace(&self, by: Bound) {
        *self.locked() = Some(by);
    }

    /// Nobody is answered any more.
    pub(crate) fn close(&self) {
        self.locked().take();
    }

    pub(crate) fn listener(&self) -> Option<Arc<UnixListener>> {
        self.locked().as_ref().map(|bound| bound.listener.clone())
    }

    fn locked(&self) -> MutexGuard<'_, Option<Bound>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads a request and answers it.
pub(crate) fn answer(stream: &UnixStream, metrics: impl FnOnce() -> String) -> io::Result<()> {
    answer_until(stream, metrics, Instant::now() + PATIENCE)
}

fn answer_until(
    stream: &UnixStream,
    metrics: impl FnOnce() -> String,
    give_up: Instant,
) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    let head = read_head(stream, give_up)?;
    write_all(stream, &response(&head, metrics), give_up)
}

/// The request up to its empty line, or as much as is read of one.
fn read_head(mut stream: &UnixStream, give_up: Instant) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    let mut piece = [0; 1024];
    while !is_whole(&head) && head.len() < MAX_HEAD {
        stream.set_read_timeout(Some(left_until(give_up)?))?;
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(octets) => head.extend_from_slice(&piece[..octets]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(head)
}

fn write_all(mut stream: &UnixStream, mut octets: &[u8], give_up: Instant) -> io::Result<()> {
    while !octets.is_empty() {
        stream.set_write_timeout(Some(left_until(give_up)?))?;
        match stream.write(octets) {
            Ok(written) => octets = &octets[written..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn left_until(give_up: Instant) -> io::Result<Duration> {
    let left = give_up.saturating_duration_since(Instant::now());
    match left.is_zero() {
        true => Err(io::ErrorKind::TimedOut.into()),
        false => Ok(left),
    }
}

/// Whether the empty line has come that ends a request without a body.
fn is_whole(head: &[u8]) -> bool {
    head.windows(4).any(|four| four == b"\r\n\r\n") || head.windows(2).any(|two| two == b"\n\n")
}

/// What is sent back.
fn response(head: &[u8], metrics: impl FnOnce() -> String) -> Vec<u8> {
    let is_whole = is_whole(head);
    let (status, body) = match head {
        _ if !is_whole && head.len() >= MAX_HEAD => {
            ("431 Request Header Fields Too Large", String::new())
        }
        _ if !is_whole => ("400 Bad Request", String::new()),
        [b'G', b'E', b'T', b' ', ..] => ("200 OK", metrics()),
        _ => ("405 Method Not Allowed", String::new()),
    };
    let allow = match status.starts_with("405") {
        true => "Allow: GET\r\n",
        false => "",
    };
    let head = format!(
        "HTTP/1.0 {status}\r\nContent-Type: {CONTENT_TYPE}\r\nContent-Length: {}\r\n{allow}Connection: close\r\n\r\n",
        body.len()
    );
    [head.into_bytes(), body.into_bytes()].concat()
}

#[cfg(test)]
#[path = "metrics_socket_tests.rs"]
mod tests;
