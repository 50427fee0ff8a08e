#![allow(clippy::unwrap_used)]

use super::*;

fn environment() -> Environment {
    Environment {
        local_user: "me".into(),
        home: "/home/me".into(),
        local_host: "here.example.com".into(),
        uid: 1000,
        variables: [("DIR".to_string(), "/dir%h".to_string())].into(),
    }
}

fn tokens(environment: &Environment) -> Tokens<'_> {
    Tokens {
        environment,
        original_host: Some("h"),
        target: Some(TargetTokens {
            host_name: "real",
            port: 2222,
            key_alias: "alias",
            jump_host: "j",
            user: Some("you"),
        }),
    }
}

#[test]
fn every_token_has_its_value() {
    let environment = environment();
    let expand = |text: &str| percent_and_variables(text, &tokens(&environment));
    let all = "%d %h %i %j %k %l %L %n %p %r %u %% ${DIR} $DIR";
    let expected = "/home/me real 1000 j alias here.example.com here h 2222 you me % /dir%h $DIR";
    assert_eq!(expand(all).unwrap(), expected);
    // printf '%s' here.example.comreal2222youj | sha1sum
    assert_eq!(
        expand("%C").unwrap(),
        "298281bdda6db3452064c6a6702517ea58277d1e"
    );
    assert_eq!(expand("ä%hö").unwrap(), "ärealö");
    assert_eq!(
        percent("${DIR}%p", &tokens(&environment)).unwrap(),
        "${DIR}2222"
    );
    assert_eq!(variables("${DIR}%p", &environment).unwrap(), "/dir%h%p");
}

#[test]
fn what_has_no_value_is_named() {
    let environment = environment();
    let expand = |text: &str| percent_and_variables(text, &tokens(&environment)).unwrap_err();
    assert_eq!(expand("%q"), "\"%q\" has no meaning here");
    assert_eq!(expand("a%"), "\"%\" at the end of a value");
    assert_eq!(
        expand("${NO}"),
        "the environment variable \"NO\" is not set"
    );
    assert_eq!(expand("${}"), "the environment variable \"\" is not set");
    assert_eq!(expand("${DIR"), "a variable lacks its closing \"}\"");
    let early = Tokens {
        target: None,
        original_host: None,
        ..tokens(&environment)
    };
    for token in ["%h", "%p", "%r", "%n", "%k", "%j", "%C"] {
        assert!(percent(token, &early).is_err(), "{token}");
    }
    let mut without_user = tokens(&environment);
    without_user.target = without_user.target.map(|target| TargetTokens {
        user: None,
        ..target
    });
    assert!(percent("%r", &without_user).is_err());
    assert!(percent("%C", &without_user).is_err());
    assert_eq!(percent("%h", &without_user).unwrap(), "real");
}

#[test]
fn a_host_name_knows_only_the_host() {
    assert_eq!(host_name("%h.example.com", "h").unwrap(), "h.example.com");
    assert_eq!(host_name("100%%", "h").unwrap(), "100%");
    for text in ["%p", "%", "%%%"] {
        assert!(host_name(text, "h").is_err(), "{text}");
    }
}

#[test]
fn a_tilde_is_a_home() {
    for (path, expected) in [
        ("~", "/home/me/"),
        ("~/", "/home/me/"),
        ("~/a", "/home/me/a"),
        ("~//a", "/home/me/a"),
        ("~you", "/home/me/"),
        ("~you//a/b", "/home/me/a/b"),
        ("/a/~", "/a/~"),
        ("a", "a"),
    ] {
        assert_eq!(tilde(path, "/home/me"), expected, "{path}");
    }
    assert_eq!(tilde("~/a", "/"), "/a");
    for (path, user) in [
        ("~you/a", Some("you")),
        ("~you", Some("you")),
        ("~/a", None),
        ("a~b", None),
    ] {
        assert_eq!(tilde_user(path), user, "{path}");
    }
}

#[test]
fn what_a_text_depends_on_is_seen_beforehand() {
    let environment = environment();
    for (text, name) in [
        ("${DIR}/${X}", Some("X")),
        ("${DIR}$X", None),
        ("${X", None),
    ] {
        assert_eq!(unset_variable(text, &environment), name, "{text}");
    }
    for (text, depends) in [
        ("%h", true),
        ("%d/%%h", false),
        ("%%%r", true),
        ("%", false),
    ] {
        assert_eq!(depends_on_host(text), depends, "{text}");
    }
}
