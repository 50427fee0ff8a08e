#![allow(clippy::unwrap_used)]

use sshoal_crypto::PublicKey;

use super::*;
use crate::plan::Strictness;

/// The blob of an Ed25519 key of these 32 octets; nobody signs with it here.
fn key(octet: u8) -> Vec<u8> {
    let part = |bytes: &[u8]| [&(bytes.len() as u32).to_be_bytes()[..], bytes].concat();
    [part(b"ssh-ed25519"), part(&[octet; 32])].concat()
}

struct File {
    _folder: tempfile::TempDir,
    path: String,
}

impl File {
    fn new(content: &str) -> File {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("known_hosts");
        fs::write(&path, content).unwrap();
        let path = path.to_str().unwrap().to_owned();
        File {
            path,
            _folder: folder,
        }
    }

    /// A host that is judged by what the file holds now.
    fn host(&self, name: &str, hashes_names: bool) -> HostTrust {
        let files = vec![(self.path.clone(), fs::read(&self.path).unwrap())];
        HostTrust {
            known: Arc::new(KnownHosts::parse(files)),
            files: Arc::new([self.path.clone()]),
            command: None,
            name: name.to_owned(),
            port: 22,
            algorithms: Arc::new([]),
            ca_signature_algorithms: Arc::new([]),
            required_rsa_size: 1024,
            revoked: Arc::new([]),
            strictness: Strictness::AcceptNew,
            checks_address: false,
            trusts_loopback: false,
            wants_dns: false,
            user_files: Arc::new([self.path.clone()]),
            updates_keys: false,
            recording: Some(Recording {
                file: self.path.clone(),
                hashes_names,
            }),
        }
    }

    fn lines(&self) -> Vec<String> {
        let text = fs::read_to_string(&self.path).unwrap();
        assert!(text.ends_with('\n'), "{text:?}");
        text.lines().map(str::to_owned).collect()
    }
}

#[test]
fn a_hosts_first_key_is_the_only_one_and_is_recorded_once() {
    let file = File::new("# mine");
    let keys = NewKeys::default();
    for name in ["b", "a", "b"] {
        assert_eq!(keys.accept(&file.host(name, false), None, &key(1)), Ok(()));
    }
    assert_eq!(
        keys.accept(&file.host("A", false), None, &key(2)),
        Err(key(1))
    );
    let said = keys.record(&|| true);
    assert!(said.len() == 1 && said[0].contains("2 (a,b)"), "{said:?}");
    let lines = file.lines();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines[1].starts_with("a ssh-ed25519 ") && lines[2].starts_with("b ssh-ed25519 "));
    let (_, line) = lines[1].split_once(' ').unwrap();
    assert_eq!(PublicKey::from_openssh_line(line).unwrap().0.blob(), key(1));
    assert!(keys.record(&|| true).is_empty(), "all is recorded");
}

#[test]
fn hashed_names_are_found_again_and_say_nothing() {
    let file = File::new("");
    let keys = NewKeys::default();
    keys.accept(&file.host("secret", true), None, &key(1))
        .unwrap();
    keys.record(&|| true);
    let lines = file.lines();
    assert!(lines.len() == 1 && lines[0].starts_with("|1|"), "{lines:?}");
    let trust = file.host("secret", true);
    assert_eq!(trust.known.lookup(&trust.host_name()).len(), 1);
}

#[test]
fn what_another_run_has_recorded_meanwhile_is_neither_doubled_nor_contradicted() {
    let file = File::new("");
    let (first, second) = (NewKeys::default(), NewKeys::default());
    for (keys, other) in [(&first, 2), (&second, 3)] {
        keys.accept(&file.host("same", false), None, &key(1))
            .unwrap();
        keys.accept(&file.host("other", false), None, &key(other))
            .unwrap();
    }
    let said = first.record(&|| true).join("\n");
    assert!(said.contains("2 (other,same)"), "{said}");
    // Of the same key it has recorded nothing, and says so.
    let said = second.record(&|| true);
    assert!(
        said.len() == 1 && said[0].starts_with("other: "),
        "{said:?}"
    );
    assert_eq!(file.lines().len(), 2);
}

#[test]
fn a_name_that_cannot_stand_in_the_file_costs_no_other_its_line() {
    let file = File::new("");
    let keys = NewKeys::default();
    keys.accept(&file.host("bad,name", false), None, &key(1))
        .unwrap();
    keys.accept(&file.host("good", false), None, &key(1))
        .unwrap();
    let said = keys.record(&|| true).join("\n");
    assert!(
        said.contains("1 (good)") && said.contains("bad,name"),
        "{said}"
    );
    assert_eq!(file.lines().len(), 1);
}

#[test]
fn a_file_that_stays_locked_is_given_up_with_nobody_who_waits() {
    let file = File::new("");
    let keys = NewKeys::default();
    keys.accept(&file.host("a", false), None, &key(1)).unwrap();
    let locked = KnownHostsFile::open(Path::new(&file.path)).unwrap();
    let asked = std::cell::Cell::new(0);
    let waits = || {
        asked.set(asked.get() + 1);
        asked.get() < 3
    };
    let said = keys.record(&waits);
    assert_eq!(asked.get(), 3);
    assert!(
        said.len() == 1 && said[0].contains("you did not wait"),
        "{said:?}"
    );
    drop(locked);
    assert_eq!(fs::read_to_string(&file.path).unwrap(), "");
}
