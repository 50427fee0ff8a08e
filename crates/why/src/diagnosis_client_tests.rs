//! This side's part, and what stock ssh alone pays for.

use super::*;

#[test]
fn hashed_known_hosts_cost_ssh_and_not_us() {
    let mut evidence = clean(0.05);
    slow_of(&mut evidence, Client::Ssh, Phase::Local, 120.0);
    slow_of(&mut evidence, Client::Ssh, Phase::KeyExchange, 115.0);
    // Ours is quicker.
    time(&mut evidence, "local.known_hosts.time", 8.0);
    evidence.facts.insert("local.known_hosts.hashed", true);
    evidence
        .facts
        .insert("local.known_hosts.octets", 2_300_000.0);
    let diagnosis = Diagnosis::of(&evidence);
    assert!(diagnosis.findings.is_empty());
    let [finding] = diagnosis.ssh_findings.as_slice() else {
        panic!("{:?}", diagnosis.ssh_findings)
    };
    assert_eq!(
        (finding.cause.id, finding.certainty),
        ("known-hosts-hashed", Certainty::Likely)
    );
    assert!(
        finding.cost > ms(200.0) && finding.cost < ms(235.0),
        "{:?}",
        finding.cost
    );
}

#[test]
fn a_thousand_lines_of_known_hosts_are_silent() {
    let mut evidence = clean(0.05);
    evidence.facts.insert("local.known_hosts.octets", 100_000.0);
    time(&mut evidence, "local.known_hosts.time", 3.0);
    slow_of(&mut evidence, Client::Ssh, Phase::Local, 3.0);
    let diagnosis = Diagnosis::of(&evidence);
    assert_eq!(diagnosis.all_findings().count(), 0);
}

#[test]
fn the_exchange_of_an_old_openssh_is_named_for_ssh() {
    let mut evidence = clean(0.05);
    slow_of(&mut evidence, Client::Ssh, Phase::KeyExchange, 90.0);
    for login in evidence
        .logins
        .iter_mut()
        .filter(|login| login.by == Client::Ssh)
    {
        for span in login
            .spans
            .iter_mut()
            .filter(|span| span.phase == Phase::KeyExchange)
        {
            span.detail = "sntrup761x25519-sha512@openssh.com".to_owned();
        }
    }
    let diagnosis = Diagnosis::of(&evidence);
    assert!(diagnosis.findings.is_empty());
    let ids: Vec<_> = diagnosis
        .ssh_findings
        .iter()
        .map(|finding| finding.cause.id)
        .collect();
    assert_eq!(ids, ["post-quantum-exchange"]);
    assert!(
        diagnosis.ssh_findings[0]
            .cause
            .fix
            .line
            .contains("do not drop")
    );
}

#[test]
fn what_all_clients_lose_is_not_ssh_s_own() {
    let mut evidence = clean_no_root(0.05);
    text(&mut evidence, "login.methods", "publickey,gssapi-with-mic");
    slow(&mut evidence, Phase::FirstRequest, 300.0);
    assert!(Diagnosis::of(&evidence).ssh_findings.is_empty());
    slow_of(&mut evidence, Client::Ssh, Phase::FirstRequest, 200.0);
    let diagnosis = Diagnosis::of(&evidence);
    assert_eq!(diagnosis.ssh_findings[0].cause.id, "gssapi");
    let off = diagnosis.ssh_findings[0].cost.abs_diff(ms(200.0));
    assert!(off < ms(10.0), "{off:?}");
}

#[test]
fn slow_phases_of_ssh_alone_are_not_the_host_s() {
    let mut evidence = clean_no_root(0.05);
    slow_of(&mut evidence, Client::Ssh, Phase::ChannelOpen, 42.0);
    let diagnosis = Diagnosis::of(&evidence);
    assert!(diagnosis.findings.is_empty());
    let ids: Vec<_> = diagnosis
        .ssh_findings
        .iter()
        .map(|finding| finding.cause.id)
        .collect();
    assert_eq!(ids, ["delayed-acknowledgement"]);
}

#[test]
fn names_and_addresses_of_this_side_are_judged() {
    let mut evidence = clean(0.05);
    slow(&mut evidence, Phase::Lookup, 5_000.0);
    time(&mut evidence, "local.lookup.time", 5_000.0);
    time(&mut evidence, "local.lookup.a.time", 2.0);
    time(&mut evidence, "local.lookup.aaaa.time", 2.0);
    only(&evidence, "lookup-pair", Certainty::Likely, 5_000.0);
    time(&mut evidence, "local.lookup.a.time", 5_000.0);
    only(&evidence, "slow-lookup", Certainty::Likely, 5_000.0);

    let mut evidence = clean(0.05);
    slow(&mut evidence, Phase::Connect, 250.0);
    evidence.facts.insert("local.addresses.failed", 1.0);
    only(&evidence, "dead-address", Certainty::Likely, 250.0);
    // Only where a whole family is dead, and the other one is not, it can be left out.
    for (failed, answered, id, line) in [
        ("inet6", "inet", "dead-ipv6", "AddressFamily inet"),
        ("inet", "inet6", "dead-ipv4", "AddressFamily inet6"),
        ("inet", "inet", "dead-address", ""),
        ("both", "inet6", "dead-address", ""),
    ] {
        text(&mut evidence, "local.addresses.failed.family", failed);
        text(&mut evidence, "local.addresses.answered.family", answered);
        let diagnosis = only(&evidence, id, Certainty::Likely, 250.0);
        let fix = diagnosis.findings[0].cause.fix.line;
        assert!(line.is_empty() || fix == line, "{fix}");
        assert_eq!(fix.contains("AddressFamily"), !line.is_empty(), "{fix}");
    }

    let mut evidence = clean(0.05);
    slow(&mut evidence, Phase::Connect, 1_000.0);
    only(&evidence, "lost-packets", Certainty::Likely, 1_000.0);

    let mut evidence = clean(0.05);
    slow(&mut evidence, Phase::Local, 300.0);
    time(&mut evidence, "local.ssh_config.time", 300.0);
    evidence.facts.insert("local.ssh_config.match_exec", true);
    only(&evidence, "match-exec", Certainty::Likely, 300.0);
}

#[test]
fn names_that_the_configuration_has_looked_up_are_not_its_length() {
    // As `ssh -G` writes it.
    for yes in ["true", "yes", "always"] {
        let mut evidence = clean(0.05);
        slow(&mut evidence, Phase::Local, 400.0);
        time(&mut evidence, "local.ssh_config.time", 400.0);
        only(&evidence, "ssh-config-size", Certainty::Likely, 400.0);
        text(&mut evidence, "ssh_config.CanonicalizeHostname", yes);
        only(&evidence, "canonical-names", Certainty::Likely, 400.0);
    }
}

#[test]
fn the_name_server_and_sntrup761_share_a_key_exchange_of_ssh() {
    let mut evidence = clean(0.05);
    slow_of(&mut evidence, Client::Ssh, Phase::KeyExchange, 90.0 + 200.0);
    for login in &mut evidence.logins {
        for span in &mut login.spans {
            if login.by == Client::Ssh && span.phase == Phase::KeyExchange {
                span.detail = "sntrup761x25519-sha512@openssh.com".to_owned();
            }
        }
    }
    let of_ssh = |evidence: &Evidence| {
        let diagnosis = Diagnosis::of(evidence);
        let found = diagnosis.ssh_findings.iter();
        let found = found.map(|finding| (finding.cause.id, finding.cost.as_millis() / 50));
        found.collect::<Vec<_>>()
    };
    assert_eq!(of_ssh(&evidence), [("post-quantum-exchange", 5)]);
    text(&mut evidence, "ssh_config.VerifyHostKeyDNS", "true");
    let both = [("host-key-dns", 3), ("post-quantum-exchange", 1)];
    assert_eq!(of_ssh(&evidence), both);
}

#[test]
fn behind_a_proxy_command_our_own_login_waits_for_acknowledgements_too() {
    let mut evidence = clean(0.05);
    slow(&mut evidence, Phase::ChannelOpen, 41.0);
    assert_eq!(found(&evidence), ["pam-motd"]);
    text(&mut evidence, "ssh_config.ProxyCommand", "connect %h");
    only(
        &evidence,
        "delayed-acknowledgement",
        Certainty::Likely,
        41.0,
    );
}

#[test]
fn what_ssh_s_own_log_times_is_proven_and_the_rest_is_the_exchange_s() {
    let mut evidence = clean(0.05);
    slow_of(&mut evidence, Client::Ssh, Phase::KeyExchangeInit, 130.0);
    slow_of(
        &mut evidence,
        Client::Ssh,
        Phase::KeyExchange,
        90.0 + 200.0 + 140.0,
    );
    for login in &mut evidence.logins {
        for span in &mut login.spans {
            if login.by == Client::Ssh && span.phase == Phase::KeyExchange {
                span.detail = "sntrup761x25519-sha512@openssh.com".to_owned();
            }
        }
    }
    text(&mut evidence, "ssh_config.VerifyHostKeyDNS", "true");
    time(&mut evidence, "ssh.host_key_dns.time", 195.0);
    evidence.facts.insert("local.known_hosts.hashed", true);
    evidence
        .facts
        .insert("local.known_hosts.octets", 1_000_000.0);
    time(&mut evidence, "ssh.known_hosts.time", 265.0);
    let diagnosis = Diagnosis::of(&evidence);
    let found = diagnosis.ssh_findings.iter();
    let found: Vec<_> = found
        .map(|it| (it.cause.id, it.certainty, (it.cost.as_millis() + 5) / 10))
        .collect();
    assert_eq!(
        found,
        [
            ("known-hosts-hashed", Certainty::Proven, 27),
            ("host-key-dns", Certainty::Proven, 20),
            ("post-quantum-exchange", Certainty::Likely, 9),
        ]
    );
}
