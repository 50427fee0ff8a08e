//! Against `ssh-keygen -k`, which makes key revocation lists, and `ssh-keygen -Q`, which asks them.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sshoal_known_hosts::{CertificateIdentity, Revoked, RevokedHostKeys};
use tempfile::TempDir;

/// Keys of every kind, and two authorities.
const KEYS: [(&str, &str); 6] = [
    ("ED", "ed25519"),
    ("ED2", "ed25519"),
    ("EC", "ecdsa"),
    ("RSA", "rsa"),
    ("CA", "ed25519"),
    ("CA2", "ecdsa"),
];

struct Folder(TempDir);

impl Folder {
    fn new() -> Folder {
        let folder = Folder(tempfile::tempdir().unwrap());
        for (name, kind) in KEYS {
            folder.keygen(&["-q", "-N", "", "-C", "", "-t", kind, "-f", name]);
        }
        folder
    }

    fn keygen(&self, arguments: &[&str]) -> bool {
        let mut command = Command::new("ssh-keygen");
        command.current_dir(self.0.path()).args(arguments);
        let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
        status
            .expect("ssh-keygen is installed (openssh-client)")
            .success()
    }

    fn write(&self, name: &str, content: &str) {
        fs::write(self.0.path().join(name), content).unwrap();
    }

    fn public(&self, name: &str) -> String {
        fs::read_to_string(self.0.path().join(format!("{name}.pub"))).unwrap()
    }

    fn blob(&self, name: &str) -> Vec<u8> {
        let text = self.public(name);
        STANDARD
            .decode(text.split(' ').nth(1).unwrap().trim())
            .unwrap()
    }

    /// A list that says what `specification` does; serial numbers and IDs are of `authority`, or
    /// of all if that is "none".
    fn list(&self, specification: &str, authority: Option<&str>) -> RevokedHostKeys {
        self.write("spec", specification);
        let authority = authority.map(|name| match name {
            "none" => name.to_string(),
            _ => format!("{name}.pub"),
        });
        let mut arguments = vec!["-k", "-f", "list"];
        arguments.extend(authority.iter().flat_map(|name| ["-s", name.as_str()]));
        arguments.push("spec");
        assert!(self.keygen(&arguments), "{specification}");
        RevokedHostKeys::parse(&fs::read(self.0.path().join("list")).unwrap()).unwrap()
    }

    /// Whether `ssh-keygen -Q` says that the key or certificate is revoked by the last list.
    fn revoked(&self, name: &str) -> bool {
        !self.keygen(&["-Q", "-f", "list", &format!("{name}.pub")])
    }
}

#[test]
fn keys_are_revoked_as_ssh_keygen_q_says() {
    let folder = Folder::new();
    for name in ["ED", "EC", "RSA"] {
        let public = folder.public(name);
        let sha256 = {
            let mut command = Command::new("ssh-keygen");
            command.current_dir(folder.0.path());
            let output = command.args(["-l", "-f", name]).output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            text.split(' ').nth(1).unwrap().to_string()
        };
        for specification in [
            public.clone(),
            format!("key: {public}"),
            format!("sha1: {public}"),
            format!("sha256: {public}"),
            format!("hash: {sha256}\n"),
        ] {
            let list = folder.list(&specification, None);
            for (other, _) in KEYS {
                let ours = list.check_key(&folder.blob(other)).is_err();
                assert_eq!(ours, other == name, "{specification} {other}");
                assert_eq!(folder.revoked(other), ours, "{specification} {other}");
            }
        }
    }
}

#[test]
fn certificates_are_revoked_as_ssh_keygen_q_says() {
    let folder = Folder::new();
    // Enough numbers in every distance that lists, ranges and bitmaps are all written.
    let mut specification = String::from("serial: 1-3\nserial: 10-500\nid: bad one\n");
    for serial in (1000..3000)
        .step_by(7)
        .chain((100_000..10_000_000).step_by(900_001))
    {
        specification += &format!("serial: {serial}\n");
    }
    for authority in ["CA", "CA2", "none"] {
        let list = folder.list(&specification, Some(authority));
        let serials = [
            0u64, 1, 4, 9, 10, 499, 501, 1000, 1001, 1007, 2995, 100_000, 1_000_001,
        ];
        for (serial, id) in serials
            .iter()
            .map(|&serial| (serial, "good"))
            .chain([(5, "bad one"), (0, "bad one")])
        {
            let number = serial.to_string();
            let sign = [
                "-q", "-h", "-s", "CA", "-I", id, "-n", "h", "-z", &number, "ED.pub",
            ];
            assert!(folder.keygen(&sign));
            let ours = list.check_certificate(&CertificateIdentity {
                key: &folder.blob("ED"),
                authority: &folder.blob("CA"),
                serial,
                key_id: id.as_bytes(),
            });
            let said = format!("{authority} {serial} {id}: {ours:?}");
            assert_eq!(ours.is_err(), folder.revoked("ED-cert"), "{said}");
            assert!(authority != "CA2" || ours.is_ok(), "{said}");
        }
    }
}

#[test]
fn an_authority_is_revoked_with_its_certificates() {
    let folder = Folder::new();
    let sign = ["-q", "-h", "-s", "CA", "-I", "id", "-n", "h", "ED.pub"];
    assert!(folder.keygen(&sign));
    for (revoked, expected) in [
        ("CA", Err(Revoked::Authority)),
        ("ED", Err(Revoked::Key)),
        ("CA2", Ok(())),
    ] {
        let list = folder.list(&folder.public(revoked), None);
        let ours = list.check_certificate(&CertificateIdentity {
            key: &folder.blob("ED"),
            authority: &folder.blob("CA"),
            serial: 0,
            key_id: b"id",
        });
        assert_eq!(ours, expected);
        assert_eq!(folder.revoked("ED-cert"), expected.is_err());
    }
}
