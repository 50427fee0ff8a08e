//! Certificate sections: serial numbers and key IDs that an authority, or any, has revoked
//! (PROTOCOL.krl section 2).

use std::collections::HashSet;

use super::{KrlError, c_string, check_extension};
use crate::key::KeyFields;
use crate::reader::Reader;
use crate::revoked_host_keys::Revoked;

/// `KRL_SECTION_CERT_*` (krl.h).
mod section {
    pub(super) const SERIAL_LIST: u8 = 0x20;
    pub(super) const SERIAL_RANGE: u8 = 0x21;
    pub(super) const SERIAL_BITMAP: u8 = 0x22;
    pub(super) const KEY_ID: u8 = 0x23;
    pub(super) const EXTENSION: u8 = 0x39;
}

/// `SSHBUF_MAX_BIGNUM` (sshbuf.h), in bytes.
const MAX_BITMAP: usize = 16384 / 8;

/// One certificate section.
#[derive(Debug, Default)]
pub(super) struct RevokedCertificates {
    /// The authority's key; `None` means all authorities.
    authority: Option<Vec<u8>>,
    /// First and last of ranges, sorted by the first, none overlapping.
    ranges: Vec<(u64, u64)>,
    bitmaps: Vec<Bitmap>,
    key_ids: HashSet<Vec<u8>>,
}

/// Bit N, counted from the end of the last byte, stands for serial number `offset` + N.
#[derive(Debug)]
struct Bitmap {
    offset: u64,
    bits: Vec<u8>,
}

impl RevokedCertificates {
    pub(super) fn parse(data: &[u8]) -> Result<RevokedCertificates, KrlError> {
        const MALFORMED: KrlError = KrlError::Malformed("a certificate section");
        let mut reader = Reader(data);
        let authority = reader.string().ok_or(MALFORMED)?;
        let _reserved = reader.string().ok_or(MALFORMED)?;
        let mut revoked = RevokedCertificates::default();
        if !authority.is_empty() {
            KeyFields::parse(authority).ok_or(KrlError::Malformed("an authority's key"))?;
            revoked.authority = Some(authority.to_vec());
        }
        while !reader.is_empty() {
            let number = reader.u8().ok_or(MALFORMED)?;
            let part = reader.string().ok_or(MALFORMED)?;
            revoked.read_part(number, part)?;
        }
        revoked.merge_ranges();
        Ok(revoked)
    }

    fn read_part(&mut self, number: u8, part: &[u8]) -> Result<(), KrlError> {
        const MALFORMED: KrlError = KrlError::Malformed("a part of a certificate section");
        let mut reader = Reader(part);
        match number {
            section::SERIAL_LIST => {
                while !reader.is_empty() {
                    let serial = reader.u64().ok_or(MALFORMED)?;
                    self.revoke_range(serial, serial)?;
                }
            }
            section::SERIAL_RANGE => {
                let first = reader.u64().ok_or(MALFORMED)?;
                let last = reader.u64().ok_or(MALFORMED)?;
                self.revoke_range(first, last)?;
            }
            section::SERIAL_BITMAP => {
                let offset = reader.u64().ok_or(MALFORMED)?;
                let bits = reader.string().ok_or(MALFORMED)?;
                self.bitmaps.push(Bitmap::new(offset, bits)?);
            }
            section::KEY_ID => {
                while !reader.is_empty() {
                    let id = reader.string().and_then(c_string).ok_or(MALFORMED)?;
                    self.key_ids.insert(id.to_vec());
                }
            }
            section::EXTENSION => return check_extension(part),
            other => return Err(KrlError::CertificateSection(other)),
        }
        reader.is_empty().then_some(()).ok_or(MALFORMED)
    }

    /// `ssh_krl_revoke_cert_by_serial_range`
    fn revoke_range(&mut self, first: u64, last: u64) -> Result<(), KrlError> {
        if first > last || first == 0 {
            return Err(KrlError::Serials);
        }
        self.ranges.push((first, last));
        Ok(())
    }

    fn merge_ranges(&mut self) {
        self.ranges.sort_unstable();
        self.ranges.dedup_by(|next, kept| {
            let overlaps = next.0 <= kept.1;
            if overlaps {
                kept.1 = kept.1.max(next.1);
            }
            overlaps
        });
    }

    /// Whether the section speaks of certificates signed by `authority`.
    pub(super) fn is_of(&self, authority: Option<&KeyFields<'_>>) -> bool {
        let Some(own) = &self.authority else {
            return true;
        };
        let own = KeyFields::parse(own);
        own.zip(authority)
            .is_some_and(|(own, other)| own.same(other))
    }

    /// `is_cert_revoked` (krl.c)
    pub(super) fn check(&self, serial: u64, key_id: &[u8]) -> Result<(), Revoked> {
        if self
            .key_ids
            .contains(key_id.strip_suffix(b"\0").unwrap_or(key_id))
        {
            return Err(Revoked::KeyId);
        }
        // The number that an authority gives which counts none.
        if serial == 0 {
            return Ok(());
        }
        let above = self.ranges.partition_point(|&(first, _)| first <= serial);
        let in_range = above > 0 && serial <= self.ranges[above - 1].1;
        if in_range || self.bitmaps.iter().any(|bitmap| bitmap.holds(serial)) {
            return Err(Revoked::Serial(serial));
        }
        Ok(())
    }
}

impl Bitmap {
    fn new(offset: u64, mpint: &[u8]) -> Result<Bitmap, KrlError> {
        const MALFORMED: KrlError = KrlError::Malformed("a bitmap of serial numbers");
        if mpint.first().is_some_and(|&head| head & 0x80 != 0) {
            return Err(MALFORMED);
        }
        let zeros = mpint.iter().take_while(|&&byte| byte == 0).count();
        let bits = &mpint[zeros..];
        if mpint.len() > MAX_BITMAP + 1 || bits.len() > MAX_BITMAP {
            return Err(MALFORMED);
        }
        if let Some(head) = bits.first() {
            let highest = bits.len() as u64 * 8 - 1 - u64::from(head.leading_zeros());
            let wraps = offset.checked_add(highest).is_none();
            let zero = offset == 0 && bits.last().is_some_and(|last| last & 1 != 0);
            if wraps || zero {
                return Err(KrlError::Serials);
            }
        }
        let bits = bits.to_vec();
        Ok(Bitmap { offset, bits })
    }

    fn holds(&self, serial: u64) -> bool {
        let Some(bit) = serial.checked_sub(self.offset) else {
            return false;
        };
        let from_end = usize::try_from(bit / 8).unwrap_or(usize::MAX);
        let byte = self.bits.iter().rev().nth(from_end);
        byte.is_some_and(|byte| byte >> (bit % 8) & 1 == 1)
    }
}
