#![allow(clippy::unwrap_used)]

use super::*;
use crate::question::Question;

/// Rules for everything, to be narrowed by a test.
fn rules<'a>(answers: &'a Answers, domains: &'a [String], cnames: &'a [String]) -> Rules<'a> {
    Rules {
        answers,
        canonicalize: CanonicalizeHostname::Yes,
        family: AddressFamily::Any,
        direct: true,
        domains,
        max_dots: 1,
        fallback_local: true,
        cnames,
    }
}

/// Knows these names, each with what it is an alias for, and no other.
fn canonical(
    rules: impl Fn(&Answers) -> Result<String, Unresolved>,
    names: &[(&str, &str)],
) -> Result<String, Unresolved> {
    let mut answers = Answers::default();
    loop {
        match rules(&answers) {
            Err(Unresolved::Asks(Question::Lookup { name, family })) => {
                let known = names.iter().find(|row| row.0 == name);
                let lookup = known.map_or(Lookup::NotFound, |row| Lookup::Found {
                    canonical_name: (!row.1.is_empty()).then(|| row.1.into()),
                });
                answers.looked_up(name, family, lookup);
            }
            other => return other,
        }
    }
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(String::from).collect()
}

const NAMES: &[(&str, &str)] = &[
    ("web.b.example.", ""),
    ("web.c.example.", ""),
    ("www.b.example.", "Web.b.example"),
    ("full.example.", ""),
    ("short", "long.example."),
    ("odd", "bad name"),
];

#[test]
fn names_are_completed_by_the_first_domain_that_knows_them() {
    let domains = words("a.example b.example c.example");
    let ask = |host: &str| {
        canonical(
            |answers| rules(answers, &domains, &[]).canonical(host.into()),
            NAMES,
        )
        .unwrap()
    };
    for (host, expected) in [
        ("web", "web.b.example"),
        ("WEB", "web.b.example"),
        ("www", "www.b.example"),
        ("db", "db"),
        ("full.example.", "full.example"),
        ("none.example.", "none.example."),
        ("web.b.example", "web.b.example"),
        ("127.1", "127.0.0.1"),
        ("1.2.3.256", "1.2.3.256"),
    ] {
        assert_eq!(ask(host), expected, "{host}");
    }
}

#[test]
fn what_stops_completion() {
    let domains = words("b.example");
    type Narrow = fn(&mut Rules<'_>);
    let cases: [(Narrow, &str, &str); 5] = [
        (
            |rules| rules.canonicalize = CanonicalizeHostname::No,
            "web",
            "web",
        ),
        (|rules| rules.direct = false, "web", "web"),
        (|rules| rules.max_dots = 0, "web", "web.b.example"),
        (|rules| rules.max_dots = 0, "web.b", "web.b"),
        (
            |rules| {
                rules.direct = false;
                rules.canonicalize = CanonicalizeHostname::Always;
            },
            "web",
            "web.b.example",
        ),
    ];
    for (narrow, host, expected) in cases {
        let ask = |answers: &Answers| {
            let mut rules = rules(answers, &domains, &[]);
            narrow(&mut rules);
            rules.canonical(host.into())
        };
        assert_eq!(canonical(ask, NAMES).unwrap(), expected, "{host}");
    }
}

#[test]
fn without_a_fallback_a_name_must_be_found() {
    let domains = words("b.example");
    let ask = |host: &str| {
        let ask = |answers: &Answers| {
            let rules = Rules {
                fallback_local: false,
                ..rules(answers, &domains, &[])
            };
            rules.canonical(host.into())
        };
        canonical(ask, NAMES)
    };
    let not_found = |host: &str| Err(ResolveError::NotFound(host.into()).into());
    assert_eq!(ask("db"), not_found("db"));
    assert_eq!(ask("none.example."), not_found("none.example."));
    assert_eq!(ask("web").unwrap(), "web.b.example");
    assert_eq!(ask("a.b.c").unwrap(), "a.b.c");
}

#[test]
fn aliases_are_followed_where_it_is_permitted() {
    let domains = words("b.example");
    let ask = |cnames: &str, direct, canonicalize, host: &str| {
        let cnames = words(cnames);
        let ask = |answers: &Answers| {
            let rules = Rules {
                direct,
                canonicalize,
                ..rules(answers, &domains, &cnames)
            };
            rules.canonical(host.into())
        };
        canonical(ask, NAMES)
    };
    use CanonicalizeHostname::{Always, No, Yes};
    for (cnames, direct, canonicalize, host, expected) in [
        ("*:*", true, Yes, "short", "long.example"),
        (
            "*.b.example:x short:*.example",
            true,
            Yes,
            "short",
            "long.example",
        ),
        ("*:x", true, Yes, "short", "short"),
        ("*,!short:*", true, Yes, "short", "short"),
        ("*:*", true, Yes, "odd", "odd"),
        ("*:*", true, No, "short", "short"),
        ("*:*", false, Yes, "short", "short"),
        ("*:*", false, Always, "short", "long.example"),
        ("*:*", false, Always, "absent", "absent"),
        ("*:web.b.example", true, Yes, "www", "www.b.example"),
        ("*:*", true, Yes, "www", "web.b.example"),
    ] {
        let got = ask(cnames, direct, canonicalize, host);
        assert_eq!(got.unwrap(), expected, "{cnames} {host}");
    }
    let not_found = ResolveError::NotFound("absent".into()).into();
    assert_eq!(ask("*:*", true, Yes, "absent"), Err(not_found));
    let not_found = ResolveError::NotFound("absent".into()).into();
    assert_eq!(ask("*:*", true, No, "absent"), Err(not_found));
}
