#![allow(clippy::unwrap_used)]

use super::*;

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(String::from).collect()
}

fn matching(text: &str) -> Result<Condition, String> {
    Condition::matching(words(text))
}

/// A host "h" that was resolved to "Real", for the user "u" of a local user "l".
fn holds(condition: Condition, second_pass: bool) -> bool {
    let subject = Subject {
        host: "h",
        host_name: "Real",
        original_host: "H",
        user: "u",
        local_user: "l",
        second_pass,
    };
    condition.holds(&subject)
}

#[test]
fn a_host_line_needs_a_match_and_no_negated_one() {
    let host = |patterns| holds(Condition::host(words(patterns)).unwrap(), false);
    for patterns in ["h", "x h", "?", "* !x", "!x h"] {
        assert!(host(patterns), "{patterns}");
    }
    for patterns in ["H", "x", "x,h", "!x", "* !h", "!h *", "!* h", ""] {
        assert!(!host(patterns), "{patterns}");
    }
    assert!(Condition::host(vec![String::new()]).is_err());
}

#[test]
fn all_criteria_must_hold() {
    for text in [
        "all",
        "host real",
        "HOST=REAL",
        "originalhost h",
        "user u localuser l",
        "user x,u",
        "!user x",
        "host r*,!x user ?",
        "user u all",
        "user u # host x",
        "!final",
        "!canonical",
    ] {
        assert!(holds(matching(text).unwrap(), false), "{text}");
    }
    for text in [
        "!all",
        "host h",
        "user U",
        "localuser x",
        "user u host x",
        "user *,!u",
        "!user u",
        "user x all",
        "final",
        "canonical",
        "final all",
    ] {
        assert!(!holds(matching(text).unwrap(), false), "{text}");
    }
    assert!(holds(matching("final all").unwrap(), true));
    assert!(holds(matching("canonical host real").unwrap(), true));
    assert!(!holds(matching("!final").unwrap(), true));
}

#[test]
fn only_a_plain_final_requests_the_second_pass() {
    assert!(matching("host x final").unwrap().requests_second_pass());
    for text in ["!final", "canonical", "all"] {
        assert!(!matching(text).unwrap().requests_second_pass(), "{text}");
    }
    assert!(
        !Condition::host(words("final"))
            .unwrap()
            .requests_second_pass()
    );
}

#[test]
fn what_cannot_be_judged_is_named() {
    for (text, why) in [
        ("", "Match needs a criterion"),
        ("# all", "Match needs a criterion"),
        ("host", "Match host lacks its argument"),
        ("user # u", "Match user lacks its argument"),
        ("user=", "Match user lacks its argument"),
        (
            "all host h",
            "Match all cannot be combined with other criteria",
        ),
        (
            "host h user u all",
            "Match all cannot be combined with other criteria",
        ),
        ("weather fine", "unsupported Match attribute \"weather\""),
        ("final=x", "unsupported Match attribute \"final=x\""),
        ("host h exec true", "Match exec is not supported yet"),
        (
            "localnetwork 10.0.0.0/8",
            "Match localnetwork is not supported yet",
        ),
        ("!tagged x", "Match tagged is not supported yet"),
        ("version=*", "Match version is not supported yet"),
        ("command x", "Match command is not supported yet"),
        ("sessiontype exec", "Match sessiontype is not supported yet"),
    ] {
        assert_eq!(matching(text).unwrap_err(), why, "{text}");
    }
}
