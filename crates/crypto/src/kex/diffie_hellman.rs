//! Diffie-Hellman over finite fields: RFC 4253 section 8 in the groups of RFC 3526, and RFC 4419.

use crypto_bigint::modular::{BoxedMontyForm, BoxedMontyParams};
use crypto_bigint::{BoxedUint, Odd};
use zeroize::{Zeroize, Zeroizing};

use super::groups::{GENERATOR, GROUP14, GROUP16, GROUP18};
use super::{KexError, KexMethod, SharedSecret};
use crate::fields::{bit_length, magnitude};

/// Bits of the private exponent. OpenSSH (dh.c, `dh_gen_key`) takes twice the bits of the longest key
/// that is derived, at least 2 x 256, because finding an exponent of b bits costs 2^(b/2). No cipher
/// here has more than 256 bits of strength, nor has any of the groups (RFC 3526 section 8).
const EXPONENT_BITS: u32 = 512;
/// The smallest group that is accepted (OpenSSH's `DH_GRP_MIN`), bits.
const MIN_GROUP_BITS: usize = 2048;
/// The largest (`DH_GRP_MAX`).
const MAX_GROUP_BITS: usize = 8192;
/// Public values with fewer bits set are refused, as OpenSSH does (dh.c, `dh_pub_is_valid`).
const MIN_BITS_SET: u32 = 4;

/// A group of the server's choice (RFC 4419 section 3), both numbers as big-endian magnitudes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GexGroup {
    /// The safe prime.
    pub p: Vec<u8>,
    /// The generator.
    pub g: Vec<u8>,
}

/// An ephemeral exponent and its group.
pub(super) struct DhKey {
    group: Group,
    exponent: Zeroizing<BoxedUint>,
}

impl DhKey {
    /// The magnitude of `e`, and the key. `method` is one of the Diffie-Hellman methods.
    pub(super) fn generate(
        method: KexMethod,
        chosen: Option<&GexGroup>,
    ) -> Result<(Vec<u8>, Self), KexError> {
        let group = match (method, chosen) {
            (_, Some(chosen)) => Group::new(&chosen.p, &chosen.g)?,
            (KexMethod::DhGroup16, _) => Group::fixed(&GROUP16)?,
            (KexMethod::DhGroup18, _) => Group::fixed(&GROUP18)?,
            _ => Group::fixed(&GROUP14)?,
        };
        let mut octets = Zeroizing::new([0; EXPONENT_BITS as usize / 8]);
        crate::random(octets.as_mut());
        let exponent = Zeroizing::new(BoxedUint::from_be_slice_truncated(
            octets.as_ref(),
            EXPONENT_BITS,
        ));
        let public = group.power(&group.generator, &exponent);
        Ok((magnitude(&public).to_vec(), DhKey { group, exponent }))
    }

    /// K = f^x mod p.
    pub(super) fn agree(self, peer: &[u8]) -> Result<SharedSecret, KexError> {
        let peer = self.group.element(peer).ok_or(KexError::PublicValue)?;
        Ok(SharedSecret::mpint(
            &self.group.power(&peer, &self.exponent),
        ))
    }
}

struct Group {
    modulus: BoxedMontyParams,
    generator: BoxedUint,
}

impl Group {
    fn fixed(prime: &[u64]) -> Result<Self, KexError> {
        let octets: Vec<u8> = prime.iter().flat_map(|word| word.to_be_bytes()).collect();
        Group::new(&octets, GENERATOR)
    }

    /// Only size and form are checked, as in OpenSSH: whether `p` is a safe prime would take seconds, and
    /// the host key's signature covers the group.
    fn new(p: &[u8], g: &[u8]) -> Result<Self, KexError> {
        let bits = bit_length(p);
        if !(MIN_GROUP_BITS..=MAX_GROUP_BITS).contains(&bits) {
            return Err(KexError::GroupSize { bits });
        }
        let p = Odd::new(BoxedUint::from_be_slice_vartime(magnitude(p)));
        let p = p.into_option().ok_or(KexError::Group)?;
        let modulus = BoxedMontyParams::new_vartime(p);
        let generator = in_group(g, &modulus).ok_or(KexError::Group)?;
        Ok(Group { modulus, generator })
    }

    /// A public value that RFC 4253 section 8 and OpenSSH accept.
    fn element(&self, octets: &[u8]) -> Option<BoxedUint> {
        let bits_set: u32 = octets.iter().map(|octet| octet.count_ones()).sum();
        in_group(octets, &self.modulus).filter(|_| bits_set >= MIN_BITS_SET)
    }

    /// base^exponent mod p, big-endian; its time does not depend on the exponent.
    fn power(&self, base: &BoxedUint, exponent: &BoxedUint) -> Zeroizing<Vec<u8>> {
        let base = BoxedMontyForm::new(base.clone(), &self.modulus);
        let mut power = base.pow_bounded_exp(exponent, EXPONENT_BITS);
        let mut value = power.retrieve();
        let octets = Zeroizing::new(value.to_be_bytes().into_vec());
        value.zeroize();
        power.zeroize();
        octets
    }
}

/// A number between 1 and p-1, both excluded, at the precision of `p`.
fn in_group(octets: &[u8], modulus: &BoxedMontyParams) -> Option<BoxedUint> {
    let p: &BoxedUint = modulus.modulus();
    let value = BoxedUint::from_be_slice(magnitude(octets), p.bits_precision()).ok()?;
    let one = BoxedUint::one_with_precision(p.bits_precision());
    let below_p = p.wrapping_sub(&one);
    (value > one && value < below_p).then_some(value)
}

#[cfg(test)]
#[path = "diffie_hellman_tests.rs"]
mod tests;
