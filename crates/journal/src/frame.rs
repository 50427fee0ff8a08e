//! Records in their frames: a length, a sum, a body.

use crate::checksum::crc32;

/// The longest body: a file's name and what it is known by, or all its segments.
pub(crate) const MAX_BODY: usize = 128 * 1024;
/// Octets before a body.
const HEAD: usize = 8;

/// Appends a body in its frame.
pub(crate) fn put(body: &[u8], out: &mut Vec<u8>) {
    let len = (body.len() as u32).to_be_bytes();
    out.extend_from_slice(&len);
    out.extend_from_slice(&crc32(&[&len, body]).to_be_bytes());
    out.extend_from_slice(body);
}

/// The first body and what is behind it; `None` if there is none that adds up.
pub(crate) fn next(octets: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = octets.split_first_chunk()?;
    let (sum, rest) = rest.split_first_chunk()?;
    let body_len = u32::from_be_bytes(*len) as usize;
    if body_len > MAX_BODY || body_len > rest.len() {
        return None;
    }
    let (body, rest) = rest.split_at(body_len);
    (crc32(&[len, body]) == u32::from_be_bytes(*sum)).then_some((body, rest))
}

/// What a body takes in its frame.
pub(crate) fn framed_len(body: &[u8]) -> usize {
    HEAD + body.len()
}
