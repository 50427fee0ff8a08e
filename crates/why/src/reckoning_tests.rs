//! What is expected of each phase, and what counts as lost in it.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;
use crate::fixtures::{clean, ms, slow};

#[test]
fn the_middle_of_an_even_number_lies_between_two() {
    assert_eq!(middle(&mut []), None);
    assert_eq!(middle(&mut [ms(3.0), ms(1.0)]), Some(ms(2.0)));
    assert_eq!(middle(&mut [ms(9.0), ms(1.0), ms(2.0)]), Some(ms(2.0)));
}

#[test]
fn an_outlier_is_no_spread() {
    let sample = Sample::of([10.0, 10.0, 11.0, 10.0, 900.0].map(ms)).unwrap();
    assert_eq!(sample.median, ms(10.0));
    assert_eq!(sample.floor(), LEAST);
    let noisy = Sample::of([10.0, 50.0, 90.0].map(ms)).unwrap();
    assert!(noisy.floor() > ms(150.0), "{:?}", noisy.floor());
}

#[test]
fn the_padding_is_subtracted_from_requests_of_openssh_alone() {
    let mut evidence = clean(0.05);
    let signed = |evidence: &Evidence| {
        let rows = rows(evidence, Client::Sshoal);
        rows.into_iter()
            .find(|row| row.phase == Phase::SignedRequest)
            .unwrap()
    };
    assert!(signed(&evidence).pad > ms(7.0) && !signed(&evidence).is_lost());
    evidence.identification = Some("SSH-2.0-dropbear_2022.83".to_owned());
    assert_eq!(signed(&evidence).pad, Duration::ZERO);
}

#[test]
fn what_each_traced_login_has_waited_for_a_processor_in_a_phase_is_no_loss_of_its_own() {
    let mut evidence = clean(0.05);
    slow(&mut evidence, Phase::ChannelOpen, 200.0);
    let row = |evidence: &Evidence| {
        let mut rows = rows(evidence, Client::Sshoal).into_iter();
        rows.find(|row| row.phase == Phase::ChannelOpen).unwrap()
    };
    let before = row(&evidence);
    let fact = "trace.phase.channel-open.contended.time";
    evidence.facts.insert(fact, ms(150.0));
    let after = row(&evidence);
    assert_eq!(after.stretch, ms(150.0));
    assert_eq!(after.excess + after.stretch, before.excess + before.stretch);
    // No more than there is.
    evidence.facts.insert(fact, ms(1_500.0));
    assert_eq!(row(&evidence).excess, Duration::ZERO);
}

#[test]
fn a_machine_that_is_slow_in_all_it_does_loses_nothing_by_it() {
    let mut evidence = clean(0.05);
    let lost = |evidence: &Evidence| {
        let rows = rows(evidence, Client::Sshoal);
        let lost = rows.into_iter().filter(Row::is_lost);
        lost.map(|row| row.phase).collect::<Vec<_>>()
    };
    for login in &mut evidence.logins {
        for span in &mut login.spans {
            if TELLING.contains(&span.phase) {
                span.duration *= 4;
            }
        }
    }
    assert_eq!(lost(&evidence), []);
    slow(&mut evidence, Phase::ChannelOpen, 100.0);
    assert_eq!(lost(&evidence), [Phase::ChannelOpen]);
}

#[test]
fn a_held_back_write_is_another_round_trip_and_no_loss() {
    let mut evidence = clean(80.0);
    let open = |evidence: &Evidence| {
        let rows = rows(evidence, Client::Sshoal);
        rows.into_iter()
            .find(|row| row.phase == Phase::ChannelOpen)
            .unwrap()
    };
    assert_eq!(open(&evidence).round_trips, 1);
    slow(&mut evidence, Phase::ChannelOpen, 80.0);
    assert_eq!(open(&evidence).round_trips, 2);
    assert!(!open(&evidence).is_lost());
    slow(&mut evidence, Phase::ChannelOpen, 50.0);
    assert_eq!(open(&evidence).round_trips, 1);
    assert!(open(&evidence).is_lost());
}

#[test]
fn without_a_round_trip_time_of_its_own_that_of_tcp_counts() {
    let mut evidence = clean(20.0);
    evidence.round_trips.clear();
    let round_trip = round_trip(&evidence).unwrap();
    assert!(round_trip.median >= ms(20.0) && round_trip.median < ms(20.5));
}

proptest! {
    #[test]
    fn the_parts_of_a_phase_add_up(
        round_trip in 0.0..300.0_f64,
        slower in prop::collection::vec(0.0..2_000.0_f64, Phase::ALL.len()),
    ) {
        let mut evidence = clean(round_trip);
        for (phase, by) in Phase::ALL.into_iter().zip(slower) {
            slow(&mut evidence, phase, by);
        }
        for by in [Client::Sshoal, Client::Ssh] {
            for row in rows(&evidence, by) {
                prop_assert_eq!(row.network + row.pad + row.own + row.excess, row.sample.median);
            }
        }
    }
}

#[test]
fn on_a_quick_network_padding_is_told_by_the_least_round_trip() {
    let mut evidence = clean(0.1);
    evidence.round_trips = [0.9, 1.1, 1.0].map(ms).to_vec();
    assert!(
        quiet_round_trip(&evidence) < ms(0.2),
        "ssh's connections, too"
    );
    let mut evidence = clean(20.0);
    evidence.round_trips = [30.0, 20.0, 31.0].map(ms).to_vec();
    assert_eq!(quiet_round_trip(&evidence), ms(30.0));
}
