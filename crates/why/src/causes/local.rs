//! This machine's configuration, known_hosts, keys and agent.

use std::time::Duration;

use super::network::HOST_KEY_DNS_TIME;
use super::{Cause, Payer, Resource};
use crate::cost::Cost;
use crate::evidence::{Phase, Tier};
use crate::fix::{Fix, Place};
use crate::reckoning::LEAST;
use crate::signs::{Answer, Case, Test, known, needed, proof};
use crate::words;

/// What ssh's log says of its own search of known_hosts, before the key exchange and in it.
const KNOWN_HOSTS_TIME: &str = "ssh.known_hosts.time";

/// No file is taken to be larger.
const MOST_OCTETS: f64 = 1e12;

pub(super) const CAUSES: &[Cause] = &[
    Cause {
        id: "match-exec",
        title: "a Match exec of ssh_config runs a command",
        phases: &[Phase::Local],
        tier: Tier::Client,
        payer: Payer::Each,
        resource: Resource::Programs,
        signs: &[
            needed(Test::Is("local.ssh_config.match_exec")),
            known(Test::Slow {
                fact: "local.ssh_config.time",
                ms: 10,
            }),
        ],
        cost: Cost::Measured("local.ssh_config.time"),
        fix: Fix::by_hand(
            Place::Here,
            "~/.ssh/config",
            "Match host PATTERN   (in place of Match exec COMMAND)",
            "the former Match exec line",
        ),
        source: "ssh_config(5), Match",
    },
    Cause {
        id: "ssh-config-size",
        title: "ssh_config is long to read",
        phases: &[Phase::Local],
        tier: Tier::Client,
        payer: Payer::Each,
        resource: Resource::Files,
        signs: &[
            needed(Test::Not(&Test::Is("local.ssh_config.match_exec"))),
            needed(Test::By(no_canonical_names)),
            known(Test::Slow {
                fact: "local.ssh_config.time",
                ms: 10,
            }),
        ],
        cost: Cost::Measured("local.ssh_config.time"),
        fix: Fix::by_hand(
            Place::Here,
            "~/.ssh/config",
            "fewer and shorter files by Include: a file is read even where no Match or Host of it fits",
            "the former Include lines",
        ),
        source: "ssh reads whole files, readconf.c",
    },
    Cause {
        id: "known-hosts-hashed",
        title: "known_hosts is large and hashed",
        phases: &[Phase::Local, Phase::KeyExchangeInit, Phase::KeyExchange],
        tier: Tier::Client,
        payer: Payer::Ssh,
        resource: Resource::Cpu,
        signs: &[
            needed(Test::Is("local.known_hosts.hashed")),
            known(Test::By(long_known_hosts)),
            proof(Test::Slow {
                fact: KNOWN_HOSTS_TIME,
                ms: 10,
            }),
        ],
        cost: Cost::Bounded(&[KNOWN_HOSTS_TIME], &Cost::Reckoned(known_hosts_search)),
        fix: Fix::by_hand(
            Place::Here,
            "~/.ssh/config",
            "what `sshoal known-hosts split -i HOSTS` prints: UserKnownHostsFile ~/.ssh/known_hosts_single/%h",
            "that line taken out again; known_hosts itself stays as it is",
        ),
        source: "hostfile.c: an HMAC a line and search; measured: 230 ms at 2.3 MB, hashed",
    },
    Cause {
        id: "known-hosts-size",
        title: "known_hosts is large",
        phases: &[Phase::Local, Phase::KeyExchangeInit, Phase::KeyExchange],
        tier: Tier::Client,
        payer: Payer::Ssh,
        resource: Resource::Files,
        signs: &[
            needed(Test::Not(&Test::Is("local.known_hosts.hashed"))),
            known(Test::By(long_known_hosts)),
            proof(Test::Slow {
                fact: KNOWN_HOSTS_TIME,
                ms: 10,
            }),
        ],
        cost: Cost::Bounded(&[KNOWN_HOSTS_TIME], &Cost::Reckoned(known_hosts_search)),
        fix: Fix::by_hand(
            Place::Here,
            "~/.ssh/config",
            "what `sshoal known-hosts split` prints: UserKnownHostsFile ~/.ssh/known_hosts_single/%h",
            "that line taken out again; known_hosts itself stays as it is",
        ),
        source: "two or more linear scans; measured: 13 ms at 2.3 MB",
    },
    Cause {
        id: "agent-keys",
        title: "the agent offers many keys",
        phases: &[Phase::KeyProbe],
        tier: Tier::Client,
        payer: Payer::Each,
        resource: Resource::Network,
        signs: &[known(Test::By(probes)), proof(Test::By(probes))],
        cost: Cost::FurtherProbes,
        fix: Fix::by_hand(
            Place::Here,
            "~/.ssh/config, in a block of this host",
            "IdentitiesOnly yes\nIdentityFile ~/.ssh/KEY   (the one that this host accepts)",
            "these two lines taken out again",
        ),
        source: "a round trip and sshd's padding for each key; MaxAuthTries 6",
    },
    Cause {
        id: "slow-agent",
        title: "the agent answers slowly",
        phases: &[Phase::Local, Phase::KeyProbe, Phase::SignedRequest],
        tier: Tier::Client,
        payer: Payer::Each,
        resource: Resource::Programs,
        signs: &[
            known(Test::Slow {
                fact: "local.agent.time",
                ms: 10,
            }),
            proof(Test::Slow {
                fact: "local.agent.time",
                ms: 10,
            }),
        ],
        cost: Cost::Measured("local.agent.time"),
        fix: Fix::by_hand(
            Place::Here,
            "the agent (ssh-add)",
            "ssh-keygen -t ed25519, and ssh-add of that key in place of an RSA key",
            "ssh-add of the former key",
        ),
        source: "ssh-agent serves one request at a time; an RSA signature takes the longest",
    },
    Cause {
        id: "post-quantum-exchange",
        title: "the key exchange sntrup761 is slow in this OpenSSH",
        phases: &[Phase::KeyExchange],
        tier: Tier::Client,
        payer: Payer::Each,
        resource: Resource::Cpu,
        signs: &[known(Test::By(sntrup))],
        cost: Cost::Reckoned(sntrup_beside_lookups),
        fix: Fix::by_hand(
            Place::Here,
            "the packages openssh-client and openssh-server",
            "OpenSSH 9.9 or later at both ends, which has mlkem768x25519-sha256; do not drop post-quantum exchanges",
            "none needed",
        ),
        source: "measured: 76 to 105 ms of ssh 9.2's CPU, about 1 ms for mlkem768 in 10.x",
    },
    Cause {
        id: "gssapi",
        title: "ssh tries GSSAPI first",
        phases: &[Phase::FirstRequest, Phase::KeyProbe, Phase::SignedRequest],
        tier: Tier::Client,
        payer: Payer::Ssh,
        resource: Resource::Network,
        signs: &[
            known(Test::Ssh {
                keyword: "GSSAPIAuthentication",
                is: &["yes", "true"],
            }),
            known(Test::Has {
                fact: "login.methods",
                any: &["gssapi"],
            }),
        ],
        cost: Cost::Excess,
        fix: Fix::ssh("GSSAPIAuthentication no"),
        source: "sshconnect2.c; time-outs of the KDC and of DNS",
    },
    Cause {
        id: "delayed-acknowledgement",
        title: "sshd's Nagle waits for ssh's delayed acknowledgement",
        phases: &[
            Phase::FirstRequest,
            Phase::SignedRequest,
            Phase::ChannelOpen,
            Phase::FirstOutput,
        ],
        tier: Tier::Client,
        payer: Payer::Each,
        resource: Resource::Network,
        signs: &[known(Test::By(acknowledges_late))],
        cost: Cost::DelayedAck,
        fix: Fix::by_hand(
            Place::Here,
            "the command line",
            "sshoal run   (a client that sets TCP_QUICKACK; ssh has no option for it)",
            "ssh",
        ),
        source: "sshd writes twice after a login; Linux delays by 40 ms; measured: 40 to 44 ms",
    },
];

/// Whether somebody else than sshoal has the connection.
fn acknowledges_late(case: &Case) -> Answer {
    if case.ours.is_some() {
        return Answer::Yes("sshoal's own client acknowledges at once".to_owned());
    }
    let proxy = case.word("ssh_config.ProxyCommand");
    match proxy.filter(|command| !command.is_empty() && command != "none") {
        Some(command) => Answer::Yes(format!("the connection is that of ProxyCommand {command}")),
        None => Answer::Unknown("no login of our own to compare with".to_owned()),
    }
}

/// Whether more than one key was offered in the logins that are judged.
fn probes(case: &Case) -> Answer {
    let Some(row) = case.ledger.row(Phase::KeyProbe) else {
        return Answer::Unknown("no key was probed".to_owned());
    };
    let keys = case.number("local.agent.keys").map(words::number);
    let words = match keys {
        Some(keys) => format!("{} keys were offered; the agent has {keys}", row.requests),
        None => format!("{} keys were offered", row.requests),
    };
    if row.requests > 1 {
        Answer::Yes(words)
    } else {
        Answer::No(words)
    }
}

/// What ssh needs to search an octet of known_hosts. Measured: 13 ms at 2.3 MB, 230 ms where its names are hashed.
const SEARCH_NS: f64 = 6.0;
const HASHED_SEARCH_NS: f64 = 100.0;

/// What sntrup761 takes of OpenSSH 9.2 at both ends, give or take a half.
const SNTRUP: Duration = Duration::from_millis(55);

/// What searching known_hosts costs ssh, by its size.
fn known_hosts_search(case: &Case) -> Option<Duration> {
    let octets = case
        .number("local.known_hosts.octets")?
        .clamp(0.0, MOST_OCTETS);
    let is_hashed = case.evidence.facts.yes("local.known_hosts.hashed") == Some(true);
    let each = if is_hashed {
        HASHED_SEARCH_NS
    } else {
        SEARCH_NS
    };
    Some(Duration::from_secs_f64(octets * each / 1e9))
}

fn long_known_hosts(case: &Case) -> Answer {
    let octets = case.word("local.known_hosts.octets").unwrap_or_default();
    let (time, words) = match (case.time(KNOWN_HOSTS_TIME), known_hosts_search(case)) {
        (Some(time), _) => (time, "which ssh reads twice in"),
        (None, Some(time)) => (time, "which take ssh about"),
        (None, None) => return crate::signs::unknown("local.known_hosts.octets"),
    };
    let words = format!(
        "known_hosts has {octets} octets, {words} {}",
        words::time(time)
    );
    if time >= LEAST {
        Answer::Yes(words)
    } else {
        Answer::No(words)
    }
}

/// Names are looked up while the configuration is resolved: what that takes is not reading.
fn no_canonical_names(case: &Case) -> Answer {
    let keyword = Test::Ssh {
        keyword: "CanonicalizeHostname",
        is: &["yes", "true", "always"],
    };
    match keyword.answer(case) {
        Answer::Yes(words) => Answer::No(words),
        Answer::No(words) | Answer::Unknown(words) => Answer::Yes(words),
    }
}

/// What sntrup761 takes where the name server is asked for the host key in the same phase, and that was not timed apart; all that is lost where it is not.
fn sntrup_beside_lookups(case: &Case) -> Option<Duration> {
    let keyword = Test::Ssh {
        keyword: "VerifyHostKeyDNS",
        is: &["yes", "true", "ask"],
    };
    let is_apart = case.time(HOST_KEY_DNS_TIME).is_some();
    let is_asked = matches!(keyword.answer(case), Answer::Yes(_));
    (is_asked && !is_apart).then_some(SNTRUP)
}

/// Which key exchange it was: what is noted at the phase itself, or else of our login.
fn sntrup(case: &Case) -> Answer {
    const NAMES: &[&str] = &[
        "sntrup761",
        "mlkem768",
        "curve25519",
        "ecdh-",
        "diffie-hellman",
    ];
    let noted = case
        .ledger
        .row(Phase::KeyExchange)
        .map(|row| row.details.join(" "));
    let noted = noted.filter(|noted| NAMES.iter().any(|name| noted.contains(name)));
    let Some(name) = noted.or_else(|| case.of_login("login.kex")) else {
        return Answer::Unknown("the key exchange is not known".to_owned());
    };
    let words = format!("key exchange: {}", words::foreign(&name));
    if name.contains("sntrup761") {
        Answer::Yes(words)
    } else {
        Answer::No(words)
    }
}
