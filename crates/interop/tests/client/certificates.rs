//! OpenSSH certificates (PROTOCOL.certkeys) in place of host keys and of user keys, from authorities of each kind.

use std::fs;
use std::path::{Path, PathBuf};

use sshoal_crypto::KexAlgorithm;
use sshoal_interop::{KeyType, Options, Server, Software, Subject, certify, generate_key};
use sshoal_proto::{PublicKeyCredential, Settings};
use tempfile::TempDir;

use crate::axes::signature_algorithms;
use crate::driver::{Login, Task};
use crate::keys::{UserKeys, kind_of};
use crate::trust::Trust;

/// Kinds of authorities: what they sign with is one of RFC 8332's, RFC 5656's and RFC 8709's each.
const AUTHORITIES: [KeyType; 3] = [KeyType::Ed25519, KeyType::EcdsaP384, KeyType::Rsa];

/// An OpenSSH whose host keys an authority has certified, and which lets that authority's users in, and no others.
struct Host {
    dir: TempDir,
    authority: PathBuf,
    server: Server,
    keys: UserKeys,
}

impl Host {
    fn start(kind: KeyType) -> Host {
        let dir = TempDir::new().unwrap();
        let authority = generate_key(dir.path(), "authority", kind).unwrap();
        let options = Options {
            host_keys: KeyType::ALL.to_vec(),
            authority: Some(authority.clone()),
            ..Options::default()
        };
        let server =
            Server::start(Software::OpenSsh, &options).unwrap_or_else(|error| panic!("{error}"));
        Host {
            keys: UserKeys::generate(),
            dir,
            authority,
            server,
        }
    }

    /// The key that signs by this algorithm, certified for `user`.
    fn credential(
        &self,
        algorithm: &'static str,
        user: &str,
        validity: Option<&str>,
    ) -> PublicKeyCredential {
        let key = self.keys.path(kind_of(algorithm));
        let certificate = certify(&self.authority, &key, Subject::User(user), validity).unwrap();
        self.keys
            .certified(algorithm, &fs::read_to_string(certificate).unwrap())
    }

    /// Logs in by this host-key algorithm and runs a command; says why not.
    fn log_in(
        &self,
        trust: &Trust,
        host_key: &'static str,
        credential: PublicKeyCredential,
    ) -> Result<(), String> {
        let settings = Settings {
            kex: vec![KexAlgorithm::by_name("curve25519-sha256").unwrap()],
            ..Settings::recommended()
        };
        let login = Login {
            address: self.server.address(),
            user: self.server.user(),
            trust,
            settings,
            host_key_algorithms: vec![host_key],
            guess_key_exchange: false,
            credential,
        };
        let mut heard = Vec::new();
        let task = Task {
            command: "echo certified; exit 3",
            input: None,
            output: &mut |data| heard.extend(data),
        };
        let outcome = login.run(task).map_err(|trouble| trouble.to_string())?;
        assert_eq!(
            (heard.as_slice(), outcome.status),
            (b"certified\n".as_slice(), Some(3))
        );
        Ok(())
    }
}

fn trust(authority: &Path) -> Trust {
    Trust::of_authority(&fs::read_to_string(authority.with_extension("pub")).unwrap())
}

/// "rsa-sha2-512-cert-v01@openssh.com" and so on.
fn certificate_algorithm(algorithm: &str) -> &'static str {
    const ALL: [&str; 6] = [
        "ssh-ed25519-cert-v01@openssh.com",
        "ecdsa-sha2-nistp256-cert-v01@openssh.com",
        "ecdsa-sha2-nistp384-cert-v01@openssh.com",
        "ecdsa-sha2-nistp521-cert-v01@openssh.com",
        "rsa-sha2-512-cert-v01@openssh.com",
        "rsa-sha2-256-cert-v01@openssh.com",
    ];
    ALL.into_iter()
        .find(|name| name.strip_suffix("-cert-v01@openssh.com") == Some(algorithm))
        .unwrap()
}

#[test]
fn host_and_user_certificates_of_every_kind_log_in() {
    for kind in AUTHORITIES {
        let host = Host::start(kind);
        let trust = trust(&host.authority);
        for algorithm in signature_algorithms() {
            let credential = host.credential(algorithm, host.server.user(), None);
            let result = host.log_in(&trust, certificate_algorithm(algorithm), credential);
            assert!(
                result.is_ok(),
                "{kind:?}, {algorithm}: {result:?}; {}",
                host.server.log()
            );
        }
    }
}

#[test]
fn the_certificate_of_another_authority_is_no_host_key() {
    let host = Host::start(KeyType::Ed25519);
    let other = generate_key(host.dir.path(), "other", KeyType::Ed25519).unwrap();
    let credential = host.credential("ssh-ed25519", host.server.user(), None);
    let name = "ssh-ed25519-cert-v01@openssh.com";
    let why = host.log_in(&trust(&other), name, credential).unwrap_err();
    assert!(why.starts_with("the host key is not the server's"), "{why}");
}

#[test]
fn user_certificates_that_are_not_valid_are_denied() {
    let host = Host::start(KeyType::Ed25519);
    let trust = trust(&host.authority);
    let plain = host.keys.credential("ssh-ed25519");
    let expired = host.credential("ssh-ed25519", host.server.user(), Some("20200101:20200102"));
    let someone_else_s = host.credential("ssh-ed25519", "nobody-here", None);
    for credential in [plain, expired, someone_else_s] {
        let why = host
            .log_in(&trust, "ssh-ed25519-cert-v01@openssh.com", credential)
            .unwrap_err();
        assert!(why.starts_with("AuthenticationNeeded"), "{why}");
    }
}
