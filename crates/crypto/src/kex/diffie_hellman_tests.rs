#![allow(clippy::unwrap_used)]

use super::*;

/// A number as little-endian words, as far as the formula of RFC 3526 needs it.
#[derive(Clone)]
struct Natural(Vec<u32>);

impl Natural {
    fn divide(&mut self, divisor: u64) -> bool {
        let mut remainder = 0;
        for word in self.0.iter_mut().rev() {
            let dividend = remainder << 32 | u64::from(*word);
            *word = (dividend / divisor) as u32;
            remainder = dividend % divisor;
        }
        self.0.iter().any(|word| *word != 0)
    }

    /// Adds `times` (in -16..=16) times the other number.
    fn add(&mut self, other: &Natural, times: i64) {
        let mut carry = 0;
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            let sum = i64::from(*word) + times * i64::from(*other) + carry;
            *word = sum as u32;
            carry = sum >> 32;
        }
    }
}

/// Adds times * 2^bits * arctan(1 / inverse).
fn add_arctan(sum: &mut Natural, inverse: u64, times: i64, bits: usize) {
    let mut power = Natural(vec![0; sum.0.len()]);
    power.0[bits / 32] = 1;
    power.divide(inverse);
    for odd in (1..).step_by(2) {
        let mut term = power.clone();
        term.divide(odd);
        sum.add(&term, if odd % 4 == 1 { times } else { -times });
        if !power.divide(inverse * inverse) {
            return;
        }
    }
}

/// RFC 3526: 2^n - 2^(n-64) - 1 + 2^64 * (floor(2^(n-130) * pi) + c), big-endian; pi by Machin's formula.
fn modp_prime(n: usize, c: u64) -> Vec<u8> {
    const GUARD: usize = 64;
    let bits = n - 130 + GUARD + 2; // a multiple of 32, so two bits too many
    let mut pi = Natural(vec![0; n / 32 + 4]);
    add_arctan(&mut pi, 5, 16, bits);
    add_arctan(&mut pi, 239, -4, bits);
    pi.divide(1 << 2);
    let mut prime = Natural(vec![0; n / 32]);
    // Shifting off the guard and multiplying by 2^64 cancel out but for the low words.
    prime.0[2..].copy_from_slice(&pi.0[2..n / 32]);
    let mut small = Natural(vec![0; n / 32]);
    small.0[2] = c as u32;
    small.0[3] = (c >> 32) as u32;
    prime.add(&small, 1);
    let mut one_below = Natural(vec![0; n / 32]);
    one_below.0[0] = 1;
    prime.add(&one_below, -1); // and + 2^n, - 2^(n-64):
    let top = n / 32 - 2;
    let mut high = Natural(vec![0; n / 32]);
    high.0[top] = 1;
    prime.add(&high, -1);
    prime
        .0
        .iter()
        .rev()
        .flat_map(|word| word.to_be_bytes())
        .collect()
}

fn octets(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

#[test]
fn the_primes_are_those_of_rfc_3526() {
    assert_eq!(octets(&GROUP14), modp_prime(2048, 124_476));
    assert_eq!(octets(&GROUP16), modp_prime(4096, 240_904));
    assert_eq!(octets(&GROUP18), modp_prime(8192, 4_743_158));
}

fn group14() -> Group {
    Group::fixed(&GROUP14).unwrap()
}

fn generate(group: &GexGroup) -> Result<(Vec<u8>, DhKey), KexError> {
    DhKey::generate(KexMethod::DhGroupExchange, Some(group))
}

#[test]
fn powers_are_powers() {
    let group = group14();
    let power = |exponent: u64| {
        let mut exponent_octets = vec![0; 64 - 8];
        exponent_octets.extend_from_slice(&exponent.to_be_bytes());
        let exponent = BoxedUint::from_be_slice(&exponent_octets, EXPONENT_BITS).unwrap();
        magnitude(&group.power(&group.generator, &exponent)).to_vec()
    };
    assert_eq!(power(0), [1]);
    assert_eq!(power(1), [2]);
    assert_eq!(power(10), [4, 0]);
    // 2^2048 mod p = 2^2048 - p.
    let mut expected: Vec<u8> = octets(&GROUP14).iter().map(|octet| !octet).collect();
    *expected.last_mut().unwrap() += 1;
    assert_eq!(power(2048), magnitude(&expected));
}

#[test]
fn values_outside_the_group_are_refused() {
    let p = octets(&GROUP14);
    let mut below = p.clone();
    *below.last_mut().unwrap() -= 1;
    let mut above = p.clone();
    above[0] = 1;
    above.insert(0, 1);
    for refused in [
        vec![],
        vec![0],
        vec![1],
        vec![0, 1],
        below,
        p,
        above,
        vec![0xff; 2000],
    ] {
        let (_, key) = DhKey::generate(KexMethod::DhGroup14, None).unwrap();
        assert_eq!(key.agree(&refused).err(), Some(KexError::PublicValue));
    }
    // OpenSSH's fewest bits: 2^3 - 1 has three, 2^4 - 1 four.
    assert!(group14().element(&[7]).is_none());
    assert!(group14().element(&[15]).is_some());
    let leading_zeros = [&[0, 0], &octets(&GROUP14)[1..]].concat();
    assert!(group14().element(&leading_zeros).is_some());
}

#[test]
fn both_sides_of_a_group_exchange_agree() {
    let group = GexGroup {
        p: octets(&GROUP14),
        g: vec![5],
    };
    let (to_server, client) = generate(&group).unwrap();
    let (to_client, server) = generate(&group).unwrap();
    let (at_client, at_server) = (
        client.agree(&to_client).unwrap(),
        server.agree(&to_server).unwrap(),
    );
    assert_eq!(at_client.encoded(), at_server.encoded());
}

#[test]
fn groups_of_other_sizes_are_refused() {
    for bits in [0, 1, 1024, 2047, 8193, 16_384] {
        let mut p = vec![0xff; usize::div_ceil(bits, 8)];
        if bits % 8 != 0 {
            p[0] = (1 << (bits % 8)) - 1;
        }
        let group = GexGroup { p, g: vec![2] };
        assert_eq!(generate(&group).err(), Some(KexError::GroupSize { bits }));
    }
}

#[test]
fn leading_zeros_do_not_make_a_short_group_long() {
    let group = GexGroup {
        p: [vec![0; 128], vec![0xff; 128]].concat(),
        g: vec![2],
    };
    assert_eq!(
        generate(&group).err(),
        Some(KexError::GroupSize { bits: 1024 })
    );
}

#[test]
fn even_moduli_and_idle_generators_are_refused() {
    let p = octets(&GROUP14);
    let mut below = p.clone();
    *below.last_mut().unwrap() -= 1;
    let even = GexGroup {
        p: below.clone(),
        g: vec![2],
    };
    assert_eq!(generate(&even).err(), Some(KexError::Group));
    for g in [vec![], vec![0], vec![1], below, p.clone()] {
        let group = GexGroup { p: p.clone(), g };
        assert_eq!(generate(&group).err(), Some(KexError::Group));
    }
}
