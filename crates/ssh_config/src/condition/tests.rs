#![allow(clippy::unwrap_used)]

use super::*;
use crate::config::Directive;
use crate::question::Question;
use crate::value::Value;

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(String::from).collect()
}

fn matching(text: &str) -> Result<Condition, String> {
    Condition::matching(words(text), &Origin::CommandLine)
}

/// Judges a condition about the host "h", written "H" and resolved to "Real", for the user "u" of
/// a local user "l"; lines may have set more.
fn judged(
    condition: &Condition,
    lines: &[Directive],
    query: &Query<'_>,
    answers: &Answers,
    second_pass: bool,
) -> Result<bool, Unresolved> {
    let environment = Environment {
        local_user: "l".into(),
        ..Environment::default()
    };
    let mut slots = Slots::new();
    for line in lines {
        slots.apply(line).unwrap();
    }
    condition.holds(&Subject {
        environment: &environment,
        answers,
        query: &Query {
            host: "H",
            user: Some("u"),
            ..*query
        },
        slots: &slots,
        host: "h",
        host_name: "Real",
        second_pass,
    })
}

fn holds(condition: Condition, second_pass: bool) -> bool {
    let (query, answers) = (Query::default(), Answers::default());
    judged(&condition, &[], &query, &answers, second_pass).unwrap()
}

fn line(keyword: Keyword, text: &str) -> Directive {
    Directive {
        keyword,
        value: Value::Text(text.into()),
        origin: Origin::CommandLine,
    }
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
        ("final=x", "Match final=x lacks its argument"),
        (
            "localnetwork 10.0.0.1/8",
            "inconsistent mask length in network \"10.0.0.1/8\"",
        ),
        (
            "sessiontype=exec",
            "Match sessiontype=exec lacks its argument",
        ),
        ("exec=", "Match exec lacks its argument"),
        ("tagged", "Match tagged lacks its argument"),
        ("command # x", "Match command lacks its argument"),
    ] {
        assert_eq!(matching(text).unwrap_err(), why, "{text}");
    }
}

#[test]
fn tags_commands_and_kinds_of_session_are_matched() {
    let answers = Answers::default();
    let holds = |text: &str, lines: &[Directive], query: &Query<'_>| {
        judged(&matching(text).unwrap(), lines, query, &answers, false).unwrap()
    };
    let nothing = Query::default();
    let tagged = Query {
        tag: Some("blue"),
        ..nothing
    };
    let command = Query {
        command: Some("uptime -p"),
        ..nothing
    };
    let tag = [line(Keyword::Tag, "red")];
    assert!(holds("tagged r*", &tag, &nothing));
    assert!(holds("tagged=blue", &tag, &tagged));
    assert!(!holds("tagged red", &tag, &tagged));
    assert!(!holds("tagged *", &[], &nothing));
    assert!(holds("tagged=", &[], &nothing));
    assert!(!holds("tagged=", &tag, &nothing));
    assert!(holds("command uptime*", &[], &command));
    assert!(holds("!command *", &[], &nothing));
    assert!(holds("command=", &[], &nothing));
    for (kind, lines, query) in [
        ("shell", &[][..], &nothing),
        ("exec", &[], &command),
        (
            "subsystem",
            &[line(Keyword::SessionType, "subsystem")],
            &command,
        ),
        ("none", &[line(Keyword::SessionType, "none")], &command),
    ] {
        assert!(
            holds(&format!("sessiontype x,{kind}"), lines, query),
            "{kind}"
        );
        assert!(!holds("sessiontype x", lines, query), "{kind}");
    }
    assert!(holds("version OpenSSH_10.*", &[], &nothing));
    assert!(!holds("version OpenSSH_9.*", &[], &nothing));
}

#[test]
fn commands_and_addresses_are_asked_of_the_caller() {
    let mut answers = Answers::default();
    let ask = |text: &str, answers: &Answers| {
        let lines = [
            line(Keyword::User, "not I"),
            line(Keyword::HostKeyAlias, "alias"),
        ];
        judged(
            &matching(text).unwrap(),
            &lines,
            &Query::default(),
            answers,
            false,
        )
    };
    let exec = "exec test%%%h%n%r%p%u%k";
    let command = "test%RealHu22lalias".to_string();
    let question = Question::Exec {
        command: command.clone(),
    };
    assert_eq!(ask(exec, &answers), Err(Unresolved::Asks(question)));
    for (status, expected) in [(0, true), (1, false)] {
        answers.exited(command.clone(), Some(status));
        assert_eq!(ask(exec, &answers), Ok(expected));
        assert_eq!(ask(&format!("!{exec}"), &answers), Ok(!expected));
    }
    answers.exited(command, None);
    assert!(matches!(ask(exec, &answers), Err(Unresolved::Refused(_))));
    // What does not hold anyway is not asked.
    assert_eq!(ask("host x exec other", &answers), Ok(false));
    assert!(ask("exec %q", &answers).is_err());

    let local = "localnetwork 10.0.0.0/8";
    assert_eq!(
        ask(local, &answers),
        Err(Unresolved::Asks(Question::LocalAddresses))
    );
    answers.local_addresses(vec![
        "127.0.0.1".parse().unwrap(),
        "10.9.8.7".parse().unwrap(),
    ]);
    assert_eq!(ask(local, &answers), Ok(true));
    assert_eq!(ask("localnetwork 192.168.0.0/16,::/0", &answers), Ok(false));
}
