//! A client of a dynamic forward says where it wants to go.

use std::rc::Rc;
use std::time::Duration;

use sshoal_mux::{Destination, Socks};
use tokio::time::timeout;

use super::place::Connected;
use super::stream::{Boarded, is_opened, pass};
use crate::host::Host;
use crate::seat::{Seat, Wanted};

/// How long a client may take to say where it wants to go, and to hear what came of it.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
/// Octets read at a time.
const READ: usize = 4 * 1024;

/// Serves a client of `-D` to its end.
pub(super) async fn serve(host: &Rc<Host>, socket: Connected, originator: (String, u16)) {
    let mut socks = Socks::new();
    let asked = timeout(PATIENCE, destination(&socket, &mut socks)).await;
    let Ok(Some(Destination { host: to, port })) = asked else {
        return;
    };
    let boarded = Boarded(Seat::new(Wanted::Tcp {
        host: to,
        port,
        originator,
    }));
    let seat = &boarded.0;
    host.admit_stream(seat);
    let is_opened = is_opened(seat).await;
    socks.answer(is_opened);
    let told = timeout(PATIENCE, write(&socket, &socks.take_output())).await;
    if !is_opened || told != Ok(Some(())) {
        return;
    }
    let rest = socks.into_rest();
    if !rest.is_empty() {
        seat.feed(&rest);
    }
    pass(host, seat, socket).await;
}

/// Where it wants to go; `None` if it leaves, or speaks of something else.
async fn destination(socket: &Connected, socks: &mut Socks) -> Option<Destination> {
    let mut buffer = [0; READ];
    loop {
        socket.readable().await.ok()?;
        let octets = match socket.read(&mut buffer).ok()? {
            None => continue,
            Some(0) => return None,
            Some(octets) => octets,
        };
        let asked = socks.handle_input(&buffer[..octets]);
        if let Err(error) = &asked {
            tracing::debug!(%error, "a client of a dynamic forward");
        }
        write(socket, &socks.take_output()).await?;
        match asked {
            Ok(None) => {}
            Ok(destination) => return destination,
            Err(_) => return None,
        }
    }
}

/// Where a client of the server's end wants to go (`-R` with a port alone): the handshake comes through the channel. With it
/// what came behind it, and the handshake, to be answered.
pub(super) async fn destination_of_arrival(seat: &Rc<Seat>) -> Option<(Destination, Socks)> {
    let mut socks = Socks::new();
    let find = async {
        loop {
            let (octets, is_over) = {
                let mut down = seat.down();
                let octets: Vec<u8> = down.output.drain(..).collect();
                (octets, down.has_ended || down.is_closed)
            };
            seat.delivered(octets.len());
            let asked = socks.handle_input(&octets);
            feed(seat, &mut socks);
            match asked {
                Ok(Some(destination)) => return Some(destination),
                Ok(None) if !is_over => seat.news.notified().await,
                _ => return None,
            }
        }
    };
    let found = timeout(PATIENCE, find).await.ok()??;
    Some((found, socks))
}

/// Sends what a handshake has for its client.
pub(super) fn feed(seat: &Rc<Seat>, socks: &mut Socks) {
    let output = socks.take_output();
    if !output.is_empty() {
        seat.feed(&output);
    }
}

/// Writes all of it; `None` if the client is gone.
pub(super) async fn write(socket: &Connected, mut octets: &[u8]) -> Option<()> {
    while !octets.is_empty() {
        match socket.write(octets).ok()? {
            Some(written) => octets = &octets[written..],
            None => socket.writable().await.ok()?,
        }
    }
    Some(())
}
