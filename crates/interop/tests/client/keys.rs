//! Users' keys, one of each kind.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use sshoal_crypto::{PrivateKey, PublicKey, UserCertificate};
use sshoal_interop::{KeyType, generate_key};
use sshoal_proto::{PublicKeyCredential, SignatureAlgorithm, Signer};
use tempfile::TempDir;

/// A key pair of each kind, by ssh-keygen.
pub struct UserKeys {
    dir: TempDir,
}

impl UserKeys {
    pub fn generate() -> UserKeys {
        let keys = UserKeys {
            dir: TempDir::new().unwrap(),
        };
        for kind in KeyType::ALL {
            generate_key(keys.dir.path(), kind.name(), kind).unwrap();
        }
        keys
    }

    /// The lines of an authorized_keys file that lets all of them in.
    pub fn authorized_keys(&self) -> String {
        let public = |kind: KeyType| fs::read_to_string(self.path(kind).with_extension("pub"));
        KeyType::ALL.map(|kind| public(kind).unwrap()).concat()
    }

    /// The private key's file.
    pub fn path(&self, kind: KeyType) -> PathBuf {
        self.dir.path().join(kind.name())
    }

    /// The key that signs by this algorithm, and by no other.
    pub fn credential(&self, algorithm: &'static str) -> PublicKeyCredential {
        let key = self.private(algorithm);
        let mut credential = PublicKeyCredential::held(Arc::new(key));
        credential
            .algorithms
            .retain(|offered| offered.signature == algorithm);
        assert_eq!(credential.algorithms.len(), 1);
        credential
    }

    /// The same with the certificate of this file in place of the plain key.
    pub fn certified(&self, algorithm: &'static str, certificate: &str) -> PublicKeyCredential {
        let (blob, _) = PublicKey::from_openssh_line(certificate).unwrap();
        let certificate = UserCertificate::parse(blob.blob()).unwrap();
        let key = self.private(algorithm);
        assert_eq!(certificate.public_key(), key.public_blob());
        PublicKeyCredential {
            blob: certificate.blob().to_vec(),
            algorithms: vec![SignatureAlgorithm {
                request: certificate.request_algorithm(algorithm),
                signature: algorithm.to_owned(),
            }],
            signer: Signer::Held(Arc::new(key)),
            probe: false,
            pipeline: true,
        }
    }

    fn private(&self, algorithm: &str) -> PrivateKey {
        let file = fs::read(self.path(kind_of(algorithm))).unwrap();
        PrivateKey::parse(&file, None).unwrap()
    }
}

/// The kind of key that signs by this algorithm.
pub fn kind_of(algorithm: &str) -> KeyType {
    KeyType::ALL
        .into_iter()
        .find(|kind| kind.signature_algorithms().contains(&algorithm))
        .unwrap()
}
