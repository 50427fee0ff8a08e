//! Names, keys and lookups of users: what is lost until somebody is let in.

use super::*;

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
fn what_a_match_changes_or_nobody_may_read_has_no_default() {
    let mut evidence = clean_no_root(0.05);
    for phase in [Phase::KeyProbe, Phase::SignedRequest] {
        slow(&mut evidence, phase, 300.0);
    }
    assert!(is_ruled_out(
        &Diagnosis::of(&evidence),
        "authorized-keys-command"
    ));
    text(
        &mut evidence,
        "host.sshd_config.in_match",
        "PermitUserRC AuthorizedKeysCommand",
    );
    assert!(!is_ruled_out(
        &Diagnosis::of(&evidence),
        "authorized-keys-command"
    ));
    text(&mut evidence, "host.sshd_config.in_match", "PermitUserRC");
    evidence.facts.insert("host.sshd_config.readable", false);
    assert!(!is_ruled_out(
        &Diagnosis::of(&evidence),
        "authorized-keys-command"
    ));
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

/// A host that looks users up slowly: once each before the session, and five times for that.
fn slow_users(call_ms: f64) -> Evidence {
    let mut evidence = clean_no_root(0.05);
    time(&mut evidence, "host.id.time", call_ms + 2.0);
    time(&mut evidence, "host.getent_passwd.time", call_ms + 1.0);
    slow(&mut evidence, Phase::Banner, call_ms);
    slow(&mut evidence, Phase::SignedRequest, call_ms);
    slow(&mut evidence, Phase::ChannelOpen, call_ms * 5.0);
    evidence
}

#[test]
fn slow_lookups_of_users_leave_to_others_what_is_more_than_there_may_be_of_them() {
    only(
        &slow_users(20.0),
        "name-service",
        Certainty::Proven,
        7.0 * 20.0,
    );
    for (phase, other) in [
        (Phase::SignedRequest, "pam-account"),
        (Phase::ChannelOpen, "pam-session"),
    ] {
        let mut evidence = slow_users(20.0);
        slow(&mut evidence, phase, 300.0);
        assert_eq!(found(&evidence), [other, "name-service"]);
        let cost = cost_of(&evidence, "name-service");
        assert!(cost.abs_diff(ms(140.0)) < ms(14.0), "{cost:?}");
    }
}

#[test]
fn less_than_a_lookup_of_a_user_takes_is_none() {
    let mut evidence = slow_users(300.0);
    slow(&mut evidence, Phase::FirstOutput, 180.0);
    let cost = cost_of(&evidence, "name-service");
    assert!(cost.abs_diff(ms(2_100.0)) < ms(20.0), "{cost:?}");
    slow(&mut evidence, Phase::FirstOutput, 110.0);
    let cost = cost_of(&evidence, "name-service");
    assert!(cost > ms(2_300.0), "{cost:?}");
}

#[test]
fn what_sshd_pads_a_slow_command_for_keys_with_is_none_of_the_name_service_s() {
    let mut evidence = slow_users(20.0);
    text(
        &mut evidence,
        "host.sshd_config.AuthorizedKeysCommand",
        "/usr/local/bin/keys %u",
    );
    let padded = 7.3 * 128.0;
    slow(&mut evidence, Phase::KeyProbe, 720.0);
    slow(
        &mut evidence,
        Phase::SignedRequest,
        2.0 * padded - 720.0 - 14.6,
    );
    let expected = ["authorized-keys-command", "name-service"];
    assert_eq!(found(&evidence), expected);
    let cost = cost_of(&evidence, "name-service");
    assert!(cost.abs_diff(ms(160.0)) < ms(16.0), "{cost:?}");
}

#[test]
fn some_thousand_lines_of_keys_take_no_second() {
    let mut evidence = clean_no_root(0.05);
    slow(&mut evidence, Phase::KeyProbe, 700.0);
    slow(&mut evidence, Phase::SignedRequest, 700.0);
    evidence.facts.insert("host.authorized_keys.lines", 3_000.0);
    only(&evidence, "authorized-keys-size", Certainty::Likely, 240.0);
}

#[test]
fn a_first_request_that_is_not_padded_loses_no_more_by_names_than_was_timed() {
    let mut evidence = clean_no_root(0.05);
    evidence.identification = Some("SSH-2.0-OpenSSH_7.4".to_owned());
    let spans = evidence.logins.iter_mut().flat_map(|it| &mut it.spans);
    let is_padded = |span: &&mut Span| {
        let padded = [Phase::FirstRequest, Phase::SignedRequest];
        padded.contains(&span.phase)
    };
    for span in spans.filter(is_padded) {
        span.duration = ms(0.5);
    }
    slow(&mut evidence, Phase::FirstRequest, 300.0);
    text(&mut evidence, "host.sshd_config.UseDNS", "yes");
    time(&mut evidence, "host.getent_hosts.time", 20.0);
    assert_eq!(cost_of(&evidence, "use-dns"), ms(45.0));
    // Who does not answer is waited for longer.
    time(&mut evidence, "host.getent_hosts.time", 200.0);
    only(&evidence, "use-dns", Certainty::Likely, 300.0);
}
