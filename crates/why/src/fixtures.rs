//! Evidence written by hand for tests: a clean login, and ways to make it slow.

use std::time::Duration;

use crate::evidence::{Client, Evidence, Fact, Facts, Login, Phase, Span, Tier};

/// Milliseconds of each phase of a clean login, ours and ssh's, without the network: sshd 9.2, padding 7.3 ms.
const CLEAN: [(Phase, f64, f64, u32); 11] = [
    (Phase::Local, 1.5, 12.0, 0),
    (Phase::Lookup, 0.3, 0.4, 0),
    (Phase::Connect, 0.1, 0.2, 1),
    (Phase::Banner, 7.7, 7.6, 1),
    (Phase::KeyExchangeInit, 1.3, 1.0, 1),
    (Phase::KeyExchange, 4.4, 9.0, 1),
    (Phase::FirstRequest, 0.5, 0.9, 2),
    (Phase::KeyProbe, 0.5, 0.6, 1),
    (Phase::SignedRequest, 0.4, 1.0, 1),
    (Phase::ChannelOpen, 7.2, 7.6, 1),
    (Phase::FirstOutput, 2.3, 2.7, 1),
];

/// Each request is padded to this: the first one at once, the probe's padding holds up the signed request.
const PADDING_MS: f64 = 7.3;

/// How the repetitions differ, in thousandths.
const JITTER: [u32; 5] = [1_000, 1_040, 970, 1_020, 990];

pub(crate) fn ms(ms: f64) -> Duration {
    Duration::from_secs_f64(ms / 1000.0)
}

/// Five clean logins of each client, interleaved, over a line of this round-trip time; client tier.
pub(crate) fn clean(round_trip_ms: f64) -> Evidence {
    let mut logins = Vec::new();
    for jitter in JITTER {
        for by in [Client::Sshoal, Client::Ssh] {
            logins.push(login(by, f64::from(jitter) / 1000.0, round_trip_ms));
        }
    }
    Evidence {
        host: "web1".to_owned(),
        address: Some("127.0.0.5".to_owned()),
        identification: Some("SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3".to_owned()),
        tier: Tier::Client,
        tier_notes: vec!["told to run nothing on the host".to_owned()],
        round_trips: [1.0, 1.01, 0.99]
            .map(|part| ms(round_trip_ms * part))
            .to_vec(),
        logins,
        facts: facts(&[
            ("local.known_hosts.time", Fact::Time(ms(0.4))),
            ("local.known_hosts.octets", Fact::Number(2_048.0)),
            ("local.known_hosts.hashed", Fact::Yes(false)),
            ("local.ssh_config.time", Fact::Time(ms(1.0))),
            ("local.ssh_config.match_exec", Fact::Yes(false)),
            ("local.lookup.time", Fact::Time(ms(0.3))),
            ("local.agent.time", Fact::Time(ms(0.6))),
            ("local.agent.keys", Fact::Number(1.0)),
            ("local.addresses.failed", Fact::Number(0.0)),
            ("login.kex", Fact::Text("mlkem768x25519-sha256".to_owned())),
            ("login.host_key", Fact::Text("ssh-ed25519".to_owned())),
            ("login.methods", Fact::Text("publickey,password".to_owned())),
            (
                "ssh_config.GSSAPIAuthentication",
                Fact::Text("yes".to_owned()),
            ),
        ]),
    }
}

/// The same with what commands of the user tell of a healthy host.
pub(crate) fn clean_no_root(round_trip_ms: f64) -> Evidence {
    let mut evidence = clean(round_trip_ms);
    evidence.tier = Tier::NoRoot;
    evidence.tier_notes = vec!["no root on the host".to_owned()];
    let host = facts(&[
        ("host.bare_exec.time", Fact::Time(ms(4.0 + round_trip_ms))),
        ("host.shell.time", Fact::Time(ms(5.0 + round_trip_ms))),
        ("host.second_exec.time", Fact::Time(ms(5.0 + round_trip_ms))),
        ("host.shell", Fact::Text("/bin/bash".to_owned())),
        (
            "host.shell_startup.files",
            Fact::Text("/home/me/.bashrc".to_owned()),
        ),
        ("host.id.time", Fact::Time(ms(2.0))),
        ("host.getent_passwd.time", Fact::Time(ms(1.5))),
        ("host.getent_hosts.time", Fact::Time(ms(2.0))),
        (
            "host.nsswitch.passwd",
            Fact::Text("files systemd".to_owned()),
        ),
        ("host.home.filesystem", Fact::Text("ext4".to_owned())),
        ("host.home.time", Fact::Time(ms(0.3))),
        ("host.pressure.cpu", Fact::Number(0.5)),
        ("host.pressure.io", Fact::Number(0.0)),
        ("host.pressure.memory", Fact::Number(0.0)),
        ("host.steal", Fact::Number(0.0)),
        ("host.throttled", Fact::Number(0.0)),
        ("host.load", Fact::Number(0.2)),
        ("host.sshd_config.readable", Fact::Yes(true)),
        ("host.sshd_config.UsePAM", Fact::Text("yes".to_owned())),
        ("host.authorized_keys.lines", Fact::Number(2.0)),
        ("host.authorized_keys.octets", Fact::Number(200.0)),
        ("host.listener", Fact::Yes(true)),
        ("host.forced_command", Fact::Yes(false)),
        ("host.tcp_wrappers", Fact::Text(String::new())),
        ("host.sshrc", Fact::Yes(false)),
        ("host.user_rc", Fact::Yes(false)),
        (
            "host.pam.motd",
            Fact::Text("session optional pam_motd.so motd=/run/motd.dynamic".to_owned()),
        ),
        ("host.motd_scripts.time", Fact::Time(ms(3.0))),
        (
            "host.pam.systemd",
            Fact::Text("session optional pam_systemd.so".to_owned()),
        ),
        ("host.pam.lastlog", Fact::Text(String::new())),
    ]);
    for (name, fact) in host.iter() {
        evidence.facts.insert(name, fact.clone());
    }
    evidence
}

/// Makes a phase of all logins longer.
pub(crate) fn slow(evidence: &mut Evidence, phase: Phase, by_ms: f64) {
    for client in [Client::Sshoal, Client::Ssh] {
        slow_of(evidence, client, phase, by_ms);
    }
}

/// Makes a phase of one client's logins longer.
pub(crate) fn slow_of(evidence: &mut Evidence, by: Client, phase: Phase, by_ms: f64) {
    for login in evidence.logins.iter_mut().filter(|login| login.by == by) {
        for span in login.spans.iter_mut().filter(|span| span.phase == phase) {
            span.duration += ms(by_ms);
        }
        follow(&mut login.spans);
    }
}

/// Phases one behind the other.
pub(crate) fn follow(spans: &mut [Span]) {
    let mut start = Duration::ZERO;
    for span in spans {
        span.start = start;
        start += span.duration;
    }
}

pub(crate) fn facts(pairs: &[(&str, Fact)]) -> Facts {
    let mut facts = Facts::default();
    for (name, fact) in pairs {
        facts.insert(*name, fact.clone());
    }
    facts
}

fn login(by: Client, jitter: f64, round_trip_ms: f64) -> Login {
    let span = |(phase, ours, ssh, trips): (Phase, f64, f64, u32)| {
        let own = if by == Client::Sshoal { ours } else { ssh };
        // ssh's Nagle holds a part of its messages back for another round trip.
        let padding = match phase {
            Phase::FirstRequest => PADDING_MS,
            Phase::SignedRequest => PADDING_MS + (PADDING_MS - round_trip_ms).max(0.0),
            _ => 0.0,
        };
        let nagle = matches!(phase, Phase::FirstRequest | Phase::FirstOutput);
        let trips = trips + u32::from(by == Client::Ssh && nagle);
        Span {
            phase,
            start: Duration::ZERO,
            duration: ms(own * jitter + padding + f64::from(trips) * round_trip_ms),
            detail: match (phase, by) {
                (Phase::KeyExchange, Client::Ssh) => "curve25519-sha256".to_owned(),
                (Phase::KeyExchange, Client::Sshoal) => "mlkem768x25519-sha256".to_owned(),
                (Phase::Connect, _) => "127.0.0.5".to_owned(),
                _ => String::new(),
            },
        }
    };
    let mut spans: Vec<Span> = CLEAN.into_iter().map(span).collect();
    follow(&mut spans);
    Login {
        by,
        spans,
        failure: None,
    }
}
