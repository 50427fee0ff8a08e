//! What a connection keeps in memory (design target T4: 16 KiB for an open idle one, sockets and tasks included).

use std::time::Duration;

use sshoal_proto::{Connection, Event, SessionRequest};

use crate::support::{Pair, Policy, logged_in, opening, settings};

/// Octets that an idle connection may have, and one that is idle again.
const IDLE: usize = 1600;

/// Octets of a connection, on the heap and off it. Keys inside the cryptographic library are not Rust's to
/// count: two directions of AES-GCM take another 1.2 KiB or so there.
fn size(client: Connection) -> usize {
    let inline = size_of_val(&client);
    let freed = allocation_counter::measure(|| drop(client));
    inline + usize::try_from(-freed.bytes_current).unwrap()
}

fn assert_small(what: &str, client: Connection, limit: usize) {
    let octets = size(client);
    println!("{what}: {octets} octets");
    assert!(octets <= limit, "{what}: {octets} octets");
}

#[test]
fn an_idle_connection_is_small() {
    let policy = Policy::openssh();
    let pair = logged_in(settings(), policy.clone());
    assert_small("logged in", pair.client, IDLE);

    let (mut pair, channel) = Pair::with_command(settings(), policy.clone(), "true");
    pair.run();
    assert_small("after a command", pair.client, 2048);

    let (mut pair, _) = Pair::with_command(settings(), policy.clone(), "print 3000000");
    pair.run();
    pair.client.forget(channel);
    assert_small("after much output", pair.client, IDLE);

    let mut pair = logged_in(settings(), policy.clone());
    pair.server.rekey();
    pair.run();
    assert_small("after rekeying", pair.client, IDLE);

    let mut kept = settings();
    kept.keepalive = Some((Duration::from_secs(15), 3));
    let mut pair = logged_in(kept, policy);
    pair.advance(Duration::from_secs(3600));
    assert_small("kept alive for an hour", pair.client, IDLE);
}

#[test]
fn a_bulk_transfer_leaves_no_buffer_behind() {
    let mut pair = logged_in(settings(), Policy::openssh());
    let mut request = SessionRequest::exec("sink");
    request.standard_input = true;
    let channel = pair.open(request);
    pair.run();
    let block = vec![7; 1024 * 1024];
    for _ in 0..20 {
        pair.client.send_data(channel, &block).unwrap();
        pair.run();
    }
    pair.client.send_eof(channel).unwrap();
    pair.run();
    assert_eq!(pair.events.last(), Some(&Event::Closed(channel)));
    pair.client.forget(channel);
    assert_small("after an upload", pair.client, IDLE);
}

#[test]
fn a_connection_that_waits_for_its_server_is_small_too() {
    let mut policy = Policy::openssh();
    policy.answers_login = false;
    let (mut pair, _) = Pair::with_command(settings(), policy, "true");
    // Nothing but the connection itself: the first flight is out.
    pair.flight();
    assert_small("greeted", pair.client, 3072);

    let mut policy = Policy::openssh();
    policy.answers_login = false;
    let mut pair = Pair::new(settings(), opening(), policy);
    pair.run();
    assert_small("waiting for sshd's verdict on the key", pair.client, 2048);
}
