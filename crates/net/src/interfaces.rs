//! The addresses of this machine's network interfaces.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV6, ToSocketAddrs};

use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use nix::net::if_::{InterfaceFlags, if_nameindex};

/// Where connections come from: an address a family, of those that there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LocalAddresses {
    /// For hosts with an address of IPv4.
    pub v4: Option<Ipv4Addr>,
    /// For hosts with an address of IPv6; the port is 0.
    pub v6: Option<SocketAddrV6>,
}

impl LocalAddresses {
    /// The addresses of a name, or the address that is written (BindAddress).
    pub(crate) fn of_name(name: &str) -> io::Result<LocalAddresses> {
        let found: Vec<SocketAddr> = (name, 0).to_socket_addrs()?.collect();
        Ok(LocalAddresses {
            v4: found.iter().find_map(|address| match address {
                SocketAddr::V4(v4) => Some(*v4.ip()),
                SocketAddr::V6(_) => None,
            }),
            v6: found.iter().find_map(|address| match address {
                SocketAddr::V4(_) => None,
                SocketAddr::V6(v6) => Some(*v6),
            }),
        })
    }

    /// The addresses of an interface that is up; those that are good on this machine or its link alone only if it has
    /// no others (`check_ifaddrs`, sshconnect.c). `None` if it has none.
    pub(crate) fn of_interface(interface: &str) -> io::Result<Option<LocalAddresses>> {
        let own = up()?.filter(|found| found.interface_name == interface);
        let own: Vec<SocketAddr> = own.filter_map(|found| address(&found)).collect();
        let (local, wide): (Vec<_>, Vec<_>) = own.into_iter().partition(is_local);
        let mut best = wide.iter().chain(&local);
        let addresses = LocalAddresses {
            v4: best.clone().find_map(|address| match address {
                SocketAddr::V4(v4) => Some(*v4.ip()),
                SocketAddr::V6(_) => None,
            }),
            v6: best.find_map(|address| match address {
                SocketAddr::V4(_) => None,
                SocketAddr::V6(v6) => Some(*v6),
            }),
        };
        Ok((addresses != LocalAddresses::default()).then_some(addresses))
    }

    /// The one to connect to `address` from.
    pub(crate) fn towards(&self, address: SocketAddr) -> Option<SocketAddr> {
        match address {
            SocketAddr::V4(_) => self.v4.map(|v4| SocketAddr::new(v4.into(), 0)),
            SocketAddr::V6(_) => self.v6.map(SocketAddr::V6),
        }
    }
}

/// What a scope of IPv6 is called: the interface of that index, or the number if there is none.
pub(crate) fn name_of_scope(scope: u32) -> String {
    let interfaces = if_nameindex();
    let name = interfaces.ok().and_then(|interfaces| {
        let own = interfaces
            .iter()
            .find(|interface| interface.index() == scope)?;
        own.name().to_str().ok().map(str::to_owned)
    });
    name.unwrap_or_else(|| scope.to_string())
}

/// The addresses of all interfaces that are up (`Match localnetwork`).
pub(crate) fn local_addresses() -> Vec<IpAddr> {
    let found = up().into_iter().flatten();
    found
        .filter_map(|found| Some(address(&found)?.ip()))
        .collect()
}

fn up() -> io::Result<impl Iterator<Item = InterfaceAddress>> {
    let all = getifaddrs().map_err(io::Error::from)?;
    Ok(all.filter(|found| found.flags.contains(InterfaceFlags::IFF_UP)))
}

fn address(found: &InterfaceAddress) -> Option<SocketAddr> {
    let address = found.address.as_ref()?;
    let v4 = address.as_sockaddr_in();
    let v6 = address.as_sockaddr_in6();
    v4.map(|v4| SocketAddr::new(v4.ip().into(), 0))
        .or_else(|| v6.map(|v6| SocketAddrV6::new(v6.ip(), 0, 0, v6.scope_id()).into()))
}

fn is_local(address: &SocketAddr) -> bool {
    match address.ip() {
        IpAddr::V4(v4) => v4 == Ipv4Addr::LOCALHOST,
        IpAddr::V6(v6) => v6.is_loopback() || v6.is_unicast_link_local(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::net::Ipv6Addr;

    use super::*;

    #[test]
    fn this_machine_has_its_own_addresses() {
        let localhost = IpAddr::from(Ipv4Addr::LOCALHOST);
        assert!(local_addresses().contains(&localhost));
        let of_lo = LocalAddresses::of_interface("lo").unwrap().unwrap();
        assert_eq!(of_lo.v4, Some(Ipv4Addr::LOCALHOST));
        let to = SocketAddr::new(localhost, 22);
        assert_eq!(of_lo.towards(to), Some(SocketAddr::new(localhost, 0)));
        assert_eq!(
            LocalAddresses::of_interface("no-such-interface").unwrap(),
            None
        );
    }

    #[test]
    fn a_written_address_is_of_one_family() {
        let v6 = LocalAddresses::of_name("::1").unwrap();
        assert_eq!((v6.v4, v6.v6.unwrap().ip()), (None, &Ipv6Addr::LOCALHOST));
    }
}
