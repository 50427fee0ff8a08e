#![allow(clippy::unwrap_used)]

use super::*;

/// The server's side of a method, by the library's other half.
fn agree_both_ways(method: KexMethod) {
    let client = Ephemeral::generate(method, None).unwrap();
    let server = Ephemeral::generate(method, None).unwrap();
    let (to_server, to_client) = (client.public().to_vec(), server.public().to_vec());
    let (at_client, at_server) = (
        client.agree(&to_client).unwrap(),
        server.agree(&to_server).unwrap(),
    );
    assert_eq!(at_client.encoded(), at_server.encoded());
    assert!(at_client.encoded().len() > 32);
}

#[test]
fn both_sides_of_curves_and_fixed_groups_agree() {
    for method in [
        KexMethod::X25519,
        KexMethod::NistP256,
        KexMethod::NistP384,
        KexMethod::NistP521,
        KexMethod::DhGroup14,
        KexMethod::DhGroup16,
        KexMethod::DhGroup18,
    ] {
        agree_both_ways(method);
    }
}
