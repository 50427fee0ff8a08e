#![allow(clippy::unwrap_used)]

use std::time::Duration;

use super::*;
use crate::{
    Answers, Environment, ForwardAgent, IdentityAgent, Loader, RekeyLimit, Supply, Unresolved,
};

fn config(options: &[&str], content: &str) -> Config {
    let environment = Environment {
        local_user: "me".into(),
        home: "/home/me".into(),
        local_host: "here.example.com".into(),
        uid: 1000,
        variables: [("DIR".to_string(), "/dir".to_string())].into(),
    };
    let options: Vec<String> = options.iter().map(ToString::to_string).collect();
    let mut loader = Loader::new(&options, Some("/f"), environment);
    assert!(loader.poll_need().is_some());
    loader.handle_supply(Supply::Content(content.into()));
    loader.finish().unwrap()
}

fn query(host: &str) -> Query<'_> {
    Query {
        host,
        ..Query::default()
    }
}

fn resolve(content: &str) -> Resolved {
    config(&[], content)
        .resolve(&query("h"), &Answers::default())
        .unwrap()
}

fn refusal(content: &str) -> String {
    config(&[], content)
        .resolve(&query("h"), &Answers::default())
        .unwrap_err()
        .to_string()
}

/// Values with their origins, as "value @ origin".
fn shown<T: std::fmt::Debug>(setting: &Setting<T>) -> String {
    format!("{:?} @ {}", setting.value, setting.origin)
}

#[test]
fn without_a_line_all_is_default() {
    let resolved = resolve("");
    let connection = &resolved.connection;
    assert_eq!(shown(&connection.host_name), "\"h\" @ given with the host");
    assert_eq!(shown(&connection.user), "\"me\" @ default");
    assert_eq!(shown(&connection.port), "22 @ default");
    assert_eq!(shown(&connection.proxy), "None @ default");
    assert!(connection.connect_timeout.is_none());
    let identity_files: Vec<_> = resolved
        .authentication
        .identity_files
        .iter()
        .map(shown)
        .collect();
    assert_eq!(identity_files[0], "\"/home/me/.ssh/id_rsa\" @ default");
    assert_eq!(identity_files.len(), 5);
    assert_eq!(
        shown(&resolved.authentication.identity_agent),
        "Variable(\"SSH_AUTH_SOCK\") @ default"
    );
    assert_eq!(
        shown(&resolved.host_keys.user_known_hosts_files),
        "[\"/home/me/.ssh/known_hosts\", \"/home/me/.ssh/known_hosts2\"] @ default"
    );
    assert!(resolved.algorithms.ciphers.is_none());
    assert!(resolved.others.is_empty());
    assert!(!connection.port.is_configured());
}

#[test]
fn every_value_says_where_it_comes_from() {
    let content = "Host h\n  Port 7\n  User f\n\nIdentityFile ~/a\nIdentityFile /%h/%r/%p/%i\n";
    let config = config(&["User=o", "SendEnv=A"], content);
    let resolved = config.resolve(&query("h"), &Answers::default()).unwrap();
    assert_eq!(shown(&resolved.connection.port), "7 @ /f:2");
    assert_eq!(shown(&resolved.connection.user), "\"o\" @ command line");
    let identity_files: Vec<_> = resolved
        .authentication
        .identity_files
        .iter()
        .map(shown)
        .collect();
    assert_eq!(
        identity_files,
        ["\"/home/me/a\" @ /f:5", "\"/h/o/7/1000\" @ /f:6"]
    );
    assert_eq!(shown(&resolved.session.send_env[0]), "\"A\" @ command line");
    assert!(resolved.connection.port.is_configured());
}

#[test]
fn what_is_given_with_the_host_beats_lines_and_options() {
    let config = config(&["User=o", "Port=1"], "Match user q\nCompression yes\n");
    let query = Query {
        host: "h",
        user: Some("q"),
        port: Some(2),
        ..Query::default()
    };
    let resolved = config.resolve(&query, &Answers::default()).unwrap();
    assert_eq!(
        shown(&resolved.connection.user),
        "\"q\" @ given with the host"
    );
    assert_eq!(shown(&resolved.connection.port), "2 @ given with the host");
    assert_eq!(shown(&resolved.connection.compression), "true @ /f:2");
}

#[test]
fn the_user_of_the_command_line_is_a_name_as_it_stands() {
    let config = config(&["User=o"], "Match user a*b\nCompression yes\n");
    for name in ["a b", "a\\b", "a%b", "a$b", "a#b"] {
        let query = Query {
            login: Some(name),
            ..query("h")
        };
        let resolved = config.resolve(&query, &Answers::default()).unwrap();
        let user = &resolved.connection.user;
        assert_eq!(
            (user.value.as_str(), &user.origin),
            (name, &Origin::CommandLine)
        );
        assert!(resolved.connection.compression.value, "{name}");
        let own = Query {
            user: Some("own"),
            ..query
        };
        let resolved = config.resolve(&own, &Answers::default()).unwrap();
        assert_eq!(resolved.connection.user.value, "own");
    }
    for name in ["", "-a", "a;b", "a -b", "a\\"] {
        let query = Query {
            login: Some(name),
            ..query("h")
        };
        let refused = ResolveError::UserName(name.into());
        assert_eq!(
            config.resolve(&query, &Answers::default()).unwrap_err(),
            Unresolved::Refused(refused)
        );
    }
}

#[test]
fn host_and_user_must_be_harmless() {
    let config = config(&[], "");
    for host in ["", "-h", "a b", "a;b", "a$b", "a\nb", "a,b", "a\tb", "`a`"] {
        let refused = config.resolve(&query(host), &Answers::default());
        assert_eq!(
            refused.unwrap_err(),
            Unresolved::Refused(ResolveError::HostName(host.into())),
            "{host}"
        );
    }
    for host in ["::1", "fe80::1%eth0", "a_b", "höst", "a/b"] {
        assert!(
            config.resolve(&query(host), &Answers::default()).is_ok(),
            "{host}"
        );
    }
    for user in ["-u", "a;b", "a -b", "a\\", "a\nb", "(a)"] {
        let refused = config.resolve(
            &Query {
                user: Some(user),
                ..query("h")
            },
            &Answers::default(),
        );
        assert_eq!(
            refused.unwrap_err(),
            Unresolved::Refused(ResolveError::UserName(user.into())),
            "{user}"
        );
    }
    for user in ["DOMAIN\\u", "a b", "u@realm", "$u"] {
        assert!(
            config
                .resolve(
                    &Query {
                        user: Some(user),
                        ..query("h")
                    },
                    &Answers::default()
                )
                .is_ok(),
            "{user}"
        );
    }
}

#[test]
fn a_user_may_have_tokens_of_what_is_known_before() {
    assert_eq!(
        shown(&resolve("User %h-%u\n").connection.user),
        "\"h-me\" @ /f:1"
    );
    assert_eq!(refusal("User %r\n"), "/f:1: \"%r\" has no meaning here");
    assert_eq!(refusal("User %C\n"), "/f:1: \"%C\" has no meaning here");
    // A literal is taken as it is, but not what tokens make of it.
    assert_eq!(
        shown(&resolve("User a;b\n").connection.user),
        "\"a;b\" @ /f:1"
    );
    let user = "\"a;h\" is not a user name: it is empty, begins with \"-\" or has shell characters";
    assert_eq!(refusal("User a;%h\n"), user);
}

#[test]
fn proxies_exclude_each_other() {
    let proxy = |content: &str| match resolve(content).connection.proxy.value {
        Proxy::None => "none".to_string(),
        Proxy::Command(command) => command,
        Proxy::Jump(hops) => hops
            .iter()
            .map(|hop| hop.host.as_str())
            .collect::<Vec<_>>()
            .join(","),
    };
    assert_eq!(proxy("ProxyJump a,b\nProxyCommand c\n"), "a,b");
    assert_eq!(proxy("ProxyCommand c\nProxyJump a\n"), "c");
    assert_eq!(proxy("ProxyCommand none\nProxyJump a\n"), "none");
    // From OpenSSH 10 on: "none" keeps later jumps away, not commands.
    assert_eq!(proxy("ProxyJump none\nProxyJump a\nProxyCommand c\n"), "c");
    assert_eq!(proxy("ProxyJump none\nProxyJump a\n"), "none");
    let jump = resolve("\nProxyJump a\n").connection.proxy.origin;
    assert_eq!(jump.to_string(), "/f:2");
}

#[test]
fn a_host_is_not_reached_through_itself() {
    let looped = "/f:1: h would be reached through itself; except it with \"Host h\" and \
                  \"ProxyJump none\"";
    assert_eq!(refusal("ProxyJump a,h\n"), looped);
    assert_eq!(refusal("ProxyJump me@h:22\n"), looped);
    for other in ["h,a", "h:23", "you@h"] {
        let _ = resolve(&format!("ProxyJump {other}\n"));
    }
}

#[test]
fn agents_are_none_a_variable_or_a_socket() {
    let agent = |line: &str| resolve(line).authentication.identity_agent.value;
    assert_eq!(agent("IdentityAgent none\n"), IdentityAgent::None);
    assert_eq!(
        agent("IdentityAgent SSH_AUTH_SOCK\n"),
        IdentityAgent::Variable("SSH_AUTH_SOCK".into())
    );
    assert_eq!(
        agent("IdentityAgent $MINE\n"),
        IdentityAgent::Variable("MINE".into())
    );
    assert_eq!(
        agent("IdentityAgent ${DIR}/%r\n"),
        IdentityAgent::Socket("/dir/me".into())
    );
    let forward = |content: &str| resolve(content).session.forward_agent.value;
    assert_eq!(
        forward("ForwardAgent no\nForwardAgent /a\n"),
        ForwardAgent::No
    );
    assert_eq!(
        forward("ForwardAgent yes\nForwardAgent ~/a\n"),
        ForwardAgent::Socket("/home/me/a".into())
    );
    assert_eq!(
        forward("ForwardAgent $MINE\n"),
        ForwardAgent::Variable("MINE".into())
    );
    assert_eq!(forward("ForwardAgent true\n"), ForwardAgent::Yes);
}

#[test]
fn none_is_no_file_and_doubles_are_one() {
    let content = "IdentityFile none\nIdentityFile ~/a\nIdentityFile /home/me/a\n\
                   UserKnownHostsFile NONE\nGlobalKnownHostsFile none\nCertificateFile /c\n";
    let resolved = resolve(content);
    let files: Vec<_> = resolved
        .authentication
        .identity_files
        .iter()
        .map(shown)
        .collect();
    assert_eq!(files, ["\"/home/me/a\" @ /f:2"]);
    assert!(resolved.host_keys.user_known_hosts_files.value.is_empty());
    assert!(resolved.host_keys.global_known_hosts_files.value.is_empty());
    assert!(
        resolve("IdentityFile None\n")
            .authentication
            .identity_files
            .is_empty()
    );
}

#[test]
fn too_many_keys_are_refused() {
    let lines = |count| {
        (0..count)
            .map(|n| format!("IdentityFile /{n}\n"))
            .collect::<String>()
    };
    assert_eq!(
        resolve(&lines(100)).authentication.identity_files.len(),
        100
    );
    assert_eq!(
        refusal(&lines(101)),
        "/f:101: more than 100 files for one host"
    );
}

#[test]
fn environment_variables_are_chosen_and_set() {
    let session =
        resolve("SendEnv LANG LC_* X\nSendEnv -X*\nSetEnv A=%h B=${DIR}\nSetEnv C=1\n").session;
    assert!(session.sends("LANG") && session.sends("LC_ALL"));
    assert!(!session.sends("X") && !session.sends("LANGUAGE") && !session.sends("lang"));
    let variables = [
        ("A".to_string(), "h".to_string()),
        ("B".to_string(), "/dir".to_string()),
    ];
    assert_eq!(session.set_env.value, variables);
}

#[test]
fn times_and_limits_have_units() {
    let resolved = resolve("ConnectTimeout 1m\nServerAliveInterval 5\nRekeyLimit 1G 1h\n");
    assert_eq!(
        resolved.connection.connect_timeout.unwrap().value,
        Duration::from_secs(60)
    );
    assert_eq!(
        resolved.connection.server_alive_interval.value,
        Duration::from_secs(5)
    );
    let limit = RekeyLimit {
        bytes: Some(1 << 30),
        interval: Some(Duration::from_secs(3600)),
    };
    assert_eq!(resolved.algorithms.rekey_limit.value, limit);
    assert!(
        resolve("ConnectTimeout 0\n")
            .connection
            .connect_timeout
            .is_none()
    );
    assert_eq!(
        resolve("RekeyLimit default none\n")
            .algorithms
            .rekey_limit
            .value,
        RekeyLimit::default()
    );
    assert_eq!(
        refusal("ConnectionAttempts 0\n"),
        "/f:1: ConnectionAttempts must be at least 1"
    );
}

#[test]
fn commands_keep_their_text_and_get_their_tokens() {
    let session = resolve("RemoteCommand echo %h '#' ${DIR}\n").session;
    assert_eq!(session.remote_command.unwrap().value, "echo h '#' ${DIR}");
    assert!(
        resolve("RemoteCommand None\n")
            .session
            .remote_command
            .is_none()
    );
}

#[test]
fn keywords_without_a_field_are_recorded() {
    let content = "GSSAPIAuthentication yes\nHost h\nGSSAPIAuthentication no\nLocalForward 1 a:2\n\
                   LocalForward 3 b:4\nHost x\nForwardX11 yes\nHost *\nControlPath ~/%C\n\
                   Protocol 2\nHostbasedAcceptedAlgorithms +ssh-rsa\nCanonicalizeMaxDots 2\n\
                   ForwardX11Timeout 1m\nCanonicalDomains a b\n";
    let shown: Vec<String> = resolve(content)
        .others
        .iter()
        .map(|other| {
            format!(
                "{} {} @ {}",
                other.keyword,
                other.arguments.join("|"),
                other.origin
            )
        })
        .collect();
    let expected = [
        "localforward 1|[a]:2 @ /f:4",
        "localforward 3|[b]:4 @ /f:5",
        "controlpath /home/me/1bd04cf14b430df7a36c8a3bbf02a0bf258ba631 @ /f:9",
        "canonicalizemaxdots 2 @ /f:12",
        "forwardx11timeout 60 @ /f:13",
        "canonicaldomains a|b @ /f:14",
    ];
    assert_eq!(shown, expected);
}

#[test]
fn a_connection_can_be_refused() {
    let content = "Host h\nRefuseConnection \"not today\"\n";
    assert_eq!(refusal(content), "/f:2: RefuseConnection: not today");
    assert!(
        config(&[], content)
            .resolve(&query("other"), &Answers::default())
            .is_ok()
    );
}

#[test]
fn values_that_cannot_be_expanded_name_their_lines() {
    for (content, why) in [
        (
            "HostName %p\n",
            "/f:1: HostName %p: only %h and %% have a meaning here",
        ),
        ("\nIdentityFile /%q\n", "/f:2: \"%q\" has no meaning here"),
        (
            "SetEnv A=${NO}\n",
            "/f:1: the environment variable \"NO\" is not set",
        ),
    ] {
        assert_eq!(refusal(content), why);
    }
}

#[test]
fn an_alias_is_looked_up_in_lowercase() {
    let host_keys = resolve("HostKeyAlias Alias\nUserKnownHostsFile /%k\n").host_keys;
    assert_eq!(
        shown(&host_keys.host_key_alias.unwrap()),
        "\"alias\" @ /f:1"
    );
    assert_eq!(host_keys.user_known_hosts_files.value, ["/alias"]);
}

#[test]
fn a_host_s_own_options_go_before_all_others() {
    let lines = "Host h\n    HostName a\n    Port 3\n    ForwardX11 yes\n";
    let config = config(&["Port=2", "User=u"], lines);
    let options = ["HostName=b", "Port=4", "IdentityFile=/k"].map(String::from);
    let options = config.host_options(&options).unwrap();
    let query = Query {
        options: Some(&options),
        ..query("h")
    };
    let resolved = config.resolve(&query, &Answers::default()).unwrap();
    let connection = &resolved.connection;
    assert_eq!(shown(&connection.host_name), "\"b\" @ given with the host");
    assert_eq!(shown(&connection.port), "4 @ given with the host");
    assert_eq!(shown(&connection.user), "\"u\" @ command line");
    let files = &resolved.authentication.identity_files;
    assert_eq!(
        files.iter().map(shown).collect::<Vec<_>>(),
        ["\"/k\" @ given with the host"]
    );
}

#[test]
fn a_host_s_own_options_are_read_once_though_the_files_are_read_twice() {
    let config = config(&[], "Match final\n    IdentityFile /last\n");
    let options = config
        .host_options(&["IdentityFile=/first".into()])
        .unwrap();
    let query = Query {
        options: Some(&options),
        ..query("h")
    };
    let resolved = config.resolve(&query, &Answers::default()).unwrap();
    let files = resolved.authentication.identity_files.into_iter();
    let files: Vec<String> = files.map(|file| file.value).collect();
    assert_eq!(files, ["/first", "/last"]);
}

#[test]
fn a_host_s_own_options_are_refused_as_such() {
    let config = config(&[], "");
    let refused = |option: &str| match config.host_options(&[option.to_string()]) {
        Err(error) => error.to_string(),
        Ok(options) => {
            let query = Query {
                options: Some(&options),
                ..query("h")
            };
            let resolved = config.resolve(&query, &Answers::default());
            resolved.unwrap_err().to_string()
        }
    };
    for option in ["Port=none", "NoSuchKeyword=1"] {
        let error = refused(option);
        assert!(error.starts_with("given with the host: "), "{error}");
    }
}
