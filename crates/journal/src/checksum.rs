//! CRC-32 as IEEE 802.3 has it: against torn and rotten records, not against people.

/// The polynomial, its lowest power first.
const POLYNOMIAL: u32 = 0xedb8_8320;

const TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut octet = 0;
    while octet < 256 {
        let mut rest = octet as u32;
        let mut bit = 0;
        while bit < 8 {
            rest = (rest >> 1) ^ (POLYNOMIAL * (rest & 1));
            bit += 1;
        }
        table[octet] = rest;
        octet += 1;
    }
    table
}

/// The sum of several pieces, one behind the other.
pub(crate) fn crc32(pieces: &[&[u8]]) -> u32 {
    let octets = pieces.iter().copied().flatten();
    !octets.fold(!0, |sum: u32, &octet| {
        TABLE[usize::from(sum as u8 ^ octet)] ^ (sum >> 8)
    })
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
