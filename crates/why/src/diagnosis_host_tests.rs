//! Causes that the host tells of: its configuration, what starts its sshd, and what is run in place of a command.

use super::*;

#[test]
fn names_in_hosts_deny_are_to_blame_where_the_host_s_own_lookup_is_slow() {
    let mut evidence = clean_no_root(0.05);
    slow(&mut evidence, Phase::Banner, 400.0);
    time(&mut evidence, "host.getent_hosts.time", 400.0);
    for names in [
        "sshd: .example.org",
        "ftpd: ALL\nALL: PARANOID",
        "vsftpd sshd: 192.0.2. gateway",
    ] {
        text(&mut evidence, "host.tcp_wrappers", names);
        only(&evidence, "tcp-wrappers", Certainty::Likely, 400.0);
    }
    for addresses in [
        "",
        "sshd: 192.0.2.0/255.255.255.0 [2001:db8::]/32",
        "ftpd: .example.org",
        "ALL: ALL EXCEPT 192.0.2.",
    ] {
        text(&mut evidence, "host.tcp_wrappers", addresses);
        assert_eq!(found(&evidence), [""; 0], "{addresses}");
    }
}

#[test]
fn a_command_of_hosts_allow_is_waited_for() {
    let mut evidence = clean_no_root(0.05);
    slow(&mut evidence, Phase::Banner, 200.0);
    let line = "sshd: ALL: spawn /etc/log-access %h";
    text(&mut evidence, "host.tcp_wrappers", line);
    only(&evidence, "tcp-wrappers-command", Certainty::Likely, 200.0);
    text(&mut evidence, "host.tcp_wrappers", "sshd: 192.0.2.: allow");
    assert_eq!(found(&evidence), [""; 0]);
}

#[test]
fn of_a_command_of_hosts_allow_libwrap_waits_for_what_is_not_in_the_background() {
    let mut evidence = clean_no_root(0.05);
    slow(&mut evidence, Phase::Banner, 200.0);
    for waited_for in [
        "sshd: ALL: spawn (/etc/log %h)",
        "sshd: [2001:db8::]/32: SPAWN = /etc/look-up %h; /etc/log %h & : allow",
        "sshd: ALL: severity info: spawn /etc/look-up && /etc/log",
        "ALL EXCEPT ftpd: ALL: aclexec /etc/ask %a",
    ] {
        text(&mut evidence, "host.tcp_wrappers", waited_for);
        only(&evidence, "tcp-wrappers-command", Certainty::Likely, 200.0);
    }
    for left_alone in [
        "sshd: ALL: spawn (/etc/look-up -l @%h | mail root) &",
        "sshd: ALL: spawn (date; echo 10\\:00) & : allow",
        "sshd: 192.0.2.7: twist /bin/echo no",
        "sshd: ALL: banners /etc/spawn",
        "ALL EXCEPT sshd: ALL: spawn /etc/log",
    ] {
        text(&mut evidence, "host.tcp_wrappers", left_alone);
        assert_eq!(found(&evidence), [""; 0], "{left_alone}");
    }
}

#[test]
fn libwrap_s_files_say_nothing_of_a_server_that_does_not_read_them() {
    let mut evidence = clean_no_root(0.05);
    slow(&mut evidence, Phase::Banner, 200.0);
    text(
        &mut evidence,
        "host.tcp_wrappers",
        "sshd: ALL: spawn /etc/log %h",
    );
    evidence.facts.insert("host.libwrap", true);
    only(&evidence, "tcp-wrappers-command", Certainty::Likely, 200.0);
    evidence.facts.insert("host.libwrap", false);
    assert_eq!(found(&evidence), [""; 0]);
}

#[test]
fn what_openssh_alone_does_is_not_suspected_of_another_server() {
    let mut evidence = clean(0.05);
    for phase in [Phase::FirstRequest, Phase::KeyProbe, Phase::SignedRequest] {
        slow(&mut evidence, phase, 200.0);
    }
    assert_eq!(found(&evidence), ["authorized-keys-command", "use-dns"]);
    evidence.identification = Some("SSH-2.0-dropbear_2022.83".to_owned());
    let diagnosis = Diagnosis::of(&evidence);
    for cause in ["authorized-keys-command", "revoked-keys", "use-dns"] {
        assert!(is_ruled_out(&diagnosis, cause), "{cause}");
    }
}

#[test]
fn an_sshd_that_is_started_for_each_connection_has_no_listener() {
    let mut evidence = clean_no_root(0.05);
    slow(&mut evidence, Phase::Banner, 200.0);
    evidence.facts.insert("host.listener", false);
    only(&evidence, "socket-activation", Certainty::Likely, 200.0);
}

#[test]
fn revoked_keys_are_read_for_the_probe_and_for_the_signature() {
    let mut evidence = clean_no_root(0.05);
    slow(&mut evidence, Phase::KeyProbe, 100.0);
    slow(&mut evidence, Phase::SignedRequest, 100.0);
    text(
        &mut evidence,
        "host.sshd_config.RevokedKeys",
        "/etc/ssh/revoked",
    );
    only(&evidence, "revoked-keys", Certainty::Likely, 200.0);
}

#[test]
fn a_key_exchange_in_a_large_group_is_told_by_its_name() {
    let mut evidence = clean(0.05);
    slow(&mut evidence, Phase::KeyExchange, 150.0);
    assert_eq!(found(&evidence), [""; 0]);
    text(&mut evidence, "login.kex", "diffie-hellman-group18-sha512");
    only(&evidence, "large-group-exchange", Certainty::Likely, 150.0);
    // sshd sends its reply and goes on reckoning.
    slow(&mut evidence, Phase::FirstRequest, 9.0);
    let diagnosis = only(&evidence, "large-group-exchange", Certainty::Likely, 159.0);
    assert_eq!(diagnosis.findings[0].shares.len(), 2);
    // Names that are looked up in the request behind it are no reckoning.
    let mut evidence = clean_no_root(0.05);
    text(&mut evidence, "login.kex", "diffie-hellman-group14-sha256");
    text(&mut evidence, "host.sshd_config.UseDNS", "yes");
    time(&mut evidence, "host.getent_hosts.time", 200.0);
    slow(&mut evidence, Phase::FirstRequest, 7.3 * 31.0);
    only(&evidence, "use-dns", Certainty::Likely, 7.3 * 31.0);
    slow(&mut evidence, Phase::KeyExchange, 36.0);
    assert_eq!(found(&evidence), ["use-dns", "large-group-exchange"]);
    let cost = cost_of(&evidence, "large-group-exchange");
    assert!(cost < ms(80.0), "{cost:?}");
    // A little here and there is no group that is too large.
    let mut evidence = clean(0.05);
    text(&mut evidence, "login.kex", "diffie-hellman-group16-sha512");
    slow(&mut evidence, Phase::KeyExchange, 7.0);
    slow(&mut evidence, Phase::FirstRequest, 7.0);
    assert_eq!(found(&evidence), [""; 0]);
    // Nor is noise of the exchange, where nothing is lost behind it.
    let mut evidence = clean(0.05);
    text(&mut evidence, "login.kex", "diffie-hellman-group18-sha512");
    for (login, more) in evidence
        .logins
        .chunks_mut(2)
        .zip([20.0, 30.0, 40.0, 50.0, 60.0])
    {
        let spans = login.iter_mut().flat_map(|it| &mut it.spans);
        for span in spans.filter(|span| span.phase == Phase::KeyExchange) {
            span.duration += ms(more);
        }
    }
    assert_eq!(found(&evidence), [""; 0]);
    slow(&mut evidence, Phase::FirstRequest, 22.0);
    only(&evidence, "large-group-exchange", Certainty::Likely, 60.0);
}

#[test]
fn of_two_rc_files_the_user_s_is_run() {
    let mut evidence = clean_no_root(0.05);
    slow(&mut evidence, Phase::FirstOutput, 200.0);
    evidence.facts.insert("host.sshrc", true);
    time(&mut evidence, "host.second_exec.time", 205.0);
    let diagnosis = only(&evidence, "sshrc", Certainty::Likely, 200.0);
    assert_eq!(diagnosis.findings[0].cause.fix.file, "/etc/ssh/sshrc");
    evidence.facts.insert("host.user_rc", true);
    only(&evidence, "ssh-rc", Certainty::Likely, 200.0);
}

#[test]
fn a_shell_that_is_a_program_of_its_own_has_no_start_up_files_to_blame() {
    let mut evidence = clean_no_root(0.05);
    slow(&mut evidence, Phase::FirstOutput, 200.0);
    time(&mut evidence, "host.shell.time", 205.0);
    text(&mut evidence, "host.shell", "/etc/ssh/session");
    text(&mut evidence, "host.shell_startup.files", "");
    let diagnosis = only(&evidence, "login-shell", Certainty::Likely, 200.0);
    assert!(is_ruled_out(&diagnosis, "shell-startup"));
    let words = diagnosis.findings[0].evidence.join("\n");
    assert!(words.contains("/etc/ssh/session"), "{words}");
}

#[test]
fn a_forced_command_takes_what_the_shell_does_not() {
    let mut evidence = clean_no_root(0.05);
    slow(&mut evidence, Phase::FirstOutput, 300.0);
    evidence.facts.insert("host.forced_command", true);
    time(&mut evidence, "host.second_exec.time", 305.0);
    only(&evidence, "forced-command", Certainty::Likely, 300.0);
    time(&mut evidence, "host.shell.time", 104.0);
    assert_eq!(found(&evidence), ["forced-command", "shell-startup"]);
}

#[test]
fn what_a_shell_takes_by_itself_is_none_of_the_name_service_s() {
    let mut evidence = clean_no_root(0.05);
    for phase in [Phase::Banner, Phase::FirstRequest, Phase::SignedRequest] {
        slow(&mut evidence, phase, 60.0);
    }
    slow(&mut evidence, Phase::FirstOutput, 240.0);
    // `id` asks several times.
    time(&mut evidence, "host.getent_passwd.time", 60.0);
    time(&mut evidence, "host.id.time", 180.0);
    time(&mut evidence, "host.shell.time", 244.0);
    assert_eq!(found(&evidence), ["shell-startup", "name-service"]);
    let cost = Diagnosis::of(&evidence).findings[1].cost;
    assert!(cost.abs_diff(ms(180.0)) < ms(18.0), "{cost:?}");
}

#[test]
fn a_proxy_command_is_suspected_beside_what_the_server_does_before_its_banner() {
    let mut evidence = clean(0.05);
    slow(&mut evidence, Phase::Banner, 300.0);
    assert_eq!(found(&evidence), ["tcp-wrappers"]);
    text(&mut evidence, "ssh_config.ProxyCommand", "connect %h %p");
    let diagnosis = only(&evidence, "proxy-command", Certainty::Suspected, 300.0);
    let alternatives = &diagnosis.findings[0].alternatives;
    assert!(alternatives.contains(&"socket-activation"));
    text(&mut evidence, "ssh_config.ProxyCommand", "none");
    assert_eq!(found(&evidence), ["tcp-wrappers"]);
}
