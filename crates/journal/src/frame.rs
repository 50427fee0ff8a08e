//! Records in their frames: a length, a sum, a body.

use crate::checksum::crc32;

/// The longest body of a transfer's journal: a file's name and what it is known by, or all its segments.
pub(crate) const MAX_BODY: usize = 128 * 1024;
/// Octets before a body.
pub(crate) const HEAD: usize = 8;

/// Appends a body in its frame.
pub(crate) fn put(body: &[u8], out: &mut Vec<u8>) {
    let len = (body.len() as u32).to_be_bytes();
    out.extend_from_slice(&len);
    out.extend_from_slice(&crc32(&[&len, body]).to_be_bytes());
    out.extend_from_slice(body);
}

/// Appends what `write` appends, in its frame.
pub(crate) fn put_with(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; HEAD]);
    write(out);
    let body = start + HEAD;
    let len = ((out.len() - body) as u32).to_be_bytes();
    let sum = crc32(&[&len, &out[body..]]).to_be_bytes();
    out[start..start + 4].copy_from_slice(&len);
    out[start + 4..body].copy_from_slice(&sum);
}

/// The first body and what is behind it; `None` if there is none that adds up.
pub(crate) fn next(octets: &[u8]) -> Option<(&[u8], &[u8])> {
    match first(octets, MAX_BODY) {
        First::Whole(body) => Some((body, &octets[framed_len(body)..])),
        First::Unfinished | First::Wrong => None,
    }
}

/// What stands at the front.
pub(crate) enum First<'a> {
    /// A body that adds up.
    Whole(&'a [u8]),
    /// The beginning of one that may.
    Unfinished,
    /// What no further octets make a record of.
    Wrong,
}

/// Looks at the front for a body of at most `most` octets.
pub(crate) fn first(octets: &[u8], most: usize) -> First<'_> {
    let Some((len, rest)) = octets.split_first_chunk() else {
        return First::Unfinished;
    };
    let body_len = u32::from_be_bytes(*len) as usize;
    if body_len > most {
        return First::Wrong;
    }
    let Some((sum, rest)) = rest.split_first_chunk() else {
        return First::Unfinished;
    };
    let Some(body) = rest.get(..body_len) else {
        return First::Unfinished;
    };
    match crc32(&[len, body]) == u32::from_be_bytes(*sum) {
        true => First::Whole(body),
        false => First::Wrong,
    }
}

/// What a body takes in its frame.
pub(crate) fn framed_len(body: &[u8]) -> usize {
    HEAD + body.len()
}
