//! From a name to a TCP connection: RFC 8305 (Happy Eyeballs).

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use sshoal_fleet::{Failure, FailureKind};
use tokio::task::JoinSet;

use crate::failures;
use crate::link::Link;

/// RFC 8305 section 8, Connection Attempt Delay: the next address is tried this long after the last.
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// The addresses of a host, families alternating (RFC 8305 section 4).
pub(crate) async fn addresses(name: &str, port: u16) -> Result<Vec<SocketAddr>, Failure> {
    if let Ok(address) = name.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let found = tokio::net::lookup_host((name, port))
        .await
        .map_err(|error| {
            Failure::new(FailureKind::Resolve, format!("looking up {name}: {error}"))
        })?;
    let (v6, v4): (Vec<SocketAddr>, Vec<SocketAddr>) = found.partition(SocketAddr::is_ipv6);
    let mut alternating = Vec::with_capacity(v6.len() + v4.len());
    for at in 0..v6.len().max(v4.len()) {
        alternating.extend(v6.get(at));
        alternating.extend(v4.get(at));
    }
    match alternating.is_empty() {
        true => Err(Failure::new(
            FailureKind::Resolve,
            format!("{name} has no address"),
        )),
        false => Ok(alternating),
    }
}

/// Connects to the first address that answers, starting the next when one fails or takes long.
pub(crate) async fn connect(addresses: &[SocketAddr]) -> Result<Link, Failure> {
    if let [only] = addresses {
        return Link::connect(*only)
            .await
            .map_err(|error| failures::connecting(&only.to_string(), &error));
    }
    let mut waiting = addresses.iter().copied();
    let mut running: JoinSet<(SocketAddr, io::Result<Link>)> = JoinSet::new();
    let mut last = None;
    loop {
        if let Some(address) = waiting.next() {
            running.spawn_local(async move { (address, Link::connect(address).await) });
        } else if running.is_empty() {
            return Err(last.unwrap_or_else(|| {
                Failure::new(FailureKind::Resolve, "no address to connect to")
            }));
        }
        let patience = if waiting.len() == 0 {
            Duration::MAX
        } else {
            ATTEMPT_DELAY
        };
        match tokio::time::timeout(patience, running.join_next()).await {
            Ok(Some(Ok((_, Ok(link))))) => return Ok(link),
            Ok(Some(Ok((address, Err(error))))) => {
                last = Some(failures::connecting(&address.to_string(), &error))
            }
            Ok(Some(Err(_)) | None) | Err(_) => {}
        }
    }
}
