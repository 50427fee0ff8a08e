//! Octets and the descriptors that come with them (SCM_RIGHTS, unix(7)).

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, recvmsg};
use tokio::io::Interest;
use tokio::net::UnixStream;

/// Descriptors of one read: the kernel ends it behind the first message that has some, and OpenSSH sends one at a time.
const DESCRIPTORS: usize = 4;
/// Octets of one read: a packet with as much data as a channel takes at a time (32 KiB), and most of another.
const OCTETS: usize = 64 * 1024;

/// Reads what is there; `None` if there is nothing. No octets are the end.
pub(crate) fn receive(socket: &UnixStream) -> io::Result<Option<(Vec<u8>, Vec<OwnedFd>)>> {
    let read = socket.try_io(Interest::READABLE, || {
        let mut octets = vec![0; OCTETS];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let received = recvmsg(
            socket,
            &mut [IoSliceMut::new(&mut octets)],
            &mut ancillary,
            RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT,
        )?;
        let mut descriptors = Vec::new();
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(more) = message {
                descriptors.extend(more);
            }
        }
        if received.flags.contains(ReturnFlags::CTRUNC) {
            return Err(io::Error::other("more descriptors than fit"));
        }
        octets.truncate(received.bytes);
        Ok((octets, descriptors))
    });
    match read {
        Ok(read) => Ok(Some(read)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}
