//! Lists of networks, for `Match localnetwork` (`addr_match_cidr_list`, addrmatch.c).

use std::net::{IpAddr, Ipv6Addr};

use crate::address;

/// Longest entry of a list: an IPv6 address (`INET6_ADDRSTRLEN`) and its mask.
const MAX_ENTRY: usize = 46 + 3;

/// An address and how many of its bits count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Network {
    address: IpAddr,
    bits: u32,
}

impl Network {
    /// Reads a comma-separated list.
    pub(crate) fn parse_list(text: &str) -> Result<Vec<Network>, String> {
        text.split(',').map(Network::parse).collect()
    }

    fn parse(text: &str) -> Result<Network, String> {
        let invalid = || format!("invalid network \"{text}\"");
        let (address, bits) = text.split_once('/').unwrap_or((text, ""));
        let v4 = || address::ipv4(address).map(IpAddr::V4);
        let v6 = || address.parse::<Ipv6Addr>().ok().map(IpAddr::V6);
        let address = v4()
            .or_else(v6)
            .filter(|_| text.len() <= MAX_ENTRY && !text.contains(['x', 'X']))
            .ok_or_else(invalid)?;
        let all_bits = if address.is_ipv4() { 32 } else { 128 };
        let bits = match text.contains('/') {
            true => bits.parse().map_err(|_| invalid())?,
            false => all_bits,
        };
        let network = Network { address, bits };
        if bits > all_bits || network.prefix(address) != Some(shifted(address, 0)) {
            return Err(format!("inconsistent mask length in network \"{text}\""));
        }
        Ok(network)
    }

    /// Whether an address lies in the network.
    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        let prefix = self.prefix(address);
        prefix.is_some() && prefix == self.prefix(self.address)
    }

    /// The bits of an address of the same kind that count, the others 0.
    fn prefix(&self, address: IpAddr) -> Option<u128> {
        if address.is_ipv4() != self.address.is_ipv4() {
            return None;
        }
        let width = if address.is_ipv4() { 32 } else { 128 };
        let host_bits = width - self.bits.min(width);
        Some(shifted(address, host_bits))
    }
}

/// An address as a number, its last bits cleared.
fn shifted(address: IpAddr, cleared: u32) -> u128 {
    let number = match address {
        IpAddr::V4(address) => address.to_bits().into(),
        IpAddr::V6(address) => address.to_bits(),
    };
    number
        .checked_shr(cleared)
        .and_then(|number| number.checked_shl(cleared))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_list_has_networks_and_addresses_of_both_kinds() {
        let networks = Network::parse_list("10.0.0.0/8,192.168.1.7,2001:db8::/32,::1").unwrap();
        let contains = |text: &str| {
            let address = text.parse().unwrap();
            networks.iter().any(|network| network.contains(address))
        };
        for inside in ["10.255.0.1", "192.168.1.7", "2001:db8:1::2", "::1"] {
            assert!(contains(inside), "{inside}");
        }
        for outside in [
            "11.0.0.0",
            "192.168.1.6",
            "2001:db9::",
            "::2",
            "::ffff:10.0.0.1",
        ] {
            assert!(!contains(outside), "{outside}");
        }
        let all = Network::parse_list("0.0.0.0/0,::/0").unwrap();
        for address in ["1.2.3.4", "fe80::1"] {
            let address = address.parse().unwrap();
            assert!(all.iter().any(|network| network.contains(address)));
        }
    }

    #[test]
    fn what_is_no_network_is_refused() {
        for text in [
            "",
            "10.0.0.0/8,",
            "10.0.0.0/x",
            "10.0.0.0/",
            "10.0.0.0/33",
            "10.0.0.1/8",
            "2001:db8::1/64",
            "::/129",
            "example.com",
            "0x0a.0.0.0/8",
            "*",
        ] {
            assert!(Network::parse_list(text).is_err(), "{text}");
        }
    }
}
