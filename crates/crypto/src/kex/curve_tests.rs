#![allow(clippy::unwrap_used)]

use super::*;
use crate::hex::decode;
use crate::kex::KexMethod::{NistP256, NistP384, NistP521};

fn key(curve: &'static agreement::Algorithm, secret: &str) -> (Vec<u8>, CurveKey) {
    CurveKey::new(PrivateKey::from_private_key(curve, &decode(secret)).unwrap()).unwrap()
}

#[test]
fn x25519_as_in_rfc_7748_section_6_1() {
    let (alice_public, alice) = key(
        &X25519,
        "77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a",
    );
    let (bob_public, bob) = key(
        &X25519,
        "5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb",
    );
    let shared = decode("4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742");
    assert_eq!(
        alice_public,
        decode("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a")
    );
    assert_eq!(
        bob_public,
        decode("de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f")
    );
    assert_eq!(alice.agree(&bob_public, <[u8]>::to_vec).unwrap(), shared);
    assert_eq!(bob.agree(&alice_public, <[u8]>::to_vec).unwrap(), shared);
}

/// Secret and public value of the initiator, public value of the responder, shared x-coordinate.
const RFC_5903: [(&agreement::Algorithm, [&str; 5]); 3] = [
    (
        &ECDH_P256,
        [
            "c88f01f510d9ac3f70a292daa2316de544e9aab8afe84049c62a9c57862d1433",
            "dad0b65394221cf9b051e1feca5787d098dfe637fc90b9ef945d0c37725811805271a0461cdb8252d61f1c456fa3e59ab1f45b33accf5f58389e0577b8990bb3",
            "d12dfb5289c8d4f81208b70270398c342296970a0bccb74c736fc7554494bf63",
            "56fbf3ca366cc23e8157854c13c58d6aac23f046ada30f8353e74f33039872ab",
            "d6840f6b42f6edafd13116e0e12565202fef8e9ece7dce03812464d04b9442de",
        ],
    ),
    (
        &ECDH_P384,
        [
            "099f3c7034d4a2c699884d73a375a67f7624ef7c6b3c0f160647b67414dce655e35b538041e649ee3faef896783ab194",
            "",
            "e558dbef53eecde3d3fccfc1aea08a89a987475d12fd950d83cfa41732bc509d0d1ac43a0336def96fda41d0774a3571",
            "dcfbec7aacf3196472169e838430367f66eebe3c6e70c416dd5f0c68759dd1fff83fa40142209dff5eaad96db9e6386c",
            "11187331c279962d93d604243fd592cb9d0a926f422e47187521287e7156c5c4d603135569b9e9d09cf5d4a270f59746",
        ],
    ),
    (
        &ECDH_P521,
        [
            "0037ade9319a89f4dabdb3ef411aaccca5123c61acab57b5393dce47608172a095aa85a30fe1c2952c6771d937ba9777f5957b2639bab072462f68c27a57382d4a52",
            "",
            "00d0b3975ac4b799f5bea16d5e13e9af971d5e9b984c9f39728b5e5739735a219b97c356436adc6e95bb0352f6be64a6c2912d4ef2d0433ced2b6171640012d9460f",
            "015c68226383956e3bd066e797b623c27ce0eac2f551a10c2c724d9852077b87220b6536c5c408a1d2aebb8e86d678ae49cb57091f4732296579ab44fcd17f0fc56a",
            "01144c7d79ae6956bc8edb8e7c787c4521cb086fa64407f97894e5e6b2d79b04d1427e73ca4baa240a34786859810c06b3c715a3a8cc3151f2bee417996d19f3ddea",
        ],
    ),
];

#[test]
fn nist_curves_as_in_rfc_5903_section_8() {
    for (curve, [secret, public, peer_x, peer_y, shared]) in RFC_5903 {
        let (ours, key) = key(curve, secret);
        if !public.is_empty() {
            assert_eq!(ours, decode(&format!("04{public}")));
        }
        let peer = decode(&format!("04{peer_x}{peer_y}"));
        assert_eq!(key.agree(&peer, <[u8]>::to_vec).unwrap(), decode(shared));
    }
}

/// Points of low order and their like: RFC 7748 section 7, RFC 8731 section 3.
const LOW_ORDER: [&str; 7] = [
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0100000000000000000000000000000000000000000000000000000000000000",
    "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
    "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
];

#[test]
fn points_that_make_the_secret_zero_are_refused() {
    for point in LOW_ORDER {
        let (_, key) = CurveKey::generate(KexMethod::X25519).unwrap();
        assert_eq!(
            key.agree(&decode(point), |_| ()),
            Err(KexError::PublicValue),
            "{point}"
        );
    }
}

#[test]
fn points_off_the_curve_are_refused() {
    for method in [NistP256, NistP384, NistP521] {
        let (mut public, _) = CurveKey::generate(method).unwrap();
        let last = public.len() - 1;
        public[last] ^= 1;
        let (_, key) = CurveKey::generate(method).unwrap();
        assert_eq!(
            key.agree(&public, |_| ()),
            Err(KexError::PublicValue),
            "{method:?}"
        );
    }
}

#[test]
fn other_encodings_of_points_are_refused() {
    for (method, len) in [(NistP256, 65), (NistP384, 97), (NistP521, 133)] {
        let (public, _) = CurveKey::generate(method).unwrap();
        let compressed = [&[2 + (public[len - 1] & 1)], &public[1..=len / 2]].concat();
        for (peer, problem) in [
            (
                compressed,
                KexError::PublicLength {
                    expected: len,
                    found: len / 2 + 1,
                },
            ),
            (
                vec![0],
                KexError::PublicLength {
                    expected: len,
                    found: 1,
                },
            ),
            (
                vec![],
                KexError::PublicLength {
                    expected: len,
                    found: 0,
                },
            ),
            (vec![0; len], KexError::PublicValue),
            (
                [&[6 + (public[len - 1] & 1)], &public[1..]].concat(),
                KexError::PublicValue,
            ),
        ] {
            let (_, key) = CurveKey::generate(method).unwrap();
            assert_eq!(key.agree(&peer, |_| ()), Err(problem), "{method:?}");
        }
    }
}
