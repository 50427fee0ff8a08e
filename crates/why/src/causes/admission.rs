//! Before sshd speaks, what it refuses, and the key by which it proves who it is.

use super::{Cause, Payer, Resource, of_openssh, version};
use crate::cost::Cost;
use crate::evidence::{Phase, Tier};
use crate::fix::{Fix, Place};
use crate::signs::{Answer, Case, Test, known, needed, proof, shape};
use crate::words;

/// As sshd refuses whom it has no room for.
const REFUSALS: &[&str] = &["exceeded maxstartups", "not allowed at this time"];

const PER_SOURCE_UNLIMITED: Test = Test::Sshd {
    keyword: "PerSourceMaxStartups",
    default: "none",
    is: &["none"],
};

pub(super) const CAUSES: &[Cause] = &[
    Cause {
        id: "per-source-startups",
        title: "sshd drops connections while others from the same address log in (PerSourceMaxStartups)",
        phases: &[Phase::Banner],
        tier: Tier::Client,
        payer: Payer::Everyone,
        resource: Resource::Programs,
        signs: &[
            known(Test::By(|case| refused(case, REFUSALS))),
            needed(Test::By(|case| since(case, (8, 5)))),
            needed(Test::Not(&PER_SOURCE_UNLIMITED)),
        ],
        cost: Cost::FailedLogins,
        fix: Fix::sshd("PerSourceMaxStartups 100"),
        source: "sshd_config(5), from OpenSSH 8.5; it refuses with the same words as MaxStartups",
    },
    Cause {
        id: "max-startups",
        title: "sshd drops connections while many others log in (MaxStartups)",
        phases: &[Phase::Banner],
        tier: Tier::Client,
        payer: Payer::Everyone,
        resource: Resource::Programs,
        signs: &[
            known(Test::By(|case| refused(case, REFUSALS))),
            proof(Test::By(dropped_by_max_startups)),
        ],
        cost: Cost::FailedLogins,
        fix: Fix::by_hand(
            Place::Host,
            "/etc/ssh/sshd_config, unless more is allowed there",
            "MaxStartups 100:30:500",
            "the former line, and systemctl reload ssh",
        ),
        source: "sshd_config(5): random drops from 10 unauthenticated connections on",
    },
    Cause {
        id: "source-penalties",
        title: "sshd refuses this address for a while (PerSourcePenalties)",
        phases: &[Phase::Banner],
        tier: Tier::Client,
        payer: Payer::Everyone,
        resource: Resource::Programs,
        signs: &[
            known(Test::By(|case| {
                refused(case, &["not allowed at this time"])
            })),
            needed(Test::By(|case| since(case, (9, 8)))),
        ],
        cost: Cost::FailedLogins,
        fix: Fix::by_hand(
            Place::Host,
            "/etc/ssh/sshd_config",
            "PerSourcePenaltyExemptList CIDR   (the network of this client)",
            "that line taken out again, and systemctl reload ssh",
        ),
        source: "sshd_config(5), from OpenSSH 9.8: 1 to 5 s a failure, enforced from 15 s on",
    },
    Cause {
        id: "tcp-wrappers",
        title: "hosts.allow or hosts.deny has host names, which sshd looks up (libwrap)",
        phases: &[Phase::Banner],
        tier: Tier::NoRoot,
        payer: Payer::Everyone,
        resource: Resource::Network,
        signs: &[
            needed(Test::By(|case| wrapped(case, "names", has_name))),
            needed(Test::Slow {
                fact: "host.getent_hosts.time",
                ms: 10,
            }),
            shape(Test::By(of_openssh)),
            shape(Test::Lost(Phase::Banner)),
        ],
        cost: Cost::Bounded(&["host.getent_hosts.time"], &Cost::Excess),
        fix: Fix::by_hand(
            Place::Host,
            "/etc/hosts.allow and /etc/hosts.deny",
            "addresses only: sshd: 192.0.2.0/255.255.255.0",
            "the former lines",
        ),
        source: "hosts_access(5); measured: 10 s with a dead resolver",
    },
    Cause {
        id: "tcp-wrappers-command",
        title: "hosts.allow or hosts.deny runs a command, which libwrap waits for",
        phases: &[Phase::Banner],
        tier: Tier::NoRoot,
        payer: Payer::Everyone,
        resource: Resource::Programs,
        signs: &[
            needed(Test::By(|case| {
                wrapped(case, "commands that are waited for", has_command)
            })),
            proof(Test::Slow {
                fact: "trace.spawned.time",
                ms: 10,
            }),
            shape(Test::By(of_openssh)),
            shape(Test::Lost(Phase::Banner)),
        ],
        cost: Cost::Bounded(&["trace.spawned.time"], &Cost::Excess),
        fix: Fix::by_hand(
            Place::Host,
            "/etc/hosts.allow and /etc/hosts.deny",
            "sshd: ALL: spawn (COMMAND) &   (in the background; or without the command. What aclexec runs decides: a quick one)",
            "the former line",
        ),
        source: "hosts_options(5), spawn and aclexec",
    },
    Cause {
        id: "socket-activation",
        title: "sshd is started for each connection, by systemd or inetd",
        phases: &[Phase::Banner],
        tier: Tier::NoRoot,
        payer: Payer::Everyone,
        resource: Resource::Programs,
        signs: &[
            needed(Test::Not(&Test::Is("host.listener"))),
            shape(Test::Lost(Phase::Banner)),
        ],
        cost: Cost::Excess,
        fix: Fix::by_hand(
            Place::Host,
            "systemd's units",
            "systemctl disable --now ssh.socket && systemctl enable --now ssh.service",
            "systemctl disable --now ssh.service && systemctl enable --now ssh.socket",
        ),
        source: "systemd.socket(5), Accept=",
    },
    Cause {
        id: "rsa-host-key",
        title: "sshd proves itself by a large RSA key",
        phases: &[Phase::KeyExchange],
        tier: Tier::Client,
        payer: Payer::Everyone,
        resource: Resource::Cpu,
        signs: &[known(Test::By(rsa_host_key))],
        cost: Cost::Excess,
        fix: Fix::by_hand(
            Place::Host,
            "/etc/ssh/sshd_config, before all other HostKey lines",
            "HostKey /etc/ssh/ssh_host_ed25519_key   (and keep a HostKey line for each key in use)",
            "that line taken out again, and systemctl reload ssh",
        ),
        source: "measured: RSA of 8192 bits takes about 50 ms more",
    },
    Cause {
        id: "large-group-exchange",
        title: "the key exchange is Diffie-Hellman in a large group",
        // sshd sends its reply and goes on reckoning.
        phases: &[Phase::KeyExchange, Phase::FirstRequest],
        tier: Tier::Client,
        payer: Payer::Everyone,
        resource: Resource::Cpu,
        signs: &[known(Test::By(large_group))],
        cost: Cost::Spread,
        // A line of the script's would take the place of the list that is there.
        fix: Fix::by_hand(
            Place::Host,
            "/etc/ssh/sshd_config, or ~/.ssh/config here where that chooses the group",
            "curve25519-sha256 first in KexAlgorithms",
            "the former line, and systemctl reload ssh",
        ),
        source: "RFC 8268; measured: group 18 takes both ends over 100 ms",
    },
];

/// Whether libwrap's files have lines of sshd of which this is so, and sshd goes by them.
fn wrapped(case: &Case, what: &str, is: fn(&str, &str) -> bool) -> Answer {
    let facts = &case.evidence.facts;
    // What starts sshd for each connection may go by them itself (tcpd(8)).
    let is_started = facts.yes("host.listener") == Some(false);
    if facts.yes("host.libwrap") == Some(false) && !is_started {
        return Answer::No("sshd is built without libwrap".to_owned());
    }
    let Some(lines) = facts.text("host.tcp_wrappers") else {
        return Answer::Unknown("hosts.allow and hosts.deny are not known".to_owned());
    };
    let of_sshd = |line: &&str| {
        let (daemons, rest) = line.split_once(':').unwrap_or_default();
        let daemons: Vec<&str> = daemons.split([' ', ',', '\t']).collect();
        let (clients, options) = rest.split_once(':').unwrap_or((rest, ""));
        names_sshd(&daemons) && is(clients, options)
    };
    match lines.lines().find(of_sshd) {
        Some(line) => Answer::Yes(format!(
            "hosts.allow or hosts.deny: {}",
            words::foreign(line)
        )),
        None => Answer::No(format!("hosts.allow and hosts.deny have no {what}")),
    }
}

/// Whether a list of daemons has sshd: `ALL EXCEPT sshd` has not (hosts_access(5), OPERATORS).
fn names_sshd(daemons: &[&str]) -> bool {
    let mut lists = daemons.splitn(2, |daemon| *daemon == "EXCEPT");
    let named = lists.next().unwrap_or_default();
    let is_named = named.iter().any(|daemon| ["sshd", "ALL"].contains(daemon));
    is_named && !lists.next().is_some_and(names_sshd)
}

/// Whether a client is named, by a name or by what can only be said of one (hosts_access(5), PATTERNS and WILDCARDS).
fn has_name(clients: &str, _: &str) -> bool {
    let mut clients = clients.split([' ', ',', '\t']);
    clients.any(|client| {
        let is_address = client.starts_with(['[', '/']) || client.contains(':');
        let is_word = ["ALL", "EXCEPT"].contains(&client);
        client.contains(|c: char| c.is_ascii_alphabetic()) && !is_address && !is_word
    })
}

/// Whether a command is run that libwrap waits for, and that is not left to the background. What `twist` runs takes sshd's place: nobody is
/// logged in.
fn has_command(_: &str, options: &str) -> bool {
    // One that is no separator.
    let options = options.replace("\\:", " ");
    let mut commands = options.split(':').filter_map(|option| {
        let is_between = |c: char| c.is_whitespace() || c == '=';
        let (name, command) = option.trim().split_once(is_between)?;
        let mut waited_for = ["spawn", "aclexec"].into_iter();
        let is_waited_for = waited_for.any(|known| known.eq_ignore_ascii_case(name));
        is_waited_for.then_some(command)
    });
    commands.any(|command| !is_in_background(command))
}

/// Whether sh waits for nothing of a command: it is one list that ends with `&`.
fn is_in_background(command: &str) -> bool {
    let Some(list) = command.trim_end().strip_suffix('&') else {
        return false;
    };
    let mut depth = 0_usize;
    let is_one = list.chars().all(|c| {
        match c {
            '(' | '{' => depth += 1,
            ')' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c != ';' || depth > 0
    });
    is_one && !list.ends_with(['&', '\\'])
}

/// Whether both ends have reckoned with numbers of thousands of bits.
fn large_group(case: &Case) -> Answer {
    let Some(name) = case.of_login("login.kex") else {
        return Answer::Unknown("the key exchange is not known".to_owned());
    };
    let words = format!("key exchange: {name}");
    if name.starts_with("diffie-hellman") {
        Answer::Yes(words)
    } else {
        Answer::No(words)
    }
}

/// What stood in a banner's place, or what a failed login says.
fn refused(case: &Case, texts: &[&str]) -> Answer {
    let told = case.evidence.facts.text("login.refused_text");
    let failures = case
        .evidence
        .logins
        .iter()
        .filter_map(|login| login.failure.as_deref());
    for text in told.into_iter().chain(failures) {
        let lower = text.to_ascii_lowercase();
        if texts.iter().any(|known| lower.contains(known)) {
            return Answer::Yes(format!("in place of a banner: {}", words::foreign(text)));
        }
    }
    Answer::No("each connection was answered by a banner".to_owned())
}

/// Nothing else has these words, where sources have no limit of their own.
fn dropped_by_max_startups(case: &Case) -> Answer {
    match PER_SOURCE_UNLIMITED.answer(case) {
        limited @ Answer::No(_) => limited,
        _ => refused(case, &["exceeded maxstartups"]),
    }
}

/// Whether it is an OpenSSH of this version or a later one.
fn since(case: &Case, first: (u32, u32)) -> Answer {
    let Some(identification) = case.evidence.identification.as_deref() else {
        return Answer::Unknown("the server's version is not known".to_owned());
    };
    let words = words::foreign(identification);
    match version(identification) {
        None => Answer::Unknown(words),
        Some(version) if version >= first => Answer::Yes(words),
        Some(_) => Answer::No(words),
    }
}

/// Which key has proven the host, and whether it is one that takes long to sign.
fn rsa_host_key(case: &Case) -> Answer {
    let Some(algorithm) = case.of_login("login.host_key") else {
        return Answer::Unknown("the host key's algorithm is not known".to_owned());
    };
    let words = format!("host key: {algorithm}");
    if algorithm.contains("rsa") {
        Answer::Yes(words)
    } else {
        Answer::No(words)
    }
}
