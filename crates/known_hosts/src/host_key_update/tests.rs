#![allow(clippy::unwrap_used)]

use super::*;
use crate::testing::{ecdsa, ed25519, ed25519_certificate, hashed, known_hosts, rsa, text};

const ALL: [&str; 3] = ["ssh-ed25519", "ecdsa-sha2-nistp256", "rsa-sha2-512"];

fn offer(keys: &[Vec<u8>]) -> OfferedKeys {
    OfferedKeys::parse(&request(keys), &ALL, 2048).unwrap()
}

fn request(keys: &[Vec<u8>]) -> Vec<u8> {
    prove_request(&keys.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

fn plan(lines: &[String], keys: &[Vec<u8>]) -> Result<UpdatePlan, NoUpdate> {
    known_hosts(lines).plan_update(1, &HostName::new("h"), None, &offer(keys))
}

fn plan_with_address(lines: &[String], keys: &[Vec<u8>]) -> Result<UpdatePlan, NoUpdate> {
    let address = HostName::new("10.0.0.1");
    known_hosts(lines).plan_update(1, &HostName::new("h"), Some(&address), &offer(keys))
}

fn at(line: usize) -> Location {
    Location {
        file: "known_hosts".into(),
        line,
    }
}

fn update(prove: &[usize], obsolete: &[usize]) -> Result<UpdatePlan, NoUpdate> {
    Ok(UpdatePlan {
        prove: prove.to_vec(),
        obsolete: obsolete.iter().map(|&line| at(line)).collect(),
    })
}

#[test]
fn an_offer_is_read_without_what_is_not_wanted() {
    let keys = [ed25519(1), ed25519_certificate(2), b"x".to_vec(), rsa(1, 3)];
    assert_eq!(offer(&keys).keys(), [ed25519(1), rsa(1, 1)]);
    let only = OfferedKeys::parse(&request(&keys), &["rsa-sha2-256"], 2048).unwrap();
    assert_eq!(only.keys(), [rsa(1, 1)]);
    let longer = OfferedKeys::parse(&request(&keys), &ALL, 2049).unwrap();
    assert_eq!(longer.keys(), [ed25519(1)]);
    let parse = |data: &[u8]| OfferedKeys::parse(data, &ALL, 2048);
    let twice = request(&[rsa(1, 1), rsa(1, 2)]);
    assert_eq!(parse(&twice), Err(OfferError::Duplicate));
    assert_eq!(parse(&twice[..9]), Err(OfferError::Malformed));
    let many: Vec<Vec<u8>> = (0..=64).map(ed25519).collect();
    assert_eq!(parse(&request(&many)), Err(OfferError::TooMany));
    assert_eq!(offer(&many[..64]).keys().len(), 64);
}

#[test]
fn new_keys_are_to_be_proven_and_old_ones_go() {
    let lines = [
        format!("h {}", text(&ed25519(1))),
        format!("{} {}", hashed("h", 1), text(&ed25519(2))),
        format!("x {}", text(&ed25519(3))),
        "h ssh-ed25519 AAAA".into(),
    ];
    assert_eq!(plan(&lines, &[ed25519(1), rsa(1, 1)]), update(&[1], &[2]));
    assert_eq!(plan(&lines, &[ed25519(1)]), update(&[], &[2]));
    let both = [ed25519(1), ed25519(2)];
    assert_eq!(plan(&lines, &both), Err(NoUpdate::Nothing));
    assert_eq!(plan(&lines, &[]), Err(NoUpdate::Nothing));
}

#[test]
fn lines_written_by_hand_are_left_alone() {
    let good = format!("h {}", text(&ed25519(1)));
    for hosts in [
        "h*",
        "?",
        "h,a,b",
        "@revoked h",
        "@cert-authority *",
        "!x,*",
    ] {
        let lines = [good.clone(), format!("{hosts} {}", text(&ed25519(9)))];
        let keys = [ed25519(1), ed25519(2)];
        assert_eq!(plan(&lines, &keys), Err(NoUpdate::Manual(at(2))), "{hosts}");
    }
    let two_names = [format!("h,a {}", text(&ed25519(1)))];
    assert_eq!(
        plan(&two_names, &[ed25519(1), ed25519(2)]),
        update(&[1], &[])
    );
    let damaged = [good, "@revoked h ssh-ed25519 AAAA".into()];
    let keys = [ed25519(1), ed25519(2)];
    assert_eq!(plan(&damaged, &keys), Err(NoUpdate::Manual(at(2))));
}

#[test]
fn keys_under_other_names_stop_the_update() {
    let own = format!("h {}", text(&ed25519(1)));
    let padded = [own.clone(), format!("x {}", text(&rsa(1, 2)))];
    let keys = [ed25519(1), rsa(1, 1)];
    assert_eq!(plan(&padded, &keys), Err(NoUpdate::OtherName(at(2))));
    let old = [own, format!("x {}", text(&ed25519(1)))];
    assert_eq!(plan(&old, &[ed25519(2)]), Err(NoUpdate::OtherName(at(2))));
    // Only the user's files are asked.
    let files = vec![
        (
            "user".into(),
            format!("h {}", text(&ed25519(1))).into_bytes(),
        ),
        (
            "global".into(),
            format!("x {}", text(&ed25519(2))).into_bytes(),
        ),
    ];
    let known = KnownHosts::parse(files);
    let offered = offer(&[ed25519(1), ed25519(2)]);
    let decide = |files| known.plan_update(files, &HostName::new("h"), None, &offered);
    assert_eq!(decide(1).unwrap().prove, [1]);
    assert!(decide(2).is_err());
}

#[test]
fn host_and_address_must_belong_together() {
    let key = text(&ed25519(1));
    let keys = [ed25519(1), ed25519(2)];
    let lines = |hosts: &str| [format!("{hosts} {key}")];
    assert_eq!(
        plan_with_address(&lines("h,10.0.0.1"), &keys),
        update(&[1], &[])
    );
    assert_eq!(plan_with_address(&lines("h"), &keys), update(&[1], &[]));
    let other = Err(NoUpdate::OtherName(at(1)));
    assert_eq!(plan_with_address(&lines("h,10.0.0.2"), &keys), other);
    assert_eq!(plan_with_address(&lines("x,10.0.0.1"), &keys), other);
    assert_eq!(plan(&lines("h,10.0.0.2"), &keys), update(&[1], &[]));
}

#[test]
fn only_a_known_plain_key_of_the_users_files_allows_an_update() {
    let key = text(&ed25519(1));
    let files = vec![
        (
            "user".into(),
            format!("a {key}\n@revoked r {key}").into_bytes(),
        ),
        ("global".into(), format!("b {key}").into_bytes()),
    ];
    let known = KnownHosts::parse(files);
    let allows = |name| {
        let query = crate::Query {
            names: &[HostName::new(name)],
            now: 0,
        };
        let verdict = known.judge(&query, &crate::Presented::Key(&ed25519(1)));
        known.allows_update(&verdict, 1)
    };
    assert_eq!(
        ["a", "b", "c", "r"].map(allows),
        [true, false, false, false]
    );
    let by = Location {
        file: "user".into(),
        line: 1,
    };
    let authority = true;
    assert!(!known.allows_update(&Verdict::Trusted { by, authority }, 1));
}

fn signature(algorithm: &str) -> Vec<u8> {
    prove_request(&[algorithm.as_bytes(), b"bytes"])
}

fn proofs(
    keys: &[Vec<u8>],
    algorithms: &[&str],
    by: &str,
) -> Result<Vec<(usize, String)>, ProofError> {
    let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    let signatures: Vec<Vec<u8>> = algorithms.iter().map(|name| signature(name)).collect();
    let reply = request(&signatures);
    let proofs = parse_proofs(&keys, &reply, b"session", by)?;
    for proof in &proofs {
        let name: &[u8] = b"hostkeys-prove-00@openssh.com";
        assert_eq!(
            proof.signed,
            prove_request(&[name, b"session", keys[proof.place]])
        );
        assert_eq!(
            (proof.key, proof.signature),
            (keys[proof.place], &signatures[proof.place][..])
        );
    }
    let proofs = proofs.into_iter();
    Ok(proofs.map(|p| (p.place, p.algorithm.to_string())).collect())
}

#[test]
fn proofs_come_in_the_order_of_the_keys() {
    let keys = [ed25519(1), ecdsa(2)];
    let names = ["ssh-ed25519", "ecdsa-sha2-nistp256"];
    let expected = vec![(0, names[0].into()), (1, names[1].into())];
    assert_eq!(proofs(&keys, &names, "ssh-ed25519"), Ok(expected));
    let malformed = Err(ProofError::Malformed);
    assert_eq!(proofs(&keys, &names[..1], "ssh-ed25519"), malformed);
    assert_eq!(proofs(&keys[..1], &names, "ssh-ed25519"), malformed);
    assert_eq!(
        proofs(&[b"x".to_vec()], &names[..1], "ssh-ed25519"),
        malformed
    );
    let wrong = Err(ProofError::Algorithm("rsa-sha2-512".into()));
    assert_eq!(
        proofs(&keys, &["rsa-sha2-512", names[1]], "ssh-ed25519"),
        wrong
    );
}

#[test]
fn rsa_keys_are_proven_by_the_algorithm_of_the_connection() {
    let keys = [rsa(1, 1), ed25519(1)];
    let by = |algorithm: &str, connection: &str| {
        let places = proofs(&keys, &[algorithm, "ssh-ed25519"], connection);
        places.map(|proofs| proofs.into_iter().map(|proof| proof.0).collect::<Vec<_>>())
    };
    assert_eq!(by("rsa-sha2-256", "ssh-ed25519"), Ok(vec![0, 1]));
    assert_eq!(by("rsa-sha2-512", "ssh-ed25519"), Ok(vec![0, 1]));
    assert_eq!(by("ssh-rsa", "ssh-ed25519"), Ok(vec![1]));
    assert_eq!(by("rsa-sha2-512", "rsa-sha2-512"), Ok(vec![0, 1]));
    assert_eq!(
        by("rsa-sha2-512", "rsa-sha2-512-cert-v01@openssh.com"),
        Ok(vec![0, 1])
    );
    let wrong = Err(ProofError::Algorithm("rsa-sha2-256".into()));
    assert_eq!(by("rsa-sha2-256", "rsa-sha2-512"), wrong);
}
