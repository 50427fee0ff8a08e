//! A packet as a TUN device with IFF_VNET_HDR passes it: a `virtio_net_hdr` of ten bytes (linux/virtio_net.h),
//! then one IP packet, which may be a TCP packet of many segments that nobody has cut yet.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::ops::Range;

/// `struct virtio_net_hdr`, in the machine's byte order: flags, gso_type, hdr_len, gso_size, csum_start,
/// csum_offset.
const VNET_HEADER: usize = 10;
const GSO_TYPE: usize = 1;
const HDR_LEN: Range<usize> = 2..4;
const GSO_SIZE: Range<usize> = 4..6;
const GSO_NONE: u8 = 0;
/// Set beside the type when the segments carry ECN's CWR.
const GSO_ECN: u8 = 0x80;

/// An IPv4 packet's largest length, with the header before it.
pub(super) const LARGEST_PACKET: usize = VNET_HEADER + 65_535;

const PROTOCOL_TCP: u8 = 6;
const SMALLEST_IPV4_HEADER: usize = 20;
const SMALLEST_TCP_HEADER: usize = 20;

/// TCP's flags (RFC 9293, section 3.1), as a mask of the header's fourteenth byte.
pub mod flag {
    /// No more data from the sender.
    pub const FIN: u8 = 0x01;
    /// The first packet of a direction.
    pub const SYN: u8 = 0x02;
    /// The connection is reset.
    pub const RST: u8 = 0x04;
    /// Give what there is to the receiver.
    pub const PSH: u8 = 0x08;
    /// The acknowledgement number counts.
    pub const ACK: u8 = 0x10;
    /// Congestion window reduced (RFC 3168).
    pub const CWR: u8 = 0x80;
}

/// One packet of one or more segments, with its `virtio_net_hdr`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Packet {
    bytes: Vec<u8>,
    tcp: Option<Tcp>,
}

/// Where things are in a TCP packet over IPv4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Tcp {
    /// Where the TCP header begins, counted from the IP header.
    header: usize,
    /// Where the payload begins, counted from the IP header.
    payload: usize,
    /// The payload's length, all segments together.
    payload_len: usize,
    /// The most payload that a segment carries.
    segment_payload: usize,
}

/// What the monitor wants to know of a TCP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TcpSummary {
    pub(super) source: SocketAddrV4,
    pub(super) destination: SocketAddrV4,
    pub(super) flags: u8,
    pub(super) payload_len: usize,
}

impl Packet {
    /// What was read from a TUN device; None if it is shorter than its own header.
    pub(super) fn new(bytes: Vec<u8>) -> Option<Packet> {
        let ip = bytes.get(VNET_HEADER..)?;
        let gso_type = bytes[GSO_TYPE] & !GSO_ECN;
        let segment_payload =
            (gso_type != GSO_NONE).then(|| usize::from(native_u16(&bytes, GSO_SIZE)));
        let tcp = locate_tcp(ip, segment_payload);
        Some(Packet { bytes, tcp })
    }

    /// All bytes, as they are written to a TUN device.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The memory that held the bytes.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    fn ip(&self) -> &[u8] {
        &self.bytes[VNET_HEADER..]
    }

    /// The number of packets that this would be on a wire.
    pub(super) fn segments(&self) -> usize {
        self.tcp.map_or(1, |tcp| {
            tcp.payload_len.div_ceil(tcp.segment_payload).max(1)
        })
    }

    /// The length of one segment on a wire, IP header included.
    pub(super) fn segment_len(&self, segment: usize) -> usize {
        let Some(tcp) = self.tcp else {
            return self.ip().len();
        };
        let range = tcp.payload_of(&(segment..segment + 1));
        tcp.payload + range.len()
    }

    /// The length of all segments on a wire, each with its IP and TCP headers.
    pub(super) fn wire_len(&self) -> usize {
        self.tcp.map_or(self.ip().len(), |tcp| {
            tcp.payload * self.segments() + tcp.payload_len
        })
    }

    /// The ends, flags and length of a TCP packet; None for everything else.
    pub(super) fn summary(&self) -> Option<TcpSummary> {
        let tcp = self.tcp?;
        let ip = self.ip();
        let address = |at: usize| Ipv4Addr::new(ip[at], ip[at + 1], ip[at + 2], ip[at + 3]);
        let port = |at: usize| u16::from_be_bytes([ip[tcp.header + at], ip[tcp.header + at + 1]]);
        Some(TcpSummary {
            source: SocketAddrV4::new(address(12), port(0)),
            destination: SocketAddrV4::new(address(16), port(2)),
            flags: ip[tcp.header + 13],
            payload_len: tcp.payload_len,
        })
    }

    /// A packet of some of this one's segments, made as a network card cuts them: lengths, sequence number
    /// and checksums are set right, FIN and PSH stay with the last segment, CWR with the first.
    pub(super) fn cut(&self, segments: Range<usize>) -> Packet {
        let Some(tcp) = self.tcp.filter(|_| segments != (0..self.segments())) else {
            return self.clone();
        };
        let range = tcp.payload_of(&segments);
        let payload_at = VNET_HEADER + tcp.payload;
        let mut bytes = Vec::with_capacity(payload_at + range.len());
        bytes.extend_from_slice(&self.bytes[..payload_at]);
        bytes.extend_from_slice(&self.bytes[payload_at + range.start..payload_at + range.end]);

        let headers = u16::try_from(tcp.payload).unwrap_or(u16::MAX);
        bytes[HDR_LEN].copy_from_slice(&headers.to_ne_bytes());
        if segments.len() <= 1 {
            bytes[GSO_TYPE] = GSO_NONE;
            bytes[GSO_SIZE].fill(0);
        }
        let ip = &mut bytes[VNET_HEADER..];
        set_ipv4_fields(ip, tcp.header, segments.start);
        set_tcp_fields(ip, &tcp, &range);
        Packet {
            tcp: Some(Tcp {
                payload_len: range.len(),
                ..tcp
            }),
            bytes,
        }
    }
}

impl Tcp {
    /// Which bytes of the payload these segments carry.
    fn payload_of(&self, segments: &Range<usize>) -> Range<usize> {
        let at = |segment: usize| (segment * self.segment_payload).min(self.payload_len);
        at(segments.start)..at(segments.end)
    }
}

/// Find the headers (RFC 791, section 3.1; RFC 9293, section 3.1). None unless it is a whole TCP packet over
/// IPv4: fragments and everything else pass the line uncut and unread.
fn locate_tcp(ip: &[u8], segment_payload: Option<usize>) -> Option<Tcp> {
    if ip.len() < SMALLEST_IPV4_HEADER || ip[0] >> 4 != 4 || ip[9] != PROTOCOL_TCP {
        return None;
    }
    let more_fragments_or_offset = u16::from_be_bytes([ip[6], ip[7]]) & 0x3fff;
    let header = usize::from(ip[0] & 0x0f) * 4;
    if more_fragments_or_offset != 0 || ip.len() < header + SMALLEST_TCP_HEADER {
        return None;
    }
    let payload = header + usize::from(ip[header + 12] >> 4) * 4;
    let payload_len = ip.len().checked_sub(payload)?;
    Some(Tcp {
        header,
        payload,
        payload_len,
        segment_payload: segment_payload
            .filter(|&size| size > 0)
            .unwrap_or(payload_len.max(1)),
    })
}

/// The total length, the identification and the header's checksum.
fn set_ipv4_fields(ip: &mut [u8], header_len: usize, first_segment: usize) {
    let length = u16::try_from(ip.len()).unwrap_or(u16::MAX);
    let identification = u16::from_be_bytes([ip[4], ip[5]]);
    let skipped = u16::try_from(first_segment).unwrap_or(u16::MAX);
    ip[2..4].copy_from_slice(&length.to_be_bytes());
    ip[4..6].copy_from_slice(&identification.wrapping_add(skipped).to_be_bytes());
    ip[10..12].fill(0);
    let checksum = !ones_complement_sum(&ip[..header_len]);
    ip[10..12].copy_from_slice(&checksum.to_be_bytes());
}

/// The sequence number, the flags, and the sum over the pseudo-header, which is what the checksum's field
/// holds while the checksum itself is left to the device (VIRTIO_NET_HDR_F_NEEDS_CSUM).
fn set_tcp_fields(ip: &mut [u8], tcp: &Tcp, range: &Range<usize>) {
    let length = u16::try_from(ip.len() - tcp.header).unwrap_or(u16::MAX);
    let mut pseudo_header = [0; 12];
    pseudo_header[..8].copy_from_slice(&ip[12..20]);
    pseudo_header[9] = PROTOCOL_TCP;
    pseudo_header[10..].copy_from_slice(&length.to_be_bytes());

    let header = &mut ip[tcp.header..];
    let sequence = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
    let skipped = u32::try_from(range.start).unwrap_or(u32::MAX);
    header[4..8].copy_from_slice(&sequence.wrapping_add(skipped).to_be_bytes());
    if range.end < tcp.payload_len {
        header[13] &= !(flag::FIN | flag::PSH);
    }
    if range.start > 0 {
        header[13] &= !flag::CWR;
    }
    header[16..18].copy_from_slice(&ones_complement_sum(&pseudo_header).to_be_bytes());
}

/// RFC 1071's sum of 16-bit words, carries added in.
fn ones_complement_sum(bytes: &[u8]) -> u16 {
    let mut sum: u32 = bytes
        .chunks(2)
        .map(|pair| {
            u32::from(u16::from_be_bytes([
                pair[0],
                pair.get(1).copied().unwrap_or(0),
            ]))
        })
        .sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    u16::try_from(sum).unwrap_or(u16::MAX)
}

fn native_u16(bytes: &[u8], at: Range<usize>) -> u16 {
    u16::from_ne_bytes([bytes[at.start], bytes[at.start + 1]])
}

#[cfg(test)]
#[path = "packet_tests.rs"]
pub(super) mod tests;
