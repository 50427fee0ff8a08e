#![allow(clippy::unwrap_used)]

use super::super::packet::tests::Sample;
use super::*;

/// A monitor, and packets on their way, without any line.
#[derive(Default)]
struct Wire {
    monitor: Monitor,
}

impl Wire {
    fn enter(&mut self, sample: &Sample) -> Option<Trace> {
        let direction = direction_of(sample);
        let trace = self
            .monitor
            .enter(Duration::ZERO, direction, &sample.packet());
        self.monitor.judged(
            direction,
            Admission {
                admitted: 1,
                ..Admission::default()
            },
        );
        trace
    }

    fn deliver(&mut self, sample: &Sample, trace: Option<Trace>) {
        self.monitor.deliver(direction_of(sample), trace);
    }

    /// Sent and delivered before anything else happens.
    fn pass(&mut self, sample: &Sample) {
        let trace = self.enter(sample);
        self.deliver(sample, trace);
    }

    fn handshake(&mut self) {
        self.pass(&to_server(flag::SYN, 0));
        self.pass(&to_client(flag::SYN | flag::ACK, 0));
    }

    fn only_connection(&self) -> ConnectionTrips {
        let connections = self.monitor.connections();
        assert_eq!(connections.len(), 1);
        connections[0]
    }
}

fn direction_of(sample: &Sample) -> Direction {
    if sample.to_server {
        Direction::ClientToServer
    } else {
        Direction::ServerToClient
    }
}

fn to_server(flags: u8, payload_len: usize) -> Sample {
    Sample::to_server(flags, payload_len)
}

fn to_client(flags: u8, payload_len: usize) -> Sample {
    Sample {
        to_server: false,
        ..Sample::to_server(flags, payload_len)
    }
}

#[test]
fn one_request_after_the_handshake_is_two_round_trips() {
    let mut wire = Wire::default();
    wire.handshake();
    wire.pass(&to_server(flag::ACK, 5));
    wire.pass(&to_client(flag::ACK, 5));
    let trips = wire.only_connection();
    assert_eq!((trips.round_trips(), trips.data_round_trips()), (2, 2));
    assert_eq!(wire.monitor.flights(), flights(1, 1));
}

#[test]
fn a_train_of_packets_is_one_flight() {
    let mut wire = Wire::default();
    wire.handshake();
    for _ in 0..10 {
        wire.pass(&to_server(flag::ACK, 100));
        wire.pass(&to_client(flag::ACK, 0));
    }
    wire.pass(&to_client(flag::ACK, 5));
    assert_eq!(wire.monitor.flights(), flights(1, 1));
    assert_eq!(wire.only_connection().data_round_trips(), 2);
}

#[test]
fn what_crosses_on_the_way_is_no_answer() {
    let mut wire = Wire::default();
    wire.handshake();
    let (request, greeting) = (to_server(flag::ACK, 20), to_client(flag::ACK, 20));
    let request_trace = wire.enter(&request);
    let greeting_trace = wire.enter(&greeting);
    wire.deliver(&request, request_trace);
    wire.deliver(&greeting, greeting_trace);
    // The greeting waited for SYN alone, as far as data goes.
    assert_eq!(wire.only_connection().data_trips, 2);
    wire.pass(&to_client(flag::ACK, 20));
    assert_eq!(wire.only_connection().data_trips, 4);
    assert_eq!(wire.monitor.flights(), flights(1, 1));
}

#[test]
fn a_wait_for_an_acknowledgement_shows_in_the_trips_but_not_in_those_of_data() {
    let mut wire = Wire::default();
    wire.handshake();
    wire.pass(&to_server(flag::ACK, 5));
    wire.pass(&to_client(flag::ACK, 5));
    wire.pass(&to_server(flag::ACK, 0));
    wire.pass(&to_client(flag::ACK, 5));
    let trips = wire.only_connection();
    assert_eq!((trips.round_trips(), trips.data_round_trips()), (3, 2));
}

#[test]
fn a_lost_packet_counts_again_when_it_is_sent_again() {
    let mut wire = Wire::default();
    wire.handshake();
    wire.enter(&to_server(flag::ACK, 5));
    wire.pass(&to_server(flag::ACK, 5));
    wire.pass(&to_client(flag::ACK, 5));
    assert_eq!(
        wire.only_connection().data_round_trips(),
        2,
        "the lost one reached nobody"
    );
    assert_eq!(wire.monitor.counters(Direction::ClientToServer).packets, 3);
}

#[test]
fn connections_are_followed_apart_and_a_port_used_again_begins_anew() {
    let mut wire = Wire::default();
    let from = |port: u16, sample: Sample| Sample {
        client_port: port,
        ..sample
    };
    for port in [2, 1] {
        wire.pass(&from(port, to_server(flag::SYN, 0)));
        wire.pass(&from(port, to_client(flag::SYN | flag::ACK, 0)));
        for _ in 0..port {
            wire.pass(&from(port, to_server(flag::ACK, 1)));
            wire.pass(&from(port, to_client(flag::ACK, 1)));
        }
    }
    let seen = |wire: &Wire| -> Vec<_> {
        let connections = wire.monitor.connections();
        connections
            .iter()
            .map(|one| (one.client.port(), one.round_trips()))
            .collect()
    };
    assert_eq!(seen(&wire), [(1, 2), (2, 3)]);
    wire.pass(&from(2, to_server(flag::SYN, 0)));
    assert_eq!(seen(&wire), [(1, 2), (2, 0)]);
}

#[test]
fn a_connection_whose_beginning_was_not_seen_is_counted_but_not_followed() {
    let mut wire = Wire::default();
    wire.handshake();
    wire.monitor.clear();
    wire.pass(&to_server(flag::ACK, 5));
    assert_eq!(wire.monitor.connections(), []);
    assert_eq!(wire.monitor.flights(), flights(1, 0));
    assert_eq!(wire.monitor.counters(Direction::ClientToServer).packets, 1);
}

#[test]
fn counters_count_segments_and_bytes_of_the_wire() {
    let mut wire = Wire::default();
    wire.pass(&Sample {
        segment: Some(1000),
        ..to_server(flag::ACK, 2500)
    });
    wire.monitor.judged(
        Direction::ClientToServer,
        Admission {
            admitted: 0,
            lost: 2,
            overflowed: 3,
        },
    );
    wire.monitor.refused(Direction::ClientToServer);
    let counters = wire.monitor.counters(Direction::ClientToServer);
    let expected = DirectionCounters {
        packets: 3,
        bytes: 2_620,
        lost: 2,
        overflowed: 3,
        refused: 1,
    };
    assert_eq!(counters, expected);
    assert_eq!(
        wire.monitor.counters(Direction::ServerToClient),
        DirectionCounters::default()
    );
}

#[test]
fn a_capture_has_what_entered_while_it_ran() {
    let mut wire = Wire::default();
    wire.handshake();
    wire.monitor.start_capture();
    wire.pass(&to_server(flag::ACK | flag::PSH, 5));
    wire.pass(&to_client(flag::ACK, 0));
    let records = wire.monitor.stop_capture();
    wire.pass(&to_client(flag::ACK, 7));
    assert_eq!(wire.monitor.stop_capture(), []);
    let seen: Vec<_> = records
        .iter()
        .map(|record| {
            (
                record.direction,
                record.payload_len,
                record.flags,
                record.trips,
            )
        })
        .collect();
    let expected = [
        (Direction::ClientToServer, 5, flag::ACK | flag::PSH, 3),
        (Direction::ServerToClient, 0, flag::ACK, 4),
    ];
    assert_eq!(seen, expected);
    assert_eq!(records[1].client.to_string(), "10.77.0.1:40000");
}

fn flights(client_to_server: u64, server_to_client: u64) -> Flights {
    Flights {
        client_to_server,
        server_to_client,
    }
}
