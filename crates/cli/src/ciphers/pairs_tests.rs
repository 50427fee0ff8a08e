#![allow(clippy::unwrap_used)]

use super::*;

fn names(list: &str) -> Vec<String> {
    list.split_whitespace().map(str::to_owned).collect()
}

fn server() -> ServerLists {
    ServerLists {
        kex: names(
            "sntrup761x25519-sha512@openssh.com curve25519-sha256 unknown kex-strict-s-v00@openssh.com",
        ),
        host_keys: Vec::new(),
        ciphers: names("chacha20-poly1305@openssh.com aes128-ctr aes256-cbc"),
        macs: names("umac-64-etm@openssh.com hmac-sha2-256-etm@openssh.com hmac-sha1"),
    }
}

fn ssh() -> Installed {
    Installed {
        ciphers: names("aes128-ctr chacha20-poly1305@openssh.com aes256-cbc"),
        macs: names("umac-64-etm@openssh.com hmac-sha2-256-etm@openssh.com hmac-sha1"),
        kex: names("sntrup761x25519-sha512@openssh.com curve25519-sha256"),
        default_ciphers: names("chacha20-poly1305@openssh.com aes128-ctr"),
        default_macs: names("umac-64-etm@openssh.com hmac-sha1"),
        default_kex: names("sntrup761x25519-sha512@openssh.com curve25519-sha256"),
    }
}

const ALL: Wanted<'_> = Wanted {
    ciphers: &[],
    macs: &[],
};

#[test]
fn native_measures_what_it_has_and_ssh_the_rest_and_what_may_be_recommended() {
    let found = combinations(&server(), true, Some(&ssh()), &ALL);
    let shown: Vec<String> = found
        .iter()
        .map(|(pair, by)| format!("{} {}", pair.name(), by.name()))
        .collect();
    assert_eq!(
        shown,
        [
            "chacha20-poly1305@openssh.com native",
            "chacha20-poly1305@openssh.com ssh",
            "aes128-ctr umac-64-etm@openssh.com ssh",
            "aes128-ctr hmac-sha2-256-etm@openssh.com native",
            "aes128-ctr hmac-sha2-256-etm@openssh.com ssh",
            "aes128-ctr hmac-sha1 native",
            "aes256-cbc umac-64-etm@openssh.com ssh",
            "aes256-cbc hmac-sha2-256-etm@openssh.com ssh",
            "aes256-cbc hmac-sha1 ssh",
        ]
    );
    let by_ssh = combinations(&server(), false, Some(&ssh()), &ALL);
    assert!(by_ssh.len() == 7 && by_ssh.iter().all(|(_, by)| *by == By::Ssh));
    assert!(
        combinations(&server(), true, None, &ALL)
            .iter()
            .all(|(_, by)| *by == By::Native)
    );
}

#[test]
fn a_wish_for_some_leaves_the_others_out() {
    let (ciphers, macs) = (names("aes128-ctr"), names("hmac-sha1"));
    let wanted = Wanted {
        ciphers: &ciphers,
        macs: &macs,
    };
    let found = combinations(&server(), true, Some(&ssh()), &wanted);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].0.name(), "aes128-ctr hmac-sha1");
}

#[test]
fn weak_ones_and_those_that_decrypt_first_are_not_recommended() {
    let pair = |cipher: &str, mac: Option<&str>| Pair {
        cipher: cipher.to_owned(),
        mac: mac.map(str::to_owned),
    };
    assert!(pair("aes128-gcm@openssh.com", None).is_recommendable());
    assert!(pair("aes128-ctr", Some("umac-64-etm@openssh.com")).is_recommendable());
    assert!(!pair("aes128-ctr", Some("hmac-sha2-256")).is_recommendable());
    assert!(!pair("aes128-ctr", Some("hmac-sha1-etm@openssh.com")).is_recommendable());
    assert!(!pair("aes128-cbc", Some("hmac-sha2-256-etm@openssh.com")).is_recommendable());
}

#[test]
fn the_clients_order_decides_what_is_negotiated() {
    let ssh = ssh();
    let first = negotiated(&server(), &ssh.default_ciphers, &ssh.default_macs).unwrap();
    assert_eq!(first.name(), "chacha20-poly1305@openssh.com");
    let second = negotiated(&server(), &names("x aes128-ctr"), &ssh.default_macs).unwrap();
    assert_eq!(second.name(), "aes128-ctr umac-64-etm@openssh.com");
    assert_eq!(negotiated(&server(), &names("x"), &ssh.default_macs), None);
}

#[test]
fn key_exchanges_are_those_of_both_sides() {
    let server = ServerLists {
        kex: names("curve25519-sha256 of-ssh group1-sha1 unknown kex-strict-s-v00@openssh.com"),
        ..server()
    };
    let ssh = Installed {
        kex: names("of-ssh curve25519-sha256 group1-sha1"),
        ..ssh()
    };
    let found = |native, ssh| {
        let found = key_exchanges(&server, native, ssh).into_iter();
        let found = found.map(|(name, by)| format!("{name} {}", by.name()));
        found.collect::<Vec<_>>()
    };
    assert_eq!(
        found(true, Some(&ssh)),
        [
            "curve25519-sha256 native",
            "curve25519-sha256 ssh",
            "of-ssh ssh",
            "group1-sha1 ssh",
        ]
    );
    assert_eq!(found(true, None), ["curve25519-sha256 native"]);
    assert_eq!(found(false, Some(&ssh))[0], "curve25519-sha256 ssh");
}
