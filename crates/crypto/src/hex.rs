//! Test vectors are written in hexadecimal.

/// The octets of a vector; white space is skipped.
///
/// # Panics
///
/// For anything else: a vector is then mistyped.
pub(crate) fn decode(digits: &str) -> Vec<u8> {
    let digits: Vec<u32> = digits
        .chars()
        .filter(|digit| !digit.is_whitespace())
        .map(|digit| digit.to_digit(16).expect("vectors are hexadecimal"))
        .collect();
    digits
        .chunks(2)
        .map(|pair| (pair[0] * 16 + pair[1]) as u8)
        .collect()
}
