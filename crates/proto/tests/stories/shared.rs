//! A connection that somebody else has logged in and shares by its packets (PROTOCOL.mux section 9).

use std::sync::Arc;
use std::time::Instant;

use sshoal_proto::{
    Connection, ConnectionError, Event, ExecFate, LocalChannel, Misbehaviour, Phase, SessionRequest,
};
use sshoal_wire::reason::DISCONNECT_PROTOCOL_ERROR;
use sshoal_wire::{
    ChannelData, ChannelOpenConfirmation, ChannelSuccess, Disconnect, Message, NewKeys,
};

use crate::support::settings;

fn shared() -> Connection {
    let server = "SSH-2.0-OpenSSH_9.2p1 Debian-2";
    Connection::shared(Arc::new(settings()), server, Instant::now()).unwrap()
}

/// A bare packet.
fn packet(encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut payload = Vec::new();
    encode(&mut payload);
    let len = payload.len() as u32 + 1;
    [&len.to_be_bytes()[..], &[0], &payload].concat()
}

/// What has been sent, by the messages' names.
fn sent(connection: &mut Connection) -> Vec<&'static str> {
    let mut octets = connection.poll_transmit().unwrap_or_default();
    let (all, mut names) = (octets.len(), Vec::new());
    while let Some((length, rest)) = octets.split_first_chunk::<4>() {
        let (packet, rest) = rest.split_at(u32::from_be_bytes(*length) as usize);
        assert_eq!(packet[0], 0, "no padding");
        let message = Message::decode(&packet[1..], Default::default()).unwrap();
        names.push(message.name());
        octets = rest;
    }
    connection.transmitted(all);
    names
}

fn hear(connection: &mut Connection, mut octets: Vec<u8>) -> Result<Vec<Event>, ConnectionError> {
    let taken = connection.handle_input(Instant::now(), &mut octets)?;
    assert_eq!(taken, octets.len());
    Ok(std::iter::from_fn(|| connection.poll_event()).collect())
}

fn confirmed(channel: LocalChannel) -> Vec<u8> {
    packet(|out| {
        ChannelOpenConfirmation {
            recipient_channel: channel.number(),
            sender_channel: 9,
            initial_window_size: 100_000,
            maximum_packet_size: 32_768,
            data: b"",
        }
        .encode(out);
    })
}

#[test]
fn channels_are_opened_at_once_and_nothing_else_is_said() {
    let mut connection = shared();
    assert_eq!(connection.phase(), Phase::Connection);
    assert_eq!(connection.server().unwrap().openssh_version(), Some((9, 2)));
    assert_eq!(
        (connection.poll_transmit(), connection.poll_timeout()),
        (None, None)
    );
    let request = SessionRequest {
        standard_input: true,
        ..SessionRequest::exec(b"cat".to_vec())
    };
    let channel = connection.open_session(request).unwrap();
    assert_eq!(sent(&mut connection), ["CHANNEL_OPEN"]);
    let events = hear(&mut connection, confirmed(channel)).unwrap();
    assert_eq!(events, [Event::ChannelOpened(channel)]);
    assert_eq!(connection.exec_fate(channel), ExecFate::NotSent);
    assert_eq!(sent(&mut connection), ["CHANNEL_REQUEST"]);
    assert_eq!(connection.exec_fate(channel), ExecFate::MayHaveRun);
    let recipient_channel = channel.number();
    let mut octets = packet(|out| ChannelSuccess { recipient_channel }.encode(out));
    octets.extend(packet(|out| {
        ChannelData {
            recipient_channel,
            data: b"four",
        }
        .encode(out);
    }));
    let events = hear(&mut connection, octets).unwrap();
    assert_eq!(events[0], Event::Started(channel));
    assert!(matches!(&events[1], Event::Data { range, .. } if range.len() == 4));
    assert_eq!(connection.send_data(channel, &[7; 200_000]), Ok(100_000));
    assert_eq!(sent(&mut connection), ["CHANNEL_DATA"; 4]);
    connection.disconnect();
    assert_eq!(
        connection.poll_transmit(),
        None,
        "the server is others' too"
    );
}

#[test]
fn whoever_shares_it_says_why_it_is_over_and_nothing_of_a_login() {
    let mut connection = shared();
    let goodbye = packet(|out| {
        Disconnect {
            reason_code: DISCONNECT_PROTOCOL_ERROR,
            description: b"it has ended",
            language_tag: b"",
        }
        .encode(out);
    });
    let ended = hear(&mut connection, goodbye).unwrap_err();
    assert!(
        matches!(&ended, ConnectionError::Disconnected { description, .. } if description == "it has ended"),
        "{ended}"
    );
    let mut connection = shared();
    // As long as the shortest that OpenSSH's client takes.
    let keys = packet(|out| {
        NewKeys.encode(out);
        out.extend([0; 3]);
    });
    assert!(hear(&mut connection, keys).is_err());
    let mut connection = shared();
    let ping = packet(|out| sshoal_wire::Ping { data: b"ping" }.encode(out));
    assert!(hear(&mut connection, ping).is_err());
    let kex_init = packet(|out| {
        out.push(20);
        out.extend([0; 16 + 10 * 4 + 5]);
    });
    let mut connection = shared();
    assert_eq!(
        hear(&mut connection, kex_init),
        Err(ConnectionError::Misbehaved(Misbehaviour::Unexpected {
            message: "KEXINIT",
            during: Phase::Connection
        }))
    );
}

#[test]
fn what_is_no_bare_packet_ends_it() {
    for octets in [
        vec![0, 0, 0, 4, 0, 90, 0, 0],
        vec![0, 4, 0, 1, 0],
        vec![0, 0, 0, 6, 1, 90, 0, 0, 0, 0],
    ] {
        let mut connection = shared();
        let ended = hear(&mut connection, octets.clone());
        assert!(
            matches!(ended, Err(ConnectionError::Packet(_))),
            "{octets:?}: {ended:?}"
        );
    }
    let mut connection = shared();
    let mut part = confirmed(LocalChannel::REFUSED);
    part.pop();
    assert_eq!(connection.handle_input(Instant::now(), &mut part), Ok(0));
    let unnamed = Connection::shared(Arc::new(settings()), "SSH-1.5-old", Instant::now());
    assert!(unnamed.is_err());
}
