//! Every algorithm that the test server shares with the client, and the extensions after it.

use sshoal_crypto::{Cipher, Mac};
use sshoal_proto::{
    ConnectionError, Credential, Event, PublicKeyCredential, Settings, SignatureAlgorithm, Signer,
};

use crate::support::{Pair, Policy, opening, pattern, settings};

/// Runs a command with some output both ways of one cipher, MAC and key exchange.
fn talks(policy: Policy) {
    let what = format!("{:?} {:?} {:?}", policy.kex, policy.ciphers, policy.macs);
    let mut settings = settings();
    settings.kex.extend(
        ["ecdh-sha2-nistp384", "ecdh-sha2-nistp521"]
            .map(|name| sshoal_crypto::KexAlgorithm::by_name(name).expect("known")),
    );
    let (mut pair, channel) = Pair::with_command(settings, policy, "print 100000");
    pair.run();
    assert_eq!(pair.error, None, "{what}");
    assert!(pair.stdout(channel) == pattern(100_000), "{what}");
    assert!(pair.events.contains(&Event::Closed(channel)), "{what}");
}

#[test]
fn every_cipher_and_mac_carries_a_session() {
    for strict in [true, false] {
        for cipher in Cipher::ALL {
            for mac in Mac::ALL {
                let mut policy = Policy::openssh();
                policy.strict = strict;
                policy.ciphers = vec![cipher.name()];
                policy.macs = vec![mac.name()];
                talks(policy);
                if cipher.is_aead() {
                    break;
                }
            }
        }
    }
}

#[test]
fn every_key_exchange_carries_a_session() {
    for name in [
        "curve25519-sha256",
        "ecdh-sha2-nistp256",
        "ecdh-sha2-nistp384",
        "ecdh-sha2-nistp521",
        "diffie-hellman-group14-sha256",
        "diffie-hellman-group-exchange-sha256",
    ] {
        let mut policy = Policy::openssh();
        policy.kex = vec![name];
        talks(policy);
    }
}

#[test]
fn the_clients_order_decides() {
    let mut policy = Policy::openssh();
    policy.ciphers = vec!["chacha20-poly1305@openssh.com", "aes256-gcm@openssh.com"];
    policy.kex = vec!["diffie-hellman-group14-sha256", "ecdh-sha2-nistp256"];
    let (mut pair, _) = Pair::with_command(settings(), policy, "true");
    pair.run();
    assert_eq!(pair.flights[1], "KEX_ECDH_INIT");
    assert_eq!(pair.server.executions.len(), 1);
}

#[test]
fn nothing_in_common_is_named() {
    let refused = |change: fn(&mut Policy)| {
        let mut policy = Policy::openssh();
        change(&mut policy);
        let mut pair = Pair::new(settings(), opening(), policy);
        pair.answer();
        pair.error.expect("an error")
    };
    let purpose = |change| match refused(change) {
        ConnectionError::NoCommonAlgorithm { purpose, .. } => purpose,
        other => panic!("{other}"),
    };
    assert_eq!(purpose(|p| p.kex = vec!["x"]), "key exchange algorithm");
    assert_eq!(
        purpose(|p| p.host_key_algorithms = vec!["ssh-dss"]),
        "host key algorithm"
    );
    assert_eq!(
        purpose(|p| p.ciphers = vec!["3des-cbc"]),
        "cipher (client to server)"
    );
    assert_eq!(
        purpose(|p| {
            p.ciphers = vec!["aes128-ctr"];
            p.macs = vec!["umac-64@openssh.com"];
        }),
        "MAC (client to server)"
    );
    let text = refused(|p| p.kex = vec!["a-kex", "b-kex"]).to_string();
    assert!(
        text.contains("curve25519-sha256,ecdh-sha2-nistp256"),
        "{text}"
    );
    assert!(text.contains("a-kex,b-kex"), "{text}");
}

#[test]
fn hostbound_signatures_are_made_where_the_server_knows_them() {
    let mut policy = Policy::openssh();
    policy
        .ext_info
        .push(("publickey-hostbound@openssh.com", "0"));
    let (mut pair, _) = Pair::with_command(settings(), policy, "true");
    pair.run();
    let method = "USERAUTH_REQUEST(publickey-hostbound-v00@openssh.com)";
    assert!(pair.flights[2].contains(method), "{:?}", pair.flights);
    assert_eq!(pair.server.executions.len(), 1);

    // Who wants them unbound gets them so.
    let mut policy = Policy::openssh();
    policy
        .ext_info
        .push(("publickey-hostbound@openssh.com", "0"));
    let unbound = Settings {
        binds_to_host_key: false,
        ..settings()
    };
    let (mut pair, _) = Pair::with_command(unbound, policy, "true");
    pair.run();
    assert!(pair.flights[2].contains("USERAUTH_REQUEST(publickey)"));
    assert_eq!(pair.server.executions.len(), 1);

    // Another version of the extension is another extension.
    let mut policy = Policy::openssh();
    policy
        .ext_info
        .push(("publickey-hostbound@openssh.com", "1"));
    let (mut pair, _) = Pair::with_command(settings(), policy, "true");
    pair.run();
    assert!(pair.flights[2].contains("USERAUTH_REQUEST(publickey)"));
}

/// The algorithm that a key of these algorithms is asked to sign with.
fn chosen(ext_info: Vec<(&'static str, &'static str)>, names: &[(&str, &str)]) -> String {
    let mut policy = Policy::openssh();
    policy.ext_info = ext_info;
    let mut pair = Pair::new(settings(), opening(), policy);
    let algorithms = names
        .iter()
        .map(|(request, signature)| SignatureAlgorithm {
            request: (*request).to_owned(),
            signature: (*signature).to_owned(),
        })
        .collect();
    pair.credentials = [Credential::PublicKey(PublicKeyCredential {
        blob: b"some key".to_vec(),
        algorithms,
        signer: Signer::External,
        probe: false,
        pipeline: true,
    })]
    .into();
    pair.run();
    let asked = pair.events.iter().find_map(|event| match event {
        Event::SignatureNeeded(request) => Some(request.algorithm.clone()),
        _ => None,
    });
    asked.expect("asked for a signature")
}

#[test]
fn server_sig_algs_chooses_among_rsa_signatures() {
    const RSA: &[(&str, &str)] = &[
        ("rsa-sha2-512", "rsa-sha2-512"),
        ("rsa-sha2-256", "rsa-sha2-256"),
    ];
    let listed = |names| vec![("server-sig-algs", names)];
    assert_eq!(
        chosen(listed("ssh-ed25519,rsa-sha2-256"), RSA),
        "rsa-sha2-256"
    );
    assert_eq!(
        chosen(listed("rsa-sha2-256,rsa-sha2-512"), RSA),
        "rsa-sha2-512"
    );
    // No list, or one that forgets them (OpenSSH 7.2 lists nothing but RSA): our best is tried.
    assert_eq!(chosen(vec![], RSA), "rsa-sha2-512");
    assert_eq!(chosen(listed("ssh-rsa"), RSA), "rsa-sha2-512");
    let listed_later = vec![
        ("no-flow-control", "p"),
        ("server-sig-algs", "rsa-sha2-256"),
    ];
    assert_eq!(chosen(listed_later, RSA), "rsa-sha2-256");

    const CERTIFICATE: &[(&str, &str)] = &[
        ("rsa-sha2-512-cert-v01@openssh.com", "rsa-sha2-512"),
        ("rsa-sha2-256-cert-v01@openssh.com", "rsa-sha2-256"),
    ];
    assert_eq!(chosen(listed("rsa-sha2-256"), CERTIFICATE), "rsa-sha2-256");
}
