//! Names, addresses and packets on the way.

use std::time::Duration;

use super::{Cause, Payer, Resource};
use crate::cost::Cost;
use crate::evidence::{Phase, Tier};
use crate::fix::{Fix, Place};
use crate::signs::{Answer, Case, Test, known, needed, proof, shape};
use crate::words;

/// How long ssh's log says that it asked for the host key.
pub(super) const HOST_KEY_DNS_TIME: &str = "ssh.host_key_dns.time";

/// glibc waits so long for a reply (resolv.conf, `timeout`).
const RESOLVER_TIMEOUT: Duration = Duration::from_secs(5);

/// The first SYN is sent again after this (RFC 6298 section 2).
const SYN_TIMEOUT: Duration = Duration::from_millis(900);

/// Whoever drops large packets drops them again and again.
const BLACK_HOLE: Duration = Duration::from_secs(3);

const FAILED_ADDRESS: Test = Test::AtLeast {
    fact: "local.addresses.failed",
    number: 1.0,
    unit: " failed",
};

pub(super) const CAUSES: &[Cause] = &[
    Cause {
        id: "lookup-pair",
        title: "one reply of the pair of A and AAAA queries gets lost",
        phases: &[Phase::Lookup],
        tier: Tier::Client,
        payer: Payer::Each,
        resource: Resource::Network,
        signs: &[known(Test::By(pair_lost))],
        cost: Cost::Excess,
        fix: Fix::by_hand(
            Place::Here,
            "/etc/resolv.conf",
            "options single-request-reopen",
            "the former options line",
        ),
        source: "resolv.conf(5)",
    },
    Cause {
        id: "canonical-names",
        title: "CanonicalizeHostname looks names up in several domains",
        phases: &[Phase::Local, Phase::Lookup],
        tier: Tier::Client,
        payer: Payer::Each,
        resource: Resource::Network,
        signs: &[known(Test::Ssh {
            keyword: "CanonicalizeHostname",
            is: &["yes", "true", "always"],
        })],
        cost: Cost::Excess,
        fix: Fix::ssh("CanonicalizeHostname no"),
        source: "ssh_config(5): a lookup a domain of CanonicalDomains",
    },
    Cause {
        id: "slow-lookup",
        title: "looking the name up is slow",
        phases: &[Phase::Lookup],
        tier: Tier::Client,
        payer: Payer::Each,
        resource: Resource::Network,
        signs: &[
            needed(Test::Slow {
                fact: "local.lookup.time",
                ms: 20,
            }),
            shape(Test::Lost(Phase::Lookup)),
        ],
        cost: Cost::Excess,
        fix: Fix::by_hand(
            Place::Here,
            "/etc/resolv.conf",
            "the name server that answers first; or a line of /etc/hosts for this host",
            "the former nameserver lines",
        ),
        source: "resolv.conf(5): servers are asked one after the other",
    },
    Cause {
        id: "dead-address",
        title: "an address of the host does not answer",
        phases: &[Phase::Connect],
        tier: Tier::Client,
        payer: Payer::Each,
        resource: Resource::Network,
        signs: &[
            known(FAILED_ADDRESS),
            known(Test::Not(&Test::By(dead_v6))),
            known(Test::Not(&Test::By(dead_v4))),
        ],
        cost: Cost::Excess,
        fix: Fix::by_hand(
            Place::Here,
            "the records of the host's name, or ~/.ssh/config in the block of this host",
            "HostName ADDRESS   (one that answers; or the dead address taken out of the name's records)",
            "that line taken out again",
        ),
        source: "ssh tries one address after the other; sshoal overlaps them (RFC 8305)",
    },
    Cause {
        id: "dead-ipv6",
        title: "the host's addresses of IPv6 do not answer, and one of IPv4 does",
        phases: &[Phase::Connect],
        tier: Tier::Client,
        payer: Payer::Each,
        resource: Resource::Network,
        signs: &[known(FAILED_ADDRESS), known(Test::By(dead_v6))],
        cost: Cost::Excess,
        fix: Fix::ssh("AddressFamily inet"),
        source: "ssh tries one address after the other; sshoal overlaps them (RFC 8305)",
    },
    Cause {
        id: "dead-ipv4",
        title: "the host's addresses of IPv4 do not answer, and one of IPv6 does",
        phases: &[Phase::Connect],
        tier: Tier::Client,
        payer: Payer::Each,
        resource: Resource::Network,
        signs: &[known(FAILED_ADDRESS), known(Test::By(dead_v4))],
        cost: Cost::Excess,
        fix: Fix::ssh("AddressFamily inet6"),
        source: "ssh tries one address after the other; sshoal overlaps them (RFC 8305)",
    },
    Cause {
        id: "proxy-jump",
        title: "each jump host is a login of its own",
        phases: &[Phase::Local, Phase::Connect, Phase::Banner],
        tier: Tier::Client,
        payer: Payer::Each,
        resource: Resource::Network,
        signs: &[known(Test::Not(&Test::Ssh {
            keyword: "ProxyJump",
            is: &["none", ""],
        }))],
        cost: Cost::Excess,
        fix: Fix::by_hand(
            Place::Here,
            "~/.ssh/config, in the block of the jump host",
            "ControlMaster auto\nControlPath ~/.ssh/master-%C\nControlPersist 10m",
            "these three lines taken out again",
        ),
        source: "ssh_config(5), ProxyJump",
    },
    Cause {
        id: "proxy-command",
        title: "the ProxyCommand takes its time before it connects",
        phases: &[Phase::Connect, Phase::Banner],
        // What the server does before its banner looks the same.
        tier: Tier::Root,
        payer: Payer::Each,
        resource: Resource::Programs,
        signs: &[known(Test::Not(&Test::Ssh {
            keyword: "ProxyCommand",
            is: &["none", ""],
        }))],
        cost: Cost::Excess,
        fix: Fix::by_hand(
            Place::Here,
            "~/.ssh/config, in the block of this host",
            "ProxyJump HOST   (in place of a ProxyCommand that does the same)",
            "the former ProxyCommand line",
        ),
        source: "ssh_config(5), ProxyCommand: it is started anew for each login",
    },
    Cause {
        id: "lost-packets",
        title: "TCP's first packet was lost and sent again",
        phases: &[Phase::Connect],
        tier: Tier::Client,
        payer: Payer::Each,
        resource: Resource::Network,
        signs: &[
            needed(Test::By(syn_lost)),
            needed(Test::Not(&FAILED_ADDRESS)),
        ],
        cost: Cost::Excess,
        fix: Fix::by_hand(
            Place::Host,
            "/etc/sysctl.d/ssh.conf, where it is the queue of new connections that overflows",
            "net.core.somaxconn = 4096",
            "that file removed, and sysctl --system",
        ),
        source: "RFC 6298 section 2: sent again after 1 s, then 3 s",
    },
    Cause {
        id: "packet-size",
        title: "large packets do not get through (path MTU)",
        phases: &[Phase::KeyExchangeInit, Phase::KeyExchange],
        tier: Tier::Root,
        payer: Payer::Everyone,
        resource: Resource::Network,
        signs: &[known(Test::By(black_hole))],
        cost: Cost::Excess,
        fix: Fix::by_hand(
            Place::Here,
            "the gateway's firewall",
            "iptables -t mangle -A FORWARD -p tcp --tcp-flags SYN,RST SYN -j TCPMSS --clamp-mss-to-pmtu",
            "the same with -D in place of -A",
        ),
        source: "RFC 2923 section 2.1: small packets of the login pass, large ones vanish",
    },
    Cause {
        id: "host-key-dns",
        title: "VerifyHostKeyDNS asks the name server for the host key",
        phases: &[Phase::KeyExchange],
        tier: Tier::Client,
        payer: Payer::Ssh,
        resource: Resource::Network,
        signs: &[
            known(Test::Ssh {
                keyword: "VerifyHostKeyDNS",
                is: &["yes", "true", "ask"],
            }),
            proof(Test::Slow {
                fact: HOST_KEY_DNS_TIME,
                ms: 10,
            }),
        ],
        cost: Cost::Bounded(&[HOST_KEY_DNS_TIME], &Cost::Excess),
        fix: Fix::ssh("VerifyHostKeyDNS no"),
        source: "RFC 4255; ssh_config(5)",
    },
];

/// Both queries at once wait for the resolver's time-out, and each by itself is quick.
fn pair_lost(case: &Case) -> Answer {
    let a = case.time("local.lookup.a.time");
    let aaaa = case.time("local.lookup.aaaa.time");
    let row = case.ledger.row(Phase::Lookup);
    let Some(((a, aaaa), row)) = a.zip(aaaa).zip(row) else {
        return Answer::Unknown("the queries were not timed one by one".to_owned());
    };
    let words = format!(
        "both queries together take {}, A alone {}, AAAA alone {}",
        words::time(row.sample.median),
        words::time(a),
        words::time(aaaa),
    );
    let slow = RESOLVER_TIMEOUT.mul_f64(0.9);
    if row.sample.median >= slow && a < slow && aaaa < slow {
        Answer::Yes(words)
    } else {
        Answer::No(words)
    }
}

fn dead_v6(case: &Case) -> Answer {
    dead_family(case, ["inet6", "inet"])
}

fn dead_v4(case: &Case) -> Answer {
    dead_family(case, ["inet", "inet6"])
}

/// Whether all addresses that failed are of the first family, and the one that answered of the second.
fn dead_family(case: &Case, wanted: [&str; 2]) -> Answer {
    let facts = [
        "local.addresses.failed.family",
        "local.addresses.answered.family",
    ];
    let [failed, answered] = facts.map(|fact| case.evidence.facts.text(fact).unwrap_or("unknown"));
    let words = format!("family of what failed: {failed}, of what answered: {answered}");
    if [failed, answered] == wanted {
        Answer::Yes(words)
    } else {
        Answer::No(words)
    }
}

fn syn_lost(case: &Case) -> Answer {
    let Some((row, words)) = case
        .ledger
        .row(Phase::Connect)
        .zip(case.told(Phase::Connect))
    else {
        return Answer::Unknown("no connection was made".to_owned());
    };
    if row.excess >= SYN_TIMEOUT {
        Answer::Yes(words)
    } else {
        Answer::No(words)
    }
}

fn black_hole(case: &Case) -> Answer {
    for phase in [Phase::KeyExchangeInit, Phase::KeyExchange] {
        let row = case.ledger.row(phase);
        if let Some(row) = row.filter(|row| row.excess >= BLACK_HOLE) {
            return Answer::Yes(format!(
                "{} hangs for {} after smaller packets have passed",
                phase.title(),
                words::time(row.sample.median),
            ));
        }
    }
    Answer::No("the key exchange does not hang".to_owned())
}
