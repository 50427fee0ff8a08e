//! What passes the line, counted: packets and bytes, turns of the direction, and the one-way trips that each
//! connection has waited for. Pure: the line says what entered, what was delivered, and when.

use std::collections::HashMap;
use std::net::SocketAddrV4;
use std::time::Duration;

use super::packet::{Packet, flag};
use super::queue::Admission;

/// Connections whose trips are followed; the packets of further ones are only counted.
pub const MAX_CONNECTIONS: usize = 65_536;
/// Packets that a capture holds; later ones are only counted.
pub const MAX_RECORDS: usize = 4_000_000;

/// Which way a packet goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the client's namespace to the server's.
    ClientToServer,
    /// From the server's namespace to the client's.
    ServerToClient,
}

/// Both directions, in the order of [`Direction::index`].
pub(super) const DIRECTIONS: [Direction; 2] =
    [Direction::ClientToServer, Direction::ServerToClient];

impl Direction {
    pub(super) fn index(self) -> usize {
        match self {
            Direction::ClientToServer => 0,
            Direction::ServerToClient => 1,
        }
    }

    pub(super) fn reverse(self) -> Direction {
        match self {
            Direction::ClientToServer => Direction::ServerToClient,
            Direction::ServerToClient => Direction::ClientToServer,
        }
    }
}

/// What one direction has seen. A large packet counts as the segments that it would be on a wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DirectionCounters {
    /// Segments that entered, lost and dropped ones included.
    pub packets: u64,
    /// Their bytes, IP headers included.
    pub bytes: u64,
    /// Segments lost by chance.
    pub lost: u64,
    /// Segments for which the queue had no room.
    pub overflowed: u64,
    /// Packets that the receiving namespace refused, its device being down.
    pub refused: u64,
}

/// How often data changed its direction on the line, whichever connection it was of. Bare acknowledgements
/// carry no data. One flight a direction is one request and one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flights {
    /// Times that data began to go to the server.
    pub client_to_server: u64,
    /// Times that data began to go to the client.
    pub server_to_client: u64,
}

/// What a connection's client had to wait for until the last data that it was given.
///
/// A packet's trips are one more than the most trips of any packet that its sender had been given before: SYN
/// is the first, SYN-ACK the second, the client's first request the third. So the count knows no clock: what
/// crosses on the way counts once, and only what came after counts as an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConnectionTrips {
    /// The client's address and port.
    pub client: SocketAddrV4,
    /// The server's address and port.
    pub server: SocketAddrV4,
    /// One-way trips, waits for a bare acknowledgement included: what Nagle's algorithm costs is in here. An
    /// acknowledgement that comes while the server is still at work counts too, though nobody waited for it:
    /// a server slower than the round trip makes this an upper bound.
    pub trips: u32,
    /// One-way trips of data alone, SYN and SYN-ACK being the first two: what the protocol costs.
    pub data_trips: u32,
}

impl ConnectionTrips {
    /// Round trips from the client's SYN to the last data that it was given, as the wire had them.
    pub fn round_trips(&self) -> u32 {
        self.trips / 2
    }

    /// The same without waits for bare acknowledgements.
    pub fn data_round_trips(&self) -> u32 {
        self.data_trips / 2
    }
}

/// One TCP packet of a capture, as it entered the line: also one that was lost or dropped then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketRecord {
    /// When, since the line was started.
    pub time: Duration,
    /// Which way.
    pub direction: Direction,
    /// The client's address and port.
    pub client: SocketAddrV4,
    /// The server's address and port.
    pub server: SocketAddrV4,
    /// Bytes of TCP payload, all segments together.
    pub payload_len: usize,
    /// The TCP header's flags; see [`flag`].
    pub flags: u8,
    /// The packet's trips, as [`ConnectionTrips::trips`] counts them; 0 if the connection is not followed.
    pub trips: u32,
}

/// The two ends of a connection: client, server.
type Ends = (SocketAddrV4, SocketAddrV4);

/// What goes through the queue with a packet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trace {
    ends: Ends,
    trips: Trips,
    has_data: bool,
    /// SYN or SYN-ACK: news, though it is no payload.
    opens: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Trips {
    all: u32,
    data: u32,
}

/// What both sides of a connection have been given so far.
#[derive(Debug, Default)]
struct Connection {
    /// The most trips of what was given, by the direction it went.
    given: [Trips; 2],
    /// The trips of the last data that was delivered to the client.
    answered: Trips,
}

/// The line's books.
#[derive(Debug, Default)]
pub(super) struct Monitor {
    counters: [DirectionCounters; 2],
    flights: [u64; 2],
    data_goes: Option<Direction>,
    connections: HashMap<Ends, Connection>,
    capture: Option<Vec<PacketRecord>>,
}

impl Monitor {
    /// A packet enters the line. What this returns goes along with it; None for what is not TCP.
    pub(super) fn enter(
        &mut self,
        now: Duration,
        direction: Direction,
        packet: &Packet,
    ) -> Option<Trace> {
        let counters = &mut self.counters[direction.index()];
        counters.packets += packet.segments() as u64;
        counters.bytes += packet.wire_len() as u64;

        let tcp = packet.summary()?;
        let ends = match direction {
            Direction::ClientToServer => (tcp.source, tcp.destination),
            Direction::ServerToClient => (tcp.destination, tcp.source),
        };
        let trace = Trace {
            ends,
            trips: self.trips_of(direction, ends, tcp.flags),
            has_data: tcp.payload_len > 0,
            opens: tcp.flags & flag::SYN != 0,
        };
        if trace.has_data && self.data_goes != Some(direction) {
            self.data_goes = Some(direction);
            self.flights[direction.index()] += 1;
        }
        if let Some(records) = self
            .capture
            .as_mut()
            .filter(|records| records.len() < MAX_RECORDS)
        {
            records.push(PacketRecord {
                time: now,
                direction,
                client: ends.0,
                server: ends.1,
                payload_len: tcp.payload_len,
                flags: tcp.flags,
                trips: trace.trips.all,
            });
        }
        Some(trace)
    }

    /// One more than what the sender has been given; a SYN begins to count anew.
    fn trips_of(&mut self, direction: Direction, ends: Ends, flags: u8) -> Trips {
        if flags & (flag::SYN | flag::ACK) == flag::SYN {
            self.connections.remove(&ends);
            if self.connections.len() < MAX_CONNECTIONS {
                self.connections.insert(ends, Connection::default());
            }
        }
        self.connections
            .get(&ends)
            .map_or(Trips::default(), |connection| {
                let given = connection.given[direction.reverse().index()];
                Trips {
                    all: given.all.saturating_add(1),
                    data: given.data.saturating_add(1),
                }
            })
    }

    /// The queue has decided on a packet's segments.
    pub(super) fn judged(&mut self, direction: Direction, admission: Admission) {
        let counters = &mut self.counters[direction.index()];
        counters.lost += admission.lost;
        counters.overflowed += admission.overflowed;
    }

    /// A packet is about to be given to its receiver.
    pub(super) fn deliver(&mut self, direction: Direction, trace: Option<Trace>) {
        let Some(trace) = trace else { return };
        let Some(connection) = self.connections.get_mut(&trace.ends) else {
            return;
        };
        let given = &mut connection.given[direction.index()];
        given.all = given.all.max(trace.trips.all);
        if trace.has_data || trace.opens {
            given.data = given.data.max(trace.trips.data);
        }
        if trace.has_data && direction == Direction::ServerToClient {
            let answered = &mut connection.answered;
            answered.all = answered.all.max(trace.trips.all);
            answered.data = answered.data.max(trace.trips.data);
        }
    }

    /// The receiver's device was down.
    pub(super) fn refused(&mut self, direction: Direction) {
        self.counters[direction.index()].refused += 1;
    }

    pub(super) fn counters(&self, direction: Direction) -> DirectionCounters {
        self.counters[direction.index()]
    }

    pub(super) fn flights(&self) -> Flights {
        Flights {
            client_to_server: self.flights[Direction::ClientToServer.index()],
            server_to_client: self.flights[Direction::ServerToClient.index()],
        }
    }

    /// Every followed connection, by the client's port.
    pub(super) fn connections(&self) -> Vec<ConnectionTrips> {
        let mut all: Vec<_> = self
            .connections
            .iter()
            .map(|(&(client, server), connection)| ConnectionTrips {
                client,
                server,
                trips: connection.answered.all,
                data_trips: connection.answered.data,
            })
            .collect();
        all.sort_by_key(|connection| (connection.client, connection.server));
        all
    }

    /// Forget everything counted so far. Open connections are followed no longer.
    pub(super) fn clear(&mut self) {
        let capture = self.capture.as_ref().map(|_| Vec::new());
        *self = Monitor {
            capture,
            ..Monitor::default()
        };
    }

    pub(super) fn start_capture(&mut self) {
        self.capture = Some(Vec::new());
    }

    pub(super) fn stop_capture(&mut self) -> Vec<PacketRecord> {
        self.capture.take().unwrap_or_default()
    }
}

#[cfg(test)]
#[path = "monitor_tests.rs"]
mod tests;
