//! One end of the line: a TUN device, and the file through which its packets are read and written.
//!
//! The only unsafe code of this crate. Linux offers no other way to attach a file to a TUN device than the
//! ioctls TUNSETIFF and TUNSETOFFLOAD, and no kept crate wraps them with IFF_VNET_HDR. Both calls are made
//! once for each device, on a file that this function alone holds.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use rustix::buffer::spare_capacity;
use rustix::fs::OFlags;
use rustix::io::{Errno, read};
use rustix::ioctl::{IntegerSetter, Opcode, Setter, ioctl, opcode};

use super::packet::{LARGEST_PACKET, Packet};

/// The device's name, the same in each namespace.
pub(super) const DEVICE: &str = "wan0";

/// What is shorter is copied, so that many small packets do not hold a large buffer each.
const SHORT_PACKET: usize = 8 * 1024;
/// Buffers kept for packets to come: 64 MiB.
const MAX_SPARE_BUFFERS: usize = 1024;

// linux/if_tun.h
const TUNSETIFF: Opcode = opcode::write::<c_int>(b'T', 202);
const TUNSETOFFLOAD: Opcode = opcode::write::<c_int>(b'T', 208);
const IFF_TUN: i16 = 0x0001;
const IFF_NO_PI: i16 = 0x1000;
const IFF_VNET_HDR: i16 = 0x4000;
const TUN_F_CSUM: usize = 0x01;
const TUN_F_TSO4: usize = 0x02;

/// `struct ifreq` of linux/if.h as TUNSETIFF reads it: a name, the flags, and the rest of a 24-byte union.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; 16],
    flags: i16,
    rest: [u8; 22],
}

/// A TUN device's file. Closing it removes the device.
#[derive(Debug)]
pub(super) struct Tun {
    file: File,
    /// Room for one packet each; the one that was used last is the next, while the caches may have it.
    spare: Vec<Vec<u8>>,
}

impl Tun {
    /// Make the device [`DEVICE`] in the calling thread's network namespace.
    ///
    /// With IFF_VNET_HDR, TCP segmentation and checksums are left to the device, that is to whoever reads
    /// the packets at the other end: nobody. So 64 KiB pass with one read and one write.
    pub(super) fn create() -> io::Result<Tun> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
            .open("/dev/net/tun")?;
        let mut request = InterfaceRequest {
            name: [0; 16],
            flags: IFF_TUN | IFF_NO_PI | IFF_VNET_HDR,
            rest: [0; 22],
        };
        request.name[..DEVICE.len()].copy_from_slice(DEVICE.as_bytes());
        // SAFETY: TUNSETIFF reads (and may write back) one `struct ifreq` of 40 bytes, which `Setter` keeps
        // for the call and `InterfaceRequest` lays out; the kernel keeps no pointer to it.
        unsafe { ioctl(&file, Setter::<TUNSETIFF, _>::new(request))? };
        // SAFETY: TUNSETOFFLOAD takes its flags as the argument itself, an integer, and touches no memory.
        unsafe {
            let offload = IntegerSetter::<TUNSETOFFLOAD>::new_usize(TUN_F_CSUM | TUN_F_TSO4);
            ioctl(&file, offload)?;
        }
        Ok(Tun {
            file,
            spare: Vec::new(),
        })
    }

    /// The next packet that the namespace sends; None when there is none now.
    pub(super) fn receive(&mut self) -> io::Result<Option<Packet>> {
        let mut buffer = self
            .spare
            .pop()
            .unwrap_or_else(|| Vec::with_capacity(LARGEST_PACKET));
        match read(&self.file, spare_capacity(&mut buffer)) {
            Ok(length) if length < SHORT_PACKET => {
                let packet = Packet::new(buffer.as_slice().to_vec());
                self.keep(buffer);
                Ok(packet)
            }
            Ok(_) => Ok(Packet::new(buffer)),
            Err(errno) => {
                self.keep(buffer);
                if errno == Errno::AGAIN {
                    return Ok(None);
                }
                Err(errno.into())
            }
        }
    }

    /// Take back the memory of a packet that this device gave.
    pub(super) fn recycle(&mut self, packet: Packet) {
        self.keep(packet.into_bytes());
    }

    fn keep(&mut self, mut buffer: Vec<u8>) {
        if buffer.capacity() >= LARGEST_PACKET && self.spare.len() < MAX_SPARE_BUFFERS {
            buffer.clear();
            self.spare.push(buffer);
        }
    }

    /// Hand a packet to the namespace, which refuses it while the device is down.
    pub(super) fn deliver(&mut self, packet: &Packet) -> io::Result<()> {
        self.file.write(packet.bytes()).map(|_| ())
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
