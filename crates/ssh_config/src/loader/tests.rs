#![allow(clippy::unwrap_used)]

use super::*;
use crate::Answers;
use crate::config::Query;

fn environment() -> Environment {
    Environment {
        local_user: "me".into(),
        home: "/home/me".into(),
        variables: [("DIR".to_string(), "conf".to_string())].into(),
        ..Environment::default()
    }
}

/// Reads files given by path and content; a glob finds the files that begin with its pattern up
/// to the `*`.
fn load(options: &[&str], file: Option<&str>, files: &[(&str, &str)]) -> Result<Config, LoadError> {
    let options: Vec<String> = options.iter().map(ToString::to_string).collect();
    let mut loader = Loader::new(&options, file, environment());
    while let Some(need) = loader.poll_need() {
        loader.handle_supply(match need {
            Need::File { path, .. } => {
                let file = files.iter().find(|file| file.0 == path);
                file.map_or(Supply::Absent, |file| Supply::Content(file.1.into()))
            }
            Need::Glob { pattern } => {
                let start = pattern.split('*').next().unwrap();
                let found = files.iter().filter(|file| file.0.starts_with(start));
                Supply::Paths(found.map(|file| file.0.to_string()).collect())
            }
        });
    }
    loader.finish()
}

fn problems(result: Result<Config, LoadError>) -> Vec<String> {
    match result {
        Err(LoadError::Lines(problems)) => problems.iter().map(Problem::to_string).collect(),
        Err(other) => vec![other.to_string()],
        Ok(_) => Vec::new(),
    }
}

fn user_of(config: &Config, host: &str) -> String {
    let resolved = config
        .resolve(
            &Query {
                host,
                ..Query::default()
            },
            &Answers::default(),
        )
        .unwrap();
    let user = resolved.connection.user;
    format!("{} {}", user.value, user.origin)
}

#[test]
fn the_users_file_comes_before_the_systems() {
    let mut loader = Loader::new(&[], None, environment());
    let need = |path: &str, check_permissions| {
        Some(Need::File {
            path: path.into(),
            check_permissions,
        })
    };
    let users = need("/home/me/.ssh/config", true);
    assert_eq!(loader.poll_need(), users);
    assert_eq!(loader.poll_need(), users);
    loader.handle_supply(Supply::Content(b"Host a\nUser user\n".to_vec()));
    assert_eq!(loader.poll_need(), need("/etc/ssh/ssh_config", false));
    loader.handle_supply(Supply::Content(b"User system".to_vec()));
    assert_eq!(loader.poll_need(), None);
    let config = loader.finish().unwrap();
    assert_eq!(user_of(&config, "a"), "user /home/me/.ssh/config:2");
    assert_eq!(user_of(&config, "b"), "system /etc/ssh/ssh_config:1");
}

#[test]
fn files_that_need_not_be_there_need_not_be_there() {
    assert_eq!(user_of(&load(&[], None, &[]).unwrap(), "a"), "me default");
    let mut loader = Loader::new(&[], None, environment());
    assert!(loader.poll_need().is_some());
    loader.handle_supply(Supply::Unreadable("permission denied".into()));
    assert_eq!(user_of(&loader.finish().unwrap(), "a"), "me default");
}

#[test]
fn a_file_given_is_the_only_one_and_must_be_there() {
    let files = [("/f", "User f"), ("/etc/ssh/ssh_config", "User system")];
    assert_eq!(
        user_of(&load(&[], Some("/f"), &files).unwrap(), "a"),
        "f /f:1"
    );
    assert_eq!(
        user_of(&load(&[], Some("None"), &files).unwrap(), "a"),
        "me default"
    );
    assert_eq!(
        load(&[], Some("/g"), &files).unwrap_err().to_string(),
        "cannot read the configuration file /g: no such file"
    );
}

#[test]
fn a_file_that_others_can_change_is_refused() {
    let mut loader = Loader::new(&[], None, environment());
    assert!(loader.poll_need().is_some());
    loader.handle_supply(Supply::BadPermissions);
    assert!(matches!(loader.finish(), Err(LoadError::Unreadable { .. })));

    let mut loader = Loader::new(&[], Some("/f"), environment());
    assert!(loader.poll_need().is_some());
    loader.handle_supply(Supply::Content(b"\nInclude /x*\n".to_vec()));
    assert_eq!(
        loader.poll_need(),
        Some(Need::Glob {
            pattern: "/x*".into()
        })
    );
    loader.handle_supply(Supply::Paths(vec![
        "/x1".into(),
        "/x2".into(),
        "/x3".into(),
    ]));
    for supply in [
        Supply::BadPermissions,
        Supply::Unreadable("it is a directory".into()),
        Supply::Absent,
    ] {
        let need = loader.poll_need();
        assert!(
            matches!(
                need,
                Some(Need::File {
                    check_permissions: true,
                    ..
                })
            ),
            "{need:?}"
        );
        loader.handle_supply(supply);
    }
    let expected = [
        "/f:2: others can change /x1; run chmod go-w on it, and chown if it is not yours",
        "/f:2: cannot read the included file /x2: it is a directory",
        "/f:2: cannot read the included file /x3: no such file",
    ];
    assert_eq!(problems(loader.finish()), expected);
}

#[test]
fn includes_are_anchored() {
    let patterns = |user: bool, line: &str| {
        let root = Root {
            path: "/f".into(),
            user,
            required: true,
            check_permissions: false,
        };
        let mut loader = Loader::with_roots(&[], vec![root], environment());
        assert!(loader.poll_need().is_some());
        loader.handle_supply(Supply::Content(line.into()));
        let mut patterns = Vec::new();
        while let Some(need) = loader.poll_need() {
            match need {
                Need::Glob { pattern } => patterns.push(pattern),
                Need::File { .. } => panic!("{need:?}"),
            }
            loader.handle_supply(Supply::Absent);
        }
        (patterns, problems(loader.finish()))
    };
    let line = "Include config.d/*  /abs \"${DIR}/%u\"";
    let expected = ["/home/me/.ssh/config.d/*", "/abs", "/home/me/.ssh/conf/me"];
    assert_eq!(
        patterns(true, line),
        (expected.map(String::from).to_vec(), vec![])
    );
    let expected = ["/etc/ssh/config.d/*", "/abs", "/etc/ssh/conf/me"];
    assert_eq!(
        patterns(false, line),
        (expected.map(String::from).to_vec(), vec![])
    );
    assert_eq!(patterns(true, "Include ~/x").0, ["/home/me/x"]);
    assert_eq!(
        patterns(false, "Include ~/x").1,
        ["/f:1: the system's configuration cannot include ~/x"]
    );
    let unknown = "/f:1: \"%q\" has no meaning here";
    assert_eq!(patterns(true, "Include %q").1, [unknown]);
}

#[test]
fn included_lines_belong_to_the_block_around_them() {
    let files = [
        ("/f", "Host a\nInclude /inc\nPort 1\nHost *\nUser f\n"),
        ("/inc", "Port 2\nHost b\nUser never\nHost a\nUser inc\n"),
    ];
    let config = load(&[], Some("/f"), &files).unwrap();
    assert_eq!(user_of(&config, "a"), "inc /inc:5");
    assert_eq!(user_of(&config, "b"), "f /f:5");
    let port = |host| {
        let resolved = config
            .resolve(
                &Query {
                    host,
                    ..Query::default()
                },
                &Answers::default(),
            )
            .unwrap();
        resolved.connection.port.origin.to_string()
    };
    assert_eq!((port("a"), port("b")), ("/inc:1".into(), "default".into()));
}

#[test]
fn includes_end_at_a_depth_and_at_a_number() {
    let deep = load(&[], Some("/f"), &[("/f", "Include /f\n")]);
    assert_eq!(
        problems(deep),
        ["/f:1: too many includes: at most 16 deep and 10000 files in all"]
    );
    let names: Vec<String> = (1..=16).map(|depth| format!("/f{depth}")).collect();
    let contents: Vec<String> = (2..=17)
        .map(|depth| format!("Include /f{depth}\nUser u{depth}\n"))
        .collect();
    let mut files: Vec<(&str, &str)> = names
        .iter()
        .map(String::as_str)
        .zip(contents.iter().map(String::as_str))
        .collect();
    files.push(("/f", "Include /f1"));
    // A glob of this test finds what begins with the pattern: "/f1" finds ten files more, none of
    // them too deep.
    assert!(load(&[], Some("/f2"), &files).is_ok());

    let many = "Include /inc\n".repeat(MAX_FILES);
    let files = [("/f", many.as_str()), ("/inc", "# nothing\n")];
    assert_eq!(problems(load(&[], Some("/f"), &files)).len(), 1);
    let many = "Include /inc\n".repeat(MAX_FILES - 1);
    assert!(load(&[], Some("/f"), &[("/f", many.as_str()), files[1]]).is_ok());
}

#[test]
fn all_that_is_wrong_is_told_at_once() {
    let content = "Port x\nHost a\n  Frob 1\nMatch localnetwork x\nUser\nPort 22\n";
    let found = problems(load(
        &["Port=0", "Match all"],
        Some("/f"),
        &[("/f", content)],
    ));
    let expected = [
        "command line: bad port \"0\": give a number from 1 to 65535",
        "command line: match is not supported as an option",
        "/f:1: bad port \"x\": give a number from 1 to 65535",
        "/f:3: bad configuration option \"frob\" (IgnoreUnknown can name it)",
        "/f:4: invalid network \"x\"",
        "/f:5: no argument after the keyword user",
    ];
    assert_eq!(found, expected);
}

#[test]
fn comments_and_blocks_that_do_not_hold_need_not_be_utf_8() {
    let read = |content: &[u8]| {
        let mut loader = Loader::new(&[], Some("/f"), environment());
        assert!(loader.poll_need().is_some());
        loader.handle_supply(Supply::Content(content.to_vec()));
        loader.finish()
    };
    let expected = [
        "/f:2: the line is not UTF-8",
        "/f:3: the line contains a NUL character",
    ];
    let bad = b" # \xff\nHost \xff\nUser a\0b\n";
    assert_eq!(problems(read(bad)), expected);
    let config = read(
        b"Port 22 # B\xfcro\nHost a b # \xfc\nUser u # '\xfc\nUser '#' # \xfc\n\
          VersionAddendum x # \xfc\nHost b\nCompression \xfc\n",
    )
    .unwrap();
    assert_eq!(user_of(&config, "a"), "u /f:3");
    let resolve = |config: &Config, host| {
        let query = Query {
            host,
            ..Query::default()
        };
        let refused = config.resolve(&query, &Answers::default()).unwrap_err();
        refused.to_string()
    };
    assert_eq!(resolve(&config, "b"), "/f:7: the line is not UTF-8");
    // What ssh hands to a shell has no comments.
    let config = read(b"ProxyCommand a # \xfc\n").unwrap();
    assert_eq!(resolve(&config, "a"), "/f:1: the line is not UTF-8");
}

#[test]
fn unknown_keywords_may_be_ignored() {
    let config = |content: &str| load(&[], Some("/f"), &[("/f", content)]);
    assert!(config("IgnoreUnknown frob*\nFROBnicate x\n").is_ok());
    assert_eq!(problems(config("Frob x\nIgnoreUnknown frob\n")).len(), 1);
    assert_eq!(problems(config("IgnoreUnknown frob\nFrob \"x\n")).len(), 1);
    // Whether it holds depends on the host.
    let config = config("Host a\nIgnoreUnknown frob\nHost *\nFrob x\n").unwrap();
    assert!(
        config
            .resolve(
                &Query {
                    host: "a",
                    ..Query::default()
                },
                &Answers::default()
            )
            .is_ok()
    );
    let error = config
        .resolve(
            &Query {
                host: "b",
                ..Query::default()
            },
            &Answers::default(),
        )
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "/f:4: bad configuration option \"frob\" (IgnoreUnknown can name it)"
    );
}

#[test]
fn what_is_not_supplied_is_absent() {
    let loader = Loader::new(&["User=o".into()], None, environment());
    assert_eq!(user_of(&loader.finish().unwrap(), "a"), "o command line");
}
