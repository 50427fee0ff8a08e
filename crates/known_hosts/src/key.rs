//! Public keys as known_hosts holds them: base64 of RFC 4253 section 6.6 blobs.
//!
//! Nothing here is arithmetic: keys are taken apart only to compare them and to see that a line
//! is whole.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::reader::{Reader, put_string};

/// The plain key types that OpenSSH reads from a known_hosts line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KeyType {
    /// `ssh-ed25519` (RFC 8709)
    Ed25519,
    /// `ecdsa-sha2-nistp256` (RFC 5656)
    EcdsaP256,
    /// `ecdsa-sha2-nistp384` (RFC 5656)
    EcdsaP384,
    /// `ecdsa-sha2-nistp521` (RFC 5656)
    EcdsaP521,
    /// `ssh-rsa` (RFC 4253); signatures by `rsa-sha2-256` and `rsa-sha2-512` (RFC 8332)
    Rsa,
    /// `ssh-dss` (RFC 4253): known, so that a host with such a line is not a new one
    Dsa,
    /// `sk-ssh-ed25519@openssh.com` (OpenSSH's PROTOCOL.u2f)
    SkEd25519,
    /// `sk-ecdsa-sha2-nistp256@openssh.com` (OpenSSH's PROTOCOL.u2f)
    SkEcdsaP256,
}

/// A row for each type: name, fields after the name, whether those fields are mpints.
const TYPES: [(KeyType, &str, usize, bool); 8] = [
    (KeyType::Ed25519, "ssh-ed25519", 1, false),
    (KeyType::EcdsaP256, "ecdsa-sha2-nistp256", 2, false),
    (KeyType::EcdsaP384, "ecdsa-sha2-nistp384", 2, false),
    (KeyType::EcdsaP521, "ecdsa-sha2-nistp521", 2, false),
    (KeyType::Rsa, "ssh-rsa", 2, true),
    (KeyType::Dsa, "ssh-dss", 4, true),
    (KeyType::SkEd25519, "sk-ssh-ed25519@openssh.com", 2, false),
    (
        KeyType::SkEcdsaP256,
        "sk-ecdsa-sha2-nistp256@openssh.com",
        3,
        false,
    ),
];

impl KeyType {
    /// The type's name as a key blob spells it.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// The type that a known_hosts line or a signature algorithm names; `rsa-sha2-*` means RSA.
    pub fn from_name(name: &[u8]) -> Option<KeyType> {
        if name == b"rsa-sha2-256" || name == b"rsa-sha2-512" {
            return Some(KeyType::Rsa);
        }
        TYPES
            .iter()
            .find(|row| row.1.as_bytes() == name)
            .map(|row| row.0)
    }

    /// The plain type below a host-key algorithm's name, and whether the name asks for a
    /// certificate: `rsa-sha2-512-cert-v01@openssh.com` is (RSA, true).
    pub fn of_algorithm(name: &str) -> Option<(KeyType, bool)> {
        if let Some(plain) = KeyType::from_name(name.as_bytes()) {
            return Some((plain, false));
        }
        let base = name.strip_suffix("-cert-v01@openssh.com")?;
        let plain = KeyType::from_name(base.as_bytes())
            .or_else(|| KeyType::from_name(format!("{base}@openssh.com").as_bytes()))?;
        Some((plain, true))
    }

    fn row(self) -> &'static (KeyType, &'static str, usize, bool) {
        &TYPES[self as usize]
    }
}

/// A whole public key: its type and its fields, ready to be compared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyFields<'a> {
    pub(crate) key_type: KeyType,
    fields: [&'a [u8]; 4],
}

impl<'a> KeyFields<'a> {
    /// Takes a plain key's blob apart; `None` unless it is whole and ends where it should.
    pub(crate) fn parse(blob: &'a [u8]) -> Option<KeyFields<'a>> {
        let (name, mut rest) = split_string(blob)?;
        let key_type = TYPES.iter().find(|row| row.1.as_bytes() == name)?.0;
        let fields = take_fields(key_type, &mut rest)?;
        rest.is_empty().then_some(KeyFields { key_type, fields })
    }

    /// As [`parse`](Self::parse), and also finds the certified key in an OpenSSH certificate
    /// (PROTOCOL.certkeys: name, nonce, the plain key's fields, ...) and ignores what follows
    /// the key. For revocations only, where more matches means more caution.
    pub(crate) fn parse_leniently(blob: &'a [u8]) -> Option<KeyFields<'a>> {
        let (name, mut rest) = split_string(blob)?;
        let (key_type, certificate) = KeyType::of_algorithm(std::str::from_utf8(name).ok()?)?;
        if certificate {
            rest = split_string(rest)?.1;
        }
        let fields = take_fields(key_type, &mut rest)?;
        Some(KeyFields { key_type, fields })
    }

    /// Whether two keys are the same key, however their mpints were padded: a server that pads
    /// a number must not escape a revocation.
    pub(crate) fn same(&self, other: &KeyFields<'_>) -> bool {
        self.key_type == other.key_type
            && self
                .fields
                .iter()
                .zip(other.fields)
                .all(|(a, b)| self.bare(a) == self.bare(b))
    }

    /// The plain key's blob as OpenSSH writes it, whatever padding its numbers had.
    pub(crate) fn canonical(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_string(&mut out, self.key_type.name().as_bytes());
        for field in &self.fields[..self.key_type.row().2] {
            let bare = self.bare(field);
            match bare.first() {
                Some(0x80..) if self.key_type.row().3 => {
                    put_string(&mut out, &[&[0], bare].concat())
                }
                _ => put_string(&mut out, bare),
            }
        }
        out
    }

    /// The number of bits of an RSA modulus or a DSA prime, what `ssh-keygen -l` calls the size;
    /// `None` for types whose size is fixed.
    pub(crate) fn bits(&self) -> Option<usize> {
        let number = match self.key_type {
            KeyType::Rsa => self.bare(self.fields[1]),
            KeyType::Dsa => self.bare(self.fields[0]),
            _ => return None,
        };
        let head = number
            .first()
            .map_or(0, |head| head.leading_zeros() as usize);
        Some(number.len() * 8 - head)
    }

    fn bare<'b>(&self, field: &'b [u8]) -> &'b [u8] {
        if !self.key_type.row().3 {
            return field;
        }
        let zeros = field.iter().take_while(|&&byte| byte == 0).count();
        &field[zeros..]
    }
}

fn take_fields<'a>(key_type: KeyType, rest: &mut &'a [u8]) -> Option<[&'a [u8]; 4]> {
    let mut fields: [&[u8]; 4] = [&[]; 4];
    for field in fields.iter_mut().take(key_type.row().2) {
        let (value, after) = split_string(rest)?;
        if value.is_empty() {
            return None;
        }
        *field = value;
        *rest = after;
    }
    Some(fields)
}

/// The key type that a blob claims, whether the rest is readable or not.
pub(crate) fn claimed_type(blob: &[u8]) -> Option<KeyType> {
    KeyType::from_name(claimed_name(blob)?)
}

/// The name of the key type that a blob claims.
pub(crate) fn claimed_name(blob: &[u8]) -> Option<&[u8]> {
    split_string(blob).map(|(name, _)| name)
}

/// Whether the base64 `text` of a key names the same type as the word before it: nothing is damaged then, whether or not
/// the type is known here.
pub(crate) fn names_type(text: &[u8], type_name: &[u8]) -> bool {
    decode(text).is_some_and(|blob| claimed_name(&blob) == Some(type_name))
}

/// RFC 4251 section 5 `string`: the value and what follows it.
fn split_string(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut reader = Reader(bytes);
    let value = reader.string()?;
    Some((value, reader.0))
}

/// Decodes a line's base64 key; `None` unless every character and the padding are right.
pub(crate) fn decode(text: &[u8]) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}

/// Decodes a line's key; `None` unless it is a whole key of the type that the line names.
pub(crate) fn decode_as(key_type: KeyType, text: &[u8]) -> Option<Vec<u8>> {
    decode(text).filter(|blob| KeyFields::parse(blob).is_some_and(|key| key.key_type == key_type))
}

/// Decodes as many characters of damaged base64 as are still in place.
pub(crate) fn decode_prefix(text: &[u8]) -> Vec<u8> {
    let good = text.iter().take_while(|&&c| is_base64(c)).count();
    STANDARD
        .decode(&text[..good - good % 4])
        .unwrap_or_default()
}

/// Whether every byte is of base64's alphabet, padding not included.
pub(crate) fn is_all_base64(text: &[u8]) -> bool {
    // Without an early exit the loop runs at a byte a cycle, which a file of megabytes needs.
    text.iter()
        .fold(true, |all, &c| all & BASE64[usize::from(c)])
}

fn is_base64(c: u8) -> bool {
    BASE64[usize::from(c)]
}

const BASE64: [bool; 256] = {
    let mut table = [false; 256];
    let mut c = 0;
    while c < 256 {
        let byte = c as u8;
        table[c] = byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
        c += 1;
    }
    table
};

#[cfg(test)]
mod tests;
