//! Open channels (RFC 4254 sections 5 to 7): windows, ends, several at once, connections through the server.

use sshoal_proto::{Event, ExecFate, LocalChannel, SessionRequest};
use sshoal_wire::{ChannelData, ChannelEof, ChannelExtendedData, ChannelWindowAdjust};

use crate::support::{Pair, Policy, held, logged_in, opening, pattern, settings};

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

fn with_stdin(command: &str) -> SessionRequest {
    let mut request = SessionRequest::exec(command);
    request.standard_input = true;
    request
}

/// A running command on a logged in connection.
fn running(request: SessionRequest) -> (Pair, LocalChannel) {
    let mut pair = logged_in(settings(), Policy::openssh());
    let channel = pair.open(request);
    pair.run();
    (pair, channel)
}

fn adjustments(pair: &Pair) -> usize {
    pair.flights.concat().matches("WINDOW_ADJUST").count()
}

#[test]
fn the_window_opens_by_what_is_consumed_and_not_by_what_is_received() {
    let mut pair = logged_in(settings(), Policy::openssh());
    pair.reads = false;
    let channel = pair.open(SessionRequest::exec(format!("print {}", 5 * MIB)));
    pair.run();
    // All that the window has, and not an octet more.
    assert_eq!(pair.stdout(channel).len(), 2 * MIB);
    assert_eq!(adjustments(&pair), 0);

    // An eighth of the window is worth a message, less is not.
    pair.client.consumed(channel, 256 * KIB - 1).unwrap();
    pair.run();
    assert_eq!(pair.stdout(channel).len(), 2 * MIB);
    pair.client.consumed(channel, 1).unwrap();
    pair.run();
    assert_eq!(adjustments(&pair), 1);
    assert_eq!(pair.stdout(channel).len(), 2 * MIB + 256 * KIB);

    pair.reads = true;
    pair.client.consumed(channel, 2 * MIB).unwrap();
    pair.run();
    assert!(pair.stdout(channel) == pattern(5 * MIB));
    assert!(pair.events.contains(&Event::Closed(channel)));
}

#[test]
fn more_consumed_than_received_opens_the_window_no_further_than_it_was() {
    let mut pair = logged_in(settings(), Policy::openssh());
    pair.reads = false;
    let channel = pair.open(SessionRequest::exec(format!("print {}", 5 * MIB)));
    pair.run();
    pair.client.consumed(channel, usize::MAX).unwrap();
    pair.run();
    assert_eq!(pair.stdout(channel).len(), 4 * MIB);
}

#[test]
fn standard_error_shares_the_window_and_comes_apart() {
    let mut pair = logged_in(settings(), Policy::openssh());
    pair.reads = false;
    let channel = pair.open(SessionRequest::exec(format!("complain {}", 3 * MIB)));
    pair.run();
    assert_eq!(pair.stderr(channel).len(), 2 * MIB);
    assert!(pair.stdout(channel).is_empty());
}

#[test]
fn extended_data_of_no_known_type_is_dropped_and_given_back() {
    let (mut pair, _) = running(SessionRequest::exec("sleep"));
    pair.flights.clear();
    for _ in 0..8 {
        pair.server.say(ChannelExtendedData {
            recipient_channel: 0,
            data_type_code: 7,
            data: &[0; 32 * KIB],
        });
    }
    pair.run();
    assert!(pair.output.is_empty());
    assert_eq!(pair.flights, ["CHANNEL_WINDOW_ADJUST"]);
}

/// The server panics at a message over its window, or over 32 KiB.
#[test]
fn no_more_is_sent_than_the_server_allows() {
    for max_packet in [1, 1000, 32 * KIB as u32, u32::MAX] {
        let mut policy = Policy::openssh();
        policy.max_packet = max_packet;
        policy.window = 100_000;
        policy.reads_stdin = false;
        let mut pair = logged_in(settings(), policy);
        let channel = pair.open(with_stdin("sink"));
        pair.run();
        let data = pattern(MIB);
        let mut sent = pair.client.send_data(channel, &data).unwrap();
        while sent < 100_000 {
            pair.run();
            let more = pair.client.send_data(channel, &data[sent..]).unwrap();
            assert!(more > 0, "{sent} of 100000");
            sent += more;
        }
        pair.run();
        assert_eq!(pair.client.send_data(channel, b"x").unwrap(), 0);
        assert_eq!(sent, 100_000);
        let received = &pair.server.channels[&0].stdin;
        assert!(received == &data[..sent]);
    }
}

#[test]
fn what_lies_in_several_places_arrives_in_its_order() {
    let mut policy = Policy::openssh();
    policy.max_packet = 1000;
    policy.reads_stdin = false;
    let mut pair = logged_in(settings(), policy);
    let channel = pair.open(with_stdin("sink"));
    pair.run();
    let data = pattern(10_000);
    let pieces = [&data[..1], &data[1..1], &data[1..2500], &data[2500..]];
    assert_eq!(
        pair.client.send_pieces(channel, pieces, 9_999).unwrap(),
        9_999
    );
    pair.run();
    assert!(pair.server.channels[&0].stdin == data[..9_999]);
}

#[test]
fn a_server_that_takes_no_data_at_all_stops_the_sender() {
    let mut policy = Policy::openssh();
    policy.max_packet = 0;
    let mut pair = logged_in(settings(), policy);
    let channel = pair.open(with_stdin("sink"));
    pair.run();
    pair.events.clear();
    assert_eq!(pair.client.send_data(channel, b"data").unwrap(), 0);
    pair.run();
    assert!(
        pair.events.is_empty(),
        "nothing is promised: {:?}",
        pair.told()
    );
}

#[test]
fn a_full_queue_tells_when_there_is_room_again() {
    let (mut pair, channel) = running(with_stdin("sink"));
    pair.events.clear();
    let data = pattern(2 * MIB);
    let taken = pair.client.send_data(channel, &data).unwrap();
    // The window would take 2 MiB, the queue takes less.
    assert!((256 * KIB..300 * KIB).contains(&taken), "{taken}");
    assert_eq!(pair.client.send_data(channel, &data).unwrap(), 0);
    let queued = pair.client.poll_transmit().unwrap().len();
    // Not while much is queued still; before the queue runs dry.
    pair.client.transmitted(queued / 4);
    assert_eq!(pair.client.poll_event(), None);
    pair.client.transmitted(queued / 2);
    assert_eq!(pair.client.poll_event(), Some(Event::Writable(channel)));
    assert_eq!(pair.client.poll_event(), None);
    assert!(pair.client.poll_transmit().is_some());
}

#[test]
fn channels_that_send_take_turns() {
    let mut pair = logged_in(settings(), Policy::openssh());
    let channels: Vec<LocalChannel> = (0..4).map(|_| pair.open(with_stdin("sink"))).collect();
    pair.run();
    // Each fills the queue whenever it may: the first one would, every time.
    let block = pattern(MIB);
    for channel in &channels {
        pair.client.send_data(*channel, &block).unwrap();
    }
    for _ in 0..100 {
        pair.events.clear();
        pair.flight();
        pair.answer();
        for event in std::mem::take(&mut pair.events) {
            if let Event::Writable(channel) = event {
                pair.client.send_data(channel, &block).unwrap();
            }
        }
    }
    let received: Vec<usize> = pair
        .server
        .channels
        .values()
        .map(|channel| channel.stdin.len() / MIB)
        .collect();
    let (least, most) = (received.iter().min(), received.iter().max());
    assert!(least.unwrap() + 1 >= *most.unwrap(), "{received:?} MiB");
    assert!(received.iter().sum::<usize>() > 10, "{received:?} MiB");
}

#[test]
fn data_sent_before_there_is_a_window_is_asked_for_later() {
    let mut pair = Pair::new(settings(), opening(), Policy::openssh());
    let channel = pair.open(with_stdin("cat"));
    assert_eq!(pair.client.send_data(channel, b"early").unwrap(), 0);
    pair.run();
    assert!(pair.events.contains(&Event::Writable(channel)));
    assert_eq!(pair.client.send_data(channel, b"early").unwrap(), 5);
    pair.client.send_eof(channel).unwrap();
    pair.run();
    assert_eq!(pair.stdout(channel), b"early");
    assert_eq!(pair.events.last(), Some(&Event::Closed(channel)));
}

#[test]
fn the_end_of_input_waits_for_the_channel() {
    // At any point of a login, with the command sent ahead or not, with a rejected key or not.
    for policy in [Policy::openssh(), Policy::unknown()] {
        for at in 0..8 {
            let mut pair = Pair::new(settings(), opening(), policy.clone());
            pair.credentials = [held(3), held(2)].into();
            let channel = pair.open(with_stdin("cat"));
            for _ in 0..at {
                pair.flight();
                pair.answer();
            }
            pair.client.send_eof(channel).unwrap();
            pair.client.send_eof(channel).unwrap();
            assert_eq!(pair.client.send_data(channel, b"late").unwrap(), 0);
            pair.run();
            assert_eq!(pair.events.last(), Some(&Event::Closed(channel)), "{at}");
            let ends = pair.flights.concat().matches("CHANNEL_EOF").count();
            assert!(
                ends == 1 || (at < 3 && ends == 2),
                "{at}: {:?}",
                pair.flights
            );
        }
    }
}

#[test]
fn a_channel_may_be_closed_at_any_time() {
    for policy in [Policy::openssh(), Policy::unknown()] {
        for at in 0..10 {
            let mut pair = Pair::new(settings(), opening(), policy.clone());
            pair.credentials = [held(3), held(2)].into();
            let channel = pair.open(SessionRequest::exec("sleep"));
            for _ in 0..at {
                pair.flight();
                pair.answer();
            }
            pair.client.close(channel).unwrap();
            pair.client.close(channel).unwrap();
            let fate = pair.client.exec_fate(channel);
            pair.run();
            assert_eq!(pair.error, None);
            let closed = Event::Closed(channel);
            assert_eq!(
                pair.events.iter().filter(|event| **event == closed).count(),
                1
            );
            // A command that is not on its way does not leave any more; for one that is, it is too late.
            let ran = !pair.server.executions.is_empty();
            assert!(!(ran && fate.safe_to_resend()), "{fate:?} at {at}");
            assert!(pair.server.channels.is_empty());
            pair.client.forget(channel);
            assert_eq!(pair.open(SessionRequest::exec("true")), channel);
            pair.run();
            assert_eq!(pair.server.executions.last().unwrap(), b"true");
        }
    }
}

#[test]
fn both_directions_end_by_themselves() {
    let (mut pair, channel) = running(with_stdin("cat"));
    pair.events.clear();
    pair.client.send_data(channel, b"hello").unwrap();
    pair.run();
    assert_eq!(pair.stdout(channel), b"hello");
    assert!(pair.events.is_empty());
    pair.client.send_eof(channel).unwrap();
    pair.run();
    assert_eq!(pair.told(), ["Eof", "ExitStatus", "Closed"]);
}

#[test]
fn output_may_end_before_input_does() {
    let (mut pair, channel) = running(with_stdin("sink"));
    pair.server.say(ChannelEof {
        recipient_channel: 0,
    });
    pair.run();
    assert_eq!(pair.events.last(), Some(&Event::Eof(channel)));
    assert_eq!(pair.client.send_data(channel, b"still").unwrap(), 5);
    pair.run();
    assert_eq!(pair.server.channels[&0].stdin, b"still");
}

#[test]
fn a_close_is_answered_even_while_data_waits() {
    let (mut pair, channel) = running(with_stdin("sink"));
    pair.client.send_data(channel, &[0; 100]).unwrap();
    pair.flights.clear();
    pair.server.close(0);
    pair.answer();
    assert_eq!(pair.client.send_data(channel, b"late").unwrap(), 0);
    assert_eq!(pair.events.last(), Some(&Event::Closed(channel)));
    pair.run();
    assert_eq!(pair.flights, ["CHANNEL_DATA CHANNEL_CLOSE"]);
}

#[test]
fn a_signal_that_ended_the_command_is_told() {
    let (pair, channel) = running(SessionRequest::exec("die"));
    let signal = Event::ExitSignal {
        channel,
        name: "TERM".to_owned(),
        core_dumped: true,
        message: "terminated by a test".to_owned(),
    };
    assert!(pair.events.contains(&signal));
    assert_eq!(pair.client.exec_fate(channel), ExecFate::Ran);
}

/// What the replies to signals were, in order.
fn signals_answered(pair: &Pair) -> Vec<bool> {
    let answers = pair.events.iter().filter_map(|event| match event {
        Event::SignalAnswered { delivered, .. } => Some(*delivered),
        _ => None,
    });
    answers.collect()
}

#[test]
fn signals_have_as_many_replies_as_were_asked_for() {
    let (mut pair, channel) = running(with_stdin("sink"));
    for name in ["TERM", "KILL"] {
        pair.client.ask_to_signal(channel, name).unwrap();
    }
    // The server of these stories knows no signals.
    pair.run();
    assert_eq!(signals_answered(&pair), [false, false]);
    assert_eq!(
        (&pair.error, pair.client.exec_fate(channel)),
        (&None, ExecFate::Ran)
    );
    let recipient_channel = channel.number();
    pair.server
        .say(sshoal_wire::ChannelFailure { recipient_channel });
    pair.run();
    assert!(pair.error.is_some(), "one more than was asked for");
}

#[test]
fn a_signal_that_was_delivered_is_told() {
    let (mut pair, channel) = running(with_stdin("sink"));
    pair.client.ask_to_signal(channel, "TERM").unwrap();
    let recipient_channel = channel.number();
    pair.server
        .say(sshoal_wire::ChannelSuccess { recipient_channel });
    pair.answer();
    assert_eq!(signals_answered(&pair), [true]);
}

#[test]
fn many_sessions_share_a_connection() {
    let mut policy = Policy::openssh();
    policy.max_sessions = 7;
    let mut pair = Pair::new(settings(), opening(), policy);
    let channels: Vec<LocalChannel> = (1..=8)
        .map(|n| pair.open(SessionRequest::exec(format!("print {}", n * 100_000))))
        .collect();
    pair.run();
    for (n, channel) in (1..=7).zip(&channels) {
        assert!(pair.stdout(*channel) == pattern(n * 100_000), "{n}");
        assert!(pair.events.contains(&Event::Closed(*channel)));
    }
    // The eighth did not find room; the others did not notice.
    let refused = |event: &Event| matches!(event, Event::ChannelRefused { channel, .. } if *channel == channels[7]);
    assert!(pair.events.iter().any(refused));
    assert_eq!(
        pair.client.exec_fate(channels[7]),
        ExecFate::ProvenDiscarded
    );
    assert_eq!(pair.server.executions.len(), 7);
}

#[test]
fn one_channel_that_is_not_read_does_not_stop_another() {
    let mut pair = logged_in(settings(), Policy::openssh());
    pair.reads = false;
    let stuck = pair.open(SessionRequest::exec(format!("print {}", 5 * MIB)));
    pair.run();
    pair.reads = true;
    let other = pair.open(SessionRequest::exec(format!("print {}", 5 * MIB)));
    pair.run();
    assert_eq!(pair.stdout(stuck).len(), 2 * MIB);
    assert!(pair.stdout(other) == pattern(5 * MIB));
}

#[test]
fn numbers_are_free_again_once_a_channel_is_forgotten() {
    let mut pair = logged_in(settings(), Policy::openssh());
    let first = pair.open(SessionRequest::exec("true"));
    pair.client.forget(first);
    assert_eq!(
        pair.client.exec_fate(first),
        ExecFate::NotSent,
        "not closed yet"
    );
    pair.run();
    assert_eq!(pair.client.exec_fate(first), ExecFate::Ran);
    pair.client.forget(first);
    // Nothing is known any more: not a reason to send anything again.
    assert_eq!(pair.client.exec_fate(first), ExecFate::MayHaveRun);
    assert_eq!(pair.open(SessionRequest::exec("true")), first);
}

#[test]
fn channels_have_a_limit_of_our_own() {
    let mut pair = Pair::new(settings(), opening(), Policy::openssh());
    for _ in 0..1024 {
        pair.open(SessionRequest::exec("true"));
    }
    let refused = pair.open(SessionRequest::exec("true"));
    let told = pair.client.poll_event();
    assert!(
        matches!(told, Some(Event::ChannelRefused { channel, .. }) if channel == refused),
        "{told:?}"
    );
    assert_eq!(pair.client.exec_fate(refused), ExecFate::NotSent);
    pair.client.close(refused).unwrap();
    assert_eq!(pair.client.send_data(refused, b"x").unwrap(), 0);
}

#[test]
fn a_tcp_connection_through_the_server_carries_data_both_ways() {
    let mut pair = Pair::new(settings(), opening(), Policy::openssh());
    // Asked for before the login, it waits for it.
    let channel = pair.client.open_direct_tcpip("db.internal", 5432).unwrap();
    assert_eq!(pair.client.send_data(channel, b"x").unwrap(), 0);
    pair.run();
    assert_eq!(
        pair.flights[2..],
        [
            "NEWKEYS SERVICE_REQUEST USERAUTH_REQUEST(publickey)",
            "CHANNEL_OPEN"
        ]
    );
    assert!(
        pair.events
            .ends_with(&[Event::ChannelOpened(channel), Event::Writable(channel)])
    );
    let data = pattern(200_000);
    assert_eq!(pair.client.send_data(channel, &data).unwrap(), data.len());
    pair.run();
    assert!(pair.stdout(channel) == data);
    assert_eq!(pair.client.exec_fate(channel), ExecFate::NotSent);
    pair.client.send_eof(channel).unwrap();
    pair.run();
    assert_eq!(pair.events.last(), Some(&Event::Closed(channel)));
}

#[test]
fn a_refused_tcp_connection_is_told() {
    let mut policy = Policy::openssh();
    policy.max_sessions = 0;
    let mut pair = logged_in(settings(), policy);
    let channel = pair.client.open_direct_tcpip("::1", 22).unwrap();
    pair.run();
    assert_eq!(pair.told(), ["ChannelRefused"]);
    assert_eq!(pair.client.send_data(channel, b"x").unwrap(), 0);
    pair.client.close(channel).unwrap();
    pair.run();
    assert_eq!(pair.flights, ["CHANNEL_OPEN"]);
}

#[test]
fn an_adjustment_may_come_in_any_size_up_to_the_limit() {
    let (mut pair, channel) = running(with_stdin("sink"));
    pair.server.channels.get_mut(&0).unwrap().allowed = u32::MAX as usize;
    for bytes_to_add in [0, 1, u32::MAX - 1 - 2 * MIB as u32] {
        pair.server.say(ChannelWindowAdjust {
            recipient_channel: 0,
            bytes_to_add,
        });
    }
    pair.run();
    assert_eq!(pair.error, None);
    assert!(pair.client.send_data(channel, &pattern(MIB)).unwrap() > 0);
}

#[test]
fn output_before_the_answer_proves_the_start_once() {
    let mut policy = Policy::openssh();
    policy.answers_channels = false;
    let (mut pair, channel) = Pair::with_command(settings(), policy, "true");
    pair.run();
    pair.server.say(sshoal_wire::ChannelOpenConfirmation {
        recipient_channel: 0,
        sender_channel: 0,
        initial_window_size: 0,
        maximum_packet_size: 32768,
        data: b"",
    });
    pair.run();
    assert_eq!(pair.client.exec_fate(channel), ExecFate::MayHaveRun);
    pair.server.say(ChannelData {
        recipient_channel: 0,
        data: b"output",
    });
    pair.server.say(sshoal_wire::ChannelSuccess {
        recipient_channel: 0,
    });
    pair.run();
    let started = Event::Started(channel);
    assert_eq!(
        pair.events
            .iter()
            .filter(|event| **event == started)
            .count(),
        1
    );
    assert_eq!(pair.stdout(channel), b"output");
}

#[test]
fn a_spare_session_runs_what_is_known_later_without_another_round_trip() {
    let mut pair = logged_in(settings(), Policy::openssh());
    let channel = pair.client.open_spare_session().unwrap();
    pair.run();
    assert!(pair.events.contains(&Event::ChannelOpened(channel)));
    assert_eq!(pair.client.exec_fate(channel), ExecFate::NotSent);
    pair.flights.clear();
    let request = SessionRequest::exec("print 10");
    pair.client.start_session(channel, request).unwrap();
    // A second one has no session to run in.
    let other = SessionRequest::exec("print 20");
    pair.client.start_session(channel, other).unwrap();
    pair.run();
    assert_eq!(pair.flights[0], "CHANNEL_REQUEST(exec) CHANNEL_EOF");
    assert_eq!(pair.stdout(channel), pattern(10));
    assert_eq!(pair.client.exec_fate(channel), ExecFate::Ran);
}

#[test]
fn a_spare_session_that_is_not_open_yet_runs_it_as_soon_as_it_is() {
    let mut pair = logged_in(settings(), Policy::openssh());
    let channel = pair.client.open_spare_session().unwrap();
    let request = SessionRequest::exec("print 10");
    pair.client.start_session(channel, request).unwrap();
    assert_eq!(pair.client.exec_fate(channel), ExecFate::NotSent);
    pair.run();
    assert_eq!(pair.stdout(channel), pattern(10));
    assert_eq!(pair.client.exec_fate(channel), ExecFate::Ran);
}

#[test]
fn the_end_of_a_session_may_wait_for_the_next_message() {
    let mut pair = logged_in(settings(), Policy::openssh());
    pair.client.defer_ends();
    let first = pair
        .client
        .open_session(SessionRequest::exec("print 10"))
        .unwrap();
    let spare = pair.client.open_spare_session().unwrap();
    pair.run();
    assert!(pair.events.contains(&Event::Closed(first)));
    assert!(!pair.flights.concat().contains("CHANNEL_CLOSE"));
    pair.client.forget(first);
    pair.flights.clear();
    pair.events.clear();
    let request = SessionRequest::exec("print 20");
    pair.client.start_session(spare, request).unwrap();
    let next = pair.client.open_spare_session().unwrap();
    assert_eq!(next, first, "its number is free");
    pair.run();
    assert_eq!(pair.stdout(spare), pattern(20));
    // The server had room for it: it read of the end first.
    assert!(pair.events.contains(&Event::ChannelOpened(next)));
    assert_eq!(
        pair.flights,
        ["CHANNEL_CLOSE CHANNEL_REQUEST(exec) CHANNEL_EOF CHANNEL_OPEN"]
    );
}
