//! CRC-32 as IEEE 802.3 has it: against torn and rotten records, not against people.

/// The sum of several pieces, one behind the other.
pub(crate) fn crc32(pieces: &[&[u8]]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    for piece in pieces {
        sum.update(piece);
    }
    sum.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_value_is_that_of_the_standard() {
        assert_eq!(crc32(&[b"123456789"]), 0xcbf4_3926);
        assert_eq!(crc32(&[b"1234", b"", b"56789"]), 0xcbf4_3926);
    }
}
