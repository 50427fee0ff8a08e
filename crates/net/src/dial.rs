//! From a name to a TCP connection: RFC 8305 (Happy Eyeballs).

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use sshoal_fleet::{Failure, FailureKind};
use sshoal_ssh_config::AddressFamily;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use crate::failures;
use crate::link::Link;
use crate::plan::{Endpoint, TcpOptions};

/// RFC 8305 section 8, Connection Attempt Delay: the next address is tried this long after the last.
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// Name lookups at a time, in the whole process: getaddrinfo(3) stays with a name whose servers are gone for half a minute,
/// longer than anybody waits for it. tokio has 512 threads for what blocks in each of its runtimes; the others are for
/// input and files.
const LOOKUPS_AT_ONCE: usize = 384;
static LOOKUPS: LazyLock<Arc<Semaphore>> =
    LazyLock::new(|| Arc::new(Semaphore::new(LOOKUPS_AT_ONCE)));

/// Between two attempts at all addresses of a host.
const PAUSE_BETWEEN_ATTEMPTS: Duration = Duration::from_secs(1);

/// A place among the lookups of the process, which lasts until the resolver has answered, whoever waits for that.
pub(crate) struct LookupTurn {
    /// `None` for an address, which nobody is asked for.
    _place: Option<OwnedSemaphorePermit>,
}

impl LookupTurn {
    /// If it is to be had at once.
    pub(crate) fn at_once(host: &Endpoint) -> Option<LookupTurn> {
        let place = match host.name.parse::<IpAddr>() {
            Ok(_) => None,
            Err(_) => Some(LOOKUPS.clone().try_acquire_owned().ok()?),
        };
        Some(LookupTurn { _place: place })
    }

    /// For a jump host: there are few, and all that is behind it waits.
    pub(crate) fn of_jump() -> LookupTurn {
        LookupTurn { _place: None }
    }

    /// As soon as it is to be had.
    pub(crate) async fn awaited(host: &Endpoint) -> LookupTurn {
        match LookupTurn::at_once(host) {
            Some(turn) => turn,
            // The semaphore is never closed.
            None => LookupTurn {
                _place: LOOKUPS.clone().acquire_owned().await.ok(),
            },
        }
    }

    /// Does what may block for long, in a thread of its own that keeps the place.
    async fn perform<T: Send + 'static>(
        self,
        job: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let performed = tokio::task::spawn_blocking(move || {
            let result = job();
            drop(self);
            result
        });
        performed.await.map_err(io::Error::other)?
    }
}

/// The addresses of a host, families alternating (RFC 8305 section 4), once there is a turn.
pub(crate) async fn addresses(host: &Endpoint) -> Result<Vec<SocketAddr>, Failure> {
    look_up(host, LookupTurn::awaited(host).await).await
}

/// The same, in a turn that is there.
pub(crate) async fn look_up(host: &Endpoint, turn: LookupTurn) -> Result<Vec<SocketAddr>, Failure> {
    let (name, port) = (host.name.as_str(), host.port);
    let found: Vec<SocketAddr> = match name.parse::<IpAddr>() {
        Ok(address) => vec![SocketAddr::new(address, port)],
        Err(_) => {
            let asked = (name.to_owned(), port);
            let found = turn.perform(move || asked.to_socket_addrs()).await;
            found
                .map_err(|error| {
                    Failure::new(FailureKind::Resolve, format!("looking up {name}: {error}"))
                })?
                .collect()
        }
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
    use std::sync::mpsc;

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

    #[tokio::test]
    async fn a_lookup_keeps_its_place_until_the_resolver_has_answered() {
        let places = Arc::new(Semaphore::new(1));
        let turn = LookupTurn {
            _place: Some(places.clone().try_acquire_owned().unwrap()),
        };
        let (begun, has_begun) = tokio::sync::oneshot::channel();
        let (answer, answered) = mpsc::channel::<()>();
        let lookup = turn.perform(move || {
            begun.send(()).unwrap();
            // Until there is nobody to answer any more.
            let _ = answered.recv();
            Ok(())
        });
        // Whoever asked has gone, for it took too long.
        tokio::select! {
            _ = lookup => panic!("nobody has answered"),
            begun = has_begun => begun.unwrap(),
        }
        assert!(places.try_acquire().is_err());
        drop(answer);
        let place = tokio::time::timeout(Duration::from_secs(60), places.acquire());
        assert!(place.await.unwrap().is_ok());
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
