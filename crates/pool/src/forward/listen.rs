//! Listening on this side, and what becomes of whoever connects.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use rustix::net::sockopt;
use sshoal_mux::Place;
use sshoal_net::Listening;
use tokio::net::{TcpListener, TcpSocket, UnixListener, lookup_host};
use tokio::task::{AbortHandle, spawn_local};
use tokio::time::{sleep, timeout};

use super::place::Connected;
use super::stream::{Boarded, is_opened, pass};
use super::{Connection, path, socks};
use crate::host::Host;
use crate::seat::{Seat, Wanted};
use crate::socket_file::{BACKLOG, SocketFile};

/// Most addresses that a name may have which is listened at.
const MAX_ADDRESSES: usize = 16;
/// How long the name of an address may take.
const NAME_PATIENCE: Duration = Duration::from_secs(30);
/// How long nobody is let in when there is no descriptor left.
const OUT_OF_DESCRIPTORS: Duration = Duration::from_millis(200);

/// A socket that is listened at.
pub(super) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// Listens there. The error says why that is not possible.
pub(super) async fn bind(
    at: &Place,
    listening: &Listening,
) -> Result<(Vec<Listener>, Option<SocketFile>), String> {
    match at {
        Place::Unix(octets) => {
            let path = path(octets);
            let shown = path.display().to_string();
            let bound = bind_unix(path, listening);
            let (listener, file) = bound.map_err(|error| format!("{shown}: {error}"))?;
            Ok((vec![listener], Some(file)))
        }
        Place::Tcp { host, port } => {
            let addresses = addresses(host, *port, listening).await?;
            Ok((bind_tcp(&addresses)?, None))
        }
    }
}

/// As channels.c, `channel_fwd_bind_addr`.
async fn addresses(
    host: &str,
    port: u16,
    listening: &Listening,
) -> Result<Vec<SocketAddr>, String> {
    let of = |four: Ipv4Addr, six: Ipv6Addr| {
        let both: [IpAddr; 2] = [four.into(), six.into()];
        both.map(|address| SocketAddr::new(address, port)).to_vec()
    };
    let everywhere = || of(Ipv4Addr::UNSPECIFIED, Ipv6Addr::UNSPECIFIED);
    match host {
        "" if listening.gateway_ports => Ok(everywhere()),
        "*" => Ok(everywhere()),
        "" | "localhost" => Ok(of(Ipv4Addr::LOCALHOST, Ipv6Addr::LOCALHOST)),
        name => match timeout(NAME_PATIENCE, lookup_host((name, port))).await {
            Ok(Ok(found)) => Ok(found.take(MAX_ADDRESSES).collect()),
            Ok(Err(error)) => Err(format!("{name}: {error}")),
            Err(_) => Err(format!("{name}: no answer to its name")),
        },
    }
}

/// Listens at all of them that can be, and at one at least.
fn bind_tcp(addresses: &[SocketAddr]) -> Result<Vec<Listener>, String> {
    let mut listeners = Vec::new();
    let mut why = "it has no address".to_owned();
    for address in addresses {
        match bind_address(*address) {
            Ok(listener) => listeners.push(Listener::Tcp(listener)),
            // The kernel may have no IPv6, or its part of the port be taken.
            Err(error) => why = format!("{address}: {error}"),
        }
    }
    match listeners.is_empty() {
        true => Err(why),
        false => Ok(listeners),
    }
}

fn bind_address(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => {
            let socket = TcpSocket::new_v6()?;
            sockopt::set_ipv6_v6only(&socket, true)?;
            socket
        }
    };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Its rights are there before anybody can connect.
fn bind_unix(path: PathBuf, listening: &Listening) -> io::Result<(Listener, SocketFile)> {
    let is_in_the_way = || fs::symlink_metadata(&path).is_ok_and(|it| it.file_type().is_socket());
    if listening.bind_unlink && is_in_the_way() {
        fs::remove_file(&path)?;
    }
    let (listener, file) = SocketFile::bind(path, 0o777 & !listening.bind_mask)?;
    Ok((Listener::Unix(UnixListener::from_std(listener)?), file))
}

/// Begins to let people in. Without a place SOCKS says where to each time.
pub(super) fn begin(host: &Rc<Host>, listener: Listener, to: Option<Place>) -> AbortHandle {
    spawn_local(accept(host.clone(), listener, to)).abort_handle()
}

async fn accept(host: Rc<Host>, listener: Listener, to: Option<Place>) {
    loop {
        host.forwards.room().await;
        let accepted = match &listener {
            Listener::Tcp(listener) => listener.accept().await.map(|(stream, from)| {
                let from = (from.ip().to_string(), from.port());
                (Connected::tcp(stream), from)
            }),
            // channels.c, `port_open_helper`, for those who have no address.
            Listener::Unix(listener) => listener
                .accept()
                .await
                .map(|(stream, _)| (Connected::Unix(stream), ("127.0.0.1".to_owned(), u16::MAX))),
        };
        match accepted {
            Ok((socket, from)) => {
                drop(spawn_local(serve(host.clone(), socket, from, to.clone())));
            }
            Err(error) => {
                tracing::warn!(%error, "nobody can be let in to be forwarded");
                sleep(OUT_OF_DESCRIPTORS).await;
            }
        }
    }
}

/// Serves one connection to its end.
async fn serve(host: Rc<Host>, socket: Connected, originator: (String, u16), to: Option<Place>) {
    // Several listeners may have had room for the last one.
    let Some(_connection) = Connection::begin(&host) else {
        return;
    };
    let wanted = match to {
        None => return socks::serve(&host, socket, originator).await,
        Some(Place::Unix(path)) => Wanted::Unix(path),
        Some(Place::Tcp { host, port }) => Wanted::Tcp {
            host,
            port,
            originator,
        },
    };
    let boarded = Boarded(Seat::new(wanted));
    host.admit_stream(&boarded.0);
    if is_opened(&boarded.0).await {
        pass(&host, &boarded.0, socket).await;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[tokio::test(flavor = "current_thread")]
    async fn addresses_are_those_that_ssh_listens_at() {
        let (yes, no) = (true, false);
        for (host, gateway_ports, wanted) in [
            ("", no, "127.0.0.1:7 [::1]:7"),
            ("", yes, "0.0.0.0:7 [::]:7"),
            ("*", no, "0.0.0.0:7 [::]:7"),
            ("localhost", yes, "127.0.0.1:7 [::1]:7"),
            ("127.0.0.9", no, "127.0.0.9:7"),
            ("::1", no, "[::1]:7"),
        ] {
            let listening = Listening {
                gateway_ports,
                ..Listening::default()
            };
            let found = addresses(host, 7, &listening).await.unwrap();
            let found: Vec<String> = found.iter().map(SocketAddr::to_string).collect();
            assert_eq!(found.join(" "), wanted, "{host:?} {gateway_ports}");
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_unix_socket_has_the_rights_that_were_chosen_and_what_is_in_the_way_goes_if_it_may() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        let listening = Listening {
            bind_mask: 0o117,
            bind_unlink: true,
            ..Listening::default()
        };
        let (_first, file) = bind_unix(path.clone(), &listening).unwrap();
        let mode = |path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!(mode(&path), 0o660);
        assert!(bind_unix(path.clone(), &Listening::default()).is_err());
        let (_second, other) = bind_unix(path.clone(), &listening).unwrap();
        file.remove();
        assert!(path.exists(), "it is another one's by now");
        other.remove();
        assert!(!path.exists());
        fs::write(&path, "a file").unwrap();
        assert!(bind_unix(path, &listening).is_err());
    }
}
