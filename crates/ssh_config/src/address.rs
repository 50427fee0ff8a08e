//! Host names that are addresses, in the one spelling that known_hosts and the network know.

use std::net::{Ipv4Addr, Ipv6Addr};

/// The name to connect to for `host`: an address in its canonical spelling, any other name in
/// lowercase (`is_addr` and `resolve_canonicalize`, ssh.c).
pub(crate) fn canonical(host: String) -> String {
    if let Some(address) = ipv4(&host) {
        return address.to_string();
    }
    let (address, scope) = host.split_at(host.find('%').unwrap_or(host.len()));
    match address
        .parse::<Ipv6Addr>()
        .map(|address| format!("{address}{scope}"))
    {
        Ok(canonical) if !canonical.eq_ignore_ascii_case(&host) => canonical,
        // What is canonical but for its case, and what only looks like an address, stays.
        _ if host.contains(['%', ':']) => host,
        _ => host.to_ascii_lowercase(),
    }
}

/// An IPv4 address as inet_aton(3) reads it: one to four numbers, decimal, octal or hexadecimal,
/// of which the last fills what the others leave.
fn ipv4(text: &str) -> Option<Ipv4Addr> {
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
    use super::canonical;

    #[test]
    fn addresses_have_one_spelling_and_names_are_lowercase() {
        let cases = [
            ("127.0.0.1", "127.0.0.1"),
            ("127.1", "127.0.0.1"),
            ("0x7f.1", "127.0.0.1"),
            ("0177.0.0.01", "127.0.0.1"),
            ("2130706433", "127.0.0.1"),
            ("1.2.3.256", "1.2.3.256"),
            ("1.2.3.4.5", "1.2.3.4.5"),
            ("1.+2", "1.+2"),
            ("089", "089"),
            ("2001:DB8:0::1", "2001:db8::1"),
            ("2001:DB8::1", "2001:DB8::1"),
            ("FE80:0::1%Eth0", "fe80::1%Eth0"),
            ("DB%", "DB%"),
            ("A:B", "A:B"),
            ("Web1.Example.COM", "web1.example.com"),
            ("", ""),
        ];
        for (host, expected) in cases {
            assert_eq!(canonical(host.into()), expected, "{host}");
        }
    }
}
