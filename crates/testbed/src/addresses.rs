//! Which loopback address a host has.
//!
//! All of 127.0.0.0/8 is local on Linux, so every host gets an address of its own and all share one
//! port, as real hosts do.

use std::net::Ipv4Addr;

use thiserror::Error;

/// Why a block of addresses cannot be used.
#[derive(Debug, Error, PartialEq, Eq)]
#[error(
    "{hosts} hosts from {base} on would leave 127.0.0.0/8: choose a lower --base or fewer hosts"
)]
pub struct AddressError {
    /// The address before the first host's.
    pub base: Ipv4Addr,
    /// The number of hosts asked for.
    pub hosts: u32,
}

/// The last address of 127.0.0.0/8 that a host can have: the one above is the block's broadcast.
const LAST: u32 = u32::from_be_bytes([127, 255, 255, 254]);

/// The addresses of hosts 0 to `hosts - 1`: host `i` has `base + 1 + i`, so `base` itself stays free.
///
/// # Errors
/// When an address would lie outside 127.0.0.0/8.
pub fn host_addresses(base: Ipv4Addr, hosts: u32) -> Result<Vec<Ipv4Addr>, AddressError> {
    let first = u32::from(base).saturating_add(1);
    let last = u64::from(u32::from(base)) + u64::from(hosts);
    if !base.is_loopback() || last > u64::from(LAST) {
        return Err(AddressError { base, hosts });
    }
    Ok((0..hosts)
        .map(|index| Ipv4Addr::from(first + index))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_addresses_follow_the_base_and_cross_octets() {
        let addresses = host_addresses(Ipv4Addr::new(127, 1, 0, 0), 10_000).expect("fits");
        assert_eq!(addresses[0], Ipv4Addr::new(127, 1, 0, 1));
        assert_eq!(addresses[255], Ipv4Addr::new(127, 1, 1, 0));
        assert_eq!(addresses[9_999], Ipv4Addr::new(127, 1, 39, 16));
    }

    #[test]
    fn addresses_outside_loopback_are_refused() {
        for (base, hosts) in [
            (Ipv4Addr::new(10, 0, 0, 0), 1),
            (Ipv4Addr::new(127, 255, 255, 250), 5),
            (Ipv4Addr::new(127, 0, 0, 0), u32::MAX),
        ] {
            assert_eq!(
                host_addresses(base, hosts),
                Err(AddressError { base, hosts })
            );
        }
        assert!(host_addresses(Ipv4Addr::new(127, 255, 255, 250), 4).is_ok());
    }
}
