//! `--ask-pass`: password and keyboard-interactive.

use std::fs;

use sshoal_testbed::sshd::SshdSpec;
use sshoal_testbed::sshd::account::{PasswordAccount, password_account};
use sshoal_testbed::sshd::key_files::KeyType;

use crate::fixture::{Run, Scene, text};
use crate::terminal::OnTerminal;

/// A run as the account with a password, on a terminal, the password typed in.
fn type_password(mut run: Run, account: &PasswordAccount, password: &str) -> OnTerminal {
    run.option(&format!("User={}", account.name));
    let mut user = OnTerminal::start(&run);
    user.expect("Password for");
    assert!(!user.echoes());
    user.type_in(&format!("{password}\n"));
    user
}

#[test]
fn one_question_is_enough_for_all_hosts() {
    let account = password_account().unwrap();
    let scene = Scene::new(&SshdSpec::new(5));
    let run = scene.run(&["--ask-pass"], "id -un");
    let (ended, screen) = type_password(run, &account, &account.password).finish_run();
    assert_eq!(ended.all_ok(), vec![format!("{}\n", account.name); 5]);
    assert_eq!(screen.matches("Password").count(), 1, "{screen}");
    assert!(!screen.contains(&account.password), "{screen}");
}

#[test]
fn a_wrong_password_is_sent_once_a_host() {
    let account = password_account().unwrap();
    // PAM offers the same password by two methods.
    for lines in [&[][..], &["UsePAM yes", "KbdInteractiveAuthentication yes"]] {
        let scene = Scene::with(lines);
        let run = scene.run(&["--ask-pass"], "true");
        let (ended, _) = type_password(run, &account, "wrong").finish_run();
        let said = ended.failed("auth-denied");
        assert!(said.contains("refused the password"), "{said}");
        let failures = ["Failed password", "Failed keyboard-interactive/pam"];
        let failures: usize = failures.iter().map(|words| scene.logged(words)).sum();
        assert_eq!(failures, 1, "{}", scene.log(0));
    }
}

#[test]
fn a_password_prompt_of_pam_is_answered() {
    let account = password_account().unwrap();
    let scene = Scene::with(&[
        "UsePAM yes",
        "KbdInteractiveAuthentication yes",
        "PasswordAuthentication no",
    ]);
    let run = scene.run(&["--ask-pass"], "id -un");
    let (ended, _) = type_password(run, &account, &account.password).finish_run();
    assert_eq!(ended.all_ok(), [format!("{}\n", account.name)]);
    assert_eq!(scene.logged("Accepted keyboard-interactive/pam"), 1);
}

#[test]
fn a_key_and_a_password_are_given_where_both_are_asked_for() {
    let account = password_account().unwrap();
    let scene = Scene::with(&["AuthenticationMethods publickey,password"]);
    let key = scene.authorized("key");
    let counter = scene.server.dir().join("counter");
    fs::write(&counter, "").unwrap();
    fs::set_permissions(
        &counter,
        std::os::unix::fs::PermissionsExt::from_mode(0o666),
    )
    .unwrap();
    let command = format!("echo ran >> {}", counter.display());
    let run = scene.run(&["--ask-pass", "-i", text(&key)], &command);
    let (ended, _) = type_password(run, &account, &account.password).finish_run();
    ended.all_ok();
    assert_eq!(fs::read_to_string(&counter).unwrap(), "ran\n");
    assert_eq!(scene.logged("Partial publickey"), 1);
    assert_eq!(scene.logged("Accepted password"), 1);

    // Without the password the server's wish is told.
    let mut run = scene.run(&["-i", text(&key)], "true");
    run.option(&format!("User={}", account.name));
    let said = run.finish().failed("auth-denied");
    assert!(said.contains("--ask-pass"), "{said}");
}

#[test]
fn a_key_that_suffices_keeps_the_password_home() {
    let account = password_account().unwrap();
    let scene = Scene::with(&[]);
    let key = scene.authorized("key");
    let run = scene.run(&["--ask-pass", "-i", text(&key)], "true");
    let (ended, _) = type_password(run, &account, &account.password).finish_run();
    ended.all_ok();
    assert_eq!(scene.logged("Accepted publickey"), 1);
    assert_eq!(scene.logged("password"), 0);
}

#[test]
fn the_password_goes_to_no_host_whose_key_has_changed() {
    let account = password_account().unwrap();
    let scene = Scene::with(&["KbdInteractiveAuthentication yes", "UsePAM yes"]);
    let other = scene.key("other", KeyType::Ed25519, "");
    let public = fs::read_to_string(crate::fixture::public_path(&other)).unwrap();
    let address = scene.server.addresses()[0];
    let line = format!("[{}]:{} {public}", address.ip(), address.port());
    fs::write(scene.path(".ssh/known_hosts"), line).unwrap();

    let mut run = scene.run(&["--ask-pass"], "true");
    run.option("StrictHostKeyChecking=no");
    let (ended, _) = type_password(run, &account, &account.password).finish_run();
    let said = ended.failed("auth-denied");
    assert!(said.contains("the password was not sent"), "{said}");
    assert_eq!(scene.logged("Accepted"), 0);
    assert_eq!(scene.logged("Failed password"), 0);

    // A key gives nothing away.
    let key = scene.authorized("key");
    let mut run = scene.run(&["-i", text(&key)], "true");
    run.option("StrictHostKeyChecking=no");
    run.finish().all_ok();
}

#[test]
fn batch_mode_and_no_prompts_send_no_password() {
    let account = password_account().unwrap();
    for option in [
        "BatchMode=yes",
        "NumberOfPasswordPrompts=0",
        "PasswordAuthentication=no",
    ] {
        let scene = Scene::with(&[]);
        let mut run = scene.run(&["--ask-pass"], "true");
        run.option(option);
        let (ended, _) = type_password(run, &account, &account.password).finish_run();
        ended.failed("auth-denied");
        assert_eq!(scene.logged("Accepted password"), 0);
    }
}

#[test]
fn without_a_terminal_nothing_begins() {
    let scene = Scene::with(&[]);
    let ended = scene.run(&["--ask-pass"], "true").finish();
    assert_eq!(ended.status, Some(2));
    assert!(
        ended.stderr.contains("there is no terminal to ask on"),
        "{}",
        ended.stderr
    );
    assert_eq!(scene.logged("Connection from"), 0);
}

#[test]
fn ctrl_c_at_the_question_gives_the_terminal_back() {
    let scene = Scene::with(&[]);
    let mut user = OnTerminal::start(&scene.run(&["--ask-pass"], "true"));
    user.expect("Password for");
    user.type_in("se\u{3}");
    let (status, echoes) = user.finish_and_look();
    assert_ne!(status, Some(0));
    assert!(echoes);
    assert_eq!(scene.logged("Connection from"), 0);
}
