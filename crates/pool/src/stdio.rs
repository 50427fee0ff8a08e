//! A passenger's standard input, output and error: descriptors of somebody else, used without ever waiting in a system call.
//!
//! O_NONBLOCK belongs to the open file, which the passenger shares with its shell and its siblings. So pipes and terminals are
//! opened once more by /proc/self/fd where that is allowed, sockets have MSG_DONTWAIT, and files never wait for long. Only
//! where nothing else is possible the flag is set, and taken back at the end; for a terminal not even then, as in
//! OpenSSH's `channel_register_fds`.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags, fcntl_getfl, fcntl_setfl, fstat, open};
use rustix::io::{Errno, read, write};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::termios::isatty;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// What a stream is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// One of the three.
pub(crate) struct Stdio {
    descriptor: Descriptor,
    is_socket: bool,
    /// The flags to go back to.
    restore: Option<OFlags>,
}

enum Descriptor {
    /// It tells when it is ready.
    Polled(AsyncFd<OwnedFd>),
    /// It always is: a file.
    Plain(OwnedFd),
}

impl Stdio {
    pub(crate) fn new(given: OwnedFd, access: Access) -> io::Result<Stdio> {
        let kind = FileType::from_raw_mode(fstat(&given)?.st_mode);
        let (mut own, mut restore) = (given, None);
        if let FileType::Fifo | FileType::CharacterDevice = kind {
            let flags = match access {
                Access::Read => OFlags::RDONLY,
                Access::Write => OFlags::WRONLY,
            };
            let path = format!("/proc/self/fd/{}", own.as_raw_fd());
            let again = flags | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
            match open(path, again, Mode::empty()) {
                Ok(opened) => own = opened,
                Err(_) if isatty(&own) => {}
                Err(_) => {
                    let flags = fcntl_getfl(&own)?;
                    if !flags.contains(OFlags::NONBLOCK) {
                        fcntl_setfl(&own, flags | OFlags::NONBLOCK)?;
                        restore = Some(flags);
                    }
                }
            }
        }
        let interest = match access {
            Access::Read => Interest::READABLE,
            Access::Write => Interest::WRITABLE,
        };
        #[expect(
            deprecated,
            reason = "what took its place is unsafe, for types that close what they give out; OwnedFd does not"
        )]
        let polled = AsyncFd::try_with_interest(own, interest);
        let descriptor = match polled {
            Ok(polled) => Descriptor::Polled(polled),
            Err(refused) => {
                let (own, error) = refused.into_parts();
                match error.raw_os_error() == Some(Errno::PERM.raw_os_error()) {
                    // Files and /dev/null cannot be polled (epoll_ctl(2)).
                    true => Descriptor::Plain(own),
                    false => return Err(error),
                }
            }
        };
        Ok(Stdio {
            descriptor,
            is_socket: kind == FileType::Socket,
            restore,
        })
    }

    fn descriptor(&self) -> &OwnedFd {
        match &self.descriptor {
            Descriptor::Polled(polled) => polled.get_ref(),
            Descriptor::Plain(own) => own,
        }
    }

    /// Reads what is there, waiting until there is something. Nothing read is the end. Cancelling loses nothing.
    pub(crate) async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = |own: &OwnedFd, buffer: &mut [u8]| match self.is_socket {
            true => Ok(recv(own, buffer, RecvFlags::DONTWAIT)?.0),
            false => Ok(read(own, buffer)?),
        };
        match &self.descriptor {
            Descriptor::Plain(own) => read(own, buffer),
            Descriptor::Polled(polled) => {
                let action = |own: &OwnedFd| read(own, &mut *buffer);
                polled.async_io(Interest::READABLE, action).await
            }
        }
    }

    /// Writes what there is room for; `None` if there is none.
    pub(crate) fn write(&self, octets: &[u8]) -> io::Result<Option<usize>> {
        let write = |own: &OwnedFd| match self.is_socket {
            true => Ok(send(
                own,
                octets,
                SendFlags::DONTWAIT | SendFlags::NOSIGNAL,
            )?),
            false => Ok(write(own, octets)?),
        };
        let written = match &self.descriptor {
            Descriptor::Plain(own) => write(own),
            Descriptor::Polled(polled) => polled.try_io(Interest::WRITABLE, write),
        };
        match written {
            Ok(octets) => Ok(Some(octets)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Waits until there may be room.
    pub(crate) async fn writable(&self) {
        if let Descriptor::Polled(polled) = &self.descriptor {
            // What is wrong with it the next write tells.
            if let Ok(mut guard) = polled.writable().await {
                guard.retain_ready();
            }
        }
    }
}

impl Drop for Stdio {
    fn drop(&mut self) {
        if let Some(flags) = self.restore {
            // Whoever it belongs to may be gone already.
            let _ = fcntl_setfl(self.descriptor().as_fd(), flags);
        }
    }
}
