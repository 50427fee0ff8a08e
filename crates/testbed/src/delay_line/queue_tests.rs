#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::super::packet::flag;
use super::super::packet::tests::Sample;
use super::*;

const MS: Duration = Duration::from_millis(1);

/// A packet that is `length` bytes on the wire.
fn packet(length: usize) -> Packet {
    Sample::to_server(flag::ACK, length - 40).packet()
}

/// A packet of `segments` segments of 1500 bytes on the wire.
fn large(segments: usize) -> Packet {
    Sample {
        segment: Some(1460),
        ..Sample::to_server(flag::ACK, segments * 1460)
    }
    .packet()
}

/// 1500 bytes take a millisecond.
fn twelve_megabits() -> LineSpec {
    LineSpec {
        rate_bits: Some(12_000_000),
        ..LineSpec::delayed(10 * MS)
    }
}

/// Everything that is in the queue: when it is due, and its tag.
fn drain(queue: &mut Queue<usize>) -> Vec<(Duration, usize)> {
    std::iter::from_fn(|| {
        let due = queue.next_due()?;
        queue.take_due(due).map(|(_, tag)| (due, tag))
    })
    .collect()
}

#[test]
fn a_packet_is_due_after_the_delay_and_not_before() {
    let mut queue = Queue::new(&LineSpec::delayed(50 * MS), 0);
    queue.offer(7 * MS, packet(100), 'a');
    queue.offer(8 * MS, packet(100), 'b');
    assert_eq!(queue.next_due(), Some(57 * MS));
    assert!(queue.take_due(57 * MS - Duration::from_nanos(1)).is_none());
    assert_eq!(queue.take_due(57 * MS).unwrap().1, 'a');
    assert!(queue.take_due(57 * MS).is_none());
    assert_eq!(queue.take_due(60 * MS).unwrap().1, 'b');
    assert_eq!(queue.next_due(), None);
}

#[test]
fn packets_leave_one_after_the_other_at_the_rate() {
    let mut queue = Queue::new(&twelve_megabits(), 0);
    for tag in 0..4 {
        assert_eq!(queue.offer(Duration::ZERO, packet(1500), tag).admitted, 1);
    }
    let expected: Vec<_> = (0..4).map(|tag| (11 * MS + MS * tag as u32, tag)).collect();
    assert_eq!(drain(&mut queue), expected);
}

#[test]
fn an_idle_line_saves_nothing_up() {
    let mut queue = Queue::new(&twelve_megabits(), 0);
    queue.offer(Duration::ZERO, packet(1500), 0);
    queue.offer(500 * MS, packet(1500), 1);
    queue.offer(500 * MS, packet(750), 2);
    let half = Duration::from_micros(500);
    assert_eq!(
        drain(&mut queue),
        [(11 * MS, 0), (511 * MS, 1), (511 * MS + half, 2)]
    );
}

#[test]
fn a_large_packet_arrives_with_its_last_bit() {
    let mut queue = Queue::new(&twelve_megabits(), 0);
    assert_eq!(queue.offer(Duration::ZERO, large(10), 0).admitted, 10);
    assert_eq!(drain(&mut queue), [(20 * MS, 0)]);
}

#[test]
fn what_the_queue_has_no_room_for_is_dropped() {
    let spec = LineSpec {
        queue_bytes: Some(3_000),
        ..twelve_megabits()
    };
    let mut queue = Queue::new(&spec, 0);
    let admitted: Vec<_> = (0..4)
        .map(|tag| queue.offer(Duration::ZERO, packet(1500), tag))
        .map(|admission| (admission.admitted, admission.overflowed))
        .collect();
    assert_eq!(admitted, [(1, 0), (1, 0), (0, 1), (0, 1)]);
    // A millisecond later one has left.
    assert_eq!(queue.offer(MS, packet(1500), 4).admitted, 1);
    assert_eq!(queue.offer(MS, packet(1500), 5).overflowed, 1);
    let tags: Vec<_> = drain(&mut queue).iter().map(|&(_, tag)| tag).collect();
    assert_eq!(tags, [0, 1, 4]);
}

#[test]
fn of_a_large_packet_the_front_that_fits_is_kept() {
    let spec = LineSpec {
        queue_bytes: Some(4_500),
        ..twelve_megabits()
    };
    let mut queue = Queue::new(&spec, 0);
    let whole = large(8);
    let admission = queue.offer(Duration::ZERO, whole.clone(), 0);
    assert_eq!((admission.admitted, admission.overflowed), (3, 5));
    let (kept, _) = queue.take_due(Duration::MAX).unwrap();
    assert_eq!(kept, whole.cut(0..3));
}

#[test]
fn without_a_length_the_queue_holds_one_round_trip() {
    let spec = LineSpec {
        rate_bits: Some(1_000_000_000),
        ..LineSpec::delayed(50 * MS)
    };
    assert_eq!(spec.queue_limit(), 12_500_000);
    assert_eq!(
        twelve_megabits().queue_limit(),
        256 * 1024,
        "and never too little"
    );
}

#[test]
fn memory_is_bounded_without_a_rate() {
    let mut queue = Queue::new(&LineSpec::delayed(50 * MS), 0);
    queue.max_flying_bytes = 100_000;
    let admitted: u64 = (0..1_000)
        .map(|tag| queue.offer(MS, packet(1500), tag).admitted)
        .sum();
    assert!(
        (60..70).contains(&admitted),
        "{admitted} packets of 1510 bytes in 100,000"
    );
    assert_eq!(drain(&mut queue).len() as u64, admitted);
    assert_eq!(queue.flying_bytes, 0);
    assert_eq!(queue.offer(MS, packet(1500), 0).admitted, 1, "room again");
}

/// Which of a thousand packets arrive.
fn survivors(loss: f64, seed: u64, stream: u64) -> Vec<usize> {
    let spec = LineSpec {
        loss,
        seed,
        ..LineSpec::default()
    };
    let mut queue = Queue::new(&spec, stream);
    for tag in 0..1_000 {
        let admission = queue.offer(Duration::ZERO, packet(1500), tag);
        assert_eq!(admission.admitted + admission.lost, 1);
    }
    drain(&mut queue).into_iter().map(|(_, tag)| tag).collect()
}

#[test]
fn a_seed_loses_the_same_packets_again() {
    let once = survivors(0.1, 42, 0);
    assert_eq!(once, survivors(0.1, 42, 0));
    assert_ne!(once, survivors(0.1, 43, 0), "another seed");
    assert_ne!(once, survivors(0.1, 42, 1), "the other direction");
    // 900 of 1000 are expected with a standard deviation of 9.5.
    assert!((850..950).contains(&once.len()), "{} survived", once.len());
}

#[test]
fn nothing_and_everything_can_be_lost() {
    assert_eq!(survivors(0.0, 1, 0).len(), 1_000);
    assert_eq!(survivors(1.0, 1, 0).len(), 0);
}

#[test]
fn a_segment_shares_no_fate_with_its_packet() {
    let spec = LineSpec {
        loss: 0.1,
        seed: 42,
        ..LineSpec::default()
    };
    let mut queue = Queue::new(&spec, 0);
    let whole = large(40);
    let mut lost = 0;
    for tag in 0..25 {
        lost += queue.offer(Duration::ZERO, whole.clone(), tag).lost;
    }
    // The same segments as when they come one by one.
    let survivors = survivors(0.1, 42, 0);
    assert_eq!(lost, 1_000 - survivors.len() as u64);
    let mut arrived = Vec::new();
    while let Some((packet, tag)) = queue.take_due(Duration::ZERO) {
        let first_of_packet = sequence_of(&packet) / 1460;
        arrived.extend((0..packet.segments()).map(|at| tag * 40 + first_of_packet + at));
    }
    assert_eq!(arrived, survivors);
}

/// How far into its packet's payload a cut one begins: the samples' sequence numbers start at 1000.
fn sequence_of(packet: &Packet) -> usize {
    let at = packet.bytes().len() - packet.summary().unwrap().payload_len - 16;
    let sequence = u32::from_be_bytes(packet.bytes()[at..at + 4].try_into().unwrap());
    sequence as usize - 1_000
}

proptest! {
    /// In order, never early, never faster than the rate, and nothing unaccounted for.
    #[test]
    fn the_line_keeps_its_promises(
        arrivals in proptest::collection::vec((0_u64..3_000, 40_usize..1_500), 1..200),
        loss in 0.0..0.5_f64,
        limit in 1_500_u64..20_000,
    ) {
        let spec = LineSpec { loss, queue_bytes: Some(limit), ..twelve_megabits() };
        let mut queue = Queue::new(&spec, 0);
        let mut now = Duration::ZERO;
        let mut offered_at = Vec::new();
        let mut total = Admission::default();
        for (tag, &(gap, length)) in arrivals.iter().enumerate() {
            now += Duration::from_micros(gap);
            offered_at.push(now);
            let admission = queue.offer(now, packet(length), tag);
            total.admitted += admission.admitted;
            total.lost += admission.lost;
            total.overflowed += admission.overflowed;
        }
        let out = drain(&mut queue);
        prop_assert_eq!(total.admitted + total.lost + total.overflowed, arrivals.len() as u64);
        prop_assert_eq!(out.len() as u64, total.admitted);
        let sending = |tag: usize| Duration::from_nanos(arrivals[tag].1 as u64 * 8_000_000_000 / 12_000_000);
        for &(due, tag) in &out {
            prop_assert!(due >= offered_at[tag] + sending(tag) + spec.delay);
            let longest_wait = Duration::from_micros((limit * 8).div_ceil(12) + 1);
            prop_assert!(due <= offered_at[tag] + longest_wait + spec.delay);
        }
        for pair in out.windows(2) {
            prop_assert!(pair[0].1 < pair[1].1);
            prop_assert!(pair[1].0 >= pair[0].0 + sending(pair[1].1));
        }
    }
}
