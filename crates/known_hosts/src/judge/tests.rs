#![allow(clippy::unwrap_used)]

use super::*;
use crate::testing::{ecdsa, ed25519, foreign, hashed, known_hosts, rsa, text};

const NOW: u64 = 1000;

fn judge(known: &KnownHosts, names: &[HostName<'_>], blob: &[u8]) -> Verdict {
    known.judge(&Query { names, now: NOW }, &Presented::Key(blob))
}

fn on_22(known: &KnownHosts, blob: &[u8]) -> Verdict {
    judge(known, &[HostName::new("a")], blob)
}

fn on_2222(known: &KnownHosts, blob: &[u8]) -> Verdict {
    judge(known, &[HostName::with_port("a", 2222)], blob)
}

fn at(line: usize) -> Location {
    Location {
        file: "known_hosts".into(),
        line,
    }
}

fn trusted(line: usize) -> Verdict {
    Verdict::Trusted {
        by: at(line),
        authority: false,
    }
}

fn revoked(line: usize) -> Verdict {
    Verdict::Revoked { by: at(line) }
}

fn changed(line: usize, name: &str, by_address: bool) -> Verdict {
    Verdict::Changed(Changed {
        known: at(line),
        name: name.into(),
        by_address,
    })
}

fn unknown() -> Verdict {
    Verdict::Unknown(Unknown::default())
}

#[test]
fn a_key_is_trusted_unknown_or_changed() {
    let known = known_hosts(&[
        format!("b {}", text(&ed25519(1))),
        format!("a {}", text(&rsa(1, 1))),
        format!("a {}", text(&ed25519(2))),
    ]);
    assert_eq!(on_22(&known, &ed25519(2)), trusted(3));
    assert_eq!(on_22(&known, &rsa(1, 1)), trusted(2));
    // The last line is named, whatever its type (check_hostkeys_by_key_or_type, hostfile.c).
    assert_eq!(on_22(&known, &ed25519(1)), changed(3, "a", false));
    assert_eq!(on_22(&known, &ecdsa(1)), changed(3, "a", false));
    assert_eq!(judge(&known, &[HostName::new("c")], &ed25519(1)), unknown());
    assert_eq!(judge(&known, &[], &ed25519(1)), unknown());
}

#[test]
fn a_host_with_a_key_of_a_type_that_is_not_known_here_is_no_new_one() {
    let name = hashed("a", 1);
    for name in ["a", name.as_str(), "?"] {
        let known = known_hosts(&[format!("{name} {}", text(&foreign(1)))]);
        assert_eq!(on_22(&known, &ed25519(1)), changed(1, "a", false));
        assert_eq!(on_22(&known, &foreign(1)), changed(1, "a", false));
        assert!(known.problems().is_empty());
        let names = [HostName::new("new"), HostName::new("a")];
        assert_eq!(judge(&known, &names, &ed25519(1)), changed(1, "a", true));
        let known = known_hosts(&[
            format!("a {}", text(&ed25519(2))),
            format!("{name} {}", text(&foreign(1))),
        ]);
        assert_eq!(on_22(&known, &ed25519(2)), trusted(1));
    }
    // An authority of such a type is for no certificate that there is.
    let known = known_hosts(&[format!("@cert-authority a {}", text(&foreign(1)))]);
    assert_eq!(on_22(&known, &ed25519(1)), unknown());
}

#[test]
fn a_revocation_beats_trust_wherever_it_stands() {
    let key = ed25519(1);
    for lines in [
        [
            format!("a {}", text(&key)),
            format!("@revoked * {}", text(&key)),
        ],
        [
            format!("@revoked * {}", text(&key)),
            format!("a {}", text(&key)),
        ],
    ] {
        let known = known_hosts(&lines);
        assert!(matches!(on_22(&known, &key), Verdict::Revoked { .. }));
    }
    let elsewhere = known_hosts(&[
        format!("a {}", text(&key)),
        format!("@revoked b {}", text(&key)),
    ]);
    assert_eq!(on_22(&elsewhere, &key), trusted(1));
}

#[test]
fn a_padded_key_does_not_escape_its_revocation() {
    let known = known_hosts(&[format!("@revoked a {}", text(&rsa(1, 1)))]);
    assert_eq!(on_22(&known, &rsa(1, 2)), revoked(1));
}

#[test]
fn damaged_revocations_stay_in_force() {
    let key = text(&ed25519(1));
    let good = format!("a {key}");
    for damaged in [
        format!("@revoked a {}", key.replace("ssh-ed25519", "ssh-foo")),
        format!("@revoked a {}", &key[..key.len() - 1]),
        format!("@revoked a {}", &key[..key.len() - 4]),
        format!("@revoked a {}", &key[..key.len() - 40]),
        format!("@revoked a {key}!"),
        format!("@revoked {key}"),
        format!("@Revoked a {key}"),
        format!("@revoked @revoked a {key}"),
        format!("@revoked,a {key}"),
        format!("\u{feff}@revoked a {key}"),
        format!("@revoked a,@b {}", key.replace("ssh-ed25519", "ssh-rsa")),
        "@revoked a ssh-ed25519".into(),
        "@revoked a".into(),
    ] {
        let known = known_hosts(&[good.clone(), damaged.clone()]);
        assert_eq!(on_22(&known, &ed25519(1)), revoked(2), "{damaged}");
        assert_eq!(known.problems().len(), 1, "{damaged}");
    }
}

#[test]
fn a_damaged_revocation_spares_other_hosts_and_types() {
    let known = known_hosts(&[
        format!("a,b {}", text(&ed25519(1))),
        format!("a {}", text(&rsa(1, 1))),
        "@revoked a ssh-ed25519 damaged".into(),
        "@revoked * ssh-future AAAACnNzaC1mdXR1cmUAAAAEMTIzNA==".into(),
    ]);
    assert_eq!(on_22(&known, &ed25519(1)), revoked(3));
    assert_eq!(on_22(&known, &rsa(1, 1)), trusted(2));
    assert_eq!(
        judge(&known, &[HostName::new("b")], &ed25519(1)),
        trusted(1)
    );
}

#[test]
fn damaged_lines_grant_nothing_and_are_named() {
    let known = known_hosts(&[
        "a ssh-ed25519 AAAAC3NzaC1lZDI1NTE5".into(),
        format!(
            "@cert-authority a {}",
            text(&rsa(1, 1)).replace("ssh-rsa", "ssh-dss")
        ),
    ]);
    let Verdict::Unknown(Unknown {
        unusable,
        certificate: None,
    }) = on_22(&known, &ed25519(1))
    else {
        panic!("not unknown");
    };
    let lines: Vec<_> = unusable.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "known_hosts:1: the key is not a whole ssh-ed25519 key",
            "known_hosts:2: the key is not a whole ssh-dss key",
        ]
    );
}

#[test]
fn a_host_unknown_on_its_port_may_be_known_by_its_bare_name() {
    let known = known_hosts(&[format!("a {}", text(&ed25519(1)))]);
    assert_eq!(on_2222(&known, &ed25519(1)), trusted(1));
    // Another key there says nothing about this port.
    assert_eq!(on_2222(&known, &ed25519(2)), unknown());

    let known = known_hosts(&[
        format!("a {}", text(&ed25519(1))),
        format!("[a]:2222 {}", text(&ed25519(2))),
    ]);
    assert_eq!(on_2222(&known, &ed25519(2)), trusted(2));
    assert_eq!(on_2222(&known, &ed25519(1)), changed(2, "[a]:2222", false));
    assert_eq!(on_22(&known, &ed25519(2)), changed(1, "a", false));
}

#[test]
fn a_key_revoked_by_the_bare_name_is_no_new_key() {
    let known = known_hosts(&[format!("@revoked a {}", text(&ed25519(1)))]);
    assert_eq!(on_2222(&known, &ed25519(1)), revoked(1));
}

#[test]
fn an_address_can_contradict_but_not_vouch() {
    let known = known_hosts(&[
        format!("a {}", text(&ed25519(1))),
        format!("10.0.0.1 {}", text(&ed25519(2))),
        format!("10.0.0.2 {}", text(&ed25519(1))),
        format!("@revoked 10.0.0.3 {}", text(&ed25519(1))),
    ]);
    let verdict = |name, address, blob: &[u8]| {
        judge(&known, &[HostName::new(name), HostName::new(address)], blob)
    };
    assert_eq!(verdict("a", "10.0.0.9", &ed25519(1)), trusted(1));
    assert_eq!(verdict("a", "10.0.0.2", &ed25519(1)), trusted(1));
    assert_eq!(
        verdict("a", "10.0.0.1", &ed25519(1)),
        changed(2, "10.0.0.1", true)
    );
    assert_eq!(verdict("a", "10.0.0.3", &ed25519(1)), revoked(4));
    assert_eq!(
        verdict("a", "10.0.0.1", &ed25519(2)),
        changed(1, "a", false)
    );
    assert_eq!(verdict("new", "10.0.0.2", &ed25519(1)), unknown());
    assert_eq!(
        verdict("new", "10.0.0.1", &ed25519(1)),
        changed(2, "10.0.0.1", true)
    );
}

#[test]
fn an_address_contradicts_the_bare_name_as_well() {
    let known = known_hosts(&[
        format!("a {}", text(&ed25519(1))),
        format!("10.0.0.1 {}", text(&ed25519(2))),
    ]);
    let names = [
        HostName::with_port("a", 2222),
        HostName::with_port("10.0.0.1", 2222),
    ];
    assert_eq!(judge(&known, &names, &ed25519(1)), unknown());
    let names = [
        HostName::with_port("a", 2222),
        HostName::with_port("10.0.0.9", 2222),
    ];
    assert_eq!(judge(&known, &names, &ed25519(1)), trusted(1));
}

/// A certificate for key 1 by authority 9.
fn certificate<'a>(
    key: &'a [u8],
    authority: &'a [u8],
    principals: &'a [&'a str],
) -> Certificate<'a> {
    Certificate {
        key,
        authority,
        principals,
        valid_after: 0,
        valid_before: u64::MAX,
        refused: None,
    }
}

fn judge_certificate(known: &KnownHosts, port: u16, certificate: Certificate<'_>) -> Verdict {
    let names = [HostName::with_port("a", port)];
    known.judge(
        &Query {
            names: &names,
            now: NOW,
        },
        &Presented::Certificate(certificate),
    )
}

fn refusal(verdict: Verdict) -> String {
    match verdict {
        Verdict::Unknown(Unknown {
            certificate: Some(why),
            ..
        }) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_certificate_of_a_known_authority_is_trusted() {
    let (key, authority, stranger) = (ed25519(1), ed25519(9), ed25519(8));
    let known = known_hosts(&[
        format!("@cert-authority b {}", text(&stranger)),
        format!("@cert-authority a {}", text(&authority)),
    ]);
    let by_authority = Verdict::Trusted {
        by: at(2),
        authority: true,
    };
    assert_eq!(
        judge_certificate(&known, 22, certificate(&key, &authority, &["a"])),
        by_authority
    );
    assert_eq!(
        judge_certificate(&known, 22, certificate(&key, &authority, &["b", "*"])),
        by_authority
    );
    assert_eq!(
        judge_certificate(&known, 2222, certificate(&key, &authority, &["a"])),
        by_authority
    );
    assert_eq!(
        judge_certificate(&known, 22, certificate(&key, &stranger, &["a"])),
        unknown()
    );
    // A marked line makes no plain key known.
    assert_eq!(on_22(&known, &authority), unknown());
}

#[test]
fn a_certificate_must_be_valid_for_the_host_and_now() {
    let (key, authority) = (ed25519(1), ed25519(9));
    let known = known_hosts(&[format!("@cert-authority a {}", text(&authority))]);
    let valid = certificate(&key, &authority, &["a"]);
    let verdict = |certificate| judge_certificate(&known, 22, certificate);
    assert!(matches!(
        verdict(Certificate {
            valid_after: NOW,
            valid_before: NOW + 1,
            ..valid
        }),
        Verdict::Trusted { .. }
    ));
    assert_eq!(
        refusal(verdict(Certificate {
            valid_after: NOW + 1,
            ..valid
        })),
        "the host certificate is not yet valid"
    );
    assert_eq!(
        refusal(verdict(Certificate {
            valid_before: NOW,
            ..valid
        })),
        "the host certificate has expired"
    );
    assert_eq!(
        refusal(verdict(certificate(&key, &authority, &[]))),
        "the host certificate names no host"
    );
    assert_eq!(
        refusal(verdict(certificate(&key, &authority, &["b", "A"]))),
        "the host certificate is for b, A and not for a"
    );
    assert_eq!(
        refusal(verdict(Certificate {
            refused: Some("a critical option"),
            ..valid
        })),
        "a critical option"
    );
}

#[test]
fn a_certificate_that_does_not_count_leaves_the_key_in_it() {
    let (key, authority) = (ed25519(1), ed25519(9));
    let expired = Certificate {
        valid_before: 1,
        ..certificate(&key, &authority, &["a"])
    };
    let authority_line = format!("@cert-authority a {}", text(&authority));
    let known = known_hosts(&[authority_line.clone(), format!("a {}", text(&key))]);
    assert_eq!(judge_certificate(&known, 22, expired), trusted(2));
    let known = known_hosts(&[authority_line, format!("a {}", text(&ed25519(2)))]);
    assert_eq!(
        judge_certificate(&known, 22, expired),
        changed(2, "a", false)
    );
}

#[test]
fn a_revoked_key_or_authority_spoils_a_certificate() {
    let (key, authority) = (ed25519(1), ed25519(9));
    for revoked_key in [&key, &authority] {
        let known = known_hosts(&[
            format!("@cert-authority a {}", text(&authority)),
            format!("a {}", text(&key)),
            format!("@revoked * {}", text(revoked_key)),
        ]);
        let presented = certificate(&key, &authority, &["a"]);
        assert_eq!(judge_certificate(&known, 22, presented), revoked(3));
    }
}

/// Whoever has a host's own key is not thereby an authority for it.
#[test]
fn a_plain_line_with_the_authority_s_key_vouches_for_no_certificate() {
    let (key, authority) = (ed25519(1), ed25519(9));
    let known = known_hosts(&[format!("a {}", text(&authority))]);
    let verdict = judge_certificate(&known, 22, certificate(&key, &authority, &["a"]));
    assert!(matches!(verdict, Verdict::Changed(_)), "{verdict:?}");
    let known = known_hosts(&[format!("b {}", text(&authority))]);
    let verdict = judge_certificate(&known, 22, certificate(&key, &authority, &["a"]));
    assert!(matches!(verdict, Verdict::Unknown(_)), "{verdict:?}");
}
