//! Certificates of users.

use super::{Certificate, CertificateError, CertificateKind, SUFFIX};

/// A certificate that a user shows beside a private key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserCertificate {
    certificate: Certificate,
    blob: Vec<u8>,
}

impl UserCertificate {
    /// Reads a certificate blob, as it stands in a `-cert.pub` file. The server judges it; here it is only
    /// paired with its key.
    ///
    /// # Errors
    ///
    /// When it is damaged, of an unknown type, or a host's.
    pub fn parse(blob: &[u8]) -> Result<Self, CertificateError> {
        let certificate = Certificate::parse(blob)?.of_kind(CertificateKind::User)?;
        Ok(UserCertificate {
            certificate,
            blob: blob.to_vec(),
        })
    }

    /// As it travels.
    pub fn blob(&self) -> &[u8] {
        &self.blob
    }

    /// Such as "ssh-ed25519-cert-v01@openssh.com".
    pub fn key_type(&self) -> &str {
        &self.certificate.key_type
    }

    /// Blob of the plain key inside: equal to [`PrivateKey::public_blob`](crate::PrivateKey::public_blob) of the
    /// key that it belongs to.
    pub fn public_key(&self) -> &[u8] {
        &self.certificate.public_key
    }

    /// The authority's name for it.
    pub fn key_id(&self) -> &str {
        &self.certificate.key_id
    }

    /// The user names it is for; empty for any.
    pub fn principals(&self) -> &[String] {
        &self.certificate.principals
    }

    /// The names under which signatures with `signature_algorithm` are asked for with this certificate
    /// (PROTOCOL.certkeys): "rsa-sha2-512" becomes "rsa-sha2-512-cert-v01@openssh.com".
    pub fn request_algorithm(&self, signature_algorithm: &str) -> String {
        let plain = signature_algorithm
            .strip_suffix("@openssh.com")
            .unwrap_or(signature_algorithm);
        format!("{plain}{SUFFIX}")
    }
}
