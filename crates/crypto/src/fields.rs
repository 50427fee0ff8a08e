//! The data types of RFC 4251 section 5, as far as keys, signatures and certificates use them.

use zeroize::Zeroizing;

/// Reads fields from the front of a blob, borrowing them.
#[derive(Clone)]
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
}

/// The blob ends before the field does, or the field is not what its type asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Truncated;

impl<'a> Fields<'a> {
    pub(crate) fn new(blob: &'a [u8]) -> Self {
        Fields { rest: blob }
    }

    /// What has not been read yet.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn octets<const N: usize>(&mut self) -> Result<&'a [u8; N], Truncated> {
        let (octets, rest) = self.rest.split_first_chunk().ok_or(Truncated)?;
        self.rest = rest;
        Ok(octets)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Truncated> {
        self.octets::<1>().map(|[octet]| *octet)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Truncated> {
        self.octets().copied().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Truncated> {
        self.octets().copied().map(u64::from_be_bytes)
    }

    pub(crate) fn string(&mut self) -> Result<&'a [u8], Truncated> {
        let length = usize::try_from(self.u32()?).map_err(|_| Truncated)?;
        let (string, rest) = self.rest.split_at_checked(length).ok_or(Truncated)?;
        self.rest = rest;
        Ok(string)
    }

    /// A string that is text.
    pub(crate) fn text(&mut self) -> Result<&'a str, Truncated> {
        std::str::from_utf8(self.string()?).map_err(|_| Truncated)
    }

    /// The magnitude of a non-negative mpint, without leading zeros.
    pub(crate) fn mpint(&mut self) -> Result<&'a [u8], Truncated> {
        let octets = self.string()?;
        match octets.first() {
            Some(first) if first & 0x80 != 0 => Err(Truncated),
            _ => Ok(magnitude(octets)),
        }
    }
}

/// A big-endian number without its leading zeros.
pub(crate) fn magnitude(octets: &[u8]) -> &[u8] {
    let zeros = octets.iter().take_while(|octet| **octet == 0).count();
    &octets[zeros..]
}

/// How many bits a big-endian number has.
pub(crate) fn bit_length(octets: &[u8]) -> usize {
    let magnitude = magnitude(octets);
    magnitude.len() * 8
        - magnitude
            .first()
            .map_or(0, |first| first.leading_zeros() as usize)
}

/// A big-endian number as exactly `length` octets, zeros in front; `None` if it is larger.
pub(crate) fn left_padded(octets: &[u8], length: usize) -> Option<Zeroizing<Vec<u8>>> {
    let magnitude = magnitude(octets);
    let zeros = length.checked_sub(magnitude.len())?;
    let mut padded = Zeroizing::new(vec![0; length]);
    padded[zeros..].copy_from_slice(magnitude);
    Some(padded)
}

pub(crate) fn put_string(out: &mut Vec<u8>, string: &[u8]) {
    out.extend_from_slice(&length_of(string.len()));
    out.extend_from_slice(string);
}

/// Appends a non-negative mpint, given its big-endian octets.
pub(crate) fn put_mpint(out: &mut Vec<u8>, octets: &[u8]) {
    let magnitude = magnitude(octets);
    let sign_octet = magnitude.first().is_some_and(|first| first & 0x80 != 0);
    out.extend_from_slice(&length_of(magnitude.len() + usize::from(sign_octet)));
    if sign_octet {
        out.push(0);
    }
    out.extend_from_slice(magnitude);
}

fn length_of(octets: usize) -> [u8; 4] {
    // Everything encoded here is a key, a signature or a shared secret: far below 4 GiB.
    (octets as u32).to_be_bytes()
}
