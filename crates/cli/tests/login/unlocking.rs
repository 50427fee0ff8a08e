//! Encrypted key files: one question a run, and only when the key is needed.

use std::fs;
use std::process::Command;

use sshoal_testbed::sshd::SshdSpec;
use sshoal_testbed::sshd::key_files::KeyType;

use crate::agent_process::Agent;
use crate::fixture::{Scene, text};
use crate::terminal::OnTerminal;

const PASSPHRASE: &str = "correct horse";

#[test]
fn one_question_unlocks_the_key_for_all_hosts() {
    let scene = Scene::new(&SshdSpec::new(8));
    let key = scene.key("key", KeyType::Ed25519, PASSPHRASE);
    scene.authorize(&key, "");
    let mut user = OnTerminal::start(&scene.run(&["-i", text(&key)], "echo in"));
    user.expect("Enter passphrase for key");
    assert!(!user.echoes());
    user.type_in("correct horse\n");
    let (ended, screen) = user.finish_run();
    assert_eq!(ended.all_ok(), ["in\n"; 8]);
    assert_eq!(screen.matches("passphrase").count(), 1, "{screen}");
    assert!(!screen.contains(PASSPHRASE), "{screen}");
}

#[test]
fn a_wrong_passphrase_is_asked_for_again_and_three_are_enough() {
    let scene = Scene::with(&[]);
    let key = scene.key("key", KeyType::Rsa2048, PASSPHRASE);
    scene.authorize(&key, "");
    let mut user = OnTerminal::start(&scene.run(&["-i", text(&key)], "echo in"));
    user.expect("Enter passphrase");
    user.type_in("wrong\n");
    user.expect("Bad passphrase");
    user.type_in("correct horse\n");
    assert_eq!(user.finish_run().0.all_ok(), ["in\n"]);

    let mut user = OnTerminal::start(&scene.run(&["-i", text(&key)], "echo in"));
    for _ in 0..3 {
        user.expect("assphrase");
        user.forget();
        user.type_in("wrong\n");
    }
    let said = user.finish_run().0.failed("auth-denied");
    assert!(said.contains("wrong passphrase"), "{said}");
}

#[test]
fn two_keys_with_one_passphrase_need_one_question() {
    let scene = Scene::with(&["AuthenticationMethods publickey,publickey"]);
    let first = scene.key("first", KeyType::Ed25519, PASSPHRASE);
    let second = scene.key("second", KeyType::EcdsaNistP256, PASSPHRASE);
    scene.authorize(&first, "");
    scene.authorize(&second, "");
    let run = scene.run(&["-i", text(&first), "-i", text(&second)], "echo in");
    let mut user = OnTerminal::start(&run);
    user.expect("Enter passphrase");
    user.type_in("correct horse\n");
    let (ended, screen) = user.finish_run();
    assert_eq!(ended.all_ok(), ["in\n"]);
    assert_eq!(screen.matches("passphrase").count(), 1, "{screen}");
}

#[test]
fn nothing_is_asked_for_a_key_that_is_not_needed() {
    let scene = Scene::with(&[]);
    let key = scene.key("key", KeyType::Ed25519, PASSPHRASE);
    // The server does not want it.
    let run = scene.run(&["-i", text(&key)], "true");
    let (ended, screen) = OnTerminal::start(&run).finish_run();
    ended.failed("auth-denied");
    assert_eq!(screen, "");
    // The agent has it.
    let agent = Agent::start();
    let plain = scene.path("plain");
    fs::copy(&key, &plain).unwrap();
    let status = Command::new("ssh-keygen")
        .args(["-q", "-p", "-P", PASSPHRASE, "-N", "", "-f"])
        .arg(&plain)
        .status()
        .unwrap();
    assert!(status.success());
    agent.add(&plain, &[]);
    scene.authorize(&key, "");
    let run = scene
        .run(&["-i", text(&key)], "true")
        .with_agent(&agent.socket());
    let (ended, screen) = OnTerminal::start(&run).finish_run();
    ended.all_ok();
    assert_eq!(screen, "");
}

#[test]
fn ctrl_c_ends_the_run_and_gives_the_terminal_back() {
    let scene = Scene::with(&[]);
    let key = scene.key("key", KeyType::Ed25519, PASSPHRASE);
    scene.authorize(&key, "");
    let mut user = OnTerminal::start(&scene.run(&["-i", text(&key)], "true"));
    user.expect("Enter passphrase");
    assert!(!user.echoes());
    user.type_in("corr\u{3}");
    assert_eq!(user.finish_and_look(), (Some(130), true));
}

#[test]
fn the_end_of_the_run_ends_the_question() {
    let scene = Scene::with(&[]);
    let key = scene.key("key", KeyType::Ed25519, PASSPHRASE);
    scene.authorize(&key, "");
    let run = scene.run(&["-i", text(&key), "--login-timeout", "10"], "true");
    let mut user = OnTerminal::start(&run);
    user.expect("Enter passphrase");
    assert_eq!(user.finish_and_look(), (Some(3), true));
}

#[test]
fn without_anybody_to_ask_the_key_is_passed_over() {
    let scene = Scene::with(&[]);
    let locked = scene.key("locked", KeyType::Ed25519, PASSPHRASE);
    scene.authorize(&locked, "");
    let ended = scene.run(&["-i", text(&locked)], "true").finish();
    let said = ended.failed("auth-denied");
    assert!(said.contains(text(&locked)), "{said}");
    assert!(ended.stderr.contains("no terminal"), "{}", ended.stderr);

    let plain = scene.authorized("plain");
    let options = ["-i", text(&locked), "-i", text(&plain)];
    scene.run(&options, "true").finish().all_ok();
    let mut run = scene.run(&options, "true");
    run.option("BatchMode=yes");
    let (ended, screen) = OnTerminal::start(&run).finish_run();
    ended.all_ok();
    assert_eq!(screen, "");
}

#[test]
fn ssh_askpass_stands_in_for_the_terminal() {
    let scene = Scene::with(&[]);
    let key = scene.key("key", KeyType::Ed25519, PASSPHRASE);
    scene.authorize(&key, "");
    let program = scene.script(
        "askpass",
        "echo \"$1\" > \"$HOME/question\"; echo 'correct horse'",
    );
    let mut run = scene.run(&["-i", text(&key)], "true");
    run.set("SSH_ASKPASS", &program);
    run.set("SSH_ASKPASS_REQUIRE", "force");
    run.finish().all_ok();
    let question = fs::read_to_string(scene.path("question")).unwrap();
    assert!(
        question.starts_with("Enter passphrase for key"),
        "{question}"
    );
}

#[test]
fn a_pem_key_that_hides_its_public_half_needs_it_beside() {
    let scene = Scene::with(&[]);
    let key = scene.key("key", KeyType::Rsa2048, "");
    scene.authorize(&key, "");
    let status = Command::new("ssh-keygen")
        .args(["-q", "-p", "-m", "PEM", "-P", "", "-N", PASSPHRASE, "-f"])
        .arg(&key)
        .status()
        .unwrap();
    assert!(status.success());
    let mut user = OnTerminal::start(&scene.run(&["-i", text(&key)], "true"));
    user.expect("Enter passphrase");
    user.type_in("correct horse\n");
    user.finish_run().0.all_ok();

    fs::remove_file(crate::fixture::public_path(&key)).unwrap();
    let ended = scene.run(&["-i", text(&key)], "true").finish();
    assert_eq!(ended.status, Some(2));
    assert!(
        ended.stderr.contains("ssh-keygen -y -f"),
        "{}",
        ended.stderr
    );
}
