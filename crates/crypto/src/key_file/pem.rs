//! PEM files (RFC 7468), as OpenSSL and OpenSSH before 7.8 wrote them: PKCS#1, SEC1 and PKCS#8 inside.

use aws_lc_rs::cipher::{
    AES_128, AES_192, AES_256, DecryptionContext, PaddedBlockDecryptingKey, UnboundCipherKey,
};
use aws_lc_rs::iv::FixedLength;
use aws_lc_rs::rsa;
use aws_lc_rs::signature::{EcdsaKeyPair, Ed25519KeyPair};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use md5::{Digest, Md5};
use zeroize::Zeroizing;

use super::KeyFileError;
use crate::public_key::Curve;
use crate::sign::{Pair, PrivateKey};

const BEGIN: &str = "-----BEGIN ";
const DASHES: &str = "-----";

/// What stands between the BEGIN and END lines.
pub(super) struct Armor<'a> {
    label: &'a str,
    /// RFC 1421 headers: "DEK-Info" names cipher and initialisation vector of an encrypted file.
    dek_info: Option<&'a str>,
    body: Zeroizing<Vec<u8>>,
}

impl<'a> Armor<'a> {
    /// The first block of the file.
    pub(super) fn read(file: &'a [u8]) -> Result<Self, KeyFileError> {
        const NONE: KeyFileError = KeyFileError::Malformed("it has no BEGIN line");
        const NO_END: KeyFileError = KeyFileError::Malformed("it has no END line");
        let text = std::str::from_utf8(file).map_err(|_| NONE)?;
        let mut lines = text
            .lines()
            .map(str::trim)
            .skip_while(|line| !line.starts_with(BEGIN));
        let begin = lines.next().ok_or(NONE)?;
        let label = begin
            .strip_prefix(BEGIN)
            .and_then(|rest| rest.strip_suffix(DASHES))
            .ok_or(NONE)?;
        let mut base64 = Zeroizing::new(String::with_capacity(file.len()));
        let mut dek_info = None;
        loop {
            let line = lines.next().ok_or(NO_END)?;
            if line.starts_with(DASHES) {
                break;
            }
            match line.split_once(':') {
                Some(("DEK-Info", value)) => dek_info = Some(value.trim()),
                Some(_) => {}
                None => base64.push_str(line),
            }
        }
        let body = STANDARD
            .decode(base64.as_bytes())
            .map_err(|_| KeyFileError::Malformed("its base64 is damaged"))?;
        Ok(Armor {
            label,
            dek_info,
            body: Zeroizing::new(body),
        })
    }

    pub(super) fn label(&self) -> &'a str {
        self.label
    }

    pub(super) fn body(&self) -> &[u8] {
        &self.body
    }
}

pub(super) fn parse(
    armor: &Armor<'_>,
    passphrase: Option<&[u8]>,
) -> Result<PrivateKey, KeyFileError> {
    let pair = match (armor.label, armor.dek_info) {
        ("ENCRYPTED PRIVATE KEY", _) => {
            let der = decrypt_pkcs8(&armor.body, passphrase.ok_or(KeyFileError::Encrypted)?)?;
            read_der("PRIVATE KEY", &der)?
        }
        (label, Some(dek_info)) => {
            let der = decrypt_legacy(
                dek_info,
                &armor.body,
                passphrase.ok_or(KeyFileError::Encrypted)?,
            )?;
            // One wrong passphrase in 256 leaves padding that looks right, and noise before it.
            read_der(label, &der).map_err(|error| match error {
                KeyFileError::Malformed(_) => KeyFileError::WrongPassphrase,
                other => other,
            })?
        }
        (label, None) => read_der(label, &armor.body)?,
    };
    Ok(PrivateKey::new(pair, String::new()))
}

fn read_der(label: &str, der: &[u8]) -> Result<Pair, KeyFileError> {
    const CURVES: [Curve; 3] = [Curve::P256, Curve::P384, Curve::P521];
    let found = match label {
        "RSA PRIVATE KEY" => rsa::KeyPair::from_der(der)
            .ok()
            .map(|pair| Pair::Rsa(Box::new(pair))),
        "EC PRIVATE KEY" => CURVES.into_iter().find_map(|curve| {
            let pair = EcdsaKeyPair::from_private_key_der(curve.signing(), der).ok()?;
            Some(Pair::Ecdsa(curve, pair))
        }),
        "PRIVATE KEY" => {
            let ed25519 = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der)
                .ok()
                .map(Pair::Ed25519);
            let rsa = || {
                rsa::KeyPair::from_pkcs8(der)
                    .ok()
                    .map(|pair| Pair::Rsa(Box::new(pair)))
            };
            let ecdsa = || {
                CURVES.into_iter().find_map(|curve| {
                    Some(Pair::Ecdsa(
                        curve,
                        EcdsaKeyPair::from_pkcs8(curve.signing(), der).ok()?,
                    ))
                })
            };
            ed25519.or_else(rsa).or_else(ecdsa)
        }
        _ => {
            return Err(KeyFileError::Unsupported(format!(
                "PEM files of type {label:?} are not supported"
            )));
        }
    };
    found.ok_or(KeyFileError::Malformed(
        "its key is damaged, or of a kind or size that is not supported",
    ))
}

/// PBES2 of RFC 8018.
fn decrypt_pkcs8(der: &[u8], passphrase: &[u8]) -> Result<Zeroizing<Vec<u8>>, KeyFileError> {
    let other_way = || {
        KeyFileError::Unsupported(
            "the PKCS#8 file is damaged, or encrypted in a way that is not supported: \
             ssh-keygen -p rewrites the file"
                .to_owned(),
        )
    };
    let info = pkcs8::EncryptedPrivateKeyInfoRef::try_from(der).map_err(|_| other_way())?;
    match info.decrypt(passphrase) {
        Ok(document) => Ok(document.to_bytes()),
        Err(pkcs8::Error::EncryptedPrivateKey(pkcs8::pkcs5::Error::DecryptFailed))
        | Err(pkcs8::Error::Asn1(_)) => Err(KeyFileError::WrongPassphrase),
        Err(_) => Err(other_way()),
    }
}

/// OpenSSL's encryption of traditional PEM files: key and initialisation vector from
/// `EVP_BytesToKey` with MD5 and one round.
fn decrypt_legacy(
    dek_info: &str,
    body: &[u8],
    passphrase: &[u8],
) -> Result<Zeroizing<Vec<u8>>, KeyFileError> {
    let (cipher, iv) = dek_info
        .split_once(',')
        .ok_or(KeyFileError::Malformed("its DEK-Info is damaged"))?;
    let (algorithm, key_len) = match cipher {
        "AES-128-CBC" => (&AES_128, 16),
        "AES-192-CBC" => (&AES_192, 24),
        "AES-256-CBC" => (&AES_256, 32),
        _ => {
            return Err(KeyFileError::Unsupported(format!(
                "PEM files encrypted with {cipher} are not supported: ssh-keygen -p rewrites the file"
            )));
        }
    };
    let iv = decode_hex(iv).ok_or(KeyFileError::Malformed("its DEK-Info is damaged"))?;
    let key = bytes_to_key(passphrase, &iv[..8], key_len);
    let key = UnboundCipherKey::new(algorithm, &key).and_then(PaddedBlockDecryptingKey::cbc_pkcs7);
    let context = DecryptionContext::Iv128(FixedLength::from(iv));
    let mut der = Zeroizing::new(body.to_vec());
    let length = key
        .and_then(|key| key.decrypt(&mut der, context).map(|plain| plain.len()))
        .map_err(|_| KeyFileError::WrongPassphrase)?;
    der.truncate(length);
    Ok(der)
}

/// D_1 = MD5(passphrase || salt), D_i = MD5(D_(i-1) || passphrase || salt); the key is D_1 || D_2 ...
fn bytes_to_key(passphrase: &[u8], salt: &[u8], key_len: usize) -> Zeroizing<Vec<u8>> {
    let mut key = Zeroizing::new(Vec::with_capacity(key_len + 16));
    while key.len() < key_len {
        let previous = key.len().saturating_sub(16);
        let mut digest = Md5::new();
        digest.update(&key[previous..]);
        digest.update(passphrase);
        digest.update(salt);
        key.extend_from_slice(&digest.finalize());
    }
    key.truncate(key_len);
    key
}

fn decode_hex(text: &str) -> Option<[u8; 16]> {
    let mut octets = [0; 16];
    if text.len() != 32 || !text.is_ascii() {
        return None;
    }
    for (octet, digits) in octets.iter_mut().zip(text.as_bytes().chunks(2)) {
        *octet = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(octets)
}
