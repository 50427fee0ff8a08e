//! What is asked while a host is resolved, and what lines do to each other.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::{Environment, IncludeRequest, Loader, Lookup, Need, Question, Supply};

fn environment() -> Environment {
    Environment {
        local_user: "me".into(),
        home: "/home/me".into(),
        ..Environment::default()
    }
}

/// Loads files given by path and content, of which the first is read by itself.
fn load(mut loader: Loader, files: &[(&str, &str)]) -> Config {
    while let Some(need) = loader.poll_need() {
        let content = |path: &str| files.iter().find(|file| file.0 == path).map(|file| file.1);
        loader.handle_supply(match need {
            Need::File { path, .. } => {
                content(&path).map_or(Supply::Absent, |text| Supply::Content(text.into()))
            }
            Need::Glob { pattern } => match content(&pattern) {
                Some(_) => Supply::Paths(vec![pattern]),
                None => Supply::Paths(Vec::new()),
            },
        });
    }
    loader.finish().unwrap()
}

fn config(files: &[(&str, &str)]) -> Config {
    load(Loader::new(&[], Some(files[0].0), environment()), files)
}

/// Resolves, answering what is asked; with the questions, in order.
fn resolve(
    files: &[(&str, &str)],
    query: &Query<'_>,
) -> (Result<Resolved, ResolveError>, Vec<String>) {
    let config = config(files);
    let mut answers = Answers::default();
    let mut asked = Vec::new();
    loop {
        match config.resolve(query, &answers) {
            Ok(resolved) => return (Ok(resolved), asked),
            Err(Unresolved::Refused(error)) => return (Err(error), asked),
            Err(Unresolved::Asks(question)) => {
                asked.push(question.to_string());
                answer(question, files, &mut answers);
            }
        }
    }
}

/// Commands succeed if they are "true", "web.example." has an address, and only "you" a home.
fn answer(question: Question, files: &[(&str, &str)], answers: &mut Answers) {
    match question {
        Question::Exec { command } => {
            let status = i32::from(command != "true");
            answers.exited(command, Some(status));
        }
        Question::LocalAddresses => answers.local_addresses(vec!["127.0.0.1".parse().unwrap()]),
        Question::Lookup { name, family } => {
            let lookup = match name.as_str() {
                "web.example." => Lookup::Found {
                    canonical_name: None,
                },
                _ => Lookup::NotFound,
            };
            answers.looked_up(name, family, lookup);
        }
        Question::Home { user } => {
            let home = (user == "you").then(|| "/home/you".to_string());
            answers.home(user, home);
        }
        Question::Include(request) => {
            let config = load(request.loader(environment()), files);
            answers.included(request, Ok(config));
        }
    }
}

fn query(host: &str) -> Query<'_> {
    Query {
        host,
        ..Query::default()
    }
}

fn user(files: &[(&str, &str)], host: &str) -> (String, Vec<String>) {
    let (resolved, asked) = resolve(files, &query(host));
    let user = resolved.unwrap().connection.user;
    (format!("{} {}", user.value, user.origin), asked)
}

#[test]
fn a_question_is_asked_once_and_only_if_it_matters() {
    let file = "Match exec false\nUser a\nMatch host x exec other\nUser b\n\
                Match exec true\nUser c\nMatch final exec true\nPort 7\n";
    let (user, asked) = user(&[("/f", file)], "h");
    assert_eq!(user, "c /f:6");
    let expected = [
        "what does \"false\" exit with?",
        "what does \"true\" exit with?",
    ];
    assert_eq!(asked, expected);
}

#[test]
fn no_name_becomes_a_command_by_match_exec() {
    for (set, token) in [
        ("HostName $(b)", "%h"),
        // Without HostKeyAlias it is the host's name.
        ("HostName `$(b)`", "%k"),
        ("HostKeyAlias a;b", "%k"),
        ("User a|b", "%r"),
    ] {
        let asks = format!("{set}\nMatch exec \"true {token}\"\nPort 7\n");
        let (resolved, asked) = resolve(&[("/f", &asks)], &query("h"));
        let error = resolved.unwrap_err().to_string();
        assert!(error.contains("/f:2") && error.contains("shell"), "{error}");
        assert!(asked.is_empty(), "{asked:?}");
        let silent = format!("{set}\nMatch exec \"true %%{token}\"\n").replace(token, "x");
        let (_, asked) = resolve(&[("/f", &silent)], &query("h"));
        assert_eq!(asked, ["what does \"true %x\" exit with?"]);
    }
}

#[test]
fn a_completed_name_is_judged_by_a_second_pass() {
    let file = "CanonicalizeHostname yes\nCanonicalDomains example\n\
                Host web\nUser short\nPort 1\nHost web.example\nUser long\nHostKeyAlias a\n";
    let (resolved, asked) = resolve(&[("/f", file)], &query("web"));
    let resolved = resolved.unwrap();
    let connection = &resolved.connection;
    assert_eq!(connection.host_name.value, "web.example");
    assert_eq!(connection.host_name.origin.to_string(), "/f:1");
    assert_eq!(connection.user.value, "short");
    assert_eq!(
        resolved
            .host_keys
            .host_key_alias
            .unwrap()
            .origin
            .to_string(),
        "/f:8"
    );
    assert_eq!(asked, ["does web.example. have an address?"]);
}

#[test]
fn files_can_be_included_by_host() {
    let files = [
        (
            "/f",
            "Host web*\nInclude /inc/%h /inc/%n-%p\nHost *\nUser last\n",
        ),
        (
            "/inc/web1",
            "Frob 1\nHost web2\nUser never\nHost web1\nUser inc\n",
        ),
    ];
    let ignoring = format!("IgnoreUnknown frob\n{}", files[0].1);
    let ignoring = [("/f", ignoring.as_str()), files[1]];
    assert_eq!(user(&ignoring, "web1").0, "inc /inc/web1:5");
    assert_eq!(user(&ignoring, "web2").0, "last /f:5");
    let (other, asked) = user(&files, "db");
    assert_eq!((other.as_str(), asked.len()), ("last /f:4", 0));
    let (refused, asked) = resolve(&files, &query("web1"));
    assert!(
        refused
            .unwrap_err()
            .to_string()
            .starts_with("/inc/web1:1: ")
    );
    assert_eq!(
        asked,
        ["what is in /inc/web1?", "what is in /inc/web1-22?"][..1].to_vec()
    );
}

#[test]
fn what_is_wrong_in_a_file_for_one_host_is_told() {
    let config = config(&[("/f", "Include %h\n")]);
    let mut answers = Answers::default();
    let Err(Unresolved::Asks(Question::Include(request))) = config.resolve(&query("h"), &answers)
    else {
        panic!("the file is not asked for");
    };
    assert_eq!(request.pattern, "/home/me/.ssh/h");
    let mut loader = IncludeRequest::clone(&request).loader(environment());
    assert!(matches!(loader.poll_need(), Some(Need::Glob { .. })));
    loader.handle_supply(Supply::Paths(vec!["/h".into()]));
    loader.handle_supply(Supply::Content(b"Port x\n".to_vec()));
    answers.included(request, loader.finish());
    let refused = config.resolve(&query("h"), &answers).unwrap_err();
    assert!(
        refused.to_string().starts_with("/h:1: bad port"),
        "{refused}"
    );
}

#[test]
fn other_users_homes_are_asked_for() {
    let file = "IdentityFile ~you/key\nIdentityAgent ~you/agent\n";
    let (resolved, asked) = resolve(&[("/f", file)], &query("h"));
    let files = resolved.unwrap().authentication.identity_files;
    assert_eq!(files[0].value, "/home/you/key");
    assert_eq!(asked, ["where is the home directory of you?"]);
    let (refused, _) = resolve(&[("/f", "ControlPath ~nobody/x\n")], &query("h"));
    let why = "/f:1: \"~nobody/x\": there is no user \"nobody\"";
    assert_eq!(refused.unwrap_err().to_string(), why);
}

#[test]
fn what_does_not_go_together_is_refused() {
    let command = Query {
        command: Some("true"),
        ..query("h")
    };
    for (file, query, refused) in [
        ("RemoteCommand true\n", command, true),
        ("RemoteCommand none\n", command, false),
        ("RemoteCommand true\n", query("h"), false),
        ("ForkAfterAuthentication yes\n", query("h"), true),
        ("ForkAfterAuthentication yes\n", command, false),
        (
            "ForkAfterAuthentication yes\nRemoteCommand true\n",
            query("h"),
            false,
        ),
        (
            "ForkAfterAuthentication yes\nSessionType none\n",
            query("h"),
            false,
        ),
        ("ProxyCommand -\nProxyUseFdpass yes\n", query("h"), true),
        ("ProxyCommand -\n", query("h"), false),
        ("SessionType subsystem\n", query("h"), false),
    ] {
        let (resolved, _) = resolve(&[("/f", file)], &query);
        assert_eq!(resolved.is_err(), refused, "{file}");
    }
    for (command, refused) in [(None, true), (Some("sftp"), false)] {
        let options = ["SessionType=subsystem".to_string()];
        let config = load(Loader::new(&options, Some("none"), environment()), &[]);
        let query = Query {
            command,
            ..query("h")
        };
        let resolved = config.resolve(&query, &Answers::default());
        assert_eq!(resolved.is_err(), refused);
    }
}

#[test]
fn updating_host_keys_depends_on_other_lines() {
    use crate::YesNoAsk::{Ask, No, Yes};
    for (file, expected) in [
        ("", Yes),
        ("UserKnownHostsFile ~/.ssh/known_hosts\n", Yes),
        ("UserKnownHostsFile /kh\n", No),
        ("VerifyHostKeyDNS ask\n", No),
        ("UserKnownHostsFile /kh\nUpdateHostKeys yes\n", Yes),
        ("UpdateHostKeys ask\n", Ask),
        ("UpdateHostKeys ask\nRemoteCommand true\n", No),
        ("UpdateHostKeys ask\nRequestTTY no\n", No),
        ("UpdateHostKeys ask\nLogLevel error\n", No),
        ("UpdateHostKeys ask\nControlPath /s\n", Ask),
        (
            "UpdateHostKeys ask\nControlPath /s\nControlPersist yes\n",
            No,
        ),
    ] {
        let (resolved, _) = resolve(&[("/f", file)], &query("h"));
        let update = resolved.unwrap().host_keys.update_host_keys.value;
        assert_eq!(update, expected, "{file}");
    }
}

#[test]
fn unsupported_keywords_and_unset_variables_are_warned_of() {
    let file = "Protocol 2\nHost x\nAFSTokenPassing yes\nInclude /${UNSET}/x\n";
    let config = config(&[("/f", file)]);
    let warnings: Vec<String> = config.warnings().iter().map(ToString::to_string).collect();
    let expected = [
        "/f:3: ssh does not support the option \"afstokenpassing\" any more",
        "/f:4: the environment variable \"UNSET\" is not set: /${UNSET}/x is not included",
    ];
    assert_eq!(warnings, expected);
}

#[test]
fn some_keywords_have_rules_of_their_own() {
    let file = "Host x\nStreamLocalBindMask 0111\nSyslogFacility auth\nHost *\n\
                SyslogFacility daemon\nStreamLocalBindMask 0117\nHost x\nStreamLocalBindMask 0\n\
                Host *\nLocalForward 1 a:2\nLocalForward 1 a:2\nDynamicForward 1\nTunnel yes\n";
    let others = |file: &str| {
        let (resolved, _) = resolve(&[("/f", file)], &query("h"));
        let resolved = resolved.unwrap();
        let others = resolved.others.iter();
        others
            .map(|other| {
                format!(
                    "{} {} {}",
                    other.keyword,
                    other.arguments.join(" "),
                    other.origin
                )
            })
            .collect::<Vec<_>>()
    };
    let expected = [
        "syslogfacility AUTH /f:3",
        "streamlocalbindmask 00 /f:8",
        "localforward 1 [a]:2 /f:10",
        "dynamicforward 1 /f:12",
        "tunnel point-to-point /f:13",
    ];
    assert_eq!(others(file), expected);
    let cleared = others(&format!("{file}ClearAllForwardings yes\n"));
    assert_eq!(cleared.len(), 3, "{cleared:?}");
}

#[test]
fn jump_hosts_of_options_must_be_harmless() {
    for (jump, good) in [
        ("u@j", true),
        ("u;v@j", false),
        ("j$x", false),
        ("a,b|c", false),
    ] {
        let options = [format!("ProxyJump={jump}")];
        let loader = Loader::new(&options, Some("none"), environment());
        assert_eq!(loader.finish().is_ok(), good, "{jump}");
    }
}

#[test]
fn too_many_files_are_wrong_only_where_they_count() {
    let many = "UserKnownHostsFile".to_string() + &" /a".repeat(33);
    for (before, refused) in [
        ("", true),
        ("Host x\n", false),
        ("UserKnownHostsFile /b\n", false),
    ] {
        let (resolved, _) = resolve(&[("/f", &format!("{before}{many}\n"))], &query("h"));
        assert_eq!(resolved.is_err(), refused, "{before}");
    }
    let fits = "GlobalKnownHostsFile".to_string() + &" /a".repeat(32);
    assert!(resolve(&[("/f", &fits)], &query("h")).0.is_ok());
}

/// Parts of lines, put together at random.
const PARTS: &[&str] = &[
    "Host ",
    "Match ",
    "Include ",
    "exec ",
    "host ",
    "tagged ",
    "localnetwork ",
    "final",
    "all",
    "10.0.0.0/8",
    "HostName ",
    "User ",
    "ProxyJump ",
    "ProxyCommand ",
    "LocalForward ",
    "RemoteForward ",
    "DynamicForward ",
    "CanonicalizeHostname ",
    "CanonicalDomains ",
    "CanonicalizePermittedCNAMEs ",
    "IPQoS ",
    "EscapeChar ",
    "AddKeysToAgent ",
    "TunnelDevice ",
    "StreamLocalBindMask ",
    "ControlPath ",
    "SetEnv ",
    "RekeyLimit ",
    "Ciphers ",
    "IgnoreUnknown ",
    "yes",
    "none",
    "h",
    "*",
    "!",
    "%h",
    "%C",
    "%",
    "${",
    "}",
    "~",
    "~you/",
    "/f",
    "=",
    ":",
    ",",
    "[",
    "]",
    "\"",
    "'",
    "\\",
    "#",
    "1",
    "0x",
    "-",
    "+",
    "@",
    ".",
    " ",
    "\t",
    "\n",
    "\n",
    "\n",
    "ä",
];

proptest::proptest! {
    #[test]
    fn any_configuration_is_resolved_or_refused(
        parts in proptest::collection::vec(proptest::sample::select(PARTS), 0..60),
    ) {
        let file = parts.concat();
        let mut loader = Loader::new(&[], Some("/f"), environment());
        for _ in 0..100 {
            match loader.poll_need() {
                Some(Need::File { path, .. }) if path == "/f" => {
                    loader.handle_supply(Supply::Content(file.clone().into()));
                }
                Some(_) => loader.handle_supply(Supply::Absent),
                None => break,
            }
        }
        let Ok(config) = loader.finish() else {
            return Ok(());
        };
        let mut answers = Answers::default();
        while let Err(Unresolved::Asks(question)) = config.resolve(&query("h"), &answers) {
            answer(question, &[], &mut answers);
        }
        if let Ok(resolved) = config.resolve(&query("h"), &answers) {
            proptest::prop_assert!(resolved.dump(&crate::Implemented::default()).len() > 70);
        }
    }
}
