//! Who logs in: names, keys, and whether PAM lets the account in.

use std::time::Duration;

use super::{Cause, Payer, Resource, of_openssh};
use crate::cost::{Cost, Often, left_of_padding};
use crate::evidence::{Phase, Tier};
use crate::fix::{Fix, Place};
use crate::reckoning::LEAST;
use crate::signs::{Answer, Case, Test, known, needed, proof, shape};
use crate::words;

/// Where a key is looked for.
const KEY_REQUESTS: &[Phase] = &[Phase::KeyProbe, Phase::SignedRequest];

/// File systems behind which another machine stands.
const REMOTE: &[&str] = &[
    "nfs", "autofs", "cifs", "smb", "sshfs", "afs", "ceph", "lustre", "gluster", "gpfs", "beegfs",
    "9p", "v9fs",
];

/// What sshd itself asks the name service for takes of a login, or else what asking for the client takes on the host.
const LOOKUP_TIMES: [&str; 2] = ["trace.server_lookups.time", "host.getent_hosts.time"];

/// A lookup in files takes less, and no more than a few times what it takes to start a program.
const SLOW_LOOKUP: Duration = Duration::from_millis(15);

pub(super) const CAUSES: &[Cause] = &[
    Cause {
        id: "use-dns",
        title: "sshd looks up the name of the client's address (UseDNS)",
        phases: &[
            Phase::FirstRequest,
            Phase::SignedRequest,
            Phase::ChannelOpen,
        ],
        tier: Tier::NoRoot,
        payer: Payer::Everyone,
        resource: Resource::Network,
        signs: &[
            needed(Test::Sshd {
                keyword: "UseDNS",
                default: "no",
                is: &["yes"],
            }),
            needed(Test::FirstSlow {
                facts: &LOOKUP_TIMES,
                ms: 10,
            }),
            proof(Test::Slow {
                fact: LOOKUP_TIMES[0],
                ms: 10,
            }),
            shape(Test::By(of_openssh)),
            shape(Test::Lost(Phase::FirstRequest)),
        ],
        cost: Cost::Lookups {
            seen: LOOKUP_TIMES[0],
            timed: LOOKUP_TIMES[1],
        },
        fix: Fix::sshd_without_names("UseDNS no"),
        source: "sshd_config(5); measured: 11 to 15 s with a dead resolver",
    },
    Cause {
        id: "authorized-keys-command",
        title: "AuthorizedKeysCommand is slow, and runs for the probe and for the signature",
        phases: KEY_REQUESTS,
        tier: Tier::NoRoot,
        payer: Payer::Everyone,
        resource: Resource::Programs,
        signs: &[
            needed(Test::Not(&Test::Sshd {
                keyword: "AuthorizedKeysCommand",
                default: "none",
                is: &["none"],
            })),
            needed(Test::Any(&[
                Test::Lost(Phase::KeyProbe),
                Test::Lost(Phase::SignedRequest),
            ])),
            proof(Test::Slow {
                fact: "trace.keys_command.time",
                ms: 10,
            }),
            shape(Test::By(of_openssh)),
            shape(Test::Lost(Phase::KeyProbe)),
        ],
        cost: Cost::EachKeyRequest(Some("trace.keys_command.time")),
        fix: Fix::by_hand(
            Place::Host,
            "/etc/ssh/sshd_config, and the command that it names",
            "AuthorizedKeysCommand with a cache of its answers; or TrustedUserCAKeys with certificates",
            "the former AuthorizedKeysCommand line",
        ),
        source: "sshd_config(5); measured: a script of 0.7 s costs 1.04 s a request, padding included",
    },
    Cause {
        id: "authorized-keys-size",
        title: "authorized_keys is huge",
        phases: KEY_REQUESTS,
        tier: Tier::NoRoot,
        payer: Payer::Everyone,
        resource: Resource::Files,
        signs: &[
            needed(Test::AtLeast {
                fact: "host.authorized_keys.lines",
                number: 2_000.0,
                unit: " lines",
            }),
            shape(Test::Lost(Phase::KeyProbe)),
        ],
        cost: Cost::AtMost(keys_read, &Cost::EachKeyRequest(None)),
        fix: Fix::by_hand(
            Place::Host,
            "~/.ssh/authorized_keys",
            "only the keys of this user; or TrustedUserCAKeys with certificates",
            "the former file",
        ),
        source: "auth2-pubkeyfile.c reads it for each request; measured: 0.2 to 0.9 s for 100,000 lines",
    },
    Cause {
        id: "revoked-keys",
        title: "RevokedKeys is read for each key that is offered",
        phases: KEY_REQUESTS,
        tier: Tier::NoRoot,
        payer: Payer::Everyone,
        resource: Resource::Files,
        signs: &[
            needed(Test::Not(&Test::Sshd {
                keyword: "RevokedKeys",
                default: "none",
                is: &["none"],
            })),
            needed(Test::Any(&[
                Test::Lost(Phase::KeyProbe),
                Test::Lost(Phase::SignedRequest),
            ])),
            shape(Test::By(of_openssh)),
            shape(Test::Lost(Phase::KeyProbe)),
        ],
        cost: Cost::EachKeyRequest(None),
        fix: Fix::by_hand(
            Place::Host,
            "the file that RevokedKeys of sshd_config names",
            "ssh-keygen -k -f revoked_keys FILES   (a KRL, which is searched and not read line by line)",
            "the former file",
        ),
        source: "sshd_config(5), RevokedKeys; auth.c asks for it in each request",
    },
    Cause {
        id: "name-service",
        title: "users and groups are looked up slowly (NSS, sssd, LDAP)",
        phases: &[
            Phase::Banner,
            Phase::FirstRequest,
            Phase::KeyProbe,
            Phase::SignedRequest,
            Phase::ChannelOpen,
            Phase::FirstOutput,
        ],
        tier: Tier::NoRoot,
        payer: Payer::Everyone,
        resource: Resource::Network,
        signs: &[
            needed(Test::By(slow_lookups)),
            proof(Test::By(slow_lookups)),
            shape(Test::Lost(Phase::Banner)),
            shape(Test::Lost(Phase::FirstRequest)),
        ],
        cost: Cost::AtMost(
            users_seen,
            &Cost::Calls(
                &["host.getent_passwd.time", "host.id.time"],
                users_asked_for,
            ),
        ),
        fix: Fix::by_hand(
            Place::Host,
            "/etc/sssd/sssd.conf and /etc/nsswitch.conf",
            "ignore_group_members = true   (sssd.conf); passwd: files sss   (nsswitch.conf, files first)",
            "the former lines",
        ),
        source: "nsswitch.conf(5), sssd-ldap(5); measured: 300 ms a call cost a login 1.7 s",
    },
    Cause {
        id: "pam-account",
        title: "a module of PAM's account stack is slow",
        phases: &[Phase::SignedRequest],
        tier: Tier::Root,
        payer: Payer::Everyone,
        resource: Resource::Programs,
        signs: &[
            needed(Test::Sshd {
                keyword: "UsePAM",
                default: "no",
                is: &["yes"],
            }),
            needed(Test::Slow {
                fact: "trace.pam_account.time",
                ms: 5,
            }),
            proof(Test::Has {
                fact: "trace.pam_account.slowest",
                any: &["pam_"],
            }),
            shape(Test::Lost(Phase::SignedRequest)),
            // A key's request is not merely checked slowly.
            shape(Test::Not(&Test::Lost(Phase::KeyProbe))),
        ],
        cost: Cost::Bounded(&["trace.pam_account.time"], &Cost::Excess),
        fix: Fix::by_hand(
            Place::Host,
            "/etc/pam.d/sshd (and what it includes)",
            "# account required MODULE   (the slow line of the account stack, out of use)",
            "the former account line",
        ),
        source: "auth-pam.c: do_pam_account runs once the signature is right, and is not padded",
    },
    Cause {
        id: "pam-auth",
        title: "a module of PAM's auth stack is slow",
        phases: &[Phase::SignedRequest],
        tier: Tier::Root,
        payer: Payer::Everyone,
        resource: Resource::Programs,
        signs: &[
            // Nobody asks it about a key.
            known(Test::Slow {
                fact: "trace.pam_auth.time",
                ms: 10,
            }),
            needed(Test::Sshd {
                keyword: "UsePAM",
                default: "no",
                is: &["yes"],
            }),
            proof(Test::Has {
                fact: "trace.pam_auth.slowest",
                any: &["pam_"],
            }),
        ],
        cost: Cost::BoundedBy(padded_auth, &Cost::Excess),
        fix: Fix::by_hand(
            Place::Host,
            "/etc/pam.d/sshd (and what it includes)",
            "# auth required MODULE   (the slow line of the auth stack, out of use: only where another one asks for the password)",
            "the former auth line",
        ),
        source: "auth-pam.c: sshd asks PAM about passwords, and pads the answer (auth2.c)",
    },
];

/// What is told of the home stands behind the session's causes: these know what they take, and files of the home are opened by all.
pub(super) const HOME: &[Cause] = &[Cause {
    id: "network-home",
    title: "the home folder is on the network",
    phases: &[
        Phase::KeyProbe,
        Phase::SignedRequest,
        Phase::ChannelOpen,
        Phase::FirstOutput,
    ],
    tier: Tier::NoRoot,
    payer: Payer::Everyone,
    resource: Resource::Files,
    signs: &[
        needed(Test::Has {
            fact: "host.home.filesystem",
            any: REMOTE,
        }),
        needed(Test::Any(&[
            Test::Lost(Phase::KeyProbe),
            Test::Lost(Phase::FirstOutput),
        ])),
        proof(Test::Slow {
            fact: "host.home.time",
            ms: 10,
        }),
        shape(Test::Lost(Phase::KeyProbe)),
        shape(Test::Lost(Phase::FirstOutput)),
    ],
    cost: Cost::AtMost(
        waits_for_files,
        &Cost::Calls(&["host.home.time"], home_opened),
    ),
    fix: Fix::by_hand(
        Place::Host,
        "/etc/ssh/sshd_config",
        "AuthorizedKeysFile /etc/ssh/authorized_keys/%u   (once the keys are there)",
        "that line taken out again, and systemctl reload ssh",
    ),
    source: "sshd and the shell open files of the home as the user",
}];

/// What a slow machine takes to read a line of authorized_keys. Measured: 1.4 us of a quick one that has nothing else to do, 7 us of one that has.
const KEY_LINE: Duration = Duration::from_micros(20);
/// No file is taken to have more.
const MOST_LINES: f64 = 1e9;

/// What reading authorized_keys takes at most: once for each key that is offered and once for the signature, each padded to less than twice
/// as much.
fn keys_read(case: &Case) -> Option<Duration> {
    let lines = case.number("host.authorized_keys.lines")?;
    let probes = case.ledger.row(Phase::KeyProbe)?.requests;
    let requests = u32::try_from(probes).unwrap_or(u32::MAX).saturating_add(1);
    let each = KEY_LINE.mul_f64(lines.clamp(0.0, MOST_LINES));
    Some(each.saturating_mul(2).saturating_mul(requests))
}

/// What lookups of users took of a traced login, with what sshd pads those with that it makes in requests.
fn users_seen(case: &Case) -> Option<Duration> {
    let seen = case.time("trace.users.time")?;
    // More than half of what a request is padded to is its work.
    let first = case.ledger.remaining(Phase::FirstRequest) / 2;
    Some(seen + first + left_of_padding(case))
}

/// How often sshd and the modules of PAM ask for the user or its groups. Measured with OpenSSH 9.2 on Debian 12; others ask more often, and
/// what is padded takes up to twice as long.
fn users_asked_for(phase: Phase) -> Often {
    let (usual, most) = match phase {
        Phase::Banner => (1, 2),
        Phase::FirstRequest | Phase::SignedRequest => (1, 4),
        Phase::ChannelOpen => (5, 10),
        Phase::FirstOutput => (0, 3),
        _ => (1, 3),
    };
    Often { usual, most }
}

/// How often sshd and the shell look into the home: a few files each time.
fn home_opened(_: Phase) -> Often {
    Often { usual: 2, most: 10 }
}

/// What a traced login waited for that a file system on the network has it wait for: the kernel, packets, or a program that serves it.
fn waits_for_files(case: &Case) -> Option<Duration> {
    let others = ["trace.network.time", "trace.program.time"];
    let others: Duration = others.iter().filter_map(|fact| case.time(fact)).sum();
    Some(case.time("trace.storage.time")? + others)
}

/// What PAM's modules took to check a password, and what sshd pads that to beyond what it pads any request to.
fn padded_auth(case: &Case) -> Option<Duration> {
    let time = case.time("trace.pam_auth.time")?;
    Some(match case.ledger.pad {
        Some(pad) => time.max(pad.around(time).saturating_sub(pad.base)),
        None => time,
    })
}

/// Whether asking for the user and its groups takes long, beside starting a program that does nothing.
fn slow_lookups(case: &Case) -> Answer {
    if let Some(time) = case.time("trace.users.time").filter(|time| *time < LEAST) {
        let words = format!("lookups of users take {} of a login", words::time(time));
        return Answer::No(words);
    }
    let times = [
        ("id", "host.id.time"),
        ("getent passwd", "host.getent_passwd.time"),
    ]
    .map(|(name, fact)| (case.time(fact), name));
    let Some((time, name)) = times
        .into_iter()
        .filter_map(|(time, name)| Some((time?, name)))
        .max()
    else {
        return Answer::Unknown("lookups of users were not timed on the host".to_owned());
    };
    let mut told = format!("{name} takes {} on the host", words::time(time));
    let mut least = SLOW_LOOKUP;
    // By the host's own clock, or else as it looks from here.
    let from_here = || {
        Some(
            case.time("host.bare_exec.time")?
                .saturating_sub(case.round_trip()),
        )
    };
    if let Some(bare) = case.time("host.shell.bare.time").or_else(from_here) {
        told = format!("{told}, a bare program {}", words::time(bare));
        least = least.max(bare * 3);
    }
    if let Some(sources) = case.word("host.nsswitch.passwd") {
        told = format!("{told}; passwd: {sources}");
    }
    if time >= least {
        Answer::Yes(told)
    } else {
        Answer::No(told)
    }
}
