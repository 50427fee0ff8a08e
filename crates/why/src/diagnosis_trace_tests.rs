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
    // What was lost may have been another's.
    evidence.facts.insert("trace.lost", 3.0);
    only(&evidence, "pam-session", Certainty::Likely, 200.0);
    evidence.facts.insert("trace.lost", 0.0);
    only(&evidence, "pam-session", Certainty::Proven, 200.0);
    time(&mut evidence, "trace.pam_session.time", 1.0);
    assert!(is_ruled_out(&Diagnosis::of(&evidence), "pam-session"));
}

#[test]
fn a_logind_that_takes_its_time_is_found_by_what_pam_systemd_took() {
    let mut evidence = clean_no_root(0.05);
    slow(&mut evidence, Phase::ChannelOpen, 3_000.0);
    time(&mut evidence, "trace.pam_session.time", 1.0);
    time(&mut evidence, "trace.pam_systemd.time", 3_000.0);
    only(&evidence, "pam-systemd", Certainty::Proven, 3_000.0);
    // Whatever the files of PAM are called in which its line stands.
    text(&mut evidence, "host.pam.systemd", "");
    only(&evidence, "pam-systemd", Certainty::Proven, 3_000.0);
    // What was traced goes before what a phase looks like.
    slow(&mut evidence, Phase::ChannelOpen, 22_000.0);
    time(&mut evidence, "trace.pam_systemd.time", 8.0);
    let diagnosis = Diagnosis::of(&evidence);
    assert!(is_ruled_out(&diagnosis, "pam-systemd"));
}

#[test]
fn a_module_whose_own_cause_is_not_found_is_slow_as_any_other() {
    for (fact, module) in [
        ("trace.pam_motd.time", "pam_motd.so"),
        ("trace.pam_lastlog.time", "pam_lastlog.so"),
    ] {
        let mut evidence = clean_no_root(0.05);
        slow(&mut evidence, Phase::ChannelOpen, 300.0);
        time(&mut evidence, "trace.pam_session.time", 2.0);
        time(&mut evidence, fact, 298.0);
        let diagnosis = only(&evidence, "pam-session", Certainty::Proven, 300.0);
        let told = diagnosis.findings[0].evidence.join("\n");
        assert!(told.contains(&format!("{module} 298 ms")), "{told}");
    }
    // What its own cause has taken is no other's.
    let mut evidence = clean_no_root(0.05);
    slow(&mut evidence, Phase::ChannelOpen, 450.0);
    time(&mut evidence, "trace.motd.time", 420.0);
    time(&mut evidence, "trace.pam_motd.time", 424.0);
    time(&mut evidence, "trace.pam_session.time", 1.0);
    let diagnosis = only(&evidence, "pam-motd", Certainty::Proven, 420.0);
    assert!(is_ruled_out(&diagnosis, "pam-session"));
}

#[test]
fn a_slow_check_of_a_password_is_padded_and_found_by_its_module() {
    let mut evidence = clean_no_root(0.05);
    // 7.3 ms x 2^7, of which the padding that there is always is no loss.
    slow(&mut evidence, Phase::SignedRequest, 7.3 * 127.0);
    time(&mut evidence, "trace.pam_auth.time", 800.0);
    text(
        &mut evidence,
        "trace.pam_auth.slowest",
        "pam_ldap.so 799.0 ms",
    );
    time(&mut evidence, "trace.pam_account.time", 1.0);
    let diagnosis = only(&evidence, "pam-auth", Certainty::Proven, 7.3 * 127.0);
    let told = diagnosis.findings[0].evidence.join("\n");
    assert!(told.contains("pam_ldap.so"), "{told}");
    time(&mut evidence, "trace.pam_auth.time", 1.0);
    assert!(is_ruled_out(&Diagnosis::of(&evidence), "pam-auth"));
}

#[test]
fn lookups_that_sshd_was_seen_to_make_are_use_dns_whatever_may_be_read_of_its_configuration() {
    let mut evidence = clean_no_root(0.05);
    evidence.facts.insert("host.sshd_config.readable", false);
    slow(&mut evidence, Phase::FirstRequest, 7.3 * 31.0);
    slow(&mut evidence, Phase::SignedRequest, 700.0);
    slow(&mut evidence, Phase::ChannelOpen, 250.0);
    // Whoever keeps answers is quick when it is asked again.
    time(&mut evidence, "host.getent_hosts.time", 2.0);
    time(&mut evidence, "trace.server_lookups.time", 1_100.0);
    time(&mut evidence, "trace.pam_account.time", 1.0);
    time(&mut evidence, "trace.pam_session.time", 1.0);
    only(&evidence, "use-dns", Certainty::Proven, 226.3 + 950.0);
    // No more than was seen, beside the padding.
    slow(&mut evidence, Phase::ChannelOpen, 600.0);
    let diagnosis = Diagnosis::of(&evidence);
    let cost = diagnosis.findings[0].cost;
    assert!(cost.abs_diff(ms(226.3 + 984.0)) < ms(10.0), "{cost:?}");
    time(&mut evidence, "trace.server_lookups.time", 0.5);
    assert!(is_ruled_out(&Diagnosis::of(&evidence), "use-dns"));
}

#[test]
fn a_command_of_libwrap_takes_what_it_was_seen_to_take() {
    let mut evidence = clean_no_root(0.05);
    slow(&mut evidence, Phase::Banner, 250.0);
    let line = "sshd: ALL: spawn /etc/log-access %h";
    text(&mut evidence, "host.tcp_wrappers", line);
    time(&mut evidence, "trace.spawned.time", 201.0);
    only(&evidence, "tcp-wrappers-command", Certainty::Proven, 201.0);
    time(&mut evidence, "trace.spawned.time", 0.0);
    assert_eq!(found(&evidence), [""; 0]);
}

#[test]
fn a_shell_takes_what_it_takes_by_itself_and_not_what_it_waits_for_a_processor() {
    let mut evidence = clean_no_root(0.05);
    slow(&mut evidence, Phase::FirstOutput, 900.0);
    time(&mut evidence, "host.shell.time", 905.0);
    time(&mut evidence, "trace.shell.time", 205.0);
    only(&evidence, "shell-startup", Certainty::Likely, 205.0);
    assert!(Diagnosis::of(&evidence).timelines[0].unexplained > ms(600.0));
    // All that is lost is its own if that is hardly more.
    let mut evidence = clean_no_root(0.05);
    slow(&mut evidence, Phase::FirstOutput, 208.0);
    time(&mut evidence, "host.shell.time", 213.0);
    time(&mut evidence, "trace.shell.time", 205.0);
    let cost = Diagnosis::of(&evidence).findings[0].cost;
    assert!(cost > ms(205.0) && cost < ms(210.0), "{cost:?}");
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

#[test]
fn lookups_of_users_take_no_more_than_a_traced_login_was_seen_to_wait_for_them() {
    let mut evidence = clean_no_root(0.05);
    time(&mut evidence, "host.getent_passwd.time", 50.0);
    slow(&mut evidence, Phase::Banner, 50.0);
    // Padded, to 7.3 ms x 2^4.
    slow(&mut evidence, Phase::FirstRequest, 7.3 * 15.0);
    // Five lookups, and something else.
    slow(&mut evidence, Phase::ChannelOpen, 250.0 + 150.0);
    let whole = 50.0 + 7.3 * 15.0 + 400.0;
    only(&evidence, "name-service", Certainty::Proven, whole);
    evidence.tier = Tier::Root;
    time(&mut evidence, "trace.users.time", 350.0);
    let cost = cost_of(&evidence, "name-service");
    let expected = ms(whole - 150.0);
    assert!(cost.abs_diff(expected) < ms(20.0), "{cost:?}");
}

#[test]
fn scripts_of_update_motd_that_a_traced_login_has_not_run_take_nothing() {
    let mut evidence = clean_no_root(0.05);
    evidence.tier = Tier::Root;
    slow(&mut evidence, Phase::ChannelOpen, 300.0);
    time(&mut evidence, "host.motd_scripts.time", 300.0);
    time(&mut evidence, "trace.pam_session.time", 298.0);
    evidence.facts.insert("trace.lost", 0.0);
    // Who looks now and then may not have seen them.
    text(&mut evidence, "trace.by", "proc");
    assert_eq!(found(&evidence), ["pam-motd"]);
    text(&mut evidence, "trace.by", "tracefs");
    let diagnosis = only(&evidence, "pam-session", Certainty::Proven, 300.0);
    assert!(is_ruled_out(&diagnosis, "pam-motd"));
    evidence.facts.insert("trace.lost", 3.0);
    assert_eq!(found(&evidence), ["pam-motd"]);
}
