//! From a name to a TCP connection: RFC 8305 (Happy Eyeballs).

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use sshoal_fleet::{Failure, FailureKind};
use sshoal_ssh_config::AddressFamily;
use tokio::task::JoinSet;

use crate::failures;
use crate::link::Link;
use crate::plan::{Endpoint, TcpOptions};

/// RFC 8305 section 8, Connection Attempt Delay: the next address is tried this long after the last.
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// Between two attempts at all addresses of a host.
const PAUSE_BETWEEN_ATTEMPTS: Duration = Duration::from_secs(1);

/// The addresses of a host, families alternating (RFC 8305 section 4).
pub(crate) async fn addresses(host: &Endpoint) -> Result<Vec<SocketAddr>, Failure> {
    let (name, port) = (host.name.as_str(), host.port);
    let found: Vec<SocketAddr> = match name.parse::<IpAddr>() {
        Ok(address) => vec![SocketAddr::new(address, port)],
        Err(_) => tokio::net::lookup_host((name, port))
            .await
            .map_err(|error| {
                Failure::new(FailureKind::Resolve, format!("looking up {name}: {error}"))
            })?
            .collect(),
    };
    let usable = |address: &SocketAddr| match host.tcp.address_family {
        AddressFamily::Any => true,
        AddressFamily::Inet => address.is_ipv4(),
        AddressFamily::Inet6 => address.is_ipv6(),
    };
    let usable = found.into_iter().filter(usable);
    let (v6, v4): (Vec<SocketAddr>, Vec<SocketAddr>) = usable.partition(SocketAddr::is_ipv6);
    let mut alternating = Vec::with_capacity(v6.len() + v4.len());
    for at in 0..v6.len().max(v4.len()) {
        alternating.extend(v6.get(at));
        alternating.extend(v4.get(at));
    }
    match alternating.is_empty() {
        true => Err(Failure::new(
            FailureKind::Resolve,
            match host.tcp.address_family {
                AddressFamily::Any => format!("{name} has no address"),
                _ => format!("{name} has no address of the family that AddressFamily asks for"),
            },
        )),
        false => Ok(alternating),
    }
}

/// Connects to the first address that answers, starting the next when one fails or takes long.
pub(crate) async fn connect(
    addresses: &[SocketAddr],
    options: &TcpOptions,
) -> Result<Link, Failure> {
    within_connect_timeout(options.connect_timeout, try_often(addresses, options)).await
}

/// ConnectionAttempts, with ssh's pause between them (sshconnect.c, ssh_connect_direct).
async fn try_often(addresses: &[SocketAddr], options: &TcpOptions) -> Result<Link, Failure> {
    for _ in 1..options.attempts {
        if let Ok(link) = race(addresses, *options).await {
            return Ok(link);
        }
        tokio::time::sleep(PAUSE_BETWEEN_ATTEMPTS).await;
    }
    race(addresses, *options).await
}

/// Bounds a connection by the host's own ConnectTimeout.
pub(crate) async fn within_connect_timeout<T>(
    limit: Option<Duration>,
    connecting: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let Some(limit) = limit else {
        return connecting.await;
    };
    match tokio::time::timeout(limit, connecting).await {
        Ok(end) => end,
        Err(_) => Err(Failure::new(
            FailureKind::ConnectTimeout,
            format!("no connection within {limit:?}"),
        )),
    }
}

async fn race(addresses: &[SocketAddr], options: TcpOptions) -> Result<Link, Failure> {
    let failed = |address: SocketAddr, error: &io::Error| {
        let to = match options.bind.map(|bind| bind.towards(address)) {
            None => address.to_string(),
            Some(Some(from)) => format!("{address} from {} (BindAddress)", from.ip()),
            Some(None) => format!("{address}: BindAddress or BindInterface is of the other family"),
        };
        failures::connecting(&to, error)
    };
    if let [only] = addresses {
        return Link::connect(*only, &options)
            .await
            .map_err(|error| failed(*only, &error));
    }
    let mut waiting = addresses.iter().copied();
    let mut running: JoinSet<(SocketAddr, io::Result<Link>)> = JoinSet::new();
    let mut last = None;
    loop {
        if let Some(address) = waiting.next() {
            running.spawn_local(async move { (address, Link::connect(address, &options).await) });
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
                last = Some(failed(address, &error));
            }
            Ok(Some(Err(_)) | None) | Err(_) => {}
        }
    }
}
