//! Any bytes as a key revocation list, an index of known_hosts lines, a server's offer of host keys, or a file that is
//! edited: no panic, no line lost, and an index never changes what a look-up finds but by leaving lines out.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sshoal_known_hosts::edit::{self, Addition};
use sshoal_known_hosts::{
    CertificateIdentity, Content, FileIdentity, HostName, IndexBase, KnownHosts, LineIndex,
    OfferedKeys, RevokedHostKeys, SplitHost, forge_index, parse_proofs,
};

/// An Ed25519 key.
const KEY: &[u8] = b"\0\0\0\x0bssh-ed25519\0\0\0\x20abcdefghijklmnopqrstuvwxyz012345";
/// "h", hashed with a salt of zeros, and its key.
const LINE: &str = "|1|AAAAAAAAAAAAAAAAAAAAAAAAAAA=|pKGEfL80ElPzOH4Xe99PTve5QiY= ssh-ed25519 \
                    AAAAC3NzaC1lZDI1NTE5AAAAIGFiY2RlZmdoaWprbG1ub3BxcnN0dXZ3eHl6MDEyMzQ1\n";

fuzz_target!(|bytes: &[u8]| {
    let Some((kind, bytes)) = bytes.split_first() else {
        return;
    };
    match kind % 4 {
        0 => revocation_list(bytes),
        1 => index(bytes),
        2 => offer(bytes),
        _ => edits(bytes),
    }
});

/// The rest of a list behind a good header, and anything at all.
fn revocation_list(bytes: &[u8]) {
    const HEADER: &[u8] =
        b"SSHKRL\n\0\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    for file in [bytes.to_vec(), [HEADER, bytes].concat()] {
        if let Ok(list) = RevokedHostKeys::parse(&file) {
            let _ = list.check_key(KEY);
            for serial in [0, 1, 1 << 32, u64::MAX] {
                let certificate = CertificateIdentity {
                    key: KEY,
                    authority: KEY,
                    serial,
                    key_id: b"id",
                };
                let checked = list.check_certificate(&certificate);
                assert!(checked.is_err() || list.check_key(KEY).is_ok());
            }
        }
    }
}

/// An index as it comes, one that was damaged, and one that says anything with tags that are right: it may hide lines,
/// but show no wrong ones.
fn index(bytes: &[u8]) {
    let content = format!("{}# no line about h\n", LINE.repeat(3)).into_bytes();
    let identity = FileIdentity {
        size: content.len() as u64,
        ..FileIdentity::default()
    };
    let names = ["h", "other"].map(HostName::new);
    let good = {
        let mut known = KnownHosts::parse(vec![("f".into(), content.clone())]);
        known.learn(&names, |_| Vec::new());
        let new = IndexBase::<Vec<u8>>::New([0; 32]);
        let index = known.write_index(0, &identity, true, new);
        index.expect("a small file has an index")
    };
    let mut damaged = good.clone();
    for (at, byte) in bytes.iter().enumerate() {
        if let Some(old) = damaged.get_mut(12 + at) {
            *old ^= byte;
        }
    }
    let number = |at: usize| u32::from(bytes.get(at).copied().unwrap_or(0));
    let place = |at: usize| [number(at) << 1, number(at + 1) << 1, number(at + 2)];
    let always: Vec<[u32; 3]> = (0..number(0) % 4).map(|at| place(at as usize)).collect();
    let rows = |from: usize| [("h", place(from)), ("other", place(from + 3))];
    let forged = forge_index(
        &identity,
        &content,
        number(1) % 8,
        &always,
        [&rows(4), &rows(10)],
    );
    for bytes in [bytes.to_vec(), damaged, forged] {
        let len = bytes.len() as u64;
        let Ok(index) = LineIndex::open(bytes, len) else {
            continue;
        };
        if let Ok(Some(lines)) = index.lines_for(&names, &content) {
            let known = KnownHosts::assemble(vec![("f".into(), Content::Indexed(lines))]);
            assert!(known.lookup(&names[0]).len() <= 3);
            assert!(known.lookup(&names[1]).is_empty());
        }
        let mut known = KnownHosts::parse(vec![("f".into(), content.clone())]);
        if known.recall(0, &index, &names).is_ok() {
            assert!(known.lookup(&names[1]).is_empty());
            let _ = known.write_index(0, &identity, true, IndexBase::Extend(&index));
        }
    }
}

fn offer(bytes: &[u8]) {
    let Ok(offered) = OfferedKeys::parse(bytes, &["ssh-ed25519", "rsa-sha2-512"], 1024) else {
        return;
    };
    let known = KnownHosts::parse(vec![("f".into(), LINE.into())]);
    let host = HostName::new("h");
    if let Ok(plan) = known.plan_update(1, &host, None, &offered) {
        assert!(plan.prove.iter().all(|&place| place < offered.keys().len()));
    }
    let keys: Vec<&[u8]> = offered.keys().iter().map(Vec::as_slice).collect();
    let _ = parse_proofs(&keys, bytes, b"session", "rsa-sha2-512");
}

fn edits(bytes: &[u8]) {
    let host = HostName::new("h");
    let feeds = |bytes: &[u8]| bytes.iter().filter(|&&c| c == b'\n').count();
    let forgotten = edit::forget(bytes, &[host]);
    assert!(feeds(bytes) - feeds(&forgotten.bytes) <= forgotten.removed.len());
    assert!(edit::forget(&forgotten.bytes, &[host]).removed.is_empty());
    let hashed = edit::hash(bytes, &mut || [1; 20]);
    assert_eq!(
        edit::hash(&hashed.bytes, &mut || [2; 20]).bytes,
        hashed.bytes
    );

    let addition = Addition {
        host,
        address: None,
        key: KEY,
    };
    let appended = edit::append(bytes, bytes, &[addition], None).expect("name and key are good");
    assert_eq!(
        appended.added + appended.present.len() + appended.conflicts.len(),
        1
    );

    let imported = edit::import(LINE.as_bytes(), bytes);
    assert!(imported.bytes.starts_with(LINE.as_bytes()));
    assert!(edit::import(&imported.bytes, bytes).added.is_empty());

    let known = KnownHosts::parse(vec![("f".into(), bytes.to_vec())]);
    let _ = known.check(&known.plain_names());
    let hosts: Vec<SplitHost> = known.split_hosts();
    for file in known.split(&hosts).files {
        assert!(
            !file.name.contains('/') && !file.name.starts_with('.'),
            "{}",
            file.name
        );
    }
}
