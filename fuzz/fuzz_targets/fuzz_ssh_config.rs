//! Any configuration: loading and resolving end without a panic, say the same twice, and say why they refuse.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sshoal_ssh_config::{
    Answers, Config, Environment, Implemented, LoadError, Loader, Lookup, Need, Origin, Query,
    Question, ResolveError, Resolved, Supply, Unresolved,
};

/// What bytes above 127 stand for, so that the fuzzer need not find them letter by letter.
const WORDS: [&str; 80] = [
    "Host ",
    "Match ",
    "Include ",
    "/f\n",
    "host ",
    "originalhost ",
    "user ",
    "localuser ",
    "all",
    "final",
    "canonical",
    "exec ",
    "tagged ",
    "localnetwork ",
    "sessiontype ",
    "command ",
    "10.0.0.0/8",
    "LocalForward ",
    "DynamicForward ",
    "CanonicalizeHostname ",
    "CanonicalDomains ",
    "CanonicalizePermittedCNAMEs ",
    "IPQoS ",
    "EscapeChar ",
    "AddKeysToAgent ",
    "TunnelDevice ",
    "Tag ",
    "HostName ",
    "User ",
    "Port ",
    "ProxyJump ",
    "ProxyCommand ",
    "IdentityFile ",
    "CertificateFile ",
    "IdentityAgent ",
    "UserKnownHostsFile ",
    "GlobalKnownHostsFile ",
    "HostKeyAlias ",
    "ConnectTimeout ",
    "RekeyLimit ",
    "Ciphers ",
    "HostKeyAlgorithms ",
    "SendEnv ",
    "SetEnv ",
    "RemoteCommand ",
    "ForwardAgent ",
    "LogLevel ",
    "IgnoreUnknown ",
    "RefuseConnection ",
    "LocalForward ",
    "StrictHostKeyChecking ",
    "BatchMode ",
    "yes",
    "no",
    "none",
    "h",
    "*",
    "!h",
    "%h",
    "%C",
    "%",
    "${HOME}",
    "${",
    "~/",
    "=",
    "\"",
    "\\",
    "'",
    "#",
    ",",
    "1m",
    "1.5G",
    "22",
    "u@j:22",
    "[::1]",
    "+",
    "-",
    "^",
    " ",
    "\n",
];

/// More supplies than any small input can need: a loader that asks on and on has a loop.
const MAX_SUPPLIES: usize = 20_000;

fuzz_target!(|bytes: &[u8]| {
    let mut text = Vec::new();
    for &byte in bytes {
        match byte {
            0..128 => text.push(byte),
            word => text.extend(WORDS[usize::from(word) % WORDS.len()].bytes()),
        }
    }
    // The first line is an option, the rest is the file.
    let mut lines = text.splitn(2, |&c| c == b'\n');
    let option = String::from_utf8_lossy(lines.next().unwrap_or_default()).into_owned();
    let file = lines.next().unwrap_or_default();

    let config = match load(&option, file) {
        Ok(config) => config,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    for query in [
        Query {
            host: "h",
            ..Query::default()
        },
        Query {
            host: "H.example.com",
            user: Some("u"),
            login: Some("l"),
            port: Some(7),
            command: Some("c"),
            tag: Some("t"),
            options: None,
        },
    ] {
        let resolved = match resolve(&config, &query) {
            Ok(resolved) => resolved,
            Err(error) => {
                assert!(!error.to_string().is_empty());
                continue;
            }
        };
        assert_eq!(
            format!("{resolved:?}"),
            format!(
                "{:?}",
                resolve(&config, &query).expect("it was resolved before")
            )
        );
        assert!(resolved.dump(&Implemented::default()).len() > 70);
        if let Some(port) = query.port {
            assert_eq!(
                (
                    resolved.connection.port.value,
                    resolved.connection.port.origin
                ),
                (port, Origin::Query)
            );
        }
        for other in resolved.others {
            if let Origin::File { line, .. } = other.origin {
                assert!((1..=file.len()).contains(&line));
            }
        }
        let _ = resolved.session.sends("LANG");
        if let Some(ciphers) = resolved.algorithms.ciphers {
            let _ = ciphers.value.apply(&["a", "b"], &["a", "b", "c"]);
            let _ = ciphers.value.unknown(&["a"]);
        }
    }
});

/// Answers all questions: there is no file, no name, no user, and every command succeeds.
fn resolve(config: &Config, query: &Query<'_>) -> Result<Resolved, ResolveError> {
    let mut answers = Answers::default();
    for _ in 0..MAX_SUPPLIES {
        match config.resolve(query, &answers) {
            Ok(resolved) => return Ok(resolved),
            Err(Unresolved::Refused(error)) => return Err(error),
            Err(Unresolved::Asks(question)) => match question {
                Question::Exec { command } => answers.exited(command, Some(0)),
                Question::LocalAddresses => answers.local_addresses(Vec::new()),
                Question::Lookup { name, family } => {
                    answers.looked_up(name, family, Lookup::NotFound);
                }
                Question::Home { user } => answers.home(user, None),
                Question::Include(request) => {
                    let loader = request.loader(environment());
                    answers.included(request, loader.finish());
                }
            },
        }
    }
    panic!("the resolver never has enough");
}

fn environment() -> Environment {
    Environment {
        local_user: "me".into(),
        home: "/home/me".into(),
        local_host: "here".into(),
        uid: 1000,
        variables: [("HOME".to_string(), "/home/me".to_string())].into(),
    }
}

fn load(option: &str, file: &[u8]) -> Result<Config, LoadError> {
    let mut loader = Loader::new(&[option.into()], Some("/f"), environment());
    for _ in 0..MAX_SUPPLIES {
        let Some(need) = loader.poll_need() else {
            return loader.finish();
        };
        assert_eq!(loader.poll_need().as_ref(), Some(&need));
        loader.handle_supply(match need {
            Need::File { path, .. } if path == "/f" => Supply::Content(file.into()),
            Need::File { .. } => Supply::Absent,
            Need::Glob { pattern } => Supply::Paths(vec![pattern]),
        });
    }
    panic!("the loader never has enough");
}
