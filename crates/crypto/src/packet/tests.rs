#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;
use crate::cipher::{Cipher, Mac};
use crate::hex::decode;

fn ramp(len: usize, first: u8) -> Vec<u8> {
    (0..len).map(|i| first.wrapping_add(i as u8)).collect()
}

/// Every cipher, each with every MAC unless it authenticates by itself.
fn protections() -> impl Iterator<Item = (Cipher, Option<Mac>)> {
    Cipher::ALL.iter().flat_map(|cipher| {
        let macs: Vec<Option<Mac>> = match cipher.is_aead() {
            true => vec![None],
            false => Mac::ALL.iter().copied().map(Some).collect(),
        };
        macs.into_iter().map(|mac| (*cipher, mac))
    })
}

fn pair((cipher, mac): (Cipher, Option<Mac>)) -> (Sealer, Opener) {
    let (key, iv) = (ramp(cipher.key_len(), 1), ramp(cipher.iv_len(), 0xf0));
    let mac_key = ramp(mac.map_or(0, Mac::key_len), 0x80);
    let sealer = Sealer::new(cipher, mac, &key, &iv, &mac_key).unwrap();
    (
        sealer,
        Opener::new(cipher, mac, &key, &iv, &mac_key).unwrap(),
    )
}

/// packet_length || padding_length || payload || padding.
fn plain_packet(sealer: &Sealer, payload: &[u8]) -> Vec<u8> {
    let padding = sealer.padding_len(payload.len());
    let mut packet = ((1 + payload.len() + padding) as u32)
        .to_be_bytes()
        .to_vec();
    packet.push(padding as u8);
    packet.extend_from_slice(payload);
    packet.extend(ramp(padding, 0xa0));
    packet
}

#[test]
fn known_answers() {
    let rows: Vec<&str> = include_str!("../../vectors/packets.txt").lines().collect();
    assert_eq!(rows.len(), 2 * protections().count());
    for rows in rows.chunks(2) {
        let [cipher, mac, _] = rows[0].split(' ').collect::<Vec<_>>()[..] else {
            panic!("{rows:?}")
        };
        let (cipher, mac) = (Cipher::by_name(cipher).unwrap(), Mac::by_name(mac));
        let key = ramp(cipher.key_len(), 1);
        let iv = match cipher.is_aead() {
            true => [ramp(4, 0x40), vec![0xff; 8]].concat()[..cipher.iv_len()].to_vec(),
            false => [vec![0xff; 15], vec![0xfe]].concat(),
        };
        let mac_key = ramp(mac.map_or(0, Mac::key_len), 0x80);
        let mut sealer = Sealer::new(cipher, mac, &key, &iv, &mac_key).unwrap();
        let mut opener = Opener::new(cipher, mac, &key, &iv, &mac_key).unwrap();
        for (row, sequence) in rows.iter().zip([u32::MAX, 0]) {
            let mut packet = plain_packet(&sealer, b"sshoal test payload");
            sealer.seal(sequence, &mut packet, 0).unwrap();
            assert_eq!(
                packet,
                decode(row.rsplit(' ').next().unwrap()),
                "{cipher:?} {mac:?}"
            );
            let payload = opener.open(sequence, &mut packet).unwrap();
            assert_eq!(&packet[payload], b"sshoal test payload");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    /// Packets of any size one behind another, in one buffer that already holds something.
    #[test]
    fn what_is_sealed_is_opened(
        payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..3000), 1..6),
        first: u32,
        before in 0usize..10,
    ) {
        for protection in protections() {
            let (mut sealer, mut opener) = pair(protection);
            let mut stream = vec![0x55; before];
            let mut starts = vec![];
            for (i, payload) in payloads.iter().enumerate() {
                starts.push(stream.len());
                stream.extend(plain_packet(&sealer, payload));
                sealer.seal(first.wrapping_add(i as u32), &mut stream, starts[i]).unwrap();
            }
            prop_assert_eq!(&stream[..before], &vec![0x55; before]);
            for (i, payload) in payloads.iter().enumerate() {
                let sequence = first.wrapping_add(i as u32);
                let packet = &mut stream[starts[i]..];
                let head = packet[..opener.head_len()].to_vec();
                let len = opener.packet_len(sequence, &head).unwrap();
                let range = opener.open(sequence, &mut packet[..len]).unwrap();
                prop_assert_eq!(&packet[range], &payload[..]);
            }
        }
    }

    /// RFC 4253 section 6: at least four octets, at most 255, and no more than one block too many.
    #[test]
    fn padding_aligns(payload_len in 0usize..40_000) {
        for (protection, sealer) in protections().map(|p| (p, pair(p).0)) {
            let padding = sealer.padding_len(payload_len);
            let etm = protection.1.is_some_and(Mac::encrypt_then_mac);
            let counted = 1 + payload_len + padding + if protection.0.is_aead() || etm { 0 } else { 4 };
            prop_assert_eq!(counted % protection.0.block_len(), 0);
            prop_assert!((4..4 + protection.0.block_len()).contains(&padding));
        }
        let padding = Sealer::plain().padding_len(payload_len);
        prop_assert_eq!((5 + payload_len + padding) % 8, 0);
        prop_assert!((4..12).contains(&padding));
    }

    /// Nothing that a peer sends makes anything but a length or an error.
    #[test]
    fn any_head_is_a_length_or_an_error(head: [u8; 16], sequence: u32) {
        let openers = protections().map(|p| (p.1.map_or(16, Mac::tag_len), pair(p).1));
        for (tag, opener) in openers.chain([(0, Opener::plain())]) {
            match opener.packet_len(sequence, &head[..opener.head_len()]) {
                Ok(len) => prop_assert!((4 + MIN_PACKET + tag..=4 + MAX_PACKET + tag).contains(&len)),
                Err(CryptoError::PacketLength { .. } | CryptoError::Alignment { .. }) => {}
                Err(error) => prop_assert!(false, "{}", error),
            }
        }
    }
}

/// Opens as a connection does: learns the length, waits for that much, opens it.
fn receive(
    opener: &mut Opener,
    sequence: u32,
    octets: &[u8],
) -> Result<Option<Vec<u8>>, CryptoError> {
    let len = opener.packet_len(sequence, &octets[..opener.head_len()])?;
    let Some(packet) = octets.get(..len) else {
        return Ok(None);
    };
    let mut packet = packet.to_vec();
    let payload = opener.open(sequence, &mut packet)?;
    Ok(Some(packet[payload].to_vec()))
}

#[test]
fn a_flipped_bit_anywhere_is_refused() {
    for protection in protections() {
        let (mut sealer, _) = pair(protection);
        let mut sealed = plain_packet(&sealer, b"rm -rf nothing");
        sealer.seal(3, &mut sealed, 0).unwrap();
        for bit in 0..sealed.len() * 8 {
            let mut tampered = sealed.clone();
            tampered[bit / 8] ^= 1 << (bit % 8);
            // A longer length is not yet refused, but never answered with a payload.
            let (_, mut opener) = pair(protection);
            let opened = receive(&mut opener, 3, &tampered);
            assert!(!matches!(opened, Ok(Some(_))), "{protection:?} bit {bit}");
            if bit / 8 >= opener.head_len() {
                assert_eq!(
                    opened,
                    Err(CryptoError::Corrupt),
                    "{protection:?} bit {bit}"
                );
            }
        }
        let (_, mut opener) = pair(protection);
        assert_eq!(
            receive(&mut opener, 3, &sealed),
            Ok(Some(b"rm -rf nothing".to_vec()))
        );
    }
}

#[test]
fn a_packet_out_of_its_place_is_refused() {
    for protection in protections() {
        let (mut sealer, mut opener) = pair(protection);
        let mut packets = vec![];
        for sequence in 0..2 {
            let mut packet = plain_packet(&sealer, b"packet");
            sealer.seal(sequence, &mut packet, 0).unwrap();
            packets.push(packet);
        }
        // Dropping the first, as Terrapin does, must not leave a second one that opens.
        assert!(
            !matches!(receive(&mut opener, 0, &packets[1]), Ok(Some(_))),
            "{protection:?}"
        );
    }
}

/// Seals a packet whose header says what no honest sealer says.
fn hostile(
    protection: (Cipher, Option<Mac>),
    packet_length: u32,
    padding: u8,
    rest: usize,
) -> Vec<u8> {
    let (mut sealer, _) = pair(protection);
    let mut packet = packet_length.to_be_bytes().to_vec();
    packet.push(padding);
    packet.resize(5 + rest, 0);
    sealer.seal(0, &mut packet, 0).unwrap();
    packet
}

#[test]
fn lengths_out_of_range_are_refused() {
    for protection in protections() {
        for packet_length in [0, 1, 4, MAX_PACKET as u32 + 1, 0x7fff_ffff, u32::MAX] {
            let packet = hostile(protection, packet_length, 4, 59);
            let (_, mut opener) = pair(protection);
            assert_eq!(
                receive(&mut opener, 0, &packet),
                Err(CryptoError::PacketLength { packet_length }),
                "{protection:?}"
            );
        }
    }
    for packet_length in [0, 4, MAX_PACKET as u32 + 1, u32::MAX] {
        assert_eq!(
            Opener::plain().packet_len(0, &packet_length.to_be_bytes()),
            Err(CryptoError::PacketLength { packet_length })
        );
    }
}

#[test]
fn unaligned_lengths_are_refused() {
    for protection in protections() {
        let counts_length =
            !protection.0.is_aead() && !protection.1.is_some_and(Mac::encrypt_then_mac);
        for packet_length in [17, 24 + 1, 60 + 3, 64 + 4 + 1] {
            let packet = hostile(protection, packet_length, 4, 75);
            let (_, mut opener) = pair(protection);
            let block_len = protection.0.block_len();
            assert_eq!(
                receive(&mut opener, 0, &packet),
                Err(CryptoError::Alignment {
                    packet_length,
                    block_len
                })
            );
        }
        let aligned = if counts_length { 60 } else { 64 };
        let packet = hostile(protection, aligned, 4, aligned as usize - 1);
        let (_, mut opener) = pair(protection);
        assert!(matches!(receive(&mut opener, 0, &packet), Ok(Some(_))));
    }
    let unaligned = CryptoError::Alignment {
        packet_length: 13,
        block_len: 8,
    };
    assert_eq!(
        Opener::plain().packet_len(0, &[0, 0, 0, 13]),
        Err(unaligned)
    );
    assert_eq!(Opener::plain().packet_len(0, &[0, 0, 0, 12]), Ok(16));
}

#[test]
fn impossible_padding_is_refused() {
    for protection in protections() {
        let counts_length =
            !protection.0.is_aead() && !protection.1.is_some_and(Mac::encrypt_then_mac);
        let packet_length = if counts_length { 60 } else { 64 };
        for (padding, refused) in [
            (0, true),
            (3, true),
            (4, false),
            (packet_length as u8 - 2, false),
            (packet_length as u8 - 1, true),
            (packet_length as u8, true),
            (255, true),
        ] {
            let packet = hostile(
                protection,
                packet_length,
                padding,
                packet_length as usize - 1,
            );
            let (_, mut opener) = pair(protection);
            let opened = receive(&mut opener, 0, &packet);
            match refused {
                true => assert_eq!(opened, Err(CryptoError::Padding), "{padding}"),
                false => assert!(matches!(opened, Ok(Some(_))), "{padding}"),
            }
        }
    }
}

#[test]
fn the_length_may_be_asked_again() {
    for protection in protections() {
        let (mut sealer, mut opener) = pair(protection);
        for sequence in 0..3 {
            let mut packet = plain_packet(&sealer, &ramp(1000, 0));
            sealer.seal(sequence, &mut packet, 0).unwrap();
            for shown in [opener.head_len(), opener.head_len() + 1, packet.len()] {
                assert_eq!(
                    opener.packet_len(sequence, &packet[..shown]),
                    Ok(packet.len())
                );
            }
            let too_short = opener.head_len() - 1;
            assert_eq!(
                opener.packet_len(sequence, &packet[..too_short]),
                Err(CryptoError::Size {
                    expected: opener.head_len(),
                    found: too_short
                })
            );
            assert_eq!(
                opener
                    .open(sequence, &mut packet)
                    .map(|payload| payload.len()),
                Ok(1000)
            );
        }
    }
}

#[test]
fn only_whole_packets_are_opened() {
    for protection in protections() {
        let (mut sealer, mut opener) = pair(protection);
        let mut packet = plain_packet(&sealer, b"whole");
        sealer.seal(0, &mut packet, 0).unwrap();
        let expected = packet.len();
        packet.push(0);
        let too_long = CryptoError::Size {
            expected,
            found: expected + 1,
        };
        assert_eq!(opener.open(0, &mut packet), Err(too_long));
        let cut = CryptoError::Size {
            expected,
            found: expected - 1,
        };
        assert_eq!(opener.open(0, &mut packet[..expected - 1]), Err(cut));
        assert!(opener.open(0, &mut packet[..expected]).is_ok());
    }
}

#[test]
fn sealing_uses_the_room_that_is_there() {
    for protection in protections() {
        let (mut sealer, _) = pair(protection);
        let plain = plain_packet(&sealer, &ramp(500, 0));
        let mut buf = Vec::with_capacity(plain.len() + sealer.tag_len());
        buf.extend_from_slice(&plain);
        let (place, capacity) = (buf.as_ptr(), buf.capacity());
        sealer.seal(0, &mut buf, 0).unwrap();
        assert_eq!((buf.as_ptr(), buf.capacity()), (place, capacity));
        assert_eq!(buf.len(), plain.len() + sealer.tag_len());
    }
}

#[test]
fn what_is_no_packet_is_not_sealed() {
    for (mut sealer, _) in protections().map(pair) {
        for (len, start) in [(0, 0), (4, 0), (10, 6), (10, 11)] {
            let mut buf = vec![0; len];
            assert_eq!(
                sealer.seal(0, &mut buf, start),
                Err(CryptoError::Unsealable)
            );
            assert_eq!(buf, vec![0; len]);
        }
    }
}

#[test]
fn plain_packets_pass_unchanged() {
    let (mut sealer, mut opener) = (Sealer::plain(), Opener::plain());
    let plain = plain_packet(&sealer, b"before NEWKEYS");
    let mut packet = plain.clone();
    sealer.seal(0, &mut packet, 0).unwrap();
    assert_eq!(packet, plain);
    let payload = opener.open(0, &mut packet).unwrap();
    assert_eq!(&packet[payload], b"before NEWKEYS");
}

#[test]
fn keys_of_other_lengths_are_refused() {
    for (cipher, mac) in protections() {
        let (key, iv) = (ramp(cipher.key_len(), 0), ramp(cipher.iv_len(), 0));
        let mac_key = ramp(mac.map_or(0, Mac::key_len), 0);
        let new = |key: &[u8], iv: &[u8], mac_key: &[u8]| {
            let sealer = Sealer::new(cipher, mac, key, iv, mac_key).map(drop);
            assert_eq!(sealer, Opener::new(cipher, mac, key, iv, mac_key).map(drop));
            sealer
        };
        assert_eq!(new(&key, &iv, &mac_key), Ok(()));
        assert_eq!(new(&key[1..], &iv, &mac_key), Err(CryptoError::Keys));
        assert_eq!(
            new(&[&key[..], &[0]].concat(), &iv, &mac_key),
            Err(CryptoError::Keys)
        );
        if cipher.iv_len() > 0 {
            assert_eq!(new(&key, &iv[1..], &mac_key), Err(CryptoError::Keys));
        }
        if mac.is_some() {
            assert_eq!(new(&key, &iv, &mac_key[1..]), Err(CryptoError::Keys));
            let without = Sealer::new(cipher, None, &key, &iv, &mac_key).map(drop);
            assert_eq!(without, Err(CryptoError::Keys));
        }
    }
}

/// Ten thousand idle connections hold twenty thousand of these.
#[test]
fn one_direction_is_small() {
    assert!(size_of::<Sealer>() <= 96, "{}", size_of::<Sealer>());
    assert!(size_of::<Opener>() <= 96, "{}", size_of::<Opener>());
}
