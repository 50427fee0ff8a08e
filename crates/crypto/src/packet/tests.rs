#![allow(clippy::unwrap_used)]

use super::*;
use crate::cipher::{Cipher, Mac};

#[test]
fn every_cipher_with_every_mac_opens_what_it_sealed() {
    for cipher in Cipher::ALL {
        for mac in Mac::ALL {
            let (key, iv) = (vec![7; cipher.key_len()], vec![255; cipher.iv_len()]);
            let mac_key = vec![9; mac.key_len()];
            let mut sealer = Sealer::new(*cipher, Some(*mac), &key, &iv, &mac_key).unwrap();
            let mut opener = Opener::new(*cipher, Some(*mac), &key, &iv, &mac_key).unwrap();
            for payload_len in 1..100 {
                let payload: Vec<u8> = (0..payload_len).collect();
                let padding = sealer.padding_len(payload.len());
                let mut buf = Vec::new();
                buf.extend_from_slice(&((1 + payload.len() + padding) as u32).to_be_bytes());
                buf.push(padding as u8);
                buf.extend_from_slice(&payload);
                buf.extend_from_slice(&vec![0; padding]);
                sealer.seal(payload_len.into(), &mut buf, 0).unwrap();
                let head = &buf[..opener.head_len()];
                assert_eq!(opener.packet_len(payload_len.into(), head), Ok(buf.len()));
                let range = opener.open(payload_len.into(), &mut buf).unwrap();
                assert_eq!(&buf[range], payload);
            }
        }
    }
}
