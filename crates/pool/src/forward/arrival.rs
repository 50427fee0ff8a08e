//! Somebody has connected to where the server listens.

use std::rc::Rc;

use sshoal_mux::{Arrived, Destination, Place, Socks};
use sshoal_proto::LocalChannel;
use tokio::task::spawn_local;

use super::place::Connected;
use super::socks::PATIENCE;
use super::stream::{Boarded, is_opened, pass};
use super::{Connection, To, socks};
use crate::dock::Dock;
use crate::host::Host;
use crate::seat::{Seat, Wanted};

/// Whose a channel is that the server wants to open.
pub(crate) enum Arrival {
    /// This side's, or nobody's.
    Ours(Rc<Seat>),
    /// A passenger's in proxy mode.
    Passenger(Rc<Seat>),
}

/// What is made of a channel that the server wants to open by `open`.
pub(crate) fn arrived(dock: &Rc<Dock>, channel: LocalChannel, open: &[u8]) -> Arrival {
    let host = dock.host();
    let to = match Arrived::decode(open) {
        Ok(Some(arrived)) => host.forwards.destination(&arrived.at),
        Ok(None) | Err(_) => None,
    };
    if let Some(To::Passenger(passenger)) = to {
        return Arrival::Passenger(passenger);
    }
    let seat = Seat::new(Wanted::Arrived(channel));
    seat.board(dock.clone(), false);
    match (to, Connection::begin(&host)) {
        (Some(to), Some(connection)) => {
            let serve = serve(host, seat.clone(), to);
            drop(spawn_local(async move {
                serve.await;
                drop(connection);
            }));
        }
        // Nobody asked for it, or there are too many.
        _ => seat.leave(),
    }
    Arrival::Ours(seat)
}

/// Serves one connection to its end.
async fn serve(host: Rc<Host>, seat: Rc<Seat>, to: To) {
    let boarded = Boarded(seat);
    let seat = &boarded.0;
    match to {
        To::Place(place) => {
            let Ok(socket) = Connected::to(&place).await else {
                return;
            };
            seat.accept();
            if is_opened(seat).await {
                pass(&host, seat, socket).await;
            }
        }
        To::Socks => serve_socks(&host, seat).await,
        // It answers for itself.
        To::Passenger(_) => {}
    }
}

/// The same, where the client says where it wants to go through the channel, which is open before.
async fn serve_socks(host: &Rc<Host>, seat: &Rc<Seat>) {
    seat.accept();
    if !is_opened(seat).await {
        return;
    }
    let Some((Destination { host: to, port }, mut handshake)) =
        socks::destination_of_arrival(seat).await
    else {
        return seat.finish(PATIENCE).await;
    };
    let connected = Connected::to(&Place::Tcp { host: to, port }).await;
    handshake.answer(connected.is_ok());
    socks::feed(seat, &mut handshake);
    let Ok(socket) = connected else {
        return seat.finish(PATIENCE).await;
    };
    if write_rest(&socket, handshake).await.is_some() {
        pass(host, seat, socket).await;
    }
}

/// What came behind the handshake is the destination's.
async fn write_rest(socket: &Connected, handshake: Socks) -> Option<()> {
    socks::write(socket, &handshake.into_rest()).await
}
