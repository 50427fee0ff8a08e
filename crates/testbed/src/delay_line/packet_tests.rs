#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;

const GSO_TCPV4: u8 = 1;
const HEADERS: usize = 40;
const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);

/// A TCP packet as TUN would give it.
#[derive(Clone)]
pub(in super::super) struct Sample {
    pub(in super::super) to_server: bool,
    pub(in super::super) client_port: u16,
    pub(in super::super) flags: u8,
    pub(in super::super) payload: Vec<u8>,
    /// The segments' payload; None for a packet of one segment.
    pub(in super::super) segment: Option<u16>,
}

impl Sample {
    pub(in super::super) fn to_server(flags: u8, payload_len: usize) -> Sample {
        Sample {
            to_server: true,
            client_port: 40_000,
            flags,
            payload: (0..payload_len)
                .map(|at| u8::try_from(at % 251).unwrap())
                .collect(),
            segment: None,
        }
    }

    pub(in super::super) fn packet(&self) -> Packet {
        let ends = [(CLIENT, self.client_port), (SERVER, 22)];
        let [source, destination] = if self.to_server {
            ends
        } else {
            [ends[1], ends[0]]
        };
        let mut bytes = vec![1, 0];
        bytes.extend(54_u16.to_ne_bytes());
        bytes.extend(self.segment.unwrap_or(0).to_ne_bytes());
        bytes.extend(20_u16.to_ne_bytes());
        bytes.extend(16_u16.to_ne_bytes());
        if self.segment.is_some() {
            bytes[GSO_TYPE] = GSO_TCPV4;
        }
        let length = u16::try_from(HEADERS + self.payload.len()).unwrap();
        bytes.extend([0x45, 0]);
        bytes.extend(length.to_be_bytes());
        bytes.extend([0x12, 0x34, 0x40, 0, 64, PROTOCOL_TCP, 0, 0]);
        bytes.extend(source.0.octets());
        bytes.extend(destination.0.octets());
        bytes.extend(source.1.to_be_bytes());
        bytes.extend(destination.1.to_be_bytes());
        bytes.extend(1_000_u32.to_be_bytes());
        bytes.extend([0, 0, 0, 7, 0x50, self.flags, 1, 0, 0, 0, 0, 0]);
        bytes.extend(&self.payload);
        Packet::new(bytes).unwrap()
    }
}

fn large(payload_len: usize, segment: u16, flags: u8) -> Packet {
    Sample {
        segment: Some(segment),
        ..Sample::to_server(flags, payload_len)
    }
    .packet()
}

/// The payload that begins `HEADERS` after the IP header.
fn payload(packet: &Packet) -> &[u8] {
    &packet.ip()[HEADERS..]
}

fn sequence(packet: &Packet) -> u32 {
    u32::from_be_bytes(packet.ip()[24..28].try_into().unwrap())
}

/// RFC 1071, written as differently as can be: a correct header sums up to a multiple of 65,535.
fn sums_to_zero(bytes: &[u8]) -> bool {
    let sum: u64 = bytes
        .iter()
        .enumerate()
        .map(|(at, &byte)| u64::from(byte) << if at % 2 == 0 { 8 } else { 0 })
        .sum();
    sum.is_multiple_of(65_535)
}

#[test]
fn a_large_packet_counts_as_its_segments() {
    let packet = large(2 * 1448 + 100, 1448, flag::ACK);
    assert_eq!(packet.segments(), 3);
    assert_eq!(packet.segment_len(0), HEADERS + 1448);
    assert_eq!(packet.segment_len(2), HEADERS + 100);
    assert_eq!(packet.wire_len(), 3 * HEADERS + 2 * 1448 + 100);
}

#[test]
fn a_bare_acknowledgement_is_one_segment() {
    let packet = Sample::to_server(flag::ACK, 0).packet();
    assert_eq!(packet.segments(), 1);
    assert_eq!(packet.wire_len(), HEADERS);
    assert_eq!(packet.summary().unwrap().payload_len, 0);
}

#[test]
fn the_summary_names_both_ends() {
    let summary = Sample::to_server(flag::SYN, 0).packet().summary().unwrap();
    assert_eq!(summary.source.to_string(), "10.77.0.1:40000");
    assert_eq!(summary.destination.to_string(), "10.77.0.2:22");
    assert_eq!(summary.flags, flag::SYN);
}

#[test]
fn a_cut_packet_is_right_in_every_field() {
    let packet = large(4 * 100, 100, flag::ACK | flag::PSH | flag::CWR);
    let middle = packet.cut(1..3);
    assert_eq!(payload(&middle), &payload(&packet)[100..300]);
    assert_eq!(sequence(&middle), 1_100);
    assert_eq!(
        middle.ip()[33],
        flag::ACK,
        "PSH belongs to the last segment, CWR to the first"
    );
    assert_eq!(middle.ip()[2..4], 240_u16.to_be_bytes());
    assert!(sums_to_zero(&middle.ip()[..20]), "the IP header's checksum");
    assert_eq!(middle.bytes()[GSO_TYPE], GSO_TCPV4);
    // The pseudo-header's sum: its complement completes the pseudo-header to zero.
    let mut pseudo_header = [
        &middle.ip()[12..20],
        &[0, PROTOCOL_TCP],
        &220_u16.to_be_bytes(),
    ]
    .concat();
    pseudo_header.extend([!middle.ip()[36], !middle.ip()[37]]);
    assert!(sums_to_zero(&pseudo_header));

    let last = packet.cut(3..4);
    assert_eq!(last.ip()[33], flag::ACK | flag::PSH);
    assert_eq!(
        last.bytes()[GSO_TYPE],
        GSO_NONE,
        "one segment is not to be cut again"
    );
    assert_eq!(native_u16(last.bytes(), GSO_SIZE), 0);
    let first = packet.cut(0..1);
    assert_eq!(first.ip()[33], flag::ACK | flag::CWR);
}

#[test]
fn other_packets_pass_unread() {
    let whole = Sample::to_server(flag::ACK, 30).packet();
    let mut udp = whole.bytes().to_vec();
    udp[VNET_HEADER + 9] = 17;
    let mut fragment = whole.bytes().to_vec();
    fragment[VNET_HEADER + 7] = 1;
    let mut ipv6 = whole.bytes().to_vec();
    ipv6[VNET_HEADER] = 0x60;
    let mut long_offset = whole.bytes().to_vec();
    long_offset[VNET_HEADER + 32] = 0xf0;
    long_offset.truncate(VNET_HEADER + 50);
    let truncated = whole.bytes()[..VNET_HEADER + 30].to_vec();
    for bytes in [
        udp,
        fragment,
        ipv6,
        long_offset,
        truncated,
        vec![0; VNET_HEADER],
    ] {
        let wire_len = bytes.len() - VNET_HEADER;
        let packet = Packet::new(bytes).unwrap();
        assert_eq!(packet.summary(), None);
        assert_eq!(packet.segments(), 1);
        assert_eq!(packet.wire_len(), wire_len);
    }
    assert_eq!(Packet::new(vec![0; VNET_HEADER - 1]), None);
}

proptest! {
    #[test]
    fn pieces_make_the_whole(length in 1_usize..20_000, segment in 1_u16..1460, at in 0.0..1.0_f64) {
        let packet = large(length, segment, flag::ACK | flag::PSH);
        let segments = packet.segments();
        let middle = ((segments as f64 * at) as usize).clamp(1, segments);
        let front = packet.cut(0..middle);
        let mut joined = payload(&front).to_vec();
        let mut wire_len = front.wire_len();
        prop_assert_eq!(front.segments(), middle);
        if middle < segments {
            let back = packet.cut(middle..segments);
            prop_assert_eq!(sequence(&back), 1_000 + u32::try_from(joined.len()).unwrap());
            prop_assert_eq!(back.segments(), segments - middle);
            joined.extend(payload(&back));
            wire_len += back.wire_len();
            prop_assert!(sums_to_zero(&back.ip()[..20]));
        }
        prop_assert_eq!(&joined[..], payload(&packet));
        prop_assert_eq!(wire_len, packet.wire_len());
    }

    #[test]
    fn no_packet_makes_it_fall_over(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
        if let Some(packet) = Packet::new(bytes) {
            let total: usize = (0..packet.segments()).map(|segment| packet.segment_len(segment)).sum();
            prop_assert_eq!(total, packet.wire_len());
            packet.cut(0..1);
            packet.summary();
        }
    }
}
