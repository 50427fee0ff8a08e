//! From a name to a TCP connection: RFC 8305 (Happy Eyeballs).

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

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

/// An address that was tried.
pub(crate) struct Tried {
    pub(crate) address: SocketAddr,
    /// From the first packet to the answer, or to when it did not matter any more.
    pub(crate) took: Duration,
    /// Why there was no connection.
    pub(crate) problem: Option<String>,
}

/// Connects to the first address that answers, starting the next when one fails or takes long.
pub(crate) async fn connect(
    addresses: &[SocketAddr],
    options: &TcpOptions,
) -> Result<Link, Failure> {
    connect_telling(addresses, options, &mut Vec::new()).await
}

/// The same; also tells what became of each address, the good one last.
pub(crate) async fn connect_telling(
    addresses: &[SocketAddr],
    options: &TcpOptions,
    tried: &mut Vec<Tried>,
) -> Result<Link, Failure> {
    let connecting = try_often(addresses, options, tried);
    within_connect_timeout(options.connect_timeout, connecting).await
}

/// ConnectionAttempts, with ssh's pause between them (sshconnect.c, ssh_connect_direct).
async fn try_often(
    addresses: &[SocketAddr],
    options: &TcpOptions,
    tried: &mut Vec<Tried>,
) -> Result<Link, Failure> {
    for _ in 1..options.attempts {
        if let Ok(link) = race(addresses, *options, tried).await {
            return Ok(link);
        }
        tokio::time::sleep(PAUSE_BETWEEN_ATTEMPTS).await;
    }
    race(addresses, *options, tried).await
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

async fn race(
    addresses: &[SocketAddr],
    options: TcpOptions,
    tried: &mut Vec<Tried>,
) -> Result<Link, Failure> {
    if let [only] = addresses {
        let begun = Instant::now();
        let link = Link::connect(*only, &options).await;
        return settle((*only, begun), link, &options, tried);
    }
    let mut waiting = addresses.iter().copied();
    let mut running: JoinSet<(SocketAddr, io::Result<Link>)> = JoinSet::new();
    // Those that have not answered, and since when.
    let mut unanswered: Vec<(SocketAddr, Instant)> = Vec::new();
    let mut last = None;
    loop {
        if let Some(address) = waiting.next() {
            unanswered.push((address, Instant::now()));
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
        let Ok(Some(Ok((address, result)))) =
            tokio::time::timeout(patience, running.join_next()).await
        else {
            continue;
        };
        let place = unanswered.iter().position(|(of, _)| *of == address);
        let attempt = place.map(|place| unanswered.remove(place));
        let attempt = attempt.unwrap_or_else(|| (address, Instant::now()));
        if result.is_ok() {
            tried.extend(unanswered.drain(..).map(|(address, begun)| Tried {
                address,
                took: begun.elapsed(),
                problem: Some(format!("no answer from {address}")),
            }));
        }
        match settle(attempt, result, &options, tried) {
            Ok(link) => return Ok(link),
            Err(failure) => last = Some(failure),
        }
    }
}

/// What became of an address.
fn settle(
    (address, begun): (SocketAddr, Instant),
    result: io::Result<Link>,
    options: &TcpOptions,
    tried: &mut Vec<Tried>,
) -> Result<Link, Failure> {
    let took = begun.elapsed();
    let result = result.map_err(|error| {
        let to = match options.bind.map(|bind| bind.towards(address)) {
            None => address.to_string(),
            Some(Some(from)) => format!("{address} from {} (BindAddress)", from.ip()),
            Some(None) => format!("{address}: BindAddress or BindInterface is of the other family"),
        };
        failures::connecting(&to, &error)
    });
    tried.push(Tried {
        address,
        took,
        problem: result.as_ref().err().map(|failure| failure.detail.clone()),
    });
    result
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::net::TcpListener;

    use tokio::runtime::Builder;
    use tokio::task::LocalSet;

    use super::*;

    /// Connects to these on loopback; whether there was a connection, and what became of each address.
    fn tried(addresses: &[SocketAddr]) -> (bool, Vec<(SocketAddr, bool)>) {
        let options = TcpOptions {
            address_family: AddressFamily::Any,
            bind: None,
            attempts: 1,
            connect_timeout: None,
            keep_alive: false,
        };
        let mut tried = Vec::new();
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let connecting = connect_telling(addresses, &options, &mut tried);
        let link = LocalSet::new().block_on(&runtime, connecting);
        let tried = tried.iter();
        let tried = tried.map(|tried| (tried.address, tried.problem.is_none()));
        (link.is_ok(), tried.collect())
    }

    #[test]
    fn what_became_of_each_address_is_told_the_good_one_last() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let good = listener.local_addr().unwrap();
        // Nobody listens there: the port is good's, the address another.
        let dead = SocketAddr::from(([127, 0, 0, 2], good.port()));
        assert_eq!(tried(&[good]), (true, vec![(good, true)]));
        assert_eq!(tried(&[dead]), (false, vec![(dead, false)]));
        assert_eq!(
            tried(&[dead, good]),
            (true, vec![(dead, false), (good, true)])
        );
    }
}
