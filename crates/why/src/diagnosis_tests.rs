//! Evidence written by hand, and what must be found in it, and what must not.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;
use crate::causes::Resource;
use crate::evidence::{Fact, Login, Span};
use crate::fixtures::{clean, clean_no_root, follow, ms, slow, slow_of};

#[path = "diagnosis_host_tests.rs"]
mod host;

/// The findings of our login by name.
fn found(evidence: &Evidence) -> Vec<&'static str> {
    let diagnosis = Diagnosis::of(evidence);
    check_sums(&diagnosis);
    diagnosis
        .findings
        .iter()
        .map(|finding| finding.cause.id)
        .collect()
}

/// The only finding, with how well it is known, and its cost near to this.
fn only(evidence: &Evidence, id: &str, certainty: Certainty, cost_ms: f64) -> Diagnosis {
    let diagnosis = Diagnosis::of(evidence);
    check_sums(&diagnosis);
    let ids: Vec<&str> = diagnosis
        .findings
        .iter()
        .map(|finding| finding.cause.id)
        .collect();
    assert_eq!(ids, [id]);
    let finding = &diagnosis.findings[0];
    assert_eq!(finding.certainty, certainty, "{:?}", finding.evidence);
    let off = finding.cost.abs_diff(ms(cost_ms));
    assert!(
        off <= ms(10.0).max(ms(cost_ms / 10.0)),
        "{:?} for {cost_ms} ms",
        finding.cost
    );
    diagnosis
}

/// What is explained, expected and unexplained is the whole.
fn check_sums(diagnosis: &Diagnosis) {
    for timeline in &diagnosis.timelines {
        let mut whole = timeline.between;
        for stage in &timeline.stages {
            let shares: Duration = stage.shares.iter().map(|share| share.time).sum();
            assert_eq!(shares, stage.sample.median, "{:?}", stage.phase);
            whole += shares;
        }
        assert_eq!(whole, timeline.total);
    }
}

fn status(diagnosis: &Diagnosis, id: &str) -> Status {
    let verdict = diagnosis
        .verdicts
        .iter()
        .find(|verdict| verdict.cause.id == id);
    verdict.unwrap().status.clone()
}

fn is_ruled_out(diagnosis: &Diagnosis, id: &str) -> bool {
    matches!(status(diagnosis, id), Status::RuledOut(_))
}

fn text(evidence: &mut Evidence, name: &str, text: &str) {
    evidence.facts.insert(name, text);
}

fn time(evidence: &mut Evidence, name: &str, time_ms: f64) {
    evidence.facts.insert(name, Fact::Time(ms(time_ms)));
}

#[test]
fn clean_logins_are_silent_over_loopback_and_over_a_long_line() {
    for round_trip in [0.05, 0.9, 20.0, 100.0, 250.0] {
        for evidence in [clean(round_trip), clean_no_root(round_trip)] {
            let diagnosis = Diagnosis::of(&evidence);
            assert_eq!(found(&evidence), [""; 0], "{round_trip} ms");
            assert!(
                diagnosis.ssh_findings.is_empty(),
                "{:?}",
                diagnosis.ssh_findings
            );
            let ruled_out = diagnosis
                .verdicts
                .iter()
                .filter(|verdict| matches!(verdict.status, Status::RuledOut(_)));
            assert_eq!(ruled_out.count(), diagnosis.verdicts.len());
            let not_found =
                |verdict: &ResourceVerdict| matches!(verdict.status, Status::RuledOut(_));
            assert!(
                diagnosis.resources.iter().all(not_found),
                "{:?}",
                diagnosis.resources
            );
        }
    }
}

#[test]
fn use_dns_is_found_by_the_host_s_own_lookup() {
    let mut evidence = clean_no_root(0.05);
    slow(&mut evidence, Phase::FirstRequest, 11_000.0);
    text(&mut evidence, "host.sshd_config.UseDNS", "yes");
    time(&mut evidence, "host.getent_hosts.time", 10_000.0);
    let diagnosis = only(&evidence, "use-dns", Certainty::Likely, 11_000.0);
    let finding = &diagnosis.findings[0];
    assert_eq!(
        (finding.cause.fix.file, finding.cause.fix.line),
        ("/etc/ssh/sshd_config", "UseDNS no")
    );
    assert!(
        finding.evidence.iter().any(|line| line.contains("10.00 s")),
        "{:?}",
        finding.evidence
    );
    assert!(is_ruled_out(&diagnosis, "name-service"));
    let unexplained = diagnosis.timelines[0].unexplained;
    assert!(unexplained < ms(10.0), "{unexplained:?}");
}

#[test]
fn use_dns_is_suspected_from_the_client_alone() {
    let mut evidence = clean(0.05);
    slow(&mut evidence, Phase::FirstRequest, 11_000.0);
    let diagnosis = only(&evidence, "use-dns", Certainty::Suspected, 11_000.0);
    let words = diagnosis.findings[0].evidence.last().unwrap();
    assert!(words.contains(NOT_APART), "{words}");
    // The banner is not late.
    assert!(is_ruled_out(&diagnosis, "name-service"));
}

#[test]
fn use_dns_with_a_quick_resolver_is_silent() {
    let mut evidence = clean_no_root(0.05);
    text(&mut evidence, "host.sshd_config.UseDNS", "yes");
    assert_eq!(found(&evidence), [""; 0]);
    // Nor is it blamed for what another cause costs there.
    slow(&mut evidence, Phase::FirstRequest, 300.0);
    let diagnosis = Diagnosis::of(&evidence);
    assert_eq!(
        status(&diagnosis, "use-dns"),
        Status::RuledOut("host.getent_hosts.time: 2.0 ms".to_owned())
    );
    assert!(diagnosis.timelines[0].unexplained > ms(290.0));
}

#[test]
fn motd_scripts_are_found_by_their_own_time() {
    let mut evidence = clean_no_root(0.05);
    slow(&mut evidence, Phase::ChannelOpen, 800.0);
    time(&mut evidence, "host.motd_scripts.time", 810.0);
    text(
        &mut evidence,
        "host.motd_scripts.slowest",
        "/etc/update-motd.d/50-slow 790 ms",
    );
    let diagnosis = only(&evidence, "pam-motd", Certainty::Proven, 800.0);
    let told = diagnosis.findings[0].evidence.join("\n");
    assert!(
        told.contains("50-slow") && told.contains("810 ms"),
        "{told}"
    );
}

#[test]
fn motd_without_scripts_at_login_is_ruled_out_and_the_rest_is_a_suspicion() {
    let mut evidence = clean_no_root(0.05);
    slow(&mut evidence, Phase::ChannelOpen, 700.0);
    text(
        &mut evidence,
        "host.pam.motd",
        "session optional pam_motd.so noupdate",
    );
    time(&mut evidence, "host.motd_scripts.time", 700.0);
    let diagnosis = only(&evidence, "pam-session", Certainty::Suspected, 700.0);
    assert!(is_ruled_out(&diagnosis, "pam-motd"));
}

#[test]
fn quick_motd_scripts_are_not_blamed_for_a_slow_module() {
    let mut evidence = clean_no_root(0.05);
    slow(&mut evidence, Phase::ChannelOpen, 200.0);
    only(&evidence, "pam-session", Certainty::Suspected, 200.0);
}

#[test]
fn a_trace_proves_a_slow_module_or_rules_it_out() {
    let mut evidence = clean_no_root(0.05);
    slow(&mut evidence, Phase::ChannelOpen, 200.0);
    time(&mut evidence, "trace.pam_session.time", 202.0);
    text(
        &mut evidence,
        "trace.pam_session.slowest",
        "pam_exec.so 201.0 ms",
    );
    let diagnosis = only(&evidence, "pam-session", Certainty::Proven, 200.0);
    let told = diagnosis.findings[0].evidence.join("\n");
    assert!(told.contains("pam_exec.so"), "{told}");
    time(&mut evidence, "trace.pam_session.time", 1.0);
    assert!(is_ruled_out(&Diagnosis::of(&evidence), "pam-session"));
}

#[test]
fn what_a_traced_login_spends_most_of_its_time_on_is_found_without_a_cause() {
    let mut evidence = clean_no_root(0.05);
    time(&mut evidence, "trace.wall.time", 400.0);
    time(&mut evidence, "trace.storage.time", 300.0);
    time(&mut evidence, "trace.cpu.time", 40.0);
    let diagnosis = Diagnosis::of(&evidence);
    let verdict = |resource| {
        let mut verdicts = diagnosis.resources.iter();
        verdicts
            .find(|verdict| verdict.resource == resource)
            .unwrap()
    };
    let disks = verdict(Resource::BlockIo);
    assert!(matches!(disks.status, Status::Found), "{disks:?}");
    assert!(disks.words.contains("300 ms of the 400 ms"), "{disks:?}");
    let cpu = verdict(Resource::Cpu);
    assert!(matches!(cpu.status, Status::RuledOut(_)), "{cpu:?}");
    assert!(cpu.words.contains("worked 40 ms"), "{cpu:?}");
}

#[test]
fn a_slow_shell_start_is_found_beside_a_bare_one() {
    let mut evidence = clean_no_root(0.05);
    slow(&mut evidence, Phase::FirstOutput, 260.0);
    time(&mut evidence, "host.shell.time", 265.0);
    let diagnosis = only(&evidence, "shell-startup", Certainty::Likely, 260.0);
    assert!(
        diagnosis.findings[0]
            .evidence
            .join("\n")
            .contains("/home/me/.bashrc")
    );
}

#[test]
fn a_shell_as_quick_as_a_bare_one_is_not_blamed() {
    let mut evidence = clean_no_root(0.05);
    slow(&mut evidence, Phase::FirstOutput, 260.0);
    evidence.facts.insert("host.user_rc", true);
    let diagnosis = only(&evidence, "ssh-rc", Certainty::Likely, 260.0);
    assert!(is_ruled_out(&diagnosis, "shell-startup"));
}

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
fn many_keys_of_the_agent_are_counted() {
    let mut evidence = clean(0.05);
    evidence.facts.insert("local.agent.keys", 6.0);
    for login in &mut evidence.logins {
        let at = login
            .spans
            .iter()
            .position(|span| span.phase == Phase::KeyProbe)
            .unwrap();
        let mut refused = login.spans[at].clone();
        refused.duration += ms(7.3);
        for _ in 0..5 {
            login.spans.insert(at, refused.clone());
        }
        follow(&mut login.spans);
    }
    let diagnosis = only(&evidence, "agent-keys", Certainty::Proven, 5.0 * 7.8);
    assert!(diagnosis.findings[0].evidence[0].contains("6 keys"));
}

#[test]
fn an_authorized_keys_command_costs_the_probe_and_the_signature() {
    let mut evidence = clean_no_root(0.05);
    // 0.7 s, padded to 7.3 ms x 2^7: the signed request waits for the end of the probe's padding, too.
    let padded = 7.3 * 128.0;
    slow(&mut evidence, Phase::KeyProbe, 700.0);
    slow(
        &mut evidence,
        Phase::SignedRequest,
        2.0 * padded - 700.0 - 14.6,
    );
    text(
        &mut evidence,
        "host.sshd_config.AuthorizedKeysCommand",
        "/usr/local/bin/keys %u",
    );
    let diagnosis = only(
        &evidence,
        "authorized-keys-command",
        Certainty::Likely,
        2.0 * padded - 14.6,
    );
    // What of the signed request is more than that is not the command's.
    slow(&mut evidence, Phase::SignedRequest, 500.0);
    assert_eq!(found(&evidence), ["authorized-keys-command", "pam-account"]);
    assert_eq!(diagnosis.findings[0].shares.len(), 2);
}

#[test]
fn how_much_work_a_padded_first_request_is_is_told() {
    let mut evidence = clean_no_root(0.05);
    text(&mut evidence, "host.sshd_config.UseDNS", "yes");
    time(&mut evidence, "host.getent_hosts.time", 200.0);
    slow(&mut evidence, Phase::FirstRequest, 7.3 * 31.0);
    let diagnosis = only(&evidence, "use-dns", Certainty::Likely, 7.3 * 31.0);
    let told = diagnosis.findings[0].evidence.join("\n");
    assert!(
        told.contains("x 2^5: the work itself takes between"),
        "{told}"
    );
    // The same lookup once more in PAM, and twice for the session.
    slow(&mut evidence, Phase::SignedRequest, 200.0);
    slow(&mut evidence, Phase::ChannelOpen, 400.0);
    only(&evidence, "use-dns", Certainty::Likely, 826.3);
    // Timed on the host it takes a little longer, with the programs that ask.
    time(&mut evidence, "host.getent_hosts.time", 220.0);
    only(&evidence, "use-dns", Certainty::Likely, 826.3);
    time(&mut evidence, "host.getent_hosts.time", 200.0);
    slow(&mut evidence, Phase::ChannelOpen, 90.0);
    assert_eq!(found(&evidence), ["pam-session", "use-dns"]);
}

#[test]
fn a_quick_authorized_keys_command_is_not_blamed_for_pam_s_account() {
    let mut evidence = clean_no_root(0.05);
    slow(&mut evidence, Phase::SignedRequest, 200.0);
    text(
        &mut evidence,
        "host.sshd_config.AuthorizedKeysCommand",
        "/usr/local/bin/keys %u",
    );
    only(&evidence, "pam-account", Certainty::Suspected, 200.0);
}

#[test]
fn slow_keys_without_a_command_are_those_of_a_huge_file() {
    let mut evidence = clean_no_root(0.05);
    slow(&mut evidence, Phase::KeyProbe, 230.0);
    slow(&mut evidence, Phase::SignedRequest, 230.0);
    evidence
        .facts
        .insert("host.authorized_keys.lines", 100_000.0);
    let diagnosis = only(&evidence, "authorized-keys-size", Certainty::Likely, 460.0);
    assert!(is_ruled_out(&diagnosis, "authorized-keys-command"));
    // One of a few lines is not.
    evidence.facts.insert("host.authorized_keys.lines", 3.0);
    assert_eq!(found(&evidence), [""; 0]);
}

#[test]
fn slow_keys_are_suspected_where_the_probe_is_slow_too() {
    let mut evidence = clean(0.05);
    slow(&mut evidence, Phase::KeyProbe, 230.0);
    slow(&mut evidence, Phase::SignedRequest, 230.0);
    let diagnosis = only(
        &evidence,
        "authorized-keys-command",
        Certainty::Suspected,
        460.0,
    );
    let alternatives = &diagnosis.findings[0].alternatives;
    assert_eq!(*alternatives, ["authorized-keys-size", "revoked-keys"]);
    assert!(is_ruled_out(&diagnosis, "pam-account"));
}

#[test]
fn slow_lookups_of_users_cost_several_phases() {
    let mut evidence = clean_no_root(0.05);
    for (phase, calls) in [
        (Phase::Banner, 1.0),
        (Phase::FirstRequest, 2.0),
        (Phase::SignedRequest, 1.0),
        (Phase::FirstOutput, 1.0),
    ] {
        slow(&mut evidence, phase, 300.0 * calls);
    }
    time(&mut evidence, "host.id.time", 305.0);
    time(&mut evidence, "host.getent_passwd.time", 302.0);
    let diagnosis = only(&evidence, "name-service", Certainty::Proven, 1_500.0);
    assert_eq!(diagnosis.findings[0].shares.len(), 4);
    assert!(is_ruled_out(&diagnosis, "use-dns"));
}

#[test]
fn slow_lookups_of_users_are_suspected_by_their_phases() {
    let mut evidence = clean(0.05);
    for phase in [Phase::Banner, Phase::FirstRequest, Phase::FirstOutput] {
        slow(&mut evidence, phase, 300.0);
    }
    let diagnosis = only(&evidence, "name-service", Certainty::Suspected, 900.0);
    assert!(matches!(
        status(&diagnosis, "use-dns"),
        Status::NotLookedAt(_)
    ));
}

#[test]
fn lookups_that_are_no_slower_than_any_program_are_not_blamed() {
    let mut evidence = clean_no_root(0.05);
    for phase in [Phase::Banner, Phase::FirstRequest] {
        slow(&mut evidence, phase, 40.0);
    }
    time(&mut evidence, "host.id.time", 40.0);
    time(&mut evidence, "host.bare_exec.time", 30.0);
    let diagnosis = Diagnosis::of(&evidence);
    assert!(is_ruled_out(&diagnosis, "name-service"));
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
fn a_quota_of_cpu_stretches_all_phases() {
    let mut evidence = clean_no_root(0.05);
    for phase in causes::SERVER {
        slow(&mut evidence, *phase, 75.0);
    }
    evidence.facts.insert("host.cpu_quota", 5.0);
    evidence.facts.insert("host.throttled", 31.0);
    // All that is measured on the host is slow then, and not to blame.
    time(&mut evidence, "host.id.time", 90.0);
    time(&mut evidence, "host.bare_exec.time", 90.0);
    time(&mut evidence, "host.shell.time", 180.0);
    let diagnosis = only(&evidence, "cpu-quota", Certainty::Proven, 600.0);
    let cpu = &diagnosis.resources[0];
    assert_eq!(
        (cpu.resource, &cpu.status),
        (causes::Resource::Cpu, &Status::Found)
    );
    assert!(cpu.words.contains("quota 5 % of a core"), "{}", cpu.words);
}

#[test]
fn phases_that_are_all_stretched_point_at_the_processor() {
    let mut evidence = clean(0.05);
    for phase in causes::SERVER {
        slow(&mut evidence, *phase, 75.0);
    }
    only(&evidence, "cpu-quota", Certainty::Suspected, 600.0);
}

#[test]
fn a_quota_that_does_not_bite_is_ruled_out() {
    let mut evidence = clean_no_root(0.05);
    evidence.facts.insert("host.cpu_quota", 40.0);
    slow(&mut evidence, Phase::SignedRequest, 200.0);
    slow(&mut evidence, Phase::ChannelOpen, 300.0);
    slow(&mut evidence, Phase::FirstOutput, 260.0);
    time(&mut evidence, "host.shell.time", 265.0);
    assert_eq!(
        found(&evidence),
        ["pam-session", "shell-startup", "pam-account"]
    );
    assert!(is_ruled_out(&Diagnosis::of(&evidence), "cpu-quota"));
}

#[test]
fn busy_processors_take_no_more_than_the_phases_are_stretched_by() {
    let mut evidence = clean_no_root(0.05);
    for phase in causes::SERVER {
        slow(&mut evidence, *phase, 12.0);
    }
    slow(&mut evidence, Phase::SignedRequest, 400.0);
    evidence.facts.insert("host.pressure.cpu", 55.0);
    assert_eq!(found(&evidence), ["pam-account", "cpu-pressure"]);
}

#[test]
fn a_text_in_a_banner_s_place_is_max_startups() {
    let mut evidence = clean(0.05);
    let refused = Login {
        by: Client::Sshoal,
        spans: vec![Span {
            phase: Phase::Connect,
            start: Duration::ZERO,
            duration: ms(0.2),
            detail: String::new(),
        }],
        failure: Some("no identification string: Exceeded MaxStartups".to_owned()),
    };
    evidence.logins.push(refused.clone());
    text(
        &mut evidence,
        "login.refused_text",
        "Exceeded MaxStartups\r\n",
    );
    let diagnosis = Diagnosis::of(&evidence);
    let [finding] = diagnosis.findings.as_slice() else {
        panic!("{:?}", diagnosis.findings)
    };
    assert_eq!(
        (finding.cause.id, finding.certainty),
        ("max-startups", Certainty::Proven)
    );
    assert_eq!(finding.cause.fix.line, "MaxStartups 100:30:500");
    assert!(is_ruled_out(&diagnosis, "source-penalties"));
    // Nothing but refusals is found, too.
    evidence.logins = vec![refused];
    assert_eq!(found(&evidence), ["max-startups"]);
}

#[test]
fn the_text_of_later_versions_may_be_a_penalty_too() {
    let mut evidence = clean(0.05);
    evidence.identification = Some("SSH-2.0-OpenSSH_10.0".to_owned());
    text(
        &mut evidence,
        "login.refused_text",
        "Not allowed at this time\r\n",
    );
    let diagnosis = Diagnosis::of(&evidence);
    assert_eq!(found(&evidence), ["max-startups"]);
    assert_eq!(diagnosis.findings[0].alternatives, ["source-penalties"]);
    assert!(matches!(
        status(&diagnosis, "source-penalties"),
        Status::NotLookedAt(_)
    ));
    evidence.identification = Some("SSH-2.0-OpenSSH_9.7".to_owned());
    let diagnosis = Diagnosis::of(&evidence);
    assert!(diagnosis.findings[0].alternatives.is_empty());
    assert!(is_ruled_out(&diagnosis, "source-penalties"));
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
fn a_home_on_the_network_is_found_by_its_own_time() {
    let mut evidence = clean_no_root(0.05);
    for phase in [Phase::KeyProbe, Phase::SignedRequest, Phase::FirstOutput] {
        slow(&mut evidence, phase, 120.0);
    }
    text(&mut evidence, "host.home.filesystem", "nfs4");
    time(&mut evidence, "host.home.time", 60.0);
    only(&evidence, "network-home", Certainty::Proven, 360.0);
}

#[test]
fn a_large_rsa_host_key_is_found_by_its_algorithm() {
    let mut evidence = clean(0.05);
    slow(&mut evidence, Phase::KeyExchange, 55.0);
    text(&mut evidence, "login.host_key", "rsa-sha2-512");
    only(&evidence, "rsa-host-key", Certainty::Likely, 50.0);
    text(&mut evidence, "login.host_key", "ssh-ed25519");
    assert_eq!(found(&evidence), [""; 0]);
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
fn noise_is_not_found() {
    let mut evidence = clean(0.05);
    for (count, login) in evidence.logins.iter_mut().enumerate() {
        for span in login
            .spans
            .iter_mut()
            .filter(|span| span.phase == Phase::FirstRequest)
        {
            span.duration += ms(60.0 * f64::from(u32::try_from(count / 2).unwrap()));
        }
        follow(&mut login.spans);
    }
    assert_eq!(found(&evidence), [""; 0]);
}

#[test]
fn a_single_cause_is_found_from_twenty_milliseconds_on() {
    for by in [20.0, 50.0, 200.0, 700.0] {
        let mut evidence = clean_no_root(0.05);
        slow(&mut evidence, Phase::SignedRequest, by);
        only(&evidence, "pam-account", Certainty::Suspected, by);
    }
}

#[test]
fn two_causes_are_told_apart() {
    let mut evidence = clean_no_root(0.05);
    slow(&mut evidence, Phase::ChannelOpen, 800.0);
    time(&mut evidence, "host.motd_scripts.time", 800.0);
    slow(&mut evidence, Phase::FirstOutput, 260.0);
    time(&mut evidence, "host.shell.time", 265.0);
    assert_eq!(found(&evidence), ["pam-motd", "shell-startup"]);
}

#[test]
fn nothing_measured_is_nothing_found_and_nothing_ruled_out() {
    let mut evidence = clean(0.05);
    evidence.logins.clear();
    let diagnosis = Diagnosis::of(&evidence);
    assert_eq!(diagnosis.all_findings().count(), 0);
    assert!(diagnosis.timelines.is_empty());
    assert!(
        !diagnosis
            .verdicts
            .iter()
            .any(|verdict| matches!(verdict.status, Status::RuledOut(_)))
    );
}

#[test]
fn without_our_login_that_of_ssh_is_judged() {
    let mut evidence = clean_no_root(0.05);
    evidence.logins.retain(|login| login.by == Client::Ssh);
    slow(&mut evidence, Phase::ChannelOpen, 800.0);
    time(&mut evidence, "host.motd_scripts.time", 800.0);
    let diagnosis = only(&evidence, "pam-motd", Certainty::Proven, 800.0);
    assert_eq!(diagnosis.findings[0].by, Client::Ssh);
}

proptest! {
    #[test]
    fn clean_logins_of_any_round_trip_and_jitter_are_silent(
        round_trip in 0.0..400.0_f64,
        jitter in prop::collection::vec(0.5..1.3_f64, 110),
        no_root: bool,
    ) {
        let mut evidence = if no_root { clean_no_root(round_trip) } else { clean(round_trip) };
        let mut jitter = jitter.into_iter();
        for login in &mut evidence.logins {
            for span in &mut login.spans {
                // What sshd's part of a phase takes differs, not the line.
                let own = span.duration.min(ms(12.0));
                span.duration = span.duration - own + own.mul_f64(jitter.next().unwrap());
            }
            follow(&mut login.spans);
        }
        let diagnosis = Diagnosis::of(&evidence);
        check_sums(&diagnosis);
        let ids: Vec<_> = diagnosis.findings.iter().map(|finding| finding.cause.id).collect();
        prop_assert!(ids.is_empty(), "{:?}", ids);
    }

    #[test]
    fn whatever_is_slow_is_explained_or_told_as_unexplained(
        slower in prop::collection::vec(0.0..3_000.0_f64, Phase::ALL.len()),
        no_root: bool,
    ) {
        let mut evidence = if no_root { clean_no_root(1.0) } else { clean(1.0) };
        for (phase, by) in Phase::ALL.into_iter().zip(slower) {
            slow(&mut evidence, phase, by);
        }
        let diagnosis = Diagnosis::of(&evidence);
        check_sums(&diagnosis);
        for finding in &diagnosis.findings {
            let shares: Duration = finding.shares.iter().map(|(_, time)| *time).sum();
            prop_assert_eq!(shares, finding.cost);
            prop_assert!(finding.cost >= reckoning::LEAST);
        }
    }

    #[test]
    fn no_facts_make_it_panic(numbers in prop::collection::vec(-1e18..1e18_f64, 12), words: String) {
        let mut evidence = clean_no_root(0.05);
        let names: Vec<String> = evidence.facts.iter().map(|(name, _)| name.to_owned()).collect();
        for (name, number) in names.iter().zip(numbers.iter().cycle()) {
            let fact = match number.abs() as u64 % 3 {
                0 => Fact::Number(*number),
                1 => Fact::Text(words.clone()),
                _ => Fact::Time(Duration::from_secs(number.abs() as u64 % 1_000_000)),
            };
            evidence.facts.insert(name.clone(), fact);
        }
        check_sums(&Diagnosis::of(&evidence));
    }
}
