//! What is lost from the open channel to the first output.

use super::*;

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
    time(&mut evidence, "host.second_exec.time", 265.0);
    let diagnosis = only(&evidence, "ssh-rc", Certainty::Likely, 260.0);
    assert!(is_ruled_out(&diagnosis, "shell-startup"));
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
    // A traced login has waited for no file for longer.
    time(&mut evidence, "trace.storage.time", 90.0);
    time(&mut evidence, "trace.network.time", 10.0);
    let diagnosis = Diagnosis::of(&evidence);
    let home = &diagnosis.findings[0];
    assert_eq!((home.cause.id, home.cost), ("network-home", ms(100.0)));
}

#[test]
fn a_home_on_the_network_leaves_to_others_what_they_take() {
    let mut evidence = clean_no_root(0.05);
    slow(&mut evidence, Phase::ChannelOpen, 600.0);
    time(&mut evidence, "host.motd_scripts.time", 600.0);
    slow(&mut evidence, Phase::FirstOutput, 400.0);
    time(&mut evidence, "host.shell.time", 404.0);
    text(&mut evidence, "host.home.filesystem", "nfs4");
    time(&mut evidence, "host.home.time", 12.0);
    assert_eq!(found(&evidence), ["pam-motd", "shell-startup"]);
}

#[test]
fn motd_scripts_leave_to_a_slow_module_what_they_do_not_take() {
    let mut evidence = clean_no_root(0.05);
    slow(&mut evidence, Phase::ChannelOpen, 300.0);
    time(&mut evidence, "host.motd_scripts.time", 100.0);
    assert_eq!(found(&evidence), ["pam-session", "pam-motd"]);
    assert_eq!(cost_of(&evidence, "pam-motd"), ms(100.0));
}

#[test]
fn a_motd_script_that_was_ended_may_take_a_login_longer() {
    let mut evidence = clean_no_root(0.05);
    slow(&mut evidence, Phase::ChannelOpen, 25_000.0);
    time(&mut evidence, "host.motd_scripts.time", 10_000.0);
    evidence.facts.insert("host.motd_scripts.cut_short", true);
    only(&evidence, "pam-motd", Certainty::Proven, 25_000.0);
}

#[test]
fn a_logind_that_does_not_answer_is_told_by_what_motd_scripts_leave() {
    let mut evidence = clean_no_root(0.05);
    slow(&mut evidence, Phase::ChannelOpen, 25_000.0);
    only(&evidence, "pam-systemd", Certainty::Likely, 25_000.0);
    time(&mut evidence, "host.motd_scripts.time", 24_000.0);
    assert_eq!(found(&evidence), ["pam-motd", "pam-session"]);
}

#[test]
fn pam_s_files_say_nothing_of_a_server_that_does_not_ask_it() {
    let lastlog = "session optional pam_lastlog.so showfailed";
    let mut evidence = clean_no_root(0.05);
    slow(&mut evidence, Phase::ChannelOpen, 25_000.0);
    time(&mut evidence, "host.motd_scripts.time", 600.0);
    text(&mut evidence, "host.pam.lastlog", lastlog);
    let pam = ["pam-motd", "pam-systemd", "pam-lastlog"];
    assert_eq!(found(&evidence), ["pam-systemd", "pam-motd"]);
    let are_ruled_out = |evidence: &Evidence| {
        let diagnosis = Diagnosis::of(evidence);
        pam.iter().all(|cause| is_ruled_out(&diagnosis, cause))
    };
    text(&mut evidence, "host.sshd_config.UsePAM", "no");
    assert!(are_ruled_out(&evidence));
    text(&mut evidence, "host.sshd_config.UsePAM", "yes");
    evidence.identification = Some("SSH-2.0-dropbear_2022.83".to_owned());
    assert!(are_ruled_out(&evidence));
}

#[test]
fn an_rc_file_of_the_user_that_is_not_permitted_is_not_run() {
    let mut evidence = clean_no_root(0.05);
    slow(&mut evidence, Phase::FirstOutput, 200.0);
    time(&mut evidence, "host.second_exec.time", 205.0);
    evidence.facts.insert("host.user_rc", true);
    evidence.facts.insert("host.sshrc", true);
    only(&evidence, "ssh-rc", Certainty::Likely, 200.0);
    text(&mut evidence, "host.sshd_config.PermitUserRC", "no");
    let diagnosis = only(&evidence, "sshrc", Certainty::Likely, 200.0);
    assert!(is_ruled_out(&diagnosis, "ssh-rc"));
}
