//! Which start of this machine it is: after another one, what was written and not synced may be gone.

use std::fs;

/// The kernel's name for it (random(4)).
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The name of this start of the machine; `None` where the kernel does not tell.
pub(super) fn boot_id() -> Option<[u8; 16]> {
    parsed(&fs::read_to_string(BOOT_ID).ok()?)
}

/// The number that a UUID is.
fn parsed(text: &str) -> Option<[u8; 16]> {
    let digits = text.trim().replace('-', "");
    let number = u128::from_str_radix(&digits, 16).ok()?;
    Some(number.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boot_is_known_by_its_uuid() {
        let id = parsed("00000000-0000-4000-8000-0000000000ff\n");
        let mut expected = [0; 16];
        (expected[6], expected[8], expected[15]) = (0x40, 0x80, 0xff);
        assert_eq!(id, Some(expected));
        assert_eq!(parsed(""), None);
    }
}
