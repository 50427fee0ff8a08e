//! Any file: no panic, trust only from a line that holds the key, and no line anywhere takes a revocation back.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sshoal_known_hosts::{Certificate, HostName, KnownHosts, Presented, Query, Verdict};

/// An Ed25519 key, and the same in base64.
const KEY: &[u8] = b"\0\0\0\x0bssh-ed25519\0\0\0\x20abcdefghijklmnopqrstuvwxyz012345";
const KEY_TEXT: &str = "AAAAC3NzaC1lZDI1NTE5AAAAIGFiY2RlZmdoaWprbG1ub3BxcnN0dXZ3eHl6MDEyMzQ1";
/// "h", hashed with a salt of zeros.
const HASHED: &str = "|1|AAAAAAAAAAAAAAAAAAAAAAAAAAA=|pKGEfL80ElPzOH4Xe99PTve5QiY=";

/// What bytes above 127 stand for, so that the fuzzer need not find them letter by letter.
const WORDS: [&str; 16] = [
    "h",
    "[h]:2222",
    "10.0.0.1",
    "*",
    HASHED,
    "|1|",
    "@revoked ",
    "@cert-authority ",
    "@REVOKED ",
    "@",
    " ",
    "\n",
    "ssh-ed25519 ",
    "ssh-rsa ",
    KEY_TEXT,
    "AAAAC3NzaC1lZDI1NTE5AAAAIGFiY2RlZmdoaWprbG1ub3BxcnN0dXZ3",
];

fuzz_target!(|bytes: &[u8]| {
    let mut file = Vec::new();
    for &byte in bytes {
        match byte {
            0..128 => file.push(byte),
            word => file.extend(WORDS[usize::from(word) % WORDS.len()].bytes()),
        }
    }
    let holds_key = file
        .windows(KEY_TEXT.len())
        .any(|part| part == KEY_TEXT.as_bytes());
    for port in [22, 2222] {
        for presented in [Presented::Key(KEY), certificate()] {
            let verdict = judge(parse(&[&file]), port, &presented);
            assert!(
                holds_key || !matches!(verdict, Verdict::Trusted { .. }),
                "{verdict:?}"
            );

            let hosts = if port == 22 { "h" } else { "[h]:2222" };
            let good = format!("{hosts} ssh-ed25519 {KEY_TEXT}\n");
            let verdict = judge(parse(&[good.as_bytes(), &file]), port, &presented);
            assert!(
                matches!(verdict, Verdict::Trusted { .. } | Verdict::Revoked { .. }),
                "{verdict:?}"
            );

            let revocation = format!("\n@revoked {hosts} ssh-ed25519 {KEY_TEXT}");
            let verdict = judge(parse(&[&file, revocation.as_bytes()]), port, &presented);
            assert!(matches!(verdict, Verdict::Revoked { .. }), "{verdict:?}");
        }
    }
});

fn parse(parts: &[&[u8]]) -> KnownHosts {
    KnownHosts::parse(vec![("file".into(), parts.concat())])
}

fn certificate() -> Presented<'static> {
    Presented::Certificate(Certificate {
        key: KEY,
        authority: KEY,
        principals: &["h"],
        valid_after: 0,
        valid_before: u64::MAX,
        refused: None,
    })
}

/// The verdict, which must be the same once the hashed entries have been learned.
fn judge(mut known: KnownHosts, port: u16, presented: &Presented<'_>) -> Verdict {
    let names = [
        HostName::with_port("H", port),
        HostName::with_port("10.0.0.1", port),
    ];
    let with_address = Query {
        names: &names,
        now: 0,
    };
    let query = Query {
        names: &names[..1],
        now: 0,
    };
    let verdicts = [
        known.judge(&query, presented),
        known.judge(&with_address, presented),
    ];
    known.learn(&names, |_| Vec::new());
    assert_eq!(
        [
            known.judge(&query, presented),
            known.judge(&with_address, presented)
        ],
        verdicts
    );
    let _ = known.key_types(&names[0]);
    assert!(
        known
            .problems()
            .iter()
            .all(|problem| !problem.why.is_empty())
    );
    let [verdict, _] = verdicts;
    verdict
}
