//! What a trace says beside what was measured.

use super::*;

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
fn of_a_traced_login_every_resource_is_found_or_ruled_out_with_its_number() {
    // Nothing is known of the host but what the trace says.
    let mut evidence = clean(0.05);
    evidence.tier = Tier::Root;
    for (name, time_ms) in [
        ("wall", 400.0),
        ("cpu", 30.0),
        ("contention", 1.0),
        ("storage", 2.0),
        ("network", 3.0),
    ] {
        time(&mut evidence, &format!("trace.{name}.time"), time_ms);
    }
    for name in [
        "opened",
        "block.octets",
        "major_faults",
        "swapped_in",
        "connections",
        "lookups",
    ] {
        evidence.facts.insert(format!("trace.{name}"), 7.0);
    }
    let words = |evidence: &Evidence| {
        let diagnosis = Diagnosis::of(evidence);
        let told = diagnosis.resources.iter().map(|verdict| {
            let is_found = match verdict.status {
                Status::Found => true,
                Status::RuledOut(_) => false,
                Status::NotLookedAt(_) => panic!("{verdict:?}"),
            };
            (is_found, verdict.words.clone())
        });
        told.collect::<Vec<_>>()
    };
    let told = words(&evidence);
    for ((is_found, words), number) in told.iter().zip([
        "worked 30 ms",
        "swapped in 7 pages",
        "opened 7 files",
        "waited 2.0 ms",
        "the host waited 3.0 ms",
    ]) {
        assert!(!is_found && words.contains(number), "{words}");
    }
    for name in ["cpu", "storage", "network"] {
        time(&mut evidence, &format!("trace.{name}.time"), 120.0);
    }
    let found = |evidence: &Evidence| -> Vec<bool> {
        words(evidence)
            .into_iter()
            .map(|(is_found, _)| is_found)
            .collect()
    };
    assert_eq!(found(&evidence), [true, false, false, true, true]);
    evidence.facts.insert("trace.swapped_in", 5000.0);
    assert_eq!(found(&evidence), [true, true, false, true, true]);
}

#[test]
fn a_trace_knows_better_than_the_user_what_update_motd_takes() {
    let mut evidence = clean_no_root(0.05);
    evidence.tier = Tier::Root;
    slow(&mut evidence, Phase::ChannelOpen, 420.0);
    // As the user it waits for something else.
    time(&mut evidence, "host.motd_scripts.time", 90.0);
    time(&mut evidence, "trace.motd.time", 420.0);
    time(&mut evidence, "trace.pam_session.time", 1.0);
    text(
        &mut evidence,
        "trace.motd.slowest",
        "/etc/update-motd.d/50-slow 400 ms",
    );
    let diagnosis = only(&evidence, "pam-motd", Certainty::Proven, 420.0);
    let told = diagnosis.findings[0].evidence.join("\n");
    assert!(told.contains("50-slow 400 ms"), "{told}");
}

#[test]
fn a_cause_takes_hardly_more_than_was_measured_of_it_whatever_else_is_lost() {
    let mut evidence = clean_no_root(0.05);
    evidence.tier = Tier::Root;
    slow(&mut evidence, Phase::SignedRequest, 90.0);
    time(&mut evidence, "trace.pam_account.time", 52.0);
    text(
        &mut evidence,
        "trace.pam_account.slowest",
        "pam_exec.so 51 ms",
    );
    only(&evidence, "pam-account", Certainty::Proven, 55.0);
    assert!(Diagnosis::of(&evidence).timelines[0].unexplained > ms(30.0));
}

#[test]
fn lookups_of_users_that_a_traced_login_was_quick_with_are_ruled_out() {
    let mut evidence = clean_no_root(0.05);
    for phase in [Phase::Banner, Phase::FirstRequest] {
        slow(&mut evidence, phase, 60.0);
    }
    time(&mut evidence, "host.id.time", 60.0);
    assert_eq!(found(&evidence), ["name-service"]);
    evidence.tier = Tier::Root;
    time(&mut evidence, "trace.users.time", 2.0);
    assert!(is_ruled_out(&Diagnosis::of(&evidence), "name-service"));
}
