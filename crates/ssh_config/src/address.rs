//! Host names that are addresses, in the one spelling that known_hosts and the network know.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::value::words::AddressFamily;

/// The canonical spelling of an address of the family (`resolve_addr`, ssh.c); `None` for what is
/// no such address.
pub(crate) fn canonical(host: &str, family: AddressFamily) -> Option<String> {
    let spelling = match ipv4(host) {
        Some(_) if family == AddressFamily::Inet6 => return None,
        Some(address) => address.to_string(),
        None if family == AddressFamily::Inet => return None,
        None => {
            let (address, scope) = host.split_at(host.find('%').unwrap_or(host.len()));
            format!("{}{scope}", address.parse::<Ipv6Addr>().ok()?)
        }
    };
    // What is canonical but for its case stays as it is.
    let is_canonical = spelling.eq_ignore_ascii_case(host);
    Some(if is_canonical { host.into() } else { spelling })
}

/// Whether a name can only be an address, even if it is none (`is_addr_fast`, ssh.c).
pub(crate) fn looks_like_one(name: &str) -> bool {
    name.contains(['%', ':']) || name.chars().all(|c| c.is_ascii_digit() || c == '.')
}

/// An IPv4 address as inet_aton(3) reads it: one to four numbers, decimal, octal or hexadecimal,
/// of which the last fills what the others leave.
pub(crate) fn ipv4(text: &str) -> Option<Ipv4Addr> {
    let numbers: Vec<u32> = text.split('.').map(number).collect::<Option<_>>()?;
    let (&last, bytes) = numbers.split_last()?;
    let free_bits = 32u32.checked_sub(8 * u32::try_from(bytes.len()).ok()?)?;
    if free_bits == 0 || u64::from(last) >> free_bits != 0 || bytes.iter().any(|&byte| byte > 255) {
        return None;
    }
    let high = bytes
        .iter()
        .fold(0u64, |high, &byte| high << 8 | u64::from(byte))
        << free_bits;
    Some(Ipv4Addr::from_bits(u32::try_from(high).ok()? | last))
}

fn number(text: &str) -> Option<u32> {
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None if text.len() > 1 && text.starts_with('0') => (&text[1..], 8),
        None => (text, 10),
    };
    let all_digits = digits.chars().all(|c| c.is_digit(radix));
    if all_digits {
        u32::from_str_radix(digits, radix).ok()
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_one_spelling() {
        let cases = [
            ("127.0.0.1", "127.0.0.1"),
            ("127.1", "127.0.0.1"),
            ("0x7f.1", "127.0.0.1"),
            ("0177.0.0.01", "127.0.0.1"),
            ("2130706433", "127.0.0.1"),
            ("2001:DB8:0::1", "2001:db8::1"),
            ("2001:DB8::1", "2001:DB8::1"),
            ("FE80:0::1%Eth0", "fe80::1%Eth0"),
        ];
        for (host, expected) in cases {
            let canonical = canonical(host, AddressFamily::Any);
            assert_eq!(canonical.as_deref(), Some(expected), "{host}");
        }
        for host in [
            "1.2.3.256",
            "1.2.3.4.5",
            "1.+2",
            "089",
            "DB%",
            "A:B",
            "web1",
            "",
        ] {
            assert_eq!(canonical(host, AddressFamily::Any), None, "{host}");
        }
    }

    #[test]
    fn an_address_of_the_other_family_is_none() {
        assert_eq!(canonical("127.1", AddressFamily::Inet6), None);
        assert_eq!(canonical("::1", AddressFamily::Inet), None);
        assert!(canonical("127.1", AddressFamily::Inet).is_some());
        assert!(canonical("::1", AddressFamily::Inet6).is_some());
    }

    #[test]
    fn digits_dots_colons_and_percent_signs_are_for_addresses() {
        for name in ["1.2.3.256", "1.2.3.4.5", "DB%", "A:B"] {
            assert!(looks_like_one(name), "{name}");
        }
        for name in ["web1", "0x7f.1", "1.+2"] {
            assert!(!looks_like_one(name), "{name}");
        }
    }
}
