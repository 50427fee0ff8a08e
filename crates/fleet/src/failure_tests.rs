#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use super::*;

#[test]
fn the_table_follows_the_enum_s_order() {
    for (position, row) in TABLE.iter().enumerate() {
        assert_eq!(row.kind as usize, position, "{}", row.name);
    }
    assert_eq!(FailureKind::Internal as usize + 1, TABLE.len());
}

#[test]
fn names_are_kebab_case_distinct_and_read_back() {
    let names: BTreeSet<&str> = FailureKind::all().map(FailureKind::name).collect();
    assert_eq!(names.len(), TABLE.len());
    for kind in FailureKind::all() {
        assert!(
            kind.name()
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte == b'-'),
            "{kind}"
        );
        assert_eq!(kind.name().parse::<FailureKind>().unwrap(), kind);
    }
}

#[test]
fn an_unknown_name_is_answered_with_the_names_there_are() {
    let error = "thottled".parse::<FailureKind>().unwrap_err().to_string();
    assert!(error.contains("\"thottled\""), "{error}");
    assert!(error.contains("throttled, protocol"), "{error}");
}

#[test]
fn no_kind_is_retried_when_the_command_may_have_run() {
    for kind in FailureKind::all().filter(|kind| kind.command_may_have_run()) {
        assert_eq!(kind.attempts(100), 1, "{kind}");
    }
}

#[test]
fn throttling_is_retried_as_the_policy_says_and_refusal_once() {
    assert_eq!(FailureKind::Throttled.attempts(6), 6);
    assert_eq!(FailureKind::Refused.attempts(6), 2);
    assert_eq!(FailureKind::Refused.attempts(1), 1);
    assert_eq!(FailureKind::Closed.attempts(6), 2);
    assert_eq!(FailureKind::AuthDenied.attempts(6), 1);
}
