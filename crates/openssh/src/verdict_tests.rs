#![allow(clippy::unwrap_used)]

use super::*;

fn end(log: &str, told: &str, status: i32) -> End {
    let mut read = Log::default();
    read.handle(log.as_bytes(), |_| {});
    read.end(ExitStatus::from_raw(status << 8), told)
}

fn failed(log: &str, told: &str) -> (FailureKind, Fate, String) {
    match end(log, told, 255) {
        End::Failed(failure, fate) => (failure.kind, fate, failure.detail),
        other => panic!("{other:?}"),
    }
}

const CONNECTED: &str =
    "debug1: Connecting to h [10.0.0.1] port 22.\r\ndebug1: Connection established.\r\n";
const IDENTIFIED: &str =
    "debug1: Remote protocol version 2.0, remote software version OpenSSH_9.2p1\r\n";
const PROPOSED: &str = "debug1: SSH2_MSG_KEXINIT received\r\n";
const IN: &str = "Authenticated to h ([10.0.0.1]:22) using \"publickey\".\r\n";

#[test]
fn words_before_the_login_have_their_kinds() {
    for (words, kind) in [
        (
            "ssh: Could not resolve hostname h: Name or service not known",
            "resolve",
        ),
        (
            "ssh: connect to host h port 22: Connection refused",
            "refused",
        ),
        (
            "ssh: connect to host h port 22: No route to host",
            "unreachable",
        ),
        (
            "ssh: connect to host h port 22: Connection timed out",
            "connect-timeout",
        ),
        (
            "Connection timed out during banner exchange",
            "login-timeout",
        ),
        (
            "debug1: kex_exchange_identification: banner line 0: Exceeded MaxStartups",
            "throttled",
        ),
        (
            "kex_exchange_identification: Connection closed by remote host",
            "throttled",
        ),
        (
            "kex_exchange_identification: banner line contains invalid characters",
            "protocol",
        ),
        ("Bad packet length 1349676916.", "protocol"),
        (
            "Unable to negotiate with 10.0.0.1 port 22: no matching cipher found. Their offer: 3des-cbc",
            "no-common-algorithm",
        ),
        (
            "No ED25519 host key is known for h and you have requested strict checking.\r\nHost key verification failed.",
            "host-key-unknown",
        ),
        (
            "@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\r\nHost key verification failed.",
            "host-key-changed",
        ),
        (
            "@       WARNING: REVOKED HOST KEY DETECTED!               @\r\nHost key verification failed.",
            "host-key-revoked",
        ),
        (
            "root@h: Permission denied (publickey,password).",
            "auth-denied",
        ),
        (
            "Received disconnect from 10.0.0.1 port 22:2: Too many authentication failures",
            "auth-denied",
        ),
        (
            "sign_and_send_pubkey: signing failed for ED25519 \"k\" from agent: agent refused operation\r\n\
             root@h: Permission denied (publickey).",
            "agent",
        ),
        (
            "WARNING: Your password has expired.\r\nroot@h: Permission denied (password).",
            "password-expired",
        ),
    ] {
        let (found, fate, detail) = failed(&format!("{CONNECTED}{words}\r\n"), "");
        assert_eq!((found.name(), fate), (kind, Fate::NotSent), "{words}");
        assert!(detail.starts_with("ssh: "), "{detail}");
    }
}

#[test]
fn when_a_server_hangs_up_decides_what_that_is() {
    let closed = "Connection closed by 10.0.0.1 port 22\r\n";
    let kind = |log: String| failed(&log, "").0.name();
    assert_eq!(kind(format!("{CONNECTED}{closed}")), "throttled");
    assert_eq!(
        kind(format!("{CONNECTED}{IDENTIFIED}{closed}")),
        "throttled"
    );
    assert_eq!(
        kind(format!("{CONNECTED}{IDENTIFIED}{PROPOSED}{closed}")),
        "closed"
    );
    let sent = format!("{CONNECTED}{IDENTIFIED}{PROPOSED}{IN}debug1: Sending command: x\r\n");
    assert_eq!(
        kind(format!("{sent}Connection to h closed by remote host.\r\n")),
        "lost"
    );
}

#[test]
fn what_the_way_says_goes_before_what_ssh_makes_of_it() {
    let log = "debug1: Executing proxy command: exec ssh -W '[h]:22' gate\r\n\
               kex_exchange_identification: Connection closed by remote host\r\n";
    let (kind, fate, detail) = failed(
        log,
        "ssh: connect to host gate port 22: Connection refused\n",
    );
    assert_eq!((kind.name(), fate), ("refused", Fate::NotSent));
    assert!(detail.contains("gate"), "{detail}");
}

#[test]
fn of_two_who_say_the_same_the_one_on_the_way_is_quoted() {
    let log = "debug1: Executing proxy command: exec ssh -W '[h]:22' gate\r\n\
               ssh: connect to host h port 22: Connection refused\r\n";
    let told = "ssh: connect to host gate port 22: Connection refused\n";
    let (kind, _, detail) = failed(log, told);
    assert_eq!(kind.name(), "refused");
    assert_eq!(
        detail,
        "ssh: connect to host gate port 22: Connection refused"
    );
}

#[test]
fn the_command_s_status_is_told_from_ssh_s_own() {
    let sent = format!("{CONNECTED}{IN}debug1: Sending command: x\r\n");
    let request = |kind: &str| {
        format!("{sent}debug1: client_input_channel_req: channel 0 rtype {kind} reply 0\r\n")
    };
    assert_eq!(end(&request("exit-status"), "", 255), End::Exit(255));
    assert_eq!(end(&request("exit-status"), "", 0), End::Exit(0));
    assert_eq!(end(&request("exit-signal"), "", 255), End::Signal);
    let (kind, fate, _) = failed(&sent, "");
    assert_eq!((kind.name(), fate), ("lost", Fate::MayHaveRun));
}

#[test]
fn a_master_s_session_has_its_status_but_for_ssh_s_own() {
    let log = "debug1: auto-mux: Trying existing master at '/s'\r\n\
               debug1: mux_client_request_session: master session id: 2\r\n";
    assert_eq!(end(log, "", 3), End::Exit(3));
    let (kind, fate, _) = failed(log, "");
    assert_eq!((kind.name(), fate), ("lost", Fate::MayHaveRun));
}

#[test]
fn a_program_that_says_nothing_may_have_run_anything() {
    let (kind, fate, detail) = failed("", "");
    assert_eq!((kind.name(), fate), ("lost", Fate::MayHaveRun));
    assert_eq!(detail, "ssh ended with status 255");
    // The command may have said so: it may be an ssh to another host.
    let (kind, fate, detail) = failed("", "ssh: connect to host h port 22: Connection refused\n");
    assert_eq!((kind.name(), fate), ("lost", Fate::MayHaveRun));
    assert!(detail.contains("Connection refused"), "{detail}");
    // Nor is a line that sounds like a hang-up ssh's: its last words count, and what to look at is the program.
    let told = "Connection to db closed by remote host.\nno backup today\n";
    let End::Failed(failure, fate) = end("", told, 1) else {
        panic!("it has failed");
    };
    assert_eq!((failure.kind.name(), fate), ("lost", Fate::MayHaveRun));
    assert_eq!(failure.detail, "ssh: no backup today");
    assert_eq!(failure.remedy, SILENT);
}

#[test]
fn a_session_that_is_refused_has_run_nothing() {
    let log = format!("{CONNECTED}{IN}channel 0: open failed: connect failed: open failed\r\n");
    let (kind, fate, _) = failed(&log, "");
    assert_eq!(
        (kind.name(), fate),
        ("channel-refused", Fate::ProvenDiscarded)
    );
}

#[test]
fn every_word_leads_to_a_kind_that_claims_no_run() {
    assert!(WORDS.iter().all(|(_, kind)| !kind.command_may_have_run()));
}
