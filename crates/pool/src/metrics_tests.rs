#![allow(clippy::unwrap_used)]

use super::*;
use crate::control::Alarm;
use crate::limits::Limits;

fn host(name: &str, state: State) -> HostStatus {
    HostStatus {
        host: name.to_owned(),
        state,
        detail: None,
        control_path: "/run/sshoal/target".to_owned(),
        age_seconds: 1.5,
        lazy: false,
        idle_seconds: None,
        connections: 1,
        logins: 2,
        sessions: 0,
        sessions_in_all: 7,
        connect_ms: None,
        round_trip_ms: (state == State::Up).then_some(2.0),
        octets_sent: 10,
        octets_received: 20,
        forwarded: 0,
    }
}

fn status() -> Status {
    Status {
        pid: 1,
        connections: 1,
        memory_octets: 4096,
        limits: Limits::default(),
        refused: 0,
        alarms: 3,
        last_alarm: Some(Alarm::Sleep),
        hosts: vec![host("web\"1\\\n", State::Up), host("web2", State::Lost)],
    }
}

#[test]
fn each_metric_is_introduced_once_and_labels_are_escaped() {
    let text = prometheus(&status());
    let is = |line: &str| assert!(text.lines().any(|it| it == line), "{line}\n{text}");
    is("sshoal_hosts{state=\"up\"} 1");
    is("sshoal_hosts{state=\"lost\"} 1");
    is("sshoal_hosts{state=\"down\"} 0");
    is("sshoal_host_up{host=\"web\\\"1\\\\\\n\",target=\"target\"} 1");
    is("sshoal_host_up{host=\"web2\",target=\"target\"} 0");
    is("sshoal_host_round_trip_seconds{host=\"web\\\"1\\\\\\n\",target=\"target\"} 0.002");
    is("sshoal_alarms_total 3");
    assert!(!text.contains("sshoal_connections_limit"), "there is none");
    let types: Vec<&str> = text.lines().filter(|it| it.starts_with("# TYPE")).collect();
    let mut distinct = types.clone();
    distinct.dedup();
    assert_eq!(types, distinct);
}

#[test]
fn the_file_is_written_when_it_is_named_and_then_after_a_while() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sshoal.prom");
    let file = MetricsFile::default();
    assert_eq!(file.write_if_due(status), None);
    file.write_to(&path, &status()).unwrap();
    std::fs::remove_file(&path).unwrap();
    let left = file.write_if_due(status).unwrap();
    assert!(left > INTERVAL / 2, "{left:?}");
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text, prometheus(&status()));
    std::fs::remove_file(&path).unwrap();
    assert!(file.write_if_due(status).unwrap() > INTERVAL / 2);
    assert!(!path.exists());
    file.write_last(status);
    assert!(path.exists());
}

#[test]
fn a_file_that_cannot_be_written_is_named_with_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let file = MetricsFile::default();
    for path in [
        dir.path().join("nowhere/sshoal.prom"),
        dir.path().to_owned(),
    ] {
        let refused = file.write_to(&path, &status()).unwrap_err().to_string();
        let named = refused.contains(path.to_str().unwrap());
        assert!(named && refused.contains("folder"), "{refused}");
    }
    assert_eq!(file.write_if_due(status), None);
}
