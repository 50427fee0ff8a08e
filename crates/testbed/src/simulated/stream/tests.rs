#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::super::fault::Position;
use super::packets::{Gate, PacketCounter};

/// A version line and packets as one direction of a connection has them: each packet a message
/// number and a size of padding and payload, tags from NEWKEYS (21) on. Returns the stream and where
/// the line and each packet end.
fn stream(packets: &[(u8, usize)]) -> (Vec<u8>, Vec<usize>) {
    let mut bytes = b"SSH-2.0-x\r\n".to_vec();
    let mut ends = vec![bytes.len()];
    let mut sealed = false;
    for &(message, size) in packets {
        let length = size + 2;
        bytes.extend((length as u32).to_be_bytes());
        bytes.extend([4, message]);
        bytes.extend(vec![message; size + if sealed { 16 } else { 0 }]);
        sealed |= message == 21;
        ends.push(bytes.len());
    }
    (bytes, ends)
}

fn packets() -> impl Strategy<Value = Vec<(u8, usize)>> {
    let message = prop_oneof![Just(21_u8), 0_u8..100];
    proptest::collection::vec((message, 0_usize..300), 1..12)
}

proptest! {
    #[test]
    fn a_gate_at_a_message_ends_with_its_packet_however_the_stream_is_cut(
        packets in packets(),
        chunk in 1_usize..64,
        at in 0_usize..12,
    ) {
        let (bytes, ends) = stream(&packets);
        let mut gate = Gate::new(Position::Message(at as u64));
        let mut passed = 0;
        for piece in bytes.chunks(chunk) {
            let admitted = gate.admits(piece, passed as u64, None);
            gate.pass(&piece[..admitted]);
            passed += admitted;
            if admitted < piece.len() {
                break;
            }
        }
        let end = ends.get(at).copied();
        prop_assert_eq!(passed, end.unwrap_or(bytes.len()));
        prop_assert_eq!(gate.is_reached(passed as u64, None), end.is_some());
    }

    #[test]
    fn a_counter_asked_at_any_place_agrees_with_the_ends_of_packets(
        packets in packets(),
        asked in 0_usize..12,
    ) {
        let (bytes, ends) = stream(&packets);
        let mut counter = PacketCounter::new();
        for (place, byte) in bytes.iter().enumerate() {
            let reached = ends.get(asked).is_some_and(|&end| place >= end);
            prop_assert_eq!(counter.reached(asked as u64), reached);
            counter.pass(&[*byte]);
        }
    }
}

#[test]
fn a_gate_at_a_byte_admits_exactly_so_many() {
    let gate = Gate::new(Position::Byte(10));
    assert_eq!(gate.admits(&[0; 4], 0, None), 4);
    assert_eq!(gate.admits(&[0; 4], 8, None), 2);
    assert_eq!(gate.admits(&[0; 4], 10, None), 0);
    assert!(!gate.is_reached(9, None));
    assert!(gate.is_reached(10, None));
}

#[test]
fn a_gate_after_authentication_is_open_until_then() {
    let gate = Gate::new(Position::AfterAuthentication(3));
    assert_eq!(gate.admits(&[0; 9], 1000, None), 9);
    assert!(!gate.is_reached(1000, None));
    assert_eq!(gate.admits(&[0; 9], 1000, Some(1000)), 3);
    assert!(gate.is_reached(1003, Some(1000)));
}

#[test]
fn newkeys_counts_as_such_only_before_encryption() {
    // The second NEWKEYS is ciphertext that happens to look like one; nothing may change there.
    let (bytes, ends) = stream(&[(21, 10), (21, 10), (94, 10)]);
    let counter = PacketCounter::new();
    for (index, end) in ends.iter().enumerate() {
        assert_eq!(counter.within(index as u64, &bytes), *end);
    }
}
