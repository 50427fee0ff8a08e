#![allow(clippy::unwrap_used)]

use super::*;

fn rule(text: &str) -> FaultRule {
    text.parse().unwrap()
}

#[test]
fn hosts_are_single_ranges_lists_or_all() {
    let some = rule("1,4-6=refuse");
    let concerned: Vec<u32> = (0..10).filter(|&host| some.concerns(host)).collect();
    assert_eq!(concerned, [1, 4, 5, 6]);
    assert!(rule("*=refuse").concerns(u32::MAX));
    assert!(!rule("10-19=refuse").concerns(20));
}

#[test]
fn every_documented_spelling_is_read() {
    let cut = |side, action, at| Fault::Cut(Cut { side, action, at });
    for (text, fault) in [
        ("refuse", Fault::Refuse),
        ("connect-hang", Fault::ConnectHang),
        ("silent-after-connect", Fault::SilentAfterConnect),
        ("garbage-banner", Fault::GarbageBanner),
        ("endless-banner", Fault::EndlessBanner),
        ("max-startups", Fault::MaxStartups),
        ("not-allowed", Fault::NotAllowed),
        ("wrong-host-key", Fault::WrongHostKey),
        ("changed-host-key:2", Fault::ChangedHostKey(2)),
        ("unknown-host-key", Fault::UnknownHostKey),
        ("revoked-host-key", Fault::RevokedHostKey),
        ("auth-denied", Fault::AuthDenied),
        ("slow-output:100", Fault::SlowOutput(100)),
        ("flood", Fault::Flood(FLOOD_DEFAULT)),
        ("flood:7", Fault::Flood(7)),
        ("exit-signal:KILL", Fault::ExitSignal("KILL".into())),
        ("never-close", Fault::NeverClose),
        ("latency:30", Fault::Latency(Duration::from_millis(30))),
        (
            "reset-at:1234",
            cut(Side::Output, Action::Reset, Position::Byte(1234)),
        ),
        (
            "close-at:auth+1",
            cut(
                Side::Output,
                Action::Close,
                Position::AfterAuthentication(1),
            ),
        ),
        (
            "silent-at:message+5",
            cut(Side::Output, Action::Silence, Position::Message(5)),
        ),
        (
            "silent-after-message:5",
            cut(Side::Output, Action::Silence, Position::Message(5)),
        ),
        (
            "reset-input-at:0",
            cut(Side::Input, Action::Reset, Position::Byte(0)),
        ),
        (
            "close-input-at:3",
            cut(Side::Input, Action::Close, Position::Byte(3)),
        ),
        (
            "silent-input-at:message+2",
            cut(Side::Input, Action::Silence, Position::Message(2)),
        ),
    ] {
        assert_eq!(text.parse(), Ok(fault), "{text}");
    }
}

#[test]
fn a_count_limits_a_fault_to_the_first_connections() {
    let throttled = rule("0=max-startups@3");
    let suffering: Vec<u64> = (0..6).filter(|&number| throttled.applies(number)).collect();
    assert_eq!(suffering, [0, 1, 2]);
    assert!(rule("0=max-startups").applies(u64::MAX));
}

#[test]
fn what_is_not_a_rule_is_refused_with_its_reason() {
    let problem = |text: &str| text.parse::<FaultRule>().unwrap_err().to_string();
    for (text, reason) in [
        ("refuse", "not HOSTS=FAULT"),
        ("5-3=refuse", "not a list of host indices"),
        ("x=refuse", "not a list of host indices"),
        ("=refuse", "not a list of host indices"),
        ("1=explode", "no fault is called 'explode'"),
        ("1=reset-at", "needs a position"),
        ("1=reset-at:soon", "'soon' is not a number"),
        ("1=refuse:7", "takes nothing"),
        ("1=refuse@2", "every connection"),
        ("1=max-startups@many", "'many' is not a number"),
    ] {
        assert!(problem(text).contains(reason), "{text}: {}", problem(text));
    }
}
