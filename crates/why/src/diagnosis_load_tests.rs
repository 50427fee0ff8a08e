//! Processors, host keys, and servers that turn logins away.

use super::*;

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
fn a_quota_that_strikes_each_login_elsewhere_is_told_by_what_sshd_has_waited() {
    let mut evidence = clean_no_root(0.05);
    let phases = [Phase::Banner, Phase::KeyExchange, Phase::ChannelOpen];
    for (number, login) in evidence.logins.iter_mut().enumerate() {
        for span in &mut login.spans {
            if phases[number / 2 % 3] == span.phase {
                span.duration += ms(300.0);
            }
        }
        crate::fixtures::follow(&mut login.spans);
    }
    evidence.facts.insert("host.cpu_quota", 5.0);
    evidence.facts.insert("host.throttled", 31.0);
    evidence.facts.insert("host.pressure.cpu", 40.0);
    time(&mut evidence, "host.contention.time", 280.0);
    assert!(!found(&evidence).contains(&"cpu-quota"));
    evidence.facts.insert("host.contention.share", 85.0);
    // Medians do not show it where most logins are struck elsewhere.
    slow(&mut evidence, Phase::SignedRequest, 90.0);
    assert_eq!(found(&evidence), ["cpu-quota"]);
}

#[test]
fn a_quota_takes_what_a_login_has_waited_and_leaves_what_a_cause_was_seen_to_take() {
    let mut evidence = clean_no_root(0.05);
    for phase in causes::SERVER {
        slow(&mut evidence, *phase, 40.0);
    }
    slow(&mut evidence, Phase::ChannelOpen, 600.0);
    evidence.facts.insert("host.cpu_quota", 20.0);
    evidence.facts.insert("host.throttled", 31.0);
    // It throttled once, and no longer does.
    time(&mut evidence, "host.contention.time", 4.0);
    assert!(!found(&evidence).contains(&"cpu-quota"));
    time(&mut evidence, "trace.contention.time", 300.0);
    // It is not waited for twice.
    evidence.facts.insert("host.pressure.cpu", 60.0);
    time(&mut evidence, "trace.motd.time", 600.0);
    time(&mut evidence, "trace.pam_session.time", 1.0);
    assert_eq!(found(&evidence), ["pam-motd", "cpu-quota"]);
    let diagnosis = Diagnosis::of(&evidence);
    let costs: Vec<_> = diagnosis.findings.iter().map(|it| it.cost).collect();
    assert!(costs[0] > ms(580.0), "{costs:?}");
    assert_eq!(costs[1], ms(300.0));
    // Those that were not traced may take longer than that one, and wait for as large a part of it.
    let of_part = |per_cent: f64| {
        let mut evidence = evidence.clone();
        evidence.facts.insert("trace.contention.share", per_cent);
        let findings = Diagnosis::of(&evidence).findings;
        let quota = findings.iter().find(|it| it.cause.id == "cpu-quota");
        quota.unwrap().cost
    };
    let tenth = of_part(10.0);
    assert!(tenth.abs_diff(ms(85.0)) < ms(20.0), "{tenth:?}");
    assert!(of_part(20.0).abs_diff(tenth * 2) < ms(1.0));
    time(&mut evidence, "trace.contention.time", 700.0);
    let findings = Diagnosis::of(&evidence).findings;
    let motd = findings
        .iter()
        .find(|it| it.cause.id == "pam-motd")
        .unwrap();
    assert_eq!(motd.cost, costs[0]);
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
fn a_login_that_was_seen_to_wait_for_a_processor_has_lost_its_time_to_others() {
    let mut evidence = clean_no_root(0.05);
    for phase in causes::SERVER {
        slow(&mut evidence, *phase, 12.0);
    }
    // sshd's first process is a new one, which waits for its turn.
    slow(&mut evidence, Phase::Banner, 1_200.0);
    evidence.facts.insert("host.pressure.cpu", 99.0);
    time(&mut evidence, "host.contention.time", 220.0);
    evidence.facts.insert("host.contention.share", 46.0);
    only(&evidence, "cpu-pressure", Certainty::Likely, 1_296.0);
    // A trace tells of all that it waited.
    time(&mut evidence, "trace.contention.time", 700.0);
    evidence.facts.insert("trace.contention.share", 50.0);
    let diagnosis = only(&evidence, "cpu-pressure", Certainty::Likely, 700.0);
    assert!(diagnosis.timelines[0].unexplained > ms(500.0));
    // One that hardly waited has lost it elsewhere.
    time(&mut evidence, "trace.contention.time", 60.0);
    evidence.facts.insert("trace.contention.share", 5.0);
    let diagnosis = Diagnosis::of(&evidence);
    assert_eq!(diagnosis.findings[0].cause.id, "cpu-pressure");
    assert!(diagnosis.findings[0].cost <= ms(60.0), "{diagnosis:?}");
    // On a small host the pressure may be that of these logins alone.
    evidence.facts.insert("trace.contention.share", 3.0);
    assert!(is_ruled_out(&Diagnosis::of(&evidence), "cpu-pressure"));
}

#[test]
fn others_take_what_the_login_s_own_causes_leave() {
    let mut evidence = clean_no_root(0.05);
    for phase in causes::SERVER {
        slow(&mut evidence, *phase, 12.0);
    }
    slow(&mut evidence, Phase::SignedRequest, 60.0);
    evidence.facts.insert("host.pressure.cpu", 55.0);
    time(&mut evidence, "host.contention.time", 400.0);
    evidence.facts.insert("host.contention.share", 90.0);
    let diagnosis = Diagnosis::of(&evidence);
    let found = diagnosis
        .findings
        .iter()
        .find(|it| it.cause.id == "pam-account");
    let cost = found.map_or(Duration::ZERO, |it| it.cost);
    assert!(cost.abs_diff(ms(60.0)) < ms(10.0), "{cost:?}");
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
    // As long as nobody knows whether each source has a limit of its own, that would look the same.
    let diagnosis = Diagnosis::of(&evidence);
    let finding = &diagnosis.findings[0];
    assert_eq!(
        (finding.cause.id, finding.certainty),
        ("max-startups", Certainty::Likely)
    );
    assert_eq!(finding.alternatives, ["per-source-startups"]);
    evidence.facts.insert("host.sshd_config.readable", true);
    text(&mut evidence, "host.sshd_config.PerSourceMaxStartups", "2");
    let diagnosis = Diagnosis::of(&evidence);
    let finding = &diagnosis.findings[0];
    assert_eq!(
        (finding.cause.id, finding.cause.fix.line),
        ("per-source-startups", "PerSourceMaxStartups 100")
    );
    assert_eq!(finding.alternatives, ["max-startups"]);
    text(
        &mut evidence,
        "host.sshd_config.PerSourceMaxStartups",
        "none",
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
    assert_eq!(
        diagnosis.findings[0].alternatives,
        ["source-penalties", "per-source-startups"]
    );
    assert!(matches!(
        status(&diagnosis, "source-penalties"),
        Status::NotLookedAt(_)
    ));
    evidence.identification = Some("SSH-2.0-OpenSSH_9.7".to_owned());
    let diagnosis = Diagnosis::of(&evidence);
    assert_eq!(diagnosis.findings[0].alternatives, ["per-source-startups"]);
    evidence.identification = Some("SSH-2.0-OpenSSH_8.4".to_owned());
    let diagnosis = Diagnosis::of(&evidence);
    assert!(diagnosis.findings[0].alternatives.is_empty());
    assert!(is_ruled_out(&diagnosis, "source-penalties"));
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
fn a_hypervisor_has_taken_no_more_of_a_phase_than_of_the_host_s_work() {
    let mut evidence = clean_no_root(0.05);
    for phase in causes::SERVER {
        slow(&mut evidence, *phase, 12.0);
    }
    evidence.facts.insert("host.steal", 15.0);
    evidence.facts.insert("host.steal.share", 90.0);
    only(&evidence, "cpu-steal", Certainty::Likely, 85.0);
    evidence.facts.insert("host.steal.share", 30.0);
    only(&evidence, "cpu-steal", Certainty::Likely, 36.0);
    // What a cause of its own takes in a phase is no part of it.
    slow(&mut evidence, Phase::ChannelOpen, 600.0);
    time(&mut evidence, "host.motd_scripts.time", 600.0);
    let cost = cost_of(&evidence, "cpu-steal");
    assert!(cost < ms(50.0), "{cost:?}");
    evidence.facts.insert("host.steal", 9.0);
    assert!(is_ruled_out(&Diagnosis::of(&evidence), "cpu-steal"));
}
