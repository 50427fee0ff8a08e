//! What is made of the tracer's frames.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;
use crate::fixtures::{Host, LISTENER, login, recording};
use crate::frames::Frames;

#[test]
fn records_of_all_processors_stand_in_the_order_of_time() {
    let mut recording = recording(&login(|_| {}).octets());
    let (followed, records) = recording.records().unwrap();
    assert_eq!(followed, LISTENER);
    assert!(records.is_sorted_by_key(|record| record.at));
    // A fork, told twice, and nothing before it.
    assert_eq!(records[0].at, 100_000);
    let forks = records
        .iter()
        .filter(|it| matches!(it.what, What::Fork { .. }));
    assert_eq!(forks.count(), 2);
}

#[test]
fn counters_are_told_by_what_they_grew() {
    let mut recording = recording(&login(|_| {}).octets());
    assert_eq!(recording.samples["pgmajfault"], 4);
    assert_eq!(recording.samples["steal"], 0);
    assert_eq!(recording.lost, 3);
    assert_eq!(recording.end(), Some("asked"));
    recording.records().unwrap();
    assert_eq!(recording.names[&7], "systemd-logind");
    // A switch tells names, too.
    assert_eq!(recording.names[&190], "other");
}

#[test]
fn a_trace_that_is_cut_or_refused_is_none() {
    let octets = login(|_| {}).octets();
    let mut cut = Recording::default();
    let mut frames = Frames::default();
    frames.handle_input(&octets[..octets.len() - 1]).unwrap();
    while let Some(frame) = frames.poll_frame().unwrap() {
        cut.take(frame).unwrap();
    }
    assert_eq!(cut.records(), Err(RecordingError::Cut));
    let refused = Frame::Failed("no-tracefs".to_owned(), "there is none".to_owned());
    let error = cut.take(refused).unwrap_err();
    assert_eq!(error.to_string(), "there is none");
    let mut empty = recording(&Host::default().octets());
    assert_eq!(empty.records(), Err(RecordingError::Empty));
}

proptest! {
    #[test]
    fn no_change_of_an_octet_is_too_much(place in 0_usize..8000, octet: u8, cut in 0_usize..8000) {
        let mut octets = login(|_| {}).octets();
        let length = octets.len();
        octets[place % length] = octet;
        octets.truncate(length - cut % length);
        let mut frames = Frames::default();
        let mut recording = Recording::default();
        frames.handle_input(&octets).unwrap();
        while let Ok(Some(frame)) = frames.poll_frame() {
            let _ = recording.take(frame);
        }
        let _ = recording.records();
    }
}
